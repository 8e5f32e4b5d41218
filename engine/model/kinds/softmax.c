/* Probabilities of the channels at each place: exp(x) by the sum of them. Amid a network; at its end softmax-loss has
 * them. */
#include "engine/model/layer.h"

/* Forward: maximum, difference, exponential, sum, quotient; backward dx = y (dy - sum of y dy): a product, a sum, a
 * difference, a product. */
const struct psd_layer_kind psd_layer_softmax = {
	.name = "softmax",
	.least_inputs = 1,
	.per_element = {.forward_flops = 5, .data_flops = 4},
};
