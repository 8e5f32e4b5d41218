/* Compressions: as what blocks of values travel where far fewer bits leave than values have. What is lost of a block
 * stays behind, to travel with what comes next ("error feedback"). A compression is a row in a file of its own; devices
 * with memory of their own do the same to the bit, but for which NaN a NaN becomes. Pure functions, any thread. */
#ifndef PSD_COMPRESSION_H
#define PSD_COMPRESSION_H

#include <stdbool.h>
#include <stdint.h>

/* Blocks are cut from each tensor anew, so that the last of one may have fewer values; it travels as a whole. */
struct psd_block {
	uint32_t elements; /* a multiple of PSD_BLOCK_UNIT, up to PSD_BLOCK_MAX */
	uint32_t kept;	   /* of top-k, how many travel: 1 to elements */
};

enum {
	PSD_BLOCK_LANES = 32, /* value e of a block is in lane e % 32: what is done to lanes at once needs no order */
	PSD_BLOCK_UNIT = 1024,
	PSD_BLOCK_MAX = 32768,
};

struct psd_compression {
	const char *name;
	/* Adding one touches all values of the block; else those alone that travel. */
	bool adds_all;
	/* Of a block as it travels, a multiple of 4. */
	uint32_t (*bytes)(const struct psd_block *block);
	/* `values`, n >= 1 of them, are what is to travel, and become what is lost of it. `packed`, aligned to 4 bytes,
	 * is overwritten. */
	void (*pack)(const struct psd_block *block, float *values, uint32_t n, void *packed);
	/* sum += what travels, n values. Of bytes that no pack() has made the sum is anything, but stays in bounds. */
	void (*add)(const struct psd_block *block, const void *packed, uint32_t n, float *sum);
};

/* One row each: identifier, and name in scenarios. */
#define PSD_COMPRESSIONS(ROW) ROW(one_bit, "one-bit") ROW(top_k, "top-k")

#define PSD_DECLARE_COMPRESSION(identifier, text) extern const struct psd_compression psd_compression_##identifier;
PSD_COMPRESSIONS(PSD_DECLARE_COMPRESSION)

/* In the order of the rows, as are their names, which NULL ends. */
extern const struct psd_compression *const psd_compressions[];
extern const char *const psd_compression_names[];

/* Blocks of a tensor. Pure. */
uint64_t psd_block_count(const struct psd_block *block, uint64_t elements);
/* Values of the next block, where so many of a tensor are left. Pure. */
uint32_t psd_block_next(const struct psd_block *block, uint64_t left);

#endif
