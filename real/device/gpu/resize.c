/* Bilinear interpolation to another size. */
#include "real/device/gpu/gpu.h"

static enum psd_status forward(struct psd_gpu_layer *self, struct psd_error *err)
{
	const struct psd_gpu_resize run = {.from = psd_gpu_value(self, psd_gpu_input(self, 0)),
					   .to = psd_gpu_value(self, self->blob),
					   .in = psd_gpu_maps_of(psd_gpu_below(self, 0)),
					   .out = psd_gpu_maps_of(self)};

	return psd_gpu_run_resize(self->device, &run, self->blob->elements, err);
}

static enum psd_status backward(struct psd_gpu_layer *self, struct psd_error *err)
{
	struct psd_gpu_blob *in = psd_gpu_input(self, 0);
	const struct psd_gpu_resize_back run = {.diff = psd_gpu_diff(self, self->blob),
						.to = psd_gpu_diff(self, in),
						.in = psd_gpu_maps_of(psd_gpu_below(self, 0)),
						.out = psd_gpu_maps_of(self),
						.adds = psd_gpu_share(in)};

	return psd_gpu_run_resize_back(self->device, &run, in->elements, err);
}

const struct psd_gpu_kind psd_gpu_kind_resize = {.prepare = psd_gpu_declare, .forward = forward, .backward = backward};
