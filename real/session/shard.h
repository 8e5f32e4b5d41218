/* What a server does with the workers' gradients of its part. Pure but for what it writes, any thread. */
#ifndef PSD_REAL_SHARD_H
#define PSD_REAL_SHARD_H

#include <stdint.h>

#include "real/session/solver.h"

/* Sums the parts, `elements` each, in order of rank, and updates weights and history with it as psd_update_apply()
 * does. n_parts >= 1; nothing overlaps. Sum and update go block by block, each while it is in the first-level cache. */
void psd_shard_reduce(const struct psd_update *update, const float *const parts[], unsigned n_parts, float *weight,
		      float *history, uint64_t elements);

#endif
