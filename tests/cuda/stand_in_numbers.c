/* How numbers are stored, see the header. */
#include "tests/cuda/stand_in_numbers.h"

#include <stdlib.h>
#include <string.h>

#include "engine/encodings/encoding.h"
#include "tests/cuda/stand_in_parts.h"

enum { MOST_SCRIBBLED_BYTES = 1 << 16 };

size_t psd_stand_in_number_bytes(enum psd_stand_in_number number)
{
	return number == PSD_STAND_IN_FLOAT ? sizeof(float) : sizeof(uint16_t);
}

static const struct psd_encoding *encoding_of(enum psd_stand_in_number number)
{
	return number == PSD_STAND_IN_HALF ? &psd_encoding_fp16 : &psd_encoding_bf16;
}

double psd_stand_in_read(enum psd_stand_in_number number, const void *values, size_t index)
{
	if (number == PSD_STAND_IN_FLOAT)
		return ((const float *)values)[index];
	return encoding_of(number)->decode(((const uint16_t *)values)[index]);
}

void psd_stand_in_write(enum psd_stand_in_number number, void *values, size_t index, double value)
{
	if (number == PSD_STAND_IN_FLOAT)
		((float *)values)[index] = (float)value;
	else
		((uint16_t *)values)[index] = encoding_of(number)->encode((float)value);
}

double psd_stand_in_tf32(double value)
{
	const uint32_t half = UINT32_C(1) << 12, mask = ~(2 * half - 1);
	float rounded = (float)value;
	uint32_t bits;

	memcpy(&bits, &rounded, sizeof(bits));
	bits = (bits + half) & mask;
	memcpy(&rounded, &bits, sizeof(bits));
	return value - value == 0 ? rounded : value; /* infinities and NaNs stay */
}

double *psd_stand_in_doubles(size_t n)
{
	double *const doubles = calloc(n > 0 ? n : 1, sizeof(*doubles));

	if (!doubles)
		abort();
	return doubles;
}

void psd_stand_in_scribble(void *begin, size_t bytes)
{
	if (begin && bytes > 0)
		memset(begin, PSD_STAND_IN_POISON, bytes < MOST_SCRIBBLED_BYTES ? bytes : MOST_SCRIBBLED_BYTES);
}
