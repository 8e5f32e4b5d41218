/* Values without their sign. */
#include "engine/model/layer.h"

const struct psd_layer_kind psd_layer_abs = {
	.name = "abs",
	.least_inputs = 1,
	.per_element = {.forward_flops = 1, .data_flops = 1},
};
