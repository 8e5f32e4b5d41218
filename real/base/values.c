/* Loops of known length are what makes -O2 vectorise. */
#include "real/base/values.h"

#include <math.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#define HAS_F16C() __builtin_cpu_supports("avx2") /* AVX2 implies F16C, a name that Clang 14 does not know */
#define F16C	   __attribute__((target("avx,f16c")))
#endif

#define INLINE static inline __attribute__((always_inline)) /* so that the known length reaches the loop */

enum { STEP = 16 };

/* ---- by the reference, one value after the other ---- */

static void encode_each(const struct psd_encoding *encoding, uint16_t *restrict to, const float *restrict from,
			float ratio, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		to[i] = encoding->encode(from[i] * ratio);
}

static void decode_each(const struct psd_encoding *encoding, float *restrict to, const uint16_t *restrict from,
			float ratio, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		to[i] = encoding->decode(from[i]) * ratio;
}

static void add_each(const struct psd_encoding *encoding, uint16_t *restrict sum, const uint16_t *restrict part,
		     uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		sum[i] = encoding->encode(encoding->decode(sum[i]) + encoding->decode(part[i]));
}

static void add_each_to_floats(const struct psd_encoding *encoding, float *restrict sum, const uint16_t *restrict part,
			       uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		sum[i] += encoding->decode(part[i]);
}

/* ---- fp16, by the processor ---- */

#ifdef F16C
/* These return the number of values they handled, a multiple of 8; the reference handles the rest. */
F16C static uint64_t encode_fp16(uint16_t *restrict to, const float *restrict from, float ratio, uint64_t n)
{
	const __m256 ratios = _mm256_set1_ps(ratio);
	uint64_t i = 0;

	for (; i + 8 <= n; i += 8)
		_mm_storeu_si128(
			(__m128i *)(void *)(to + i),
			_mm256_cvtps_ph(_mm256_mul_ps(_mm256_loadu_ps(from + i), ratios), _MM_FROUND_TO_NEAREST_INT));
	return i;
}

F16C static inline __m256 load_fp16(const uint16_t *from)
{
	return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)from));
}

F16C static uint64_t decode_fp16(float *restrict to, const uint16_t *restrict from, float ratio, uint64_t n)
{
	const __m256 ratios = _mm256_set1_ps(ratio);
	uint64_t i = 0;

	for (; i + 8 <= n; i += 8)
		_mm256_storeu_ps(to + i, _mm256_mul_ps(load_fp16(from + i), ratios));
	return i;
}

F16C static uint64_t add_fp16(uint16_t *restrict sum, const uint16_t *restrict part, uint64_t n)
{
	uint64_t i = 0;

	for (; i + 8 <= n; i += 8)
		_mm_storeu_si128((__m128i *)(void *)(sum + i),
				 _mm256_cvtps_ph(_mm256_add_ps(load_fp16(sum + i), load_fp16(part + i)),
						 _MM_FROUND_TO_NEAREST_INT));
	return i;
}

F16C static uint64_t add_fp16_to_floats(float *restrict sum, const uint16_t *restrict part, uint64_t n)
{
	uint64_t i = 0;

	for (; i + 8 <= n; i += 8)
		_mm256_storeu_ps(sum + i, _mm256_add_ps(_mm256_loadu_ps(sum + i), load_fp16(part + i)));
	return i;
}
#endif

/* ---- bf16, by whole numbers ---- */

INLINE uint16_t encode_one_bf16(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16, nan = bits >> 16 | 0x40;
	return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? nan : rounded);
}

