/* Shared by devices that execute layers: the search for a layer kind's implementation, and sharing of memory between
 * blocks that are never alive together. */
#ifndef PSD_REAL_LAYERS_H
#define PSD_REAL_LAYERS_H

#include <stddef.h>
#include <stdint.h>

#include "engine/model/graph.h"

/* Values of its own output that a layer's backward reads; later layers must not overwrite them in place. */
enum psd_keeps { PSD_KEEPS_NOTHING, PSD_KEEPS_SIGNS, PSD_KEEPS_ALL };

struct psd_kind_row {
	const struct psd_layer_kind *of;
	const void *kind; /* implementation of the layer kind, in the device's own type */
};

/* Returns the implementation of a layer kind; NULL: no row has it. Pure. */
const void *psd_kind_find(const struct psd_kind_row rows[], size_t n_rows, const struct psd_layer_kind *kind);

struct psd_block_lifetime {
	unsigned owner; /* number that orders blocks with equal births */
	unsigned birth_step, death_step;
	uint64_t bytes;
	uint64_t offset_bytes; /* offset of the block, the result */
};

/* Sorts lives by birth and gives each the lowest free offset, a multiple of alignment_bytes (a power of two). Returns
 * the total bytes. Pure, any thread. */
uint64_t psd_lifetimes_place(struct psd_block_lifetime lives[], unsigned n_lives, uint64_t alignment_bytes);

#endif
