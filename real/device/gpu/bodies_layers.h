/* Kernel bodies of layers, except layers with windows (bodies_neighbours.h) and layers for sequences
 * (bodies_sequences.h). kernels.h describes their arguments. */
#ifndef PSD_REAL_GPU_BODIES_LAYERS_H
#define PSD_REAL_GPU_BODIES_LAYERS_H

#include "real/device/gpu/values.h"

/* ---- memory order, sums ---- */

PSD_BODY void psd_move_at(uint64_t i, const struct psd_gpu_move *of)
{
	const float value = psd_get(of->from, psd_seen_at(&of->from_view, (uint32_t)i));

	psd_give(of->to, psd_seen_at(&of->to_view, (uint32_t)i), of->scale * value, of->adds);
}

PSD_BODY void psd_convert_from(uint64_t i, const struct psd_gpu_convert *of, int n)
{
	struct psd_lanes lanes = psd_get_lanes(of->from, i, n);

	for (int k = 0; k < n; k++)
		lanes.of[k] *= of->scale;
	psd_give_lanes(of->to, i, lanes, n, of->adds);
}
PSD_BODIES(convert)

PSD_BODY void psd_add_from(uint64_t i, const struct psd_gpu_add *of, int n)
{
	struct psd_lanes sum = psd_get_lanes(of->left, i, n);
	const struct psd_lanes right = psd_get_lanes(of->right, i, n);

	for (int k = 0; k < n; k++) {
		sum.of[k] += right.of[k];
		if (of->is_rectified && !(sum.of[k] > 0.0f))
			sum.of[k] *= of->slope;
	}
	psd_put_lanes(of->to, i, sum, n);
}
PSD_BODIES(add)

/* Computes n elements (1 or 4) of the result of psd_gpu_affine, the first at index i. Four adjacent elements belong to
 * one channel or, with channels last, to four adjacent channels. */
PSD_BODY void psd_affine_from(uint64_t i, const struct psd_gpu_affine *of, int n)
{
	const uint32_t first = psd_channel_of(of->channel, (uint32_t)i), apart = of->channel.inner == 1 ? 1 : 0;
	struct psd_lanes lanes = psd_get_lanes(of->from, i, n);

	for (int k = 0; k < n; k++) {
		const uint32_t c = first + (uint32_t)k * apart;
		const float centred = lanes.of[k] - psd_entry(of->mean, c, 0.0f);

		lanes.of[k] = centred * psd_entry(of->inverse, c, 1.0f) * psd_entry(of->gamma, c, 1.0f) +
			      psd_entry(of->beta, c, 0.0f);
		if (of->is_rectified && !(lanes.of[k] > 0.0f))
			lanes.of[k] *= of->slope;
	}
	psd_give_lanes(of->to, i, lanes, n, of->adds);
}
PSD_BODIES(affine)

PSD_BODY void psd_inverse_at(uint64_t i, const struct psd_gpu_inverse *of)
{
	of->inverse[i] = 1.0f / sqrtf(of->variance[i] + of->epsilon);
}

/* Returns the summand (enum psd_gpu_summand) of element k of an output. `at`: index of that element in memory. */
PSD_BODY float psd_summand(const struct psd_gpu_sums *of, uint32_t channel, uint32_t k, uint32_t at)
{
	const uint32_t entry = of->summand == PSD_GPU_SUM_NORMALISED_POSITIONS ? k : channel;
	const float left = psd_get(of->left, at);
	float right;

	if (of->summand == PSD_GPU_SUM_LEFT)
		return left;
	right = psd_get(of->right, at);
	if (of->summand == PSD_GPU_SUM_PRODUCT)
		return left * right;
	if (of->summand == PSD_GPU_SUM_BELOW_ZERO)
		return right > 0.0f ? 0.0f : left * right;
	return left * (right - psd_entry(of->mean, entry, 0.0f)) * psd_entry(of->inverse, entry, 1.0f);
}

/* Computes one partial sum of psd_gpu_sums. Index i computes part i % n_parts of output i / n_parts; with channels
 * last, part i / n_outputs of output i % n_outputs. So adjacent indices read adjacent values. */
