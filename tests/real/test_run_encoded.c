/* Whole runs on loopback whose values travel as 2 bytes: all workers end with the same bits, near what they would
 * have learnt with 4, for half of the bytes; and what leaves the range of an encoding moves nothing. */
#define _XOPEN_SOURCE 700
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/real/training.h"
#include "tests/scratch_folder.h"

/* A significand of 11 bits (fp16) or 8 (bf16) rounds a value by this at most: when it leaves its worker, and in each of
 * P - 1 sums. */
#define FP16_ROUNDING_RATIO 0x1p-11
#define BF16_ROUNDING_RATIO 0x1p-8
#define MOST_ACCURACY_RATIO 0.01

static const char quick[] = "optimiser: {momentum: 0.9, weight_decay: 0.004}, learning_rate: {policy: fixed, base: "
			    "0.001}";

static struct training *train_on_nodes(const char *sync, const char *wire, unsigned workers, unsigned workers_per_node,
				       unsigned iterations, const char *more)
{
	struct training *training;
	char system[128], job[256];

	snprintf(system, sizeof(system), "schedule: wait-free, sync: %s, wire: %s", sync, wire);
	snprintf(job, sizeof(job), "iterations: %u, %s%s", iterations, quick, more);
	training = training_make("cifar10-quick.yaml", system, workers, workers_per_node, 32 / workers, workers, job);
	return training_finish(training, system);
}

static struct training *train(const char *sync, const char *wire, unsigned workers, unsigned iterations,
			      const char *more)
{
	return train_on_nodes(sync, wire, workers, 1, iterations, more);
}

static void expect_half_of_the_bytes(const struct training *rounded, const struct training *exact, const char *what)
{
	cr_expect_eq(2 * rounded->result.sent_bytes_per_node, exact->result.sent_bytes_per_node, "%s", what);
	cr_expect_eq(2 * rounded->result.received_bytes_per_node, exact->result.received_bytes_per_node, "%s", what);
	cr_expect_eq(rounded->result.sent_bytes_per_node, most_sent_bytes(&rounded->made), "%s", what);
}

