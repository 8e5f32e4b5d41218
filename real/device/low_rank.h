/* Low-rank compression on a device: in place of a gradient matrix (rows, columns) two factors are sent, left (rows,
 * rank) and right (rank, columns). Workers sum their left factors, and make the columns of the sum orthonormal. Then
 * they sum their right factors; the product left * right approximates the sum of gradients. The error stays in each
 * worker's residual for the next iteration. Source: Vogels et al. 2019, PowerSGD (arXiv 1905.13727), algorithms 1 and
 * 2. */
#ifndef PSD_REAL_LOW_RANK_H
#define PSD_REAL_LOW_RANK_H

#include <stdint.h>

#include "engine/base/error.h"
#include "engine/base/random.h"
#include "engine/encodings/low_rank.h"

/* Tensor of a bucket. */
struct psd_low_rank_tensor {
	float *gradient;
	uint64_t elements; /* number of elements of the tensor */
	/* shape of the gradient as a matrix; rows 0: the tensor is sent uncompressed, as a part of `left` */
	struct psd_low_rank_shape shape;
	unsigned number; /* number of the tensor in the graph */
};

/* Arguments of the functions below, for one bucket. The array `tensors` is in the host's memory, all floats are in the
 * memory of the device. */
struct psd_low_rank_work {
	struct psd_low_rank_tensor *tensors;
	unsigned n_tensors;
	unsigned n_threads; /* number of processor threads that execute a call, >= 1 */
	unsigned rank;	    /* number of columns of left and rows of right, 1 to PSD_MOST_RANK */
	/* Arrays of all tensors, one tensor after the other, without gaps. */
	float *residual; /* residual of each element: the part of gradients that was not sent */
	float *left;	 /* left factors; all elements of a tensor that is sent uncompressed */
	/* right factors; before psd_low_rank_project() those of the previous iteration, summed over workers, or zeros
	 * in the first iteration */
	float *right;
};

/* Replaces rows of right that are all zero by psd_low_rank_start(), adds gradients to the residual, and sets left =
 * residual * right^T. For uncompressed tensors, left = gradient. PSD_ERUN: oneDNN failed. Any thread. */
enum psd_status psd_low_rank_project(const struct psd_low_rank_work *work, struct psd_error *err) PSD_MUST_CHECK;
/* Makes the columns of left orthonormal (Gram-Schmidt); left must be the sum over all workers. If this reduces the sum
 * of squares of a column to PSD_LOW_RANK_LEAST times its value or less, only rounding errors are left, and the column
 * becomes zeros. Then right = left^T * residual, and residual -= left * right. PSD_ERUN: oneDNN failed. Any thread. */
enum psd_status psd_low_rank_fit(const struct psd_low_rank_work *work, struct psd_error *err) PSD_MUST_CHECK;
/* Sets gradient = left * right; right must be the sum over all workers. For uncompressed tensors, gradient = left.
 * PSD_ERUN: oneDNN failed. Any thread. */
enum psd_status psd_low_rank_expand(const struct psd_low_rank_work *work, struct psd_error *err) PSD_MUST_CHECK;

/* Limit of psd_low_rank_fit() for columns that nearly depend on earlier ones. Its Cholesky factorisation of the
 * columns' inner products, in double precision, is exact enough down to this ratio. */
#define PSD_LOW_RANK_LEAST 1e-10

/* Returns the starting value of an element of the right factor, from -1 to 1. It is a hash of tensor number, row and
 * column, so all workers get the same value. Pure. */
static inline float psd_low_rank_start(unsigned number, unsigned row, uint32_t column)
{
	const uint64_t bits = psd_random_mix((uint64_t)number << 40 | (uint64_t)row << 32 | column);

	return (float)(int32_t)(bits >> 32) * 0x1p-31f;
}

#endif
