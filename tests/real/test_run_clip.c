/* Whole runs on loopback whose gradients are clipped: every system trains as a plain reference in double precision;
 * where no norm is as large as it may be, as without; updates that are left out count for nothing. */
#define _GNU_SOURCE 1
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/real/going_on.h"
#include "tests/real/plain_training.h"
#include "tests/real/update_cases.h"

TestSuite(run_clip, .timeout = 120);

/* ---- the algorithm ---- */

enum { N = PLAIN_PARAMETERS };

struct reference {
	struct plain_training plain;
	double gradients[PLAIN_ITERATIONS][N], history[N];
	unsigned n_clipped;
};

static void clip(struct reference *of, double *gradient, double most_norm)
{
	double square = 0.0;

	for (unsigned e = 0; e < N; e++)
		square += gradient[e] * gradient[e];
	of->n_clipped += square > most_norm * most_norm;
	for (unsigned e = 0; e < N && square > most_norm * most_norm; e++)
		gradient[e] *= most_norm / sqrt(square);
}

static void check(const struct update_case *of, unsigned staleness, const char *keys, double way_ratio)
{
	/* Some of the norms are below, some above: the more workers, the more samples and the shorter their mean. */
	const double rate = 0.05, most_norm = (const double[]){0.0, 3.25, 2.45, 2.2, 2.1}[of->workers];
	struct reference *reference = calloc(1, sizeof(*reference));
	double apart_ratio;
	char system[192], optimiser[96];

	cr_assert(reference);
	snprintf(system, sizeof(system), "%s, staleness: %u%s", of->system, staleness, keys);
	snprintf(optimiser, sizeof(optimiser), PLAIN_MOMENTUM ", clip: %g", most_norm);
	plain_training_open(&reference->plain, system, of->workers, of->workers_per_node, optimiser, rate);
	training_expect_same_on_all(reference->plain.trained, system);
	for (unsigned t = 0; t < PLAIN_ITERATIONS; t++) {
		for (unsigned w = 0; w < of->workers; w++)
			plain_training_add_gradient(&reference->plain, w, t, reference->gradients[t]);
		if (t < staleness)
			continue;
		clip(reference, reference->gradients[t - staleness], most_norm);
		plain_training_step(&reference->plain, rate, reference->history, reference->gradients[t - staleness]);
	}
	apart_ratio = plain_training_apart_ratio(&reference->plain);
	cr_expect_leq(apart_ratio, way_ratio, "%s: off by %g of the way", system, apart_ratio);
	cr_expect(reference->n_clipped > 0 && reference->n_clipped < PLAIN_ITERATIONS - staleness,
		  "%s: %u gradients are clipped", system, reference->n_clipped);
	plain_training_close(&reference->plain);
	free(reference);
}

Test(run_clip, every_system_scales_a_gradient_as_a_whole)
{
	for (unsigned c = 0; c < N_CASES; c++)
		check(&cases[c], 0, "", SAME_WAY_RATIO);
}

Test(run_clip, a_worker_alone_scales_its_own)
{
	check(&(struct update_case){"sync: ps", 1, 1}, 0, "", SAME_WAY_RATIO);
	check(&(struct update_case){"sync: ring", 1, 1}, 0, "", SAME_WAY_RATIO);
}

Test(run_clip, late_gradients_are_scaled_when_they_are_applied)
{
	for (unsigned c = 0; c < N_CASES; c += 2)
		check(&cases[c], 1, "", SAME_WAY_RATIO);
}

Test(run_clip, rounded_gradients_are_scaled_as_they_arrive)
{
	for (unsigned c = 0; c < N_CASES; c++)
		check(&cases[c], 0, ", wire: bf16", BF16_WAY_RATIO);
}

/* ---- networks of many layers ---- */

#define RATE  ", learning_rate: {policy: exp, base: 0.02, gamma: 0.9}"
#define SGD   "momentum: 0.9, weight_decay: 0.01"
#define ADAMW "kind: adamw, beta1: 0.8, beta2: 0.95, epsilon: 0.0001"

