/* Convolution. Weights are the caller's, plain, and change every iteration: they are brought into oneDNN's format
 * before each use, and their gradient out of it. Activations stay in the format oneDNN likes best. */
#include <string.h>

#include "real/device/cpu/cpu.h"

struct conv {
	/* forward */
	struct psd_cpu_op source_in, weight_in, forward;
	/* backward of weight and bias */
	struct psd_cpu_op weight_source_in, weight_result_in, dweight, dweight_out;
	/* backward of data; unused without data gradient */
	struct psd_cpu_op data_weight_in, data_result_in, dsource, dsource_out;
};

struct conv_shape {
	dnnl_dims_t strides, dilates, pad_before, pad_after;
	dnnl_memory_desc_t source, weight, plain_weight, bias, result; /* all but the plain weight in any format */
	const dnnl_memory_desc_t *bias_or_null;
};

static void describe_weight(const struct psd_layer *model, uint32_t inputs, dnnl_format_tag_t plain, bool is_any,
			    dnnl_memory_desc_t *desc)
{
	const struct psd_conv_settings *settings = &model->settings.conv;
	const dnnl_dim_t groups = settings->groups;
	const struct psd_sides kernel = settings->window.kernel;
	const dnnl_dims_t grouped = {groups, settings->outputs / groups, inputs / groups, kernel.height, kernel.width};
	const bool is_grouped = groups > 1;

	dnnl_memory_desc_init_by_tag(desc, is_grouped ? 5 : 4, is_grouped ? grouped : grouped + 1, dnnl_f32,
				     is_any ? dnnl_format_tag_any : plain);
}

static void describe_conv(const struct psd_cpu_layer *self, struct conv_shape *shape)
{
	const struct psd_layer *model = self->model;
	const struct psd_conv_settings *settings = &model->settings.conv;
	const struct psd_window *window = &settings->window;
	const uint32_t inputs = psd_cpu_below(self, 0)->model->shape.channels;
	const dnnl_format_tag_t plain = settings->groups > 1 ? dnnl_goihw : dnnl_oihw;
	const dnnl_dims_t outputs = {settings->outputs};

	memset(shape, 0, sizeof(*shape));
	shape->strides[0] = window->stride.height;
	shape->strides[1] = window->stride.width;
	shape->dilates[0] = (dnnl_dim_t)window->dilation.height - 1; /* oneDNN counts the holes */
	shape->dilates[1] = (dnnl_dim_t)window->dilation.width - 1;
	shape->pad_before[0] = shape->pad_after[0] = window->pad.height;
	shape->pad_before[1] = shape->pad_after[1] = window->pad.width;
	shape->source = psd_cpu_any(psd_cpu_below(self, 0));
	shape->result = psd_cpu_any(self);
	describe_weight(model, inputs, plain, true, &shape->weight);
	describe_weight(model, inputs, plain, false, &shape->plain_weight);
	dnnl_memory_desc_init_by_tag(&shape->bias, 1, outputs, dnnl_f32, dnnl_x);
	shape->bias_or_null = settings->has_bias ? &shape->bias : NULL;
}

/* The only reader is a rectifier, which is then applied while the result is still in registers. */
static bool feeds_relu(const struct psd_cpu_layer *self)
{
	return self->n_readers == 1 && self->compute->layers[self->last_reader].kind == &psd_cpu_relu;
}

static enum psd_status describe_forward(struct psd_cpu_layer *self, struct conv_shape *shape, struct psd_error *err)
{
	struct conv *conv = self->details;
	dnnl_convolution_desc_t desc;
	dnnl_post_ops_t relu = NULL;
	dnnl_status_t failure = dnnl_dilated_convolution_forward_desc_init(
		&desc, dnnl_forward_training, dnnl_convolution_direct, &shape->source, &shape->weight,
		shape->bias_or_null, &shape->result, shape->strides, shape->dilates, shape->pad_before,
		shape->pad_after);
	enum psd_status status;

	if (!failure && feeds_relu(self)) {
		failure = dnnl_post_ops_create(&relu);
		if (!failure)
			failure = dnnl_post_ops_append_eltwise(relu, 1.0f, dnnl_eltwise_relu, 0.0f, 0.0f);
	}
	status = psd_cpu_op_describe(&conv->forward, self, "forward", failure, &desc, NULL, relu, err);
	if (relu)
		dnnl_post_ops_destroy(relu);
	return status;
}

