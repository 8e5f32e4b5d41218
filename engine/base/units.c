/* Reads decimal numbers only (no hexadecimal, no "inf"): strtod() converts them after the spelling was checked. Refuses
 * to guess a missing suffix. */
#include "engine/base/units.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char psd_units_rate_help[] = "a rate such as 40Gbps or 2.3GBps";
const char psd_units_bytes_help[] = "a size such as 256KiB or 2MB";
const char psd_units_seconds_help[] = "a time such as 30us or 1.5ms";
const char psd_units_flop_rate_help[] = "a rate such as 6.1TFLOPS";
const char psd_units_ratio_help[] = "a ratio such as 0.15 or 15%";

struct scale {
	const char *name;
	double factor;
};

static const struct scale prefixes[] = {
	{"", 1.0},
	{"k", 1e3},
	{"M", 1e6},
	{"G", 1e9},
	{"T", 1e12},
	{"P", 1e15},
	{"Ki", 1024.0},
	{"Mi", 1024.0 * 1024.0},
	{"Gi", 1024.0 * 1024.0 * 1024.0},
	{"Ti", 1024.0 * 1024.0 * 1024.0 * 1024.0},
	{NULL, 0.0},
};
/* parts of a second: 30us is 30 / 1e6, rounded once, where 30 * 1e-6 would be rounded twice */
static const struct scale times[] = {{"s", 1.0}, {"ms", 1e3}, {"us", 1e6}, {"ns", 1e9}, {NULL, 0.0}};
static const struct scale long_times[] = {{"min", 60.0}, {"h", 3600.0}, {"d", 86400.0}, {NULL, 0.0}};

static const char *skip_digits(const char *text)
{
	while (isdigit((unsigned char)*text))
		text++;
	return text;
}

/* End of the decimal figure at the start of text, or NULL: digits, a fraction after at least one digit, an exponent. */
static const char *figure_end(const char *text)
{
	const char *end = skip_digits(text);

	if (end == text)
		return NULL;
	if (*end == '.') {
		const char *fraction = end + 1;

		end = skip_digits(fraction);
		if (end == fraction)
			return NULL;
	}
	if (*end == 'e' || *end == 'E') {
		const char *exponent = end + 1 + (end[1] == '+' || end[1] == '-');
		const char *after = skip_digits(exponent);

		if (after != exponent)
			end = after;
	}
	return end;
}

/* Reads a decimal number; returns the text behind it and its blanks, or NULL. */
static const char *read_figure(const char *text, double *value)
{
	const char *end = figure_end(text);
	char *stop;

	if (!end)
		return NULL;
	*value = strtod(text, &stop);
	if (stop != end || !isfinite(*value))
		return NULL;
	while (*end == ' ')
		end++;
	return end;
}

/* The factor of a suffix made of an SI or IEC prefix and this unit, or 0. */
static double prefixed(const char *suffix, const char *unit)
{
	for (const struct scale *prefix = prefixes; prefix->name; prefix++) {
		const size_t length = strlen(prefix->name);

		if (!strncmp(suffix, prefix->name, length) && !strcmp(suffix + length, unit))
			return prefix->factor;
	}
	return 0.0;
}

/* Stores value * factor if there was a factor and the product is finite. */
static bool store(double value, double factor, double *out)
{
	if (factor <= 0.0 || !isfinite(value * factor))
		return false;
	*out = value * factor;
	return true;
}

bool psd_units_read_rate(const char *text, double *bits_per_sec)
{
	double value;
	const char *suffix = read_figure(text, &value);
	double factor;

	if (!suffix)
		return false;
	factor = prefixed(suffix, "bps");
	if (factor <= 0.0)
		factor = 8.0 * prefixed(suffix, "Bps");
	return store(value, factor, bits_per_sec);
}

/* The digits from text to end, exactly; false when there is another character, or too many of them. */
static bool read_digits(const char *text, const char *end, uint64_t *count)
{
	uint64_t value = 0;

	if (end == text)
		return false;
	for (; text < end; text++) {
		const uint64_t digit = (uint64_t)(*text - '0');

		if (!isdigit((unsigned char)*text) || value > (UINT64_MAX - digit) / 10)
			return false;
		value = 10 * value + digit;
	}
	*count = value;
	return true;
}

bool psd_units_read_bytes(const char *text, uint64_t *bytes)
{
	double value, product;
	const char *suffix = read_figure(text, &value);

	if (!suffix || !store(value, prefixed(suffix, "B"), &product))
		return false;
	if (!strcmp(suffix, "B") &&
	    read_digits(text, figure_end(text), bytes)) /* plain figures are exact beyond 2^53, too */
		return true;
	product = floor(product + 0.5); /* 0.1MiB is not a whole number of bytes: take the nearest */
	if (product >= 0x1p64)
		return false;
	*bytes = (uint64_t)product;
	return true;
}

