/* Whole runs on loopback whose updates come late: every system trains as a plain reference in double precision, which
 * applies each gradient as many iterations later; a run that goes on goes on with the sums that it had not applied. */
#define _GNU_SOURCE 1
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/real/going_on.h"
#include "tests/real/plain_training.h"

TestSuite(run_late, .timeout = 120);

/* Of the way from the start: sums over samples that are rounded elsewhere. */
#define SAME_WAY_RATIO 1e-5
/* The same of gradients with 8 bits. */
#define BF16_WAY_RATIO 0.03

struct late_case {
	const char *system;
	unsigned workers, workers_per_node;
};

/* Sums by rings and trees; sums that shards send back, whole and in slices, from workers and from hosts of their own,
 * by leaders; factors; and what orders all that. */
static const struct late_case cases[] = {
	{"sync: ring", 2, 1},
	{"sync: ring, fuse: 1MB, barrier: layer", 3, 1},
	{"sync: halving-doubling, schedule: sequential", 4, 1},
	{"sync: two-level", 4, 2},
	{"sync: ps", 2, 1},
	{"sync: ps", 4, 2},
	{"sync: ps, schedule: sequential", 3, 1},
	{"sync: ps, pair: 512B, slice: 1KiB, barrier: layer, priority: forward", 3, 1},
	{"sync: ps, servers: 2", 3, 1},
	{"sync: two-level-ps", 4, 2},
	{"sync: two-level-ps, servers: 1, pair: 512B, slice: 1KiB", 4, 2},
	{"sync: sfb", 3, 1},
	{"sync: hybrid", 4, 2},
	{"sync: hybrid, rule: seconds, barrier: layer", 3, 1},
};
enum { N_CASES = sizeof(cases) / sizeof(cases[0]) };

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

static void check(const struct late_case *of, unsigned staleness, const char *keys, double way_ratio)
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

#define MODEL "../../tests/data/maskless.yaml"
#define LEARN ", optimiser: {momentum: 0.9, weight_decay: 0.01}, learning_rate: {policy: exp, base: 0.02, gamma: 0.9}"

/* Of 24 samples in each iteration, whoever has them. */
static struct training *train(const struct late_case *of, unsigned staleness, const char *learn)
{
	char system[192], job[256];

	snprintf(system, sizeof(system), "%s, staleness: %u", of->system, staleness);
	snprintf(job, sizeof(job), "iterations: 7, data: {kind: synthetic, training_samples: 96}%s", learn);
	return training_finish(
		training_make(MODEL, system, of->workers, of->workers_per_node, 24 / of->workers, 5, job), of->system);
}

static void check_alike(const char *learn)
{
	static const struct late_case ring = {"sync: ring", 2, 1};
	struct training *begun = train(&ring, 1, ", learning_rate: {policy: fixed, base: 1e-9}");
	struct training *first = train(&ring, 2, learn);

	for (unsigned c = 1; c < N_CASES; c++) {
		struct training *other = train(&cases[c], 2, learn);
		const double apart_ratio = training_apart_ratio(begun, first, other);

		training_expect_same_on_all(other, cases[c].system);
		cr_expect_leq(apart_ratio, SAME_WAY_RATIO, "%s: off by %g of the way", cases[c].system, apart_ratio);
		training_free(other);
	}
	training_free(begun);
	training_free(first);
}

Test(run_late, all_systems_train_alike)
{
	check_alike(LEARN);
}

Test(run_late, sums_in_any_order_train_alike)
{
	check_alike(LEARN ", deterministic: false");
}

Test(run_late, adaptive_updates_train_alike)
{
	check_alike(", optimiser: {kind: adamw, beta1: 0.8, beta2: 0.95, epsilon: 0.0001}, learning_rate: {policy: "
		    "fixed, base: 0.01}");
}

/* By one gradient less each: the parameters differ by far more than rounding. */
Test(run_late, each_staleness_is_another_training)
{
	struct training *begun = train(&cases[0], 1, ", learning_rate: {policy: fixed, base: 1e-9}");

	for (unsigned staleness = 0; staleness < 3; staleness++) {
		struct training *one = train(&cases[0], staleness, LEARN),
				*later = train(&cases[0], staleness + 1, LEARN);

		cr_expect_gt(training_apart_ratio(begun, one, later), 1000 * SAME_WAY_RATIO);
		training_free(one);
		training_free(later);
	}
	training_free(begun);
}

Test(run_late, a_worker_alone_is_never_late)
{
	static const struct late_case alone[] = {{"sync: ring", 1, 1}, {"sync: ps", 1, 1}};

	for (unsigned c = 0; c < sizeof(alone) / sizeof(alone[0]); c++) {
		struct training *late = train(&alone[c], 3, LEARN), *plain = train(&alone[c], 0, LEARN);

		cr_expect(training_is_same(late, 0, plain, 0), "%s", alone[c].system);
		training_free(late);
		training_free(plain);
	}
}

Test(run_late, a_run_repeats_exactly)
{
	for (unsigned c = 0; c < N_CASES; c += 3) {
		struct training *one = train(&cases[c], 2, LEARN), *other = train(&cases[c], 2, LEARN);

		cr_expect(training_is_same(one, 0, other, 0), "%s", cases[c].system);
		training_free(one);
		training_free(other);
	}
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
