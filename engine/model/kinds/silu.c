/* x times the logistic function of x (Elfwing et al. 2018, "Sigmoid-weighted linear units", section 2.1). */
#include "engine/model/layer.h"

/* x / (1 + exp(-x)): a sign, an exponential, a sum, a quotient. Backward the logistic function s by as many, then
 * dx = dy s (1 + x (1 - s)): a difference, a product, a sum, two products. */
const struct psd_layer_kind psd_layer_silu = {
	.name = "silu",
	.least_inputs = 1,
	.per_element = {.forward_flops = 4, .data_flops = 9},
};
