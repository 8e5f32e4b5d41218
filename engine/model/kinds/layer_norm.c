/* Normalisation over the channels of each place (Ba et al. 2016), with a learned scale and shift unless told
 * otherwise. */
#include "engine/model/layer.h"

static const struct psd_key keys[] = {
	PSD_FLAG_KEY("scale", struct psd_affine_settings, has_scale),
	PSD_FLAG_KEY("bias", struct psd_affine_settings, has_shift),
	PSD_NUMBER_KEY("epsilon", struct psd_affine_settings, epsilon, 1e-12, 1),
	{.name = NULL},
};

/* Mean 1, variance 3, normalise 2, scale 1, shift 1; the data gradient from the sums of dy and of dy x over the place:
 * 6, and a product with gamma. Gamma: a product and a sum; beta: a sum. */
static struct psd_layer_work count(const struct psd_layer *layer, struct psd_shape in)
{
	const unsigned has_scale = layer->settings.affine.has_scale, has_shift = layer->settings.affine.has_shift;

	(void)in;
	return psd_layer_work_per_element(layer, 6 + has_scale + has_shift, 6 + has_scale, 2 * has_scale + has_shift);
}

const struct psd_layer_kind psd_layer_layer_norm = {
	.name = "layer-norm",
	.least_inputs = 1,
	.keys = keys,
	.defaults.affine = {.has_scale = true, .has_shift = true, .epsilon = 1e-5}, /* PyTorch's */
	.declare = psd_layer_declare_affine,
	.count = count,
};
