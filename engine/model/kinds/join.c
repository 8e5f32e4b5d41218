/* Kinds that join several inputs: sum, product, concatenation. */
#include "engine/model/layer.h"

/* ---- sum, element by element ---- */

static enum psd_status infer_add(struct psd_layer *layer, const struct psd_layer *layers, struct psd_place at,
				 struct psd_error *err)
{
	const struct psd_shape first = layer->shape;

	for (unsigned i = 1; i < layer->n_inputs; i++) {
		const struct psd_layer *input = &layers[layer->inputs[i]];
		const struct psd_shape shape = input->shape;

		if (!psd_shape_is_equal(shape, first))
			return psd_error_set(
				err, PSD_EINVAL, at,
				"layer '%.80s': input '%.80s' is %ux%ux%u, must be %ux%ux%u as the first input",
				layer->name, input->name, shape.channels, shape.height, shape.width, first.channels,
				first.height, first.width);
	}
	return PSD_OK;
}

/* Each input has the gradient of the output: no FLOPs. */
static struct psd_layer_work count_add(const struct psd_layer *layer, struct psd_shape in)
{
	(void)in;
	return psd_layer_work_per_element(layer, layer->n_inputs - 1u, 0, 0);
}

const struct psd_layer_kind psd_layer_add = {
	.name = "add",
	.least_inputs = 2,
	.takes_more_inputs = true,
	.infer = infer_add,
	.count = count_add,
};

/* ---- product of two inputs, element by element; a second input of 1x1 positions scales the whole map ---- */

static enum psd_status infer_multiply(struct psd_layer *layer, const struct psd_layer *layers, struct psd_place at,
				      struct psd_error *err)
{
	const struct psd_layer *factor = &layers[layer->inputs[1]];
	const struct psd_shape first = layer->shape, shape = factor->shape;

	if (psd_shape_is_equal(shape, first) || psd_shape_is_equal(shape, (struct psd_shape){first.channels, 1, 1}))
		return PSD_OK;
	return psd_error_set(err, PSD_EINVAL, at,
			     "layer '%.80s': input '%.80s' is %ux%ux%u, must be %ux%ux%u as the first input or %ux1x1",
			     layer->name, factor->name, shape.channels, shape.height, shape.width, first.channels,
			     first.height, first.width, first.channels);
}

/* Backward a product for each input; those of a 1x1 input are summed. */
const struct psd_layer_kind psd_layer_multiply = {
	.name = "multiply",
	.least_inputs = 2,
	.infer = infer_multiply,
	.per_element = {.forward_flops = 1, .data_flops = 3},
};

/* ---- concatenation of channels ---- */

static enum psd_status infer_concat(struct psd_layer *layer, const struct psd_layer *layers, struct psd_place at,
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
	.infer = infer_concat,
};
