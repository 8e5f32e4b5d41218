/* Whole runs on loopback whose gradients travel as 2 bytes: all workers end with the same bits, near what they would
 * have learnt with 4, for half of the bytes; and what leaves the range of an encoding moves nothing. */
#define _XOPEN_SOURCE 700
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/real/training.h"

/* A significand of 11 bits (fp16) or 8 (bf16) rounds a value by this at most: when it leaves its worker, and in each of
 * P - 1 sums. */
#define FP16_ROUNDING_RATIO 0x1p-11
#define BF16_ROUNDING_RATIO 0x1p-8
#define MOST_ACCURACY_RATIO 0.01

static const char quick[] = "optimiser: {momentum: 0.9, weight_decay: 0.004}, learning_rate: {policy: fixed, base: "
			    "0.001}";

static struct training *train(const char *sync, const char *wire, unsigned workers, unsigned iterations,
			      const char *more)
{
	struct training *training;
	char system[128], job[256];

	snprintf(system, sizeof(system), "schedule: wait-free, sync: %s, wire: %s", sync, wire);
	snprintf(job, sizeof(job), "iterations: %u, %s%s", iterations, quick, more);
	training = training_make("cifar10-quick.yaml", system, workers, 1, 32 / workers, workers, job);
	training_run(training);
	cr_assert_eq(training->status, PSD_OK, "%s: %s", system, training->err.text);
	return training;
}

static double distance(const struct training *left, const struct training *right)
{
	const float *l = training_parameters(left, 0), *r = training_parameters(right, 0);
	double squares = 0.0;

	for (uint64_t e = 0; e < left->loaded.matter.graph.parameters; e++)
		squares += ((double)l[e] - (double)r[e]) * ((double)l[e] - (double)r[e]);
	return sqrt(squares);
}

static void expect_same_on_all(const struct training *training, const char *what, unsigned workers)
{
	for (unsigned w = 1; w < workers; w++)
		cr_expect(training_is_same(training, w, training, 0), "%s: worker %u of %u differs from worker 0", what,
			  w, workers);
}

/* By the busiest node, as the program has it. */
static uint64_t most_sent_bytes(const struct training *training)
{
	uint64_t most_bytes = 0;

	for (unsigned node = 0; node < training->made.plan.layout.nodes; node++) {
		const uint64_t bytes = psd_program_traffic(&training->made.program, node).sent_bytes;

		most_bytes = bytes > most_bytes ? bytes : most_bytes;
	}
	return most_bytes;
}

static void check_all_reduce(const char *sync, unsigned workers)
{
	struct training *begun = train(sync, "fp32", workers, 1, ""), *exact = train(sync, "fp32", workers, 12, "");
	const double way = distance(begun, exact);
	static const char *const wires[] = {"fp16", "bf16"};
	const double most_ratio[] = {workers * FP16_ROUNDING_RATIO, workers * BF16_ROUNDING_RATIO};

	for (unsigned e = 0; e < 2; e++) {
		struct training *rounded = train(sync, wires[e], workers, 12, "");
		const double away = distance(rounded, exact);

		expect_same_on_all(rounded, wires[e], workers);
		cr_expect(away > 0.0 && away <= most_ratio[e] * way, "%s, %s, %u workers: %g of the way", sync,
			  wires[e], workers, away / way);
		cr_expect_eq(2 * rounded->result.sent_bytes_per_node, exact->result.sent_bytes_per_node);
		cr_expect_eq(2 * rounded->result.received_bytes_per_node, exact->result.received_bytes_per_node);
		cr_expect_eq(rounded->result.sent_bytes_per_node, most_sent_bytes(rounded));
		training_free(rounded);
	}
	training_free(begun);
	training_free(exact);
}

Test(run_encoded, a_ring_of_rounded_values_trains_nearly_as_of_exact_ones)
{
	for (unsigned workers = 2; workers <= 8; workers *= 2)
		check_all_reduce("ring", workers);
}

Test(run_encoded, gathered_tensors_travel_without_gaps)
{
	check_all_reduce("ring, fuse: 1MB", 2); /* all ten, more than a message has pieces */
	check_all_reduce("ring, fuse: 80kB", 4);
}

