/* Functions for all devices that execute layers: the implementation of a layer kind, the share of a batch. */
#ifndef PSD_REAL_LAYERS_H
#define PSD_REAL_LAYERS_H

#include <stddef.h>
#include <stdint.h>

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

/* Returns the weight of this iteration's batch in the running statistics of a batch norm. It is 1 - kept_ratio; in
 * Caffe's average, in which the weight of older batches is multiplied by kept_ratio in each iteration, it is 1 / (sum
 * of all weights). Pure. */
double psd_batch_share(const struct psd_affine_settings *affine, uint64_t iteration);

#endif
