/* Chunks of sparse all-reduce. A chunk is a number of consecutive gradient elements of a bucket that are sent together
 * in an iteration, or held back together. In each iteration the chunks with the largest norms, of all buckets, are
 * sent. Pure functions, any thread. */
#ifndef PSD_CHUNKS_H
#define PSD_CHUNKS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/scenario/scenario.h"

/* Returns the number of chunks of a bucket with `elements` elements. The last chunk may be smaller than the others. */
uint64_t psd_chunks_in(const struct psd_sparse *sparse, uint64_t elements);
/* Returns the elements of chunk i, as a range in a bucket with `elements` elements. */
struct psd_range psd_chunks_range(const struct psd_sparse *sparse, uint64_t elements, uint64_t i);

/* Returns the number of chunks, out of n, that are sent in this iteration, counted from 0. In iteration 0 all are
 * sent, because no norms are known yet; not with managed communication. Later it is n - floor(n * s), but at
 * least 1. During the warm-up s rises in equal steps to the scenario's sparsity. */
uint64_t psd_chunks_kept(const struct psd_sparse *sparse, uint64_t n, uint64_t iteration);

/* Chunks that managed communication sends in an iteration before the last of a clock. */
struct psd_early_chunks {
	uint32_t n;	     /* number of all chunks; 0: communication is not managed, or the numbers are not known */
	uint32_t n_sent;     /* number of chunks that are sent; n: none is withheld */
	double values_ratio; /* share of their values among all values that are sent, at the ends of clocks, too */
};

/* Expected shares (0 to 1) of chunks that are sent in an iteration after the warm-up: for chunks of full size, and for
 * the smaller chunks at the ends of buckets. */
struct psd_chunks_share {
	double whole_ratio, smaller_ratio;
};

/* Returns the shares if every chunk has the same chance to be sent. */
struct psd_chunks_share psd_chunks_evenly(const struct psd_sparse *sparse);
/* Returns the shares if the n_smaller smaller chunks are sent only after all n_whole chunks of full size. This is
 * likely if all gradients are about equally large, because the norm of a chunk grows with its number of elements. */
struct psd_chunks_share psd_chunks_whole_first(const struct psd_sparse *sparse, uint64_t n_whole, uint64_t n_smaller);
/* Returns the expected number of elements of a bucket that are sent in an iteration with these shares, at least 1.
 * elements: number of elements of the bucket. */
uint64_t psd_chunks_expected(const struct psd_sparse *sparse, uint64_t elements, struct psd_chunks_share share);

/* Sets is_chosen[c] to true for the n_kept chunks, out of n, with the largest norms, and to false for the others.
 * Among equal norms the lowest numbers are chosen. NaN counts as larger than all numbers. order: scratch memory, n
 * entries. */
void psd_chunks_choose(bool is_chosen[], uint32_t order[], const float norms[], uint32_t n, uint64_t n_kept);

#endif
