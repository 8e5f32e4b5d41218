/* The logistic function: y = 1 / (1 + exp(-x)). */
#include "engine/model/layer.h"

/* A sign, an exponential, a sum and a quotient; backward dx = dy y (1 - y): a difference and two products. */
const struct psd_layer_kind psd_layer_sigmoid = {
	.name = "sigmoid",
	.least_inputs = 1,
	.is_in_place = true,
	.per_element = {.forward_flops = 4, .data_flops = 3},
};
