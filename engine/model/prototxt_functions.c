/* Caffe's functions of an element that the graph has in several steps. */
#include "engine/model/prototxt_parts.h"

#include <math.h>

#include "engine/model/layer.h"

enum { MOST_POWER = 1000 };

static enum psd_status read_number(const struct psd_caffe_part *part, const char *key, double *number,
				   struct psd_error *err)
{
	unsigned n_given = 0;

	return psd_caffe_read_numbers(part->message, key, -1e6, 1e6, number, 1, &n_given, false, err);
}

/* min(max(x, low), high) = low + min(max(x - low, 0), high - low) */
enum psd_status psd_caffe_build_clip(struct psd_caffe_part *part, struct psd_error *err)
{
	struct psd_layer_spec *spec = part->spec;
	double low = 0, high = 0;
	enum psd_status status = psd_caffe_check_bottoms(part, 1, err);

	if (!status)
		status = read_number(part, "min", &low, err);
	if (!status)
		status = read_number(part, "max", &high, err);
	if (!status && !(high > low))
		status = psd_error_set(err, PSD_EINVAL, part->message->at,
				       "layer '%.80s' clips to %g to %g, needs a 'max' above its 'min'", spec->name,
				       low, high);
	if (!status && low != 0)
		status = psd_caffe_add_other(part, "lifted", 0, &psd_layer_linear,
					     &(union psd_layer_settings){.linear = {1, -low}}, spec->inputs[0], 0,
					     &spec->inputs[0], err);
	spec->settings.linear = (struct psd_linear_settings){.factor = high - low};
	if (status || low == 0)
		return status ? status : psd_caffe_build_one(part, err);
	status = psd_caffe_add_other(part, "clipped", 0, &psd_layer_clip, &spec->settings, spec->inputs[0], 0,
				     &spec->inputs[0], err);
	spec->kind = &psd_layer_linear;
	spec->settings.linear = (struct psd_linear_settings){1, low};
	return status ? status : psd_caffe_build_one(part, err);
}

/* ---- powers and logarithms ---- */

/* The first input, from here on times factor and plus summand. */
static enum psd_status add_linear(struct psd_caffe_part *part, const char *what, double factor, double summand,
				  struct psd_error *err)
{
	const union psd_layer_settings settings = {.linear = {factor, summand}};

	if (factor == 1 && summand == 0)
		return PSD_OK;
	return psd_caffe_add_other(part, what, 0, &psd_layer_linear, &settings, part->spec->inputs[0], 0,
				   &part->spec->inputs[0], err);
}

static enum psd_status read_line(struct psd_caffe_part *part, double *scale, double *shift, struct psd_error *err)
{
	enum psd_status status = psd_caffe_check_bottoms(part, 1, err);

	*scale = 1;
	*shift = 0;
	if (!status)
		status = read_number(part, "scale", scale, err);
	return status ? status : read_number(part, "shift", shift, err);
}

/* (scale x + shift) ^ power, where the power 0 of everything is 1 */
enum psd_status psd_caffe_build_power(struct psd_caffe_part *part, struct psd_error *err)
{
	double scale, shift, power = 1;
	enum psd_status status = read_line(part, &scale, &shift, err);

	if (!status)
		status = read_number(part, "power", &power, err);
	if (!status && fabs(power) > MOST_POWER)
		status = psd_error_set(err, PSD_EINVAL, psd_node_child(part->message, "power")->at,
				       "'power' is %g, must be from -%d to %d", power, MOST_POWER, MOST_POWER);
	if (status)
		return status;
	if (power == 0 || power == 1) {
		part->spec->kind = &psd_layer_linear;
		part->spec->settings.linear = (struct psd_linear_settings){power ? scale : 0, power ? shift : 1};
		return psd_caffe_build_one(part, err);
	}
	status = add_linear(part, "base", scale, shift, err);
	part->spec->settings.power.exponent = power;
	return status ? status : psd_caffe_build_one(part, err);
}

/* The natural logarithm of the base, which is e where it is -1. */
static enum psd_status read_base(struct psd_caffe_part *part, double *log_base, struct psd_error *err)
{
	double base = -1;
	const enum psd_status status = read_number(part, "base", &base, err);

	*log_base = base == -1 ? 1 : log(base);
	if (status || base == -1 || (base > 0 && base != 1))
		return status;
	return psd_error_set(err, PSD_EINVAL, psd_node_child(part->message, "base")->at,
			     "'base' is %g, must be -1 for e, or more than 0 and not 1", base);
}

/* base ^ (scale x + shift) */
enum psd_status psd_caffe_build_exp(struct psd_caffe_part *part, struct psd_error *err)
{
	double scale, shift, log_base;
	enum psd_status status = read_line(part, &scale, &shift, err);

