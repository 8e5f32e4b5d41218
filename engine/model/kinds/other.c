/* Work that a prediction needs and psd-run cannot compute: FLOPs, parameters and the output's shape are given. */
#include "engine/base/saturate.h"
#include "engine/model/layer.h"

#define COUNT(key, member, most)                                                                                       \
	{                                                                                                              \
		.name = key, .type = PSD_KEY_COUNT, .offset = offsetof(struct psd_other_settings, member),             \
		.highest = (double)(most)                                                                              \
	}

static const struct psd_key keys[] = {
	PSD_COUNT_KEY("channels", struct psd_other_settings, shape.channels, PSD_LAYER_CHANNELS_MAX, true),
	PSD_COUNT_KEY("height", struct psd_other_settings, shape.height, PSD_LAYER_SIDE_MAX, false),
	PSD_COUNT_KEY("width", struct psd_other_settings, shape.width, PSD_LAYER_SIDE_MAX, false),
	COUNT("flops", forward_flops, PSD_LAYER_FIGURE_MAX - 1),
	COUNT("parameters", parameters[0], UINT32_MAX),
	COUNT("reads", read_values, PSD_LAYER_FIGURE_MAX / 4 - 1),
	{.name = NULL},
};

static enum psd_status infer(struct psd_layer *layer, const struct psd_layer *layers, struct psd_place at,
			     struct psd_error *err)
{
	(void)layers;
	(void)at;
	(void)err;
	layer->shape = layer->settings.other.shape;
	return PSD_OK;
}

static bool declare(struct psd_graph_build *build, const struct psd_layer *layer, struct psd_shape in)
{
	static const char *const names[PSD_OTHER_TENSORS_MAX] = {"weight",  "weight2", "weight3", "weight4",
								 "weight5", "weight6", "weight7", "weight8"};

	(void)in;
	for (unsigned i = 0; i < PSD_OTHER_TENSORS_MAX; i++) {
		const struct psd_tensor tensor = {.dims = {(uint32_t)layer->settings.other.parameters[i]}};

		if (tensor.dims[0] && !psd_graph_build_tensor(build, names[i], tensor))
			return false;
	}
	return true;
}

/* Backward is taken to need as many FLOPs for the inputs' gradients, and again for the parameters'. */
static struct psd_layer_work count(const struct psd_layer *layer, struct psd_shape in)
{
	const uint64_t flops = layer->settings.other.forward_flops;

	(void)in;
	return (struct psd_layer_work){.forward_flops = flops,
				       .data_flops = flops,
				       .parameter_flops = layer->parameters ? flops : 0,
				       .read_values = layer->settings.other.read_values};
}

const struct psd_layer_kind psd_layer_other = {
	.name = "other",
	.least_inputs = 1,
	.takes_more_inputs = true,
	.is_predicted_only = true,
	.arithmetic = PSD_ARITHMETIC_GEMM,
	.keys = keys,
	.defaults.other = {.shape = {0, 1, 1}},
	.infer = infer,
	.declare = declare,
	.count = count,
};
