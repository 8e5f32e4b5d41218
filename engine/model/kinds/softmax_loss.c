/* Softmax with the multinomial logistic loss. It keeps the probabilities, which its backward pass needs. */
#include "engine/model/layer.h"

static const struct psd_key keys[] = {
	PSD_NUMBER_KEY("weight", struct psd_loss_settings, weight, 0, 1e6),
	{.name = NULL},
};

/* Forward: maximum, difference, exponential, sum, quotient; backward a difference and the weight of the loss. */
const struct psd_layer_kind psd_layer_softmax_loss = {
	.name = "softmax-loss",
	.least_inputs = 1,
	.is_loss = true,
	.keys = keys,
	.defaults.loss.weight = 1,
	.per_element = {.forward_flops = 5, .data_flops = 2},
};
