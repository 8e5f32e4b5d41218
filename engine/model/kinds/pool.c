/* Pooling: the largest or the mean value of each window, or the mean of the whole map. */
#include "engine/model/layer.h"

static const char *const methods[] = {[PSD_POOL_MAX] = "max", [PSD_POOL_AVERAGE] = "average", NULL};
static const char *const roundings[] = {[PSD_POOL_UP] = "up", [PSD_POOL_DOWN] = "down", NULL};

static const struct psd_key keys[] = {
	{.name = "method",
	 .type = PSD_KEY_CHOICE,
	 .offset = offsetof(struct psd_pool_settings, method),
	 .is_required = true,
	 .names = methods},
	PSD_PAIR_KEY("kernel", struct psd_pool_settings, window.kernel, 1, true),
	PSD_PAIR_KEY("stride", struct psd_pool_settings, window.stride, 1, false),
	PSD_PAIR_KEY("pad", struct psd_pool_settings, window.pad, 0, false),
	PSD_CHOICE_KEY("round", struct psd_pool_settings, rounding, roundings),
	{.name = NULL},
};

static enum psd_status infer(struct psd_layer *layer, const struct psd_layer *layers, struct psd_place at,
			     struct psd_error *err)
{
	struct psd_pool_settings *pool = &layer->settings.pool;
	const struct psd_shape in = psd_layer_input_shape(layer, layers);
	struct psd_sides kernel = pool->window.kernel;
	const struct psd_sides pad = pool->window.pad;

	if (!kernel.height)
		kernel = pool->window.kernel = (struct psd_sides){in.height, in.width};
	if (pad.height >= kernel.height || pad.width >= kernel.width)
		return psd_error_set(err, PSD_EINVAL, at,
				     "layer '%.80s' has a pad of %ux%u, must be smaller than its kernel of %ux%u",
				     layer->name, pad.height, pad.width, kernel.height, kernel.width);
	return psd_layer_slide_window(layer, &pool->window, pool->rounding == PSD_POOL_UP, in, at, err);
}

/* Each value of a window is compared or added once; backward the maximum sends one value back, the mean one to each
 * position of the window. */
static struct psd_layer_work count(const struct psd_layer *layer, struct psd_shape in)
{
	const struct psd_pool_settings *pool = &layer->settings.pool;
	const uint64_t positions = (uint64_t)pool->window.kernel.height * pool->window.kernel.width;

	(void)in;
	return psd_layer_work_per_element(layer, positions, pool->method == PSD_POOL_MAX ? 1 : positions, 0);
}

const struct psd_layer_kind psd_layer_pool = {
	.name = "pool",
	.least_inputs = 1,
	.keys = keys,
	.defaults.pool = {.window = PSD_WINDOW_DEFAULT, .rounding = PSD_POOL_DOWN},
	.infer = infer,
	.count = count,
};

/* ---- the mean of the whole map ---- */

static enum psd_status infer_global(struct psd_layer *layer, const struct psd_layer *layers, struct psd_place at,
				    struct psd_error *err)
{
	(void)layers, (void)at, (void)err;
	layer->shape.height = layer->shape.width = 1;
	return PSD_OK;
}

/* An addition at each position; backward one value goes to each. */
static struct psd_layer_work count_global(const struct psd_layer *layer, struct psd_shape in)
{
	const uint64_t positions = (uint64_t)in.height * in.width;

	return psd_layer_work_per_element(layer, positions, positions, 0);
}

const struct psd_layer_kind psd_layer_global_pool = {
	.name = "global-pool",
	.least_inputs = 1,
	.infer = infer_global,
	.count = count_global,
};
