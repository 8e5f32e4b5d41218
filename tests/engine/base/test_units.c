/* Quantities that are read, refused and written. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "engine/base/units.h"

#define RELATIVE_TOLERANCE 1e-15

#define ASSERT_CLOSE(value, expected)                                                                                  \
	cr_assert(fabs((value) - (expected)) <= RELATIVE_TOLERANCE * fabs(expected), "%g", value)

Test(units, rates_are_bits_per_second_and_bytes_count_eight)
{
	double rate = 0.0;

	cr_assert(psd_units_read_rate("40Gbps", &rate));
	ASSERT_CLOSE(rate, 40e9);
	cr_assert(psd_units_read_rate("2.3GBps", &rate));
	ASSERT_CLOSE(rate, 2.3e9 * 8);
	cr_assert(psd_units_read_rate("100 MBps", &rate));
	ASSERT_CLOSE(rate, 100e6 * 8);
	cr_assert(psd_units_read_rate("1GiBps", &rate));
	ASSERT_CLOSE(rate, 1024.0 * 1024.0 * 1024.0 * 8);
	cr_assert(psd_units_read_rate("7bps", &rate));
	ASSERT_CLOSE(rate, 7.0);
}

Test(units, si_prefixes_are_1000_and_iec_ones_1024)
{
	uint64_t kilo = 0, kibi = 0;

	cr_assert(psd_units_read_bytes("3kB", &kilo));
	cr_assert(psd_units_read_bytes("3KiB", &kibi));
	cr_assert_eq(kilo, 3 * 1000);
	cr_assert_eq(kibi, 3 * 1024);
	cr_assert(psd_units_read_bytes("1.5GiB", &kibi));
	cr_assert_eq(kibi, UINT64_C(3) * 1024 * 1024 * 1024 / 2);
}

Test(units, plain_bytes_are_exact_up_to_the_largest)
{
	uint64_t bytes = 0;

	cr_assert(psd_units_read_bytes("9007199254740993B", &bytes));
	cr_assert_eq(bytes, (UINT64_C(1) << 53) + 1); /* no double is between 2^53 and 2^53 + 2 */
	cr_assert(psd_units_read_bytes("64B", &bytes));
	cr_assert_not(psd_units_read_bytes("16777216TiB", &bytes)); /* 2^24 * 2^40 = 2^64, one too many */
	cr_assert_eq(bytes, 64);
}

Test(units, seconds_are_rounded_once)
{
	double sec = 0.0;

	cr_assert(psd_units_read_seconds("30us", &sec));
	cr_assert_eq(sec, 30e-6);
	cr_assert(psd_units_read_seconds("1.5ms", &sec));
	cr_assert_eq(sec, 1.5e-3);
	cr_assert(psd_units_read_seconds("5ns", &sec));
	cr_assert_eq(sec, 5e-9);
	cr_assert(psd_units_read_seconds("3min", &sec));
	cr_assert_eq(sec, 3 * 60.0);
	cr_assert(psd_units_read_seconds("10 h", &sec));
	cr_assert_eq(sec, 10 * 60 * 60.0);
	cr_assert(psd_units_read_seconds("2d", &sec));
	cr_assert_eq(sec, 2 * 24 * 60 * 60.0);
	cr_assert(psd_units_read_seconds("0s", &sec));
	cr_assert_eq(sec, 0.0);
}

Test(units, flop_rates_ratios_counts_and_numbers)
{
	double value = 0.0;
	uint64_t count = 0;

	cr_assert(psd_units_read_flop_rate("6.1TFLOPS", &value));
	ASSERT_CLOSE(value, 6.1e12);
	cr_assert(psd_units_read_ratio("15%", &value));
	cr_assert_eq(value, 0.15);
	cr_assert(psd_units_read_ratio("0.15", &value));
	cr_assert_eq(value, 0.15);
	cr_assert(psd_units_read_count("18446744073709551615", &count));
	cr_assert_eq(count, UINT64_MAX);
	cr_assert(psd_units_read_number("-1e-3", &value));
	cr_assert_eq(value, -1e-3);
}

Test(units, a_missing_or_foreign_suffix_is_refused)
{
	static const char *const wrong[] = {"",	       "40",	    "40G",	"40Gb",	  "40GBs",  "40 gbps", "Gbps",
					    "-1Gbps",  "1e999Gbps", "0x10Gbps", "infbps", "nanbps", ".5Gbps",  "5.Gbps",
					    "1,5Gbps", " 40Gbps",   "40Gbps ",	"40KBps", "1KBps"};
	double rate = 17.0;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		cr_assert_not(psd_units_read_rate(wrong[i], &rate), "'%s' was read", wrong[i]);
	cr_assert_eq(rate, 17.0);
}

