/* Adds a learned value to each element, the same in every sample: what tells places apart where attention sees all of
 * them alike. */
#include "engine/model/layer.h"

static bool declare(struct psd_graph_build *build, const struct psd_layer *layer, struct psd_shape in)
{
	const struct psd_tensor weight = {.dims = {in.channels, in.height, in.width},
					  .start_deviation = PSD_LAYER_EMBEDDING_DEVIATION};

	(void)layer;
	return psd_graph_build_tensor(build, "weight", weight);
}

/* Its gradient is handed on as it is. */
const struct psd_layer_kind psd_layer_position = {
	.name = "position",
	.least_inputs = 1,
	.declare = declare,
	.per_element = {.forward_flops = 1, .parameter_flops = 1},
};