PSD_BODY void psd_sums_at(uint64_t i, const struct psd_gpu_sums *of)
{
	const bool is_by_output = of->channel_stride == 1;
	const uint32_t n = is_by_output ? of->n_outputs : of->n_parts;
	const uint32_t fast = (uint32_t)i % n, slow = (uint32_t)i / n;
	const uint32_t output = is_by_output ? fast : slow, part = is_by_output ? slow : fast;
	const uint32_t channel = output % of->channels;
	const uint32_t start = output / of->channels * of->group_stride + channel * of->channel_stride;
	float sum = 0.0f;

	if (of->inner == of->count) { /* avoids divisions, which would take most of the time */
		uint32_t k = part;

		for (; of->summand == PSD_GPU_SUM_LEFT && k < of->count && of->count - k > 3 * of->n_parts;
		     k += 4 * of->n_parts) {
			float values[4]; /* all loads begin before the first loaded value is used */

			for (uint32_t next = 0; next < 4; next++)
				values[next] = psd_get(of->left, start + (k + next * of->n_parts) * of->inner_stride);
			for (uint32_t next = 0; next < 4; next++)
				sum += values[next];
		}
		for (; k < of->count; k += of->n_parts)
			sum += psd_summand(of, channel, k, start + k * of->inner_stride);
	} else {
		for (uint32_t k = part; k < of->count; k += of->n_parts)
			sum += psd_summand(of, channel, k,
					   start + k / of->inner * of->outer_stride + k % of->inner * of->inner_stride);
	}
	of->partial[(uint64_t)part * of->n_outputs + output] = sum;
}

PSD_BODY void psd_sums_end_at(uint64_t i, const struct psd_gpu_sums_end *of)
{
	double sum = 0.0;

	for (uint32_t part = 0; part < of->n_parts; part++)
		sum += (double)of->partial[(uint64_t)part * of->n_outputs + i];
	psd_give(of->to, i, of->scale * (float)sum, of->adds);
}

/* ---- functions of one element ---- */

/* Returns the standard normal distribution function at x. Near 0 the result is more exact than by the formula with 1 +
 * erf. */
PSD_BODY float psd_normal_below(float x)
{
	return 0.5f * erfcf(-0.70710678f * x);
}

PSD_BODY float psd_logistic(float x)
{
	return 1.0f / (1.0f + expf(-x));
}

/* Returns (1 + tanh(u)) / 2, an approximation of psd_normal_below(x), where u = sqrt(2 / pi) * (x + 0.044715 * x^3). It
 * is computed as the logistic function of 2 * u. 1.5957691 is 2 * sqrt(2 / pi). */
PSD_BODY float psd_nearly_normal_below(float x)
{
	return psd_logistic(x * (1.5957691f + 0.071354816f * x * x));
}

PSD_BODY float psd_function_of(enum psd_gpu_function_kind kind, float alpha, float beta, float x)
{
	switch (kind) {
	case PSD_GPU_RELU: return x > 0.0f ? x : alpha * x;
	case PSD_GPU_SIGMOID: return psd_logistic(x);
	case PSD_GPU_TANH: return tanhf(x);
	case PSD_GPU_ELU: return x > 0.0f ? x : alpha * expm1f(x);
	case PSD_GPU_CLIP: return fminf(fmaxf(x, 0.0f), beta);
	case PSD_GPU_LINEAR: return alpha * x + beta;
	case PSD_GPU_EXP: return expf(x);
	case PSD_GPU_ABS: return fabsf(x);
	case PSD_GPU_LOG: return logf(x);
	case PSD_GPU_SOFTPLUS: return fmaxf(x, 0.0f) + log1pf(expf(-fabsf(x)));
	case PSD_GPU_POWER: return powf(x, alpha);
	case PSD_GPU_GELU: return x * psd_normal_below(x);
	case PSD_GPU_GELU_TANH: return x * psd_nearly_normal_below(x);
	case PSD_GPU_SILU: return x * psd_logistic(x);
	}
	return x;
}

/* Returns the derivative of x * share with respect to x. share: logistic function of an argument that depends on x;
 * slope: derivative of that argument. */
PSD_BODY float psd_gated_derivative(float x, float share, float slope)
{
	return share * (1.0f + x * (1.0f - share) * slope);
}

PSD_BODY float psd_derivative_by(enum psd_gpu_function_kind kind, float alpha, float beta, float known)
{
	switch (kind) {
	case PSD_GPU_RELU: return known > 0.0f ? 1.0f : alpha;
	case PSD_GPU_SIGMOID: return known * (1.0f - known);
	case PSD_GPU_TANH: return (1.0f - known) * (1.0f + known);
	case PSD_GPU_ELU: return known > 0.0f ? 1.0f : known + alpha;
	case PSD_GPU_CLIP: return known > 0.0f && known < beta ? 1.0f : 0.0f;
	case PSD_GPU_LINEAR: return alpha;
	case PSD_GPU_EXP: return known;
	case PSD_GPU_ABS: return (known > 0.0f ? 1.0f : 0.0f) - (known < 0.0f ? 1.0f : 0.0f);
	case PSD_GPU_LOG: return 1.0f / known;
	case PSD_GPU_SOFTPLUS: return psd_logistic(known);
	case PSD_GPU_POWER: return alpha * powf(known, alpha - 1.0f);
	case PSD_GPU_GELU:
		return psd_normal_below(known) + known * 0.39894228f * expf(-0.5f * known * known); /* 1 / sqrt(2 pi) */
	case PSD_GPU_GELU_TANH:
		return psd_gated_derivative(known, psd_nearly_normal_below(known),
					    1.5957691f + 3.0f * 0.071354816f * known * known);
	case PSD_GPU_SILU: return psd_gated_derivative(known, psd_logistic(known), 1.0f);
	}
	return 1.0f;
}

