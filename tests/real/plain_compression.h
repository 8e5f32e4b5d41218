/* Compression of a block written plainly in double precision, for the suites that follow a whole algorithm. */
#ifndef PSD_TESTS_REAL_PLAIN_COMPRESSION_H
#define PSD_TESTS_REAL_PLAIN_COMPRESSION_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* As it is compared: eight bits of it. */
static inline double plain_magnitude(double value)
{
	int exponent;
	const double fraction = frexp(fabs(value), &exponent);

	return ldexp(floor(fraction * 256.0), exponent - 8);
}

/* sent: zeros. */
static inline void plain_keep_largest(double *values, double *sent, uint64_t n, uint32_t kept)
{
	for (uint32_t k = 0; k < kept && k < n; k++) {
		uint64_t largest = n;

		for (uint64_t e = 0; e < n; e++)
			if (sent[e] == 0.0 &&
			    (largest == n || plain_magnitude(values[e]) > plain_magnitude(values[largest])))
				largest = e;
		if (largest == n)
			return;
		sent[largest] = values[largest];
		values[largest] = 0.0;
	}
}

static inline void plain_keep_signs(double *values, double *sent, uint64_t n)
{
	double sums[2] = {0.0, 0.0};
	uint64_t counts[2] = {0, 0};

	for (uint64_t e = 0; e < n; e++) {
		sums[values[e] < 0.0] += values[e];
		counts[values[e] < 0.0]++;
	}
	for (uint64_t e = 0; e < n; e++) {
		const bool is_low = values[e] < 0.0;

		sent[e] = sums[is_low] / (double)counts[is_low];
		values[e] -= sent[e];
	}
}

/* A block of n values: what arrives of it, and in `values` what is lost. kept: of top-k; 0: one-bit. */
static inline void plain_compress(uint32_t kept, double *values, double *sent, uint64_t n)
{
	memset(sent, 0, n * sizeof(*sent));
	if (kept > 0)
		plain_keep_largest(values, sent, n, kept);
	else
		plain_keep_signs(values, sent, n);
}

#endif
