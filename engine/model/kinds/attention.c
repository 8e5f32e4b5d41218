/* Self-attention with several heads (Vaswani et al. 2017, section 3.2). The channels of the input are the queries, then
 * the keys, then the values; each head has an equal share of each, in order. With fewer heads of keys and values,
 * consecutive heads of queries share one (Ainslie et al. 2023, section 2.2). Positions are counted along rows, so that
 * a sequence is a map of any height and width. Causal: a position attends to itself and earlier ones. Rotary: queries
 * and keys are rotated by their position (Su et al. 2021, section 3.2.2) in Llama's order: channels i and i + d / 2 of
 * the d channels of a head are a pair, rotated by position times base^(-2 i / d). Dropout: training drops that share of
 * the probabilities and scales the others up, as the layer of that name does. */
#include "engine/base/saturate.h"
#include "engine/model/layer.h"

static const struct psd_key keys[] = {
	PSD_COUNT_KEY("heads", struct psd_attention_settings, heads, PSD_LAYER_CHANNELS_MAX, true),
	PSD_COUNT_KEY("kv_heads", struct psd_attention_settings, kv_heads, PSD_LAYER_CHANNELS_MAX, false),
	PSD_FLAG_KEY("causal", struct psd_attention_settings, is_causal),
	PSD_NUMBER_KEY("rotary", struct psd_attention_settings, rotary_base, 0, 1e12),
	{.name = "dropout",
	 .type = PSD_KEY_RATIO,
	 .offset = offsetof(struct psd_attention_settings, dropout_ratio),
	 .highest = 0.999},
	{.name = NULL},
};

static enum psd_status check_rotary(const struct psd_layer *layer, struct psd_place at, struct psd_error *err)
{
	const struct psd_attention_settings *attention = &layer->settings.attention;
	const uint32_t depth = layer->shape.channels / attention->heads;

	if (attention->rotary_base > 0 && attention->rotary_base < 1)
		return psd_error_set(err, PSD_EINVAL, at, "layer '%.80s': 'rotary' is %g, must be 0, or 1 or more",
				     layer->name, attention->rotary_base);
	if (attention->rotary_base > 0 && depth % 2)
		return psd_error_set(err, PSD_EINVAL, at,
				     "layer '%.80s' has %u channels in a head, must be even where 'rotary' is %g",
				     layer->name, depth, attention->rotary_base);
	return PSD_OK;
}

static enum psd_status infer(struct psd_layer *layer, const struct psd_layer *layers, struct psd_place at,
			     struct psd_error *err)
{
	struct psd_attention_settings *attention = &layer->settings.attention;
	const struct psd_shape in = psd_layer_input_shape(layer, layers);
	uint64_t all_heads;

	if (!attention->kv_heads)
		attention->kv_heads = attention->heads;
	if (attention->heads % attention->kv_heads)
		return psd_error_set(err, PSD_EINVAL, at,
				     "layer '%.80s' has %u heads, must be a multiple of its %u kv_heads", layer->name,
				     attention->heads, attention->kv_heads);
	all_heads = attention->heads + UINT64_C(2) * attention->kv_heads;
	if (in.channels % all_heads)
		return psd_error_set(
			err, PSD_EINVAL, at,
			"layer '%.80s' has an input of %u channels, must be a multiple of %llu: %u heads of "
			"queries, %u of keys, %u of values",
			layer->name, in.channels, (unsigned long long)all_heads, attention->heads, attention->kv_heads,
			attention->kv_heads);
	layer->shape.channels = (uint32_t)(in.channels / all_heads * attention->heads);
	return check_rotary(layer, at, err);
}

/* With L positions and d output channels: queries times keys and probabilities times values, 2 L L d each, for any
 * number of shared keys and values; a softmax of L L scores for each head, 5, and the product with the scale. Backward:
 * four gradients of the two products; 4 for the softmax and a product. All pairs count in causal attention too, since
 * dense products compute them. The probabilities are kept; writing and reading them does not count, because kernels may
 * compute them again. Rotation of a pair of values is four products, a sum and a difference: 3 for a value. Rotated
 * queries and keys are not kept: backward rotates them again, and their gradients back. The angles serve all samples
 * and heads and do not count. Dropout is a product of probabilities with a mask, and of their gradients; masks are
 * drawn again in backward. */
static struct psd_layer_work count(const struct psd_layer *layer, struct psd_shape in)
{
	const struct psd_attention_settings *attention = &layer->settings.attention;
	const uint64_t positions = (uint64_t)in.height * in.width, pairs = psd_saturated_mul(positions, positions);
	const uint64_t product = psd_saturated_mul(pairs, 2 * (uint64_t)layer->shape.channels);
	const uint64_t scores = psd_saturated_mul(pairs, attention->heads);
	const uint64_t rotated_channels = ((uint64_t)in.channels + layer->shape.channels) / 2; /* queries and keys */
	const uint64_t rotation = attention->rotary_base > 0 ? 3 * positions * rotated_channels : 0;
	const uint64_t masks = attention->dropout_ratio > 0;
	const uint64_t forward = psd_saturated_add(psd_saturated_mul(product, 2), psd_saturated_mul(scores, 6 + masks));
	const uint64_t data = psd_saturated_add(psd_saturated_mul(product, 4), psd_saturated_mul(scores, 5 + masks));

	return (struct psd_layer_work){
		.forward_flops = psd_saturated_add(forward, rotation),
		.data_flops = psd_saturated_add(data, 2 * rotation),
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
