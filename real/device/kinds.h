/* How devices find their own part of a layer's kind, of which the model has the list. */
#ifndef PSD_REAL_KINDS_H
#define PSD_REAL_KINDS_H

#include <stddef.h>

#include "engine/model/graph.h"

/* What a layer's backward needs of its own output: nothing above may overwrite that. */
enum psd_keeps { PSD_KEEPS_NOTHING, PSD_KEEPS_SIGNS, PSD_KEEPS_ALL };

struct psd_kind_row {
	const struct psd_layer_kind *of;
	const void *kind; /* the device's own */
};

/* The device's own of a kind; NULL: there is no row of it. Pure. */
const void *psd_kind_find(const struct psd_kind_row rows[], size_t n_rows, const struct psd_layer_kind *kind);

#endif
