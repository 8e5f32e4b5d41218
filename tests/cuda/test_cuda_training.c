/* Whole runs whose workers train on the CUDA device, with every method, against runs on the processor. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "tests/cuda/cuda_net.h"
#include "tests/cuda/cuda_run.h"
#include "tests/cuda/stand_in.h"
#include "tests/test_with.h"

/* Relative to each tensor's norm. fp32 sums in another order, of 16 samples at most: each is rounded by 16 2^-24 = 1e-6
 * of its parts' norms. Values that travel in two bytes may then be rounded to the other neighbour, a step of 2^-10 of
 * an element in fp16 and of 2^-7 in bf16. With a rate of 0.05, 10 times over by momentum, and elements of at most 0.1
 * of their tensor's norm, that is 0.05 of the step. */
#define TOLERANCE_RATIO 1e-5
#define FP16_RATIO	(0.05 / 1024)
#define BF16_RATIO	(0.05 / 128)
#define LEAST_WAY_RATIO 0.05 /* so that equal starts alone do not pass */

enum { ITERATIONS = 10, MOST_WORKERS = 4 };

static double distance_ratio(const struct training *left, const struct training *right, unsigned worker)
{
	const struct psd_graph *graph = &right->loaded.costed.graph;
	const float *l = training_parameters(left, worker), *r = training_parameters(right, worker);
	double worst_ratio = 0.0;

	for (unsigned t = 0; t < graph->n_tensors; t++) {
		worst_ratio = fmax(worst_ratio, cuda_net_distance(l, r, graph->tensors[t].elements));
		l += graph->tensors[t].elements;
		r += graph->tensors[t].elements;
	}
	return worst_ratio;
}

static void check_on_nodes(const char *system, unsigned workers_per_node, double most_ratio)
{
	for (unsigned workers = 1; workers <= MOST_WORKERS; workers *= 2) {
		struct training *on_gpu = cuda_run(system, workers, workers_per_node, ITERATIONS, &psd_device_cuda);
		struct training *here = cuda_run(system, workers, workers_per_node, ITERATIONS, NULL);

		for (unsigned w = 0; w < workers; w++) {
			const double ratio = distance_ratio(on_gpu, here, w);
			cr_expect_leq(ratio, most_ratio, "%s, worker %u of %u: %g", system, w, workers, ratio);
		}
		training_free(on_gpu);
		training_free(here);
	}
}

static void check_within(const char *system, double most_ratio)
{
	check_on_nodes(system, 1, most_ratio);
}

static void check(const char *system)
{
	check_within(system, TOLERANCE_RATIO);
}

Test(cuda_training, goes_a_long_way)
{
	struct training *begun = cuda_run("sync: ring", 1, 1, 1, NULL);
	struct training *ended = cuda_run("sync: ring", 1, 1, ITERATIONS, NULL);

	cr_expect_gt(distance_ratio(begun, ended, 0), LEAST_WAY_RATIO);
	training_free(begun);
	training_free(ended);
}

Test(cuda_training, servers_end_as_on_the_processor)
{
	check("schedule: sequential, sync: ps");
	check("schedule: wait-free, sync: ps, pair: 1KiB, slice: 4KiB");
}

Test(cuda_training, leaders_end_as_on_the_processor)
{
	check_on_nodes("schedule: sequential, sync: two-level-ps", 2, TOLERANCE_RATIO);
	check_on_nodes("schedule: wait-free, sync: two-level-ps, pair: 1KiB, slice: 4KiB", 2, TOLERANCE_RATIO);
}

Test(cuda_training, servers_of_2_byte_values_end_as_on_the_processor)
{
	check("schedule: wait-free, sync: ps, wire: fp16");
	check("schedule: wait-free, sync: hybrid, wire: bf16");
}

Test(cuda_training, leaders_of_2_byte_values_end_as_on_the_processor)
{
	check_on_nodes("schedule: wait-free, sync: two-level-ps, wire: fp16", 2, FP16_RATIO);
	check_on_nodes("schedule: sequential, sync: two-level-ps, wire: bf16", 2, BF16_RATIO);
}

Test(cuda_training, factors_end_as_on_the_processor)
{
	check("schedule: wait-free, sync: sfb");
	check("schedule: wait-free, sync: adam");
}

