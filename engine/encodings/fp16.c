/* Half precision: 11 bits of precision, up to 65,504, down to 2^-24. Source: IEEE 754-2019, binary16. */
#include <string.h>

#include "engine/encodings/encoding.h"

/* Limits of the magnitude, as bits of a float. */
enum {
	INFINITE = 0x7f800000,
	TOO_LARGE = 0x477ff000, /* 65,520: rounds to infinity */
	NORMAL = 0x38800000,	/* 2^-14: the smallest number with full precision */
	NOTHING = 0x33000000,	/* 2^-25: half of the smallest number, rounds to 0 */
};

/* A subnormal number in units of 2^-24: the float's significand, 1 at bit 23, shifted and rounded. */
static uint32_t encode_small(uint32_t magnitude)
{
	const uint32_t shift = 126 - (magnitude >> 23), significand = (magnitude & 0x7fffff) | 0x800000;
	const uint32_t whole = significand >> shift, rest = significand - (whole << shift), half = 1u << (shift - 1);

	return whole + (rest > half || (rest == half && (whole & 1)));
}

static uint16_t encode(float value)
{
	uint32_t bits, sign, magnitude;

	memcpy(&bits, &value, sizeof(bits));
	sign = bits >> 16 & 0x8000;
	magnitude = bits & 0x7fffffff;
	if (magnitude > INFINITE)
		return (uint16_t)(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
	if (magnitude >= TOO_LARGE)
		return (uint16_t)(sign | 0x7c00);
	if (magnitude <= NOTHING)
		return (uint16_t)sign;
	if (magnitude < NORMAL)
		return (uint16_t)(sign | encode_small(magnitude));
	return (uint16_t)(sign | (magnitude + 0xfff + (magnitude >> 13 & 1) - 0x38000000) >> 13);
}

static float decode(uint16_t encoded)
{
	const uint32_t sign = (uint32_t)(encoded & 0x8000) << 16, magnitude = encoded & 0x7fff;
	uint32_t bits = sign | ((magnitude << 13) + 0x38000000);
	float value;

	if (magnitude > 0x7c00)
		bits = sign | INFINITE | 0x400000 | magnitude << 13;
	else if (magnitude == 0x7c00)
		bits = sign | INFINITE;
	memcpy(&value, &bits, sizeof(value));
	if (magnitude < 0x400)
		value = (sign ? -0x1p-24f : 0x1p-24f) * (float)magnitude;
	return value;
}

const struct psd_encoding psd_encoding_fp16 = {
	.name = "fp16",
	.value_bytes = 2,
	.is_lossy = true,
	.is_scaled = true,
	.encode = encode,
	.decode = decode,
};
