/* XXH64, a checksum of 64 bits that is fast for large memory (gigabytes per second), with seed 0. It finds damage, but
 * does not protect against intended changes. For small inputs there is engine/base/hash.h. Source:
 * https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md */
#ifndef PSD_XXH64_H
#define PSD_XXH64_H

#include <stddef.h>
#include <stdint.h>

enum { PSD_XXH64_LANES = 4, PSD_XXH64_STRIPE_BYTES = 32 };

struct psd_xxh64 {
	uint64_t lanes[PSD_XXH64_LANES];
	uint64_t n_bytes;		      /* number of bytes that were added so far */
	uint8_t rest[PSD_XXH64_STRIPE_BYTES]; /* the last n_bytes % PSD_XXH64_STRIPE_BYTES of the added bytes */
};

/* All functions are pure, any thread. */

struct psd_xxh64 psd_xxh64_begin(void);
/* Adds bytes to a checksum. Pieces may have any length and alignment; the result depends only on the bytes of all
 * pieces together. */
void psd_xxh64_add(struct psd_xxh64 *sum, const void *bytes, size_t n_bytes);
/* Returns the checksum of all bytes so far; more bytes may be added afterwards. */
uint64_t psd_xxh64_end(const struct psd_xxh64 *sum);

#endif
