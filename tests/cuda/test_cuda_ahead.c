/* Work that a device is given ahead of the running iteration, where a lone worker has little between. */
#define _DEFAULT_SOURCE
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "real/device/device.h"
#include "tests/cuda/stand_in.h"
#include "tests/real/training.h"
#include "tests/scratch_file.h"
#include "tests/test_with.h"

enum { BATCH = 4 };

/* The worker's remarks. It is a process of its own, so that they are in shared memory. */
static struct {
	unsigned n;
	char last[256];
} * remarks;

static void keep_remark(void *context, const char *line)
{
	(void)context;
	remarks->n++;
	snprintf(remarks->last, sizeof(remarks->last), "%s", line);
}

static struct training *run(const char *text, const char *system, bool is_tested)
{
	const struct scratch_file model = scratch_file_write(text);
	struct training *training =
		training_make(model.path, system, 1, 1, BATCH, 1,
			      "data: {kind: synthetic, training_samples: 4, test_samples: 4}, test_every: 1, "
			      "iterations: 40, learning_rate: {policy: fixed, base: 0.001}");

	training_on(training, &psd_device_cuda, true);
	training->options.worker.is_tested = is_tested;
	remarks = mmap(NULL, sizeof(*remarks), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(remarks, MAP_FAILED);
	training->options.worker.remark = keep_remark;
	training_finish(training, system);
	remove(model.path);
	return training;
}

/* Without an update between them, only the gate keeps two forwards apart. */
TEST_ROW(cuda_ahead, a_network_without_parameters_is_run,
	 training_free(run("name: nothing\ninput: {channels: 64}\nlayers:\n  - {name: r, kind: relu}\n"
			   "  - {name: loss, kind: softmax-loss}\n",
			   "sync: ring", false)))

/* An iteration that ended before its test began has times that add up: no wait is less than none. */
Test(cuda_ahead, a_test_stands_between_two_iterations)
{
	struct training *training = run("name: one\ninput: {channels: 64}\nlayers:\n"
					"  - {name: top, kind: inner-product, outputs: 8, bias: false}\n"
					"  - {name: loss, kind: softmax-loss}\n",
					"sync: ring", true);

	cr_expect_geq(training->result.parts.other_waiting_sec, 0.0);
	training_free(training);
}

/* By this clock of the device nothing takes time but convolutions: what the host waits for an update is none of the
 * device's work. */
Test(cuda_ahead, a_device_works_as_long_as_its_own_clock_says)
{
	for (int engine = 0; engine < 3; engine++)
		psd_stand_in_set_engine_msec(engine, 1);

	struct training *training = run("name: one\ninput: {channels: 8, height: 8, width: 8}\nlayers:\n"
					"  - {name: low, kind: conv, outputs: 8, kernel: 3}\n"
					"  - {name: top, kind: inner-product, outputs: 8}\n"
					"  - {name: loss, kind: softmax-loss}\n",
					"sync: ring", false);

	cr_expect_float_eq(training->result.parts.other_work_sec, 0.0, 1e-12);
	training_free(training);
}

/* The third stretch of layers, backward of the upper one. */
Test(cuda_ahead, a_stretch_without_a_graph_is_reported)
{
	psd_stand_in_fail("cudaStreamEndCapture", 3, cudaErrorStreamCaptureUnsupported);
	training_free(run("name: one\ninput: {channels: 64}\nlayers:\n"
			  "  - {name: top, kind: inner-product, outputs: 8, bias: false}\n"
			  "  - {name: loss, kind: softmax-loss}\n",
			  "sync: ring", false));
	cr_expect_eq(remarks->n, 1);
	cr_expect(strstr(remarks->last, "cannot be a CUDA graph, and are launched call by call: "), "%s",
		  remarks->last);
}
