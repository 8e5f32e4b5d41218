/* Arrays that grow by doubling their size. */
#ifndef PSD_GROW_H
#define PSD_GROW_H

#include <stdint.h>
#include <stdlib.h>

/* Returns an array with room for at least one more entry than the n it has; *capacity is updated. The array is the old
 * one or replaces it; the caller owns it. NULL: out of memory, and the old array is unchanged. */
static inline void *psd_grown(void *array, uint32_t n, uint32_t *capacity, size_t entry_bytes)
{
	const uint32_t wanted = n > 0 ? 2 * n : 16;
	void *grown = n < *capacity ? array : realloc(array, wanted * entry_bytes);

	if (grown && n == *capacity)
		*capacity = wanted;
	return grown;
}

#endif
