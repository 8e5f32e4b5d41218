/* Low-rank compression on a device. A gradient matrix of shape (rows, columns) is replaced by two factors, which are
 * sent: left, shape (rows, rank), and right, shape (rank, columns). Workers sum their left factors, and make the
 * columns of the sum orthonormal. Then they sum their right factors. The product left * right approximates the sum of
 * gradients. Each worker keeps its error in a residual, which is added in the next iteration. Source: Vogels et al.
 * 2019, PowerSGD (arXiv 1905.13727), algorithms 1 and 2. */
#ifndef PSD_REAL_LOW_RANK_H
#define PSD_REAL_LOW_RANK_H

#include <stdint.h>

#include "engine/base/error.h"
#include "engine/base/random.h"
#include "engine/encodings/low_rank.h"

/* A tensor of a bucket (tensors that are synchronised together). */
struct psd_low_rank_tensor {
	float *gradient;
	uint64_t elements; /* number of elements of the tensor */
	/* Shape of the gradient as a matrix. If rows is 0, the tensor is not compressed: all its elements are sent in
	 * `left`. */
	struct psd_low_rank_shape shape;
	unsigned number; /* number of the tensor in the graph */
};

/* Arguments of psd_low_rank_project(), _fit() and _expand(), for one bucket. The array `tensors` is in the host's
 * memory, all floats are in the memory of the device. */
struct psd_low_rank_work {
	struct psd_low_rank_tensor *tensors;
	unsigned n_tensors;
	unsigned n_threads; /* number of processor threads that execute a call, >= 1 */
	unsigned rank;	    /* number of columns of a left factor and of rows of a right factor, 1 to PSD_MOST_RANK */
	/* In each of the three arrays below, the parts of the tensors follow each other without gaps. */
	float *residual; /* for each element: the part of its gradients that was not sent yet */
	float *left;	 /* left factors; for a tensor that is not compressed, all its elements */
	/* Right factors. Before psd_low_rank_project() they are those of the previous iteration, summed over workers;
	 * in the first iteration they are zeros. */
	float *right;
};

/* Replaces rows of `right` that are all zero by values of psd_low_rank_start(), adds gradients to the residual, and
 * sets left = residual * right^T. For uncompressed tensors it sets left = gradient. PSD_ERUN: oneDNN failed. Any
 * thread. */
enum psd_status psd_low_rank_project(const struct psd_low_rank_work *work, struct psd_error *err) PSD_MUST_CHECK;
/* Makes the columns of `left` orthonormal (Gram-Schmidt); `left` must be the sum over all workers. If this reduces a
 * column's sum of squares to PSD_LOW_RANK_LEAST times its earlier value or less, only rounding errors are left, and the
 * column becomes zeros. Then it sets right = left^T * residual, and subtracts left * right from the residual. PSD_ERUN:
 * oneDNN failed. Any thread. */
enum psd_status psd_low_rank_fit(const struct psd_low_rank_work *work, struct psd_error *err) PSD_MUST_CHECK;
/* Sets gradient = left * right; `right` must be the sum over all workers. For uncompressed tensors it sets gradient =
 * left. PSD_ERUN: oneDNN failed. Any thread. */
enum psd_status psd_low_rank_expand(const struct psd_low_rank_work *work, struct psd_error *err) PSD_MUST_CHECK;

/* Limit in psd_low_rank_fit() for columns that are nearly linear combinations of earlier columns. Down to this ratio,
 * the Cholesky factorisation of the columns' inner products, in double precision, is exact enough. */
#define PSD_LOW_RANK_LEAST 1e-10

/* Returns the starting value of an element of the right factor, from -1 to 1. It is a hash of tensor number, row and
 * column, so all workers get the same value. Pure. */
static inline float psd_low_rank_start(unsigned number, unsigned row, uint32_t column)
{
	const uint64_t bits = psd_random_mix((uint64_t)number << 40 | (uint64_t)row << 32 | column);

	return (float)(int32_t)(bits >> 32) * 0x1p-31f;
}

#endif
