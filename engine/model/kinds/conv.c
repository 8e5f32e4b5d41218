/* Convolution, in groups of channels that do not see each other. */
#include "engine/model/layer.h"

static enum psd_status infer(struct psd_layer *layer, const struct psd_layer *layers, struct psd_place at,
			     struct psd_error *err)
{
	const struct psd_shape in = psd_layer_input_shape(layer, layers);
	const enum psd_status status = psd_layer_divide_channels(layer, in, at, err);

	return status ? status : psd_layer_slide_window(layer, &layer->settings.conv.window, false, in, at, err);
}

static bool declare(struct psd_graph_build *build, const struct psd_layer *layer, struct psd_shape in)
{
	const struct psd_conv_settings *conv = &layer->settings.conv;
	const struct psd_sides kernel = conv->window.kernel;
	const uint32_t inputs = in.channels / conv->groups;
	const struct psd_tensor weight = {.dims = {conv->outputs, inputs, kernel.height, kernel.width}};

	return psd_layer_declare_products(build, layer, weight, (double)inputs * kernel.height * kernel.width,
					  conv->has_bias);
}

static struct psd_layer_work count(const struct psd_layer *layer, struct psd_shape in)
{
	return psd_layer_work_of_conv(layer, in, layer->shape);
}

const struct psd_layer_kind psd_layer_conv = {
	.name = "conv",
	.least_inputs = 1,
	.arithmetic = PSD_ARITHMETIC_CONV,
	.keys = psd_layer_conv_keys,
	.defaults.conv = PSD_CONV_DEFAULT,
	.infer = infer,
	.declare = declare,
	.count = count,
};
