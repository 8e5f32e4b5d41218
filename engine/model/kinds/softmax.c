/* Softmax over the channels of each position, inside a network or, with a loss, at its end. */
#include "engine/model/layer.h"

/* Forward: maximum, difference, exponential, sum, quotient; backward dx = y (dy - sum of y dy): a product, a sum, a
 * difference, a product. */
const struct psd_layer_kind psd_layer_softmax = {
	.name = "softmax",
	.least_inputs = 1,
	.per_element = {.forward_flops = 5, .data_flops = 4},
};

/* Softmax with the multinomial logistic loss; its output, which backward needs, is the probabilities. Forward as above;
 * backward a difference and a product with the weight of the loss. */
static const struct psd_key loss_keys[] = {
	PSD_NUMBER_KEY("weight", union psd_layer_settings, loss.weight, 0, 1e6),
	{.name = NULL},
};
const struct psd_layer_kind psd_layer_softmax_loss = {
	.name = "softmax-loss",
	.least_inputs = 1,
	.is_loss = true,
	.keys = loss_keys,
	.defaults.loss.weight = 1,
	.per_element = {.forward_flops = 5, .data_flops = 2},
};
