/* Learned position values, added to every sample, in place if the input has no other reader. */
#include "real/device/gpu/gpu.h"

static enum psd_status prepare(struct psd_cuda_layer *self, struct psd_error *err)
{
	if (!psd_cuda_may_work_in_place(self))
		return psd_cuda_declare(self, err);
	psd_cuda_declare_in_place(self);
	return PSD_OK;
}

static enum psd_status forward(struct psd_cuda_layer *self, struct psd_error *err)
{
	const struct psd_cuda_position run = {.from = psd_cuda_value(self, psd_cuda_input(self, 0)),
					      .to = psd_cuda_value(self, self->blob),
					      .channel = psd_cuda_channel_of(self),
					      .positions = psd_cuda_positions(self),
					      .weight = self->device->parameters[self->model->first_tensor]};

	return psd_cuda_run_position(self->device, &run, self->blob->elements, err);
}

/* Begins to copy the gradient of the output to the input's, or to add it. */
static enum psd_status hand_on(struct psd_cuda_layer *self, struct psd_cuda_blob *in, struct psd_error *err)
{
	const struct psd_cuda_convert run = {.from = psd_cuda_diff(self, self->blob),
					     .to = psd_cuda_diff(self, in),
					     .scale = 1.0f,
					     .adds = psd_cuda_share(in)};

	return psd_cuda_run_convert(self->device, &run, in->elements, err);
}

static enum psd_status backward(struct psd_cuda_layer *self, struct psd_error *err)
{
	const struct psd_device *device = self->device;
	struct psd_cuda_blob *in = psd_cuda_input(self, 0);
	const struct psd_cuda_position_back run = {.diff = psd_cuda_diff(self, self->blob),
						   .channel = psd_cuda_channel_of(self),
						   .positions = psd_cuda_positions(self),
						   .batch = device->network.batch,
						   .dweight = self->gradients[0],
						   .scale = 1.0f / device->diff_scale};
	const enum psd_status status = psd_cuda_run_position_back(
		self->device, &run, (uint64_t)run.positions * self->model->shape.channels, err);

	return status || !in->has_diff || in == self->blob ? status : hand_on(self, in, err);
}

const struct psd_cuda_kind psd_cuda_kind_position = {.prepare = prepare, .forward = forward, .backward = backward};
