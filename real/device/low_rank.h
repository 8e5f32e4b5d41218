/* What a device does where a matrix of gradients travels as the product of two narrow ones, left (rows, rank) and right
 * (rank, columns). Workers sum the left ones, each makes of the sum a basis, and sums of the right ones are what all
 * gradients have in it; what they have beside it stays behind, for the next. Source: Vogels et al. 2019, PowerSGD
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
	struct psd_low_rank_shape shape; /* without rows it travels as it is, in the place of a left matrix */
	unsigned number;		 /* among the graph's tensors */
};

/* Tables lie in the host's memory, values where the device works. */
struct psd_low_rank_work {
	struct psd_low_rank_tensor *tensors;
	unsigned n_tensors;
	unsigned n_threads; /* of this processor, inside a call, >= 1 */
	unsigned rank;	    /* 1 to PSD_MOST_RANK */
	/* Tensor after tensor without gaps. */
	float *residual; /* all elements */
	float *left;	 /* of matrices; of others all elements */
	float *right;	 /* of the last iteration: the sums of all workers'; zeros where there was none */
};

/* residual += gradient; left = residual times the transposed of right. A row of zeros in right is first replaced by
 * psd_low_rank_start(). Where tensors travel as they are, left = gradient. PSD_ERUN: oneDNN has failed. Any thread, as
 * with the next two. */
enum psd_status psd_low_rank_project(const struct psd_low_rank_work *work, struct psd_error *err) PSD_MUST_CHECK;
/* Left is of all workers, and becomes orthonormal: each column less what it has in common with those before, divided by
 * its length; a column that has no more than rounding left (PSD_LOW_RANK_LEAST of its square) becomes zeros. Then right
 * = the transposed of left times residual, and residual -= left times right. */
enum psd_status psd_low_rank_fit(const struct psd_low_rank_work *work, struct psd_error *err) PSD_MUST_CHECK;
/* Right is of all workers: gradient = left times right. Where tensors travel as they are, gradient = left. */
enum psd_status psd_low_rank_expand(const struct psd_low_rank_work *work, struct psd_error *err) PSD_MUST_CHECK;

/* Left columns are made orthonormal by the Cholesky factor of their products, summed in double: exact enough down to
 * this share of a column's square. */
#define PSD_LOW_RANK_LEAST 1e-10

/* What a row of right starts from, -1 to 1: a hash, the same on all workers. Pure. */
static inline float psd_low_rank_start(unsigned number, unsigned row, uint32_t column)
{
	const uint64_t bits = psd_random_mix((uint64_t)number << 40 | (uint64_t)row << 32 | column);

	return (float)(int32_t)(bits >> 32) * 0x1p-31f;
}

#endif
