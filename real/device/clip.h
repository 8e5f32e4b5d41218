/* Gradients that all together are longer than they may be. */
#ifndef PSD_REAL_CLIP_H
#define PSD_REAL_CLIP_H

#include <stdint.h>

/* Sums of squares of n gradients, and what all of them are to be multiplied by. */
struct psd_clip {
	const double *squares; /* (n) */
	uint32_t n;
	double most_norm; /* > 0 */
	float *ratio;	  /* the result */
};

/* Sum of the squares of so many values. Equal input gives equal bits. Pure, any thread. */
double psd_clip_measure(const float *values, uint64_t elements);
/* *ratio = most_norm / norm where that is below 1, with norm the root of the sum of all squares; else 1. Any thread.
 * Source: Pascanu et al. 2013 (arXiv 1211.5063), algorithm 1; caffe, SGDSolver::ClipGradients. */
void psd_clip_find(const struct psd_clip *clip);
/* values times ratio, in place; 1 leaves them. Any thread. */
void psd_clip_shrink(float *values, uint64_t elements, float ratio);

#endif
