/* Arrays that grow by doubling. */
#ifndef PSD_GROW_H
#define PSD_GROW_H

#include <stdint.h>
#include <stdlib.h>

/* Returns the array of n entries, with room for one more; the caller owns it as before. NULL: out of memory, the array
 * is unchanged. */
static inline void *psd_grown(void *array, uint32_t n, uint32_t *capacity, size_t entry_bytes)
{
	const uint32_t wanted = n > 0 ? 2 * n : 16;
	void *grown = n < *capacity ? array : realloc(array, wanted * entry_bytes);

	if (grown && n == *capacity)
		*capacity = wanted;
	return grown;
}

#endif
