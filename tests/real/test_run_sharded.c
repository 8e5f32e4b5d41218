/* The table of matrix.h for sharded data-parallel training. */
#define _GNU_SOURCE 1
#include <math.h>
#include <sys/stat.h>

#include "real/keep/checkpoint.h"
#include "tests/real/matrix_keys.h"
#include "tests/scratch_folder.h"

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
	{"sync: zero-3", 1, 1},
	{"sync: zero-3", 2, 1},
	{"sync: fsdp, prefetch: 0, barrier: layer", 3, 1},
	{"sync: zero-3, fuse: 4KiB", 4, 2},
	{"sync: zero-3, prefetch: 2, priority: forward", 8, 4},
	{"sync: zero-1, shard_over: node", 4, 2},
	{"sync: zero-2, shard_over: node, fuse: 4KiB, barrier: layer", 8, 4},
	{"sync: zero-2, shard_over: node", 2, 2},
	{"sync: zero-3, shard_over: node, prefetch: 0", 4, 2},
	{"sync: fsdp, shard_over: node, fuse: 4KiB", 8, 4},
	{0},
};
enum { IN_NODES = 16 }; /* first layout with parts of nodes */
static const struct matrix_layout alone[] = {{"sync: ring", 1, 1}, {0}};

#define ROW_SHARDED(name, claim, ...) MATRIX_ROW(run_sharded, name, claim, .layouts = sharded, __VA_ARGS__)
#define AS_ONE_WORKER		      .other.layout = alone, .way_ratio = SAME_WAY_RATIO

ROW_SHARDED(workers_train_as_one, matrix_is_near, .subject = &matrix_maskless_shared, .learns = {FALLING(SGD, 0.02)},
	    AS_ONE_WORKER)
ROW_SHARDED(nesterov_trains_as_one, matrix_is_near, .subject = &matrix_maskless_shared,
	    .learns = {FALLING(NESTEROV, 0.02)}, AS_ONE_WORKER)
ROW_SHARDED(adaptive_updates_train_as_one, matrix_is_near, .subject = &matrix_maskless_shared,
	    .learns = {FIXED(ADAMW, 0.01)}, AS_ONE_WORKER)
ROW_SHARDED(updates_by_norms_train_as_one, matrix_is_near, .subject = &matrix_maskless_shared,
	    .learns = {FALLING(DECAYING_LARS, 0.02)}, AS_ONE_WORKER)
ROW_SHARDED(clipped_gradients_train_as_one, matrix_is_near, .subject = &matrix_maskless_shared,
	    .learns = {FALLING(SGD ", clip: 0.3", 0.02), FIXED(ADAMW ", clip: 0.3", 0.01)}, AS_ONE_WORKER)
ROW_SHARDED(clipped_gradients_by_norms_train_as_one, matrix_is_near, .subject = &matrix_maskless_shared,
	    .learns = {FALLING(DECAYING_LARS ", clip: 0.03", 0.02)}, AS_ONE_WORKER)
#define ROW_OF_TWENTY(name, ...)                                                                                       \
	ROW_SHARDED(name, matrix_is_near, .subject = &matrix_maskless_shared, .iterations = 20, .other.layout = alone, \
		    .norm_ratio = 1e-6, .least_way_ratio = 0.01, __VA_ARGS__)
ROW_OF_TWENTY(twenty_iterations_end_as_one, .learns = {FALLING(SGD ", clip: 0.3", 0.02), FIXED(ADAMW, 0.01),
						       FALLING(DECAYING_LARS ", clip: 0.03", 0.02)})
ROW_OF_TWENTY(twenty_iterations_of_others_end_as_one,
	      .learns = {FALLING("momentum: 0", 0.02), FALLING(SGD, 0.02), FALLING(DECAYING_LARS, 0.02),
			 FIXED(ADAMW ", clip: 0.3", 0.01)})
ROW_SHARDED(it_is_the_algorithm, matrix_follows_the_algorithm, .subject = &matrix_softmax, .learns = {FIXED(SGD, 0.05)},
	    .way_ratio = SAME_WAY_RATIO)
ROW_SHARDED(a_run_repeats_exactly, matrix_repeats, .subject = &matrix_maskless_shared, .learns = {FALLING(SGD, 0.02)})
ROW_SHARDED(a_run_resumes_with_its_parts, matrix_resumes, .is_in_turn = true, .learns = {GOING_ON_SGD, GOING_ON_ADAMW})
ROW_SHARDED(a_clipped_run_resumes_with_its_parts, matrix_resumes, .is_in_turn = true,
	    .learns = {"data: {training_samples: 40, test_samples: 32}, optimiser: {momentum: 0.9, clip: 0.2}",
		       "data: {training_samples: 40, test_samples: 32}, optimiser: {kind: adamw, clip: 0.2}"})
