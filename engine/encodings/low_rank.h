/* The choice of tensors that travel as low-rank factors (two narrow matrices), and the sizes of the two matrices. Pure,
 * any thread. */
#ifndef PSD_LOW_RANK_H
#define PSD_LOW_RANK_H

#include "engine/model/graph.h"

enum { PSD_MOST_RANK = 64 }; /* largest rank of low-rank factors */

/* Shape of a tensor that is seen as a matrix. The rows are the tensor's first dimension: outputs of a layer, inputs of
 * a deconvolution, tokens of an embedding. The columns are all other dimensions. */
struct psd_low_rank_shape {
	uint32_t rows; /* number of rows; 0: the tensor travels unchanged, since low-rank factors would be no smaller */
	uint32_t columns; /* number of columns */
};

/* Returns the number of values in the left matrix of a tensor with this shape; `elements`, the tensor's size, if the
 * tensor travels unchanged. */
static inline uint64_t psd_low_rank_left_values(struct psd_low_rank_shape shape, uint64_t elements, unsigned rank)
{
	return shape.rows ? (uint64_t)shape.rows * rank : elements;
}

/* Returns the shape of a tensor as a matrix; 0 rows if the tensor travels unchanged with factors of this rank. */
struct psd_low_rank_shape psd_low_rank_shape_of(const struct psd_tensor *tensor, unsigned rank);
/* Returns the number of values in a tensor's left matrix; the tensor's size if it travels unchanged. */
uint64_t psd_low_rank_left(const struct psd_tensor *tensor, unsigned rank);
/* Returns the number of values in a tensor's right matrix; 0 if the tensor travels unchanged. */
uint64_t psd_low_rank_right(const struct psd_tensor *tensor, unsigned rank);

#endif
