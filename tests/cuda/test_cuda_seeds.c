/* Whole runs with many seeds of the stand-in's delays: whichever stream runs behind, not a bit of the outcome changes.
 * PSD_STAND_IN_SEEDS is how many seeds each method is run with, 8 if it is not set. */
#define _DEFAULT_SOURCE
#include <criterion/criterion.h>
#include <stdlib.h>

#include "tests/cuda/cuda_run.h"
#include "tests/cuda/stand_in.h"
#include "tests/test_with.h"

enum { ITERATIONS = 3, WORKERS = 2, DEFAULT_SEEDS = 8 };

static unsigned n_seeds(void)
{
	const char *const text = getenv("PSD_STAND_IN_SEEDS");

	return text ? (unsigned)strtoul(text, NULL, 10) : DEFAULT_SEEDS;
}

/* job: NULL: that of cuda_run(). */
static struct training *run(const char *job, const char *system, unsigned workers_per_node, unsigned seed)
{
	struct training *training;

	psd_stand_in_set_seed(seed);
	if (!job)
		return cuda_run(system, WORKERS, workers_per_node, ITERATIONS, &psd_device_cuda);
	training = cuda_run_make_job("smooth.yaml", job, system, WORKERS, workers_per_node, &psd_device_cuda);
	return training_finish(training, system);
}

static void check_job(const char *job, const char *system, unsigned workers_per_node)
{
	struct training *at_once = run(job, system, workers_per_node, 0);

	for (unsigned seed = 1; seed <= n_seeds(); seed++) {
		struct training *behind = run(job, system, workers_per_node, seed);

		for (unsigned w = 0; w < WORKERS; w++)
			cr_expect(training_is_same(behind, w, at_once, w), "%s, seed %u: worker %u differs", system,
				  seed, w);
		cr_expect_eq(behind->result.last_loss, at_once->result.last_loss, "%s, seed %u", system, seed);
		training_free(behind);
	}
	training_free(at_once);
}

static void check_on_nodes(const char *system, unsigned workers_per_node)
{
	check_job(NULL, system, workers_per_node);
}

static void check(const char *system)
{
	check_on_nodes(system, 1);
}

TestSuite(cuda_seeds, .timeout = 600); /* with hundreds of them */

TEST_ROW(cuda_seeds, servers_keep_their_bits, check("schedule: wait-free, sync: ps, pair: 1KiB, slice: 4KiB"))
TEST_ROW(cuda_seeds, leaders_keep_their_bits,
	 check_on_nodes("schedule: wait-free, sync: two-level-ps, pair: 1KiB, slice: 4KiB", 2))
TEST_ROW(cuda_seeds, stages_keep_their_bits, check("schedule: sequential, sync: ps"))
TEST_ROW(cuda_seeds, factors_keep_their_bits, check("schedule: wait-free, sync: sfb"))
TEST_ROW(cuda_seeds, the_hybrid_keeps_its_bits, check("schedule: wait-free, sync: hybrid, barrier: layer"))
TEST_ROW(cuda_seeds, a_ring_keeps_its_bits, check("schedule: wait-free, sync: ring"))
TEST_ROW(cuda_seeds, a_ring_in_parts_keeps_its_bits,
	 check("schedule: wait-free, sync: ring, fuse: 1MiB, pipeline: 2KiB"))
TEST_ROW(cuda_seeds, rounded_values_keep_their_bits, check("schedule: wait-free, sync: ring, fuse: 1MiB, wire: bf16"))
TEST_ROW(cuda_seeds, chunks_keep_their_bits,
	 check("schedule: wait-free, sync: ring, fuse: 1MiB, sparse: {sparsity: 0.8, chunk: 70, warmup: 1}"))

Test(cuda_seeds, local_steps_keep_their_bits)
{
	check("schedule: wait-free, sync: ps, pair: 1KiB, slice: 4KiB, local_sgd: {steps: 2}");
	check("schedule: wait-free, sync: ring, barrier: layer, local_sgd: {steps: 2}");
}

Test(cuda_seeds, compressed_gradients_keep_their_bits)
{
	check("schedule: wait-free, sync: ps, compress: {by: one-bit, momentum: before}");
	check("schedule: wait-free, sync: ps, barrier: layer, compress: {by: top-k, kept: 5%}");
}

Test(cuda_seeds, low_rank_gradients_keep_their_bits)
{
	check("schedule: wait-free, sync: ring, low_rank: {rank: 2}");
	check("schedule: wait-free, sync: ring, fuse: 1MiB, barrier: layer, low_rank: {rank: 1}");
}

Test(cuda_seeds, late_updates_keep_their_bits)
{
	check("schedule: wait-free, sync: hybrid, pair: 1KiB, slice: 4KiB, staleness: 1");
	check("schedule: wait-free, sync: ring, fuse: 1MiB, barrier: layer, wire: bf16, staleness: 2");
}

Test(cuda_seeds, accumulated_gradients_keep_their_bits)
{
	check("schedule: wait-free, sync: hybrid, pair: 1KiB, slice: 4KiB, accumulate: 3");
	check("schedule: wait-free, sync: ring, fuse: 1MiB, barrier: layer, staleness: 1, accumulate: 2");
}

Test(cuda_seeds, clipped_gradients_keep_their_bits)
{
	static const char job[] =
		"iterations: 3, optimiser: {momentum: 0.9, clip: 0.05}, learning_rate: {policy: fixed, base: 0.05}";

	check_job(job, "schedule: wait-free, sync: ring, barrier: layer", 1);
	check_job(job, "schedule: wait-free, sync: two-level-ps, pair: 1KiB, slice: 4KiB, staleness: 1", 2);
}
