/* Learning rates and updates. Refuses shortcuts that change bits: no fused multiply-add, no reciprocals. */
#include "real/session/solver.h"

#include <math.h>

/* GCC does not fuse under -std=c11; Clang would where the processor can. */
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

enum { BLOCK = 16 }; /* a known trip count is what makes -O2 vectorise */

static unsigned steps_passed(const struct psd_learning_rate *rate, uint64_t iteration)
{
	unsigned passed = 0;

	while (passed < rate->n_steps && rate->steps_at[passed] <= iteration)
		passed++;
	return passed;
}

static double policy_rate(const struct psd_learning_rate *rate, uint64_t iteration)
{
	const double i = (double)iteration;

	switch (rate->policy) {
	case PSD_RATE_FIXED: return rate->base;
	case PSD_RATE_STEP: return rate->base * pow(rate->gamma, (double)(iteration / rate->step_iterations));
	case PSD_RATE_MULTISTEP: return rate->base * pow(rate->gamma, steps_passed(rate, iteration));
	case PSD_RATE_INV: return rate->base * pow(1.0 + rate->gamma * i, -rate->power);
	case PSD_RATE_EXP: return rate->base * pow(rate->gamma, i);
	case PSD_RATE_POLY:
		if (iteration >= rate->max_iterations)
			return 0.0;
		return rate->base * pow(1.0 - i / (double)rate->max_iterations, rate->power);
	}
	return rate->base;
}

double psd_solver_rate(const struct psd_learning_rate *rate, uint64_t iteration)
{
	const double full = policy_rate(rate, iteration);

	if (iteration >= rate->warmup_iterations)
		return full;
	return full * (rate->warmup_start_ratio +
		       (1.0 - rate->warmup_start_ratio) * ((double)(iteration + 1) / (double)rate->warmup_iterations));
}

struct psd_update psd_solver_update(const struct psd_train *train, uint64_t global_batch, uint64_t iteration)
{
	const uint64_t for_batch = train->rate.for_batch ? train->rate.for_batch : global_batch;
	const double batch_ratio = (double)global_batch / (double)for_batch;

	return (struct psd_update){
		.rate = (float)(psd_solver_rate(&train->rate, iteration) * batch_ratio),
		.momentum = (float)train->optimiser.momentum,
		.weight_decay = (float)train->optimiser.weight_decay,
		.is_nesterov = train->optimiser.is_nesterov,
		.trust_ratio = train->optimiser.kind == PSD_OPTIMISER_LARS ? train->optimiser.trust_ratio : 0.0,
	};
}

struct psd_update psd_solver_update_of(struct psd_update update, const struct psd_tensor *tensor)
{
	update.rate *= tensor->rate_ratio;
	update.weight_decay *= tensor->decay_ratio;
	return update;
}

/* In so many sums side by side, whatever the machine: one after the other would wait for each addition. */
static double norm_of(const float *values, uint64_t elements)
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
	return sqrt(sum);
}

struct psd_update psd_solver_update_by_norms(struct psd_update update, const float *weight, const float *gradient,
					     uint64_t elements)
{
	if (update.trust_ratio <= 0.0)
		return update;
	const double weight_norm = norm_of(weight, elements), gradient_norm = norm_of(gradient, elements);

	if (weight_norm > 0.0 && gradient_norm > 0.0)
		update.rate *= (float)(update.trust_ratio * weight_norm /
				       (gradient_norm + (double)update.weight_decay * weight_norm));
	return update;
}

#define INLINE static inline __attribute__((always_inline)) /* so that the known trip count gets there */

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

void psd_solver_apply(const struct psd_update *update, float *weight, const float *gradient, float *history,
		      uint64_t elements)
{
	const uint64_t in_blocks = elements - elements % BLOCK;
	const unsigned rest = (unsigned)(elements % BLOCK);

	if (update->is_nesterov) {
		for (uint64_t i = 0; i < in_blocks; i += BLOCK)
			apply_nesterov(*update, weight + i, gradient + i, history + i, BLOCK);
		apply_nesterov(*update, weight + in_blocks, gradient + in_blocks, history + in_blocks, rest);
	} else {
		for (uint64_t i = 0; i < in_blocks; i += BLOCK)
			apply_sgd(*update, weight + i, gradient + i, history + i, BLOCK);
		apply_sgd(*update, weight + in_blocks, gradient + in_blocks, history + in_blocks, rest);
	}
}
