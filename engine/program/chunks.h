/* Chunks: the parts of a gradient that travel, or are held back, as one. The exchanges of a plan are cut into them one
 * after the other; of all of them those with the largest norms are chosen. Pure functions, any thread. */
#ifndef PSD_CHUNKS_H
#define PSD_CHUNKS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/scenario/scenario.h"

/* Of an exchange of so many elements; the last may be smaller. */
uint64_t psd_chunks_in(const struct psd_sparse *sparse, uint64_t elements);
/* What chunk `i` of the exchange covers. */
struct psd_range psd_chunks_range(const struct psd_sparse *sparse, uint64_t elements, uint64_t i);

/* How many of n chunks travel in an iteration (from 0): all in the first, of whose norms nothing is known, then n -
 * floor(n s), at least 1; s rises in equal steps over the warm-up to the sparsity. */
uint64_t psd_chunks_kept(const struct psd_sparse *sparse, uint64_t n, uint64_t iteration);

/* What share of whole chunks, and of smaller ones, is expected to travel once the warm-up is over. */
struct psd_chunks_share {
	double whole_ratio, smaller_ratio;
};

/* As if all chunks were as likely to. */
struct psd_chunks_share psd_chunks_evenly(const struct psd_sparse *sparse);
/* A whole chunk has more gradients, so a larger norm: if all are of about the same size, no smaller one travels before
 * all whole ones do. */
struct psd_chunks_share psd_chunks_whole_first(const struct psd_sparse *sparse, uint64_t n_whole, uint64_t n_smaller);
/* How many of an exchange's elements travel if so much of its chunks does; at least 1. */
uint64_t psd_chunks_expected(const struct psd_sparse *sparse, uint64_t elements, struct psd_chunks_share share);

/* Chooses n_kept of n chunks, those with the largest norms, of equal ones the first; what is no number counts as the
 * largest. norms is read, order is room for n numbers. */
void psd_chunks_choose(bool is_chosen[], uint32_t order[], const float norms[], uint32_t n, uint64_t n_kept);

#endif
