/* Channels of several groups in turn: the first of each, then the second of each (Zhang et al. 2018). */
#include "engine/model/layer.h"

static const struct psd_key keys[] = {
	PSD_COUNT_KEY("groups", struct psd_shuffle_settings, groups, PSD_LAYER_CHANNELS_MAX, true),
	{.name = NULL},
};

static enum psd_status infer(struct psd_layer *layer, const struct psd_layer *layers, struct psd_place at,
			     struct psd_error *err)
{
	(void)layers;
	if (layer->shape.channels % layer->settings.shuffle.groups == 0)
		return PSD_OK;
	return psd_error_set(err, PSD_EINVAL, at, "layer '%.80s': %u groups do not divide %u channels", layer->name,
			     layer->settings.shuffle.groups, layer->shape.channels);
}

const struct psd_layer_kind psd_layer_shuffle = {
	.name = "shuffle",
	.least_inputs = 1,
	.keys = keys,
	.infer = infer,
};
