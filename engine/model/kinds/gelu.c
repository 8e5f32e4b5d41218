/* x times the share of a standard normal distribution below x (Hendrycks and Gimpel 2016): exactly, by the error
 * function, or as near as their formula by the hyperbolic tangent comes. */
#include "engine/model/layer.h"

/* PyTorch's and ONNX's words. */
static const char *const approximations[] = {[PSD_GELU_EXACT] = "none", [PSD_GELU_TANH] = "tanh", NULL};

static const struct psd_key keys[] = {
	{.name = "approximate",
	 .type = PSD_KEY_CHOICE,
	 .offset = offsetof(struct psd_gelu_settings, approximation),
	 .names = approximations},
	{.name = NULL},
};

/* x (1 + erf(x / sqrt 2)) / 2: two products, the error function, a sum, a product. Backward by the density as well: the
 * same once more, its square, exponential and product, a sum and the product with dy.
 * x (1 + t) / 2 with t = tanh(x (a + b x x)): three products and a sum, the tangent's 5, a sum, two products. Backward
 * t by as many 9, then dy ((1 + t) / 2 + x / 2 (1 - t t) (a + 3 b x x)): a sum and a product, a product and a
 * difference, a product and a sum, where x x is at hand; three products, a sum, the product with dy. */
static struct psd_layer_work count(const struct psd_layer *layer, struct psd_shape in)
{
	const bool is_exact = layer->settings.gelu.approximation == PSD_GELU_EXACT;

	(void)in;
	return psd_layer_work_per_element(layer, is_exact ? 5 : 12, is_exact ? 9 : 20, 0);
}

const struct psd_layer_kind psd_layer_gelu = {
	.name = "gelu",
	.least_inputs = 1,
	.keys = keys,
	.count = count,
};
