/* The table of matrix.h for gradient accumulation. An iteration of several micro-batches trains as one with the larger
 * batch, in each method and beside each other treatment, for the same bytes. */
#include "tests/real/matrix_keys.h"

#define BY_2 ", accumulate: 2"
#define BY_4 ", accumulate: 4"

/* A network without decisions, 16 samples in an iteration. The order of sums alone differs, as it does between numbers
 * of workers: see test_run_gradients.c. */
static const struct matrix_subject smooth = {
	.graph = "../../tests/data/smooth.yaml",
	.samples = 16,
	.seed = 1,
	.iterations = 20,
	.learn = ", optimiser: {momentum: 0.9, weight_decay: 0.004}, learning_rate: {policy: fixed, base: 0.05}",
};
static const struct matrix_layout alone[] = {{"sync: ring", 1, 1}, {0}};
/* Bound of the distance between sums of 16 samples in two orders, by the norm of the parameters. */
#define SAME_NORM_RATIO 1e-6

/* ---- as the larger batch ---- */

#define ROW_LARGER(name, ...)                                                                                          \
	MATRIX_ROW(run_accumulate, name, matrix_is_near, .subject = &smooth, .keys = {BY_2, BY_4},                     \
		   .other.layout = alone, .other.keys = "", .norm_ratio = SAME_NORM_RATIO, .least_way_ratio = 0.06,    \
		   __VA_ARGS__)
ROW_LARGER(servers_train_as_with_the_larger_batch,
	   MATRIX_ON({"sync: ps", 1, 1}, {"sync: ps", 2, 1}, {"sync: ps", 4, 1},
		     {"sync: ps, schedule: sequential", 2, 1},
		     {"sync: ps, pair: 512B, slice: 1KiB, barrier: layer, priority: forward", 4, 1},
		     {"sync: two-level-ps", 4, 2}, {"sync: ps, servers: 1", 2, 1}))
/* Factors of micro-batches follow each other, and one product makes the gradient of all. A lone worker has none. */
ROW_LARGER(factors_train_as_with_the_larger_batch,
	   MATRIX_ON({"sync: sfb", 1, 1}, {"sync: sfb", 2, 1}, {"sync: sfb, barrier: layer", 4, 1},
		     {"sync: hybrid, rule: seconds", 4, 1}, {"sync: adam", 1, 1}, {"sync: adam", 4, 1},
		     {"sync: adam, servers: 1", 1, 1}, {"sync: sacp, servers: 1", 2, 1}))
ROW_LARGER(all_reduces_train_as_with_the_larger_batch,
	   MATRIX_ON({"sync: ring", 1, 1}, {"sync: ring", 2, 1}, {"sync: ring, fuse: 1MB", 4, 1},
		     {"sync: torus, fuse: 1KiB, schedule: sequential", 4, 2}, {"sync: auto", 4, 1},
		     {"sync: ring, pipeline: 4KiB, barrier: layer, priority: forward", 4, 1}))

/* Each micro-batch is exchanged, and a worker adds its part. */
ROW_LARGER(sums_of_parts_train_as_with_the_larger_batch,
	   MATRIX_ON({"sync: zero-2", 1, 1}, {"sync: zero-2", 2, 1}, {"sync: zero-2, barrier: layer", 4, 2},
		     {"sync: zero-3", 1, 1}, {"sync: zero-3, prefetch: 0", 2, 1}, {"sync: zero-3", 4, 1},
		     {"sync: fsdp, prefetch: 2, shard_over: node, priority: forward", 4, 2}))

/* ---- sums in the same order ---- */

/* A worker adds its micro-batches in order, as a server adds the gradients of workers in order of rank. */
MATRIX_ROW(run_accumulate, a_lone_worker_has_the_bits_of_two_with_a_server, matrix_has_same_bits,
	   .subject = &matrix_quick, .first_seed = 1, MATRIX_ON({"sync: ps", 1, 1}), .keys = {BY_2},
	   .other.layout = (const struct matrix_layout[]){{"sync: ps", 2, 1}}, .other.keys = "")
MATRIX_ROW(run_accumulate, a_lone_worker_has_the_bits_of_four_with_a_server, matrix_has_same_bits,
	   .subject = &matrix_quick, .first_seed = 1, MATRIX_ON({"sync: ring, barrier: layer", 1, 1}), .keys = {BY_4},
	   .other.layout = (const struct matrix_layout[]){{"sync: ps", 4, 1}}, .other.keys = "")
/* Both sum pairs, and then pairs of them. */
MATRIX_ROW(run_accumulate, two_workers_have_the_bits_of_four_that_sum_pairs, matrix_has_same_bits,
	   .subject = &matrix_quick, .first_seed = 1, MATRIX_ON({"sync: ps", 2, 1}, {"sync: ring, fuse: 80kB", 2, 1}),
	   .keys = {BY_2}, .other.layout = (const struct matrix_layout[]){{"sync: recursive-doubling", 4, 1}},
	   .other.keys = "")
