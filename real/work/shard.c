#include "real/work/shard.h"

#include <math.h>
#include <string.h>

#include "real/base/values.h"

enum {
	BLOCK_ELEMENTS = 4096, /* summed and applied within the first-level cache */
};

const void *psd_shard_part_at(const struct psd_shard_part *part, uint64_t elements)
{
	return (const char *)part->values + elements * part->encoding->value_bytes;
}

bool psd_shard_part_is_nan(const struct psd_shard_part *part)
{
	const struct psd_encoding *encoding = part->encoding;

	return isnan(encoding->is_lossy ? encoding->decode(*(const uint16_t *)part->values)
					: *(const float *)part->values);
}

static void sum_block(float *sum, const struct psd_shard_part parts[], unsigned n_parts, float ratio, uint64_t offset,
		      uint64_t n)
{
	const void *first = psd_shard_part_at(&parts[0], offset);

	if (parts[0].encoding->is_lossy)
		psd_values_decode(parts[0].encoding, sum, first, 1.0f, n);
	else
		memcpy(sum, first, n * sizeof(*sum));
	for (unsigned p = 1; p < n_parts; p++)
		psd_values_add_to_floats(parts[p].encoding, sum, psd_shard_part_at(&parts[p], offset), n);
	for (uint64_t i = 0; i < n && ratio != 1.0f; i++)
		sum[i] *= ratio;
}

void psd_shard_reduce(const struct psd_update *update, const struct psd_shard_part parts[], unsigned n_parts,
		      float ratio, float *weight, struct psd_moments moments, uint64_t elements)
{
	float sum[BLOCK_ELEMENTS];

	for (uint64_t e = 0; e < elements; e += BLOCK_ELEMENTS) {
		const uint64_t n = elements - e < BLOCK_ELEMENTS ? elements - e : BLOCK_ELEMENTS;

		sum_block(sum, parts, n_parts, ratio, e, n);
		psd_update_apply(update, weight + e, sum, psd_moments_from(moments, e), n);
	}
}

void psd_shard_join(const struct psd_shard_part parts[], unsigned n_parts, float ratio, const float *start,
		    float *weight, uint64_t elements)
{
	float sum[BLOCK_ELEMENTS];

	for (uint64_t e = 0; e < elements; e += BLOCK_ELEMENTS) {
		const uint64_t n = elements - e < BLOCK_ELEMENTS ? elements - e : BLOCK_ELEMENTS;

		sum_block(sum, parts, n_parts, ratio, e, n);
		for (uint64_t i = 0; i < n; i++)
			weight[e + i] = start[e + i] - sum[i];
	}
}

void psd_shard_sum(const struct psd_shard_part parts[], unsigned n_parts, const struct psd_encoding *encoding, void *to,
		   uint64_t elements)
{
	float sum[BLOCK_ELEMENTS];

	for (uint64_t e = 0; e < elements; e += BLOCK_ELEMENTS) {
		const uint64_t n = elements - e < BLOCK_ELEMENTS ? elements - e : BLOCK_ELEMENTS;
		void *here = (char *)to + e * encoding->value_bytes;

		sum_block(sum, parts, n_parts, 1.0f, e, n);
		if (encoding->is_lossy)
			psd_values_encode(encoding, here, sum, 1.0f, n);
		else
			memcpy(here, sum, n * sizeof(*sum));
	}
}
