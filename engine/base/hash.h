/* FNV-1a, a hash of 64 bits for comparison; it does not protect against intended changes. The first hash is
 * PSD_HASH_START, then each function returns its `hash` extended by the data. Source: Fowler, Noll, Vo,
 * http://www.isthe.com/chongo/tech/comp/fnv/ */
#ifndef PSD_HASH_H
#define PSD_HASH_H

#include <stddef.h>
#include <stdint.h>

#define PSD_HASH_START UINT64_C(0xcbf29ce484222325)

static inline uint64_t psd_hash_bytes(uint64_t hash, const void *bytes, size_t n_bytes)
{
	for (size_t i = 0; i < n_bytes; i++)
		hash = (hash ^ ((const uint8_t *)bytes)[i]) * UINT64_C(0x100000001b3);
	return hash;
}

/* Returns `hash` extended by a number. The result does not depend on the byte order of the machine. */
static inline uint64_t psd_hash_number(uint64_t hash, uint64_t number)
{
	for (unsigned i = 0; i < 8; i++)
		hash = (hash ^ (number >> 8 * i & 0xff)) * UINT64_C(0x100000001b3);
	return hash;
}

#endif
