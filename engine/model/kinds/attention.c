/* Attention of all places to each other, in heads (Vaswani et al. 2017, section 3.2). The channels of its input are the
 * queries, the keys and the values, one behind the other; each head has an equal share of each, in order. Places are
 * counted along rows, so that a sequence is a map of any height and width. Causal: none sees a later one. */
#include "engine/base/saturate.h"
#include "engine/model/layer.h"

static const struct psd_key keys[] = {
	PSD_COUNT_KEY("heads", struct psd_attention_settings, heads, PSD_LAYER_CHANNELS_MAX, true),
	PSD_FLAG_KEY("causal", struct psd_attention_settings, is_causal),
	{.name = NULL},
};

static enum psd_status infer(struct psd_layer *layer, const struct psd_layer *layers, struct psd_place at,
			     struct psd_error *err)
{
	const struct psd_shape in = psd_layer_input_shape(layer, layers);
	const uint64_t parts = UINT64_C(3) * layer->settings.attention.heads;

	layer->shape.channels = in.channels / 3;
	if (in.channels % parts == 0)
		return PSD_OK;
	return psd_error_set(err, PSD_EINVAL, at,
			     "layer '%.80s' has an input of %u channels, must be a multiple of 3 times its %u heads: "
			     "queries, keys, values",
			     layer->name, in.channels, layer->settings.attention.heads);
}

/* Over L places and d channels of the output: queries times keys and probabilities times values, 2 L L d each; the
 * softmax of L L scores for each head, 5 and the scale's product. Backward the two products' four gradients; of the
 * softmax 4 and a product. All pairs count, also of a causal one: that is what dense products compute. The
 * probabilities are kept; that they are written and read counts nothing, as of kernels that make them anew. */
static struct psd_layer_work count(const struct psd_layer *layer, struct psd_shape in)
{
	const uint64_t places = (uint64_t)in.height * in.width, pairs = psd_saturated_mul(places, places);
	const uint64_t product = psd_saturated_mul(pairs, 2 * (uint64_t)layer->shape.channels);
	const uint64_t scores = psd_saturated_mul(pairs, layer->settings.attention.heads);

	return (struct psd_layer_work){
		.forward_flops = psd_saturated_add(psd_saturated_mul(product, 2), psd_saturated_mul(scores, 6)),
		.data_flops = psd_saturated_add(psd_saturated_mul(product, 4), psd_saturated_mul(scores, 5)),
		.kept_values = scores,
	};
}

const struct psd_layer_kind psd_layer_attention = {
	.name = "attention",
	.least_inputs = 1,
	.arithmetic = PSD_ARITHMETIC_GEMM,
	.keys = keys,
	.infer = infer,
	.count = count,
};
