/* Values raised to a power: no number below 0 where that is no whole one. */
#include "engine/model/layer.h"

static const struct psd_key keys[] = {
	PSD_NUMBER_KEY("exponent", struct psd_power_settings, exponent, -1e3, 1e3),
	{.name = NULL},
};

/* A logarithm, a product, an exponential; backward dx = dy e x^(e - 1): the same and two products. */
const struct psd_layer_kind psd_layer_power = {
	.name = "power",
	.least_inputs = 1,
	.keys = keys,
	.defaults.power.exponent = 1,
	.per_element = {.forward_flops = 3, .data_flops = 5},
};
