/* Places blocks in the order of their births, each at the lowest free offset. */
#include "engine/base/lifetimes.h"

#include <stdbool.h>
#include <stdlib.h>

static int by_birth(const void *left, const void *right)
{
	const struct psd_block_lifetime *one = left, *other = right;

	if (one->birth_step != other->birth_step)
		return one->birth_step < other->birth_step ? -1 : 1;
	return one->owner < other->owner ? -1 : one->owner > other->owner;
}

static bool meets(const struct psd_block_lifetime *one, const struct psd_block_lifetime *other, uint64_t offset_bytes)
{
	return one->birth_step <= other->death_step && other->birth_step <= one->death_step &&
	       offset_bytes < other->offset_bytes + other->bytes && other->offset_bytes < offset_bytes + one->bytes;
}

/* Returns the lowest offset at which block `index` overlaps no block that was placed before and is in use at the same
 * time. */
static uint64_t find_offset(const struct psd_block_lifetime lives[], unsigned index, uint64_t alignment_bytes)
{
	uint64_t offset_bytes = 0;
	bool is_free;

	do {
		is_free = true;
		for (unsigned i = 0; i < index && is_free; i++)
			if (meets(&lives[index], &lives[i], offset_bytes)) {
				offset_bytes = (lives[i].offset_bytes + lives[i].bytes + alignment_bytes - 1) /
					       alignment_bytes * alignment_bytes;
				is_free = false;
			}
	} while (!is_free);
	return offset_bytes;
}

uint64_t psd_lifetimes_place(struct psd_block_lifetime lives[], unsigned n_lives, uint64_t alignment_bytes)
{
	uint64_t bytes = 0;

	if (n_lives)
		qsort(lives, n_lives, sizeof(lives[0]), by_birth);
	for (unsigned i = 0; i < n_lives; i++) {
		lives[i].offset_bytes = find_offset(lives, i, alignment_bytes);
		if (lives[i].offset_bytes + lives[i].bytes > bytes)
			bytes = lives[i].offset_bytes + lives[i].bytes;
	}
	return bytes;
}
