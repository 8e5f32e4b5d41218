/* Whole runs on loopback whose updates come late: every system trains as a plain reference in double precision, which
 * applies each gradient as many iterations later; a run that goes on goes on with the sums that it had not applied. */
#define _GNU_SOURCE 1
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/real/going_on.h"
#include "tests/real/plain_training.h"
#include "tests/real/update_cases.h"

TestSuite(run_late, .timeout = 120);

/* ---- the algorithm ---- */

enum { N = PLAIN_PARAMETERS };

struct reference {
	struct plain_training plain;
	double gradients[PLAIN_ITERATIONS][N], history[N];
};

/* Iteration t ends with the update by the gradient of iteration t - staleness, if there is one. */
static void go(struct reference *of, unsigned staleness, double rate)
{
	for (unsigned t = 0; t < PLAIN_ITERATIONS; t++) {
		for (unsigned w = 0; w < of->plain.workers; w++)
			plain_training_add_gradient(&of->plain, w, t, of->gradients[t]);
		if (t >= staleness)
			plain_training_step(&of->plain, rate, of->history, of->gradients[t - staleness]);
	}
}

static void check(const struct update_case *of, unsigned staleness, const char *keys, double way_ratio)
{
	const double rate = 0.05;
	struct reference *reference = calloc(1, sizeof(*reference));
	double apart_ratio;
	char system[192];

	cr_assert(reference);
	snprintf(system, sizeof(system), "%s, staleness: %u%s", of->system, staleness, keys);
	plain_training_open(&reference->plain, system, of->workers, of->workers_per_node, PLAIN_MOMENTUM, rate);
	training_expect_same_on_all(reference->plain.trained, system);
	go(reference, staleness, rate);
	apart_ratio = plain_training_apart_ratio(&reference->plain);
	cr_expect_leq(apart_ratio, way_ratio, "%s: off by %g of the way", system, apart_ratio);
	plain_training_close(&reference->plain);
	free(reference);
}

Test(run_late, every_system_computes_with_parameters_of_before)
{
	for (unsigned c = 0; c < N_CASES; c++)
		check(&cases[c], 1 + c % 3, "", SAME_WAY_RATIO);
}

Test(run_late, rounded_gradients_are_late_as_well)
{
	for (unsigned c = 0; c < N_CASES; c++)
		check(&cases[c], 1 + c % 2, ", wire: bf16", BF16_WAY_RATIO);
}

/* ---- networks of many layers ---- */

#define LEARN ", optimiser: {momentum: 0.9, weight_decay: 0.01}, learning_rate: {policy: exp, base: 0.02, gamma: 0.9}"
#define LATE  ", staleness: 2"

static struct training *train(const struct update_case *of, unsigned staleness)
{
	char more[32];

	snprintf(more, sizeof(more), ", staleness: %u", staleness);
	return update_case_train(of, more, LEARN);
}

Test(run_late, all_systems_train_alike)
{
	update_cases_check_alike(LATE, LEARN);
}

Test(run_late, sums_in_any_order_train_alike)
{
	update_cases_check_alike(LATE, LEARN ", deterministic: false");
}

Test(run_late, adaptive_updates_train_alike)
{
	update_cases_check_alike(
		LATE, ", optimiser: {kind: adamw, beta1: 0.8, beta2: 0.95, epsilon: 0.0001}, learning_rate: {policy: "
		      "fixed, base: 0.01}");
}

/* By one gradient less each: the parameters differ by far more than rounding. */
Test(run_late, each_staleness_is_another_training)
{
	struct training *begun = update_case_train(&cases[0], "", LEARN_NOTHING);

	for (unsigned staleness = 0; staleness < 3; staleness++) {
		struct training *one = train(&cases[0], staleness), *later = train(&cases[0], staleness + 1);

		cr_expect_gt(training_apart_ratio(begun, one, later), 1000 * SAME_WAY_RATIO);
		training_free(one);
		training_free(later);
	}
	training_free(begun);
}

Test(run_late, a_worker_alone_is_never_late)
{
	static const struct update_case alone[] = {{"sync: ring", 1, 1}, {"sync: ps", 1, 1}};

	for (unsigned c = 0; c < sizeof(alone) / sizeof(alone[0]); c++) {
		struct training *late = train(&alone[c], 3), *plain = train(&alone[c], 0);

		cr_expect(training_is_same(late, 0, plain, 0), "%s", alone[c].system);
		training_free(late);
		training_free(plain);
	}
}

Test(run_late, a_run_repeats_exactly)
{
	update_cases_check_repetition(LATE, LEARN);
}

/* ---- checkpoints ---- */

Test(run_late, a_run_goes_on_with_the_sums_that_it_had)
{
	for (unsigned c = 0; c < N_CASES; c++) {
		char system[192];

		snprintf(system, sizeof(system), "%s, staleness: %u", cases[c].system, 1 + c % 4);
		going_on_check(system, c % 2 ? GOING_ON_ADAMW : GOING_ON_SGD, cases[c].workers,
			       cases[c].workers_per_node, NULL);
	}
}

Test(run_late, a_run_goes_on_with_rounded_sums)
{
	going_on_check("sync: ps, staleness: 2, wire: bf16", GOING_ON_SGD, 3, 1, NULL);
	going_on_check("sync: hybrid, staleness: 1, wire: bf16", GOING_ON_SGD, 2, 1, NULL);
	going_on_check("sync: ring, staleness: 3, wire: bf16", GOING_ON_SGD, 2, 1, NULL);
}
