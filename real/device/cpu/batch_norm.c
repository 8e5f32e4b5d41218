/* Batch normalisation, and Caffe's Scale: the same with mean 0 and variance 1 as fixed statistics. */
#include <float.h>

#include "real/device/cpu/cpu.h"

struct batch_norm {
	struct psd_cpu_twins training; /* first member, because psd_cpu_forward() executes it */
	struct psd_cpu_op inference;
	float epsilon;
	/* statistics are fixed, so training and inference compute the same */
	bool is_fixed;
	/* mean and variance of this batch; for Caffe's Scale 0 and 1 */
	void *mean, *variance;
	void *const *used_mean, *const *used_variance; /* slots of the mean and variance that training uses */
	/* slots of the running mean and variance, which are states of the network */
	void *const *running_mean, *const *running_variance;
	/* slots of scale and shift and of their gradients; NULL if the layer has none */
	void *const *gamma, *const *beta, *const *dgamma, *const *dbeta;
};

static void find_tensors(const struct psd_cpu_layer *self, struct batch_norm *norm)
{
	const struct psd_layer *model = self->model;
	const unsigned gamma = model->first_tensor, beta = gamma + (model->settings.affine.has_scale ? 1 : 0);

	if (model->settings.affine.has_scale) {
		norm->gamma = &self->device->parameters[gamma];
		norm->dgamma = &self->gradients[0];
	}
	if (model->settings.affine.has_shift) {
		norm->beta = &self->device->parameters[beta];
		norm->dbeta = &self->gradients[beta - gamma];
	}
}

static unsigned flags_of(const struct batch_norm *norm, bool is_fixed)
{
	return (is_fixed ? dnnl_use_global_stats : 0u) | (norm->gamma ? dnnl_use_scale : 0u) |
	       (norm->beta ? dnnl_use_shift : 0u);
}

static enum psd_status prepare_forward(struct psd_cpu_layer *self, bool is_inference, struct psd_error *err)
{
	struct batch_norm *norm = self->details;
	struct psd_cpu_op *op = is_inference ? &norm->inference : &norm->training.forward;
	struct psd_cpu_blob *in = psd_cpu_input(self, 0), *out = self->blob;
	const dnnl_dims_t channels = {in->desc.dims[1]};
	dnnl_memory_desc_t vector;
	dnnl_batch_normalization_desc_t desc;
	const dnnl_status_t failure = dnnl_batch_normalization_forward_desc_init(
		&desc, is_inference ? dnnl_forward_inference : dnnl_forward_training, &in->desc, norm->epsilon,
		flags_of(norm, is_inference || norm->is_fixed));

	dnnl_memory_desc_init_by_tag(&vector, 1, channels, dnnl_f32, dnnl_x);
	return psd_cpu_op_make(
		op, self, "forward", failure, &desc, NULL,
		(const struct psd_cpu_arg[]){
			{DNNL_ARG_SRC, &in->desc, &in->value},
			{DNNL_ARG_DST, &out->desc, &out->value},
			{DNNL_ARG_MEAN, &vector, is_inference ? norm->running_mean : norm->used_mean},
			{DNNL_ARG_VARIANCE, &vector, is_inference ? norm->running_variance : norm->used_variance},
			{DNNL_ARG_SCALE, &vector, norm->gamma},
			{DNNL_ARG_SHIFT, &vector, norm->beta},
		},
		6, err);
}

static enum psd_status prepare_backward(struct psd_cpu_layer *self, struct psd_error *err)
{
	struct batch_norm *norm = self->details;
	struct psd_cpu_blob *in = psd_cpu_input(self, 0), *out = self->blob;
	const dnnl_dims_t channels = {in->desc.dims[1]};
	dnnl_memory_desc_t vector;
	dnnl_batch_normalization_desc_t desc;
	const dnnl_status_t failure = dnnl_batch_normalization_backward_desc_init(
		&desc, norm->gamma || norm->beta ? dnnl_backward : dnnl_backward_data, &out->desc, &in->desc,
		norm->epsilon, flags_of(norm, norm->is_fixed));

