/* Chunks of sparse all-reduce: consecutive gradient elements that are all sent in an iteration, or all kept back. Each
 * bucket of a plan is cut into chunks. In an iteration those chunks of all buckets travel whose norms are largest. Pure
 * functions, any thread. */
#ifndef PSD_CHUNKS_H
#define PSD_CHUNKS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/scenario/scenario.h"

/* Returns the number of chunks of a bucket with that number of elements; the last chunk may be smaller than the
 * others. */
uint64_t psd_chunks_in(const struct psd_sparse *sparse, uint64_t elements);
/* Returns the range of the bucket's elements that its chunk i covers; elements: number of elements of the bucket. */
struct psd_range psd_chunks_range(const struct psd_sparse *sparse, uint64_t elements, uint64_t i);

/* Returns the number of chunks, out of n, that travel in this iteration (counted from 0). In iteration 0 all travel,
 * because norms are not known yet. Later it is n - floor(n * s), but at least 1, where s rises in equal steps during
 * the warm-up to the sparsity that the scenario sets. */
uint64_t psd_chunks_kept(const struct psd_sparse *sparse, uint64_t n, uint64_t iteration);

/* Expected shares (0 to 1) of the chunks that travel after the warm-up: of full-size chunks, and of the smaller chunks
 * at the ends of buckets. */
struct psd_chunks_share {
	double whole_ratio, smaller_ratio;
};

/* Returns the shares if every chunk is equally likely to travel. */
struct psd_chunks_share psd_chunks_evenly(const struct psd_sparse *sparse);
/* Returns the shares if smaller chunks travel only when all full-size chunks do. This is likely when all gradients have
 * about the same magnitude: a full-size chunk has more of them, so its norm is larger. */
struct psd_chunks_share psd_chunks_whole_first(const struct psd_sparse *sparse, uint64_t n_whole, uint64_t n_smaller);
/* Returns the expected number of a bucket's elements that travel, at least 1, if these shares of its chunks travel.
 * elements: number of elements of the bucket. */
uint64_t psd_chunks_expected(const struct psd_sparse *sparse, uint64_t elements, struct psd_chunks_share share);

/* Sets is_chosen[c] to true for the n_kept chunks, out of n, with the largest norms, and to false for the others. Among
 * equal norms the lowest numbers are chosen; NaN counts as the largest norm. order: scratch memory for n numbers. */
void psd_chunks_choose(bool is_chosen[], uint32_t order[], const float norms[], uint32_t n, uint64_t n_kept);

#endif
