/* Caffe's pooling: a maximum ignores padding. An average counts padding as zeros, but ignores the part of a window
 * beyond the padding. */
#include <string.h>

#include "real/device/gpu/gpu.h"

struct pool {
	struct psd_gpu_window window;
	void *positions; /* positions of the maxima in the input, one per element of the output */
};

static enum psd_status prepare(struct psd_gpu_layer *self, struct psd_error *err)
{
	const struct psd_layer *model = self->model;
	const struct psd_window *window = &model->settings.pool.window;
	struct pool *pool = self->details;

	PSD_TRY(psd_gpu_declare(self, err));
	if (window->dilation.height != 1 || window->dilation.width != 1)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE,
				     "layer '%.80s' (pool) has a dilation, which cuda does not support", model->name);
	pool->window = (struct psd_gpu_window){.in = psd_gpu_maps_of(psd_gpu_below(self, 0)),
					       .out = psd_gpu_maps_of(self),
					       .kernel_height = window->kernel.height,
					       .kernel_width = window->kernel.width,
					       .stride_height = window->stride.height,
					       .stride_width = window->stride.width,
					       .pad_height = window->pad.height,
					       .pad_width = window->pad.width,
					       .is_max = model->settings.pool.method == PSD_POOL_MAX};
	if (!pool->window.is_max)
		return PSD_OK;
	return psd_gpu_want(self->device, self->own.elements * sizeof(uint32_t), &pool->positions, err);
}

static enum psd_status forward(struct psd_gpu_layer *self, struct psd_error *err)
{
	const struct pool *pool = self->details;
	const struct psd_gpu_pool run = {.from = psd_gpu_value(self, psd_gpu_input(self, 0)),
					 .to = psd_gpu_value(self, self->blob),
					 .window = pool->window,
					 .positions = pool->positions};

	return psd_gpu_run_pool(self->device, &run, self->blob->elements, err);
}

static enum psd_status backward(struct psd_gpu_layer *self, struct psd_error *err)
{
	const struct pool *pool = self->details;
	struct psd_gpu_blob *in = psd_gpu_input(self, 0);
	const struct psd_gpu_pool_back run = {.diff = psd_gpu_diff(self, self->blob),
					      .to = psd_gpu_diff(self, in),
					      .window = pool->window,
					      .positions = pool->positions,
					      .adds = psd_gpu_share(in)};

	return psd_gpu_run_pool_back(self->device, &run, in->elements, err);
}

const struct psd_gpu_kind psd_gpu_kind_pool = {
	.prepare = prepare, .forward = forward, .backward = backward, .details_bytes = sizeof(struct pool)};

/* ---- the mean of each map ---- */

static struct psd_gpu_reduction mean_of_maps(const struct psd_gpu_layer *below)
{
	return (struct psd_gpu_reduction){.left = psd_gpu_value(below, below->blob),
					  .is_by_sample = true,
					  .scale = 1.0f / (float)psd_gpu_positions(below)};
}

static enum psd_status prepare_global(struct psd_gpu_layer *self, struct psd_error *err)
{
	const struct psd_gpu_layer *below = psd_gpu_below(self, 0);
	const struct psd_gpu_reduction means = mean_of_maps(below);

	psd_gpu_want_reduction(below, &means);
	return psd_gpu_declare(self, err);
}

static enum psd_status forward_global(struct psd_gpu_layer *self, struct psd_error *err)
{
	const struct psd_gpu_layer *below = psd_gpu_below(self, 0);
	struct psd_gpu_reduction means = mean_of_maps(below);

	means.to = psd_gpu_value(self, self->blob);
	return psd_gpu_reduce(below, &means, err);
}

/* Begins the backward pass of global average pooling: each position of a channel gets an equal part of the gradient,
 * which is read with strides 0 for rows and columns. */
static enum psd_status backward_global(struct psd_gpu_layer *self, struct psd_error *err)
{
	const struct psd_gpu_layer *below = psd_gpu_below(self, 0);
	struct psd_gpu_blob *in = psd_gpu_input(self, 0);
	const uint32_t channels = self->model->shape.channels;
	struct psd_gpu_move move = {.from = psd_gpu_diff(self, self->blob),
				    .to = psd_gpu_diff(self, in),
				    .from_view = psd_gpu_view_of(below),
				    .to_view = psd_gpu_view_of(below),
				    .scale = 1.0f / (float)psd_gpu_positions(below),
				    .adds = psd_gpu_share(in)};
	const uint32_t strides[4] = {channels, 1, 0, 0};

	memcpy(move.from_view.strides, strides, sizeof(strides));
	return psd_gpu_move_views(self, move, err);
}

const struct psd_gpu_kind psd_gpu_kind_global_pool = {
	.prepare = prepare_global, .forward = forward_global, .backward = backward_global};
