/* Low-rank factors: the tensors that are sent as two narrow matrices (left and right), and the sizes of these. Pure,
 * any thread. */
#ifndef PSD_LOW_RANK_H
#define PSD_LOW_RANK_H

#include "engine/model/graph.h"

enum { PSD_MOST_RANK = 64 }; /* largest rank of low-rank factors */

/* Shape of a tensor, seen as a matrix. The rows are the tensor's first dimension: outputs of a layer, inputs of a
 * deconvolution, tokens of an embedding. The columns are the product of its other dimensions. */
struct psd_low_rank_shape {
	/* number of rows; 0: the tensor is sent unchanged, because low-rank factors would not be smaller */
	uint32_t rows;
	uint32_t columns; /* product of all dimensions of the tensor except the first */
};

/* Returns the number of values in the left matrix of a tensor with this shape. If shape.rows is 0, returns `elements`,
 * the number of values of the tensor. */
static inline uint64_t psd_low_rank_left_values(struct psd_low_rank_shape shape, uint64_t elements, unsigned rank)
{
	return shape.rows ? (uint64_t)shape.rows * rank : elements;
}

/* Returns the shape of a tensor, seen as a matrix. rows is 0 if the tensor is sent unchanged at this rank. */
struct psd_low_rank_shape psd_low_rank_shape_of(const struct psd_tensor *tensor, unsigned rank);
/* Returns the number of values in the left matrix of a tensor. If the tensor is sent unchanged, returns its number of
 * values. */
uint64_t psd_low_rank_left(const struct psd_tensor *tensor, unsigned rank);
/* Returns the number of values in the right matrix of a tensor; 0 if the tensor is sent unchanged. */
uint64_t psd_low_rank_right(const struct psd_tensor *tensor, unsigned rank);

#endif
