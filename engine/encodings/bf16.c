/* bfloat16: the upper half of a float, with the same range and 8 bits of precision. Source: Intel, BFLOAT16 - Hardware
 * Numerics Definition, 2018. */
#include <string.h>

#include "engine/encodings/encoding.h"

static uint16_t encode(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	if ((bits & 0x7fffffff) > 0x7f800000)
		return (uint16_t)(bits >> 16 | 0x40); /* a NaN whose upper half could be infinity */
	return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float decode(uint16_t encoded)
{
	const uint32_t bits = (uint32_t)encoded << 16;
	float value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

const struct psd_encoding psd_encoding_bf16 = {
	.name = "bf16",
	.value_bytes = 2,
	.is_lossy = true,
	.encode = encode,
	.decode = decode,
};
