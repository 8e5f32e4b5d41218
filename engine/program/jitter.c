#include "engine/program/jitter.h"

#include <math.h>

#include "engine/base/random.h"

static double uniform(uint64_t bits) /* in (0, 1] */
{
	return ((double)(bits >> 11) + 1.0) / 9007199254740992.0;
}

double psd_jitter_factor(double ratio, uint64_t seed, unsigned host, struct psd_task task)
{
	if (ratio == 0.0)
		return 1.0;
	const double sigma = sqrt(log(1.0 + ratio * ratio));
	const uint64_t of_host = psd_random_mix(psd_random_mix(seed) ^ host);
	const uint64_t key = psd_random_mix(of_host ^ ((uint64_t)task.iteration << 32 | task.op));
	const double normal = sqrt(-2.0 * log(uniform(psd_random_mix(key)))) *
			      cos(2.0 * 3.14159265358979323846 * uniform(psd_random_mix(key + 1)));
	return exp(sigma * normal - sigma * sigma / 2.0);
}
