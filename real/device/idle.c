/* The backend without compute. It holds nothing, so that one that measures can use its slots with state of its own. */
#include <stddef.h>
#include <string.h>

#include "real/device/compute.h"

static enum psd_status open_compute(struct psd_compute **compute, const struct psd_graph *graph,
				    const struct psd_compute_options *options, float *const parameters[],
				    float *const gradients[], struct psd_error *err)
{
	(void)options, (void)parameters, (void)err;
	/* pages that nobody has written are all one, always in the cache: sending it would cost too little */
	for (unsigned t = 0; t < graph->n_tensors; t++)
		if (gradients[t])
			memset(gradients[t], 0, graph->tensors[t].elements * sizeof(*gradients[t]));
	*compute = NULL;
	return PSD_OK;
}

static void begin(struct psd_compute *compute, const struct psd_batch *batch)
{
	(void)compute, (void)batch;
}

static enum psd_status pass(struct psd_compute *compute, unsigned layer, struct psd_error *err)
{
	(void)compute, (void)layer, (void)err;
	return PSD_OK;
}

static double loss(const struct psd_compute *compute)
{
	(void)compute;
	return 0.0;
}

static uint32_t correct(const struct psd_compute *compute)
{
	(void)compute;
	return 0;
}

static uint64_t memory_bytes(const struct psd_compute *compute)
{
	(void)compute;
	return 0;
}

static void close_compute(struct psd_compute *compute)
{
	(void)compute;
}

const struct psd_compute_backend psd_compute_idle = {
	.name = "idle",
	.open = open_compute,
	.begin = begin,
	.forward = pass,
	.backward = pass,
	.loss = loss,
	.correct = correct,
	.memory_bytes = memory_bytes,
	.close = close_compute,
};
