/* Values held between 0 and a limit, such as the rectifier that ends at 6. */
#include "engine/model/layer.h"

static const struct psd_key keys[] = {
	PSD_NUMBER_KEY("most", struct psd_linear_settings, factor, 1e-6, 1e6),
	{.name = NULL},
};

const struct psd_layer_kind psd_layer_clip = {
	.name = "clip",
	.least_inputs = 1,
	.is_in_place = true,
	.keys = keys,
	.defaults.linear.factor = 6,
	.per_element = {.forward_flops = 2, .data_flops = 2}, /* comparisons */
};
