/* Floats drawn from a seed, for kernels that are tested as host code. */
#ifndef PSD_TESTS_CUDA_DRAW_HELPER_H
#define PSD_TESTS_CUDA_DRAW_HELPER_H

#include <stdint.h>

/* In [-1, 1). */
static inline float draw(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return (float)(*state >> 8) * 0x1p-23f - 1.0f;
}

static inline void fill(float *values, uint64_t count, uint32_t seed)
{
	uint32_t state = seed;

	for (uint64_t i = 0; i < count; i++)
		values[i] = draw(&state);
}

#endif
