/* Memory whose pieces are released together, such as the nodes and strings of one parsed file. Single pieces cannot be
 * released. */
#ifndef PSD_ARENA_H
#define PSD_ARENA_H

#include <stddef.h>

struct psd_arena_block;

struct psd_arena {
	/* newest block first; NULL: no blocks, so an arena of all zeros is valid and empty */
	struct psd_arena_block *blocks;
};

/* Returns size_bytes bytes of zeros, aligned for every type, valid until psd_arena_release(). NULL: out of memory. */
void *psd_arena_take(struct psd_arena *arena, size_t size_bytes);
/* Returns a copy of length bytes of text, with a zero at its end, valid until psd_arena_release(). NULL: out of
 * memory. */
char *psd_arena_copy(struct psd_arena *arena, const char *text, size_t length);
void psd_arena_release(struct psd_arena *arena);

#endif
