/* The same values in the same order as maps of another shape. */
#include "engine/model/layer.h"

static const struct psd_key keys[] = {
	PSD_COUNT_KEY("channels", struct psd_shape, channels, PSD_LAYER_CHANNELS_MAX, true),
	PSD_COUNT_KEY("height", struct psd_shape, height, PSD_LAYER_SIDE_MAX, false),
	PSD_COUNT_KEY("width", struct psd_shape, width, PSD_LAYER_SIDE_MAX, false),
	{.name = NULL},
};

static enum psd_status infer(struct psd_layer *layer, const struct psd_layer *layers, struct psd_place at,
			     struct psd_error *err)
{
	const struct psd_shape in = psd_layer_input_shape(layer, layers);

	layer->shape = layer->settings.shape;
	if (psd_shape_elements(layer->shape) == psd_shape_elements(in))
		return PSD_OK;
	return psd_error_set(err, PSD_EINVAL, at, "layer '%.80s' makes %ux%ux%u of %ux%ux%u, which are not as many",
			     layer->name, layer->shape.channels, layer->shape.height, layer->shape.width, in.channels,
			     in.height, in.width);
}

const struct psd_layer_kind psd_layer_reshape = {
	.name = "reshape",
	.least_inputs = 1,
	.keys = keys,
	.defaults.shape = {0, 1, 1},
	.infer = infer,
};
