/* Convolution and transposed convolution. Weights are the caller's, in plain format, and change every iteration: they
 * are converted to oneDNN's format before each use, and their gradients back. Activations stay in the format that
 * oneDNN prefers. */
#include <string.h>

#include "real/device/cpu/cpu.h"

/* A primitive with the conversions of its two inputs and its output. */
struct pass {
	struct psd_cpu_op moves[3], run;
};

struct conv {
	/* dsource computes the gradient of the input; unused if the input needs none */
	struct pass forward, dweight, dsource;
};

/* oneDNN's functions and argument numbers for a convolution, or for a transposed convolution, whose plain weight has
 * the inputs as first dimension. */
struct family {
	dnnl_alg_kind_t algorithm;
	dnnl_format_tag_t plain, plain_of_groups;
	dnnl_status_t (*forward)(dnnl_convolution_desc_t *desc, dnnl_prop_kind_t prop, dnnl_alg_kind_t algorithm,
				 const dnnl_memory_desc_t *source, const dnnl_memory_desc_t *weight,
				 const dnnl_memory_desc_t *bias, const dnnl_memory_desc_t *result,
				 const dnnl_dims_t strides, const dnnl_dims_t dilates, const dnnl_dims_t pad_before,
				 const dnnl_dims_t pad_after);
	dnnl_status_t (*dweight)(dnnl_convolution_desc_t *desc, dnnl_alg_kind_t algorithm,
				 const dnnl_memory_desc_t *source, const dnnl_memory_desc_t *dweight,
				 const dnnl_memory_desc_t *dbias, const dnnl_memory_desc_t *dresult,
				 const dnnl_dims_t strides, const dnnl_dims_t dilates, const dnnl_dims_t pad_before,
				 const dnnl_dims_t pad_after);
	dnnl_status_t (*dsource)(dnnl_convolution_desc_t *desc, dnnl_alg_kind_t algorithm,
				 const dnnl_memory_desc_t *dsource, const dnnl_memory_desc_t *weight,
				 const dnnl_memory_desc_t *dresult, const dnnl_dims_t strides,
				 const dnnl_dims_t dilates, const dnnl_dims_t pad_before, const dnnl_dims_t pad_after);
};

static const struct family convolution = {
	.algorithm = dnnl_convolution_direct,
	.plain = dnnl_oihw,
	.plain_of_groups = dnnl_goihw,
	.forward = dnnl_dilated_convolution_forward_desc_init,
	.dweight = dnnl_dilated_convolution_backward_weights_desc_init,
	.dsource = dnnl_dilated_convolution_backward_data_desc_init,
};

static const struct family transpose = {
	.algorithm = dnnl_deconvolution_direct,
	.plain = dnnl_iohw,
	.plain_of_groups = dnnl_giohw,
	.forward = dnnl_dilated_deconvolution_forward_desc_init,
	.dweight = dnnl_dilated_deconvolution_backward_weights_desc_init,
	.dsource = dnnl_dilated_deconvolution_backward_data_desc_init,
};

struct conv_shape {
	const struct family *family;
	dnnl_dims_t strides, dilates, pad_before, pad_after;
	dnnl_memory_desc_t source, weight, plain_weight, bias, result; /* oneDNN chooses all formats but plain_weight */
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
	const struct family *family = self->kind == &psd_cpu_deconv ? &transpose : &convolution;
	const dnnl_format_tag_t plain = settings->groups > 1 ? family->plain_of_groups : family->plain;
	const dnnl_dims_t outputs = {settings->outputs};

	memset(shape, 0, sizeof(*shape));
	shape->family = family;
	shape->strides[0] = window->stride.height;
	shape->strides[1] = window->stride.width;
	/* oneDNN's dilation is the number of skipped elements, one less than that of the network */
	shape->dilates[0] = (dnnl_dim_t)window->dilation.height - 1;
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

/* True if only one layer reads the output and it is a ReLU, which then is fused into the convolution. */
static bool feeds_relu(const struct psd_cpu_layer *self)
{
	return self->kind == &psd_cpu_conv && self->n_readers == 1 &&
	       self->device->layers[self->last_reader].kind == &psd_cpu_relu;
}

static enum psd_status describe_forward(struct psd_cpu_layer *self, struct conv_shape *shape, struct psd_error *err)
{
	struct conv *conv = self->details;
	dnnl_convolution_desc_t desc;
	dnnl_post_ops_t relu = NULL;
	dnnl_status_t failure =
		shape->family->forward(&desc, dnnl_forward_training, shape->family->algorithm, &shape->source,
				       &shape->weight, shape->bias_or_null, &shape->result, shape->strides,
				       shape->dilates, shape->pad_before, shape->pad_after);

