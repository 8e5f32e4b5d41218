/* Number of executed iterations. */
#include <criterion/criterion.h>

#include "engine/program/outcome.h"

static void expect_length(const struct psd_system *system, uint32_t requested, double jitter_ratio, uint32_t first,
			  uint32_t measured)
{
	const struct psd_run_length length = psd_run_length_make(system, requested, jitter_ratio);

	cr_expect_eq(length.first_measured, first, "%u requested: %u before", requested, length.first_measured);
	cr_expect_eq(length.n_iterations, first + measured, "%u requested: %u, not %u", requested, length.n_iterations,
		     first + measured);
}

Test(outcome, the_requested_number_of_iterations_or_one)
{
	const struct psd_system system = {.barrier = PSD_BARRIER_ITERATION};

	expect_length(&system, 0, 0.0, 0, 1);
	expect_length(&system, 7, 0.0, 0, 7);
	expect_length(&system, 0, 0.1, 0, 20);
	expect_length(&system, 7, 0.1, 0, 7);
}

/* Three fill the pipeline. */
Test(outcome, a_barrier_per_layer_begins_before_it_measures)
{
	const struct psd_system system = {.barrier = PSD_BARRIER_LAYER};

	expect_length(&system, 0, 0.0, 3, 2);
	expect_length(&system, 7, 0.0, 3, 7);
}

/* With 4 steps, 1 to 4 iterations are one period and 5 are two. */
Test(outcome, local_steps_are_measured_in_whole_periods)
{
	const struct psd_system system = {.is_local = true, .local_sgd = {.steps = 4}};

	expect_length(&system, 0, 0.0, 0, 4);
	for (uint32_t requested = 1; requested <= 4; requested++)
		expect_length(&system, requested, 0.0, 0, 4);
	expect_length(&system, 5, 0.0, 0, 8);
	expect_length(&system, 8, 0.0, 0, 8);
	expect_length(&system, 0, 0.1, 0, 20);
	expect_length(&system, 21, 0.1, 0, 24);
}

/* The three that fill the pipeline are a period of 4 or two of 2, and so are the two measured. */
Test(outcome, local_steps_with_a_barrier_per_layer_begin_with_whole_periods)
{
	const struct psd_system four = {.barrier = PSD_BARRIER_LAYER, .is_local = true, .local_sgd = {.steps = 4}};
	const struct psd_system two = {.barrier = PSD_BARRIER_LAYER, .is_local = true, .local_sgd = {.steps = 2}};
	const struct psd_system one = {.barrier = PSD_BARRIER_LAYER, .is_local = true, .local_sgd = {.steps = 1}};

	expect_length(&four, 0, 0.0, 4, 4);
	expect_length(&two, 0, 0.0, 4, 2);
	expect_length(&one, 0, 0.0, 3, 2);
}

/* Steps of a system that is not local have no effect. */
Test(outcome, steps_count_where_there_are_any)
{
	const struct psd_system system = {.is_local = false, .local_sgd = {.steps = 4}};

	expect_length(&system, 5, 0.0, 0, 5);
}

/* Iterations before and behind the measured ones. */
Test(outcome, methods_with_roots_are_measured_when_these_have_fallen_behind)
{
	const struct psd_system adam = {.sync = PSD_SYNC_ADAM}, sacp = {.sync = PSD_SYNC_SACP},
				layer = {.sync = PSD_SYNC_ADAM, .barrier = PSD_BARRIER_LAYER},
				local = {.sync = PSD_SYNC_ADAM, .is_local = true, .local_sgd = {.steps = 4}};

	expect_length(&sacp, 7, 0.0, 2, 7);
	expect_length(&adam, 0, 0.0, 2, 1 + 1);
	expect_length(&layer, 0, 0.0, 3 + 2, 2 + 1);
	expect_length(&local, 0, 0.0, 4, 4 + 4);
	cr_expect_eq(psd_run_length_make(&sacp, 7, 0.0).n_behind, 0);
	cr_expect_eq(psd_run_length_make(&adam, 0, 0.0).n_behind, 1);
	cr_expect_eq(psd_run_length_make(&local, 0, 0.0).n_behind, 4);
}

/* One iteration in flight more than staleness says; as many again, twice, before any is measured. */
Test(outcome, late_updates_are_measured_by_what_is_under_way)
{
	const struct psd_system one = {.staleness = 1}, three = {.staleness = 3};
	const struct psd_system layer = {.barrier = PSD_BARRIER_LAYER, .staleness = 1};

	expect_length(&one, 0, 0.0, 4, 2);
	expect_length(&one, 7, 0.0, 4, 8);
	expect_length(&three, 0, 0.0, 8, 4);
	expect_length(&three, 0, 0.1, 8, 20);
	expect_length(&layer, 0, 0.0, 8, 2); /* 3 and 4, in twos */
}