MATRIX_ROW(run_accumulate, a_run_repeats_exactly, matrix_repeats, .subject = &matrix_quick,
	   MATRIX_ON({"sync: hybrid", 2, 1}, {"sync: ring, fuse: 80kB", 4, 1}), .keys = {BY_2}, .iterations = 5)

/* ---- beside other treatments ---- */

/* Each treatment has the same gradients as with the larger batch. Those that choose values may choose others where two
 * are nearly equal: they end within the distance that this takes. */
#define ROW_BESIDE(name, system, treatment, ...)                                                                       \
	MATRIX_ROW(run_accumulate, name, matrix_is_near, .subject = &smooth, .other.keys = treatment,                  \
		   MATRIX_ON({system, 2, 1}, {system, 4, 1}), .keys = {treatment BY_2, treatment BY_4}, __VA_ARGS__)
ROW_BESIDE(local_steps_train_as_with_the_larger_batch, "sync: ring", STEPS, .norm_ratio = SAME_NORM_RATIO)
ROW_BESIDE(late_updates_train_as_with_the_larger_batch, "sync: ps", ", staleness: 2", .norm_ratio = SAME_NORM_RATIO)
ROW_BESIDE(late_factors_train_as_with_the_larger_batch, "sync: sfb", ", staleness: 1, barrier: layer",
	   .norm_ratio = SAME_NORM_RATIO)
ROW_BESIDE(low_rank_trains_as_with_the_larger_batch, "sync: ring, fuse: 1MB", ", low_rank: {rank: 2}",
	   .way_ratio = SAME_WAY_RATIO)
ROW_BESIDE(sparse_trains_as_with_the_larger_batch, "sync: ring, fuse: 1KiB",
	   ", sparse: {sparsity: 0.5, chunk: 20, feedback: full}", .way_ratio = SAME_WAY_RATIO)
ROW_BESIDE(compression_trains_as_with_the_larger_batch, "sync: ps", ", compress: {by: one-bit}",
	   .way_ratio = TURNED_RATIO)
ROW_BESIDE(values_of_two_bytes_train_as_with_the_larger_batch, "sync: ps", ", wire: bf16", .way_ratio = BF16_WAY_RATIO)
#define ROW_UPDATES(name, system, learn)                                                                               \
	MATRIX_ROW(run_accumulate, name, matrix_is_near, .subject = &smooth, .other.keys = "", .keys = {BY_2},         \
		   MATRIX_ON({system, 2, 1}, {system, 4, 1}), .learns = {learn}, .norm_ratio = SAME_NORM_RATIO)
ROW_UPDATES(clipped_gradients_are_those_of_all_samples, "sync: ps", FIXED("momentum: 0.9, clip: 0.1", 0.05))
ROW_UPDATES(lars_has_the_norms_of_all_samples, "sync: ring, fuse: 1KiB", FIXED(DECAYING_LARS, 0.5))
ROW_UPDATES(clipped_parts_are_those_of_all_samples, "sync: zero-3", FIXED("momentum: 0.9, clip: 0.1", 0.05))
ROW_UPDATES(adamw_has_the_squares_of_all_samples, "sync: ps", FIXED("kind: adamw, epsilon: 0.01", 0.01))

/* ---- bytes, ends, beginnings ---- */

/* One exchange for all micro-batches. Factors are as many as samples: those of an iteration. */
MATRIX_ROW(run_accumulate, an_iteration_sends_the_bytes_of_one_batch, matrix_sends_a_part, .subject = &smooth,
	   MATRIX_ON({"sync: ps", 2, 1}, {"sync: ring, fuse: 1KiB", 4, 1}, {"sync: sfb", 2, 1}), .keys = {BY_2, BY_4},
	   .other.keys = "", .parts = 1, .iterations = 5)
MATRIX_ROW(run_accumulate, a_prediction_counts_the_same_bytes, matrix_sends_as_predicted,
	   MATRIX_ON({"sync: ps" BY_2, 4, 2}, {"sync: hybrid, accumulate: 3", 4, 2},
		     {"sync: ring, fuse: 1KiB" STEPS BY_2, 4, 2}, {"sync: zero-2" BY_2, 4, 2},
		     {"sync: zero-3, prefetch: 0, accumulate: 3", 4, 2}),
	   .cluster = "nodes: 2, workers_per_node: 2}")
/* With conv, batch norm and dropout. */
MATRIX_ROW(run_accumulate, a_resumed_run_ends_as_an_uncut_one, matrix_resumes, .learns = {GOING_ON_SGD},
	   MATRIX_ON({"sync: ps" BY_2, 2, 1}, {"sync: sfb, barrier: layer, accumulate: 3", 3, 1},
		     {"sync: ring, staleness: 1" BY_2, 2, 1}, {"sync: zero-3, accumulate: 3", 3, 1}))
MATRIX_ROW(run_accumulate, a_run_starts_from_a_file, matrix_starts, MATRIX_ON({"sync: ring" BY_2, 3, 1}))
