/* The images, copied as plain floats into one of two slots. */
#include "real/device/gpu/gpu.h"

static bool lies_as_it_comes(const struct psd_cuda_layer *self)
{
	return self->device->type == PSD_CUDA_FLOAT &&
	       (!self->device->is_channels_last || self->model->shape.channels == 1 || psd_cuda_positions(self) == 1);
}

static enum psd_status prepare(struct psd_cuda_layer *self, struct psd_error *err)
{
	if (self->number != 0)
		return psd_error_set(
			err, PSD_EINVAL, PSD_NOWHERE,
			"layer '%.80s' is a second input, cuda supports only one, which is the first layer",
			self->model->name);
	PSD_TRY(psd_cuda_declare(self, err));
	if (lies_as_it_comes(self))
		return PSD_OK;
	return psd_cuda_want(self->device, self->own.bytes, &self->own.value, err);
}

static const float *images_of(const struct psd_device *device)
{
	return device->slots[device->slot].images;
}

void psd_cuda_show_images(struct psd_device *device)
{
	struct psd_cuda_layer *input = &device->layers[0];

	if (lies_as_it_comes(input))
		input->own.value = device->slots[device->slot].images;
}

static enum psd_status forward(struct psd_cuda_layer *self, struct psd_error *err)
{
	if (lies_as_it_comes(self))
		return PSD_OK;
	return psd_cuda_move_views(self,
				   (struct psd_cuda_move){.from = psd_cuda_floats(images_of(self->device)),
							  .to = psd_cuda_value(self, self->blob),
							  .from_view = psd_cuda_view_plain(self),
							  .to_view = psd_cuda_view_of(self),
							  .scale = 1.0f},
				   err);
}

/* Does nothing: there is no layer below. */
static enum psd_status backward(struct psd_cuda_layer *self, struct psd_error *err)
{
	(void)self, (void)err;
	return PSD_OK;
}

const struct psd_cuda_kind psd_cuda_kind_input = {.prepare = prepare, .forward = forward, .backward = backward};
