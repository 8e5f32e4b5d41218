/* The largest or the mean value of each window. */
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
	{.name = "round",
	 .type = PSD_KEY_CHOICE,
	 .offset = offsetof(struct psd_pool_settings, rounding),
	 .names = roundings},
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
				     "layer '%.80s': pad %ux%u must be smaller than the kernel %ux%u", layer->name,
				     pad.height, pad.width, kernel.height, kernel.width);
	return psd_layer_slide_window(layer, &pool->window, pool->rounding == PSD_POOL_UP, in, at, err);
}

/* A window is compared or summed once per position; backward the maximum sends one value back, the average one to each
 * place. */
static struct psd_layer_work count(const struct psd_layer *layer, struct psd_shape in)
{
	const struct psd_pool_settings *pool = &layer->settings.pool;
	const uint64_t places = (uint64_t)pool->window.kernel.height * pool->window.kernel.width;

	(void)in;
	return psd_layer_work_per_element(layer, places, pool->method == PSD_POOL_MAX ? 1 : places, 0);
}

const struct psd_layer_kind psd_layer_pool = {
	.name = "pool",
	.least_inputs = 1,
	.keys = keys,
	.defaults.pool = {.window = PSD_WINDOW_DEFAULT, .rounding = PSD_POOL_DOWN},
	.infer = infer,
	.count = count,
};
