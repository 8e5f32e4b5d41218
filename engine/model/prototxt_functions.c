/* Caffe's elementwise functions that are several layers of the graph. */
#include "engine/model/prototxt_parts.h"

#include <math.h>

#include "engine/model/layer.h"

enum { POWER_MAX = 1000 };

static enum psd_status read_number(const struct psd_caffe_draft *draft, const char *key, double *number,
				   struct psd_error *err)
{
	unsigned n_read = 0;

	return psd_caffe_read_numbers(draft->message, key, -1e6, 1e6, number, 1, &n_read, false, err);
}

static enum psd_status build_linear(struct psd_caffe_draft *draft, double factor, double summand, struct psd_error *err)
{
	draft->spec->kind = &psd_layer_affine;
	draft->spec->settings.linear = (struct psd_linear_settings){factor, summand};
	return psd_caffe_build_one(draft, err);
}

/* Adds factor * x + summand, where x is *layer. */
static enum psd_status add_linear(struct psd_caffe_draft *draft, const char *suffix, double factor, double summand,
				  unsigned *layer, struct psd_error *err)
{
	const union psd_layer_settings settings = {.linear = {factor, summand}};

	if (factor == 1 && summand == 0)
		return PSD_OK;
	return psd_caffe_add_above(draft, suffix, &psd_layer_affine, &settings, layer, err);
}

/* min(max(x, low), high) = low + min(max(x - low, 0), high - low) */
enum psd_status psd_caffe_build_clip(struct psd_caffe_draft *draft, struct psd_error *err)
{
	struct psd_layer_spec *spec = draft->spec;
	double low = 0, high = 0;

	PSD_TRY(read_number(draft, "min", &low, err));
	PSD_TRY(read_number(draft, "max", &high, err));
	if (!(high > low))
		return psd_error_set(err, PSD_EINVAL, draft->message->at,
				     "layer '%.80s' clips to %g to %g, needs a 'max' above its 'min'", spec->name, low,
				     high);
	PSD_TRY(add_linear(draft, "lifted", 1, -low, &spec->inputs[0], err));
	spec->settings.linear = (struct psd_linear_settings){.factor = high - low};
	if (low == 0)
		return psd_caffe_build_one(draft, err);
	PSD_TRY(psd_caffe_add_above(draft, "clipped", &psd_layer_clip, &spec->settings, &spec->inputs[0], err));
	return build_linear(draft, 1, low, err);
}

/* ---- powers and logarithms ---- */

static enum psd_status read_scale(struct psd_caffe_draft *draft, double *scale, double *shift, struct psd_error *err)
{
	*scale = 1;
	*shift = 0;
	PSD_TRY(read_number(draft, "scale", scale, err));
	return read_number(draft, "shift", shift, err);
}

/* (scale x + shift) ^ power; with power 0 it is 1 everywhere. */
enum psd_status psd_caffe_build_power(struct psd_caffe_draft *draft, struct psd_error *err)
{
	double scale, shift, power = 1;

	PSD_TRY(read_scale(draft, &scale, &shift, err));
	PSD_TRY(read_number(draft, "power", &power, err));
	if (fabs(power) > POWER_MAX)
		return psd_error_set(err, PSD_EINVAL, psd_node_child(draft->message, "power")->at,
				     "'power' is %g, must be from -%d to %d", power, POWER_MAX, POWER_MAX);
	if (power == 0 || power == 1)
		return build_linear(draft, power ? scale : 0, power ? shift : 1, err);
	PSD_TRY(add_linear(draft, "base", scale, shift, &draft->spec->inputs[0], err));
	draft->spec->settings.power.exponent = power;
	return psd_caffe_build_one(draft, err);
}

/* Natural logarithm of the base; a base of -1 means e. */
static enum psd_status read_log_base(struct psd_caffe_draft *draft, double *log_base, struct psd_error *err)
{
	double base = -1;

