#include "engine/program/jitter.h"

#include <math.h>

static uint64_t mixed(uint64_t x) /* splitmix64 */
{
	x += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

static double uniform(uint64_t bits) /* in (0, 1] */
{
	return ((double)(bits >> 11) + 1.0) / 9007199254740992.0;
}

double psd_jitter_factor(double ratio, uint64_t seed, unsigned host, struct psd_task task)
{
	if (ratio == 0.0)
		return 1.0;
	const double sigma = sqrt(log(1.0 + ratio * ratio));
	const uint64_t key = mixed(mixed(mixed(seed) ^ host) ^ ((uint64_t)task.iteration << 32 | task.op));
	const double normal =
		sqrt(-2.0 * log(uniform(mixed(key)))) * cos(2.0 * 3.14159265358979323846 * uniform(mixed(key + 1)));
	return exp(sigma * normal - sigma * sigma / 2.0);
}