ROW_SHARDED(a_run_starts_from_a_file, matrix_starts, .stride = 4, .end = IN_NODES)
enum { TESTED = 48 }; /* test samples of the subjects */

/* Batches of a test read the parameters that a training batch would. */
static void is_tested_as_zero_1(const struct matrix_run *run)
{
	const struct matrix_layout whole = {"sync: zero-1, unit: layer", run->of.workers, run->of.workers_per_node};
	const struct training *one = matrix_run_it(run);
	struct training *other = matrix_train(run->row->subject, &whole, 0, run->learn);

	cr_expect(training_is_same(one, 0, other, 0), "%s", run->what);
	cr_expect_eq(one->result.test_labels, TESTED * one->loaded.costed.graph.labels, "%s: %lu labels", run->what,
		     one->result.test_labels);
	cr_expect_eq(one->result.test_correct, other->result.test_correct, "%s: %lu right, must be %lu", run->what,
		     one->result.test_correct, other->result.test_correct);
	training_free(other);
}

static const struct matrix_subject tested = {
	.graph = "../../tests/data/maskless.yaml",
	.samples = 24,
	.seed = 5,
	.iterations = 6,
	.train = ", data: {kind: synthetic, training_samples: 96, test_samples: 48}, test_every: 1",
	.is_tested = true,
};
MATRIX_ROW(run_sharded, gathered_parameters_are_tested, is_tested_as_zero_1, .subject = &tested,
	   MATRIX_ON({"sync: zero-3, prefetch: 0", 3, 1}, {"sync: fsdp", 4, 2}), .learns = {FIXED(SGD, 0.05)})
/* The first and the last layer have the same table, which takes no turns in memory. */
static const struct matrix_subject sharing = {
	.graph = "../../tests/data/transformer.yaml",
	.samples = 24,
	.seed = 5,
	.iterations = 6,
	.train = ", data: {kind: synthetic, training_samples: 96, test_samples: 48}, test_every: 1",
	.is_tested = true,
};
MATRIX_ROW(run_sharded, parameters_of_two_layers_are_gathered_once, is_tested_as_zero_1, .subject = &sharing,
	   MATRIX_ON({"sync: zero-3, prefetch: 0", 2, 1}, {"sync: fsdp", 3, 1}), .learns = {FIXED(SGD, 0.02)})

/* Bytes of a worker's file: parameters and momentum, of which the system divides one or both among 4 workers. */
static void expect_file(const char *system, double divided, double whole)
{
	const struct matrix_layout of = {system, 4, 1};
	const struct scratch_folder folder = scratch_folder_make();
	const struct psd_checkpoints checkpoints = {.folder = folder.path, .every_iterations = 1};
	struct training *training = matrix_make(&matrix_quick, &of, 1, "");
	const double tolerance_ratio = 0.02;
	struct stat file;

	training->options.worker.checkpoints = &checkpoints;
	training = training_finish(training, system);
	const double bytes = (divided / 4 + whole) * sizeof(float) * (double)training->loaded.costed.graph.parameters;

	for (unsigned h = 0; h < 4; h++) {
		const struct psd_checkpoint_host host = {h, 4};

		cr_assert_eq(stat(psd_checkpoint_path(&checkpoints, host, 1).text, &file), 0);
		cr_expect(fabs((double)file.st_size - bytes) <= tolerance_ratio * bytes, "%s: %ld bytes, must be %.0f",
			  system, (long)file.st_size, bytes);
	}
	training_free(training);
	scratch_folder_remove(&folder);
}

Test(run_sharded, a_checkpoint_has_a_workers_part, .timeout = 120)
{
	expect_file("sync: zero-1", 1, 1);
	expect_file("sync: zero-3", 2, 0);
}

MATRIX_ROW(run_sharded, a_prediction_counts_the_same_bytes, matrix_sends_as_predicted,
	   MATRIX_ON({"sync: zero-1", 4, 2}, {"sync: zero-1, fuse: 64KiB", 4, 2}, {"sync: zero-2", 4, 2},
		     {"sync: zero-3", 4, 2}, {"sync: zero-3, prefetch: 0, shard_over: node", 4, 2}),
	   .subject = &matrix_maskless, .cluster = "nodes: 2, workers_per_node: 2}")