static void check_all_reduce(const char *sync, unsigned workers)
{
	struct training *begun = train(sync, "fp32", workers, 1, ""), *exact = train(sync, "fp32", workers, 12, "");
	const double way = training_distance(begun, exact);
	static const char *const wires[] = {"fp16", "bf16"};
	const double most_ratio[] = {workers * FP16_ROUNDING_RATIO, workers * BF16_ROUNDING_RATIO};

	for (unsigned e = 0; e < 2; e++) {
		struct training *rounded = train(sync, wires[e], workers, 12, "");
		const double away = training_distance(rounded, exact);

		training_expect_same_on_all(rounded, wires[e]);
		cr_expect(away > 0.0 && away <= most_ratio[e] * way, "%s, %s, %u workers: %g of the way", sync,
			  wires[e], workers, away / way);
		expect_half_of_the_bytes(rounded, exact, wires[e]);
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

/* Every exchange has a gradient that 10^9 takes out of fp16's range, in every iteration: 65504 / 10^9 is far below. */
static void check_range(const char *sync, unsigned workers, unsigned workers_per_node)
{
	const unsigned P = workers, g = workers_per_node;
	struct training *few = train_on_nodes(sync, "fp16", P, g, 1, ", loss_scale: 1e9"),
			*more = train_on_nodes(sync, "fp16", P, g, 4, ", loss_scale: 1e9"),
			*moved = train_on_nodes(sync, "fp16", P, g, 4, ", loss_scale: 1024"),
			*unscaled = train_on_nodes(sync, "bf16", P, g, 4, ", loss_scale: 1e9"),
			*plain = train_on_nodes(sync, "bf16", P, g, 4, "");

	training_expect_same_on_all(more, sync);
	cr_expect(training_is_same(few, 0, more, 0), "%s", sync);
	cr_expect_gt(more->result.n_updates, 0, "%s", sync);
	cr_expect_eq(more->result.n_left_out, more->result.n_updates, "%s", sync);
	cr_expect_eq(moved->result.n_updates, more->result.n_updates, "%s", sync);
	cr_expect_eq(moved->result.n_left_out, 0, "%s", sync);
	cr_expect_eq(unscaled->result.n_updates, 0, "%s", sync);
	cr_expect_gt(training_distance(moved, more), 0.0, "%s", sync);
	cr_expect(training_is_same(unscaled, 0, plain, 0), "%s", sync);
	training_free(few);
	training_free(more);
	training_free(moved);
	training_free(unscaled);
	training_free(plain);
}

/* Each of the servers has a part of what left it. */
Test(run_encoded, a_gradient_beyond_the_range_moves_nothing)
{
	static const char *const syncs[] = {
		"ring", "ps",	"ps, servers: 2", "ps, pair: 512B, slice: 8KiB",
		"sfb",	"adam", "hybrid",	  "adam, pair: 512B, slice: 8KiB, servers: 1"};

	for (unsigned s = 0; s < sizeof(syncs) / sizeof(syncs[0]); s++)
		check_range(syncs[s], 2, 1);
}

Test(run_encoded, a_gradient_beyond_the_range_in_a_node_moves_nothing)
{
	check_range("two-level-ps", 4, 2);
	check_range("two-level-ps, servers: 2, pair: 512B, slice: 8KiB", 4, 2);
}

/* In each exchange one scale takes one part out of the range, and no other part. */
static void check_finite_at_every_scale(const char *sync, unsigned workers, unsigned workers_per_node)
{
	for (unsigned doublings = 14; doublings < 30; doublings++) {
		char more[64];
		struct training *training;

		snprintf(more, sizeof(more), ", loss_scale: %u", 1U << doublings);
		training = train_on_nodes(sync, "fp16", workers, workers_per_node, 2, more);
		training_expect_same_on_all(training, more);
		for (uint64_t e = 0; e < training->loaded.costed.graph.parameters; e++)
			cr_assert(isfinite(training_parameters(training, 0)[e]), "%s, %s: parameter %lu", sync, more,
				  e);
		training_free(training);
	}
}

/* Where no worker's own gradient leaves it: in one shard's part. All shards leave the update out. */
Test(run_encoded, a_sum_of_a_node_beyond_the_range_moves_nothing)
{
	check_finite_at_every_scale("two-level-ps", 4, 2);
}

/* Parts of a tensor are summed one by one, and applied together. */
Test(run_encoded, a_part_that_leaves_the_range_takes_its_tensor_with_it)
{
	check_finite_at_every_scale("ring, pipeline: 4KiB", 2, 1);
}

static double accuracy(const char *sync, const char *wire)
{
	char system[64];

	snprintf(system, sizeof(system), "sync: %s, wire: %s", sync, wire);
	return training_accuracy(system, 100);
}

Test(run_encoded, accuracy_is_within_a_point)
{
	static const char *const syncs[] = {"ring", "ps", "sfb", "adam", "hybrid"};

	for (unsigned s = 0; s < sizeof(syncs) / sizeof(syncs[0]); s++) {
		const double exact = accuracy(syncs[s], "fp32"), fp16 = accuracy(syncs[s], "fp16"),
			     bf16 = accuracy(syncs[s], "bf16");

		cr_log_info("%s: accuracy %.4f, fp16 %.4f, bf16 %.4f\n", syncs[s], exact, fp16, bf16);
		cr_expect_geq(fp16, exact - MOST_ACCURACY_RATIO, "%s", syncs[s]);
		cr_expect_geq(bf16, exact - MOST_ACCURACY_RATIO, "%s", syncs[s]);
	}
}

/* ---- servers and factors ---- */

/* A worker has the nearest encoded value of the server's parameter, so one rounding bounds their distance. The server's
 * parameter changes by gradients, each rounded once. */
static void check_method_on_nodes(const char *sync, unsigned workers, unsigned workers_per_node, const char *more)
{
	enum { ITERATIONS = 30 }; /* so far that no way at all is not near enough */
	struct training *begun = train_on_nodes(sync, "fp32", workers, workers_per_node, 1, more),
			*exact = train_on_nodes(sync, "fp32", workers, workers_per_node, ITERATIONS, more);
	const unsigned sums = workers_per_node > 1 ? exact->made.plan.layout.nodes : 0; /* leaders round theirs, too */
	static const char *const wires[] = {"fp16", "bf16"};
	static const double rounding_ratio[] = {FP16_ROUNDING_RATIO, BF16_ROUNDING_RATIO};

	for (unsigned e = 0; e < 2; e++) {
		struct training *rounded = train_on_nodes(sync, wires[e], workers, workers_per_node, ITERATIONS, more);
		const double away = training_distance(rounded, exact), way = training_distance(begun, exact);
		const double most = rounding_ratio[e] * (training_distance(exact, NULL) + (workers + sums) * way);
		const double loss = rounded->result.last_loss, exact_loss = exact->result.last_loss;
		char what[128];

		snprintf(what, sizeof(what), "%s, %s, %u workers%s", sync, wires[e], workers, more);
		training_expect_same_on_all(rounded, what);
		cr_expect_lt(most, 0.5 * way, "%s: %g of the way may be missing", what, most / way);
		cr_expect(away > 0.0 && away <= most, "%s: %g away, %g allowed", what, away, most);
		cr_expect_float_eq(loss / exact_loss, 1.0, rounding_ratio[e], "%s: loss %g instead of %g", what, loss,
				   exact_loss);
		expect_half_of_the_bytes(rounded, exact, what);
		training_free(rounded);
	}
	training_free(begun);
	training_free(exact);
}

static void check_method(const char *sync, unsigned workers, const char *more)
{
	check_method_on_nodes(sync, workers, 1, more);
}

Test(run_encoded, leaders_train_nearly_as_of_exact_values)
{
	check_method_on_nodes("two-level-ps", 4, 2, "");
	check_method_on_nodes("two-level-ps, servers: 1, pair: 512B, slice: 8KiB", 3, 3, "");
	check_method_on_nodes("two-level-ps, slice: 8KiB, pair: 512B", 4, 2, ", deterministic: false");
}

Test(run_encoded, every_other_method_trains_nearly_as_of_exact_values)
{
	static const char *const syncs[] = {"ps", "sfb", "adam", "hybrid"};

	for (unsigned s = 0; s < sizeof(syncs) / sizeof(syncs[0]); s++)
		for (unsigned workers = 2; workers <= 4; workers++)
			check_method(syncs[s], workers, "");
}

Test(run_encoded, every_other_place_of_servers_trains_nearly_as_of_exact_values)
{
	check_method("ps, servers: 1", 1, ""); /* a single worker's values travel as well */
	check_method("ps, servers: 2", 3, "");
	check_method("ps, servers: 3", 2, ", deterministic: false");
	check_method("adam, servers: 1", 1, "");
	check_method("adam, servers: 2, pair: 512B, slice: 8KiB", 2, "");
	check_method("ps, pair: 512B, slice: 8KiB, barrier: layer, priority: forward", 4, "");
	check_method("ps, slice: 8KiB, pair: 512B", 3, ", deterministic: false");
}

/* A shard for each node, which not all of its workers have. */
Test(run_encoded, workers_of_a_node_have_the_same_bits)
{
	static const char *const syncs[] = {"ps", "adam", "hybrid", "two-level-ps"};

	for (unsigned s = 0; s < sizeof(syncs) / sizeof(syncs[0]); s++) {
		char system[64], job[160];
		struct training *rounded;

		snprintf(system, sizeof(system), "sync: %s, wire: %s", syncs[s], s % 2 ? "fp16" : "bf16");
		snprintf(job, sizeof(job), "iterations: 4, %s", quick);
		rounded = training_make("cifar10-quick.yaml", system, 4, 2, 8, 1, job);
		training_finish(rounded, system);
		training_expect_same_on_all(rounded, system);
		cr_expect_eq(rounded->result.sent_bytes_per_node, most_sent_bytes(&rounded->made), "%s", system);
		training_free(rounded);
	}
}

Test(run_encoded, servers_add_what_arrives_and_factors_are_rebuilt)
{
	struct training *added = train("ps, slice: 64KiB, pair: 1KiB", "fp16", 3, 4, ", deterministic: false"),
			*broadcast = train("hybrid, barrier: layer", "bf16", 3, 4, ""),
			*rooted = train("adam, slice: 8KiB, pair: 1KiB, priority: forward", "fp16", 3, 4, "");

	training_expect_same_on_all(added, "ps");
	training_expect_same_on_all(broadcast, "hybrid");
	training_expect_same_on_all(rooted, "adam");
	training_free(added);
	training_free(broadcast);
	training_free(rooted);
}

/* ---- the ratio ---- */

/* Two inner products, the first of which is loud: the second's gradient is larger than 65504 / 32768. */
static const char loud[] = "input: 'data' input_shape { dim: [1, 30] }\n"
			   "layer { name: 'a' type: 'InnerProduct' bottom: 'data' top: 'a' inner_product_param { "
			   "num_output: 40 weight_filler { type: 'gaussian' std: 4 } } }\n"
			   "layer { name: 'b' type: 'InnerProduct' bottom: 'a' top: 'b' inner_product_param { "
			   "num_output: 50 weight_filler { type: 'gaussian' std: 0.1 } } }\n"
			   "layer { name: 'loss' type: 'Softmax' bottom: 'b' }\n";

static struct training *train_loud(const char *model, const char *system, double base, const char *more,
				   unsigned iterations)
{
	char job[192];
	struct training *training;

	snprintf(job, sizeof(job), "iterations: %u, learning_rate: {base: %g}%s", iterations, base, more);
	training = training_make(model, system, 2, 1, 8, 1, job);
	training_finish(training, system);
	training_expect_same_on_all(training, system);
	return training;
}

/* The second matrix's. */
static double loud_way(const struct training *from, const struct training *to)
{
	enum { FIRST = 30 * 40 + 40, END = FIRST + 40 * 50 };
	const float *before = training_parameters(from, 0), *after = training_parameters(to, 0);
	double squares = 0.0;

	for (unsigned e = FIRST; e < END; e++)
		squares += pow((double)after[e] - (double)before[e], 2);
	return sqrt(squares);
}

/* Few updates are left out before the ratio is small enough, each halving it for all workers and servers alike: were it
 * another at a server, its updates would be larger or smaller by a power of two. */
static void check_ratio(const char *model, const char *sync, const char *more)
{
	enum { ITERATIONS = 40, MOST_LEFT_OUT = 10 };
	char system[96];
	struct training *begun, *once, *fixed, *dynamic;
	double way_ratio;

	snprintf(system, sizeof(system), "%s, wire: fp16", sync);
	begun = train_loud(model, sync, 1e-9, "", 1);
	once = train_loud(model, system, 1e-4, more, 1);
	fixed = train_loud(model, system, 1e-4, ", loss_scale: 16", ITERATIONS);
	dynamic = train_loud(model, system, 1e-4, more, ITERATIONS);
	way_ratio = loud_way(begun, dynamic) / loud_way(begun, fixed);
	cr_expect_lt(loud_way(begun, once), 1e-6, "%s: the first update was not left out", sync);
	cr_expect(way_ratio < 1.0 && way_ratio > 1.0 - (double)MOST_LEFT_OUT / ITERATIONS, "%s: %g of the way", sync,
		  way_ratio);
	training_free(begun);
	training_free(once);
	training_free(fixed);
	training_free(dynamic);
}

Test(run_encoded, a_dynamic_ratio_falls_until_updates_go_through)
{
	const struct scratch_folder folder = scratch_folder_make();
	const struct scratch_path path = scratch_folder_path(&folder, "loud.prototxt");

	scratch_folder_write(&folder, "loud.prototxt", loud, strlen(loud));
	check_ratio(path.text, "sync: ring", "");
	check_ratio(path.text, "sync: ps", "");
	check_ratio(path.text, "sync: ps, servers: 2, pair: 512B, slice: 4KiB", ", deterministic: false");
	scratch_folder_remove(&folder);
}

/* Values that a worker may add only after its own step has left wait in the socket. They come in when that has left,
 * not at the next sign of life, a quarter of this limit later. */
Test(run_encoded, values_that_wait_for_a_step_are_added_once_it_has_left, .timeout = 60)
{
	struct training *training =
		training_make("cifar10-quick.yaml", "sync: recursive-doubling, wire: fp16, priority: forward", 4, 1, 8,
			      1, "iterations: 4, learning_rate: {policy: fixed, base: 0.003}");

	training->options.worker.stall_sec = 3600;
	training_run(training);
	cr_expect_eq(training->status, PSD_OK, "%s", training->err.text);
	training_free(training);
}
