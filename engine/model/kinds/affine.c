/* Kinds with a learned scale (gamma) and shift (beta) for each channel, either of which a setting leaves out: scale
 * alone, and three normalisations. Gradient of gamma: a product and a sum for each element; of beta: a sum. */
#include "engine/model/layer.h"

#define FLAG(key, member) PSD_FLAG_KEY(key, struct psd_affine_settings, member)
#define EPSILON		  PSD_NUMBER_KEY("epsilon", struct psd_affine_settings, epsilon, 1e-12, 1)

static bool declare(struct psd_graph_build *build, const struct psd_layer *layer, struct psd_shape in)
{
	const struct psd_affine_settings *affine = &layer->settings.affine;
	const struct psd_tensor shift = {.dims = {in.channels}}, scale = {.dims = {in.channels}, .start_value = 1};

	return (!affine->has_scale || psd_graph_build_tensor(build, "weight", scale)) &&
	       (!affine->has_shift || psd_graph_build_tensor(build, "bias", shift));
}

/* Work of a layer whose forward and data gradient take these FLOPs for each element, scale and shift apart. */
static struct psd_layer_work count(const struct psd_layer *layer, unsigned forward, unsigned data)
{
	const unsigned has_scale = layer->settings.affine.has_scale, has_shift = layer->settings.affine.has_shift;

	return psd_layer_work_per_element(layer, forward + has_scale + has_shift, data, 2 * has_scale + has_shift);
}

/* ---- scale ---- */

static const struct psd_key scale_keys[] = {FLAG("scale", has_scale), FLAG("bias", has_shift), {.name = NULL}};

static struct psd_layer_work count_scale(const struct psd_layer *layer, struct psd_shape in)
{
	(void)in;
	return count(layer, 0, layer->settings.affine.has_scale);
}

const struct psd_layer_kind psd_layer_scale = {
	.name = "scale",
	.least_inputs = 1,
	.keys = scale_keys,
	.defaults.affine = {.has_scale = true, .has_shift = true},
	.declare = declare,
	.count = count_scale,
};

/* ---- batch norm: over the batch (Ioffe and Szegedy 2015) ---- */

static const struct psd_key batch_norm_keys[] = {
	FLAG("scale", has_scale),
	FLAG("bias", has_shift),
	FLAG("fixed", is_fixed),
	EPSILON,
	PSD_NUMBER_KEY("kept", struct psd_affine_settings, kept_ratio, 0, 0.999999),
	{.name = NULL},
};

static bool declare_batch_norm(struct psd_graph_build *build, const struct psd_layer *layer, struct psd_shape in)
{
	const struct psd_tensor mean = {.dims = {in.channels}}, variance = {.dims = {in.channels}, .start_value = 1};

	return declare(build, layer, in) && psd_graph_build_state(build, "running_mean", mean) &&
	       psd_graph_build_state(build, "running_variance", variance);
}

/* In training (algorithm 1): mean 1, variance 3, normalise 2; the data gradient uses the two sums of the parameters'
 * gradients: 5. With fixed statistics: normalise 2, and a product backward. */
static struct psd_layer_work count_batch_norm(const struct psd_layer *layer, struct psd_shape in)
{
	const bool is_fixed = layer->settings.affine.is_fixed;

	(void)in;
	return count(layer, is_fixed ? 2 : 6, is_fixed ? 1 : 5);
}

const struct psd_layer_kind psd_layer_batch_norm = {
	.name = "batch-norm",
	.reads_twice = true,
	.least_inputs = 1,
	.keys = batch_norm_keys,
	/* PyTorch's numbers: Ioffe and Szegedy 2015 give none */
	.defaults.affine = {.has_scale = true, .has_shift = true, .epsilon = 1e-5, .kept_ratio = 0.9},
	.declare = declare_batch_norm,
	.count = count_batch_norm,
};

/* ---- layer norm: over the channels of each position (Ba et al. 2016) ---- */

static const struct psd_key layer_norm_keys[] = {
	FLAG("scale", has_scale),
	FLAG("bias", has_shift),
	EPSILON,
	{.name = NULL},
};

/* Mean 1, variance 3, normalise 2; the data gradient uses the sums of dy and of dy x over the position: 6, and a
 * product with gamma. */
static struct psd_layer_work count_layer_norm(const struct psd_layer *layer, struct psd_shape in)
{
	(void)in;
	return count(layer, 6, 6 + layer->settings.affine.has_scale);
}

const struct psd_layer_kind psd_layer_layer_norm = {
	.name = "layer-norm",
	.least_inputs = 1,
	.keys = layer_norm_keys,
	.defaults.affine = {.has_scale = true, .has_shift = true, .epsilon = 1e-5}, /* PyTorch's */
	.declare = declare,
	.count = count_layer_norm,
};

/* ---- RMS norm: division by the root mean square of the channels of each position (Zhang and Sennrich 2019, equation
 * 4) ---- */

static const struct psd_key rms_norm_keys[] = {FLAG("scale", has_scale), EPSILON, {.name = NULL}};

/* Mean square 2, divide 1; the data gradient uses the sum of dy x over the position: 2 for the sum, a product for each
 * of dy and x and their difference, and a product with gamma. */
static struct psd_layer_work count_rms_norm(const struct psd_layer *layer, struct psd_shape in)
{
	(void)in;
	return count(layer, 3, 5 + layer->settings.affine.has_scale);
}

const struct psd_layer_kind psd_layer_rms_norm = {
	.name = "rms-norm",
	.least_inputs = 1,
	.keys = rms_norm_keys,
	.defaults.affine = {.has_scale = true, .epsilon = 1e-6}, /* Llama's */
	.declare = declare,
	.count = count_rms_norm,
};
