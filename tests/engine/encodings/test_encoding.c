/* The references of encodings, against the arithmetic of their formats: for every pattern, and half-way between any
 * two. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "engine/encodings/encoding.h"

enum { SIGN = 0x8000 };

/* Bits of the exponent, and of what is behind it. */
struct format {
	const struct psd_encoding *encoding;
	unsigned exponent_bits, fraction_bits;
};

static const struct format formats[] = {{&psd_encoding_fp16, 5, 10}, {&psd_encoding_bf16, 8, 7}};
enum { N_FORMATS = sizeof(formats) / sizeof(formats[0]) };

/* IEEE 754: (-1)^s 2^(e - bias) (1 + f / 2^F), and 2^(1 - bias) f / 2^F where e is 0. */
static double value_of(const struct format *format, unsigned bits)
{
	const unsigned F = format->fraction_bits, f = bits & ((1u << F) - 1), e = (bits & (SIGN - 1u)) >> F;
	const int bias = (1 << (format->exponent_bits - 1)) - 1;
	const double significand = e > 0 ? f + ldexp(1.0, (int)F) : f;
	const double magnitude = ldexp(significand, (e > 0 ? (int)e : 1) - bias - (int)F);

	return bits & SIGN ? -magnitude : magnitude;
}

/* The pattern of infinity, which all finite ones are below. */
static unsigned infinity_of(const struct format *format)
{
	return ((1u << format->exponent_bits) - 1) << format->fraction_bits;
}

Test(encoding, every_pattern_is_the_value_of_its_format)
{
	for (unsigned i = 0; i < N_FORMATS; i++)
		for (unsigned bits = 0; bits < infinity_of(&formats[i]); bits++) {
			const float plus = formats[i].encoding->decode((uint16_t)bits),
				    minus = formats[i].encoding->decode((uint16_t)(bits | SIGN));

			cr_assert_eq((double)plus, value_of(&formats[i], bits), "%s %04x is %g",
				     formats[i].encoding->name, bits, (double)plus);
			cr_assert(minus == -plus && signbit(minus) && !signbit(plus));
			cr_assert_eq(formats[i].encoding->encode(plus), bits);
			cr_assert_eq(formats[i].encoding->encode(minus), bits | SIGN);
		}
}

/* Values between two neighbours go to the nearer, from half-way to the even one; behind the largest is infinity. */
Test(encoding, values_between_two_go_to_the_nearer)
{
	for (unsigned i = 0; i < N_FORMATS; i++) {
		const struct psd_encoding *encoding = formats[i].encoding;

		for (unsigned bits = 0; bits < infinity_of(&formats[i]); bits++) {
			const double half =
				(value_of(&formats[i], bits) + value_of(&formats[i], bits + 1)) / 2; /* exact */
			const float middle = (float)half;

			cr_assert_eq((double)middle, half);
			cr_assert_eq(encoding->encode(middle), bits + (bits & 1), "%s %04x", encoding->name, bits);
			cr_assert_eq(encoding->encode(nextafterf(middle, 0.0f)), bits, "%s %04x", encoding->name, bits);
			cr_assert_eq(encoding->encode(nextafterf(middle, INFINITY)), bits + 1);
			cr_assert_eq(encoding->encode(-middle), SIGN | (bits + (bits & 1)));
		}
	}
}

Test(encoding, infinities_and_nans_stay_what_they_are)
{
	for (unsigned i = 0; i < N_FORMATS; i++) {
		const struct psd_encoding *encoding = formats[i].encoding;
		const unsigned infinity = infinity_of(&formats[i]);
		const uint32_t low_nan_bits = 0x7f800001; /* the upper half means infinity */
		float low_nan;

		memcpy(&low_nan, &low_nan_bits, sizeof(low_nan));
		cr_expect_eq(encoding->encode(INFINITY), infinity);
		cr_expect_eq(encoding->encode(-INFINITY), SIGN | infinity);
		cr_expect_eq(encoding->decode((uint16_t)infinity), INFINITY);
		cr_expect(isnan(encoding->decode(encoding->encode(low_nan))));
		for (unsigned bits = infinity + 1; bits < SIGN; bits++) {
			cr_expect(isnan(encoding->decode((uint16_t)bits)));
			cr_expect(isnan(encoding->decode(encoding->encode(encoding->decode((uint16_t)bits)))));
		}
	}
}

Test(encoding, names_are_those_of_the_rows)
{
	for (unsigned i = 0; psd_encoding_names[i]; i++)
		cr_expect_str_eq(psd_encodings[i]->name, psd_encoding_names[i]);
	cr_expect_not(psd_encodings[0]->is_lossy); /* the default */
}
