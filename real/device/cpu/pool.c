/* Caffe's pooling: a maximum ignores padding. An average counts padding as zeros, but ignores the part of a window
 * beyond the padding. */
#include "real/device/cpu/cpu.h"

struct pool_shape {
	dnnl_alg_kind_t algorithm;
	dnnl_dims_t strides, kernel, pad_before, pad_after;
};

/* Returns the padding at the end of a side: the length by which the last window exceeds the edge; less than `pad` if
 * that window ends earlier. */
static dnnl_dim_t reach(uint32_t positions, uint32_t stride, uint32_t kernel, uint32_t side, uint32_t pad)
{
	return ((dnnl_dim_t)positions - 1) * stride + kernel - side - pad;
}

/* Chooses oneDNN's average: it divides by the whole window, or by the part inside the map. Caffe divides by the part
 * inside the padded map. Returns false where neither is equal: with padding and a window beyond it. */
static bool choose_average(const struct psd_window *window, dnnl_dim_t below, dnnl_dim_t right,
			   dnnl_alg_kind_t *algorithm)
{
	const bool is_padded = window->pad.height || window->pad.width;
	const bool is_overhanging = below > window->pad.height || right > window->pad.width;

	*algorithm = is_padded ? dnnl_pooling_avg_include_padding : dnnl_pooling_avg_exclude_padding;
	return !is_padded || !is_overhanging;
}

static enum psd_status describe_window(const struct psd_layer *model, struct psd_shape in, struct pool_shape *shape,
				       struct psd_error *err)
{
	const struct psd_pool_settings *settings = &model->settings.pool;
	const struct psd_window *window = &settings->window;
	const dnnl_dim_t below =
		reach(model->shape.height, window->stride.height, window->kernel.height, in.height, window->pad.height);
	const dnnl_dim_t right =
		reach(model->shape.width, window->stride.width, window->kernel.width, in.width, window->pad.width);

	*shape = (struct pool_shape){.algorithm = dnnl_pooling_max};
	shape->strides[0] = window->stride.height;
	shape->strides[1] = window->stride.width;
	shape->kernel[0] = window->kernel.height;
	shape->kernel[1] = window->kernel.width;
	shape->pad_before[0] = window->pad.height;
	shape->pad_before[1] = window->pad.width;
	shape->pad_after[0] = below > 0 ? below : 0;
	shape->pad_after[1] = right > 0 ? right : 0;
	if (window->dilation.height != 1 || window->dilation.width != 1)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE,
				     "layer '%.80s' (pool) has a dilation, which cpu does not support", model->name);
	if (settings->method == PSD_POOL_AVERAGE && !choose_average(window, below, right, &shape->algorithm))
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE,
				     "layer '%.80s' (pool): cpu supports no average over windows that reach beyond the "
				     "padding: set pad 0 or rounding down",
				     model->name);
	return PSD_OK;
}

/* Prepares the forward operation. In training its workspace has the index of each maximum. */
static enum psd_status prepare_forward(struct psd_cpu_layer *self, const struct pool_shape *shape,
				       struct psd_cpu_arg *workspace, struct psd_error *err)
{
	struct psd_cpu_twins *pool = self->details;
	const dnnl_memory_desc_t any = psd_cpu_any(self);
	dnnl_pooling_desc_t desc;
	const dnnl_status_t failure = dnnl_pooling_forward_desc_init(
		&desc, dnnl_forward_training, shape->algorithm, &psd_cpu_input(self, 0)->desc, &any, shape->strides,
		shape->kernel, shape->pad_before, shape->pad_after);

	PSD_TRY(psd_cpu_op_describe(&pool->forward, self, "forward", failure, &desc, NULL, NULL, err));
	PSD_TRY(psd_cpu_declare(self, psd_cpu_op_query(&pool->forward, dnnl_query_dst_md), err));
	return psd_cpu_build_forward(self, workspace, err);
}

static enum psd_status prepare_backward(struct psd_cpu_layer *self, const struct pool_shape *shape,
					struct psd_cpu_arg workspace, struct psd_error *err)
{
	struct psd_cpu_twins *pool = self->details;
	struct psd_cpu_blob *in = psd_cpu_input(self, 0), *out = self->blob;
	dnnl_pooling_desc_t desc;
	const dnnl_status_t failure =
		dnnl_pooling_backward_desc_init(&desc, shape->algorithm, &in->desc, &out->desc, shape->strides,
						shape->kernel, shape->pad_before, shape->pad_after);

	return psd_cpu_op_make(&pool->backward, self, "data gradient", failure, &desc, &pool->forward,
			       (const struct psd_cpu_arg[]){
				       {DNNL_ARG_DIFF_DST, &out->desc, &out->diff},
				       {DNNL_ARG_DIFF_SRC, &in->desc, &in->share},
				       workspace,
			       },
			       3, err);
}

static enum psd_status prepare_shape(struct psd_cpu_layer *self, const struct pool_shape *shape, struct psd_error *err)
{
	struct psd_cpu_arg workspace;

	PSD_TRY(prepare_forward(self, shape, &workspace, err));
	return psd_cpu_input(self, 0)->has_diff ? prepare_backward(self, shape, workspace, err) : PSD_OK;
}

static enum psd_status prepare(struct psd_cpu_layer *self, struct psd_error *err)
{
	const struct psd_layer *model = self->model;
	struct pool_shape shape;

	PSD_TRY(describe_window(model, psd_cpu_below(self, 0)->model->shape, &shape, err));
	return prepare_shape(self, &shape, err);
}

static enum psd_status prepare_global(struct psd_cpu_layer *self, struct psd_error *err)
{
	const struct psd_shape in = psd_cpu_below(self, 0)->model->shape;
	const struct pool_shape whole = {
		.algorithm = dnnl_pooling_avg_exclude_padding, .strides = {1, 1}, .kernel = {in.height, in.width}};

	return prepare_shape(self, &whole, err);
}

const struct psd_cpu_kind psd_cpu_pool = {prepare, psd_cpu_forward, psd_cpu_backward,
					  .details_bytes = sizeof(struct psd_cpu_twins)};
const struct psd_cpu_kind psd_cpu_global_pool = {prepare_global, psd_cpu_forward, psd_cpu_backward,
						 .details_bytes = sizeof(struct psd_cpu_twins)};
