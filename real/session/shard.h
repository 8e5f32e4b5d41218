/* What a server does with the workers' gradients of its part, and a leader with those of its node. Pure but for what
 * it writes, any thread. */
#ifndef PSD_REAL_SHARD_H
#define PSD_REAL_SHARD_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/encodings/encoding.h"
#include "real/session/solver.h"

/* Some of what is summed, as it came. */
struct psd_shard_part {
	const void *values;
	const struct psd_encoding *encoding;
};

/* The value after so many. */
const void *psd_shard_part_at(const struct psd_shard_part *part, uint64_t elements);

/* Its first value is none. */
bool psd_shard_part_is_nan(const struct psd_shard_part *part);

/* Sums the parts, `elements` each, as floats and in order of rank, and updates weights and moments with the sum times
 * ratio as psd_update_apply() does. n_parts >= 1; nothing overlaps. Sum and update go block by block, each while it is
 * in the first-level cache. */
void psd_shard_reduce(const struct psd_update *update, const struct psd_shard_part parts[], unsigned n_parts,
		      float ratio, float *weight, struct psd_moments moments, uint64_t elements);

/* The same sum of drifts: weight = start - ratio sum; start may be weight. */
void psd_shard_join(const struct psd_shard_part parts[], unsigned n_parts, float ratio, const float *start,
		    float *weight, uint64_t elements);

/* The parts summed as floats and in order of rank, and rounded once to the encoding that `to` has; that may be where
 * one of them is that has it as well. n_parts >= 1. */
void psd_shard_sum(const struct psd_shard_part parts[], unsigned n_parts, const struct psd_encoding *encoding, void *to,
		   uint64_t elements);

#endif
