/* The images, copied as plain floats into one of two slots. */
#include "real/device/gpu/gpu.h"

static bool lies_as_it_comes(const struct psd_gpu_layer *self)
{
	return self->device->type == PSD_GPU_FLOAT &&
	       (!self->device->is_channels_last || self->model->shape.channels == 1 || psd_gpu_positions(self) == 1);
}

static enum psd_status prepare(struct psd_gpu_layer *self, struct psd_error *err)
{
	if (self->number != 0)
		return psd_error_set(
			err, PSD_EINVAL, PSD_NOWHERE,
			"layer '%.80s' is a second input, cuda supports only one, which is the first layer",
			self->model->name);
	PSD_TRY(psd_gpu_declare(self, err));
	if (lies_as_it_comes(self))
		return PSD_OK;
	return psd_gpu_want(self->device, self->own.bytes, &self->own.value, err);
}

static const float *images_of(const struct psd_device *device)
{
	return device->slots[device->slot].images;
}

void psd_gpu_show_images(struct psd_device *device)
{
	struct psd_gpu_layer *input = &device->layers[0];

	if (lies_as_it_comes(input))
		input->own.value = device->slots[device->slot].images;
}

static enum psd_status forward(struct psd_gpu_layer *self, struct psd_error *err)
{
	if (lies_as_it_comes(self))
		return PSD_OK;
	return psd_gpu_move_views(self,
				  (struct psd_gpu_move){.from = psd_gpu_floats(images_of(self->device)),
							.to = psd_gpu_value(self, self->blob),
							.from_view = psd_gpu_view_plain(self),
							.to_view = psd_gpu_view_of(self),
							.scale = 1.0f},
				  err);
}

/* Does nothing: there is no layer below. */
static enum psd_status backward(struct psd_gpu_layer *self, struct psd_error *err)
{
	(void)self, (void)err;
	return PSD_OK;
}

const struct psd_gpu_kind psd_gpu_kind_input = {.prepare = prepare, .forward = forward, .backward = backward};
