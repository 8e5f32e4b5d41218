/* Chunks: parts of a gradient that travel, or are held back, as one. Each exchange of a plan is cut into chunks; those
 * with the largest norms of all are chosen. Pure functions, any thread. */
#ifndef PSD_CHUNKS_H
#define PSD_CHUNKS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/scenario/scenario.h"

/* Number of chunks of an exchange with that number of elements; the last may be smaller. */
uint64_t psd_chunks_in(const struct psd_sparse *sparse, uint64_t elements);
/* Range of elements that chunk `i` of the exchange covers. */
struct psd_range psd_chunks_range(const struct psd_sparse *sparse, uint64_t elements, uint64_t i);

/* Number of chunks out of n that travel in an iteration (from 0). All travel in the first, whose norms are unknown;
 * then n - floor(n s), at least 1. s rises in equal steps over the warm-up to the sparsity. */
uint64_t psd_chunks_kept(const struct psd_sparse *sparse, uint64_t n, uint64_t iteration);

/* Expected shares of whole chunks and of smaller ones that travel after the warm-up. */
struct psd_chunks_share {
	double whole_ratio, smaller_ratio;
};

/* Shares where every chunk is equally likely. */
struct psd_chunks_share psd_chunks_evenly(const struct psd_sparse *sparse);
/* Shares where no smaller chunk travels before all whole ones do: a whole chunk has more gradients, so a larger norm if
 * all are of about the same size. */
struct psd_chunks_share psd_chunks_whole_first(const struct psd_sparse *sparse, uint64_t n_whole, uint64_t n_smaller);
/* Expected number of an exchange's elements that travel, at least 1, if these shares of its chunks do. */
uint64_t psd_chunks_expected(const struct psd_sparse *sparse, uint64_t elements, struct psd_chunks_share share);

/* Chooses the n_kept chunks of n with the largest norms, the first ones of equals; NaN counts as the largest. order is
 * scratch space for n numbers. */
void psd_chunks_choose(bool is_chosen[], uint32_t order[], const float norms[], uint32_t n, uint64_t n_kept);

#endif
