/* Random bits that depend only on a number. There is no state, so all hosts draw the same bits. */
#ifndef PSD_RANDOM_H
#define PSD_RANDOM_H

#include <stdint.h>

/* Returns a number whose bits look random; different x give different results. Pure, any thread. Source: splitmix64
 * (Steele et al. 2014). */
static inline uint64_t psd_random_mix(uint64_t x)
{
	x += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

#endif
