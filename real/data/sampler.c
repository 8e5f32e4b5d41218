/* The order of samples as a keyed permutation. Refuses tables: the order of ImageNet's samples needs no memory. */
#include "real/data/sampler.h"

#include <assert.h>

#include "real/data/random.h"

enum { N_ROUNDS = 8 }; /* four rounds look random enough; small sets of samples need more */

/* Half the number of bits of the smallest power of four that is n_samples or more; at least 1. */
static unsigned half_bits_of(uint64_t n_samples)
{
	unsigned half_bits = 1;

	while (UINT64_C(1) << 2 * half_bits < n_samples)
		half_bits++;
	return half_bits;
}

/* Returns the image of x under a bijection on the numbers 0 to 4^half_bits - 1, which `key` selects. */
static uint64_t scramble(uint64_t x, unsigned half_bits, uint64_t key)
{
	const uint64_t mask = (UINT64_C(1) << half_bits) - 1;
	uint64_t left = x >> half_bits, right = x & mask;

	for (uint64_t round = 0; round < N_ROUNDS; round++) {
		const uint64_t next = (left ^ psd_random_mix(key + (round << 32 | right))) & mask;

		left = right;
		right = next;
	}
	return left << half_bits | right;
}

uint64_t psd_sampler_sample(const struct psd_sampler *sampler, uint64_t epoch, uint64_t position)
{
	const unsigned half_bits = half_bits_of(sampler->n_samples);
	const uint64_t key = psd_random_key(sampler->seed, PSD_RANDOM_ORDER, epoch, 0);
	uint64_t x = position;

	assert(sampler->n_samples >= 1 && sampler->n_samples <= UINT64_C(1) << 48 && position < sampler->n_samples);
	do /* ends, because the cycle through `position` returns below n_samples; at most 4 steps on average */
		x = scramble(x, half_bits, key);
	while (x >= sampler->n_samples);
	return x;
}

struct psd_draw psd_sampler_draw(const struct psd_sampler *sampler, uint64_t global_position)
{
	const uint64_t epoch = global_position / sampler->n_samples;

	return (struct psd_draw){epoch, psd_sampler_sample(sampler, epoch, global_position % sampler->n_samples)};
}

uint64_t psd_sampler_first(uint64_t iteration, uint32_t workers, uint32_t worker, uint32_t batch)
{
	assert(worker < workers);
	return (iteration * workers + worker) * batch;
}
