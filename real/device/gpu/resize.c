/* Bilinear interpolation to another size. */
#include "real/device/gpu/gpu.h"

static enum psd_status forward(struct psd_cuda_layer *self, struct psd_error *err)
{
	const struct psd_cuda_resize run = {.from = psd_cuda_value(self, psd_cuda_input(self, 0)),
					    .to = psd_cuda_value(self, self->blob),
					    .in = psd_cuda_maps_of(psd_cuda_below(self, 0)),
					    .out = psd_cuda_maps_of(self)};

	return psd_cuda_run_resize(self->device, &run, self->blob->elements, err);
}

static enum psd_status backward(struct psd_cuda_layer *self, struct psd_error *err)
{
	struct psd_cuda_blob *in = psd_cuda_input(self, 0);
	const struct psd_cuda_resize_back run = {.diff = psd_cuda_diff(self, self->blob),
						 .to = psd_cuda_diff(self, in),
						 .in = psd_cuda_maps_of(psd_cuda_below(self, 0)),
						 .out = psd_cuda_maps_of(self),
						 .adds = psd_cuda_share(in)};

	return psd_cuda_run_resize_back(self->device, &run, in->elements, err);
}

const struct psd_cuda_kind psd_cuda_kind_resize = {
	.prepare = psd_cuda_declare, .forward = forward, .backward = backward};
