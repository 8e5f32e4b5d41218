/* The product of two inputs, element by element; a second input of 1x1 places holds for the whole map. */
#include "engine/model/layer.h"

static enum psd_status infer(struct psd_layer *layer, const struct psd_layer *layers, struct psd_place at,
			     struct psd_error *err)
{
	const struct psd_layer *factor = &layers[layer->inputs[1]];
	const struct psd_shape whole = layer->shape, shape = factor->shape;
	const bool is_flat = shape.height == 1 && shape.width == 1;

	if (shape.channels == whole.channels &&
	    (is_flat || (shape.height == whole.height && shape.width == whole.width)))
		return PSD_OK;
	return psd_error_set(err, PSD_EINVAL, at,
			     "layer '%.80s': input '%.80s' is %ux%ux%u, must be %ux%ux%u as the first input or %ux1x1",
			     layer->name, factor->name, shape.channels, shape.height, shape.width, whole.channels,
			     whole.height, whole.width, whole.channels);
}

/* Backward a product for each input; of a flat one they are summed. */
const struct psd_layer_kind psd_layer_multiply = {
	.name = "multiply",
	.least_inputs = 2,
	.infer = infer,
	.per_element = {.forward_flops = 1, .data_flops = 3},
};
