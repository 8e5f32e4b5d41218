/* Functions for all devices that execute layers: they find the implementation of a layer kind. */
#ifndef PSD_REAL_LAYERS_H
#define PSD_REAL_LAYERS_H

#include <stddef.h>

#include "engine/base/lifetimes.h"
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

#endif
