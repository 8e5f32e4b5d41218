/* Normalisation over the channels of each place, which lie side by side here. */
#include "real/device/cpu/cpu.h"

struct layer_norm {
	struct psd_cpu_op source_in, forward, backward, share_out;
	void *const *source, *const *share;				 /* slots */
	void *mean, *variance;						 /* of each place */
	void *const *gamma, *const *beta, *const *dgamma, *const *dbeta; /* slots, NULL where there is none */
	dnnl_memory_desc_t places, statistics, vector;
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
	const dnnl_dim_t n_places = (dnnl_dim_t)(self->device->options.batch * psd_cpu_places_of(self));
	const dnnl_dims_t places = {n_places, shape.channels}, channels = {shape.channels};

	dnnl_memory_desc_init_by_tag(&norm->places, 2, places, dnnl_f32, dnnl_ab);
	dnnl_memory_desc_init_by_tag(&norm->statistics, 1, places, dnnl_f32, dnnl_a);
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
		&desc, dnnl_forward_training, &norm->places, &norm->statistics,
		(float)self->model->settings.affine.epsilon, flags_of(norm));

	return psd_cpu_op_make(&norm->forward, self, "forward", failure, &desc, NULL,
			       (const struct psd_cpu_arg[]){
				       {DNNL_ARG_SRC, &norm->places, norm->source},
				       {DNNL_ARG_DST, &norm->places, &self->blob->value},
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
		&desc, norm->gamma || norm->beta ? dnnl_backward : dnnl_backward_data, &norm->places, &norm->places,
		&norm->statistics, (float)self->model->settings.affine.epsilon, flags_of(norm));

	return psd_cpu_op_make(&norm->backward, self, "gradient", failure, &desc, &norm->forward,
			       (const struct psd_cpu_arg[]){
				       {DNNL_ARG_SRC, &norm->places, norm->source},
				       {DNNL_ARG_MEAN, &norm->statistics, &norm->mean},
				       {DNNL_ARG_VARIANCE, &norm->statistics, &norm->variance},
				       {DNNL_ARG_SCALE, &norm->vector, norm->gamma},
				       {DNNL_ARG_SHIFT, &norm->vector, norm->beta}, /* unused, but counted */
				       {DNNL_ARG_DIFF_DST, &norm->places, &self->blob->diff},
				       {DNNL_ARG_DIFF_SRC, &norm->places, norm->share},
				       {DNNL_ARG_DIFF_SCALE, &norm->vector, norm->dgamma},
				       {DNNL_ARG_DIFF_SHIFT, &norm->vector, norm->dbeta},
			       },
			       9, err);
}

/* Where nobody wants the input's gradient the primitive, which cannot do without, has memory for it. */
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
	enum psd_status status = psd_cpu_declare(self, &format, err);

	find_tensors(self, norm);
	describe(self, norm);
	norm->mean = psd_cpu_take(self->device, dnnl_memory_desc_get_size(&norm->statistics));
	norm->variance = psd_cpu_take(self->device, dnnl_memory_desc_get_size(&norm->statistics));
	if (!status && (!norm->mean || !norm->variance))
		return psd_cpu_no_memory(err);
	if (!status)
		status = psd_cpu_op_convert(&norm->source_in, self, psd_cpu_value(psd_cpu_input(self, 0)), &format,
					    PSD_CPU_SCRATCH_SOURCE, &norm->source, err);
	if (!status)
		status = prepare_forward(self, err);
	if (!status && self->model->is_trained)
		status = prepare_share(self, &format, err);
	return status || !self->model->is_trained ? status : prepare_backward(self, err);
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
