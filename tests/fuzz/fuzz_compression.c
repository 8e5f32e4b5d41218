/* Any bytes as a compressed block, and as the values of one: sums stay within their values, what travels within its
 * bytes, and of top-k each value travels or stays. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "engine/encodings/compression.h"

enum { MOST_UNITS = 3, HEAD_BYTES = 6 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Takes n_bytes bytes, and fills the rest with zeros if there are fewer. */
static void *take(const uint8_t *data, size_t size, size_t n_bytes)
{
	char *taken = calloc(1, n_bytes);

	if (!taken)
		abort();
	if (size > 0)
		memcpy(taken, data, size < n_bytes ? size : n_bytes);
	return taken;
}

static void add_bytes(const struct psd_compression *compression, const struct psd_block *block, const uint8_t *data,
		      size_t size, uint32_t n)
{
	void *packed = take(data, size, compression->bytes(block));
	float *sum = take(NULL, 0, n * sizeof(*sum));

	compression->add(block, packed, n, sum);
	free(packed);
	free(sum);
}

static void pack_values(const struct psd_compression *compression, const struct psd_block *block, const uint8_t *data,
			size_t size, uint32_t n)
{
	float *values = take(data, size, n * sizeof(*values)), *left = take(data, size, n * sizeof(*left));
	float *sum = take(NULL, 0, n * sizeof(*sum));
	void *packed = take(NULL, 0, compression->bytes(block));

	compression->pack(block, left, n, packed);
	compression->add(block, packed, n, sum);
	for (uint32_t e = 0; e < n && compression == &psd_compression_top_k; e++)
		if (values[e] - values[e] == 0.0f &&
		    (left[e] + sum[e] != values[e] || (left[e] != 0.0f && sum[e] != 0.0f)))
			abort();
	free(values);
	free(left);
	free(sum);
	free(packed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct psd_compression *compression;
	struct psd_block block;
	uint32_t n;

	if (size < HEAD_BYTES)
		return 0;
	compression = data[0] % 2 ? &psd_compression_top_k : &psd_compression_one_bit;
	block.elements = (data[1] % MOST_UNITS + 1u) * PSD_BLOCK_UNIT;
	block.kept = (data[2] | (uint32_t)data[3] << 8) % block.elements + 1;
	n = (data[4] | (uint32_t)data[5] << 8) % block.elements + 1;
	add_bytes(compression, &block, data + HEAD_BYTES, size - HEAD_BYTES, n);
	pack_values(compression, &block, data + HEAD_BYTES, size - HEAD_BYTES, n);
	return 0;
}
