/* The rectifier: max(0, x), or with a slope below 0. */
#include "engine/model/layer.h"

static const struct psd_key keys[] = {
	PSD_NUMBER_KEY("slope", struct psd_slope_settings, slope, 0, 1e6),
	{.name = NULL},
};

const struct psd_layer_kind psd_layer_relu = {
	.name = "relu",
	.least_inputs = 1,
	.is_in_place = true,
	.keys = keys,
	.per_element = {.forward_flops = 1, .data_flops = 1}, /* a comparison, a product with its result */
};
