/* A learned factor and summand for each channel, or one of them. */
#include "engine/model/layer.h"

static const struct psd_key keys[] = {
	PSD_FLAG_KEY("scale", struct psd_affine_settings, has_scale),
	PSD_FLAG_KEY("bias", struct psd_affine_settings, has_shift),
	{.name = NULL},
};

/* Gamma's gradient: a product and a sum; beta's: a sum. */
static struct psd_layer_work count(const struct psd_layer *layer, struct psd_shape in)
{
	const unsigned has_scale = layer->settings.affine.has_scale, has_shift = layer->settings.affine.has_shift;

	(void)in;
	return psd_layer_work_per_element(layer, has_scale + has_shift, has_scale, 2 * has_scale + has_shift);
}

const struct psd_layer_kind psd_layer_scale = {
	.name = "scale",
	.least_inputs = 1,
	.keys = keys,
	.defaults.affine = {.has_scale = true, .has_shift = true},
	.declare = psd_layer_declare_affine,
	.count = count,
};