	self->has_relu = feeds_relu(self);
	if (!failure && self->has_relu) {
		failure = dnnl_post_ops_create(&relu);
		if (!failure)
			failure = dnnl_post_ops_append_eltwise(
				relu, 1.0f, dnnl_eltwise_relu,
				(float)self->device->layers[self->last_reader].model->settings.slope.slope, 0.0f);
	}
	const enum psd_status status =
		psd_cpu_op_describe(&conv->forward.run, self, "forward", failure, &desc, NULL, relu, err);
	if (relu)
		dnnl_post_ops_destroy(relu);
	return status;
}

/* Argument of a primitive: its memory and format outside, and the format that the primitive uses. */
struct end {
	int arg; /* oneDNN's number of the argument, DNNL_ARG_... */
	const dnnl_memory_desc_t *desc;
	void *const *slot;
	dnnl_query_t made;
	enum psd_cpu_scratch_role role;
};

/* Builds a described primitive from two inputs and an output. */
static enum psd_status build(struct pass *pass, struct psd_cpu_layer *self, const struct end ends[3],
			     struct psd_cpu_arg bias, struct psd_error *err)
{
	struct psd_cpu_arg args[4] = {[3] = bias};

	for (unsigned i = 0; i < 3; i++) {
		const struct psd_cpu_arg position = {ends[i].arg, ends[i].desc, ends[i].slot};

		args[i] = (struct psd_cpu_arg){ends[i].arg, psd_cpu_op_query(&pass->run, ends[i].made), NULL};
		PSD_TRY((i < 2 ? psd_cpu_op_convert : psd_cpu_op_deliver)(&pass->moves[i], self, position, args[i].desc,
									  ends[i].role, &args[i].slot, err));
	}
	return psd_cpu_op_build(&pass->run, self, args, 4, err);
}

static struct psd_cpu_arg bias_of(int arg, const struct conv_shape *shape, void *const *slot)
{
	return (struct psd_cpu_arg){arg, &shape->bias, shape->bias_or_null ? slot : NULL};
}

static enum psd_status build_forward(struct psd_cpu_layer *self, const struct conv_shape *shape, struct psd_error *err)
{
	struct conv *conv = self->details;
	struct psd_cpu_blob *in = psd_cpu_input(self, 0), *out = self->blob;
	void *const *parameters = self->device->parameters + self->model->first_tensor;
	const struct end ends[3] = {
		{DNNL_ARG_SRC, &in->desc, &in->value, dnnl_query_src_md, PSD_CPU_SCRATCH_SOURCE},
		{DNNL_ARG_WEIGHTS, &shape->plain_weight, parameters, dnnl_query_weights_md, PSD_CPU_SCRATCH_WEIGHT},
		{DNNL_ARG_DST, &out->desc, &out->value, dnnl_query_dst_md, PSD_CPU_SCRATCH_RESULT},
	};

	return build(&conv->forward, self, ends, bias_of(DNNL_ARG_BIAS, shape, parameters + 1), err);
}

static enum psd_status prepare_weight_backward(struct psd_cpu_layer *self, const struct conv_shape *shape,
					       struct psd_error *err)
{
	struct conv *conv = self->details;
	struct psd_cpu_blob *in = psd_cpu_input(self, 0), *out = self->blob;
	void *const *gradients = self->gradients;
	const struct end ends[3] = {
		{DNNL_ARG_SRC, &in->desc, &in->value, dnnl_query_src_md, PSD_CPU_SCRATCH_SOURCE},
		{DNNL_ARG_DIFF_DST, &out->desc, &out->diff, dnnl_query_diff_dst_md, PSD_CPU_SCRATCH_RESULT},
		{DNNL_ARG_DIFF_WEIGHTS, &shape->plain_weight, gradients, dnnl_query_diff_weights_md,
		 PSD_CPU_SCRATCH_WEIGHT},
	};
	dnnl_convolution_desc_t desc;
	const dnnl_status_t failure = shape->family->dweight(
		&desc, shape->family->algorithm, &shape->source, &shape->weight, shape->bias_or_null, &shape->result,
		shape->strides, shape->dilates, shape->pad_before, shape->pad_after);

