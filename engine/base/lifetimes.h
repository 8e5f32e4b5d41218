/* Offsets of memory blocks. Blocks that are never in use at the same time share memory. */
#ifndef PSD_LIFETIMES_H
#define PSD_LIFETIMES_H

#include <stdint.h>

/* A memory block, and the steps of an iteration in which it is in use. A step is the forward or the backward pass of
 * one layer. */
struct psd_block_lifetime {
	unsigned owner;			 /* number that decides the order of blocks with equal birth_step */
	unsigned birth_step, death_step; /* first and last step in which the block is in use */
	uint64_t bytes;			 /* length of the block, bytes */
	uint64_t offset_bytes;		 /* offset of the block in the shared memory; set by psd_lifetimes_place() */
};

/* Sorts the blocks by birth_step. Sets each offset_bytes to the lowest free offset that is a multiple of
 * alignment_bytes (a power of two). Returns the bytes of shared memory that all blocks need. Pure, any thread. */
uint64_t psd_lifetimes_place(struct psd_block_lifetime lives[], unsigned n_lives, uint64_t alignment_bytes);

#endif
