/* A bit for each value, its sign, and for each block the means of its negative and of its other values. Source: Seide
 * et al. 2014, 1-Bit Stochastic Gradient Descent, whose blocks are a matrix's columns. */
#include <string.h>

#include "engine/encodings/compression.h"

/* A packed block. words: one for each lane of PSD_BLOCK_UNIT values; bits in the order of the lane's values, 1 for a
 * negative one. */
struct one_bit {
	float low, high;
	uint32_t words[];
};

struct sums {
	float low[PSD_BLOCK_LANES], high[PSD_BLOCK_LANES];
	uint32_t n_low[PSD_BLOCK_LANES];
};

#define INLINE static inline __attribute__((always_inline)) /* the compiler then knows the trip count */

/* Bit masks choose floats, since compilers do not vectorise conditions here. */
INLINE uint32_t bits_of(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

INLINE float float_of(uint32_t bits)
{
	float value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static uint32_t lesser(uint32_t left, uint32_t right)
{
	return left < right ? left : right;
}

static uint32_t bytes(const struct psd_block *block)
{
	return (uint32_t)(sizeof(struct one_bit) + block->elements / 8);
}

/* Handles one row of PSD_BLOCK_LANES consecutive values; each becomes bit number `bit` of its lane's word. */
INLINE void look_at_row(const float *restrict values, uint32_t n_lanes, uint32_t bit, uint32_t *restrict words,
			struct sums *restrict sums)
{
	for (uint32_t lane = 0; lane < n_lanes; lane++) {
		const uint32_t is_low = 0u - (values[lane] < 0.0f), bits = bits_of(values[lane]);

		sums->low[lane] += float_of(is_low & bits);
		sums->high[lane] += float_of(~is_low & bits);
		sums->n_low[lane] -= is_low;
		words[lane] |= is_low & 1u << bit;
	}
}

/* At most PSD_BLOCK_UNIT values. */
static void look_at(const float *values, uint32_t n, uint32_t *words, struct sums *sums)
{
	const uint32_t n_rows = n / PSD_BLOCK_LANES;

	for (uint32_t row = 0; row < n_rows; row++)
		look_at_row(values + row * PSD_BLOCK_LANES, PSD_BLOCK_LANES, row, words, sums);
	look_at_row(values + n_rows * PSD_BLOCK_LANES, n % PSD_BLOCK_LANES, n_rows, words, sums);
}

static float mean_of(const float sums[PSD_BLOCK_LANES], uint32_t n)
{
	float sum = 0.0f;

	for (uint32_t lane = 0; lane < PSD_BLOCK_LANES; lane++)
		sum += sums[lane];
	return n ? sum / (float)n : 0.0f;
}

INLINE void add_row(uint32_t low, uint32_t high, const uint32_t *restrict words, uint32_t n_lanes, uint32_t bit,
		    float *restrict sum)
{
	for (uint32_t lane = 0; lane < n_lanes; lane++) {
		const uint32_t is_low = 0u - (words[lane] >> bit & 1);

		sum[lane] += float_of((is_low & low) | (~is_low & high));
	}
}

/* Adds ratio times the packed values, at most PSD_BLOCK_UNIT of them, to sum. */
static void add_unit(const struct one_bit *of, const uint32_t *words, float ratio, uint32_t n, float *sum)
{
	const uint32_t low = bits_of(ratio * of->low), high = bits_of(ratio * of->high);
	const uint32_t n_rows = n / PSD_BLOCK_LANES;

	for (uint32_t row = 0; row < n_rows; row++)
		add_row(low, high, words, PSD_BLOCK_LANES, row, sum + row * PSD_BLOCK_LANES);
	add_row(low, high, words, n % PSD_BLOCK_LANES, n_rows, sum + n_rows * PSD_BLOCK_LANES);
}

static void add_all(const struct one_bit *of, float ratio, uint32_t n, float *sum)
{
	for (uint32_t e = 0; e < n; e += PSD_BLOCK_UNIT)
		add_unit(of, of->words + e / PSD_BLOCK_LANES, ratio, lesser(n - e, PSD_BLOCK_UNIT), sum + e);
}

static void pack(const struct psd_block *block, float *values, uint32_t n, void *packed)
{
	struct one_bit *of = packed;
	struct sums sums = {.n_low = {0}};
	uint32_t n_low = 0;

	memset(of->words, 0, block->elements / 8);
	for (uint32_t e = 0; e < n; e += PSD_BLOCK_UNIT)
		look_at(values + e, lesser(n - e, PSD_BLOCK_UNIT), of->words + e / PSD_BLOCK_LANES, &sums);
	for (uint32_t lane = 0; lane < PSD_BLOCK_LANES; lane++)
		n_low += sums.n_low[lane];
	of->low = mean_of(sums.low, n_low);
	of->high = mean_of(sums.high, n - n_low);
	add_all(of, -1.0f, n, values);
}

static void add(const struct psd_block *block, const void *packed, uint32_t n, float *sum)
{
	(void)block;
	add_all(packed, 1.0f, n, sum);
}

const struct psd_compression psd_compression_one_bit = {
	.name = "one-bit",
	.adds_all = true,
	.bytes = bytes,
	.pack = pack,
	.add = add,
};
