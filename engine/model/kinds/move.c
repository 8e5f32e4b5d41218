/* Kinds that move values: slice, reshape, permutation, channel shuffle; and resize, which interpolates. */
#include "engine/model/layer.h"

#define COUNT(key, member, most, needed) PSD_COUNT_KEY(key, union psd_layer_settings, member, most, needed)

/* ---- slice: some of the channels ---- */

static const struct psd_key slice_keys[] = {
	COUNT("channels", slice.channels, PSD_LAYER_CHANNELS_MAX, true),
	{.name = "first",
	 .type = PSD_KEY_UNSIGNED,
	 .offset = offsetof(union psd_layer_settings, slice.first),
	 .highest = PSD_LAYER_CHANNELS_MAX},
	{.name = NULL},
};

static enum psd_status infer_slice(struct psd_layer *layer, const struct psd_layer *layers, struct psd_place at,
				   struct psd_error *err)
{
	const uint32_t first = layer->settings.slice.first, n = layer->settings.slice.channels;
	const uint32_t channels = psd_layer_input_shape(layer, layers).channels;

	layer->shape.channels = n;
	if (first < channels && n <= channels - first)
		return PSD_OK;
	return psd_error_set(err, PSD_EINVAL, at, "layer '%.80s' takes %u channels from %u on, its input has %u",
			     layer->name, n, first, channels);
}

const struct psd_layer_kind psd_layer_slice = {
	.name = "slice",
	.least_inputs = 1,
	.keys = slice_keys,
	.infer = infer_slice,
};

/* ---- reshape: the same values, in the same order, in maps of another shape ---- */

static const struct psd_key reshape_keys[] = {
	COUNT("channels", shape.channels, PSD_LAYER_CHANNELS_MAX, true),
	COUNT("height", shape.height, PSD_LAYER_SIDE_MAX, false),
	COUNT("width", shape.width, PSD_LAYER_SIDE_MAX, false),
	{.name = NULL},
};

static enum psd_status infer_reshape(struct psd_layer *layer, const struct psd_layer *layers, struct psd_place at,
				     struct psd_error *err)
{
	const struct psd_shape in = psd_layer_input_shape(layer, layers), out = layer->settings.shape;

	layer->shape = out;
	if (psd_shape_elements(out) == psd_shape_elements(in))
		return PSD_OK;
	return psd_error_set(err, PSD_EINVAL, at,
			     "layer '%.80s' cannot reshape %ux%ux%u (%llu values) to %ux%ux%u (%llu)", layer->name,
			     in.channels, in.height, in.width, (unsigned long long)psd_shape_elements(in), out.channels,
			     out.height, out.width, (unsigned long long)psd_shape_elements(out));
}

const struct psd_layer_kind psd_layer_reshape = {
	.name = "reshape",
	.least_inputs = 1,
	.keys = reshape_keys,
	.defaults.shape = {0, 1, 1},
	.infer = infer_reshape,
};

/* ---- permutation of channels, rows and columns ---- */

#define AXIS(key, i)                                                                                                   \
	{                                                                                                              \
		.name = key, .type = PSD_KEY_UNSIGNED, .offset = offsetof(union psd_layer_settings, permute.order[i]), \
		.is_required = true, .lowest = 1, .highest = 3                                                         \
	}

static const struct psd_key permute_keys[] = {
	AXIS("channels", 0),
	AXIS("rows", 1),
	AXIS("columns", 2),
	{.name = NULL},
};

static enum psd_status infer_permute(struct psd_layer *layer, const struct psd_layer *layers, struct psd_place at,
				     struct psd_error *err)
{
	const struct psd_shape in = psd_layer_input_shape(layer, layers);
	const uint32_t sides[] = {in.channels, in.height, in.width};
	const unsigned *order = layer->settings.permute.order;

	if ((1u << order[0] | 1u << order[1] | 1u << order[2]) != 0xe)
		return psd_error_set(err, PSD_EINVAL, at,
				     "layer '%.80s' has the order %u, %u, %u, must have each of 1, 2 and 3",
				     layer->name, order[0], order[1], order[2]);
	layer->shape = (struct psd_shape){sides[order[0] - 1], sides[order[1] - 1], sides[order[2] - 1]};
	return PSD_OK;
}

const struct psd_layer_kind psd_layer_permute = {
	.name = "permute",
	.least_inputs = 1,
	.keys = permute_keys,
	.infer = infer_permute,
};

/* ---- channel shuffle: the first channel of each group, then the second of each (Zhang et al. 2018) ---- */

static const struct psd_key shuffle_keys[] = {
	COUNT("groups", shuffle.groups, PSD_LAYER_CHANNELS_MAX, true),
	{.name = NULL},
};

static enum psd_status infer_shuffle(struct psd_layer *layer, const struct psd_layer *layers, struct psd_place at,
				     struct psd_error *err)
{
	const uint32_t groups = layer->settings.shuffle.groups;

	(void)layers;
	if (layer->shape.channels % groups == 0)
		return PSD_OK;
	return psd_error_set(err, PSD_EINVAL, at, "layer '%.80s' has %u groups, must divide its %u channels",
			     layer->name, groups, layer->shape.channels);
}

const struct psd_layer_kind psd_layer_shuffle = {
	.name = "shuffle",
	.least_inputs = 1,
	.keys = shuffle_keys,
	.infer = infer_shuffle,
};

/* ---- resize: bilinear interpolation between the four nearest positions; corners stay corners ---- */

static const struct psd_key resize_keys[] = {
	COUNT("height", size.height, PSD_LAYER_SIDE_MAX, true),
	COUNT("width", size.width, PSD_LAYER_SIDE_MAX, true),
	{.name = NULL},
};

static enum psd_status infer_resize(struct psd_layer *layer, const struct psd_layer *layers, struct psd_place at,
				    struct psd_error *err)
{
	(void)layers, (void)at, (void)err;
	layer->shape.height = layer->settings.size.height;
	layer->shape.width = layer->settings.size.width;
	return PSD_OK;
}

/* Four products and their sum; backward four products, each added to a gradient. */
const struct psd_layer_kind psd_layer_resize = {
	.name = "resize",
	.least_inputs = 1,
	.keys = resize_keys,
	.infer = infer_resize,
	.per_element = {.forward_flops = 7, .data_flops = 8},
};
