/* Transposed convolution: each value of the input, times the window's weights, is added around its place. */
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
	struct psd_conv_settings *conv = &layer->settings.conv;
	const struct psd_window *w = &conv->window;
	const struct psd_shape in = psd_layer_input_shape(layer, layers);

	if (!conv->groups)
		conv->groups = in.channels;
	if (in.channels % conv->groups || conv->outputs % conv->groups)
		return psd_error_set(err, PSD_EINVAL, at,
				     "layer '%.80s': %u groups do not divide %u inputs and %u outputs", layer->name,
				     conv->groups, in.channels, conv->outputs);
	layer->shape = (struct psd_shape){
		conv->outputs,
		spread(in.height, w->kernel.height, w->stride.height, w->dilation.height, w->pad.height),
		spread(in.width, w->kernel.width, w->stride.width, w->dilation.width, w->pad.width),
	};
	return PSD_OK;
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
		.dims = {in.channels, conv->outputs / conv->groups, kernel.height, kernel.width},
		.start_bound = (float)sqrt(3 / inputs),
	};
	const struct psd_tensor bias = {.dims = {conv->outputs}, .start_bound = (float)sqrt(1 / inputs)};

	return psd_graph_build_tensor(build, "weight", weight) &&
	       (!conv->has_bias || psd_graph_build_tensor(build, "bias", bias));
}

/* Every weight meets every place of the input; backward twice, as of a convolution. */
static struct psd_layer_work count(const struct psd_layer *layer, struct psd_shape in)
{
	const struct psd_conv_settings *conv = &layer->settings.conv;
	const struct psd_sides kernel = conv->window.kernel;
	const uint64_t each = psd_saturated_mul(conv->outputs / conv->groups, (uint64_t)kernel.height * kernel.width);
	const uint64_t products = psd_saturated_mul(2 * psd_shape_elements(in), each);
	const uint64_t additions = conv->has_bias ? psd_shape_elements(layer->shape) : 0;

	return (struct psd_layer_work){
		.forward_flops = psd_saturated_add(products, additions),
		.data_flops = products,
		.parameter_flops = psd_saturated_add(products, additions),
	};
}

const struct psd_layer_kind psd_layer_deconv = {
	.name = "deconv",
	.least_inputs = 1,
	.arithmetic = PSD_ARITHMETIC_CONV,
	.keys = keys,
	.defaults.conv = {.window = PSD_WINDOW_DEFAULT, .groups = 1, .has_bias = true},
	.infer = infer,
	.declare = declare,
	.count = count,
};
