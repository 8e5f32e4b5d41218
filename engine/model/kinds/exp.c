/* The exponential function. */
#include "engine/model/layer.h"

/* Backward dx = dy y. */
const struct psd_layer_kind psd_layer_exp = {
	.name = "exp",
	.least_inputs = 1,
	.is_in_place = true,
	.per_element = {.forward_flops = 1, .data_flops = 1},
};