	dnnl_memory_desc_init_by_tag(&vector, 1, channels, dnnl_f32, dnnl_x);
	return psd_cpu_op_make(&norm->training.backward, self, "gradient", failure, &desc, &norm->training.forward,
			       (const struct psd_cpu_arg[]){
				       {DNNL_ARG_SRC, &in->desc, &in->value},
				       {DNNL_ARG_MEAN, &vector, norm->used_mean},
				       {DNNL_ARG_VARIANCE, &vector, norm->used_variance},
				       {DNNL_ARG_SCALE, &vector, norm->gamma},
				       {DNNL_ARG_SHIFT, &vector, norm->beta}, /* unused, but oneDNN counts it */
				       {DNNL_ARG_DIFF_DST, &out->desc, &out->diff},
				       {DNNL_ARG_DIFF_SRC, &in->desc, psd_cpu_share_slot(self)},
				       {DNNL_ARG_DIFF_SCALE, &vector, norm->dgamma},
				       {DNNL_ARG_DIFF_SHIFT, &vector, norm->dbeta},
			       },
			       9, err);
}

static enum psd_status prepare_norm(struct psd_cpu_layer *self, struct psd_error *err)
{
	const struct psd_layer *model = self->model;
	const uint64_t vector_bytes = model->shape.channels * sizeof(float);
	struct batch_norm *norm = self->details;

	norm->mean = psd_cpu_take(self->device, vector_bytes);
	norm->variance = psd_cpu_take(self->device, vector_bytes);
	if (!norm->mean || !norm->variance)
		return psd_cpu_no_memory(err);
	norm->used_mean = norm->is_fixed && norm->running_mean ? norm->running_mean : &norm->mean;
	norm->used_variance = norm->is_fixed && norm->running_mean ? norm->running_variance : &norm->variance;
	find_tensors(self, norm);
	PSD_TRY(psd_cpu_declare(self, &psd_cpu_input(self, 0)->desc, err));
	PSD_TRY(prepare_forward(self, false, err));
	return model->is_trained ? prepare_backward(self, err) : PSD_OK;
}

/* oneDNN also divides by the variance of channels that pad a block, which is 0. Without an epsilon the gradient's
 * padding would be NaN, and the convolution below adds it up. Beside a variance of 1 this epsilon is negligible. */
static enum psd_status prepare_scale(struct psd_cpu_layer *self, struct psd_error *err)
{
	struct batch_norm *norm = self->details;

	norm->is_fixed = true;
	norm->epsilon = FLT_EPSILON / 4;
	PSD_TRY(prepare_norm(self, err));
	for (uint32_t c = 0; c < self->model->shape.channels; c++)
		((float *)norm->variance)[c] = 1.0f;
	return PSD_OK;
}

static enum psd_status prepare(struct psd_cpu_layer *self, struct psd_error *err)
{
	const unsigned first_state = self->model->first_state;
	struct batch_norm *norm = self->details;

	norm->epsilon = (float)self->model->settings.affine.epsilon;
	norm->is_fixed = self->model->settings.affine.is_fixed;
	norm->running_mean = &self->device->states[first_state];
	norm->running_variance = &self->device->states[first_state + 1];
	PSD_TRY(prepare_norm(self, err));
	return prepare_forward(self, true, err);
}

/* The running variance is unbiased, as the batch is a sample of the population. */
static void update_running(const struct psd_cpu_layer *self, struct batch_norm *norm)
{
	const struct psd_shape shape = self->model->shape;
	const double samples = (double)self->device->options.batch * shape.height * shape.width;
	const float share = (float)psd_batch_share(&self->model->settings.affine, self->device->batch.iteration);
	const float unbiased = samples > 1 ? (float)(samples / (samples - 1)) : 1.0f;
	const float *mean = norm->mean, *variance = norm->variance;
	float *running_mean = *norm->running_mean, *running_variance = *norm->running_variance;

	for (uint32_t c = 0; c < shape.channels; c++) {
		running_mean[c] += share * (mean[c] - running_mean[c]);
		running_variance[c] += share * (variance[c] * unbiased - running_variance[c]);
	}
}

static enum psd_status forward(struct psd_cpu_layer *self, struct psd_error *err)
{
	struct batch_norm *norm = self->details;

	if (!self->device->batch.is_training)
		return psd_cpu_op_run(&norm->inference, self, err);
	PSD_TRY(psd_cpu_forward(self, err));
	if (!norm->is_fixed)
		update_running(self, norm);
	return PSD_OK;
}

const struct psd_cpu_kind psd_cpu_batch_norm = {prepare, forward, psd_cpu_backward,
						.details_bytes = sizeof(struct batch_norm)};
const struct psd_cpu_kind psd_cpu_scale = {prepare_scale, psd_cpu_forward, psd_cpu_backward,
					   .details_bytes = sizeof(struct batch_norm)};
