/* Gradients that are longer than they may be. */
#include <criterion/criterion.h>
#include <math.h>

#include "real/device/update.h"

/* A sum of n squares in double is off by n 2^-53 at most, whatever its order. */
#define SUM_RATIO(n) ((n)*0x1p-53)

Test(clip, squares_of_any_number_of_values_are_added_up)
{
	float values[100];

	for (unsigned i = 0; i < 100; i++)
		values[i] = (float)i + 1;
	for (unsigned n = 0; n <= 100; n++) {
		const double expected = n * (n + 1.0) * (2 * n + 1.0) / 6; /* sum of squares of 1 to n */

		cr_expect_float_eq(psd_clip_measure(values, n), expected, SUM_RATIO(n) * expected, "%u", n);
	}
}

/* 3, 4 and 12 are 13 long. */
static float ratio_at(double most_norm)
{
	const double squares[] = {9, 16, 144};
	float ratio = 7.0f;

	psd_clip_find(&(struct psd_clip){squares, 3, most_norm, &ratio});
	return ratio;
}

Test(clip, what_is_longer_is_scaled_to_the_most_and_nothing_else)
{
	cr_expect_eq(ratio_at(6.5), 0.5f);
	cr_expect_eq(ratio_at(13), 1.0f);
	cr_expect_eq(ratio_at(14), 1.0f);
	cr_expect_eq(ratio_at(0.13), 0.01f);
}

Test(clip, no_gradients_and_gradients_that_are_no_numbers_are_not_scaled)
{
	const double none = NAN;
	float ratio = 7.0f;

	psd_clip_find(&(struct psd_clip){NULL, 0, 1.0, &ratio});
	cr_expect_eq(ratio, 1.0f);
	ratio = 7.0f;
	psd_clip_find(&(struct psd_clip){&none, 1, 1.0, &ratio});
	cr_expect_eq(ratio, 1.0f);
}

Test(clip, values_are_multiplied)
{
	float values[] = {2, -4, 0, 8};

	psd_clip_shrink(values, 3, 0.5f);
	cr_expect_arr_eq(values, ((const float[]){1, -2, 0, 8}), sizeof(values));
	psd_clip_shrink(values, 4, 1.0f);
	cr_expect_arr_eq(values, ((const float[]){1, -2, 0, 8}), sizeof(values));
}