Test(cuda_training, the_hybrid_ends_as_on_the_processor)
{
	check("schedule: wait-free, sync: hybrid");
	check("schedule: sequential, sync: hybrid");
	check("schedule: wait-free, sync: hybrid, barrier: layer");
}

Test(cuda_training, all_reduces_end_as_on_the_processor)
{
	check("schedule: sequential, sync: ring");
	check("schedule: wait-free, sync: ring");
	check("schedule: wait-free, sync: two-level, fuse: 2KiB");
}

Test(cuda_training, all_reduces_in_parts_end_as_on_the_processor)
{
	check("schedule: wait-free, sync: ring, fuse: 1MiB, pipeline: 2KiB");
	check_within("schedule: wait-free, sync: ring, wire: fp16", FP16_RATIO);
	check_within("schedule: wait-free, sync: ring, wire: bf16", BF16_RATIO);
}

TEST_ROW(cuda_training, chunks_end_as_on_the_processor,
	 check("schedule: wait-free, sync: ring, fuse: 1MiB, sparse: {sparsity: 0.8, chunk: 70, warmup: 2}"))

Test(cuda_training, local_steps_end_as_on_the_processor)
{
	check("schedule: wait-free, sync: ps, local_sgd: {steps: 4}");
	check("schedule: sequential, sync: ring, local_sgd: {steps: 1}");
	check("schedule: wait-free, sync: ring, fuse: 2KiB, barrier: layer, local_sgd: {steps: 3}");
	check_on_nodes("schedule: wait-free, sync: two-level-ps, local_sgd: {steps: 5}", 2, TOLERANCE_RATIO);
	check("schedule: wait-free, sync: ring, fuse: 2KiB, local_sgd: {steps: 2, outer: {momentum: 0.5}}");
	check("schedule: wait-free, sync: ring, local_sgd: {steps: 3, fragments: 2, delay: 1, outer: {momentum: 0.5}}");
	check("schedule: wait-free, sync: ps, local_sgd: {steps: 2, outer: {momentum: 0.5, nesterov: false}}");
	check_within("schedule: wait-free, sync: ps, wire: bf16, local_sgd: {steps: 4}", BF16_RATIO);
}

/* From gradients of equal bits: else a sign or a choice may turn. */
Test(cuda_training, compressed_gradients_end_as_on_the_processor)
{
	check("schedule: wait-free, sync: ps, compress: {by: one-bit}");
	check("schedule: sequential, sync: ps, compress: {by: top-k, kept: 5%}");
	/* a value may be rounded the other way, by a 254th of its block's range, until its error follows */
	check_within("schedule: wait-free, sync: ps, compress: {by: int8}", BF16_RATIO);
	check("schedule: wait-free, sync: ps, barrier: layer, compress: {by: top-k, kept: 5%, momentum: before}");
	check("schedule: wait-free, sync: ps, compress: {by: one-bit, tensors: matrices, momentum: before}");
	check_on_nodes("schedule: wait-free, sync: ps, compress: {by: one-bit}, local_sgd: {steps: 2}", 2,
		       TOLERANCE_RATIO);
}

Test(cuda_training, gradients_of_low_rank_end_as_on_the_processor)
{
	check("schedule: wait-free, sync: ring, low_rank: {rank: 1}");
	check("schedule: sequential, sync: halving-doubling, unit: layer, low_rank: {rank: 2}");
	check("schedule: wait-free, sync: ring, fuse: 1MiB, barrier: layer, low_rank: {rank: 2}");
	check_on_nodes("schedule: wait-free, sync: two-level, low_rank: {rank: 2}, local_sgd: {steps: 2}", 2,
		       TOLERANCE_RATIO);
}

Test(cuda_training, late_updates_end_as_on_the_processor)
{
	check("schedule: wait-free, sync: ps, pair: 1KiB, slice: 4KiB, staleness: 1");
	check("schedule: sequential, sync: ring, staleness: 2");
	check("schedule: wait-free, sync: sfb, barrier: layer, staleness: 1");
	check_on_nodes("schedule: wait-free, sync: two-level-ps, staleness: 3", 2, TOLERANCE_RATIO);
	check_within("schedule: wait-free, sync: hybrid, wire: bf16, staleness: 1", BF16_RATIO);
}

