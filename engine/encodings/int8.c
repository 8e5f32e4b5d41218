/* A whole number of 8 bits for each value, from -127 to 127, and for each block the step between two of them: the
 * largest magnitude over 127. The error of a value is at most half a step. Source: Dettmers 2015 (arXiv 1511.04561),
 * for blocks; Seide et al. 2014, for error feedback. */
#include <float.h>
#include <string.h>

#include "engine/encodings/compression.h"

/* GCC does not fuse under -std=c11; Clang would where the processor can. */
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

#define MOST_WHOLE 127.0f
/* After this is added to a value below 2^22, only whole numbers are left, rounded to the nearest, ties to even. */
#define ROUNDER 12582912.0f

/* A packed block. values: one for each value of a full block; 0 for those that a shorter one lacks. */
struct int8 {
	float step;
	int8_t values[];
};

#define INLINE static inline __attribute__((always_inline)) /* the compiler then knows the trip count */

INLINE uint32_t magnitude_of(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits & 0x7fffffff;
}

static uint32_t lesser(uint32_t left, uint32_t right)
{
	return left < right ? left : right;
}

static uint32_t bytes(const struct psd_block *block)
{
	return (uint32_t)sizeof(struct int8) + block->elements;
}

INLINE void look_at_row(const float *restrict values, uint32_t n_lanes, uint32_t *restrict largest)
{
	for (uint32_t lane = 0; lane < n_lanes; lane++) {
		const uint32_t magnitude = magnitude_of(values[lane]);

		largest[lane] = magnitude > largest[lane] ? magnitude : largest[lane];
	}
}

/* Returns the step of a block; 0: all values stay. Bits of magnitudes are in the order of magnitudes, those of
 * infinities and NaNs behind all others. */
static float find_step(const float *values, uint32_t n)
{
	const uint32_t in_rows = n - n % PSD_BLOCK_LANES;
	uint32_t largest[PSD_BLOCK_LANES] = {0};
	float most;

	for (uint32_t e = 0; e < in_rows; e += PSD_BLOCK_LANES)
		look_at_row(values + e, PSD_BLOCK_LANES, largest);
	look_at_row(values + in_rows, n - in_rows, largest);
	for (uint32_t lane = 1; lane < PSD_BLOCK_LANES; lane++)
		largest[0] = largest[lane] > largest[0] ? largest[lane] : largest[0];
	memcpy(&most, &largest[0], sizeof(most));
	most /= MOST_WHOLE;
	return most < FLT_MIN ? 0.0f
			      : most; /* a subnormal step is too coarse for 127 of them to be the largest value */
}

INLINE void take_row(float *restrict values, uint32_t n_lanes, float step, int8_t *restrict packed)
{
	for (uint32_t lane = 0; lane < n_lanes; lane++) {
		const float whole = values[lane] / step + ROUNDER - ROUNDER;

		packed[lane] = (int8_t)whole;
		values[lane] -= whole * step;
	}
}

INLINE void add_row(const int8_t *restrict packed, float step, uint32_t n_lanes, float *restrict sum)
{
	for (uint32_t lane = 0; lane < n_lanes; lane++)
		sum[lane] += (float)packed[lane] * step;
}

/* A block that is not finite sends zeros and its step, so that all its values become NaN. */
static void pack(const struct psd_block *block, float *values, uint32_t n, void *packed)
{
	struct int8 *of = packed;

	of->step = find_step(values, n);
	memset(of->values, 0, block->elements);
	for (uint32_t e = 0; e < n; e += PSD_BLOCK_LANES)
		if (of->step > 0.0f && of->step <= FLT_MAX)
			take_row(values + e, lesser(n - e, PSD_BLOCK_LANES), of->step, of->values + e);
		else if (!(of->step == 0.0f))
			add_row(of->values + e, of->step, lesser(n - e, PSD_BLOCK_LANES), values + e);
}

static void add(const struct psd_block *block, const void *packed, uint32_t n, float *sum)
{
	const struct int8 *of = packed;

	(void)block;
	for (uint32_t e = 0; e < n; e += PSD_BLOCK_LANES)
		add_row(of->values + e, of->step, lesser(n - e, PSD_BLOCK_LANES), sum + e);
}

const struct psd_compression psd_compression_int8 = {
	.name = "int8",
	.adds_all = true,
	.bytes = bytes,
	.pack = pack,
	.add = add,
};
