/* Sums of gradients: a shard sums all workers', a leader those of its node. Pure except for its outputs, any
 * thread. */
#ifndef PSD_REAL_SHARD_H
#define PSD_REAL_SHARD_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/encodings/encoding.h"
#include "real/session/solver.h"

/* One worker's gradient to be summed, as received. */
struct psd_shard_part {
	const void *values;
	const struct psd_encoding *encoding;
};

/* Address of an element of the summand. */
const void *psd_shard_part_at(const struct psd_shard_part *part, uint64_t elements);

/* True if the summand's first value is NaN. */
bool psd_shard_part_is_nan(const struct psd_shard_part *part);

/* Sums the parts as floats, in order of rank, and updates weights and moments with the sum times ratio, like
 * psd_update_apply(). n_parts >= 1; no overlaps. Works block by block in the first-level cache. */
void psd_shard_reduce(const struct psd_update *update, const struct psd_shard_part parts[], unsigned n_parts,
		      float ratio, float *weight, struct psd_moments moments, uint64_t elements);

/* Sums the workers' drifts in the same way as gradients: weight = start - ratio sum. start may be weight. */
void psd_shard_join(const struct psd_shard_part parts[], unsigned n_parts, float ratio, const float *start,
		    float *weight, uint64_t elements);

/* Sums the parts as floats, in order of rank, and rounds once to `encoding`. `to` may be one of the parts with that
 * encoding. n_parts >= 1. */
void psd_shard_sum(const struct psd_shard_part parts[], unsigned n_parts, const struct psd_encoding *encoding, void *to,
		   uint64_t elements);

#endif
