/* Looks up the row of a table that each value of its one channel, a whole number, names: the vector of a token. */
#include "engine/model/layer.h"

static const struct psd_key keys[] = {
	PSD_COUNT_KEY("vocabulary", struct psd_embedding_settings, vocabulary, PSD_LAYER_CHANNELS_MAX, true),
	PSD_COUNT_KEY("outputs", struct psd_embedding_settings, outputs, PSD_LAYER_CHANNELS_MAX, true),
	{.name = NULL},
};

static enum psd_status infer(struct psd_layer *layer, const struct psd_layer *layers, struct psd_place at,
			     struct psd_error *err)
{
	if (layers[layer->inputs[0]].n_inputs)
		return psd_error_set(err, PSD_EINVAL, at, "layer '%.80s' looks up '%.80s', must look up an input",
				     layer->name, layers[layer->inputs[0]].name);
	if (layer->shape.channels != 1)
		return psd_error_set(err, PSD_EINVAL, at, "layer '%.80s' has an input of %u channels, must be 1",
				     layer->name, layer->shape.channels);
	layer->shape.channels = layer->settings.embedding.outputs;
	return PSD_OK;
}

static bool declare(struct psd_graph_build *build, const struct psd_layer *layer, struct psd_shape in)
{
	const struct psd_embedding_settings *embedding = &layer->settings.embedding;
	const struct psd_tensor weight = {.dims = {embedding->vocabulary, embedding->outputs},
					  .start_deviation = PSD_LAYER_EMBEDDING_DEVIATION};

	(void)in;
	return psd_graph_build_tensor(build, "weight", weight);
}

const struct psd_layer_kind psd_layer_embedding = {
	.name = "embedding",
	.least_inputs = 1,
	.reads_rows = true,
	.keys = keys,
	.infer = infer,
	.declare = declare,
	.per_element = {.parameter_flops = 1}, /* added to the row's gradient */
};