Test(cuda_training, accumulated_gradients_end_as_on_the_processor)
{
	check("schedule: wait-free, sync: ps, pair: 1KiB, slice: 4KiB, accumulate: 3");
	check("schedule: sequential, sync: ring, accumulate: 2");
	check("schedule: wait-free, sync: sfb, barrier: layer, accumulate: 3");
	check("schedule: wait-free, sync: ring, fuse: 1MiB, staleness: 1, accumulate: 2");
	check_on_nodes("schedule: wait-free, sync: two-level-ps, accumulate: 2", 2, TOLERANCE_RATIO);
	check("schedule: wait-free, sync: zero-3, accumulate: 3");
	check_within("schedule: wait-free, sync: hybrid, wire: bf16, accumulate: 2", BF16_RATIO);
}

/* ---- other jobs ---- */

static struct training *run_job(const char *model, const char *job, const char *system, unsigned workers,
				unsigned workers_per_node, const struct psd_device_kind *kind)
{
	return training_finish(cuda_run_make_job(model, job, system, workers, workers_per_node, kind), system);
}

static void check_job_on(const char *model, const char *job, const char *system, unsigned workers,
			 unsigned workers_per_node)
{
	struct training *on_gpu = run_job(model, job, system, workers, workers_per_node, &psd_device_cuda);
	struct training *here = run_job(model, job, system, workers, workers_per_node, NULL);

	for (unsigned w = 0; w < workers; w++) {
		const double ratio = distance_ratio(on_gpu, here, w);
		cr_expect_leq(ratio, TOLERANCE_RATIO, "%s, %s, worker %u of %u: %g", model, system, w, workers, ratio);
	}
	training_free(on_gpu);
	training_free(here);
}

static void check_job(const char *model, const char *job, const char *system)
{
	for (unsigned workers = 1; workers <= 2; workers++)
		check_job_on(model, job, system, workers, 1);
}

static void check_transformer(const char *model)
{
#define JOB(n) "iterations: " n ", optimiser: {momentum: 0.9}, learning_rate: {policy: fixed, base: 0.02}"
	struct training *begun = run_job(model, JOB("1"), "sync: ring", 1, 1, NULL);
	struct training *ended = run_job(model, JOB("10"), "sync: ring", 1, 1, NULL);

	cr_expect_gt(distance_ratio(begun, ended, 0), LEAST_WAY_RATIO);
	check_job(model, JOB("10"), "schedule: wait-free, sync: ps, pair: 256B, slice: 1KiB");
	check_job(model, JOB("10"), "schedule: wait-free, sync: ring, fuse: 2KiB");
	training_free(begun);
	training_free(ended);
#undef JOB
}

TEST_ROW(cuda_training, a_transformer_ends_as_on_the_processor, check_transformer("transformer.yaml"))
TEST_ROW(cuda_training, a_llama_ends_as_on_the_processor, check_transformer("llama.yaml"))

/* epsilon is added to the root, so that a gradient that is nothing but rounding does not become a step. */
Test(cuda_training, adaptive_updates_end_as_on_the_processor)
{
#define JOB                                                                                                            \
	"iterations: 10, optimiser: {kind: adamw, epsilon: 0.01, weight_decay: 0.01}, "                                \
	"learning_rate: {policy: fixed, base: 0.002}"
	check_job("smooth.yaml", JOB, "schedule: wait-free, sync: ps, pair: 1KiB, slice: 4KiB");
	check_job("smooth.yaml", JOB, "schedule: wait-free, sync: ring, fuse: 2KiB");
	check_job("smooth.yaml", JOB, "schedule: wait-free, sync: ring, local_sgd: {steps: 3}");
	check_job("transformer.yaml", JOB, "schedule: wait-free, sync: hybrid");
#undef JOB
}

Test(cuda_training, parts_of_updates_end_as_on_the_processor)
{
	check("schedule: wait-free, sync: zero-1");
	check("schedule: sequential, sync: zero-1, fuse: 1MiB");
	check("schedule: wait-free, sync: zero-2");
	check("schedule: wait-free, sync: zero-2, fuse: 64KiB, barrier: layer");
	check_on_nodes("schedule: wait-free, sync: zero-2, priority: forward", 2, TOLERANCE_RATIO);
	check("schedule: wait-free, sync: zero-3");
	check_on_nodes("schedule: wait-free, sync: zero-3, shard_over: node, prefetch: 0", 2, TOLERANCE_RATIO);
}

