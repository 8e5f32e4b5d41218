#include "real/session/shard.h"

#include <string.h>

#include "real/base/values.h"

enum {
	BLOCK_ELEMENTS = 4096, /* summed and applied while in the first-level cache */
};

/* sum = n elements of the parts from `offset` on, in order of rank whatever the order of arrival. */
static void sum_block(float *sum, const float *const parts[], unsigned n_parts, uint64_t offset, uint64_t n)
{
	memcpy(sum, parts[0] + offset, n * sizeof(*sum));
	for (unsigned p = 1; p < n_parts; p++)
		psd_values_add(&psd_encoding_fp32, sum, parts[p] + offset, n);
}

void psd_shard_reduce(const struct psd_update *update, const float *const parts[], unsigned n_parts, float *weight,
		      float *history, uint64_t elements)
{
	float sum[BLOCK_ELEMENTS];

	for (uint64_t e = 0; e < elements; e += BLOCK_ELEMENTS) {
		const uint64_t n = elements - e < BLOCK_ELEMENTS ? elements - e : BLOCK_ELEMENTS;

		sum_block(sum, parts, n_parts, e, n);
		psd_update_apply(update, weight + e, sum, history + e, n);
	}
}
