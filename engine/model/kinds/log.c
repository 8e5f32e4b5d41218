/* The natural logarithm: no number below 0. */
#include "engine/model/layer.h"

/* Backward dx = dy / x. */
const struct psd_layer_kind psd_layer_log = {
	.name = "log",
	.least_inputs = 1,
	.per_element = {.forward_flops = 1, .data_flops = 1},
};
