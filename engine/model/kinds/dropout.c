/* Drops a share of the values in training and scales the others up. */
#include "engine/model/layer.h"

static const struct psd_key keys[] = {
	{.name = "ratio",
	 .type = PSD_KEY_RATIO,
	 .offset = offsetof(union psd_layer_settings, dropout.ratio),
	 .is_required = true,
	 .highest = 0.999},
	{.name = NULL},
};

const struct psd_layer_kind psd_layer_dropout = {
	.name = "dropout",
	.least_inputs = 1,
	.is_in_place = true,
	.keys = keys,
	.per_element = {.forward_flops = 1, .data_flops = 1}, /* product with a mask; random numbers do not count */
};
