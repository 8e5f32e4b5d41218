/* The hyperbolic tangent. */
#include "engine/model/layer.h"

/* (1 - e) / (1 + e) with e = exp(-2x); backward dx = dy (1 - y y). */
const struct psd_layer_kind psd_layer_tanh = {
	.name = "tanh",
	.least_inputs = 1,
	.is_in_place = true,
	.per_element = {.forward_flops = 5, .data_flops = 3},
};
