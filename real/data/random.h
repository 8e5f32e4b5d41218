/* Random numbers that are computed from a key. They have no state, so that any worker can compute any of them. Not for
 * cryptography. */
#ifndef PSD_REAL_RANDOM_H
#define PSD_REAL_RANDOM_H

#include "engine/base/random.h"

/* Purpose of a random number. It is part of the key, so numbers with different purposes are independent. */
enum psd_random_purpose {
	PSD_RANDOM_ORDER = 1, /* order of the samples in an epoch */
	PSD_RANDOM_CROP,      /* crop of a packed image, and whether it is mirrored */
	PSD_RANDOM_PATTERN,   /* pattern of a class of synthetic samples */
	PSD_RANDOM_NOISE,     /* noise that is added to a synthetic sample */
	PSD_RANDOM_PARAMETER, /* start value of a parameter */
};

/* Returns 64 random bits for the key (seed, purpose, a, b). a, b: numbers that depend on the purpose, such as epoch and
 * sample. Pure, any thread. */
static inline uint64_t psd_random_key(uint64_t seed, enum psd_random_purpose purpose, uint64_t a, uint64_t b)
{
	return psd_random_mix(psd_random_mix(psd_random_mix(psd_random_mix(seed) ^ (uint64_t)purpose) ^ a) ^ b);
}

/* Returns a random number from 0 to bound - 1, made from the upper 32 of 64 random bits (`bits`). bound: >= 1. Each
 * number has the probability 1 / bound, with a relative error of less than bound / 2^32. Pure. */
static inline uint32_t psd_random_below(uint64_t bits, uint32_t bound)
{
	return (uint32_t)((bits >> 32) * bound >> 32);
}

#endif