	PSD_TRY(read_number(draft, "base", &base, err));
	*log_base = base == -1 ? 1 : log(base);
	if (base == -1 || (base > 0 && base != 1))
		return PSD_OK;
	return psd_error_set(err, PSD_EINVAL, psd_node_child(draft->message, "base")->at,
			     "'base' is %g, must be -1 for e, or more than 0 and not 1", base);
}

/* base ^ (scale x + shift) */
enum psd_status psd_caffe_build_exp(struct psd_caffe_draft *draft, struct psd_error *err)
{
	double scale, shift, log_base;

	PSD_TRY(read_scale(draft, &scale, &shift, err));
	PSD_TRY(read_log_base(draft, &log_base, err));
	PSD_TRY(add_linear(draft, "exponent", scale * log_base, shift * log_base, &draft->spec->inputs[0], err));
	return psd_caffe_build_one(draft, err);
}

/* log(scale x + shift) / log(base) */
enum psd_status psd_caffe_build_log(struct psd_caffe_draft *draft, struct psd_error *err)
{
	double scale, shift, log_base;

	PSD_TRY(read_scale(draft, &scale, &shift, err));
	PSD_TRY(read_log_base(draft, &log_base, err));
	PSD_TRY(add_linear(draft, "number", scale, shift, &draft->spec->inputs[0], err));
	if (log_base == 1)
		return psd_caffe_build_one(draft, err);
	PSD_TRY(psd_caffe_add_above(draft, "natural", &psd_layer_log, NULL, &draft->spec->inputs[0], err));
	return build_linear(draft, 1 / log_base, 0, err);
}

/* ---- gates ---- */

/* Adds min(max(x + 3, 0), 6) (Howard et al. 2019), where x is *layer. */
static enum psd_status add_hard_gate(struct psd_caffe_draft *draft, unsigned *layer, struct psd_error *err)
{
	const union psd_layer_settings six = {.linear = {6, 0}};

	PSD_TRY(add_linear(draft, "lifted", 1, 3, layer, err));
	return psd_caffe_add_above(draft, "clipped", &psd_layer_clip, &six, layer, err);
}

enum psd_status psd_caffe_build_hard_sigmoid(struct psd_caffe_draft *draft, struct psd_error *err)
{
	PSD_TRY(add_hard_gate(draft, &draft->spec->inputs[0], err));
	return build_linear(draft, 1.0 / 6, 0, err);
}

/* The input times the gate. */
static enum psd_status build_gated(struct psd_caffe_draft *draft, unsigned gate, struct psd_error *err)
{
	draft->spec->inputs[1] = gate;
	draft->spec->n_inputs = 2;
	return psd_caffe_build_one(draft, err);
}

enum psd_status psd_caffe_build_hard_swish(struct psd_caffe_draft *draft, struct psd_error *err)
{
	unsigned gate = draft->spec->inputs[0];

	PSD_TRY(add_hard_gate(draft, &gate, err));
	PSD_TRY(add_linear(draft, "gate", 1.0 / 6, 0, &gate, err));
	return build_gated(draft, gate, err);
}

/* x sigmoid(beta x) */
enum psd_status psd_caffe_build_swish(struct psd_caffe_draft *draft, struct psd_error *err)
{
	double beta = 1;
	unsigned gate = draft->spec->inputs[0];

	PSD_TRY(read_number(draft, "beta", &beta, err));
	PSD_TRY(add_linear(draft, "beta", beta, 0, &gate, err));
	PSD_TRY(psd_caffe_add_above(draft, "gate", &psd_layer_sigmoid, NULL, &gate, err));
	return build_gated(draft, gate, err);
}

/* x tanh(log(1 + exp(x))) (Misra 2019) */
enum psd_status psd_caffe_build_mish(struct psd_caffe_draft *draft, struct psd_error *err)
{
	unsigned gate = draft->spec->inputs[0];

	PSD_TRY(psd_caffe_add_above(draft, "softplus", &psd_layer_softplus, NULL, &gate, err));
	PSD_TRY(psd_caffe_add_above(draft, "gate", &psd_layer_tanh, NULL, &gate, err));
	return build_gated(draft, gate, err);
}
