/* Layer normalisation over the channels of each position, which are adjacent here. */
#include "real/device/cpu/cpu.h"

struct layer_norm {
	struct psd_cpu_op source_in, forward, backward, share_out;
	void *const *source, *const *share; /* slots */
	/* statistics of each position; shape (positions) each */
	void *mean, *variance;
	/* slots of scale and shift and of their gradients; NULL if the layer has none */
	void *const *gamma, *const *beta, *const *dgamma, *const *dbeta;
	dnnl_memory_desc_t positions, statistics, vector;
};

static void find_tensors(const struct psd_cpu_layer *self, struct layer_norm *norm)
{
	const struct psd_affine_settings *affine = &self->model->settings.affine;
	void *const *parameters = self->device->parameters + self->model->first_tensor;

	if (affine->has_scale) {
		norm->gamma = parameters;
		norm->dgamma = self->gradients;
	}
	if (affine->has_shift) {
		norm->beta = parameters + affine->has_scale;
		norm->dbeta = self->gradients + affine->has_scale;
	}
}

static void describe(const struct psd_cpu_layer *self, struct layer_norm *norm)
{
	const struct psd_shape shape = self->model->shape;
	const dnnl_dim_t n_positions = (dnnl_dim_t)(self->device->options.batch * psd_cpu_places_of(self));
	const dnnl_dims_t positions = {n_positions, shape.channels}, channels = {shape.channels};

	dnnl_memory_desc_init_by_tag(&norm->positions, 2, positions, dnnl_f32, dnnl_ab);
	dnnl_memory_desc_init_by_tag(&norm->statistics, 1, positions, dnnl_f32, dnnl_a);
	dnnl_memory_desc_init_by_tag(&norm->vector, 1, channels, dnnl_f32, dnnl_a);
}

static unsigned flags_of(const struct layer_norm *norm)
{
	return (norm->gamma ? dnnl_use_scale : 0u) | (norm->beta ? dnnl_use_shift : 0u);
}

static enum psd_status prepare_forward(struct psd_cpu_layer *self, struct psd_error *err)
{
	struct layer_norm *norm = self->details;
	dnnl_layer_normalization_desc_t desc;
	const dnnl_status_t failure = dnnl_layer_normalization_forward_desc_init(
		&desc, dnnl_forward_training, &norm->positions, &norm->statistics,
		(float)self->model->settings.affine.epsilon, flags_of(norm));

	return psd_cpu_op_make(&norm->forward, self, "forward", failure, &desc, NULL,
			       (const struct psd_cpu_arg[]){
				       {DNNL_ARG_SRC, &norm->positions, norm->source},
				       {DNNL_ARG_DST, &norm->positions, &self->blob->value},
				       {DNNL_ARG_MEAN, &norm->statistics, &norm->mean},
				       {DNNL_ARG_VARIANCE, &norm->statistics, &norm->variance},
				       {DNNL_ARG_SCALE, &norm->vector, norm->gamma},
				       {DNNL_ARG_SHIFT, &norm->vector, norm->beta},
			       },
			       6, err);
}

static enum psd_status prepare_backward(struct psd_cpu_layer *self, struct psd_error *err)
{
	struct layer_norm *norm = self->details;
	dnnl_layer_normalization_desc_t desc;
	const dnnl_status_t failure = dnnl_layer_normalization_backward_desc_init(
		&desc, norm->gamma || norm->beta ? dnnl_backward : dnnl_backward_data, &norm->positions,
		&norm->positions, &norm->statistics, (float)self->model->settings.affine.epsilon, flags_of(norm));

	return psd_cpu_op_make(&norm->backward, self, "gradient", failure, &desc, &norm->forward,
			       (const struct psd_cpu_arg[]){
				       {DNNL_ARG_SRC, &norm->positions, norm->source},
				       {DNNL_ARG_MEAN, &norm->statistics, &norm->mean},
				       {DNNL_ARG_VARIANCE, &norm->statistics, &norm->variance},
				       {DNNL_ARG_SCALE, &norm->vector, norm->gamma},
				       {DNNL_ARG_SHIFT, &norm->vector, norm->beta}, /* unused, but oneDNN counts it */
				       {DNNL_ARG_DIFF_DST, &norm->positions, &self->blob->diff},
				       {DNNL_ARG_DIFF_SRC, &norm->positions, norm->share},
				       {DNNL_ARG_DIFF_SCALE, &norm->vector, norm->dgamma},
				       {DNNL_ARG_DIFF_SHIFT, &norm->vector, norm->dbeta},
			       },
			       9, err);
}

/* The primitive always computes the input's gradient: into scratch if it is not needed. */
static enum psd_status prepare_share(struct psd_cpu_layer *self, const dnnl_memory_desc_t *format,
				     struct psd_error *err)
{
	struct layer_norm *norm = self->details;
	struct psd_cpu_blob *in = psd_cpu_input(self, 0);

	if (in->has_diff)
		return psd_cpu_op_deliver(&norm->share_out, self, psd_cpu_share(in), format, PSD_CPU_SCRATCH_RESULT,
					  &norm->share, err);
	norm->share = psd_cpu_scratch_slot(self->device, PSD_CPU_SCRATCH_RESULT, dnnl_memory_desc_get_size(format));
	return PSD_OK;
}

static enum psd_status prepare(struct psd_cpu_layer *self, struct psd_error *err)
{
	const dnnl_memory_desc_t format = psd_cpu_channels_last(self);
	struct layer_norm *norm = self->details;

	PSD_TRY(psd_cpu_declare(self, &format, err));
	find_tensors(self, norm);
	describe(self, norm);
	norm->mean = psd_cpu_take(self->device, dnnl_memory_desc_get_size(&norm->statistics));
	norm->variance = psd_cpu_take(self->device, dnnl_memory_desc_get_size(&norm->statistics));
	if (!norm->mean || !norm->variance)
		return psd_cpu_no_memory(err);
	PSD_TRY(psd_cpu_op_convert(&norm->source_in, self, psd_cpu_value(psd_cpu_input(self, 0)), &format,
				   PSD_CPU_SCRATCH_SOURCE, &norm->source, err));
	PSD_TRY(prepare_forward(self, err));
	if (!self->model->is_trained)
		return PSD_OK;
	PSD_TRY(prepare_share(self, &format, err));
	return prepare_backward(self, err);
}

static enum psd_status forward(struct psd_cpu_layer *self, struct psd_error *err)
{
	struct layer_norm *norm = self->details;

	return psd_cpu_op_run_all((struct psd_cpu_op *const[]){&norm->source_in, &norm->forward}, 2, self, err);
}

static enum psd_status backward(struct psd_cpu_layer *self, struct psd_error *err)
{
	struct layer_norm *norm = self->details;
	struct psd_cpu_blob *in = psd_cpu_input(self, 0);
	struct psd_cpu_op *const ops[] = {&norm->source_in, &norm->backward, &norm->share_out};

	return in->has_diff ? psd_cpu_op_share_all(ops, 3, self, in, err) : psd_cpu_op_run_all(ops, 2, self, err);
}

const struct psd_cpu_kind psd_cpu_layer_norm = {prepare, forward, backward, .details_bytes = sizeof(struct layer_norm)};
