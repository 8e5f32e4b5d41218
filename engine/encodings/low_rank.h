/* Which tensors travel as products of two narrow matrices, and how many values these have. Pure, any thread. */
#ifndef PSD_LOW_RANK_H
#define PSD_LOW_RANK_H

#include "engine/model/graph.h"

enum { PSD_MOST_RANK = 64 };

/* A tensor as a matrix: a row for each of its first dimension, which are outputs but for those of a deconvolution, its
 * inputs, and of an embedding, its tokens. */
struct psd_low_rank_shape {
	uint32_t rows; /* 0: it travels as it is, for the narrow matrices would have no fewer values */
	uint32_t columns;
};

/* Values of the left matrix, or of what travels in its place. */
static inline uint64_t psd_low_rank_left_values(struct psd_low_rank_shape shape, uint64_t elements, unsigned rank)
{
	return shape.rows ? (uint64_t)shape.rows * rank : elements;
}

struct psd_low_rank_shape psd_low_rank_shape_of(const struct psd_tensor *tensor, unsigned rank);
/* The same of a tensor; and values of its right matrix. */
uint64_t psd_low_rank_left(const struct psd_tensor *tensor, unsigned rank);
uint64_t psd_low_rank_right(const struct psd_tensor *tensor, unsigned rank);

#endif
