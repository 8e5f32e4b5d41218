/* Conversions of many values against the reference of their encoding, value by value: every pattern and the middle
 * between two, at lengths that leave a rest. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "real/base/values.h"

enum { PATTERNS = 1 << 16, LENGTH = PATTERNS + 13 };

static const struct psd_encoding *const lossy[] = {&psd_encoding_fp16, &psd_encoding_bf16};
enum { N_LOSSY = 2 };

static void *take(size_t n, size_t bytes)
{
	void *taken = calloc(n, bytes);

	cr_assert(taken);
	return taken;
}

static bool is_nan(const struct psd_encoding *encoding, uint16_t bits)
{
	return isnan(encoding->decode(bits));
}

/* The same bits, or both are NaN. */
static void expect_same(const struct psd_encoding *encoding, uint16_t actual, uint16_t expected, uint64_t i)
{
	cr_assert(actual == expected || (is_nan(encoding, actual) && is_nan(encoding, expected)),
		  "%s: %04x instead of %04x, %lu", encoding->name, actual, expected, i);
}

Test(values, every_pattern_is_decoded_as_by_the_reference)
{
	uint16_t *encoded = take(LENGTH, sizeof(*encoded));
	float *decoded = take(LENGTH, sizeof(*decoded));

	for (unsigned i = 0; i < LENGTH; i++)
		encoded[i] = (uint16_t)i;
	for (unsigned e = 0; e < N_LOSSY; e++)
		for (unsigned halving = 0; halving < 2; halving++) {
			const float ratio = halving ? 0.5f : 1.0f;

			psd_values_decode(lossy[e], decoded, encoded, ratio, LENGTH);
			for (unsigned i = 0; i < LENGTH; i++) {
				const float expected = lossy[e]->decode(encoded[i]) * ratio;

				cr_assert(isnan(expected) ? isnan(decoded[i])
							  : decoded[i] == expected &&
								    !signbit(decoded[i]) == !signbit(expected),
					  "%s %04x is %g", lossy[e]->name, encoded[i], (double)decoded[i]);
			}
		}
	free(encoded);
	free(decoded);
}

/* Every value of the encoding, the middle between it and the next, and values a little below and above. */
static void fill_around(const struct psd_encoding *encoding, float *values)
{
	for (unsigned i = 0; i < PATTERNS; i++) {
		const float value = encoding->decode((uint16_t)i), next = encoding->decode((uint16_t)(i + 1));
		const float middle = (float)(((double)value + (double)next) / 2);

		values[4 * i] = value;
		values[4 * i + 1] = middle;
		values[4 * i + 2] = nextafterf(middle, 0.0f);
		values[4 * i + 3] = nextafterf(middle, INFINITY);
	}
}

Test(values, whatever_lies_between_patterns_is_encoded_as_by_the_reference)
{
	enum { N = 4 * PATTERNS };
	float *values = take(N, sizeof(*values));
	uint16_t *encoded = take(N, sizeof(*encoded));
	const float ratios[] = {1.0f, 3.0f, 0x1p15f};

	for (unsigned e = 0; e < N_LOSSY; e++) {
		fill_around(lossy[e], values);
		for (unsigned r = 0; r < 3; r++) {
			psd_values_encode(lossy[e], encoded, values, ratios[r], N);
			for (unsigned i = 0; i < N; i++)
				expect_same(lossy[e], encoded[i], lossy[e]->encode(values[i] * ratios[r]), i);
		}
	}
	free(values);
	free(encoded);
}

Test(values, sums_are_those_of_the_reference)
{
	static const uint16_t partners[] = {0x0000, 0x8001, 0x3c00, 0x3f81, 0xbc00, 0x7bff, 0x7c00, 0xff80, 0x0400};
	uint16_t *sums = take(LENGTH, sizeof(*sums)), *parts = take(LENGTH, sizeof(*parts));

	for (unsigned e = 0; e < N_LOSSY; e++)
		for (unsigned p = 0; p < sizeof(partners) / sizeof(partners[0]); p++) {
			for (unsigned i = 0; i < LENGTH; i++) {
				sums[i] = (uint16_t)i;
				parts[i] = partners[p];
			}
			psd_values_add(lossy[e], sums, parts, LENGTH);
			for (unsigned i = 0; i < LENGTH; i++) {
				const float sum = lossy[e]->decode((uint16_t)i) + lossy[e]->decode(partners[p]);

				expect_same(lossy[e], sums[i], lossy[e]->encode(sum), i);
			}
		}
	free(sums);
	free(parts);
}

/* 1 and every value of the encoding: what a float holds of that, not what 2 bytes would. */
Test(values, sums_of_floats_are_not_rounded_to_the_encoding)
{
	float *sums = take(LENGTH, sizeof(*sums));
	uint16_t *parts = take(LENGTH, sizeof(*parts));

	for (unsigned e = 0; e < N_LOSSY; e++) {
		for (unsigned i = 0; i < LENGTH; i++) {
			sums[i] = 1.0f;
			parts[i] = (uint16_t)i;
		}
		psd_values_add_to_floats(lossy[e], sums, parts, LENGTH);
		for (unsigned i = 0; i < LENGTH; i++) {
			const float expected = 1.0f + lossy[e]->decode((uint16_t)i);

			cr_assert(isnan(expected) ? isnan(sums[i]) : sums[i] == expected, "%s %04x: %g", lossy[e]->name,
				  (uint16_t)i, (double)sums[i]);
		}
	}
	free(sums);
	free(parts);
}

Test(values, every_length_ends_where_it_should)
{
	enum { MOST = 40 };
	const uint16_t untouched = 0x1234;
	float values[MOST], decoded[MOST];
	uint16_t encoded[MOST];

	for (unsigned e = 0; e < N_LOSSY; e++)
		for (unsigned n = 0; n < MOST; n++) {
			for (unsigned i = 0; i < MOST; i++) {
				values[i] = (float)i;
				encoded[i] = untouched;
				decoded[i] = -1.0f;
			}
			psd_values_encode(lossy[e], encoded, values, 2.0f, n);
			psd_values_decode(lossy[e], decoded, encoded, 0.5f, n);
			for (unsigned i = 0; i < MOST; i++)
				cr_assert_eq(decoded[i], i < n ? values[i] : -1.0f);
			psd_values_add(lossy[e], encoded, (const uint16_t[MOST]){0}, n);
			for (unsigned i = n; i < MOST; i++)
				cr_assert_eq(encoded[i], untouched);
		}
}

Test(values, one_that_is_not_finite_is_found)
{
	for (unsigned e = 0; e < N_LOSSY; e++) {
		const uint16_t infinity = lossy[e]->encode(INFINITY), largest = (uint16_t)(infinity - 1);
		const uint16_t others[] = {infinity, (uint16_t)(infinity + 1), (uint16_t)(infinity | 0x8000), 0xffff};
		uint16_t values[37];

		for (unsigned at = 0; at < 37; at++)
			for (unsigned i = 0; i < 4; i++) {
				for (unsigned v = 0; v < 37; v++)
					values[v] = (uint16_t)(largest | (v & 1 ? 0x8000 : 0));
				cr_assert(psd_values_are_finite(lossy[e], values, 37));
				values[at] = others[i];
				cr_assert_not(psd_values_are_finite(lossy[e], values, 37));
			}
	}
}
