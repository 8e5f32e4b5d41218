/* PReLU. Its backward needs the input, so it does not work in place. */
#include "real/device/gpu/gpu.h"

/* Begins to multiply `diff` by the slopes at the input's values. With one slope for all channels, all elements belong
 * to one channel. */
static enum psd_status multiply(struct psd_gpu_layer *self, struct psd_gpu_values diff, struct psd_gpu_values to,
				bool adds, struct psd_error *err)
{
	const bool is_shared = self->model->settings.prelu.is_shared;
	const struct psd_gpu_prelu run = {
		.from = psd_gpu_value(self, psd_gpu_input(self, 0)),
		.diff = diff,
		.to = to,
		.channel = is_shared ? (struct psd_gpu_channel){1, 1} : psd_gpu_channel_of(self),
		.slopes = self->device->parameters[self->model->first_tensor],
		.adds = adds,
	};

	return psd_gpu_run_prelu(self->device, &run, self->blob->elements, err);
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
	return multiply(self, psd_gpu_value(self, psd_gpu_input(self, 0)), psd_gpu_value(self, self->blob), false, err);
}

static enum psd_status backward(struct psd_gpu_layer *self, struct psd_error *err)
{
	struct psd_gpu_blob *in = psd_gpu_input(self, 0);
	const struct psd_gpu_reduction sums = slope_sums(self);

	PSD_TRY(psd_gpu_reduce(self, &sums, err));
	if (!in->has_diff)
		return PSD_OK;
	return multiply(self, psd_gpu_diff(self, self->blob), psd_gpu_diff(self, in), psd_gpu_share(in), err);
}

const struct psd_gpu_kind psd_gpu_kind_prelu = {.prepare = prepare, .forward = forward, .backward = backward};
