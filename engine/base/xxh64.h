/* Checksum of 64 bits for large memory: xxHash's XXH64 with seed 0, gigabytes a second. It finds damage, not malice.
 * engine/base/hash.h is for small inputs. Source: https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md */
#ifndef PSD_XXH64_H
#define PSD_XXH64_H

#include <stddef.h>
#include <stdint.h>

enum { PSD_XXH64_LANES = 4, PSD_XXH64_STRIPE_BYTES = 32 };

struct psd_xxh64 {
	uint64_t lanes[PSD_XXH64_LANES];
	uint64_t n_bytes;		      /* bytes so far */
	uint8_t rest[PSD_XXH64_STRIPE_BYTES]; /* the last n_bytes % PSD_XXH64_STRIPE_BYTES of them */
};

/* All are pure, any thread. */

struct psd_xxh64 psd_xxh64_begin(void);
/* Pieces may have any length and alignment; the result depends on their bytes alone. */
void psd_xxh64_add(struct psd_xxh64 *sum, const void *bytes, size_t n_bytes);
/* Checksum of all bytes so far; more may follow. */
uint64_t psd_xxh64_end(const struct psd_xxh64 *sum);

#endif
