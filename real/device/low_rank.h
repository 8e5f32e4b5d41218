/* Low-rank compression on a device: a gradient matrix is sent as the product of left (rows, rank) and right (rank,
 * columns). Workers sum their left factors and make the sum orthonormal; the sum of their right factors gives the
 * gradients in this basis. The rest stays in the residual for the next iteration. Source: Vogels et al. 2019, PowerSGD
 * (arXiv 1905.13727), algorithms 1 and 2. */
#ifndef PSD_REAL_LOW_RANK_H
#define PSD_REAL_LOW_RANK_H

#include <stdint.h>

#include "engine/base/error.h"
#include "engine/base/random.h"
#include "engine/encodings/low_rank.h"

struct psd_low_rank_tensor {
	float *gradient;
	uint64_t elements;
	struct psd_low_rank_shape shape; /* shape of the matrix; without rows: sent uncompressed, inside `left` */
	unsigned number;		 /* number of the tensor in the graph */
};

/* Arguments of the functions below. Tables are in the host's memory, values where the device works. */
struct psd_low_rank_work {
	struct psd_low_rank_tensor *tensors;
	unsigned n_tensors;
	unsigned n_threads; /* number of processor threads in a call, >= 1 */
	unsigned rank;	    /* number of columns of left and rows of right, 1 to PSD_MOST_RANK */
	/* Arrays of all tensors, one tensor after the other, without gaps. */
	float *residual; /* unsent gradients of all elements */
	float *left;	 /* left factors; for uncompressed tensors all their elements */
	float *right;	 /* right factors of the previous iteration, summed over workers; zeros at first */
};

/* Adds gradients to the residual; left = residual right^T. First replaces zero rows of right by psd_low_rank_start().
 * Uncompressed tensors: left = gradient. PSD_ERUN: oneDNN failed. Any thread; both hold for the next two. */
enum psd_status psd_low_rank_project(const struct psd_low_rank_work *work, struct psd_error *err) PSD_MUST_CHECK;
/* Makes the columns of left orthonormal (Gram-Schmidt); left must have the sum over all workers. A column whose square
 * shrinks to PSD_LOW_RANK_LEAST of its own or less is rounding, and becomes zeros. Then right = left^T residual, and
 * residual -= left right. */
enum psd_status psd_low_rank_fit(const struct psd_low_rank_work *work, struct psd_error *err) PSD_MUST_CHECK;
/* Sets gradient = left right, where right must have the sum over all workers. Uncompressed tensors: gradient = left. */
enum psd_status psd_low_rank_expand(const struct psd_low_rank_work *work, struct psd_error *err) PSD_MUST_CHECK;

/* Share of a column's square down to which orthogonalisation is exact enough: it uses the Cholesky factor of the
 * columns' products, summed in double. */
#define PSD_LOW_RANK_LEAST 1e-10

/* Starting value of an element of the right factor, from -1 to 1: a hash of number, row and column, so the same on all
 * workers. Pure. */
static inline float psd_low_rank_start(unsigned number, unsigned row, uint32_t column)
{
	const uint64_t bits = psd_random_mix((uint64_t)number << 40 | (uint64_t)row << 32 | column);

	return (float)(int32_t)(bits >> 32) * 0x1p-31f;
}

#endif
