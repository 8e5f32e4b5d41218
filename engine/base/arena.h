/* Storage whose pieces are all released together: the nodes and strings of one parsed file, the tables of a worker.
 * Refuses to release single pieces. */
#ifndef PSD_ARENA_H
#define PSD_ARENA_H

#include <stddef.h>

struct psd_arena_block;

struct psd_arena {
	struct psd_arena_block *blocks; /* newest block first; NULL: empty. An arena of all zeros is valid and empty. */
};

/* Allocates size_bytes of zeroed, maximally aligned storage, valid until psd_arena_release(). NULL: out of memory. */
void *psd_arena_take(struct psd_arena *arena, size_t size_bytes);
/* Makes a zero-terminated copy of length bytes of text. NULL: out of memory. */
char *psd_arena_copy(struct psd_arena *arena, const char *text, size_t length);
void psd_arena_release(struct psd_arena *arena);

#endif
