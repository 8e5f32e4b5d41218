/* The smooth rectifier: log(1 + exp(x)). */
#include "engine/model/layer.h"

/* An exponential, a sum, a logarithm; backward dx = dy / (1 + exp(-x)): a sign, an exponential, a sum, a quotient. */
const struct psd_layer_kind psd_layer_softplus = {
	.name = "softplus",
	.least_inputs = 1,
	.per_element = {.forward_flops = 3, .data_flops = 4},
};
