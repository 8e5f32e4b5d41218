/* Local response normalisation over neighbouring channels (Krizhevsky 2012, section 3.3). */
#include "engine/model/layer.h"

static const struct psd_key keys[] = {
	PSD_COUNT_KEY("size", struct psd_lrn_settings, size, PSD_LAYER_SIDE_MAX, true),
	{.name = NULL},
};

/* Over n channels: squares 1, sliding sum n, scale and offset 2, power 1, product 1; backward once more the sum, of
 * products. */
static struct psd_layer_work count(const struct psd_layer *layer, struct psd_shape in)
{
	const uint64_t channels = layer->settings.lrn.size;

	(void)in;
	return psd_layer_work_per_element(layer, channels + 5, channels + 6, 0);
}

const struct psd_layer_kind psd_layer_lrn = {.name = "lrn", .least_inputs = 1, .keys = keys, .count = count};
