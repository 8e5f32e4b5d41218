#include "engine/encodings/compression.h"

#include <stddef.h>

#define ADDRESS(identifier, text) &psd_compression_##identifier,
#define NAME(identifier, text)	  text,
const struct psd_compression *const psd_compressions[] = {PSD_COMPRESSIONS(ADDRESS)};
const char *const psd_compression_names[] = {PSD_COMPRESSIONS(NAME) NULL};

uint64_t psd_block_count(const struct psd_block *block, uint64_t elements)
{
	return elements == 0 ? 0 : (elements - 1) / block->elements + 1;
}

uint32_t psd_block_next(const struct psd_block *block, uint64_t left)
{
	return left < block->elements ? (uint32_t)left : block->elements;
}
