/* Convolution, in groups of channels that do not see each other. */
#include "engine/base/saturate.h"
#include "engine/model/layer.h"

static const struct psd_key keys[] = {
	PSD_COUNT_KEY("outputs", struct psd_conv_settings, outputs, PSD_LAYER_CHANNELS_MAX, true),
	PSD_PAIR_KEY("kernel", struct psd_conv_settings, window.kernel, 1, true),
	PSD_PAIR_KEY("stride", struct psd_conv_settings, window.stride, 1, false),
	PSD_PAIR_KEY("pad", struct psd_conv_settings, window.pad, 0, false),
	PSD_PAIR_KEY("dilation", struct psd_conv_settings, window.dilation, 1, false),
	PSD_COUNT_KEY("groups", struct psd_conv_settings, groups, PSD_LAYER_CHANNELS_MAX, false),
	PSD_FLAG_KEY("bias", struct psd_conv_settings, has_bias),
	{.name = NULL},
};

static enum psd_status infer(struct psd_layer *layer, const struct psd_layer *layers, struct psd_place at,
			     struct psd_error *err)
{
	struct psd_conv_settings *conv = &layer->settings.conv;
	const struct psd_shape in = psd_layer_input_shape(layer, layers);

	if (!conv->groups)
		conv->groups = in.channels;
	layer->shape.channels = conv->outputs;
	if (in.channels % conv->groups || conv->outputs % conv->groups)
		return psd_error_set(err, PSD_EINVAL, at,
				     "layer '%.80s': %u groups do not divide %u inputs and %u outputs", layer->name,
				     conv->groups, in.channels, conv->outputs);
	return psd_layer_slide_window(layer, &conv->window, false, in, at, err);
}

static bool declare(struct psd_graph_build *build, const struct psd_layer *layer, struct psd_shape in)
{
	const struct psd_conv_settings *conv = &layer->settings.conv;
	const struct psd_sides kernel = conv->window.kernel;
	const struct psd_tensor weight = {
		.dims = {conv->outputs, in.channels / conv->groups, kernel.height, kernel.width}};

	return psd_layer_declare_products(build, weight, conv->has_bias);
}

static struct psd_layer_work count(const struct psd_layer *layer, struct psd_shape in)
{
	const struct psd_conv_settings *conv = &layer->settings.conv;
	const struct psd_sides kernel = conv->window.kernel;
	const uint64_t weight_elements = psd_saturated_mul((uint64_t)conv->outputs * (in.channels / conv->groups),
							   (uint64_t)kernel.height * kernel.width);

	return psd_layer_work_of_products(layer, weight_elements, conv->has_bias);
}

const struct psd_layer_kind psd_layer_conv = {
	.name = "conv",
	.least_inputs = 1,
	.arithmetic = PSD_ARITHMETIC_CONV,
	.keys = keys,
	.defaults.conv = {.window = PSD_WINDOW_DEFAULT, .groups = 1, .has_bias = true},
	.infer = infer,
	.declare = declare,
	.count = count,
};