Test(run_encoded, every_other_all_reduce_leaves_equal_bits)
{
	for (unsigned p = 0; p < PSD_N_ALL_REDUCES; p++)
		if (psd_all_reduces[p] != &psd_ring)
			check_all_reduce(psd_all_reduces[p]->name, 4);
}

Test(run_encoded, one_worker_rounds_nothing)
{
	struct training *exact = train("ring", "fp32", 1, 5, ""), *rounded = train("ring", "bf16", 1, 5, "");

	cr_expect(training_is_same(exact, 0, rounded, 0));
	training_free(exact);
	training_free(rounded);
}

/* Every tensor has a gradient that 10^9 takes out of fp16's range, in every iteration: 65504 / 10^9 is far below. */
Test(run_encoded, what_leaves_the_range_moves_nothing)
{
	struct training *few = train("ring", "fp16", 2, 1, ", loss_scale: 1e9"),
			*more = train("ring", "fp16", 2, 4, ", loss_scale: 1e9"),
			*moved = train("ring", "fp16", 2, 4, ", loss_scale: 1024"),
			*unscaled = train("ring", "bf16", 2, 4, ", loss_scale: 1e9"),
			*plain = train("ring", "bf16", 2, 4, "");

	expect_same_on_all(more, "beyond the range", 2);
	cr_expect(training_is_same(few, 0, more, 0));
	cr_expect_gt(distance(moved, more), 0.0);
	cr_expect(training_is_same(unscaled, 0, plain, 0));
	training_free(few);
	training_free(more);
	training_free(moved);
	training_free(unscaled);
	training_free(plain);
}

static double accuracy(const char *wire)
{
	char system[64];
	struct training *training;
	double ratio;

	snprintf(system, sizeof(system), "sync: ring, wire: %s", wire);
	training = training_make("cifar10-quick.yaml", system, 2, 1, 16, 1,
				 "iterations: 100, optimiser: {momentum: 0.9}, learning_rate: {policy: fixed, base: "
				 "0.003}");
	training->options.worker.is_tested = true;
	training_run(training);
	cr_assert_eq(training->status, PSD_OK, "%s: %s", wire, training->err.text);
	cr_assert_gt(training->result.test_samples, 0);
	ratio = (double)training->result.test_correct / (double)training->result.test_samples;
	training_free(training);
	return ratio;
}

Test(run_encoded, accuracy_is_within_a_point)
{
	const double exact = accuracy("fp32");

	cr_expect_geq(accuracy("fp16"), exact - MOST_ACCURACY_RATIO);
	cr_expect_geq(accuracy("bf16"), exact - MOST_ACCURACY_RATIO);
}

Test(run_encoded, servers_and_factors_are_refused_with_their_place)
{
	static const char *const syncs[] = {"ps", "sfb", "hybrid"};

	for (unsigned s = 0; s < 3; s++) {
		char system[64], expected[96];
		struct training *training;

		snprintf(system, sizeof(system), "sync: %s, wire: bf16", syncs[s]);
		snprintf(expected, sizeof(expected), ":6:5: 'wire' of system 's' is 'bf16', which psd-run trains with");
		training = training_make("cifar10-quick.yaml", system, 2, 1, 16, 1,
					 "iterations: 1, learning_rate: {policy: fixed, base: 0.003}");
		training_run(training);
		cr_expect_eq(training->status, PSD_EINVAL);
		cr_expect(strstr(training->err.text, expected), "%s", training->err.text);
		training_free(training);
	}
}

/* What a worker may not add before its own step has left waits outside; it comes in when that has left, not when a sign
 * of life is next due, a quarter of this limit later. */
Test(run_encoded, what_waits_for_a_step_to_leave_comes_in_when_it_has, .timeout = 60)
{
	struct training *training =
		training_make("cifar10-quick.yaml", "sync: recursive-doubling, wire: fp16, priority: forward", 4, 1, 8,
			      1, "iterations: 4, learning_rate: {policy: fixed, base: 0.003}");

	training->options.worker.stall_sec = 3600;
	training_run(training);
	cr_expect_eq(training->status, PSD_OK, "%s", training->err.text);
	training_free(training);
}
