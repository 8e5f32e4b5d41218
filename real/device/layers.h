/* Functions for all devices that execute layers: they find the implementation of a layer kind, and assign offsets to
 * memory blocks. Blocks that are never in use at the same time share memory. */
#ifndef PSD_REAL_LAYERS_H
#define PSD_REAL_LAYERS_H

#include <stddef.h>
#include <stdint.h>

#include "engine/model/graph.h"

/* Part of a layer's output that the layer's own backward pass reads: nothing, only the signs of the values, or the
 * values. Later layers that work in place must not change this part. */
enum psd_keeps { PSD_KEEPS_NOTHING, PSD_KEEPS_SIGNS, PSD_KEEPS_ALL };

/* Entry of a device's list of implemented layer kinds. */
struct psd_kind_row {
	const struct psd_layer_kind *of;
	const void *kind; /* implementation of the layer kind `of`, in a type of the device */
};

/* Finds the entry whose `of` is this layer kind, and returns its `kind`. Returns NULL if there is no such entry.
 * Pure. */
const void *psd_kind_find(const struct psd_kind_row rows[], size_t n_rows, const struct psd_layer_kind *kind);

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
