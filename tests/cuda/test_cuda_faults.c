/* Whole runs in which a GPU fails: all workers end with the message of the worker with that GPU. */
#include <criterion/criterion.h>
#include <string.h>

#include "tests/cuda/cuda_net.h"
#include "tests/cuda/stand_in.h"
#include "tests/real/training.h"
#include "tests/test_with.h"

enum { BATCH = 1, FAILS_AT = 2 /* iteration */ };

enum fault { LOST, LOST_BEFORE_BACKWARD, NO_MEMORY };

/* The fault of the whole run: its processes are forked from this one. */
static struct {
	unsigned victim;
	enum fault fault;
	bool is_due; /* in this process */
} order;

/* The device fails in what is begun from now on: in a kernel that runs later, or in a call. */
static void fail(void)
{
	if (order.fault == NO_MEMORY)
		psd_stand_in_fail("cudaGraphLaunch", 2, cudaErrorMemoryAllocation);
	else
		psd_stand_in_fail_operation(3, cudaErrorLaunchFailure);
}

static enum psd_status begin(struct psd_device *device, const struct psd_batch *batch, struct psd_error *err)
{
	order.is_due = batch->iteration == FAILS_AT && batch->first_sample / BATCH == order.victim;
	if (order.is_due && order.fault != LOST_BEFORE_BACKWARD)
		fail();
	return psd_device_cuda.begin(device, batch, err);
}

static enum psd_status begin_pass(struct psd_device *device, const struct psd_pass *pass, struct psd_error *err)
{
	if (pass->is_backward && order.is_due && order.fault == LOST_BEFORE_BACKWARD) {
		order.is_due = false;
		fail();
	}
	return psd_device_cuda.pass(device, pass, err);
}

static struct training *make(const char *system, unsigned workers, const struct psd_device_kind *kind)
{
	return training_on(training_make("cifar10-quick.yaml", system, workers, 1, BATCH, 3,
					 "iterations: 5, learning_rate: {policy: fixed, base: 0.001}"),
			   kind, true);
}

static void expect_line(const struct training *training, const char *words, const char *what)
{
	cr_expect(training->status == PSD_ERUN || training->status == PSD_ENOMEM, "%s: status %d", what,
		  (int)training->status);
	cr_expect(strstr(training->err.text, words) && !strchr(training->err.text, '\n'), "%s: %s", what,
		  training->err.text);
}

static void check(const char *system, unsigned workers, enum fault fault)
{
	static const char *const words[] = {
		[LOST] = "cudaErrorLaunchFailure",
		[LOST_BEFORE_BACKWARD] = "cudaErrorLaunchFailure",
		[NO_MEMORY] = "cudaErrorMemoryAllocation",
	};
	struct psd_device_kind kind = psd_device_cuda;
	struct training *training = make(system, workers, &kind);

	kind.begin = begin;
	kind.pass = begin_pass;
	order.victim = workers - 1;
	order.fault = fault;
	training_run(training);
	expect_line(training, words[fault], system);
	training_free(training);
}

static void check_all(const char *system)
{
	for (unsigned workers = 1; workers <= 3; workers += 2) {
		check(system, workers, LOST);
		check(system, workers, LOST_BEFORE_BACKWARD);
		check(system, workers, NO_MEMORY);
	}
}

Test(cuda_faults, a_gpu_that_is_lost_ends_a_run_with_servers)
{
	check_all("schedule: sequential, sync: ps");
	check_all("schedule: wait-free, sync: hybrid");
}

TEST_ROW(cuda_faults, a_gpu_that_is_lost_ends_a_run_in_a_ring,
	 check_all("schedule: wait-free, sync: ring, fuse: 64KiB"))

static void check_start(const char *words)
{
	struct training *training = make("schedule: wait-free, sync: ps", 2, &psd_device_cuda);

	training_run(training);
	expect_line(training, words, "start");
	training_free(training);
}

Test(cuda_faults, missing_hardware_ends_a_run_at_its_start)
{
	psd_stand_in_set_devices(0);
	check_start("no NVIDIA GPU that the driver supports");
	psd_stand_in_set_devices(1);
	psd_stand_in_set_driver(12020);
	check_start("driver is for CUDA 12.2, must be for 13.0 or newer");
	psd_stand_in_set_driver(CUDART_VERSION);
	psd_stand_in_set_memory(UINT64_C(65) << 20); /* 64 MiB are cuBLAS's */
	check_start("the GPU has too little memory for");
}
