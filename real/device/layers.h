/* Shared by devices that execute layers: the search for the implementation of a layer kind, and the placement of memory
 * blocks, in which blocks that are never in use at the same time share memory. */
#ifndef PSD_REAL_LAYERS_H
#define PSD_REAL_LAYERS_H

#include <stddef.h>
#include <stdint.h>

#include "engine/model/graph.h"

/* Values of a layer's output that its own backward pass reads, so that later layers must not overwrite them in place:
 * none, only their signs, or all. */
enum psd_keeps { PSD_KEEPS_NOTHING, PSD_KEEPS_SIGNS, PSD_KEEPS_ALL };

/* Entry of a device's list of layer kinds. */
struct psd_kind_row {
	const struct psd_layer_kind *of;
	const void *kind; /* implementation of the layer kind, in the device's own type */
};

/* Returns the `kind` of the entry whose `of` is this layer kind; NULL: there is none. Pure. */
const void *psd_kind_find(const struct psd_kind_row rows[], size_t n_rows, const struct psd_layer_kind *kind);

/* Memory block, and the steps of an iteration in which it is in use. */
struct psd_block_lifetime {
	unsigned owner;			 /* number that orders blocks with equal birth_step */
	unsigned birth_step, death_step; /* first and last step in which the block is in use */
	uint64_t bytes;			 /* length of the block */
	uint64_t offset_bytes;		 /* offset of the block in the common memory; set by psd_lifetimes_place() */
};

/* Sorts the blocks by birth_step, and sets each offset_bytes to the lowest free offset, a multiple of alignment_bytes
 * (a power of two). Returns the bytes of the common memory that all blocks need. Pure, any thread. */
uint64_t psd_lifetimes_place(struct psd_block_lifetime lives[], unsigned n_lives, uint64_t alignment_bytes);

#endif
