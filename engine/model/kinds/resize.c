/* Maps of another height and width, bilinear between the nearest four places; corners stay corners. */
#include "engine/model/layer.h"

static const struct psd_key keys[] = {
	PSD_COUNT_KEY("height", struct psd_sides, height, PSD_LAYER_SIDE_MAX, true),
	PSD_COUNT_KEY("width", struct psd_sides, width, PSD_LAYER_SIDE_MAX, true),
	{.name = NULL},
};

static enum psd_status infer(struct psd_layer *layer, const struct psd_layer *layers, struct psd_place at,
			     struct psd_error *err)
{
	(void)layers, (void)at, (void)err;
	layer->shape.height = layer->settings.size.height;
	layer->shape.width = layer->settings.size.width;
	return PSD_OK;
}

/* Four products and their sum, and backward four that are added. */
const struct psd_layer_kind psd_layer_resize = {
	.name = "resize",
	.least_inputs = 1,
	.keys = keys,
	.infer = infer,
	.per_element = {.forward_flops = 7, .data_flops = 8},
};
