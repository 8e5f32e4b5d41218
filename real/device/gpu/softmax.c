/* Softmax over the channels of each position. */
#include "real/device/gpu/gpu.h"

/* Returns the number of positions of the batch: an index of the kernels handles a position with all its channels. */
static uint64_t positions_of(const struct psd_gpu_layer *self)
{
	return self->blob->elements / self->model->shape.channels;
}

static enum psd_status forward(struct psd_gpu_layer *self, struct psd_error *err)
{
	const struct psd_gpu_softmax run = {.from = psd_gpu_value(self, psd_gpu_input(self, 0)),
					    .to = psd_gpu_value(self, self->blob),
					    .maps = psd_gpu_maps_of(self)};

	return psd_gpu_run_softmax(self->device, &run, positions_of(self), err);
}

static enum psd_status backward(struct psd_gpu_layer *self, struct psd_error *err)
{
	struct psd_gpu_blob *in = psd_gpu_input(self, 0);
	const struct psd_gpu_softmax_back run = {.result = psd_gpu_value(self, self->blob),
						 .diff = psd_gpu_diff(self, self->blob),
						 .to = psd_gpu_diff(self, in),
						 .maps = psd_gpu_maps_of(self),
						 .adds = psd_gpu_share(in)};

	return psd_gpu_run_softmax_back(self->device, &run, positions_of(self), err);
}

const struct psd_gpu_kind psd_gpu_kind_softmax = {
	.prepare = psd_gpu_declare, .forward = forward, .backward = backward, .keeps = PSD_KEEPS_ALL};
