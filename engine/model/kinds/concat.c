/* The channels of all inputs, one after the other. */
#include "engine/model/layer.h"

static enum psd_status infer(struct psd_layer *layer, const struct psd_layer *layers, struct psd_place at,
			     struct psd_error *err)
{
	const struct psd_shape first = layer->shape;
	uint64_t channels = 0;

	for (unsigned i = 0; i < layer->n_inputs; i++) {
		const struct psd_layer *input = &layers[layer->inputs[i]];

		if (input->shape.height != first.height || input->shape.width != first.width)
			return psd_error_set(err, PSD_EINVAL, at,
					     "layer '%.80s': input '%.80s' is %ux%u, must be %ux%u as the first input",
					     layer->name, input->name, input->shape.height, input->shape.width,
					     first.height, first.width);
		channels += input->shape.channels;
	}
	layer->shape.channels = channels > PSD_LAYER_CHANNELS_MAX ? UINT32_MAX : (uint32_t)channels;
	return PSD_OK;
}

const struct psd_layer_kind psd_layer_concat = {
	.name = "concat",
	.least_inputs = 1,
	.takes_more_inputs = true,
	.infer = infer,
};
