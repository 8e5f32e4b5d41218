#include "real/device/drift.h"

#include <string.h>

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF /* as in update.c */
#endif

static void subtract(float *restrict difference, const float *restrict from, const float *restrict what, float ratio,
		     uint64_t elements)
{
	for (uint64_t e = 0; e < elements; e++)
		difference[e] = from[e] - ratio * what[e];
}

void psd_drift_take_step(const struct psd_drift *drift)
{
	switch (drift->step) {
	case PSD_DRIFT_BEGINS: memcpy(drift->start, drift->weight, drift->elements * sizeof(*drift->start)); break;
	case PSD_DRIFT_ENDS: subtract(drift->gradient, drift->start, drift->weight, 1.0f, drift->elements); break;
	case PSD_DRIFT_JOINS: subtract(drift->weight, drift->start, drift->gradient, drift->ratio, drift->elements);
	}
}
