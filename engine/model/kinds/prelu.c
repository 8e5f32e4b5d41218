/* The rectifier with a learned slope below 0, one for each channel or one for all (He et al. 2015, section 2.1). */
#include "engine/model/layer.h"

static const struct psd_key keys[] = {
	PSD_FLAG_KEY("shared", struct psd_prelu_settings, is_shared),
	{.name = NULL},
};

static bool declare(struct psd_graph_build *build, const struct psd_layer *layer, struct psd_shape in)
{
	const struct psd_tensor slope = {.dims = {layer->settings.prelu.is_shared ? 1 : in.channels},
					 .start_value = 0.25f};

	return psd_graph_build_tensor(build, "weight", slope);
}

/* A comparison and a product; the slope's gradient: a product and a sum. */
const struct psd_layer_kind psd_layer_prelu = {
	.name = "prelu",
	.least_inputs = 1,
	.keys = keys,
	.declare = declare,
	.per_element = {.forward_flops = 2, .data_flops = 2, .parameter_flops = 2},
};
