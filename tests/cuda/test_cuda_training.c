/* Whole runs whose workers train on the CUDA device, with every method, against runs on the processor. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "tests/cuda/cuda_net.h"
#include "tests/real/training.h"

/* Of a host's parameters: fp32 sums in another order, four iterations long. What travels in two bytes is rounded to
 * one neighbour or the other. */
#define TOLERANCE_RATIO	     1e-4
#define WIRE_TOLERANCE_RATIO 1e-3

static struct training *train(const char *system, unsigned workers, const struct psd_device_kind *kind)
{
	struct training *training = training_make("cifar10-quick.yaml", system, workers, 1, 4, 3,
						  "iterations: 4, optimiser: {momentum: 0.9, weight_decay: 0.01}, "
						  "learning_rate: {policy: fixed, base: 0.001}");

	psd_case_release(&training->made);
	psd_subject_matter_compute_on(&training->loaded.matter, true);
	loaded_case(&training->made, &training->loaded, 0, 0);
	training->options.worker.device = kind;
	training_run(training);
	cr_assert_eq(training->status, PSD_OK, "%s, %u workers: %s", system, workers, training->err.text);
	return training;
}

static void check(const char *system, unsigned workers, double tolerance_ratio)
{
	struct training *on_gpu = train(system, workers, &psd_device_cuda), *here = train(system, workers, NULL);

	for (unsigned w = 0; w < workers; w++)
		cr_expect_lt(cuda_net_distance(training_parameters(on_gpu, w), training_parameters(here, w),
					       here->loaded.matter.graph.parameters),
			     tolerance_ratio, "%s, worker %u of %u", system, w, workers);
	training_free(on_gpu);
	training_free(here);
}

/* One worker, which sends nothing, and four. */
static void check_alone_and_together(const char *system, double tolerance_ratio)
{
	check(system, 1, tolerance_ratio);
	check(system, 4, tolerance_ratio);
}

Test(cuda_training, servers_end_as_on_the_processor)
{
	check_alone_and_together("schedule: sequential, sync: ps", TOLERANCE_RATIO);
	check_alone_and_together("schedule: wait-free, sync: ps, pair: 16KiB, slice: 64KiB", TOLERANCE_RATIO);
}

Test(cuda_training, servers_of_2_byte_values_end_as_on_the_processor)
{
	check_alone_and_together("schedule: wait-free, sync: ps, wire: fp16", WIRE_TOLERANCE_RATIO);
	check_alone_and_together("schedule: wait-free, sync: hybrid, wire: bf16", WIRE_TOLERANCE_RATIO);
}

Test(cuda_training, factors_end_as_on_the_processor)
{
	check_alone_and_together("schedule: wait-free, sync: sfb", TOLERANCE_RATIO);
	check_alone_and_together("schedule: wait-free, sync: adam", TOLERANCE_RATIO);
}

Test(cuda_training, the_hybrid_ends_as_on_the_processor)
{
	check_alone_and_together("schedule: wait-free, sync: hybrid", TOLERANCE_RATIO);
	check_alone_and_together("schedule: wait-free, sync: hybrid, barrier: layer", TOLERANCE_RATIO);
}

Test(cuda_training, all_reduces_end_as_on_the_processor)
{
	check_alone_and_together("schedule: wait-free, sync: ring", TOLERANCE_RATIO);
	check_alone_and_together("schedule: wait-free, sync: two-level, fuse: 64KiB", TOLERANCE_RATIO);
}

Test(cuda_training, all_reduces_in_parts_end_as_on_the_processor)
{
	check_alone_and_together("schedule: wait-free, sync: ring, fuse: 1MiB, pipeline: 50KiB", TOLERANCE_RATIO);
	check_alone_and_together("schedule: wait-free, sync: ring, wire: bf16", WIRE_TOLERANCE_RATIO);
}

Test(cuda_training, chunks_end_as_on_the_processor)
{
	check_alone_and_together("schedule: wait-free, sync: ring, fuse: 1MiB, "
				 "sparse: {sparsity: 0.8, chunk: 700, warmup: 2}",
				 TOLERANCE_RATIO);
}