PSD_BODY void psd_function_from(uint64_t i, const struct psd_gpu_function *of, int n)
{
	struct psd_lanes lanes = psd_get_lanes(of->from, i, n);

	for (int k = 0; k < n; k++)
		lanes.of[k] = psd_function_of(of->kind, of->alpha, of->beta, lanes.of[k]);
	psd_put_lanes(of->to, i, lanes, n);
}
PSD_BODIES(function)

/* Computes n gradients (1 or 4) of an element-wise function (psd_gpu_function_back), the first at index i. Both arrays
 * are loaded before the first value is used. */
PSD_BODY void psd_function_back_from(uint64_t i, const struct psd_gpu_function_back *of, int n)
{
	const struct psd_lanes known = psd_get_lanes(of->known, i, n);
	struct psd_lanes diff = psd_get_lanes(of->diff, i, n);

	for (int k = 0; k < n; k++)
		diff.of[k] *= psd_derivative_by(of->kind, of->alpha, of->beta, known.of[k]);
	psd_give_lanes(of->to, i, diff, n, of->adds);
}
PSD_BODIES(function_back)

PSD_BODY void psd_prelu_at(uint64_t i, const struct psd_gpu_prelu *of)
{
	const float diff = psd_get(of->diff, i);
	const float slope = of->slopes[psd_channel_of(of->channel, (uint32_t)i)];

	psd_give(of->to, i, psd_get(of->from, i) > 0.0f ? diff : diff * slope, of->adds);
}

PSD_BODY void psd_multiply_at(uint64_t i, const struct psd_gpu_multiply *of)
{
	uint64_t at = i;

	if (of->is_flat) {
		const struct psd_spot position = psd_spot_of(of->maps, (uint32_t)i);

		at = position.sample * of->maps.channels + position.channel;
	}
	psd_give(of->to, i, psd_get(of->left, i) * psd_get(of->right, at), of->adds);
}

/* ---- dropout ---- */

PSD_BODY uint32_t psd_high_product(uint32_t left, uint32_t right)
{
	return (uint32_t)(((uint64_t)left * right) >> 32);
}

/* Computes 128 random bits by Philox 4x32-10, as psd_cpu_philox() does, so dropout masks are the same on all devices.
 * random: the counter, which is replaced by the random bits. */
PSD_BODY void psd_draw(uint32_t random[4], uint64_t key)
{
	uint32_t keys[2] = {(uint32_t)key, (uint32_t)(key >> 32)};

	for (int round = 0; round < 10; round++) {
		const uint32_t high0 = psd_high_product(0xD2511F53u, random[0]), low0 = 0xD2511F53u * random[0];
		const uint32_t high1 = psd_high_product(0xCD9E8D57u, random[2]), low1 = 0xCD9E8D57u * random[2];

		random[0] = high1 ^ random[1] ^ keys[0];
		random[1] = low1;
		random[2] = high0 ^ random[3] ^ keys[1];
		random[3] = low0;
		keys[0] += 0x9E3779B9u;
		keys[1] += 0xBB67AE85u;
	}
}

PSD_BODY void psd_dropout_at(uint64_t i, const struct psd_gpu_dropout *of)
{
	const struct psd_gpu_maps plain = {of->maps.channels, of->maps.height, of->maps.width, false};
	const uint32_t elements = plain.channels * plain.height * plain.width, quads = (elements + 3) / 4;
	const uint32_t sample = (uint32_t)i / quads, quad = (uint32_t)i % quads;
	uint32_t random[4] = {quad, of->layer, of->counters[0] + sample, of->counters[1]};

	psd_draw(random, of->seed);
	for (uint32_t k = 0; k < 4; k++)
		if (4 * quad + k < elements) {
			const uint32_t at = psd_at(of->maps, psd_spot_of(plain, sample * elements + 4 * quad + k));
			const float factor = random[k] < of->threshold ? 0.0f : of->scale;

			psd_give(of->to, at, factor * psd_get(of->from, at), of->adds);
		}
}

PSD_BODY void psd_counters_at(uint64_t i, const struct psd_gpu_counters *of)
{
	(void)i;
	of->to[0] = of->first_sample;
	of->to[1] = of->iteration;
}

#endif
