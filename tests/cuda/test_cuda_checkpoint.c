/* Runs on the CUDA device that go on from what it kept in its own memory, or start from what another run has learnt. */
#include <criterion/criterion.h>

#include "tests/cuda/stand_in.h"
#include "tests/real/going_on.h"
#include "tests/test_with.h"

TestSuite(cuda_checkpoint, .timeout = 120);

static void check(const char *system, const char *train)
{
	going_on_check(system, train, 2, 1, &psd_device_cuda);
}

Test(cuda_checkpoint, servers_go_on)
{
	check("sync: ps", GOING_ON_SGD);
	check("sync: ps, servers: 1, wire: fp16", GOING_ON_LOUD);
}

TEST_ROW(cuda_checkpoint, asynchronous_servers_go_on, going_on_check_asynchronous("by-staleness", &psd_device_cuda))
TEST_ROW(cuda_checkpoint, own_updates_go_on,
	 going_on_check_own_updates("sync: ring, staleness: 2, reads: stale, managed: {clock: 2, early: 30%, chunk: 7, "
				    "priority: generation}",
				    2, &psd_device_cuda))

Test(cuda_checkpoint, factors_go_on)
{
	check("sync: sfb", GOING_ON_SGD);
	check("sync: adam", GOING_ON_SGD);
	check("sync: adam, wire: fp16", GOING_ON_LOUD);
}

Test(cuda_checkpoint, all_reduces_go_on)
{
	check("sync: ring", GOING_ON_SGD);
	check("sync: ring, wire: fp16", GOING_ON_LOUD);
	check("sync: ring, fuse: 4KiB, sparse: {sparsity: 0.6, chunk: 256, warmup: 5}", GOING_ON_SGD);
}

/* A worker has a part of the parameters, on the device. */
Test(cuda_checkpoint, parts_go_on)
{
	check("sync: zero-3", GOING_ON_SGD);
	check("sync: fsdp, prefetch: 0, accumulate: 2", GOING_ON_ADAMW);
}

/* Checkpoints wait for the next exchange; a run that ends makes one, so that its cut is to be one in any case. */
Test(cuda_checkpoint, local_steps_go_on)
{
	check("sync: ps, local_sgd: {steps: 3}", GOING_ON_SGD);
	check("sync: ring, barrier: layer, local_sgd: {steps: 3}", GOING_ON_SGD);
	check("sync: ring, local_sgd: {steps: 3, outer: {}}", GOING_ON_SGD);
}

/* The residuals and the momentum of gradients are on the device; the residuals of sums are not. */
Test(cuda_checkpoint, compressed_gradients_go_on)
{
	check("sync: ps, compress: {by: one-bit, momentum: before}", GOING_ON_SGD);
	check("sync: ps, compress: {by: top-k, kept: 2%}", GOING_ON_SGD);
}

/* The residuals of low-rank gradients and the right factors are on the device, too. */
TEST_ROW(cuda_checkpoint, gradients_of_low_rank_go_on, check("sync: ring, low_rank: {rank: 2}", GOING_ON_SGD))

/* Sums that are not applied yet are on the device. */
Test(cuda_checkpoint, late_updates_go_on)
{
	check("sync: ps, staleness: 2", GOING_ON_SGD);
	check("sync: ring, barrier: layer, staleness: 1", GOING_ON_SGD);
}

/* Nothing of a micro-batch is left after an iteration. */
Test(cuda_checkpoint, accumulated_gradients_go_on)
{
	check("sync: hybrid, accumulate: 2", GOING_ON_SGD);
	check("sync: ring, barrier: layer, staleness: 1, accumulate: 3", GOING_ON_SGD);
}

Test(cuda_checkpoint, layers_of_16_bits_go_on)
{
	check("sync: ring", GOING_ON_SGD ", arithmetic: fp16");
	check("sync: ps", GOING_ON_SGD ", arithmetic: bf16");
}

/* The root's values beside its rounded parameters start from the file, too. */
Test(cuda_checkpoint, a_run_starts_from_a_file)
{
	going_on_check_start("sync: ring", &psd_device_cuda);
	going_on_check_start("sync: adam, wire: bf16", &psd_device_cuda);
	going_on_check_start("sync: zero-3", &psd_device_cuda);
	going_on_check_start("sync: ps, servers: 1, wire: bf16", &psd_device_cuda);
}
