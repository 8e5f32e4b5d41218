/* Division by the root of the mean square over the channels of each place (Zhang and Sennrich 2019, equation 4), with a
 * learned scale unless told otherwise. */
#include "engine/model/layer.h"

static const struct psd_key keys[] = {
	PSD_FLAG_KEY("scale", struct psd_affine_settings, has_scale),
	PSD_NUMBER_KEY("epsilon", struct psd_affine_settings, epsilon, 1e-12, 1),
	{.name = NULL},
};

/* Mean square 2, divide 1, scale 1; the data gradient from the sum of dy x over the place: that sum 2, a product for
 * each of dy and x and their difference, and a product with gamma. Gamma: a product and a sum. */
static struct psd_layer_work count(const struct psd_layer *layer, struct psd_shape in)
{
	const unsigned has_scale = layer->settings.affine.has_scale;

	(void)in;
	return psd_layer_work_per_element(layer, 3 + has_scale, 5 + has_scale, 2 * has_scale);
}

const struct psd_layer_kind psd_layer_rms_norm = {
	.name = "rms-norm",
	.least_inputs = 1,
	.keys = keys,
	.defaults.affine = {.has_scale = true, .epsilon = 1e-6}, /* Llama's */
	.declare = psd_layer_declare_affine,
	.count = count,
};