static void check_norms(const char *optimiser)
{
	char job[256];

	snprintf(job, sizeof(job), "iterations: 10, optimiser: {%s}, learning_rate: {policy: fixed, base: 0.05}",
		 optimiser);
	check_job("smooth.yaml", job, "schedule: wait-free, sync: zero-1");
	check_job("smooth.yaml", job, "schedule: wait-free, sync: zero-2");
	check_job("smooth.yaml", job, "schedule: wait-free, sync: zero-3");
	check_job_on("smooth.yaml", job, "schedule: wait-free, sync: zero-3, shard_over: node", 4, 2);
}

Test(cuda_training, norms_of_parts_are_those_of_whole_tensors)
{
#define BY_NORMS "kind: lars, trust: 0.02, momentum: 0.9"
	check_norms("momentum: 0.9, clip: 0.05");
	check_norms(BY_NORMS);
	check_norms(BY_NORMS ", weight_decay: 0.01, clip: 0.05");
#undef BY_NORMS
}

/* Each iteration ends with a fence, so that the times at which sums arrive change nothing. */
Test(cuda_training, stale_reads_end_as_on_the_processor)
{
#define JOB "iterations: 10, compare_every: 1, optimiser: {momentum: 0.9}, learning_rate: {policy: fixed, base: 0.05}"
	check_job("smooth.yaml", JOB, "schedule: wait-free, sync: ring, staleness: 2, reads: stale");
	check_job("smooth.yaml", JOB, "schedule: sequential, sync: ps, staleness: 1, reads: stale");
#undef JOB
}

/* Behind the first iteration changes follow from the momentum alone, whenever sums arrive. */
Test(cuda_training, own_updates_end_as_on_the_processor)
{
#define JOB                                                                                                            \
	"iterations: 10, optimiser: {momentum: 0.9, weight_decay: 0.01}, learning_rate: {policy: multistep, base: "    \
	"0.05, gamma: 0, steps: [1]}"
	check_job("smooth.yaml", JOB,
		  "schedule: wait-free, sync: ring, staleness: 2, reads: stale, managed: {clock: 4, early: 30%, "
		  "chunk: 100, priority: generation}");
#undef JOB
}

/* To less than a tenth of their length at first. */
Test(cuda_training, clipped_gradients_end_as_on_the_processor)
{
#define JOB "iterations: 10, optimiser: {momentum: 0.9, clip: 0.05}, learning_rate: {policy: fixed, base: 0.05}"
	check_job("smooth.yaml", JOB, "schedule: wait-free, sync: ring");
	check_job("smooth.yaml", JOB, "schedule: sequential, sync: ps, pair: 1KiB, slice: 4KiB");
	check_job("smooth.yaml", JOB, "schedule: wait-free, sync: sfb, staleness: 1");
#undef JOB
}

enum { UNEQUAL = 2 }; /* the stand-in's engine for gradients that are not of equal bits */

/* Few, so that what differs by rounding stays near. */
static void check_engines(const char *job, bool may_differ)
{
	struct training *training =
		training_on(training_make("cifar10-quick.yaml", "sync: ring", 1, 1, 2, 1, job), &psd_device_cuda, true);

	psd_stand_in_count_engines();
	psd_stand_in_set_engine_msec(UNEQUAL, 0);
	training_finish(training, job);
	cr_expect_eq(psd_stand_in_engine_runs(UNEQUAL) > 0, may_differ, "%s: %u", job,
		     psd_stand_in_engine_runs(UNEQUAL));
	training_free(training);
}

Test(cuda_training, engines_of_unequal_bits_are_taken_where_equal_runs_may_differ)
{
#define JOB "iterations: 3, learning_rate: {policy: fixed, base: 0.001}"
	check_engines(JOB, false);
	check_engines(JOB ", deterministic: true", false);
	check_engines(JOB ", deterministic: false", true);
#undef JOB
}
