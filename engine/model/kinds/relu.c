/* The rectifier: max(0, x). */
#include "engine/model/layer.h"

const struct psd_layer_kind psd_layer_relu = {
	.name = "relu",
	.least_inputs = 1,
	.is_in_place = true,
	.per_element = {.forward_flops = 1, .data_flops = 1}, /* a comparison, a product with its result */
};
