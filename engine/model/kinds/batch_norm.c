/* Normalisation over the batch (Ioffe and Szegedy 2015), with a learned scale and shift unless told otherwise. */
#include "engine/model/layer.h"

static const struct psd_key keys[] = {
	PSD_FLAG_KEY("scale", struct psd_affine_settings, has_scale),
	PSD_FLAG_KEY("bias", struct psd_affine_settings, has_shift),
	PSD_FLAG_KEY("fixed", struct psd_affine_settings, is_fixed),
	PSD_NUMBER_KEY("epsilon", struct psd_affine_settings, epsilon, 1e-12, 1),
	PSD_NUMBER_KEY("kept", struct psd_affine_settings, kept_ratio, 0, 0.999999),
	{.name = NULL},
};

/* What it normalises by outside of training. */
static bool declare(struct psd_graph_build *build, const struct psd_layer *layer, struct psd_shape in)
{
	const struct psd_tensor mean = {.dims = {in.channels}}, variance = {.dims = {in.channels}, .start_value = 1};

	return psd_layer_declare_affine(build, layer, in) && psd_graph_build_state(build, "running_mean", mean) &&
	       psd_graph_build_state(build, "running_variance", variance);
}

/* In training (algorithm 1): mean 1, variance 3, normalise 2, scale 1, shift 1; its data gradient from the two sums the
 * parameters' gradients share: 5. Gamma: a product and a sum; beta: a sum. By fixed statistics: normalise 2, a product
 * backward. */
static struct psd_layer_work count(const struct psd_layer *layer, struct psd_shape in)
{
	const struct psd_affine_settings *affine = &layer->settings.affine;

	(void)in;
	return psd_layer_work_per_element(layer, (affine->is_fixed ? 2u : 6u) + affine->has_scale + affine->has_shift,
					  affine->is_fixed ? 1 : 5, 2u * affine->has_scale + affine->has_shift);
}

const struct psd_layer_kind psd_layer_batch_norm = {
	.name = "batch-norm",
	.least_inputs = 1,
	.keys = keys,
	/* Ioffe and Szegedy 2015 leave the numbers open; these are PyTorch's */
	.defaults.affine = {.has_scale = true, .has_shift = true, .epsilon = 1e-5, .kept_ratio = 0.9},
	.declare = declare,
	.count = count,
};
