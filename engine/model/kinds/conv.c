/* Convolution, in groups of channels that do not see each other, and its transpose. */
#include <math.h>

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

/* Sets the channels of the output, and the groups where there is one for each input channel. */
static enum psd_status divide_channels(struct psd_layer *layer, struct psd_shape in, struct psd_place at,
				       struct psd_error *err)
{
	struct psd_conv_settings *conv = &layer->settings.conv;

	if (!conv->groups)
		conv->groups = in.channels;
	layer->shape.channels = conv->outputs;
	if (in.channels % conv->groups == 0 && conv->outputs % conv->groups == 0)
		return PSD_OK;
	return psd_error_set(err, PSD_EINVAL, at,
			     "layer '%.80s' has %u groups, must divide its %u input and %u output channels",
			     layer->name, conv->groups, in.channels, conv->outputs);
}

/* Work of a layer that multiplies its weight at each position of `map`. */
static struct psd_layer_work count(const struct psd_layer *layer, struct psd_shape in, struct psd_shape map)
{
	const struct psd_conv_settings *conv = &layer->settings.conv;
	const struct psd_sides kernel = conv->window.kernel;
	const uint64_t weight_elements = psd_saturated_mul((uint64_t)conv->outputs * (in.channels / conv->groups),
							   (uint64_t)kernel.height * kernel.width);

	return psd_layer_work_of_products(layer, map, weight_elements, conv->has_bias);
}

/* ---- convolution ---- */

static enum psd_status infer_conv(struct psd_layer *layer, const struct psd_layer *layers, struct psd_place at,
				  struct psd_error *err)
{
	const struct psd_shape in = psd_layer_input_shape(layer, layers);

	PSD_TRY(divide_channels(layer, in, at, err));
	return psd_layer_slide_window(layer, &layer->settings.conv.window, false, in, at, err);
}

static bool declare_conv(struct psd_graph_build *build, const struct psd_layer *layer, struct psd_shape in)
{
	const struct psd_conv_settings *conv = &layer->settings.conv;
	const struct psd_sides kernel = conv->window.kernel;
	const uint32_t inputs = in.channels / conv->groups;
	const struct psd_tensor weight = {.dims = {conv->outputs, inputs, kernel.height, kernel.width}};

	return psd_layer_declare_products(build, layer, weight, (double)inputs * kernel.height * kernel.width,
					  conv->has_bias);
}

static struct psd_layer_work count_conv(const struct psd_layer *layer, struct psd_shape in)
{
	return count(layer, in, layer->shape);
}

#define CONV_KIND(kind)                                                                                                \
	.least_inputs = 1, .arithmetic = PSD_ARITHMETIC_CONV, .keys = keys,                                            \
	.defaults.conv = {.window = PSD_WINDOW_DEFAULT, .groups = 1, .has_bias = true}, .infer = infer_##kind,         \
	.declare = declare_##kind, .count = count_##kind

const struct psd_layer_kind psd_layer_conv = {.name = "conv", CONV_KIND(conv)};

/* ---- transposed convolution: adds the weights of a window, times each value of the input, around its position ---- */

/* Side on which the window has that number of positions; 0 if the pad is not smaller. */
static uint32_t spread(uint64_t positions, uint64_t kernel, uint64_t stride, uint64_t dilation, uint64_t pad)
{
	const uint64_t padded = (positions - 1) * stride + dilation * (kernel - 1) + 1;
	const uint64_t side = padded > 2 * pad ? padded - 2 * pad : 0;

	return side < UINT32_MAX ? (uint32_t)side : UINT32_MAX;
}

static enum psd_status infer_deconv(struct psd_layer *layer, const struct psd_layer *layers, struct psd_place at,
				    struct psd_error *err)
{
	const struct psd_window *w = &layer->settings.conv.window;
	const struct psd_shape in = psd_layer_input_shape(layer, layers);

	layer->shape.height = spread(in.height, w->kernel.height, w->stride.height, w->dilation.height, w->pad.height);
	layer->shape.width = spread(in.width, w->kernel.width, w->stride.width, w->dilation.width, w->pad.width);
	return divide_channels(layer, in, at, err);
}

/* The weight has input channels first, as in Caffe and PyTorch. Its start values are those of a convolution: an output
 * is a sum over the input windows that reach it. */
static bool declare_deconv(struct psd_graph_build *build, const struct psd_layer *layer, struct psd_shape in)
{
	const struct psd_conv_settings *conv = &layer->settings.conv;
	const struct psd_sides kernel = conv->window.kernel, stride = conv->window.stride;
	const double inputs = fmax(1, (double)in.channels / conv->groups * kernel.height / stride.height *
					      kernel.width / stride.width);
	const struct psd_tensor weight = {
		.dims = {in.channels, conv->outputs / conv->groups, kernel.height, kernel.width}};

	return psd_layer_declare_products(build, layer, weight, inputs, conv->has_bias);
}

static struct psd_layer_work count_deconv(const struct psd_layer *layer, struct psd_shape in)
{
	return count(layer, in, in);
}

const struct psd_layer_kind psd_layer_deconv = {.name = "deconv", CONV_KIND(deconv)};