Test(units, each_reader_refuses_the_others_quantities)
{
	double value = 17.0;
	uint64_t count = 17;

	cr_assert_not(psd_units_read_seconds("40", &value));
	cr_assert_not(psd_units_read_seconds("40mins", &value));
	cr_assert_not(psd_units_read_seconds("-1s", &value));
	cr_assert_not(psd_units_read_flop_rate("6.1TFLOP", &value));
	cr_assert_not(psd_units_read_ratio("15%%", &value));
	cr_assert_not(psd_units_read_ratio("-0.1", &value));
	cr_assert_not(psd_units_read_number("12x", &value));
	cr_assert_not(psd_units_read_number("+1", &value));
	cr_assert_not(psd_units_read_count("-1", &count));
	cr_assert_not(psd_units_read_count("1.0", &count));
	cr_assert_not(psd_units_read_count("18446744073709551616", &count));
	cr_assert_not(psd_units_read_bytes("1b", &count));
	cr_assert_eq(value, 17.0);
	cr_assert_eq(count, 17);
}

Test(units, written_forms_are_short_and_carry_their_unit)
{
	char text[PSD_UNITS_TEXT_MAX];

	cr_assert_str_eq(psd_units_write_rate(40e9, text), "40 Gb/s");
	cr_assert_str_eq(psd_units_write_bytes(UINT64_C(4) * 143667240, text), "574.7 MB");
	cr_assert_str_eq(psd_units_write_bytes(0, text), "0 B");
	cr_assert_str_eq(psd_units_write_seconds(30e-6, text), "30 us");
	cr_assert_str_eq(psd_units_write_seconds(0.0, text), "0 s");
	cr_assert_str_eq(psd_units_write_seconds(3600.0, text), "3600 s");
	cr_assert_str_eq(psd_units_write_count(143667240, text), "143,667,240");
	cr_assert_str_eq(psd_units_write_count(999, text), "999");
	cr_assert_str_eq(psd_units_write_count(UINT64_MAX, text), "18,446,744,073,709,551,615");
	cr_assert_str_eq(psd_units_write_flops(39.3e9, text), "39.3 GFLOP");
}

Test(units, a_value_that_rounds_to_1000_moves_to_the_next_prefix)
{
	char text[PSD_UNITS_TEXT_MAX];

	cr_assert_str_eq(psd_units_write_bytes(999949, text), "999.9 kB");
	cr_assert_str_eq(psd_units_write_bytes(999950, text), "1 MB");
}

Test(units, the_largest_figures_fit_their_text)
{
	char text[PSD_UNITS_TEXT_MAX];

	cr_assert_lt(strlen(psd_units_write_rate(1.7e308, text)), PSD_UNITS_TEXT_MAX);
	cr_assert_lt(strlen(psd_units_write_seconds(1.7e308, text)), PSD_UNITS_TEXT_MAX);
	cr_assert_lt(strlen(psd_units_write_seconds(-1e-300, text)), PSD_UNITS_TEXT_MAX);
}

Test(units, numbers_for_people_have_four_digits_and_no_exponent)
{
	char text[PSD_UNITS_TEXT_MAX];

	cr_expect_str_eq(psd_units_write_number(40138.4, text), "40138");
	cr_expect_str_eq(psd_units_write_number(0.063214, text), "0.06321");
	cr_expect_str_eq(psd_units_write_number(999.96, text), "1000");
	cr_expect_str_eq(psd_units_write_number(0, text), "0");
}

Test(units, decimals_show_so_many_digits)
{
	cr_expect_eq(psd_units_decimals(0.0123, 3, 6), 4);
	cr_expect_eq(psd_units_decimals(1.5, 3, 6), 2);
	cr_expect_eq(psd_units_decimals(512, 3, 6), 0);
	cr_expect_eq(psd_units_decimals(51234, 3, 6), 0);
	cr_expect_eq(psd_units_decimals(1e-9, 3, 6), 6);
	cr_expect_eq(psd_units_decimals(9.9996, 4, 6), 2); /* 10.00 */
	cr_expect_eq(psd_units_decimals(0, 3, 6), 0);
}
