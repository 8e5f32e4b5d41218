#include "engine/base/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES ((size_t)64 * 1024)

struct psd_arena_block {
	struct psd_arena_block *next;
	size_t used_bytes;
	size_t room_bytes;
	alignas(max_align_t) char data[];
};

static struct psd_arena_block *add_block(struct psd_arena *arena, size_t size_bytes)
{
	const size_t room_bytes = size_bytes > BLOCK_BYTES ? size_bytes : BLOCK_BYTES;
	struct psd_arena_block *block;

	if (room_bytes > SIZE_MAX - sizeof(*block))
		return NULL;
	block = calloc(1, sizeof(*block) + room_bytes);
	if (!block)
		return NULL;
	block->next = arena->blocks;
	block->room_bytes = room_bytes;
	arena->blocks = block;
	return block;
}

void *psd_arena_take(struct psd_arena *arena, size_t size_bytes)
{
	const size_t align = alignof(max_align_t);
	struct psd_arena_block *block = arena->blocks;

	if (size_bytes > SIZE_MAX - align)
		return NULL;
	size_bytes = (size_bytes + align - 1) / align * align;
	if (!block || block->room_bytes - block->used_bytes < size_bytes)
		block = add_block(arena, size_bytes);
	if (!block)
		return NULL;
	void *piece = block->data + block->used_bytes;
	block->used_bytes += size_bytes;
	return piece;
}

char *psd_arena_copy(struct psd_arena *arena, const char *text, size_t length)
{
	char *copy = length < SIZE_MAX ? psd_arena_take(arena, length + 1) : NULL;

	if (copy)
		memcpy(copy, text, length); /* the terminator is there: pieces are zeroed */
	return copy;
}

void psd_arena_release(struct psd_arena *arena)
{
	while (arena->blocks) {
		struct psd_arena_block *next = arena->blocks->next;

		free(arena->blocks);
		arena->blocks = next;
	}
}