bool psd_units_read_seconds(const char *text, double *sec)
{
	double value;
	const char *suffix = read_figure(text, &value);

	if (!suffix)
		return false;
	for (const struct scale *unit = times; unit->name; unit++)
		if (!strcmp(suffix, unit->name))
			return store(value / unit->factor, 1.0, sec);
	for (const struct scale *unit = long_times; unit->name; unit++)
		if (!strcmp(suffix, unit->name))
			return store(value, unit->factor, sec);
	return false;
}

bool psd_units_read_flop_rate(const char *text, double *flops_per_sec)
{
	double value;
	const char *suffix = read_figure(text, &value);

	return suffix && store(value, prefixed(suffix, "FLOPS"), flops_per_sec);
}

bool psd_units_read_ratio(const char *text, double *ratio)
{
	double value;
	const char *suffix = read_figure(text, &value);

	if (!suffix)
		return false;
	if (!strcmp(suffix, "%"))
		return store(value / 100.0, 1.0, ratio);
	return suffix == figure_end(text) && !*suffix && store(value, 1.0, ratio);
}

bool psd_units_read_count(const char *text, uint64_t *count)
{
	return read_digits(text, text + strlen(text), count);
}

bool psd_units_read_number(const char *text, double *number)
{
	const bool is_negative = *text == '-';
	double value;
	const char *suffix = read_figure(text + is_negative, &value);

	if (!suffix || *suffix || suffix != figure_end(text + is_negative))
		return false;
	*number = is_negative ? -value : value;
	return true;
}

char *psd_units_write_number(double value, char text[PSD_UNITS_TEXT_MAX])
{
	const bool is_long = fabs(value) >= 999.95 && fabs(value) < 1e15;

	snprintf(text, PSD_UNITS_TEXT_MAX, is_long ? "%.0f" : "%.4g", value);
	return text;
}

int psd_units_decimals(double value, int n_digits, int most)
{
	int decimals = n_digits - 1;

	if (!(fabs(value) > 0.0) || !isfinite(value))
		return 0;
	decimals -= (int)floor(log10(fabs(value)));
	if (round(fabs(value) * pow(10, decimals)) >= pow(10, n_digits)) /* 9.9996 is 10.00 */
		decimals--;
	return decimals < 0 ? 0 : decimals > most ? most : decimals;
}

static char *write_scaled(double value, const char *prefix, const char *unit, char text[PSD_UNITS_TEXT_MAX])
{
	const size_t length = strlen(psd_units_write_number(value, text));

	snprintf(text + length, PSD_UNITS_TEXT_MAX - length, " %s%s", prefix, unit);
	return text;
}

/* Picks the SI prefix that leaves 1 to 999.9 before it; a value that would round to 1000 takes the next prefix. */
static char *write_si(double value, const char *unit, char text[PSD_UNITS_TEXT_MAX])
{
	static const char *const names[] = {"", "k", "M", "G", "T", "P"};
	size_t at = 0;

	while (fabs(value) >= 999.95 && at + 1 < sizeof(names) / sizeof(names[0])) {
		value /= 1000.0;
		at++;
	}
	return write_scaled(value, names[at], unit, text);
}

char *psd_units_write_rate(double bits_per_sec, char text[PSD_UNITS_TEXT_MAX])
{
	return write_si(bits_per_sec, "b/s", text);
}

char *psd_units_write_bytes(uint64_t bytes, char text[PSD_UNITS_TEXT_MAX])
{
	return write_si((double)bytes, "B", text);
}

char *psd_units_write_seconds(double sec, char text[PSD_UNITS_TEXT_MAX])
{
	static const char *const units[] = {"ns", "us", "ms", "s"};
	double value = sec * 1e9;
	size_t at = 0;

	if (sec == 0.0)
		return write_scaled(0.0, "", "s", text);
	while (fabs(value) >= 999.95 && at < 3) {
		value /= 1000.0;
		at++;
	}
	return write_scaled(at == 3 ? sec : value, "", units[at], text);
}

char *psd_units_write_count(uint64_t count, char text[PSD_UNITS_TEXT_MAX])
{
	char digits[PSD_UNITS_TEXT_MAX];
	const int n_digits = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)count);
	char *out = text;

	for (int i = 0; i < n_digits; i++) {
		if (i > 0 && (n_digits - i) % 3 == 0)
			*out++ = ',';
		*out++ = digits[i];
	}
	*out = '\0';
	return text;
}

char *psd_units_write_flops(double flops, char text[PSD_UNITS_TEXT_MAX])
{
	return write_si(flops, "FLOP", text);
}
