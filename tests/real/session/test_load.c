/* Processor time of training beside its operations, reading of samples included; never wall time. And the thread that
 * executes them. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <unistd.h>

#include "real/base/machine.h"
#include "real/cluster/process_group.h"
#include "tests/real/training.h"
#include "tests/test_with.h"

#define BUSY_SEC 0.005 /* parameters in each layer */

static struct psd_worker_result run(const struct psd_device_kind *kind, uint32_t batch, const char *train)
{
	struct training *training = training_make("cifar10-quick.yaml", "sync: ps", 1, 1, batch, 1, train);
	struct psd_worker_result result;

	training->options.worker.device = kind;
	result = training_finish(training, train)->result;
	training_free(training);
	return result;
}

#define TRAIN "iterations: 12, learning_rate: {policy: fixed, base: 0.001}"

static enum psd_status be_busy(struct psd_device *device, unsigned layer, struct psd_error *err)
{
	const double until_sec = psd_machine_own_sec() + BUSY_SEC;

	(void)device, (void)layer, (void)err;
	while (psd_machine_own_sec() < until_sec)
		;
	return PSD_OK;
}

Test(load, time_of_layers_is_no_load_beside_them)
{
	struct psd_device_kind kind = psd_device_idle;
	struct psd_worker_result result;

	kind.forward = be_busy;
	result = run(&kind, 1, TRAIN);
	cr_expect_geq(result.parts.compute_sec, 10 * BUSY_SEC, "%g s of more than ten layers",
		      result.parts.compute_sec);
	cr_expect_float_eq(result.parts.compute_sec + result.parts.other_work_sec + result.parts.exposed_comm_sec +
				   result.parts.other_waiting_sec,
			   result.iteration_sec, 1e-9, "the parts are not %.9f s", result.iteration_sec);
	cr_expect_gt(result.beside_cpu_sec, 0.0);
	cr_expect_lt(result.beside_cpu_sec, result.parts.compute_sec / 2, "%g of %g s", result.beside_cpu_sec,
		     result.parts.compute_sec);
}

Test(load, reading_samples_is_a_load_beside_layers)
{
	const double few_sec = run(&psd_device_idle, 1, TRAIN).beside_cpu_sec,
		     many_sec = run(&psd_device_idle, 1000, TRAIN).beside_cpu_sec;

	cr_expect_gt(few_sec, 0.0);
	cr_expect_gt(many_sec, 3 * few_sec, "%g s with 1 sample, %g with 1000", few_sec, many_sec);
}

enum { LAYERS = 13, LONG_LAYER = 4 };

static unsigned *n_by_loop; /* (LAYERS), shared: forward passes by a worker's first thread, its event loop's */

static enum psd_status note_thread(struct psd_device *device, unsigned layer, struct psd_error *err)
{
	n_by_loop[layer] += gettid() == getpid();
	return layer == LONG_LAYER ? be_busy(device, layer, err) : PSD_OK;
}

static void expect_by_loop(const char *train, bool is_short_by_loop)
{
	struct psd_device_kind kind = psd_device_idle;

	n_by_loop = psd_process_group_share(LAYERS * sizeof(*n_by_loop));
	cr_assert_not_null(n_by_loop);
	kind.forward = note_thread;
	(void)run(&kind, 1, train);
	cr_expect_eq(n_by_loop[0], 0, "which waits for its batch");
	cr_expect_eq(n_by_loop[LONG_LAYER], 0);
	cr_expect_eq(n_by_loop[LONG_LAYER + 3] > 0, is_short_by_loop, "%u times by the loop",
		     n_by_loop[LONG_LAYER + 3]);
	psd_process_group_unshare(n_by_loop, LAYERS * sizeof(*n_by_loop));
}

TEST_ROW(load, the_event_loop_carries_out_short_layers, expect_by_loop(TRAIN, true))
TEST_ROW(load, layers_that_use_several_threads_stay_with_theirs, expect_by_loop(TRAIN ", threads: 2", false))
