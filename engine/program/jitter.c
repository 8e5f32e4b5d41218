#include "engine/program/jitter.h"

#include <math.h>

#include "engine/base/random.h"

static double uniform(uint64_t bits) /* in (0, 1] */
{
	return ((double)(bits >> 11) + 1.0) / 9007199254740992.0;
}

enum { SPREAD_ITERATIONS = 100 }; /* for a 99th percentile */

static uint64_t key_of(uint64_t seed, unsigned host, struct psd_task task)
{
	const uint64_t of_host = psd_random_mix(psd_random_mix(seed) ^ host);

	return psd_random_mix(of_host ^ ((uint64_t)task.iteration << 32 | task.op));
}

static double log_normal(double ratio, uint64_t key)
{
	const double sigma = sqrt(log(1.0 + ratio * ratio));
	const double normal = sqrt(-2.0 * log(uniform(psd_random_mix(key)))) *
			      cos(2.0 * 3.14159265358979323846 * uniform(psd_random_mix(key + 1)));

	return exp(sigma * normal - sigma * sigma / 2.0);
}

double psd_jitter_factor(double ratio, uint64_t seed, unsigned host, struct psd_task task)
{
	return ratio == 0.0 ? 1.0 : log_normal(ratio, key_of(seed, host, task));
}

double psd_spread_factor(const struct psd_spread *spread, uint64_t seed, unsigned host, uint32_t iteration)
{
	/* no operation has this number */
	const uint64_t key = key_of(seed, host, (struct psd_task){.iteration = iteration, .op = UINT32_MAX});
	const bool is_slow =
		spread->tail_chance_ratio > 0.0 && uniform(psd_random_mix(key + 2)) <= spread->tail_chance_ratio;

	return (spread->ratio == 0.0 ? 1.0 : log_normal(spread->ratio, key)) * (is_slow ? spread->tail_factor : 1.0);
}

static bool has_spread(const struct psd_scenario *scenario)
{
	return scenario->spread.ratio > 0.0 || scenario->spread.tail_chance_ratio > 0.0;
}

double psd_jittered_sec(const struct psd_scenario *scenario, unsigned host, const struct psd_op *op,
			enum psd_resource resource, struct psd_task task, double sec)
{
	if (psd_op_is_compute(op))
		sec *= psd_jitter_factor(scenario->jitter_ratio, scenario->seed, host, task);
	if (resource == PSD_RESOURCE_DEVICE && has_spread(scenario))
		sec *= psd_spread_factor(&scenario->spread, scenario->seed, host, task.iteration);
	return sec;
}

bool psd_jitter_is_drawn(const struct psd_scenario *scenario)
{
	return scenario->jitter_ratio > 0.0 || has_spread(scenario);
}

uint32_t psd_jitter_iterations(const struct psd_scenario *scenario)
{
	return scenario->iterations == 0 && has_spread(scenario) ? SPREAD_ITERATIONS : scenario->iterations;
}
