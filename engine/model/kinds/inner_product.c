/* Linear layer: every output is a weighted sum of all inputs. */
#include "engine/model/layer.h"

static const struct psd_key keys[] = {
	PSD_COUNT_KEY("outputs", struct psd_inner_product_settings, outputs, PSD_LAYER_CHANNELS_MAX, true),
	PSD_FLAG_KEY("bias", struct psd_inner_product_settings, has_bias),
	{.name = NULL},
};

static enum psd_status infer(struct psd_layer *layer, const struct psd_layer *layers, struct psd_place at,
			     struct psd_error *err)
{
	layer->shape = (struct psd_shape){layer->settings.inner_product.outputs, 1, 1};
	if (psd_shape_elements(psd_layer_input_shape(layer, layers)) > UINT32_MAX)
		return psd_error_set(err, PSD_EINVAL, at, "layer '%.80s' has more than %u inputs", layer->name,
				     UINT32_MAX);
	return PSD_OK;
}

static bool declare(struct psd_graph_build *build, const struct psd_layer *layer, struct psd_shape in)
{
	const struct psd_inner_product_settings *inner = &layer->settings.inner_product;
	const uint32_t inputs = (uint32_t)psd_shape_elements(in);
	const struct psd_tensor weight = {.dims = {inner->outputs, inputs}, .rows = inputs, .columns = inner->outputs};

	return psd_layer_declare_products(build, layer, weight, inputs, inner->has_bias);
}

static struct psd_layer_work count(const struct psd_layer *layer, struct psd_shape in)
{
	const struct psd_inner_product_settings *inner = &layer->settings.inner_product;

	return psd_layer_work_of_products(layer, layer->shape, psd_shape_elements(in) * inner->outputs,
					  inner->has_bias);
}

const struct psd_layer_kind psd_layer_inner_product = {
	.name = "inner-product",
	.least_inputs = 1,
	.arithmetic = PSD_ARITHMETIC_GEMM,
	.keys = keys,
	.defaults.inner_product.has_bias = true,
	.infer = infer,
	.declare = declare,
	.count = count,
};
