/* x times the share of a standard normal distribution below x (Hendrycks and Gimpel 2016), exactly: by the error
 * function. */
#include "engine/model/layer.h"

/* x (1 + erf(x / sqrt 2)) / 2: two products, the error function, a sum, a product. Backward by the density as well: the
 * same once more, its square, exponential and product, a sum and the product with dy. */
const struct psd_layer_kind psd_layer_gelu = {
	.name = "gelu",
	.least_inputs = 1,
	.per_element = {.forward_flops = 5, .data_flops = 9},
};
