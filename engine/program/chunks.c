/* Numbers and ranges of chunks, and the choice of those that travel. */
#define _GNU_SOURCE
#include "engine/program/chunks.h"

#include <math.h>
#include <stdlib.h>

uint64_t psd_chunks_in(const struct psd_sparse *sparse, uint64_t elements)
{
	return elements == 0 ? 0 : (elements - 1) / sparse->chunk_elements + 1;
}

struct psd_range psd_chunks_range(const struct psd_sparse *sparse, uint64_t elements, uint64_t i)
{
	const uint64_t first = i * sparse->chunk_elements;
	const uint64_t rest = elements - first;

	return (struct psd_range){first, rest < sparse->chunk_elements ? rest : sparse->chunk_elements};
}

uint64_t psd_chunks_kept(const struct psd_sparse *sparse, uint64_t n, uint64_t iteration)
{
	const double done_ratio =
		iteration < sparse->warmup_iterations ? (double)iteration / (double)sparse->warmup_iterations : 1.0;

	if ((iteration == 0 && sparse->clock == 0) || n == 0)
		return n;
	const uint64_t n_kept = n - (uint64_t)floor((double)n * sparse->sparsity * done_ratio);
	return n_kept > 0 ? n_kept : 1;
}

struct psd_chunks_share psd_chunks_evenly(const struct psd_sparse *sparse)
{
	return (struct psd_chunks_share){1.0 - sparse->sparsity, 1.0 - sparse->sparsity};
}

struct psd_chunks_share psd_chunks_whole_first(const struct psd_sparse *sparse, uint64_t n_whole, uint64_t n_smaller)
{
	const double n_kept = (double)psd_chunks_kept(sparse, n_whole + n_smaller, UINT64_MAX);

	if (n_whole > 0 && n_kept <= (double)n_whole)
		return (struct psd_chunks_share){n_kept / (double)n_whole, 0.0};
	return (struct psd_chunks_share){1.0, n_smaller > 0 ? (n_kept - (double)n_whole) / (double)n_smaller : 0.0};
}

uint64_t psd_chunks_expected(const struct psd_sparse *sparse, uint64_t elements, struct psd_chunks_share share)
{
	const uint64_t smaller_elements = elements % sparse->chunk_elements;
	const double expected = share.whole_ratio * (double)(elements - smaller_elements) +
				share.smaller_ratio * (double)smaller_elements;

	return expected > 1.0 ? (uint64_t)llround(expected) : 1;
}

static float rank_of(float norm)
{
	return isnan(norm) ? INFINITY : norm;
}

static int compare(const void *left, const void *right, void *context)
{
	const uint32_t one = *(const uint32_t *)left, other = *(const uint32_t *)right;
	const float *norms = context;
	const float one_norm = rank_of(norms[one]), other_norm = rank_of(norms[other]);

	if (one_norm != other_norm)
		return one_norm > other_norm ? -1 : 1;
	return (one > other) - (one < other);
}

void psd_chunks_choose(bool is_chosen[], uint32_t order[], const float norms[], uint32_t n, uint64_t n_kept)
{
	for (uint32_t i = 0; i < n; i++)
		order[i] = i;
	qsort_r(order, n, sizeof(*order), compare, (void *)(uintptr_t)norms);
	for (uint32_t i = 0; i < n; i++)
		is_chosen[order[i]] = i < n_kept;
}