	PSD_TRY(psd_cpu_op_describe(&conv->dweight.run, self, "weight gradient", failure, &desc, &conv->forward.run,
				    NULL, err));
	return build(&conv->dweight, self, ends, bias_of(DNNL_ARG_DIFF_BIAS, shape, gradients + 1), err);
}

static enum psd_status prepare_data_backward(struct psd_cpu_layer *self, const struct conv_shape *shape,
					     struct psd_error *err)
{
	struct conv *conv = self->details;
	struct psd_cpu_blob *in = psd_cpu_input(self, 0), *out = self->blob;
	void *const *weight = self->device->parameters + self->model->first_tensor;
	const struct end ends[3] = {
		{DNNL_ARG_WEIGHTS, &shape->plain_weight, weight, dnnl_query_weights_md, PSD_CPU_SCRATCH_WEIGHT},
		{DNNL_ARG_DIFF_DST, &out->desc, &out->diff, dnnl_query_diff_dst_md, PSD_CPU_SCRATCH_RESULT},
		{DNNL_ARG_DIFF_SRC, &in->desc, &in->share, dnnl_query_diff_src_md, PSD_CPU_SCRATCH_SOURCE},
	};
	dnnl_convolution_desc_t desc;
	const dnnl_status_t failure =
		shape->family->dsource(&desc, shape->family->algorithm, &shape->source, &shape->weight, &shape->result,
				       shape->strides, shape->dilates, shape->pad_before, shape->pad_after);

	PSD_TRY(psd_cpu_op_describe(&conv->dsource.run, self, "data gradient", failure, &desc, &conv->forward.run, NULL,
				    err));
	return build(&conv->dsource, self, ends, (struct psd_cpu_arg){.slot = NULL}, err);
}

static enum psd_status prepare(struct psd_cpu_layer *self, struct psd_error *err)
{
	struct conv_shape shape;
	struct conv *conv = self->details;

	describe_conv(self, &shape);
	PSD_TRY(describe_forward(self, &shape, err));
	PSD_TRY(psd_cpu_declare(self, psd_cpu_op_query(&conv->forward.run, dnnl_query_dst_md), err));
	PSD_TRY(build_forward(self, &shape, err));
	PSD_TRY(prepare_weight_backward(self, &shape, err));
	return psd_cpu_input(self, 0)->has_diff ? prepare_data_backward(self, &shape, err) : PSD_OK;
}

/* The operations of a pass in the order in which they are executed. */
#define OPS_OF(pass) (struct psd_cpu_op *const[]){&(pass).moves[0], &(pass).moves[1], &(pass).run, &(pass).moves[2]}, 4

static enum psd_status forward(struct psd_cpu_layer *self, struct psd_error *err)
{
	struct conv *conv = self->details;

	return psd_cpu_op_run_all(OPS_OF(conv->forward), self, err);
}

static enum psd_status backward(struct psd_cpu_layer *self, struct psd_error *err)
{
	struct conv *conv = self->details;
	struct psd_cpu_blob *in = psd_cpu_input(self, 0);
	const enum psd_status status = psd_cpu_op_run_all(OPS_OF(conv->dweight), self, err);

	return status || !in->has_diff ? status : psd_cpu_op_share_all(OPS_OF(conv->dsource), self, in, err);
}

const struct psd_cpu_kind psd_cpu_conv = {prepare, forward, backward, .details_bytes = sizeof(struct conv)};
const struct psd_cpu_kind psd_cpu_deconv = {prepare, forward, backward, .details_bytes = sizeof(struct conv)};