	if (!status)
		status = read_base(part, &log_base, err);
	if (!status)
		status = add_linear(part, "exponent", scale * log_base, shift * log_base, err);
	return status ? status : psd_caffe_build_one(part, err);
}

/* log(scale x + shift) / log(base) */
enum psd_status psd_caffe_build_log(struct psd_caffe_part *part, struct psd_error *err)
{
	const union psd_layer_settings none = {.slope = {0}};
	double scale, shift, log_base;
	enum psd_status status = read_line(part, &scale, &shift, err);

	if (!status)
		status = read_base(part, &log_base, err);
	if (!status)
		status = add_linear(part, "number", scale, shift, err);
	if (status || log_base == 1)
		return status ? status : psd_caffe_build_one(part, err);
	status = psd_caffe_add_other(part, "natural", 0, &psd_layer_log, &none, part->spec->inputs[0], 0,
				     &part->spec->inputs[0], err);
	part->spec->kind = &psd_layer_linear;
	part->spec->settings.linear = (struct psd_linear_settings){1 / log_base, 0};
	return status ? status : psd_caffe_build_one(part, err);
}

/* ---- gates ---- */

/* min(max(x + 3, 0), 6) / 6 (Howard et al. 2019); as the layer itself, or beside it. */
static enum psd_status add_hard_gate(struct psd_caffe_part *part, unsigned *gate, struct psd_error *err)
{
	const unsigned in = part->spec->inputs[0];
	enum psd_status status = psd_caffe_add_other(part, "lifted", 0, &psd_layer_linear,
						     &(union psd_layer_settings){.linear = {1, 3}}, in, 0, gate, err);

	if (!status)
		status = psd_caffe_add_other(part, "clipped", 0, &psd_layer_clip,
					     &(union psd_layer_settings){.linear = {6, 0}}, *gate, 0, gate, err);
	return status;
}

enum psd_status psd_caffe_build_hard_sigmoid(struct psd_caffe_part *part, struct psd_error *err)
{
	enum psd_status status = psd_caffe_check_bottoms(part, 1, err);

	if (!status)
		status = add_hard_gate(part, &part->spec->inputs[0], err);
	part->spec->settings.linear = (struct psd_linear_settings){1.0 / 6, 0};
	return status ? status : psd_caffe_build_one(part, err);
}

/* The first input by the gate. */
static enum psd_status build_gated(struct psd_caffe_part *part, unsigned gate, struct psd_error *err)
{
	part->spec->inputs[1] = gate;
	part->spec->n_inputs = 2;
	return psd_caffe_build_one(part, err);
}

enum psd_status psd_caffe_build_hard_swish(struct psd_caffe_part *part, struct psd_error *err)
{
	unsigned gate;
	enum psd_status status = psd_caffe_check_bottoms(part, 1, err);

	if (!status)
		status = add_hard_gate(part, &gate, err);
	if (!status)
		status = psd_caffe_add_other(part, "gate", 0, &psd_layer_linear,
					     &(union psd_layer_settings){.linear = {1.0 / 6, 0}}, gate, 0, &gate, err);
	return status ? status : build_gated(part, gate, err);
}

/* x sigmoid(beta x) */
enum psd_status psd_caffe_build_swish(struct psd_caffe_part *part, struct psd_error *err)
{
	const union psd_layer_settings none = {.slope = {0}};
	double beta = 1;
	unsigned gate = part->spec->inputs[0];
	enum psd_status status = psd_caffe_check_bottoms(part, 1, err);

	if (!status)
		status = read_number(part, "beta", &beta, err);
	if (!status && beta != 1)
		status = psd_caffe_add_other(part, "beta", 0, &psd_layer_linear,
					     &(union psd_layer_settings){.linear = {beta, 0}}, gate, 0, &gate, err);
	if (!status)
		status = psd_caffe_add_other(part, "gate", 0, &psd_layer_sigmoid, &none, gate, 0, &gate, err);
	return status ? status : build_gated(part, gate, err);
}

/* x tanh(log(1 + exp(x))) (Misra 2019) */
enum psd_status psd_caffe_build_mish(struct psd_caffe_part *part, struct psd_error *err)
{
	const union psd_layer_settings none = {.slope = {0}};
	unsigned gate;
	enum psd_status status = psd_caffe_check_bottoms(part, 1, err);

	if (!status)
		status = psd_caffe_add_other(part, "softplus", 0, &psd_layer_softplus, &none, part->spec->inputs[0], 0,
					     &gate, err);
	if (!status)
		status = psd_caffe_add_other(part, "gate", 0, &psd_layer_tanh, &none, gate, 0, &gate, err);
	return status ? status : build_gated(part, gate, err);
}
