/* Sums of gradients. A shard sums the gradients of all workers. A leader (the worker that sums for its node) sums those
 * of the workers of its node. Any thread. */
#ifndef PSD_REAL_SHARD_H
#define PSD_REAL_SHARD_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/encodings/encoding.h"
#include "real/work/solver.h"

/* One summand of a sum: the gradient of one worker, as it was received. */
struct psd_shard_part {
	const void *values;
	const struct psd_encoding *encoding;
};

/* Returns the address of element number `elements` (from 0) of the summand. */
const void *psd_shard_part_at(const struct psd_shard_part *part, uint64_t elements);

/* True if the first value of the summand is NaN. */
bool psd_shard_part_is_nan(const struct psd_shard_part *part);

/* Sums the parts as floats, in the order of the array, and multiplies the sum by ratio. Updates weights and moments
 * with the result by psd_update_apply(). n_parts: >= 1. The arrays must not overlap. To be fast, it works on pieces
 * that fit into the first-level cache. */
void psd_shard_reduce(const struct psd_update *update, const struct psd_shard_part parts[], unsigned n_parts,
		      float ratio, float *weight, struct psd_moments moments, uint64_t elements);

/* Sums the workers' drifts, in the order of the array, and sets weight = start - ratio * sum. A drift is the parameters
 * before the local steps minus the parameters after them. start: parameters before the local steps; may be the same
 * array as weight. */
void psd_shard_join(const struct psd_shard_part parts[], unsigned n_parts, float ratio, const float *start,
		    float *weight, uint64_t elements);

/* Sums the parts as floats, in the order of the array, and rounds each sum once to `encoding`. n_parts: >= 1. `to` may
 * be the same memory as a part that has this encoding. */
void psd_shard_sum(const struct psd_shard_part parts[], unsigned n_parts, const struct psd_encoding *encoding, void *to,
		   uint64_t elements);

#endif
