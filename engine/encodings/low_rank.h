/* The tensors that travel as low-rank factors, two narrow matrices, and the sizes of these. Pure, any thread. */
#ifndef PSD_LOW_RANK_H
#define PSD_LOW_RANK_H

#include "engine/model/graph.h"

enum { PSD_MOST_RANK = 64 };

/* Shape of a tensor as a matrix. Its rows are the first dimension: outputs; of a deconvolution inputs, of an embedding
 * tokens. */
struct psd_low_rank_shape {
	uint32_t rows; /* number of rows; 0: the tensor travels unchanged, since low-rank factors would be no smaller */
	uint32_t columns;
};

/* Number of values in the left matrix, or in the tensor that travels in its place. */
static inline uint64_t psd_low_rank_left_values(struct psd_low_rank_shape shape, uint64_t elements, unsigned rank)
{
	return shape.rows ? (uint64_t)shape.rows * rank : elements;
}

struct psd_low_rank_shape psd_low_rank_shape_of(const struct psd_tensor *tensor, unsigned rank);
/* Number of values in a tensor's left matrix; next: in its right matrix. */
uint64_t psd_low_rank_left(const struct psd_tensor *tensor, unsigned rank);
uint64_t psd_low_rank_right(const struct psd_tensor *tensor, unsigned rank);

#endif
