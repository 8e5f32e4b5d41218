/* Several GPUs in a machine, and several workers on one. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/cuda/cuda_net.h"
#include "tests/cuda/stand_in.h"
#include "tests/real/training.h"

#define TOLERANCE_RATIO 1e-4 /* as in test_cuda_training.c */

enum { MOST_GPUS = 8 };

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

/* How many workers have taken each GPU, of all processes; counts what is asked for. */
static unsigned *taken;

static enum psd_status open_and_count(struct psd_device **device, const struct psd_device_options *options,
				      struct psd_error *err)
{
	const enum psd_status status = psd_device_cuda.open(device, options, err);
	char text[PSD_DEVICE_TEXT_MAX];
	unsigned number;

	if (status)
		return status;
	psd_device_cuda.describe(*device, text);
	if (sscanf(text, "stand-in %u", &number) == 1 && number < MOST_GPUS)
		__atomic_fetch_add(&taken[number], 1, __ATOMIC_RELAXED);
	return PSD_OK;
}

static struct training *train(unsigned workers, unsigned workers_per_node, const struct psd_device_kind *kind)
{
	struct training *training =
		training_make("cifar10-quick.yaml", "schedule: wait-free, sync: hybrid", workers, workers_per_node, 2,
			      3, "iterations: 3, learning_rate: {policy: fixed, base: 0.001}");

	psd_case_release(&training->made);
	psd_subject_matter_compute_on(&training->loaded.matter, true);
	loaded_case(&training->made, &training->loaded, 0, 0);
	training->options.worker.device = kind;
	training_run(training);
	cr_assert_eq(training->status, PSD_OK, "%s", training->err.text);
	return training;
}

/* expected: how many workers each GPU has. */
static void check(unsigned gpus, unsigned workers, unsigned workers_per_node, const unsigned expected[])
{
	struct psd_device_kind kind = psd_device_cuda;
	struct training *on_gpus, *here;

	kind.open = open_and_count;
	taken = mmap(NULL, MOST_GPUS * sizeof(*taken), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq((void *)taken, MAP_FAILED);
	psd_stand_in_set_devices((int)gpus);
	on_gpus = train(workers, workers_per_node, &kind);
	here = train(workers, workers_per_node, NULL);
	for (unsigned g = 0; g < gpus; g++)
		cr_expect_eq(taken[g], expected[g], "%u workers on GPU %u of %u, must be %u", taken[g], g, gpus,
			     expected[g]);
	for (unsigned w = 0; w < workers; w++)
		cr_expect_lt(cuda_net_distance(training_parameters(on_gpus, w), training_parameters(here, w),
					       here->loaded.matter.graph.parameters),
			     TOLERANCE_RATIO, "worker %u", w);
	training_free(on_gpus);
	training_free(here);
	munmap(taken, MOST_GPUS * sizeof(*taken));
}

/* Nodes that are emulated on one machine share its GPUs as well. */
Test(cuda_several, workers_of_a_machine_take_its_gpus_in_turn)
{
	check(4, 4, 2, (const unsigned[]){1, 1, 1, 1});
	check(2, 4, 4, (const unsigned[]){2, 2});
	check(2, 3, 1, (const unsigned[]){2, 1});
}
