/* Learned position values, added to every sample, in place if the input has no other reader. */
#include "real/device/gpu/gpu.h"

static enum psd_status prepare(struct psd_gpu_layer *self, struct psd_error *err)
{
	if (!psd_gpu_may_work_in_place(self))
		return psd_gpu_declare(self, err);
	psd_gpu_declare_in_place(self);
	return PSD_OK;
}

static enum psd_status forward(struct psd_gpu_layer *self, struct psd_error *err)
{
	const struct psd_gpu_position run = {.from = psd_gpu_value(self, psd_gpu_input(self, 0)),
					     .to = psd_gpu_value(self, self->blob),
					     .channel = psd_gpu_channel_of(self),
					     .positions = psd_gpu_positions(self),
					     .weight = self->device->parameters[self->model->first_tensor]};

	return psd_gpu_run_position(self->device, &run, self->blob->elements, err);
}

/* Begins to copy the gradient of the output to the input's, or to add it. */
static enum psd_status hand_on(struct psd_gpu_layer *self, struct psd_gpu_blob *in, struct psd_error *err)
{
	const struct psd_gpu_convert run = {.from = psd_gpu_diff(self, self->blob),
					    .to = psd_gpu_diff(self, in),
					    .scale = 1.0f,
					    .adds = psd_gpu_share(in)};

	return psd_gpu_run_convert(self->device, &run, in->elements, err);
}

static enum psd_status backward(struct psd_gpu_layer *self, struct psd_error *err)
{
	const struct psd_device *device = self->device;
	struct psd_gpu_blob *in = psd_gpu_input(self, 0);
	const struct psd_gpu_position_back run = {.diff = psd_gpu_diff(self, self->blob),
						  .channel = psd_gpu_channel_of(self),
						  .positions = psd_gpu_positions(self),
						  .batch = device->network.batch,
						  .dweight = self->gradients[0],
						  .scale = 1.0f / device->diff_scale};
	const enum psd_status status = psd_gpu_run_position_back(
		self->device, &run, (uint64_t)run.positions * self->model->shape.channels, err);

	return status || !in->has_diff || in == self->blob ? status : hand_on(self, in, err);
}

const struct psd_gpu_kind psd_gpu_kind_position = {.prepare = prepare, .forward = forward, .backward = backward};
