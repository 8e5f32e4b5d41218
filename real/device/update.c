/* Updates on the processor. Uses nothing that changes the bits of results: no fused multiply-add, no reciprocals. */
#include "real/device/update.h"

#include <math.h>
#include <string.h>

/* GCC does not fuse under -std=c11; Clang would where the processor can. */
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

/* number of values in an inner loop; -O2 vectorises only loops with a known number of iterations */
enum { BLOCK = 16 };

struct psd_update psd_update_by_norms(struct psd_update update, const float *weight, const float *gradient,
				      uint64_t elements)
{
	if (update.trust_ratio <= 0.0)
		return update;
	return psd_update_by_squares(update, psd_clip_measure(weight, elements), psd_clip_measure(gradient, elements));
}

struct psd_update psd_update_by_squares(struct psd_update update, double weight_square, double gradient_square)
{
	const double weight_norm = sqrt(weight_square), gradient_norm = sqrt(gradient_square);

	if (weight_norm > 0.0 && gradient_norm > 0.0)
		update.rate *= (float)(update.trust_ratio * weight_norm /
				       (gradient_norm + (double)update.weight_decay * weight_norm));
	return update;
}

/* always inlined, so that the compiler knows the number of iterations of the loops and vectorises them */
#define INLINE static inline __attribute__((always_inline))

INLINE void apply_sgd(struct psd_update update, float *restrict weight, const float *restrict gradient,
		      float *restrict history, unsigned elements)
{
	for (unsigned i = 0; i < elements; i++) {
		history[i] =
			update.momentum * history[i] + update.rate * (gradient[i] + update.weight_decay * weight[i]);
		weight[i] -= history[i];
	}
}

INLINE void apply_nesterov(struct psd_update update, float *restrict weight, const float *restrict gradient,
			   float *restrict history, unsigned elements)
{
	for (unsigned i = 0; i < elements; i++) {
		const float before = history[i];

		history[i] = update.momentum * before + update.rate * (gradient[i] + update.weight_decay * weight[i]);
		weight[i] -= (1.0f + update.momentum) * history[i] - update.momentum * before;
	}
}

INLINE void apply_adaptive(struct psd_update update, float *restrict weight, const float *restrict gradient,
			   float *restrict history, float *restrict squares, unsigned elements)
{
	const struct psd_adaptive by = update.adaptive;

	for (unsigned i = 0; i < elements; i++) {
		history[i] = by.beta1 * history[i] + (1.0f - by.beta1) * gradient[i];
		squares[i] = by.beta2 * squares[i] + (1.0f - by.beta2) * (gradient[i] * gradient[i]);
		weight[i] -=
			update.rate * (by.mean_ratio * history[i] / (by.root_ratio * sqrtf(squares[i]) + by.epsilon) +
				       update.weight_decay * weight[i]);
	}
}

/* Updates elements from `first` on. */
INLINE void apply(struct psd_update update, float *weight, const float *gradient, struct psd_moments moments,
		  uint64_t first, unsigned elements)
{
	if (update.adaptive.epsilon > 0.0f)
		apply_adaptive(update, weight + first, gradient + first, moments.history + first,
			       moments.squares + first, elements);
	else if (update.is_nesterov)
		apply_nesterov(update, weight + first, gradient + first, moments.history + first, elements);
	else
		apply_sgd(update, weight + first, gradient + first, moments.history + first, elements);
}

void psd_update_apply(const struct psd_update *update, float *weight, const float *gradient, struct psd_moments moments,
		      uint64_t elements)
{
	const uint64_t in_blocks = elements - elements % BLOCK;

	for (uint64_t i = 0; i < in_blocks; i += BLOCK)
		apply(*update, weight, gradient, moments, i, BLOCK);
	apply(*update, weight, gradient, moments, in_blocks, (unsigned)(elements % BLOCK));
}

/* ---- gradient clipping ---- */

/* Computes BLOCK interleaved partial sums, with the same order on all machines; with a single sum each addition would
 * wait for the previous one. */
double psd_clip_measure(const float *values, uint64_t elements)
{
	double squares[BLOCK] = {0.0}, sum = 0.0;
	uint64_t e = 0;

	for (; e + BLOCK <= elements; e += BLOCK)
		for (unsigned i = 0; i < BLOCK; i++)
			squares[i] += (double)values[e + i] * (double)values[e + i];
	for (unsigned i = 0; e + i < elements; i++)
		squares[i] += (double)values[e + i] * (double)values[e + i];
	for (unsigned i = 0; i < BLOCK; i++)
		sum += squares[i];
	return sum;
}

void psd_clip_find(const struct psd_clip *clip)
{
	double sum = 0.0;

	for (uint32_t i = 0; i < clip->n; i++)
		sum += clip->squares[i];
	const double norm = sqrt(sum);
	*clip->ratio = norm > clip->most_norm ? (float)(clip->most_norm / norm) : 1.0f;
}

void psd_clip_shrink(float *values, uint64_t elements, float ratio)
{
	for (uint64_t e = 0; e < elements && ratio != 1.0f; e++)
		values[e] *= ratio;
}

/* ---- differences ---- */

static void subtract(float *restrict difference, const float *restrict from, const float *restrict what, float ratio,
		     uint64_t elements)
{
	for (uint64_t e = 0; e < elements; e++)
		difference[e] = from[e] - ratio * what[e];
}

static void part(const struct psd_drift *drift)
{
	for (uint64_t e = 0; e < drift->elements; e++)
		drift->start[e] = drift->weight[e] - drift->start[e];
}

void psd_drift_take_step(const struct psd_drift *drift)
{
	switch (drift->step) {
	case PSD_DRIFT_BEGINS: memcpy(drift->start, drift->weight, drift->elements * sizeof(*drift->start)); break;
	case PSD_DRIFT_ENDS: subtract(drift->gradient, drift->start, drift->weight, 1.0f, drift->elements); break;
	case PSD_DRIFT_JOINS:
		subtract(drift->weight, drift->start, drift->gradient, drift->ratio, drift->elements);
		break;
	case PSD_DRIFT_PARTS: part(drift); break;
	case PSD_DRIFT_RETURNS: memcpy(drift->weight, drift->start, drift->elements * sizeof(*drift->start)); break;
	}
}
