/* Learned vectors: an embedding of tokens, a position embedding, and vectors in front of a sequence. */
#include "engine/model/layer.h"

/* Standard deviation of start values. Source: Radford et al., "Improving language understanding by generative
 * pre-training", 2018, section 4.1. */
#define START_DEVIATION 0.02f

static bool declare(struct psd_graph_build *build, struct psd_tensor weight)
{
	weight.start_deviation = START_DEVIATION;
	return psd_graph_build_tensor(build, "weight", weight);
}

/* ---- embedding: looks up the table row that each value of its one input channel names ---- */

static const struct psd_key embedding_keys[] = {
	PSD_COUNT_KEY("vocabulary", struct psd_embedding_settings, vocabulary, PSD_LAYER_CHANNELS_MAX, true),
	PSD_COUNT_KEY("outputs", struct psd_embedding_settings, outputs, PSD_LAYER_CHANNELS_MAX, true),
	{.name = NULL},
};

static enum psd_status infer_embedding(struct psd_layer *layer, const struct psd_layer *layers, struct psd_place at,
				       struct psd_error *err)
{
	if (layers[layer->inputs[0]].n_inputs)
		return psd_error_set(err, PSD_EINVAL, at,
				     "layer '%.80s' looks up values of layer '%.80s', must look up the network's input",
				     layer->name, layers[layer->inputs[0]].name);
	if (layer->shape.channels != 1)
		return psd_error_set(err, PSD_EINVAL, at, "layer '%.80s' has an input of %u channels, must be 1",
				     layer->name, layer->shape.channels);
	layer->shape.channels = layer->settings.embedding.outputs;
	return PSD_OK;
}

static bool declare_embedding(struct psd_graph_build *build, const struct psd_layer *layer, struct psd_shape in)
{
	const struct psd_embedding_settings *embedding = &layer->settings.embedding;

	(void)in;
	return declare(build, (struct psd_tensor){.dims = {embedding->vocabulary, embedding->outputs}});
}

const struct psd_layer_kind psd_layer_embedding = {
	.name = "embedding",
	.least_inputs = 1,
	.reads_rows = true,
	.keys = embedding_keys,
	.infer = infer_embedding,
	.declare = declare_embedding,
	.per_element = {.parameter_flops = 1}, /* addition to the row's gradient */
};

/* ---- position embedding: adds a learned value to each element, the same in every sample ---- */

static bool declare_position(struct psd_graph_build *build, const struct psd_layer *layer, struct psd_shape in)
{
	(void)layer;
	return declare(build, (struct psd_tensor){.dims = {in.channels, in.height, in.width}});
}

/* The gradient of the input is that of the output: no FLOPs. */
const struct psd_layer_kind psd_layer_position = {
	.name = "position",
	.least_inputs = 1,
	.declare = declare_position,
	.per_element = {.forward_flops = 1, .parameter_flops = 1},
};

/* ---- prefix: learned vectors in front of the input, the same in every sample, such as the class token of Dosovitskiy
 * et al. 2021 (section 3.1). The output is one column: the vectors, then the positions of the input along rows ---- */

static const struct psd_key prefix_keys[] = {
	PSD_COUNT_KEY("places", union psd_layer_settings, prefix.places, PSD_LAYER_SIDE_MAX, false),
	{.name = NULL},
};

static enum psd_status infer_prefix(struct psd_layer *layer, const struct psd_layer *layers, struct psd_place at,
				    struct psd_error *err)
{
	const struct psd_shape in = psd_layer_input_shape(layer, layers);
	const uint64_t positions = (uint64_t)in.height * in.width + layer->settings.prefix.places;

	if (positions > PSD_LAYER_SIDE_MAX)
		return psd_error_set(err, PSD_EINVAL, at, "layer '%.80s' has %llu positions, must be 1 to %u",
				     layer->name, (unsigned long long)positions, PSD_LAYER_SIDE_MAX);
	layer->shape.height = (uint32_t)positions;
	layer->shape.width = 1;
	return PSD_OK;
}

static bool declare_prefix(struct psd_graph_build *build, const struct psd_layer *layer, struct psd_shape in)
{
	return declare(build, (struct psd_tensor){.dims = {in.channels, layer->settings.prefix.places}});
}

/* Sum of each vector's gradient over the samples. */
static struct psd_layer_work count_prefix(const struct psd_layer *layer, struct psd_shape in)
{
	return (struct psd_layer_work){.parameter_flops = (uint64_t)in.channels * layer->settings.prefix.places};
}

const struct psd_layer_kind psd_layer_prefix = {
	.name = "prefix",
	.least_inputs = 1,
	.keys = prefix_keys,
	.defaults.prefix.places = 1,
	.infer = infer_prefix,
	.declare = declare_prefix,
	.count = count_prefix,
};
