/* Learned vectors in front of the places of its input, the same in every sample, such as the class token of Dosovitskiy
 * et al. 2021 (section 3.1). Its places are one column: first those, then the input's along rows. */
#include "engine/model/layer.h"

static const struct psd_key keys[] = {
	PSD_COUNT_KEY("places", struct psd_prefix_settings, places, PSD_LAYER_SIDE_MAX, false),
	{.name = NULL},
};

static enum psd_status infer(struct psd_layer *layer, const struct psd_layer *layers, struct psd_place at,
			     struct psd_error *err)
{
	const struct psd_shape in = psd_layer_input_shape(layer, layers);
	const uint64_t places = (uint64_t)in.height * in.width + layer->settings.prefix.places;

	if (places > PSD_LAYER_SIDE_MAX)
		return psd_error_set(err, PSD_EINVAL, at, "layer '%.80s' has %llu places, must be 1 to %u", layer->name,
				     (unsigned long long)places, PSD_LAYER_SIDE_MAX);
	layer->shape.height = (uint32_t)places;
	layer->shape.width = 1;
	return PSD_OK;
}

static bool declare(struct psd_graph_build *build, const struct psd_layer *layer, struct psd_shape in)
{
	const struct psd_tensor weight = {.dims = {in.channels, layer->settings.prefix.places},
					  .start_deviation = PSD_LAYER_EMBEDDING_DEVIATION};

	return psd_graph_build_tensor(build, "weight", weight);
}

/* Nothing but the gradient of each of its vectors' values is added up over the samples. */
static struct psd_layer_work count(const struct psd_layer *layer, struct psd_shape in)
{
	return (struct psd_layer_work){.parameter_flops = (uint64_t)in.channels * layer->settings.prefix.places};
}

const struct psd_layer_kind psd_layer_prefix = {
	.name = "prefix",
	.least_inputs = 1,
	.keys = keys,
	.defaults.prefix.places = 1,
	.infer = infer,
	.declare = declare,
	.count = count,
};
