/* Compressions: forms in which blocks of values travel with far fewer bits. The error of a block stays behind and is
 * added to the next one (error feedback). Each compression is a row in a file of its own; devices with memory of their
 * own compute the same bits, except that a NaN may become another NaN. Pure functions, any thread. */
#ifndef PSD_COMPRESSION_H
#define PSD_COMPRESSION_H

#include <stdbool.h>
#include <stdint.h>

/* Blocks into which a tensor's values are divided for compression. The first block begins with the first value. The
 * last one may have fewer values, but has as many bytes as a full one. */
struct psd_block {
	uint32_t elements; /* number of values in a block: a multiple of PSD_BLOCK_UNIT, up to PSD_BLOCK_MAX */
	uint32_t kept;	   /* top-k: number of values in a block that travel (k), 1 to elements */
};

enum {
	PSD_BLOCK_LANES = 32, /* value e of a block is in lane e % 32; results do not depend on the order of lanes */
	PSD_BLOCK_UNIT = 1024,
	PSD_BLOCK_MAX = 32768,
};

struct psd_compression {
	const char *name;
	/* True if add() changes all values of the block; false: only those that travel. */
	bool adds_all;
	/* Bytes of a packed block, a multiple of 4. */
	uint32_t (*bytes)(const struct psd_block *block);
	/* Packs n >= 1 values, which become their errors. `packed`: aligned to 4 bytes, overwritten. */
	void (*pack)(const struct psd_block *block, float *values, uint32_t n, void *packed);
	/* Adds the n values of a packed block to sum. Bytes that pack() did not make give any sum, within its bounds.
	 * */
	void (*add)(const struct psd_block *block, const void *packed, uint32_t n, float *sum);
};

/* All compressions, one row each: identifier, and name in scenarios. */
#define PSD_COMPRESSIONS(ROW) ROW(one_bit, "one-bit") ROW(top_k, "top-k")

#define PSD_DECLARE_COMPRESSION(identifier, text) extern const struct psd_compression psd_compression_##identifier;
PSD_COMPRESSIONS(PSD_DECLARE_COMPRESSION)

/* Compressions and their names by number, in the order of the rows; NULL ends the names. */
extern const struct psd_compression *const psd_compressions[];
extern const char *const psd_compression_names[];

/* Number of blocks into which a tensor's values are divided. Pure. */
uint64_t psd_block_count(const struct psd_block *block, uint64_t elements);
/* Number of values in the next block when `left` values of a tensor remain. Pure. */
uint32_t psd_block_next(const struct psd_block *block, uint64_t left);

#endif
