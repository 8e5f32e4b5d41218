/* The kinds of layers that devices carry out: one list for all of them, in which each finds its own part of a kind. */
#ifndef PSD_REAL_KINDS_H
#define PSD_REAL_KINDS_H

#include <stddef.h>

#include "engine/model/graph.h"

/* All but the network's input, which devices come by in their own ways. */
#define PSD_DEVICE_KINDS(ROW)                                                                                          \
	ROW(conv)                                                                                                      \
	ROW(deconv)                                                                                                    \
	ROW(pool)                                                                                                      \
	ROW(global_pool)                                                                                               \
	ROW(lrn)                                                                                                       \
	ROW(batch_norm)                                                                                                \
	ROW(scale)                                                                                                     \
	ROW(relu)                                                                                                      \
	ROW(prelu)                                                                                                     \
	ROW(sigmoid)                                                                                                   \
	ROW(tanh)                                                                                                      \
	ROW(elu)                                                                                                       \
	ROW(clip)                                                                                                      \
	ROW(linear)                                                                                                    \
	ROW(abs)                                                                                                       \
	ROW(exp)                                                                                                       \
	ROW(log)                                                                                                       \
	ROW(softplus)                                                                                                  \
	ROW(power)                                                                                                     \
	ROW(dropout)                                                                                                   \
	ROW(inner_product)                                                                                             \
	ROW(concat)                                                                                                    \
	ROW(slice)                                                                                                     \
	ROW(add)                                                                                                       \
	ROW(multiply)                                                                                                  \
	ROW(reshape)                                                                                                   \
	ROW(permute)                                                                                                   \
	ROW(shuffle)                                                                                                   \
	ROW(resize)                                                                                                    \
	ROW(softmax)                                                                                                   \
	ROW(softmax_loss)

/* What a layer's backward needs of its own output: nothing above may overwrite that. */
enum psd_keeps { PSD_KEEPS_NOTHING, PSD_KEEPS_SIGNS, PSD_KEEPS_ALL };

struct psd_kind_row {
	const struct psd_layer_kind *of;
	const void *kind; /* the device's own */
};

/* The device's own of a kind; NULL: there is no row of it. Pure. */
const void *psd_kind_find(const struct psd_kind_row rows[], size_t n_rows, const struct psd_layer_kind *kind);

#endif
