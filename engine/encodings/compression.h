/* Compressions: forms in which blocks of values are sent with far fewer bits. The error is the difference between the
 * values and their decompressed form. It is stored and added to the next values of the block (error feedback). Each
 * compression is a table of functions (struct psd_compression) in a file of its own. GPUs compute the same bits, except
 * that a NaN may become another NaN. Pure functions, any thread. */
#ifndef PSD_COMPRESSION_H
#define PSD_COMPRESSION_H

#include <stdbool.h>
#include <stdint.h>

/* Size of the blocks into which the values of a tensor are divided for compression, in order. The last block may have
 * fewer values; it still has as many bytes as a full one. */
struct psd_block {
	uint32_t elements; /* number of values in a block: a multiple of PSD_BLOCK_UNIT, up to PSD_BLOCK_MAX */
	/* top-k only: number of values in a block that are sent (k), from 1 to `elements`. */
	uint32_t kept;
};

enum {
	/* Number of lanes: lane e % 32 processes value e of a block. Results do not depend on the order in which lanes
	 * are processed. */
	PSD_BLOCK_LANES = 32,
	PSD_BLOCK_UNIT = 1024, /* number of values; the length of a full block is a multiple of it */
	PSD_BLOCK_MAX = 32768, /* largest number of values in a block */
};

struct psd_compression {
	const char *name; /* name of the compression in scenarios */
	/* True if add() changes all n values of `sum`. False: it changes only those that were sent. */
	bool adds_all;
	/* Returns the bytes of a packed (compressed) block, a multiple of 4. */
	uint32_t (*bytes)(const struct psd_block *block);
	/* Compresses n >= 1 values of a block into `packed`, which has bytes(block) bytes and is aligned to 4 bytes.
	 * Afterwards values[] has the errors: each value minus its decompressed value. */
	void (*pack)(const struct psd_block *block, float *values, uint32_t n, void *packed);
	/* Decompresses the n values of a packed block and adds them to sum[]. If the bytes were not written by pack(),
	 * the sums are undefined, but only sum[0] to sum[n - 1] are written. */
	void (*add)(const struct psd_block *block, const void *packed, uint32_t n, float *sum);
};

/* All compressions, ROW(identifier in C, name in scenarios). */
#define PSD_COMPRESSIONS(ROW) ROW(one_bit, "one-bit") ROW(top_k, "top-k") ROW(int8, "int8")

#define PSD_DECLARE_COMPRESSION(identifier, text) extern const struct psd_compression psd_compression_##identifier;
PSD_COMPRESSIONS(PSD_DECLARE_COMPRESSION)

/* All compressions, in the order of PSD_COMPRESSIONS. */
extern const struct psd_compression *const psd_compressions[];
/* Names of all compressions, in the order of PSD_COMPRESSIONS; NULL ends the array. */
extern const char *const psd_compression_names[];

/* Returns the number of blocks into which `elements` values are divided. Pure. */
uint64_t psd_block_count(const struct psd_block *block, uint64_t elements);
/* Returns the number of values in the next block if `left` values of a tensor remain: that of a full block, or `left`
 * if it is smaller. Pure. */
uint32_t psd_block_next(const struct psd_block *block, uint64_t left);

#endif
