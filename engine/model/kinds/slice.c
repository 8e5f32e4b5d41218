/* Some of the channels. */
#include "engine/model/layer.h"

static const struct psd_key keys[] = {
	PSD_COUNT_KEY("channels", struct psd_slice_settings, channels, PSD_LAYER_CHANNELS_MAX, true),
	{.name = "first",
	 .type = PSD_KEY_UNSIGNED,
	 .offset = offsetof(struct psd_slice_settings, first),
	 .highest = PSD_LAYER_CHANNELS_MAX},
	{.name = NULL},
};

static enum psd_status infer(struct psd_layer *layer, const struct psd_layer *layers, struct psd_place at,
			     struct psd_error *err)
{
	const struct psd_slice_settings *slice = &layer->settings.slice;
	const uint32_t channels = psd_layer_input_shape(layer, layers).channels;

	layer->shape.channels = slice->channels;
	if (slice->first < channels && slice->channels <= channels - slice->first)
		return PSD_OK;
	return psd_error_set(err, PSD_EINVAL, at, "layer '%.80s' takes %u channels from %u on, its input has %u",
			     layer->name, slice->channels, slice->first, channels);
}

const struct psd_layer_kind psd_layer_slice = {
	.name = "slice",
	.least_inputs = 1,
	.keys = keys,
	.infer = infer,
};