INLINE float decode_one_bf16(uint16_t encoded)
{
	const uint32_t bits = (uint32_t)encoded << 16;
	float value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static uint64_t encode_bf16(uint16_t *restrict to, const float *restrict from, float ratio, uint64_t n)
{
	uint64_t at = 0;

	for (; at + STEP <= n; at += STEP)
		for (unsigned i = 0; i < STEP; i++)
			to[at + i] = encode_one_bf16(from[at + i] * ratio);
	return at;
}

static uint64_t decode_bf16(float *restrict to, const uint16_t *restrict from, float ratio, uint64_t n)
{
	uint64_t at = 0;

	for (; at + STEP <= n; at += STEP)
		for (unsigned i = 0; i < STEP; i++)
			to[at + i] = decode_one_bf16(from[at + i]) * ratio;
	return at;
}

static uint64_t add_bf16(uint16_t *restrict sum, const uint16_t *restrict part, uint64_t n)
{
	uint64_t at = 0;

	for (; at + STEP <= n; at += STEP)
		for (unsigned i = 0; i < STEP; i++)
			sum[at + i] = encode_one_bf16(decode_one_bf16(sum[at + i]) + decode_one_bf16(part[at + i]));
	return at;
}

static uint64_t add_bf16_to_floats(float *restrict sum, const uint16_t *restrict part, uint64_t n)
{
	uint64_t at = 0;

	for (; at + STEP <= n; at += STEP)
		for (unsigned i = 0; i < STEP; i++)
			sum[at + i] += decode_one_bf16(part[at + i]);
	return at;
}

/* ---- fp32 ---- */

static void add_floats(float *restrict sum, const float *restrict part, uint64_t n)
{
	uint64_t at = 0;

	for (; at + STEP <= n; at += STEP)
		for (unsigned i = 0; i < STEP; i++)
			sum[at + i] += part[at + i];
	for (; at < n; at++)
		sum[at] += part[at];
}

/* ---- any ---- */

/* Functions that are faster than the reference. Each returns the number of values it handled, from the first on. */
struct fast {
	uint64_t (*encode)(uint16_t *restrict to, const float *restrict from, float ratio, uint64_t n);
	uint64_t (*decode)(float *restrict to, const uint16_t *restrict from, float ratio, uint64_t n);
	uint64_t (*add)(uint16_t *restrict sum, const uint16_t *restrict part, uint64_t n);
	uint64_t (*add_to_floats)(float *restrict sum, const uint16_t *restrict part, uint64_t n);
};

static const struct fast *fast_of(const struct psd_encoding *encoding)
{
	static const struct fast bf16 = {encode_bf16, decode_bf16, add_bf16, add_bf16_to_floats};

#ifdef F16C
	static const struct fast fp16 = {encode_fp16, decode_fp16, add_fp16, add_fp16_to_floats};

	if (encoding == &psd_encoding_fp16 && HAS_F16C())
		return &fp16;
#endif
	return encoding == &psd_encoding_bf16 ? &bf16 : NULL;
}

void psd_values_encode(const struct psd_encoding *encoding, uint16_t *restrict to, const float *restrict from,
		       float ratio, uint64_t n)
{
	const struct fast *fast = fast_of(encoding);
	const uint64_t done = fast ? fast->encode(to, from, ratio, n) : 0;

	encode_each(encoding, to + done, from + done, ratio, n - done);
}

void psd_values_decode(const struct psd_encoding *encoding, float *restrict to, const uint16_t *restrict from,
		       float ratio, uint64_t n)
{
	const struct fast *fast = fast_of(encoding);
	const uint64_t done = fast ? fast->decode(to, from, ratio, n) : 0;

	decode_each(encoding, to + done, from + done, ratio, n - done);
}

bool psd_values_are_finite(const struct psd_encoding *encoding, const uint16_t *values, uint64_t n)
{
	const uint16_t infinity = encoding->encode(INFINITY); /* all bits of the exponent */
	unsigned n_others = 0;

	for (uint64_t i = 0; i < n; i++)
		n_others |= (values[i] & infinity) == infinity;
	return !n_others;
}

void psd_values_add(const struct psd_encoding *encoding, void *restrict sum, const void *restrict part, uint64_t n)
{
	uint16_t *const sums = sum;
	const uint16_t *const parts = part;
	const struct fast *fast = fast_of(encoding);

	if (!encoding->is_lossy) {
		add_floats(sum, part, n);
		return;
	}
	const uint64_t done = fast ? fast->add(sums, parts, n) : 0;
	add_each(encoding, sums + done, parts + done, n - done);
}

void psd_values_add_to_floats(const struct psd_encoding *encoding, float *restrict sum, const void *restrict part,
			      uint64_t n)
{
	const uint16_t *const parts = part;
	const struct fast *fast = fast_of(encoding);

	if (!encoding->is_lossy) {
		add_floats(sum, part, n);
		return;
	}
	const uint64_t done = fast ? fast->add_to_floats(sum, parts, n) : 0;
	add_each_to_floats(encoding, sum + done, parts + done, n - done);
}
