/* Scale and shift for each channel: batch norm, Caffe's Scale, and the bias of other kinds. Batch norm with the
 * statistics of the batch is computed by cuDNN. With fixed statistics, and outside of training, it is only a scale and
 * a shift. */
#include "real/device/gpu/gpu.h"

enum psd_status psd_gpu_add_bias(struct psd_gpu_layer *self, const float *bias, struct psd_error *err)
{
	const struct psd_gpu_values values = psd_gpu_value(self, self->blob);
	struct psd_gpu_affine affine = {.from = values,
					.to = values,
					.channel = psd_gpu_channel_of(self),
					.beta = bias,
					.is_rectified = self->rectifies};

	if (self->rectifies)
		affine.slope = psd_gpu_slope_above(self);
	return psd_gpu_run_affine(self->device, &affine, self->blob->elements, err);
}

struct norm {
	struct psd_gpu_dnn_norm *dnn; /* batch norm of cuDNN; NULL if batch statistics are not used */
	/* mean, and 1 / sqrt(variance + epsilon), of the last training batch; NULL for Caffe's Scale */
	void *mean, *inverse;
	void *zeros; /* vector of zeros, used if the layer has no shift */
	/* memory for gradients that no one reads, or that cuDNN cannot write at the caller's address */
	void *dgamma, *dbeta;
};

static const float *gamma_of(const struct psd_gpu_layer *self)
{
	return self->model->settings.affine.has_scale ? self->device->parameters[self->model->first_tensor] : NULL;
}

/* Returns the number of the shift among the layer's tensors. */
static unsigned beta_place(const struct psd_gpu_layer *self)
{
	return self->model->settings.affine.has_scale ? 1 : 0;
}

static const float *beta_of(const struct psd_gpu_layer *self)
{
	return self->model->settings.affine.has_shift
		       ? self->device->parameters[self->model->first_tensor + beta_place(self)]
		       : NULL;
}

static enum psd_status prepare_scale(struct psd_gpu_layer *self, struct psd_error *err)
{
	const struct psd_gpu_reduction any = {.scale = 1.0f};

	psd_gpu_want_reduction(self, &any);
	return psd_gpu_declare(self, err);
}

static enum psd_status prepare_norm(struct psd_gpu_layer *self, struct psd_error *err)
{
	const uint64_t vector_bytes = self->model->shape.channels * sizeof(float);
	struct norm *norm = self->details;

	PSD_TRY(prepare_scale(self, err));
	PSD_TRY(psd_gpu_want(self->device, vector_bytes, &norm->mean, err));
	PSD_TRY(psd_gpu_want(self->device, vector_bytes, &norm->inverse, err));
	PSD_TRY(psd_gpu_want(self->device, vector_bytes, &norm->zeros, err));
	PSD_TRY(psd_gpu_want(self->device, vector_bytes, &norm->dgamma, err));
	PSD_TRY(psd_gpu_want(self->device, vector_bytes, &norm->dbeta, err));
	if (self->model->settings.affine.is_fixed)
		return PSD_OK;
	psd_gpu_want_ones(self->device, self->model->shape.channels);
	return psd_gpu_dnn_norm_open(self, &norm->dnn, err);
}

static enum psd_status normalise(struct psd_gpu_layer *self, const float *mean, struct psd_error *err)
{
	const struct norm *norm = self->details;
	const struct psd_gpu_affine affine = {.from = psd_gpu_value(self, psd_gpu_input(self, 0)),
					      .to = psd_gpu_value(self, self->blob),
					      .channel = psd_gpu_channel_of(self),
					      .mean = mean,
					      .inverse = norm->inverse,
					      .gamma = gamma_of(self),
					      .beta = beta_of(self)};

	return psd_gpu_run_affine(self->device, &affine, self->blob->elements, err);
}

static enum psd_status forward_scale(struct psd_gpu_layer *self, struct psd_error *err)
{
	return normalise(self, NULL, err);
}

static const float *running_mean(const struct psd_gpu_layer *self)
{
	return self->device->states[self->model->first_state];
}

static enum psd_status forward_fixed(struct psd_gpu_layer *self, struct psd_error *err)
{
	struct norm *norm = self->details;
	const struct psd_gpu_inverse inverse = {.variance = self->device->states[self->model->first_state + 1],
						.inverse = norm->inverse,
						.epsilon = (float)self->model->settings.affine.epsilon};

	PSD_TRY(psd_gpu_run_inverse(self->device, &inverse, self->model->shape.channels, err));
	return normalise(self, running_mean(self), err);
}

/* Returns the address of the tensor's gradient if cuDNN can write the final values there; otherwise `own`. */
static float *gradient_address(const struct psd_gpu_layer *self, bool has_tensor, unsigned index, void *instead)
{
	void *gradient = has_tensor ? self->gradients[index] : NULL;

	return gradient && psd_gpu_suits_dnn(gradient) && self->device->diff_scale == 1.0f ? gradient : instead;
}

/* Returns the vectors of a batch norm. cuDNN always needs scale and shift; if the layer has none, they are ones and
 * zeros, and their gradients are not used. */
static struct psd_gpu_norm_vectors vectors_of(const struct psd_gpu_layer *self)
{
	const struct psd_device *device = self->device;
	const struct psd_affine_settings *affine = &self->model->settings.affine;
	const struct norm *norm = self->details;

