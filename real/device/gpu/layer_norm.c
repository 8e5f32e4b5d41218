/* Layer normalisation over the channels of each position, and RMSNorm, which is the same with a mean of 0. */
#include "real/device/gpu/gpu.h"

struct norm {
	bool is_centred;
	/* mean, and 1 / sqrt(variance + epsilon), of each position, kept from forward to backward; shape (positions)
	 * each */
	void *mean, *inverse;
};

static enum psd_status prepare(struct psd_gpu_layer *self, bool is_centred, struct psd_error *err)
{
	const struct psd_gpu_reduction any = {.scale = 1.0f};
	struct norm *norm = self->details;

	PSD_TRY(psd_gpu_declare(self, err));
	norm->is_centred = is_centred;
	psd_gpu_want_reduction(self, &any);
	psd_gpu_want_sums(self->device, 2 * psd_gpu_batch_positions(self) * PSD_GPU_PARTS);
	PSD_TRY(psd_gpu_want(self->device, psd_gpu_batch_positions(self) * sizeof(float), &norm->mean, err));
	return psd_gpu_want(self->device, psd_gpu_batch_positions(self) * sizeof(float), &norm->inverse, err);
}

static enum psd_status prepare_layer_norm(struct psd_gpu_layer *self, struct psd_error *err)
{
	return prepare(self, true, err);
}

static enum psd_status prepare_rms_norm(struct psd_gpu_layer *self, struct psd_error *err)
{
	return prepare(self, false, err);
}

static struct psd_gpu_layer_norm norm_of(const struct psd_gpu_layer *self)
{
	const struct psd_affine_settings *settings = &self->model->settings.affine;
	float *const *tensors = self->device->parameters + self->model->first_tensor, *sums = self->device->sums;
	const struct norm *norm = self->details;

	return (struct psd_gpu_layer_norm){.from = psd_gpu_value(self, psd_gpu_input(self, 0)),
					   .to = psd_gpu_value(self, self->blob),
					   .channel = psd_gpu_channel_of(self),
					   .is_centred = norm->is_centred,
					   .gamma = settings->has_scale ? tensors[0] : NULL,
					   .beta = settings->has_shift ? tensors[settings->has_scale] : NULL,
					   .epsilon = (float)settings->epsilon,
					   .mean = norm->mean,
					   .inverse = norm->inverse,
					   .partial = {sums, sums + psd_gpu_batch_positions(self) * PSD_GPU_PARTS}};
}

static enum psd_status forward(struct psd_gpu_layer *self, struct psd_error *err)
{
	const struct psd_gpu_layer_norm norm = norm_of(self);
	const uint64_t parts = psd_gpu_batch_positions(self) * PSD_GPU_PARTS;

	if (norm.is_centred)
		PSD_TRY(psd_gpu_run_layer_norm_sums(self->device, &norm, parts, err));
	PSD_TRY(psd_gpu_run_layer_norm_squares(self->device, &norm, parts, err));
	return psd_gpu_run_layer_norm_end(self->device, &norm, parts, err);
}

static enum psd_status differentiate_input(struct psd_gpu_layer *self, struct psd_gpu_blob *in, struct psd_error *err)
{
	const uint64_t parts = psd_gpu_batch_positions(self) * PSD_GPU_PARTS;
	struct psd_gpu_layer_norm norm = norm_of(self);

	norm.diff = psd_gpu_diff(self, self->blob);
	norm.to = psd_gpu_diff(self, in);
	norm.adds = psd_gpu_share(in);
	PSD_TRY(psd_gpu_run_layer_norm_dots(self->device, &norm, parts, err));
	return psd_gpu_run_layer_norm_back(self->device, &norm, parts, err);
}

static enum psd_status backward(struct psd_gpu_layer *self, struct psd_error *err)
{
	struct psd_gpu_blob *in = psd_gpu_input(self, 0);
	const struct norm *norm = self->details;

	PSD_TRY(psd_gpu_differentiate_vectors(self, PSD_GPU_SUM_NORMALISED_POSITIONS, norm->mean, norm->inverse, err));
	return in->has_diff ? differentiate_input(self, in, err) : PSD_OK;
}

#define KIND(name)                                                                                                     \
	const struct psd_gpu_kind psd_gpu_kind_##name = {.prepare = prepare_##name,                                    \
							 .forward = forward,                                           \
							 .backward = backward,                                         \
							 .details_bytes = sizeof(struct norm)}

KIND(layer_norm);
KIND(rms_norm);