static enum psd_status build_forward(struct psd_cpu_layer *self, const struct conv_shape *shape, struct psd_error *err)
{
	struct conv *conv = self->details;
	struct psd_cpu_blob *in = psd_cpu_input(self, 0), *out = self->blob;
	const unsigned tensor = self->model->first_tensor;
	const dnnl_memory_desc_t *source = psd_cpu_op_query(&conv->forward, dnnl_query_src_md);
	const dnnl_memory_desc_t *weight = psd_cpu_op_query(&conv->forward, dnnl_query_weights_md);
	void *const *source_slot, *const *weight_slot;
	enum psd_status status =
		psd_cpu_op_convert(&conv->source_in, self, (struct psd_cpu_arg){DNNL_ARG_FROM, &in->desc, &in->value},
				   source, PSD_CPU_SCRATCH_SOURCE, &source_slot, err);

	if (!status)
		status = psd_cpu_op_convert(
			&conv->weight_in, self,
			(struct psd_cpu_arg){DNNL_ARG_FROM, &shape->plain_weight, &self->compute->parameters[tensor]},
			weight, PSD_CPU_SCRATCH_WEIGHT, &weight_slot, err);
	if (status)
		return status;
	return psd_cpu_op_build(&conv->forward, self,
				(const struct psd_cpu_arg[]){
					{DNNL_ARG_SRC, source, source_slot},
					{DNNL_ARG_WEIGHTS, weight, weight_slot},
					{DNNL_ARG_BIAS, &shape->bias,
					 shape->bias_or_null ? &self->compute->parameters[tensor + 1] : NULL},
					{DNNL_ARG_DST, &out->desc, &out->value},
				},
				4, err);
}

static enum psd_status prepare_weight_backward(struct psd_cpu_layer *self, const struct conv_shape *shape,
					       struct psd_error *err)
{
	struct conv *conv = self->details;
	struct psd_cpu_blob *in = psd_cpu_input(self, 0), *out = self->blob;
	const unsigned tensor = self->model->first_tensor;
	const dnnl_memory_desc_t *source, *weight, *result;
	void *const *source_slot, *const *weight_slot, *const *result_slot;
	dnnl_convolution_desc_t desc;
	const dnnl_status_t failure = dnnl_dilated_convolution_backward_weights_desc_init(
		&desc, dnnl_convolution_direct, &shape->source, &shape->weight, shape->bias_or_null, &shape->result,
		shape->strides, shape->dilates, shape->pad_before, shape->pad_after);
	enum psd_status status =
		psd_cpu_op_describe(&conv->dweight, self, "weight gradient", failure, &desc, &conv->forward, NULL, err);

	if (status)
		return status;
	source = psd_cpu_op_query(&conv->dweight, dnnl_query_src_md);
	weight = psd_cpu_op_query(&conv->dweight, dnnl_query_diff_weights_md);
	result = psd_cpu_op_query(&conv->dweight, dnnl_query_diff_dst_md);
	status = psd_cpu_op_convert(&conv->weight_source_in, self,
				    (struct psd_cpu_arg){DNNL_ARG_FROM, &in->desc, &in->value}, source,
				    PSD_CPU_SCRATCH_SOURCE, &source_slot, err);
	if (!status)
		status = psd_cpu_op_convert(&conv->weight_result_in, self,
					    (struct psd_cpu_arg){DNNL_ARG_FROM, &out->desc, &out->diff}, result,
					    PSD_CPU_SCRATCH_RESULT, &result_slot, err);
	if (!status)
		status = psd_cpu_op_deliver(
			&conv->dweight_out, self,
			(struct psd_cpu_arg){DNNL_ARG_TO, &shape->plain_weight, &self->compute->gradients[tensor]},
			weight, PSD_CPU_SCRATCH_WEIGHT, &weight_slot, err);
	if (status)
		return status;
	return psd_cpu_op_build(&conv->dweight, self,
				(const struct psd_cpu_arg[]){
					{DNNL_ARG_SRC, source, source_slot},
					{DNNL_ARG_DIFF_DST, result, result_slot},
					{DNNL_ARG_DIFF_WEIGHTS, weight, weight_slot},
					{DNNL_ARG_DIFF_BIAS, &shape->bias,
					 shape->bias_or_null ? &self->compute->gradients[tensor + 1] : NULL},
				},
				4, err);
}