	return (struct psd_gpu_norm_vectors){
		.gamma = affine->has_scale ? gamma_of(self) : device->ones,
		.beta = affine->has_shift ? beta_of(self) : norm->zeros,
		.running_mean = device->states[self->model->first_state],
		.running_variance = device->states[self->model->first_state + 1],
		.mean = norm->mean,
		.inverse = norm->inverse,
		.dgamma = gradient_address(self, affine->has_scale, 0, norm->dgamma),
		.dbeta = gradient_address(self, affine->has_shift, beta_place(self), norm->dbeta),
	};
}

/* True if this iteration uses fixed statistics, not those of the batch. */
static bool is_fixed(const struct psd_gpu_layer *self)
{
	const struct norm *norm = self->details;

	return !norm->dnn || !self->device->batch.is_training;
}

/* True if the weight of a batch in the running statistics changes from iteration to iteration, so that the layer cannot
 * be recorded as a CUDA graph. */
static bool varies(const struct psd_gpu_layer *self)
{
	return self->model->settings.affine.is_average && !is_fixed(self);
}

static enum psd_status forward_norm(struct psd_gpu_layer *self, struct psd_error *err)
{
	const struct psd_gpu_norm_vectors vectors = vectors_of(self);
	const double share = psd_batch_share(&self->model->settings.affine, self->device->batch.iteration);
	const struct norm *norm = self->details;

	if (is_fixed(self))
		return forward_fixed(self, err);
	return psd_gpu_dnn_norm_forward(self, norm->dnn, &vectors, share, err);
}

static enum psd_status differentiate_vectors(struct psd_gpu_layer *self, const float *mean, struct psd_error *err)
{
	const struct norm *norm = self->details;

	return psd_gpu_differentiate_vectors(self, PSD_GPU_SUM_NORMALISED, mean, norm->inverse, err);
}

/* Computes the gradients of batch norm with statistics that do not depend on the input. */
static enum psd_status backward_affine(struct psd_gpu_layer *self, const float *mean, struct psd_error *err)
{
	const struct norm *norm = self->details;
	struct psd_gpu_blob *in = psd_gpu_input(self, 0);
	struct psd_gpu_affine affine = {.from = psd_gpu_diff(self, self->blob),
					.to = psd_gpu_diff(self, in),
					.channel = psd_gpu_channel_of(self),
					.inverse = norm->inverse,
					.gamma = gamma_of(self)};

	PSD_TRY(differentiate_vectors(self, mean, err));
	if (!in->has_diff)
		return PSD_OK;
	affine.adds = psd_gpu_share(in);
	return psd_gpu_run_affine(self->device, &affine, in->elements, err);
}

static enum psd_status backward_scale(struct psd_gpu_layer *self, struct psd_error *err)
{
	return backward_affine(self, NULL, err);
}

static enum psd_status bring_gradient(const struct psd_gpu_layer *self, bool has_tensor, unsigned index,
				      const float *from, struct psd_error *err)
{
	const struct psd_gpu_convert convert = {.from = psd_gpu_floats(from),
						.to = psd_gpu_floats(has_tensor ? self->gradients[index] : NULL),
						.scale = 1.0f / self->device->diff_scale};

	if (!has_tensor || convert.to.data == from)
		return PSD_OK;
	return psd_gpu_run_convert(self->device, &convert, self->model->shape.channels, err);
}

/* Computes the gradients of batch norm by cuDNN. The gradients of a bucket follow each other without gaps, so the
 * address of one may not be aligned as cuDNN needs it. Then, and if gradients must be scaled, cuDNN writes to other
 * memory, which is copied. */
static enum psd_status differentiate_norm(struct psd_gpu_layer *self, struct psd_error *err)
{
	const struct psd_affine_settings *affine = &self->model->settings.affine;
	const struct psd_gpu_norm_vectors vectors = vectors_of(self);
	const struct norm *norm = self->details;

	PSD_TRY(psd_gpu_dnn_norm_backward(self, norm->dnn, &vectors, err));
	PSD_TRY(bring_gradient(self, affine->has_scale, 0, vectors.dgamma, err));
	return bring_gradient(self, affine->has_shift, beta_place(self), vectors.dbeta, err);
}

static enum psd_status backward_norm(struct psd_gpu_layer *self, struct psd_error *err)
{
	const struct norm *norm = self->details;

	if (is_fixed(self))
		return backward_affine(self, running_mean(self), err);
	if (!psd_gpu_input(self, 0)->has_diff)
		return differentiate_vectors(self, norm->mean, err);
	return differentiate_norm(self, err);
}

static void close_norm(struct psd_gpu_layer *self)
{
	struct norm *norm = self->details;

	psd_gpu_dnn_norm_close(norm->dnn);
}

const struct psd_gpu_kind psd_gpu_kind_batch_norm = {.prepare = prepare_norm,
						     .forward = forward_norm,
						     .backward = backward_norm,
						     .varies = varies,
						     .close = close_norm,
						     .details_bytes = sizeof(struct norm)};
const struct psd_gpu_kind psd_gpu_kind_scale = {.prepare = prepare_scale,
						.forward = forward_scale,
						.backward = backward_scale,
						.details_bytes = sizeof(struct norm)};
