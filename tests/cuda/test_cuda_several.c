/* Several GPUs in a machine, and several workers on one. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <string.h>

#include "tests/cuda/cuda_net.h"
#include "tests/cuda/gpus_taken_helper.h"
#include "tests/cuda/stand_in.h"
#include "tests/real/training.h"

#define TOLERANCE_RATIO 1e-4 /* as in test_cuda_training.c */

static void check_gpu(unsigned number, const char *expected)
{
	const struct psd_device_options options = {.n_threads = 1, .number = number};
	char text[PSD_DEVICE_TEXT_MAX];
	struct psd_device *device;
	struct psd_error err = {0};

	cr_assert_eq(psd_device_cuda.open(&device, &options, &err), PSD_OK, "%s", err.text);
	psd_device_cuda.describe(device, text);
	cr_expect_eq(strncmp(text, expected, strlen(expected)), 0, "%s", text);
	psd_device_cuda.close(device);
}

Test(cuda_several, gpus_are_counted_round)
{
	psd_stand_in_set_devices(3);
	check_gpu(0, "stand-in 0,");
	check_gpu(2, "stand-in 2,");
	check_gpu(3, "stand-in 0,");
	check_gpu(7, "stand-in 1,");
}

static struct training *train(unsigned workers, unsigned workers_per_node, const struct psd_device_kind *kind)
{
	static const char system[] = "schedule: wait-free, sync: hybrid";

	return training_finish(training_on(training_make("cifar10-quick.yaml", system, workers, workers_per_node, 2, 3,
							 "iterations: 1, learning_rate: {policy: fixed, base: 0.001}"),
					   kind, true),
			       system);
}

/* expected: how many workers each GPU has. */
static void check(unsigned gpus, unsigned workers, unsigned workers_per_node, const unsigned expected[])
{
	const struct psd_device_kind kind = gpus_taken_begin();
	struct training *on_gpus, *here;

	psd_stand_in_set_devices((int)gpus);
	on_gpus = train(workers, workers_per_node, &kind);
	here = train(workers, workers_per_node, NULL);
	gpus_taken_check(gpus, expected);
	for (unsigned w = 0; w < workers; w++)
		cr_expect_lt(cuda_net_distance(training_parameters(on_gpus, w), training_parameters(here, w),
					       here->loaded.costed.graph.parameters),
			     TOLERANCE_RATIO, "worker %u", w);
	training_free(on_gpus);
	training_free(here);
	gpus_taken_end();
}

/* Nodes that are emulated on one machine share its GPUs as well. */
Test(cuda_several, workers_of_a_machine_take_its_gpus_in_turn)
{
	check(4, 4, 2, (const unsigned[]){1, 1, 1, 1});
	check(2, 4, 4, (const unsigned[]){2, 2});
	check(2, 3, 1, (const unsigned[]){2, 1});
}
