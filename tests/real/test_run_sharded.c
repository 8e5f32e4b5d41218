/* The table of matrix.h for sharded data-parallel training. */
#include "tests/real/matrix_keys.h"

static const struct matrix_layout sharded[] = {
	{"sync: zero-2", 1, 1},
	{"sync: zero-1", 2, 1},
	{"sync: zero-1, fuse: 1MB, barrier: layer", 3, 1},
	{"sync: zero-1, schedule: sequential", 4, 1},
	{"sync: zero-1, unit: layer, priority: forward", 4, 2},
	{"sync: zero-1, fuse: 64KiB", 8, 2},
	{"sync: zero-2", 2, 1},
	{"sync: zero-2, fuse: 4KiB, barrier: layer", 3, 1},
	{"sync: zero-2, fuse: 8KiB", 4, 1},
	{"sync: zero-2, priority: forward, barrier: layer", 4, 2},
	{"sync: zero-2, fuse: 1MB", 8, 2},
	{"sync: zero-1, shard_over: node", 4, 2},
	{"sync: zero-2, shard_over: node, fuse: 4KiB, barrier: layer", 8, 4},
	{"sync: zero-2, shard_over: node", 2, 2},
	{0},
};
enum { IN_NODES = 11 }; /* first layout with parts of nodes */
static const struct matrix_layout alone[] = {{"sync: ring", 1, 1}, {0}};

#define ROW_SHARDED(name, claim, ...) MATRIX_ROW(run_sharded, name, claim, .layouts = sharded, __VA_ARGS__)
#define AS_ONE_WORKER		      .other.layout = alone, .way_ratio = SAME_WAY_RATIO

ROW_SHARDED(workers_train_as_one, matrix_is_near, .subject = &matrix_maskless_shared, .learns = {FALLING(SGD, 0.02)},
	    AS_ONE_WORKER)
ROW_SHARDED(nesterov_trains_as_one, matrix_is_near, .subject = &matrix_maskless_shared,
	    .learns = {FALLING(NESTEROV, 0.02)}, AS_ONE_WORKER)
ROW_SHARDED(adaptive_updates_train_as_one, matrix_is_near, .subject = &matrix_maskless_shared,
	    .learns = {FIXED(ADAMW, 0.01)}, AS_ONE_WORKER)
ROW_SHARDED(updates_by_norms_train_as_one, matrix_is_near, .end = IN_NODES, .subject = &matrix_maskless_shared,
	    .learns = {FALLING(DECAYING_LARS, 0.02)}, AS_ONE_WORKER)
ROW_SHARDED(clipped_gradients_train_as_one, matrix_is_near, .end = IN_NODES, .subject = &matrix_maskless_shared,
	    .learns = {FALLING(SGD ", clip: 0.3", 0.02), FIXED(ADAMW ", clip: 0.3", 0.01)}, AS_ONE_WORKER)
ROW_SHARDED(it_is_the_algorithm, matrix_follows_the_algorithm, .subject = &matrix_softmax, .learns = {FIXED(SGD, 0.05)},
	    .way_ratio = SAME_WAY_RATIO)
ROW_SHARDED(a_run_repeats_exactly, matrix_repeats, .subject = &matrix_maskless_shared, .learns = {FALLING(SGD, 0.02)})
ROW_SHARDED(a_run_resumes_with_its_parts, matrix_resumes, .is_in_turn = true, .learns = {GOING_ON_SGD, GOING_ON_ADAMW})
ROW_SHARDED(a_run_starts_from_a_file, matrix_starts, .stride = 4, .end = IN_NODES)
MATRIX_ROW(run_sharded, parameters_of_parts_are_replayed_alone, matrix_is_refused, .subject = &matrix_maskless,
	   MATRIX_ON({"sync: zero-3", 2, 1}, {"sync: fsdp", 1, 1}), .learns = {FALLING(SGD, 0.02)},
	   .words = "which psd-run replays but does not train by")
MATRIX_ROW(run_sharded, a_prediction_counts_the_same_bytes, matrix_sends_as_predicted,
	   MATRIX_ON({"sync: zero-1", 4, 2}, {"sync: zero-1, fuse: 64KiB", 4, 2}, {"sync: zero-2", 4, 2}),
	   .subject = &matrix_maskless, .cluster = "nodes: 2, workers_per_node: 2}")
