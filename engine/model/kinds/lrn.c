/* Local response normalisation over neighbouring channels (Krizhevsky 2012, section 3.3) or positions. */
#include "engine/model/layer.h"

static const struct psd_key keys[] = {
	PSD_COUNT_KEY("size", struct psd_lrn_settings, size, PSD_LAYER_SIDE_MAX, true),
	PSD_FLAG_KEY("within", struct psd_lrn_settings, is_within_channel),
	PSD_NUMBER_KEY("alpha", struct psd_lrn_settings, alpha, 0, 1e6),
	PSD_NUMBER_KEY("beta", struct psd_lrn_settings, beta, 0, 1e6),
	PSD_NUMBER_KEY("k", struct psd_lrn_settings, k, 0, 1e6),
	{.name = NULL},
};

/* Over n channels or positions: squares 1, sliding sum n, scale and offset 2, power 1, product 1; backward repeats the
 * sum, with products. */
static struct psd_layer_work count(const struct psd_layer *layer, struct psd_shape in)
{
	const uint64_t size = layer->settings.lrn.size;
	const uint64_t summands = layer->settings.lrn.is_within_channel ? size * size : size;

	(void)in;
	return psd_layer_work_per_element(layer, summands + 5, summands + 6, 0);
}

/* The defaults are the values of most published networks. */
const struct psd_layer_kind psd_layer_lrn = {
	.name = "lrn",
	.reads_twice = true,
	.least_inputs = 1,
	.keys = keys,
	.defaults.lrn = {.alpha = 1e-4, .beta = 0.75, .k = 1},
	.count = count,
};