static enum psd_status prepare_data_backward(struct psd_cpu_layer *self, const struct conv_shape *shape,
					     struct psd_error *err)
{
	struct conv *conv = self->details;
	struct psd_cpu_blob *in = psd_cpu_input(self, 0), *out = self->blob;
	const unsigned tensor = self->model->first_tensor;
	const dnnl_memory_desc_t *source, *weight, *result;
	void *const *source_slot, *const *weight_slot, *const *result_slot;
	dnnl_convolution_desc_t desc;
	const dnnl_status_t failure = dnnl_dilated_convolution_backward_data_desc_init(
		&desc, dnnl_convolution_direct, &shape->source, &shape->weight, &shape->result, shape->strides,
		shape->dilates, shape->pad_before, shape->pad_after);
	enum psd_status status =
		psd_cpu_op_describe(&conv->dsource, self, "data gradient", failure, &desc, &conv->forward, NULL, err);

	if (status)
		return status;
	source = psd_cpu_op_query(&conv->dsource, dnnl_query_diff_src_md);
	weight = psd_cpu_op_query(&conv->dsource, dnnl_query_weights_md);
	result = psd_cpu_op_query(&conv->dsource, dnnl_query_diff_dst_md);
	status = psd_cpu_op_convert(
		&conv->data_weight_in, self,
		(struct psd_cpu_arg){DNNL_ARG_FROM, &shape->plain_weight, &self->compute->parameters[tensor]}, weight,
		PSD_CPU_SCRATCH_WEIGHT, &weight_slot, err);
	if (!status)
		status = psd_cpu_op_convert(&conv->data_result_in, self,
					    (struct psd_cpu_arg){DNNL_ARG_FROM, &out->desc, &out->diff}, result,
					    PSD_CPU_SCRATCH_RESULT, &result_slot, err);
	if (!status)
		status = psd_cpu_op_deliver(&conv->dsource_out, self,
					    (struct psd_cpu_arg){DNNL_ARG_TO, &in->desc, &in->share}, source,
					    PSD_CPU_SCRATCH_SOURCE, &source_slot, err);
	if (status)
		return status;
	return psd_cpu_op_build(&conv->dsource, self,
				(const struct psd_cpu_arg[]){
					{DNNL_ARG_DIFF_DST, result, result_slot},
					{DNNL_ARG_WEIGHTS, weight, weight_slot},
					{DNNL_ARG_DIFF_SRC, source, source_slot},
				},
				3, err);
}

static enum psd_status prepare(struct psd_cpu_layer *self, struct psd_error *err)
{
	struct conv_shape shape;
	struct conv *conv = self->details;
	enum psd_status status;

	describe_conv(self, &shape);
	status = describe_forward(self, &shape, err);
	if (!status)
		status = psd_cpu_declare(self, psd_cpu_op_query(&conv->forward, dnnl_query_dst_md), err);
	if (!status)
		status = build_forward(self, &shape, err);
	if (!status)
		status = prepare_weight_backward(self, &shape, err);
	if (!status && psd_cpu_input(self, 0)->has_diff)
		status = prepare_data_backward(self, &shape, err);
	return status;
}

static enum psd_status forward(struct psd_cpu_layer *self, struct psd_error *err)
{
	struct conv *conv = self->details;
	struct psd_cpu_op *const ops[] = {&conv->source_in, &conv->weight_in, &conv->forward};

	return psd_cpu_op_run_all(ops, 3, self, err);
}

static enum psd_status backward(struct psd_cpu_layer *self, struct psd_error *err)
{
	struct conv *conv = self->details;
	struct psd_cpu_blob *in = psd_cpu_input(self, 0);
	struct psd_cpu_op *const weight_ops[] = {&conv->weight_source_in, &conv->weight_result_in, &conv->dweight,
						 &conv->dweight_out};
	struct psd_cpu_op *const data_ops[] = {&conv->data_weight_in, &conv->data_result_in, &conv->dsource,
					       &conv->dsource_out};
	enum psd_status status = psd_cpu_op_run_all(weight_ops, 4, self, err);

	if (status || !in->has_diff)
		return status;
	psd_cpu_share_begin(self, in);
	status = psd_cpu_op_run_all(data_ops, 4, self, err);
	return status ? status : psd_cpu_share_end(self, in, err);
}

const struct psd_cpu_kind psd_cpu_conv = {prepare, forward, backward, .details_bytes = sizeof(struct conv)};
