/* The exponential linear unit (Clevert et al. 2016): x, or alpha (exp(x) - 1) below 0. */
#include "engine/model/layer.h"

static const struct psd_key keys[] = {
	PSD_NUMBER_KEY("alpha", struct psd_slope_settings, slope, 0, 1e6),
	{.name = NULL},
};

/* A comparison, an exponential, a difference and a product; backward dx = dy (y + alpha) below 0. */
const struct psd_layer_kind psd_layer_elu = {
	.name = "elu",
	.least_inputs = 1,
	.is_in_place = true,
	.keys = keys,
	.defaults.slope.slope = 1,
	.per_element = {.forward_flops = 4, .data_flops = 3},
};
