/* How far a worker's parameters have gone by themselves, since all workers had the same. */
#ifndef PSD_REAL_DRIFT_H
#define PSD_REAL_DRIFT_H

#include <stdint.h>

enum psd_drift_step {
	PSD_DRIFT_BEGINS, /* start = weight */
	PSD_DRIFT_ENDS,	  /* gradient = start - weight, which travels */
	PSD_DRIFT_JOINS,  /* weight = start - ratio gradient, which is the sum of all workers' */
};

/* Of a tensor, or of any part of one; the three do not overlap. */
struct psd_drift {
	enum psd_drift_step step;
	float *weight, *start, *gradient;
	uint64_t elements;
	float ratio; /* of JOINS */
};

/* Each element depends on itself only, as in psd_update_apply(). Never fails; any thread. */
void psd_drift_take_step(const struct psd_drift *drift);

#endif
