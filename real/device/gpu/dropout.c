/* Dropout whose mask is a function of seed, iteration, sample, layer and element, equal to the CPU's. Backward draws
 * the mask again, which is cheaper than storing it. */
#include <math.h>

#include "real/device/gpu/gpu.h"

static enum psd_status prepare(struct psd_gpu_layer *self, struct psd_error *err)
{
	self->device->counts = true;
	if (!psd_gpu_may_work_in_place(self))
		return psd_gpu_declare(self, err);
	psd_gpu_declare_in_place(self);
	return PSD_OK;
}

enum psd_status psd_gpu_run_drop(struct psd_gpu_layer *self, struct psd_gpu_values from, struct psd_gpu_values to,
				 struct psd_gpu_maps maps, double ratio, bool adds, struct psd_error *err)
{
	const struct psd_device *device = self->device;
	const uint64_t quads = ((uint64_t)maps.channels * maps.height * maps.width + 3) / 4;
	const struct psd_gpu_dropout run = {.from = from,
					    .to = to,
					    .maps = maps,
					    .seed = device->network.seed,
					    .counters = device->counters,
					    .layer = self->number,
					    .threshold = (uint32_t)fmin(ratio * 0x1p32, 0x1p32 - 1),
					    .scale = (float)(1 / (1 - ratio)),
					    .adds = adds};

	return psd_gpu_run_dropout(self->device, &run, device->network.batch * quads, err);
}

static enum psd_status drop(struct psd_gpu_layer *self, struct psd_gpu_values from, struct psd_gpu_values to, bool adds,
			    struct psd_error *err)
{
	return psd_gpu_run_drop(self, from, to, psd_gpu_maps_of(self), self->model->settings.dropout.ratio, adds, err);
}

static enum psd_status forward(struct psd_gpu_layer *self, struct psd_error *err)
{
	const struct psd_gpu_blob *in = psd_gpu_input(self, 0);
	const struct psd_gpu_values from = psd_gpu_value(self, in), to = psd_gpu_value(self, self->blob);

	if (self->device->batch.is_training)
		return drop(self, from, to, false, err);
	if (in == self->blob)
		return PSD_OK;
	return psd_gpu_copy(self->device, PSD_STREAM_COMPUTE, to.data, from.data, in->bytes, err);
}

static enum psd_status backward(struct psd_gpu_layer *self, struct psd_error *err)
{
	struct psd_gpu_blob *in = psd_gpu_input(self, 0);
	const bool adds = in != self->blob && psd_gpu_share(in);

	if (!in->has_diff)
		return PSD_OK;
	return drop(self, psd_gpu_diff(self, self->blob), psd_gpu_diff(self, in), adds, err);
}

const struct psd_gpu_kind psd_gpu_kind_dropout = {
	.prepare = prepare, .forward = forward, .backward = backward, .leaves_signs = true};
