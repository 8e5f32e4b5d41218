/* Fits of samples whose constants are known by construction. */
#include <criterion/criterion.h>
#include <math.h>

#include "real/base/fit.h"

#define ROUNDING_RATIO 1e-9

Test(fit, summary_is_median_and_relative_width_of_the_middle_half)
{
	double odd[] = {5, 1, 2, 100, 4}, even[] = {4, 1, 3, 2}, one[] = {7}, none[] = {0, 0, 0}, some[] = {0, 0, 1};
	const struct psd_summary of_odd = psd_fit_summary(odd, 5), of_even = psd_fit_summary(even, 4),
				 of_one = psd_fit_summary(one, 1);

	cr_expect_eq(of_odd.median, 4);
	cr_expect_eq(of_odd.spread_ratio, (5.0 - 2.0) / 4.0);
	cr_expect_eq(of_odd.n_samples, 5);
	cr_expect_eq(of_even.median, (2.0 + 3.0) / 2.0);
	/* 3/4 of the distance from the first to the second, and 1/4 of the distance from the third to the last */
	cr_expect_eq(of_even.spread_ratio, (3.25 - 1.75) / 2.5);
	cr_expect_eq(psd_fit_summary(none, 3).spread_ratio, 0);
	cr_expect_eq(psd_fit_summary(some, 3).spread_ratio, 1);
	cr_expect_eq(of_one.median, 7);
	cr_expect_eq(of_one.spread_ratio, 0);
}

Test(fit, samples_of_a_line_give_the_line)
{
	const double constant_sec = 100e-6, sec_per_byte = 8.0 / 1e9; /* 1 Gbit/s */
	struct psd_fit_sample samples[13];
	struct psd_fit_line line;
	double bytes = 4;

	for (unsigned i = 0; i < 13; i++, bytes *= 4)
		samples[i] = (struct psd_fit_sample){bytes, constant_sec + bytes * sec_per_byte};
	cr_assert(psd_fit_line(&line, samples, 13));
	cr_expect_float_eq(line.constant_sec, constant_sec, ROUNDING_RATIO * constant_sec);
	cr_expect_float_eq(line.sec_per_byte, sec_per_byte, ROUNDING_RATIO * sec_per_byte);
	cr_expect_lt(line.residual_ratio, ROUNDING_RATIO);
}

/* Two samples of one size, d above and d below their middle m, and the line's other end exact: as weights are 1 /
 * sec^2, the fitted time at that size is the weighted mean (m+d)(m-d)((m-d)+(m+d)) / ((m-d)^2+(m+d)^2) = m (m^2-d^2) /
 * (m^2+d^2). */
Test(fit, errors_count_relative_to_the_sample)
{
	const double m = 2.0, d = 0.5;
	const struct psd_fit_sample samples[] = {{0, 1}, {1000, m + d}, {1000, m - d}};
	const double fitted_sec = m * (m * m - d * d) / (m * m + d * d);
	struct psd_fit_line line;

	cr_assert(psd_fit_line(&line, samples, 3));
	cr_expect_float_eq(line.constant_sec, 1.0, ROUNDING_RATIO);
	cr_expect_float_eq(line.constant_sec + 1000 * line.sec_per_byte, fitted_sec, ROUNDING_RATIO);
	cr_expect_float_eq(line.residual_ratio,
			   sqrt((pow(fitted_sec / (m + d) - 1, 2) + pow(fitted_sec / (m - d) - 1, 2)) / 3),
			   ROUNDING_RATIO);
}

Test(fit, one_size_is_no_line)
{
	const struct psd_fit_sample samples[] = {{1000, 1}, {1000, 2}};
	struct psd_fit_line line = {.constant_sec = 7};

	cr_expect_not(psd_fit_line(&line, samples, 2));
	cr_expect_not(psd_fit_line(&line, samples, 1));
	cr_expect_eq(line.constant_sec, 7);
}

/* A disturbance that slows all members of a turn alike is not jitter. */
Test(fit, a_common_disturbance_is_not_jitter)
{
	const double secs[] = {1, 2, 3, 4, 2, 4, 6, 8};

	cr_expect_float_eq(psd_fit_jitter(secs, 4, 2, 4), 0, ROUNDING_RATIO);
}

/* Member 0 takes 1 + d, 1 + d, 1 - d, 1 - d, the other 1 - d, ...: shares of the mean, 1, are the same; half of them
 * lie 2 d apart. Each one's own deviation is root 2 of what is left of it beside the mean. A normal distribution's
 * middle half is 1.349 standard deviations. */
Test(fit, members_that_differ_have_jitter)
{
	const double d = 0.01, secs[] = {1 + d, 1 + d, 1 - d, 1 - d, 1 - d, 1 - d, 1 + d, 1 + d};

	cr_expect_float_eq(psd_fit_jitter(secs, 4, 2, 4), sqrt(2) * 2 * d / 1.349, ROUNDING_RATIO);
}

/* Alone: quartiles of 0.9, 1, 1, 1.1 lie at 0.975 and 1.025. */
Test(fit, a_lone_member_differs_from_its_median)
{
	const double secs[] = {1.1, 1, 0.9, 1};

	cr_expect_float_eq(psd_fit_jitter(secs, 4, 1, 4), 0.05 / 1.349, ROUNDING_RATIO);
}