Test(run_clip, all_systems_train_alike)
{
	update_cases_check_alike("", ", optimiser: {" SGD ", clip: 0.3}" RATE);
	update_cases_check_alike("", ", optimiser: {" ADAMW ", clip: 0.3}" RATE);
	update_cases_check_alike("", ", optimiser: {kind: lars, momentum: 0.9, trust: 0.02, clip: 0.3}" RATE);
}

Test(run_clip, sums_in_any_order_train_alike)
{
	update_cases_check_alike("", ", optimiser: {" SGD ", clip: 0.3}" RATE ", deterministic: false");
}

/* Bit for bit, where workers update anyway. */
Test(run_clip, a_gradient_below_the_limit_stays_as_it_is)
{
	for (unsigned c = 0; c < 4; c++) { /* those of all-reduces */
		struct training *plain = update_case_train(&cases[c], "", ", optimiser: {" SGD "}" RATE),
				*clipped = update_case_train(&cases[c], "", ", optimiser: {" SGD ", clip: 1000}" RATE);

		cr_expect(training_is_same(plain, 0, clipped, 0), "%s", cases[c].system);
		training_free(plain);
		training_free(clipped);
	}
}

Test(run_clip, a_run_repeats_exactly)
{
	update_cases_check_repetition("", ", optimiser: {" SGD ", clip: 0.3}" RATE);
}

/* Each scale takes other gradients out of fp16's range, at the highest all. Those that stay are as without a bound that
 * none of them reaches, which an infinite norm would. */
Test(run_clip, updates_that_are_left_out_have_no_part_in_the_norm)
{
	static const struct update_case some[] = {
		{"sync: ring", 2, 1}, {"sync: ring, pipeline: 4KiB", 3, 1}, {"sync: two-level", 4, 2}};
	unsigned n_partly = 0;

	for (unsigned c = 0; c < sizeof(some) / sizeof(some[0]); c++)
		for (unsigned doublings = 14; doublings < 30; doublings++) {
			struct training *plain, *clipped;
			char learn[2][160];

			for (unsigned l = 0; l < 2; l++)
				snprintf(learn[l], sizeof(learn[l]), ", optimiser: {" SGD "%s}" RATE ", loss_scale: %u",
					 l ? ", clip: 1000" : "", 1u << doublings);
			plain = update_case_train(&some[c], ", wire: fp16", learn[0]);
			clipped = update_case_train(&some[c], ", wire: fp16", learn[1]);
			n_partly += plain->result.n_left_out > 0 && plain->result.n_left_out < plain->result.n_updates;
			cr_expect(training_is_same(plain, 0, clipped, 0), "%s, %u doublings", some[c].system,
				  doublings);
			training_expect_same_on_all(clipped, some[c].system);
			training_free(plain);
			training_free(clipped);
		}
	cr_expect_gt(n_partly, 5);
}

/* And where servers send sums. */
Test(run_clip, sums_of_servers_that_are_left_out_move_nothing)
{
	static const struct update_case some[] = {{"sync: ps", 2, 1}, {"sync: ps, servers: 1", 2, 1}};

	for (unsigned c = 0; c < sizeof(some) / sizeof(some[0]); c++)
		for (unsigned doublings = 14; doublings < 30; doublings++) {
			struct training *training;
			char learn[160];

			snprintf(learn, sizeof(learn), ", optimiser: {" SGD ", clip: 0.3}" RATE ", loss_scale: %u",
				 1u << doublings);
			training = update_case_train(&some[c], ", wire: fp16", learn);
			training_expect_same_on_all(training, some[c].system);
			for (uint64_t e = 0; e < training->loaded.costed.graph.parameters; e++)
				cr_assert(isfinite(training_parameters(training, 0)[e]), "%s, %u doublings",
					  some[c].system, doublings);
			training_free(training);
		}
}

Test(run_clip, a_run_goes_on_as_if_it_had_not_been_cut)
{
	for (unsigned c = 0; c < N_CASES; c += 2)
		going_on_check(cases[c].system,
			       "data: {training_samples: 40, test_samples: 32}, optimiser: {momentum: 0.9, clip: 0.2}",
			       cases[c].workers, cases[c].workers_per_node, NULL);
}
