/* Transposed convolution: each value of the input, times the window's weights, is added around its place. */
#include <math.h>

#include "engine/model/layer.h"

/* The side on which the window would have so many positions; 0: the pad leaves nothing of it. */
static uint32_t spread(uint64_t positions, uint64_t kernel, uint64_t stride, uint64_t dilation, uint64_t pad)
{
	const uint64_t padded = (positions - 1) * stride + dilation * (kernel - 1) + 1;
	const uint64_t side = padded > 2 * pad ? padded - 2 * pad : 0;

	return side < UINT32_MAX ? (uint32_t)side : UINT32_MAX;
}

static enum psd_status infer(struct psd_layer *layer, const struct psd_layer *layers, struct psd_place at,
			     struct psd_error *err)
{
	const struct psd_window *w = &layer->settings.conv.window;
	const struct psd_shape in = psd_layer_input_shape(layer, layers);

	layer->shape.height = spread(in.height, w->kernel.height, w->stride.height, w->dilation.height, w->pad.height);
	layer->shape.width = spread(in.width, w->kernel.width, w->stride.width, w->dilation.width, w->pad.width);
	return psd_layer_divide_channels(layer, in, at, err);
}

/* The weight lies as Caffe's and PyTorch's, inputs first. Values start as a convolution's: one output is summed of the
 * inputs' windows as far as they reach it. */
static bool declare(struct psd_graph_build *build, const struct psd_layer *layer, struct psd_shape in)
{
	const struct psd_conv_settings *conv = &layer->settings.conv;
	const struct psd_sides kernel = conv->window.kernel, stride = conv->window.stride;
	const double inputs = fmax(1, (double)in.channels / conv->groups * kernel.height / stride.height *
					      kernel.width / stride.width);
	const struct psd_tensor weight = {
		.dims = {in.channels, conv->outputs / conv->groups, kernel.height, kernel.width}};

	return psd_layer_declare_products(build, layer, weight, inputs, conv->has_bias);
}

/* Every weight meets every place of the input. */
static struct psd_layer_work count(const struct psd_layer *layer, struct psd_shape in)
{
	return psd_layer_work_of_conv(layer, in, in);
}

const struct psd_layer_kind psd_layer_deconv = {
	.name = "deconv",
	.least_inputs = 1,
	.arithmetic = PSD_ARITHMETIC_CONV,
	.keys = psd_layer_conv_keys,
	.defaults.conv = PSD_CONV_DEFAULT,
	.infer = infer,
	.declare = declare,
	.count = count,
};
