/* Sums and products that stay at UINT64_MAX instead of overflowing, so that a long formula needs only one check at its
 * end. Private to the engine. */
#ifndef PSD_SATURATE_H
#define PSD_SATURATE_H

#include <stdint.h>

static inline uint64_t psd_saturated_add(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static inline uint64_t psd_saturated_mul(uint64_t a, uint64_t b)
{
	return b && a > UINT64_MAX / b ? UINT64_MAX : a * b;
}

#endif
