/* Compressions: forms in which blocks of values travel with far fewer bits. The error of a block stays behind and is
 * added to the next one (error feedback). Each compression is a table of functions (struct psd_compression) in a file
 * of its own. GPUs compute the same bits, except that a NaN may become another NaN. Pure functions, any thread. */
#ifndef PSD_COMPRESSION_H
#define PSD_COMPRESSION_H

#include <stdbool.h>
#include <stdint.h>

/* Blocks into which a tensor's values are divided for compression. The first block begins with the first value. The
 * last one may have fewer values, but has as many bytes as a full one. */
struct psd_block {
	uint32_t elements; /* number of values in a block: a multiple of PSD_BLOCK_UNIT, up to PSD_BLOCK_MAX */
	uint32_t kept;	   /* number of values in a block that travel (k of top-k), 1 to elements; only top-k uses it */
};

enum {
	/* number of lanes: lane e % 32 has value e of a block; results do not depend on the order of lanes */
	PSD_BLOCK_LANES = 32,
	PSD_BLOCK_UNIT = 1024, /* number of values; the length of a block is a multiple of it */
	PSD_BLOCK_MAX = 32768, /* largest number of values in a block */
};

struct psd_compression {
	const char *name; /* name of the compression in scenarios */
	/* True if add() changes all n values of `sum`; false: it changes only the values that travel. */
	bool adds_all;
	/* Bytes of a packed block, a multiple of 4. */
	uint32_t (*bytes)(const struct psd_block *block);
	/* Compresses n >= 1 values into `packed`, bytes() long and aligned to 4 bytes, which is overwritten. Each value
	 * is replaced by its error: the value minus its decompressed value. */
	void (*pack)(const struct psd_block *block, float *values, uint32_t n, void *packed);
	/* Decompresses the n values of a packed block and adds them to sum. If pack() did not write these bytes, the
	 * sums are undefined, but nothing outside of sum[0] to sum[n - 1] is written. */
	void (*add)(const struct psd_block *block, const void *packed, uint32_t n, float *sum);
};

/* All compressions: identifier in C, and name in scenarios. */
#define PSD_COMPRESSIONS(ROW) ROW(one_bit, "one-bit") ROW(top_k, "top-k")

#define PSD_DECLARE_COMPRESSION(identifier, text) extern const struct psd_compression psd_compression_##identifier;
PSD_COMPRESSIONS(PSD_DECLARE_COMPRESSION)

/* All compressions, in the order of PSD_COMPRESSIONS. */
extern const struct psd_compression *const psd_compressions[];
/* Names of all compressions, in the order of PSD_COMPRESSIONS; NULL ends the array. */
extern const char *const psd_compression_names[];

/* Number of blocks into which a tensor's values are divided. Pure. */
uint64_t psd_block_count(const struct psd_block *block, uint64_t elements);
/* Returns the number of values in the next block when `left` values of a tensor remain: a full block, or `left` if that
 * is less. Pure. */
uint32_t psd_block_next(const struct psd_block *block, uint64_t left);

#endif
