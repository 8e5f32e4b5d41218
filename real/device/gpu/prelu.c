/* PReLU. Its backward needs the input, so it does not work in place. */
#include "real/device/gpu/gpu.h"

/* Returns the rule that finds an element's channel; with one slope for all channels, all elements belong to one
 * channel. */
static struct psd_cuda_channel channel_of(const struct psd_cuda_layer *self)
{
	return self->model->settings.prelu.is_shared ? (struct psd_cuda_channel){1, 1} : psd_cuda_channel_of(self);
}

static const float *slopes_of(const struct psd_cuda_layer *self)
{
	return self->device->parameters[self->model->first_tensor];
}

static struct psd_cuda_reduction slope_sums(const struct psd_cuda_layer *self)
{
	return (struct psd_cuda_reduction){.left = psd_cuda_diff(self, self->blob),
					   .right = psd_cuda_value(self, psd_cuda_input(self, 0)),
					   .summand = PSD_CUDA_SUM_BELOW_ZERO,
					   .is_over_all = self->model->settings.prelu.is_shared,
					   .to = psd_cuda_floats(self->gradients[0]),
					   .scale = 1.0f / self->device->diff_scale};
}

static enum psd_status prepare(struct psd_cuda_layer *self, struct psd_error *err)
{
	const struct psd_cuda_reduction sums = {.is_over_all = self->model->settings.prelu.is_shared};

	PSD_TRY(psd_cuda_declare(self, err));
	psd_cuda_want_reduction(self, &sums);
	return PSD_OK;
}

static enum psd_status forward(struct psd_cuda_layer *self, struct psd_error *err)
{
	const struct psd_cuda_prelu run = {.from = psd_cuda_value(self, psd_cuda_input(self, 0)),
					   .to = psd_cuda_value(self, self->blob),
					   .channel = channel_of(self),
					   .slopes = slopes_of(self)};

	return psd_cuda_run_prelu(self->device, &run, self->blob->elements, err);
}

static enum psd_status backward(struct psd_cuda_layer *self, struct psd_error *err)
{
	struct psd_cuda_blob *in = psd_cuda_input(self, 0);
	const struct psd_cuda_reduction sums = slope_sums(self);
	struct psd_cuda_prelu_back run = {.from = psd_cuda_value(self, in),
					  .diff = psd_cuda_diff(self, self->blob),
					  .to = psd_cuda_diff(self, in),
					  .channel = channel_of(self),
					  .slopes = slopes_of(self)};

	PSD_TRY(psd_cuda_reduce(self, &sums, err));
	if (!in->has_diff)
		return PSD_OK;
	run.adds = psd_cuda_share(in);
	return psd_cuda_run_prelu_back(self->device, &run, in->elements, err);
}

const struct psd_cuda_kind psd_cuda_kind_prelu = {.prepare = prepare, .forward = forward, .backward = backward};
