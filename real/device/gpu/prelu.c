/* PReLU. Its backward needs the input, so it does not work in place. */
#include "real/device/gpu/gpu.h"

/* Returns the rule that finds an element's channel; with one slope for all channels, all elements belong to one
 * channel. */
static struct psd_gpu_channel channel_of(const struct psd_gpu_layer *self)
{
	return self->model->settings.prelu.is_shared ? (struct psd_gpu_channel){1, 1} : psd_gpu_channel_of(self);
}

static const float *slopes_of(const struct psd_gpu_layer *self)
{
	return self->device->parameters[self->model->first_tensor];
}

static struct psd_gpu_reduction slope_sums(const struct psd_gpu_layer *self)
{
	return (struct psd_gpu_reduction){.left = psd_gpu_diff(self, self->blob),
					  .right = psd_gpu_value(self, psd_gpu_input(self, 0)),
					  .summand = PSD_GPU_SUM_BELOW_ZERO,
					  .is_over_all = self->model->settings.prelu.is_shared,
					  .to = psd_gpu_floats(self->gradients[0]),
					  .scale = 1.0f / self->device->diff_scale};
}

static enum psd_status prepare(struct psd_gpu_layer *self, struct psd_error *err)
{
	const struct psd_gpu_reduction sums = {.is_over_all = self->model->settings.prelu.is_shared};

	PSD_TRY(psd_gpu_declare(self, err));
	psd_gpu_want_reduction(self, &sums);
	return PSD_OK;
}

static enum psd_status forward(struct psd_gpu_layer *self, struct psd_error *err)
{
	const struct psd_gpu_prelu run = {.from = psd_gpu_value(self, psd_gpu_input(self, 0)),
					  .to = psd_gpu_value(self, self->blob),
					  .channel = channel_of(self),
					  .slopes = slopes_of(self)};

	return psd_gpu_run_prelu(self->device, &run, self->blob->elements, err);
}

static enum psd_status backward(struct psd_gpu_layer *self, struct psd_error *err)
{
	struct psd_gpu_blob *in = psd_gpu_input(self, 0);
	const struct psd_gpu_reduction sums = slope_sums(self);
	struct psd_gpu_prelu_back run = {.from = psd_gpu_value(self, in),
					 .diff = psd_gpu_diff(self, self->blob),
					 .to = psd_gpu_diff(self, in),
					 .channel = channel_of(self),
					 .slopes = slopes_of(self)};

	PSD_TRY(psd_gpu_reduce(self, &sums, err));
	if (!in->has_diff)
		return PSD_OK;
	run.adds = psd_gpu_share(in);
	return psd_gpu_run_prelu_back(self->device, &run, in->elements, err);
}

const struct psd_gpu_kind psd_gpu_kind_prelu = {.prepare = prepare, .forward = forward, .backward = backward};
