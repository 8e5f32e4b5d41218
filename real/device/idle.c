/* The device that computes nothing. Its functions use no state, so a device for measurements can use them with a state
 * of its own. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "real/device/device.h"

static enum psd_status open_device(struct psd_device **device, const struct psd_device_options *options,
				   struct psd_error *err)
{
	(void)options, (void)err;
	*device = NULL;
	return PSD_OK;
}

static void close_device(struct psd_device *device)
{
	(void)device;
}

static enum psd_status load(struct psd_device *device, const struct psd_graph *graph,
			    const struct psd_network_options *options, float *const parameters[],
			    float *const gradients[], struct psd_error *err)
{
	(void)device, (void)options, (void)parameters, (void)err;
	/* writes every page: unwritten pages share one zero page, which stays in the cache and is too cheap to send */
	for (unsigned t = 0; t < graph->n_tensors; t++)
		if (gradients[t])
			memset(gradients[t], 0, graph->tensors[t].elements * sizeof(*gradients[t]));
	return PSD_OK;
}

static enum psd_status begin(struct psd_device *device, const struct psd_batch *batch, struct psd_error *err)
{
	(void)device, (void)batch, (void)err;
	return PSD_OK;
}

static enum psd_status pass(struct psd_device *device, unsigned layer, struct psd_error *err)
{
	(void)device, (void)layer, (void)err;
	return PSD_OK;
}

static double loss(const struct psd_device *device)
{
	(void)device;
	return 0.0;
}

static uint32_t correct(const struct psd_device *device)
{
	(void)device;
	return 0;
}

/* Factors and gradients stay the zeros that their memory starts with. */
static enum psd_status keep_factors(struct psd_device *device, unsigned layer, const struct psd_factors *kept,
				    struct psd_error *err)
{
	(void)device, (void)layer, (void)kept, (void)err;
	return PSD_OK;
}

static enum psd_status rebuild(struct psd_device *device, const struct psd_factors *factors, uint32_t samples,
			       uint32_t rows, uint32_t columns, float *gradient, float *bias_gradient,
			       struct psd_error *err)
{
	(void)device, (void)factors, (void)samples, (void)rows, (void)columns, (void)gradient, (void)bias_gradient,
		(void)err;
	return PSD_OK;
}

static uint64_t memory_bytes(const struct psd_device *device)
{
	(void)device;
	return 0;
}

static void describe(const struct psd_device *device, char text[PSD_DEVICE_TEXT_MAX])
{
	(void)device;
	snprintf(text, PSD_DEVICE_TEXT_MAX, "idle");
}

static unsigned count(struct psd_error *why)
{
	(void)why;
	return 1;
}

const struct psd_device_kind psd_device_idle = {
	.name = "idle",
	.count = count,
	.open = open_device,
	.close = close_device,
	.load = load,
	.begin = begin,
	.forward = pass,
	.backward = pass,
	.loss = loss,
	.correct = correct,
	.describe = describe,
	.keep_factors = keep_factors,
	.rebuild = rebuild,
	.memory_bytes = memory_bytes,
	.kernels = &psd_kernels_here,
};
