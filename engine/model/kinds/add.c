/* The sum of all inputs, element by element. */
#include "engine/model/layer.h"

static enum psd_status infer(struct psd_layer *layer, const struct psd_layer *layers, struct psd_place at,
			     struct psd_error *err)
{
	const struct psd_shape first = layer->shape;

	for (unsigned i = 1; i < layer->n_inputs; i++) {
		const struct psd_layer *input = &layers[layer->inputs[i]];
		const struct psd_shape shape = input->shape;

		if (shape.channels != first.channels || shape.height != first.height || shape.width != first.width)
			return psd_error_set(
				err, PSD_EINVAL, at,
				"layer '%.80s': input '%.80s' is %ux%ux%u, must be %ux%ux%u as the first input",
				layer->name, input->name, shape.channels, shape.height, shape.width, first.channels,
				first.height, first.width);
	}
	return PSD_OK;
}

/* Its gradient is handed on as it is. */
static struct psd_layer_work count(const struct psd_layer *layer, struct psd_shape in)
{
	(void)in;
	return psd_layer_work_per_element(layer, layer->n_inputs - 1u, 0, 0);
}

const struct psd_layer_kind psd_layer_add = {
	.name = "add",
	.least_inputs = 2,
	.takes_more_inputs = true,
	.infer = infer,
	.count = count,
};
