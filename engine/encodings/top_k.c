/* The k values of each block with the largest magnitude, and their positions. Magnitudes are compared by their first 15
 * bits: exponent and 8 bits of precision. Equal ones are taken in their order. Source: Stich et al. 2018 (arXiv
 * 1809.07599). Lin et al. 2018 (arXiv 1712.01887) select in the same manner from each tensor by a threshold. */
#include <string.h>

#include "engine/encodings/compression.h"

enum {
	NOWHERE = UINT16_MAX, /* position of a value that a shorter block lacks */
	ROW = 16,
};

/* A packed block is the kept values, then their positions in the block, in order. */
static float *values_in(void *packed)
{
	return packed;
}

static uint16_t *places_in(const struct psd_block *block, void *packed)
{
	return (uint16_t *)(values_in(packed) + block->kept);
}

static uint32_t bytes(const struct psd_block *block)
{
	return block->kept * (uint32_t)sizeof(float) + (block->kept + 1) / 2 * 2 * (uint32_t)sizeof(uint16_t);
}

/* Keys by which magnitudes are compared. They are padded with zeros to a multiple of the length of a row. */
struct keys {
	uint16_t keys[PSD_BLOCK_MAX];
	uint32_t n;
};

/* Rows have a fixed length so that -O2 vectorises. */
static void find_keys(struct keys *keys, const float *values, uint32_t n)
{
	for (keys->n = 0; keys->n < n; keys->n += ROW) {
		const uint32_t n_left = n - keys->n < ROW ? n - keys->n : ROW;
		uint16_t *row = keys->keys + keys->n;
		uint32_t bits[ROW] = {0};

		memcpy(bits, values + keys->n, n_left * sizeof(*bits));
		for (unsigned i = 0; i < ROW; i++)
			row[i] = (uint16_t)(bits[i] >> 16 & 0x7fff);
	}
}

/* Returns the number of keys that are larger than `key`. The difference key - larger key, in 16 bits, has the highest
 * bit set. */
static uint32_t count_above(const struct keys *keys, uint16_t key)
{
	uint16_t counts[ROW] = {0};
	uint32_t n = 0;

	for (const uint16_t *row = keys->keys; row < keys->keys + keys->n; row += ROW)
		for (unsigned i = 0; i < ROW; i++)
			counts[i] = (uint16_t)(counts[i] + ((uint16_t)(key - row[i]) >> 15));
	for (uint32_t i = 0; i < ROW; i++)
		n += counts[i];
	return n;
}

/* Finds the key of the k-th largest value, 1 <= k <= n, bit by bit. *k becomes the number of values with this key among
 * the k largest. */
static uint16_t find_key(const struct keys *keys, uint32_t *k)
{
	uint16_t key = 0;

	for (int bit = 1 << 14; bit > 0; bit >>= 1)
		if (count_above(keys, (uint16_t)((key | bit) - 1)) >= *k)
			key = (uint16_t)(key | bit);
	*k -= count_above(keys, key);
	return key;
}

static void pack(const struct psd_block *block, float *values, uint32_t n, void *packed)
{
	float *kept = values_in(packed);
	uint16_t *places = places_in(block, packed);
	uint32_t n_equal = block->kept < n ? block->kept : n, n_kept = 0;
	struct keys keys;

	find_keys(&keys, values, n);
	const uint16_t key = find_key(&keys, &n_equal);

	memset(packed, 0, bytes(block));
	for (uint32_t e = 0; e < n; e++) {
		if (keys.keys[e] < key || (keys.keys[e] == key && n_equal == 0))
			continue;
		n_equal -= keys.keys[e] == key;
		kept[n_kept] = values[e];
		places[n_kept++] = (uint16_t)e;
		values[e] = 0.0f;
	}
	for (; n_kept < block->kept; n_kept++)
		places[n_kept] = NOWHERE;
}

static void add(const struct psd_block *block, const void *packed, uint32_t n, float *sum)
{
	const float *kept = packed;
	const uint16_t *places = (const uint16_t *)(kept + block->kept);

	for (uint32_t i = 0; i < block->kept; i++)
		if (places[i] < n)
			sum[places[i]] += kept[i];
}

const struct psd_compression psd_compression_top_k = {
	.name = "top-k",
	.bytes = bytes,
	.pack = pack,
	.add = add,
};
