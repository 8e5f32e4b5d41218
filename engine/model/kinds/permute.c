/* Channels, rows and columns in another order. */
#include "engine/model/layer.h"

#define AXIS(key, place)                                                                                               \
	{                                                                                                              \
		.name = key, .type = PSD_KEY_UNSIGNED, .offset = offsetof(struct psd_permute_settings, order[place]),  \
		.is_required = true, .lowest = 1, .highest = 3                                                         \
	}

static const struct psd_key keys[] = {
	AXIS("channels", 0),
	AXIS("rows", 1),
	AXIS("columns", 2),
	{.name = NULL},
};

static enum psd_status infer(struct psd_layer *layer, const struct psd_layer *layers, struct psd_place at,
			     struct psd_error *err)
{
	const struct psd_shape in = psd_layer_input_shape(layer, layers);
	const uint32_t sides[] = {in.channels, in.height, in.width};
	const unsigned *order = layer->settings.permute.order;

	if ((1u << order[0] | 1u << order[1] | 1u << order[2]) != 0xe)
		return psd_error_set(err, PSD_EINVAL, at, "layer '%.80s': the order %u, %u, %u must have 1, 2 and 3",
				     layer->name, order[0], order[1], order[2]);
	layer->shape = (struct psd_shape){sides[order[0] - 1], sides[order[1] - 1], sides[order[2] - 1]};
	return PSD_OK;
}

const struct psd_layer_kind psd_layer_permute = {
	.name = "permute",
	.least_inputs = 1,
	.keys = keys,
	.infer = infer,
};
