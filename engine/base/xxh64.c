/* Names and constants are those of the specification. Memory is little-endian, as everywhere. */
#include "engine/base/xxh64.h"

#include <string.h>

#define PRIME_1 UINT64_C(0x9e3779b185ebca87)
#define PRIME_2 UINT64_C(0xc2b2ae3d27d4eb4f)
#define PRIME_3 UINT64_C(0x165667b19e3779f9)
#define PRIME_4 UINT64_C(0x85ebca77c2b2ae63)
#define PRIME_5 UINT64_C(0x27d4eb2f165667c5)

enum { WORD_BYTES = 8, HALF_WORD_BYTES = 4 };

static inline uint64_t rotated(uint64_t word, unsigned n_bits)
{
	return word << n_bits | word >> (64 - n_bits);
}

static inline uint64_t read_word(const uint8_t *at)
{
	uint64_t word;

	memcpy(&word, at, sizeof(word));
	return word;
}

static inline uint64_t read_half_word(const uint8_t *at)
{
	uint32_t half_word;

	memcpy(&half_word, at, sizeof(half_word));
	return half_word;
}

static inline uint64_t mixed(uint64_t lane, uint64_t word)
{
	return rotated(lane + word * PRIME_2, 31) * PRIME_1;
}

static inline uint64_t merged(uint64_t hash, uint64_t lane)
{
	return (hash ^ mixed(0, lane)) * PRIME_1 + PRIME_4;
}

struct psd_xxh64 psd_xxh64_begin(void)
{
	return (struct psd_xxh64){.lanes = {PRIME_1 + PRIME_2, PRIME_2, 0, UINT64_C(0) - PRIME_1}};
}

/* Lanes stay in registers over all stripes. */
static void add_stripes(uint64_t lanes[PSD_XXH64_LANES], const uint8_t *at, size_t n_stripes)
{
	uint64_t a = lanes[0], b = lanes[1], c = lanes[2], d = lanes[3];

	for (size_t i = 0; i < n_stripes; i++, at += PSD_XXH64_STRIPE_BYTES) {
		a = mixed(a, read_word(at));
		b = mixed(b, read_word(at + WORD_BYTES));
		c = mixed(c, read_word(at + (size_t)2 * WORD_BYTES));
		d = mixed(d, read_word(at + (size_t)3 * WORD_BYTES));
	}
	lanes[0] = a;
	lanes[1] = b;
	lanes[2] = c;
	lanes[3] = d;
}

void psd_xxh64_add(struct psd_xxh64 *sum, const void *bytes, size_t n_bytes)
{
	const size_t n_rest = sum->n_bytes % PSD_XXH64_STRIPE_BYTES;
	const uint8_t *at = bytes;

	if (n_bytes == 0)
		return;
	sum->n_bytes += n_bytes;
	if (n_rest > 0) {
		const size_t room = PSD_XXH64_STRIPE_BYTES - n_rest, n = n_bytes < room ? n_bytes : room;

		memcpy(sum->rest + n_rest, at, n);
		at += n;
		n_bytes -= n;
		if (n < room)
			return;
		add_stripes(sum->lanes, sum->rest, 1);
	}
	const size_t n_stripes = n_bytes / PSD_XXH64_STRIPE_BYTES;
	add_stripes(sum->lanes, at, n_stripes);
	memcpy(sum->rest, at + n_stripes * PSD_XXH64_STRIPE_BYTES, n_bytes % PSD_XXH64_STRIPE_BYTES);
}

static uint64_t add_rest(uint64_t hash, const uint8_t *at, size_t n_bytes)
{
	for (; n_bytes >= WORD_BYTES; at += WORD_BYTES, n_bytes -= WORD_BYTES)
		hash = rotated(hash ^ mixed(0, read_word(at)), 27) * PRIME_1 + PRIME_4;
	if (n_bytes >= HALF_WORD_BYTES) {
		hash = rotated(hash ^ (read_half_word(at) * PRIME_1), 23) * PRIME_2 + PRIME_3;
		at += HALF_WORD_BYTES;
		n_bytes -= HALF_WORD_BYTES;
	}
	for (; n_bytes > 0; at++, n_bytes--)
		hash = rotated(hash ^ (*at * PRIME_5), 11) * PRIME_1;
	return hash;
}

uint64_t psd_xxh64_end(const struct psd_xxh64 *sum)
{
	const uint64_t *lanes = sum->lanes;
	uint64_t hash = PRIME_5;

	if (sum->n_bytes >= PSD_XXH64_STRIPE_BYTES) {
		hash = rotated(lanes[0], 1) + rotated(lanes[1], 7) + rotated(lanes[2], 12) + rotated(lanes[3], 18);
		for (unsigned i = 0; i < PSD_XXH64_LANES; i++)
			hash = merged(hash, lanes[i]);
	}
	hash = add_rest(hash + sum->n_bytes, sum->rest, sum->n_bytes % PSD_XXH64_STRIPE_BYTES);
	hash = (hash ^ hash >> 33) * PRIME_2;
	hash = (hash ^ hash >> 29) * PRIME_3;
	return hash ^ hash >> 32;
}
