/* A fixed factor and summand for all values. */
#include "engine/model/layer.h"

static const struct psd_key keys[] = {
	PSD_NUMBER_KEY("factor", struct psd_linear_settings, factor, -1e6, 1e6),
	PSD_NUMBER_KEY("summand", struct psd_linear_settings, summand, -1e6, 1e6),
	{.name = NULL},
};

const struct psd_layer_kind psd_layer_linear = {
	.name = "linear",
	.least_inputs = 1,
	.is_in_place = true,
	.keys = keys,
	.defaults.linear.factor = 1,
	.per_element = {.forward_flops = 2, .data_flops = 1},
};
