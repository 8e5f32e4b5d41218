/* Learning rates, and the updates with them. */
#include "real/work/solver.h"

#include <math.h>

static const double pi = 3.14159265358979323846;

static unsigned steps_passed(const struct psd_learning_rate *rate, uint64_t iteration)
{
	unsigned passed = 0;

	while (passed < rate->n_steps && rate->steps_at[passed] <= iteration)
		passed++;
	return passed;
}

/* During warm-up it is base. */
static double cosine_rate(const struct psd_learning_rate *rate, uint64_t iteration)
{
	const uint64_t first = rate->warmup_iterations;
	const double done =
		iteration > first ? (double)(iteration - first) / (double)(rate->max_iterations - first) : 0.0;

	return rate->lowest + 0.5 * (rate->base - rate->lowest) * (1.0 + cos(pi * done));
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
	case PSD_RATE_COSINE: return iteration < rate->max_iterations ? cosine_rate(rate, iteration) : rate->lowest;
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

bool psd_solver_drops(const struct psd_learning_rate *rate, uint64_t first, uint64_t end)
{
	const uint64_t before = first > 0 ? first - 1 : 0;

	switch (rate->policy) {
	case PSD_RATE_STEP: return before / rate->step_iterations != (end - 1) / rate->step_iterations;
	case PSD_RATE_MULTISTEP: return steps_passed(rate, before) != steps_passed(rate, end - 1);
	case PSD_RATE_FIXED:
	case PSD_RATE_INV:
	case PSD_RATE_EXP:
	case PSD_RATE_POLY:
	case PSD_RATE_COSINE: break;
	}
	return false;
}

/* Bias correction of means that begin with 0; with betas as applied, since rounding 1 - beta2 loses much. */
static struct psd_adaptive adaptive_at(const struct psd_optimiser *optimiser, uint64_t iteration)
{
	const float beta1 = (float)optimiser->beta1, beta2 = (float)optimiser->beta2;
	const double steps = (double)iteration + 1.0;

	return (struct psd_adaptive){
		.beta1 = beta1,
		.beta2 = beta2,
		.mean_ratio = (float)(1.0 / (1.0 - pow((double)beta1, steps))),
		.root_ratio = (float)(1.0 / sqrt(1.0 - pow((double)beta2, steps))),
		.epsilon = (float)optimiser->epsilon,
	};
}

struct psd_update psd_solver_update(const struct psd_train *train, uint64_t global_batch, uint64_t iteration)
{
	const uint64_t for_batch = train->rate.for_batch ? train->rate.for_batch : global_batch;
	const double batch_ratio = (double)global_batch / (double)for_batch;
	struct psd_update update = {
		.rate = (float)(psd_solver_rate(&train->rate, iteration) * batch_ratio),
		.momentum = (float)train->optimiser.momentum,
		.weight_decay = (float)train->optimiser.weight_decay,
		.is_nesterov = train->optimiser.is_nesterov,
		.trust_ratio = train->optimiser.kind == PSD_OPTIMISER_LARS ? train->optimiser.trust_ratio : 0.0,
	};

	if (train->optimiser.kind == PSD_OPTIMISER_ADAMW)
		update.adaptive = adaptive_at(&train->optimiser, iteration);
	return update;
}

struct psd_update psd_solver_own_update(const struct psd_train *train, unsigned workers, uint64_t global_batch,
					uint64_t iteration)
{
	struct psd_update update = psd_solver_update(train, global_batch, iteration);

	if (train->optimiser.kind == PSD_OPTIMISER_ADAMW) { /* n gradients over the root of their squares: n cancels */
		update.adaptive.epsilon /= (float)workers;
		return update;
	}
	/* rate (n gradient + decay weight) = n rate (gradient + decay / n weight); norms scale alike */
	update.rate *= (float)workers;
	update.weight_decay /= (float)workers;
	update.trust_ratio /= workers;
	return update;
}

struct psd_update psd_solver_update_of(struct psd_update update, const struct psd_tensor *tensor)
{
	update.rate *= tensor->rate_ratio;
	update.weight_decay *= tensor->decay_ratio;
	return update;
}

struct psd_update psd_solver_outer_update(const struct psd_outer *outer)
{
	return outer ? (struct psd_update){.rate = (float)outer->rate,
					   .momentum = (float)outer->momentum,
					   .is_nesterov = outer->is_nesterov}
		     : (struct psd_update){.rate = 1.0f};
}
