/* Copies from the device in slices travel slice by slice: from the trace of a run. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdatomic.h>

#include "tests/cuda/stand_in.h"
#include "tests/real/training.h"

enum { WORKERS = 2 };

#define GRADIENT_BYTES (4.0 * 1024 * 1024) /* the gradient in tests/data/trained_4mib.yaml */

struct staging {
	double left_sec[WORKERS]; /* when a host began its first collective, and so to send */
	double copied_bytes[WORKERS], copied_before_bytes[WORKERS];
};

static void find_first(void *context, const struct psd_program *program, const struct psd_span *span)
{
	struct staging *staging = context;

	if (program->ops[span->task.op].kind == PSD_OP_COLLECTIVE)
		staging->left_sec[span->host] = fmin(staging->left_sec[span->host], span->start_sec);
}

static void add_copies(void *context, const struct psd_program *program, const struct psd_span *span)
{
	struct staging *staging = context;

	if (program->ops[span->task.op].kind != PSD_OP_COPY_OUT)
		return;
	staging->copied_bytes[span->host] += (double)span->bytes;
	if (span->end_sec <= staging->left_sec[span->host])
		staging->copied_before_bytes[span->host] += (double)span->bytes;
}

/* The second slice that leaves the device ends when the first sum comes back to it: however slow hosts are, they send
 * the first slice before they have the second. */
static enum psd_status copy_in_turn(struct psd_device *device, enum psd_stream stream, void *to, const void *from,
				    uint64_t bytes, struct psd_error *err)
{
	static atomic_uint n_out; /* in this process */
	static atomic_bool is_back;
	const bool is_slice = (double)bytes < GRADIENT_BYTES;

	if (is_slice && stream == PSD_STREAM_COPY_OUT && ++n_out == 2)
		psd_stand_in_hold_copy(from);
	if (is_slice && stream == PSD_STREAM_COPY_IN)
		is_back = true;
	if (is_back)
		psd_stand_in_hold_copy(NULL);
	return psd_device_cuda.copy(device, stream, to, from, bytes, err);
}

/* The share of the gradient that is copied before its first byte is sent. */
static void expect_copied(const char *system, double least_ratio, double most_ratio)
{
	struct psd_device_kind kind = psd_device_cuda;
	struct training *training = training_make("../../tests/data/trained_4mib.yaml", system, WORKERS, 1, 1, 1,
						  "iterations: 1, learning_rate: {policy: fixed, base: 0.001}");
	struct staging staging = {.left_sec = {INFINITY, INFINITY}};
	struct psd_error err = {.text = ""};
	struct psd_spans spans;

	kind.copy = copy_in_turn;
	training_on(training, &kind, true);
	cr_assert_eq(psd_spans_open(&spans, WORKERS, &err), PSD_OK, "%s", err.text);
	training->options.spans = &spans;
	training_finish(training, system);
	cr_assert_eq(psd_spans_tell(&spans, &training->made.program, find_first, &staging, &err), PSD_OK);
	cr_assert_eq(psd_spans_tell(&spans, &training->made.program, add_copies, &staging, &err), PSD_OK);
	for (unsigned w = 0; w < WORKERS; w++) {
		cr_expect_eq(staging.copied_bytes[w], GRADIENT_BYTES, "%s, worker %u", system, w);
		cr_expect_geq(staging.copied_before_bytes[w], least_ratio * GRADIENT_BYTES, "%s, worker %u: %g bytes",
			      system, w, staging.copied_before_bytes[w]);
		cr_expect_leq(staging.copied_before_bytes[w], most_ratio * GRADIENT_BYTES, "%s, worker %u: %g bytes",
			      system, w, staging.copied_before_bytes[w]);
	}
	psd_spans_close(&spans);
	training_free(training);
}

/* The first slice of 16 is. */
Test(cuda_staging, a_gradient_leaves_before_a_tenth_of_it_is_copied)
{
	expect_copied("schedule: wait-free, sync: ring, pipeline: 256KiB", 1.0 / 16, 0.1);
	expect_copied("schedule: wait-free, sync: ring", 1, 1);
}
