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
struct unit {
	const char *name;
	double factor;
	double parts; /* divisor: 30us is 30 / 1e6, rounded once, where 30 * 1e-6 would be rounded twice */
	bool takes_prefix;
	bool is_usual; /* offered in place of a wrong spelling */
};

#define UNIT(name, factor)                                                                                             \
	{                                                                                                              \
		(name), (factor), 1.0, true, false                                                                     \
	}
static const struct unit rate_units[] = {
	{"bps", 1.0, 1.0, true, true},
	{"Bps", 8.0, 1.0, true, true},
	UNIT("b/s", 1.0),
	UNIT("bit/s", 1.0),
	UNIT("bits/s", 1.0),
	UNIT("B/s", 8.0),
	UNIT("byte/s", 8.0),
	UNIT("bytes/s", 8.0),
	UNIT("Byte/s", 8.0),
	UNIT("Bytes/s", 8.0),
	{.name = NULL},
};
static const struct unit byte_units[] = {
	{"B", 1.0, 1.0, true, true}, UNIT("byte", 1.0),	 UNIT("bytes", 1.0),
	UNIT("Byte", 1.0),	     UNIT("Bytes", 1.0), {.name = NULL},
};
static const struct unit flop_rate_units[] = {
	{"FLOPS", 1.0, 1.0, true, true},
	UNIT("FLOP/s", 1.0),
	UNIT("FLOPs/s", 1.0),
	UNIT("Flops", 1.0),
	UNIT("Flop/s", 1.0),
	UNIT("flops", 1.0),
	UNIT("flop/s", 1.0),
	{.name = NULL},
};
#define TIME(name, factor, parts, is_usual)                                                                            \
	{                                                                                                              \
		(name), (factor), (parts), false, is_usual                                                             \
	}
static const struct unit time_units[] = {
	TIME("s", 1.0, 1.0, true),
	TIME("ms", 1.0, 1e3, true),
	TIME("us", 1.0, 1e6, true),
	TIME("ns", 1.0, 1e9, true),
	TIME("min", 60.0, 1.0, true),
	TIME("h", 3600.0, 1.0, true),
	TIME("d", 86400.0, 1.0, true),
	TIME("sec", 1.0, 1.0, false),
	TIME("\xc2\xb5s", 1.0, 1e6, false), /* the micro sign */
	TIME("\xce\xbcs", 1.0, 1e6, false), /* the Greek letter mu */
	TIME("hours", 3600.0, 1.0, false),
	TIME("days", 86400.0, 1.0, false),
	{.name = NULL},
};

static const struct unit *const units_of[] = {
	[PSD_UNITS_RATE] = rate_units,		 [PSD_UNITS_BYTES] = byte_units, [PSD_UNITS_SECONDS] = time_units,
	[PSD_UNITS_FLOP_RATE] = flop_rate_units, [PSD_UNITS_PLAIN] = NULL,
};

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

/* Reads a figure with one of the units; *factor is the unit's with its prefix. */
static bool read_quantity(const char *text, enum psd_units_kind quantity, double *value, double *factor)
{
	const char *suffix = read_figure(text, value);

	for (const struct unit *unit = units_of[quantity]; suffix && unit->name; unit++) {
		*factor = unit->factor;
		*factor *= unit->takes_prefix ? prefixed(suffix, unit->name) : !strcmp(suffix, unit->name);
		if (*factor > 0.0)
			return store(*value / unit->parts, *factor, value);
	}
	return false;
}

static bool read_real(const char *text, enum psd_units_kind quantity, double *real)
{
	double value, factor;

	if (!read_quantity(text, quantity, &value, &factor))
		return false;
	*real = value;
	return true;
}

bool psd_units_read_rate(const char *text, double *bits_per_sec)
{
	return read_real(text, PSD_UNITS_RATE, bits_per_sec);
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
	double product, factor;

	if (!read_quantity(text, PSD_UNITS_BYTES, &product, &factor))
		return false;
	if (factor <= 1.0 && read_digits(text, figure_end(text), bytes)) /* exact beyond 2^53, too */
		return true;
	product = floor(product + 0.5); /* 0.1MiB is not a whole number of bytes: take the nearest */
	if (product >= 0x1p64)
		return false;
	*bytes = (uint64_t)product;
	return true;
}

bool psd_units_read_seconds(const char *text, double *sec)
{
	return read_real(text, PSD_UNITS_SECONDS, sec);
}

bool psd_units_read_flop_rate(const char *text, double *flops_per_sec)
{
	return read_real(text, PSD_UNITS_FLOP_RATE, flops_per_sec);
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

/* ---- suggestions ---- */

/* Parts of a suffix in which case does not matter. */
enum loose { LOOSE_NOWHERE, LOOSE_PREFIX, LOOSE_ALL };

/* True if the suffix begins the unit, or is all of it. */
static bool begins(const char *suffix, const char *unit, enum loose loose)
{
	for (size_t i = 0; suffix[i]; i++) {
		const bool is_loose = loose == LOOSE_ALL || (loose == LOOSE_PREFIX && i == 0);
		const int one = (unsigned char)suffix[i], other = (unsigned char)unit[i];

		if (is_loose ? tolower(one) != tolower(other) : one != other)
			return false;
	}
	return true;
}

/* Appends "40Gbps or 40GBps": the figure with the usual units that the suffix begins. */
static void add_units(struct psd_text *text, const struct unit *units, const char *figure, const char *suffix,
		      enum loose loose)
{
	const bool is_binary = strlen(suffix) > 1 && (suffix[1] == 'i' || suffix[1] == 'I');
	char name[16];

	for (const struct unit *unit = units; unit->name; unit++)
		for (const struct scale *prefix = prefixes; unit->is_usual && prefix->name; prefix++) {
			if (unit->takes_prefix ? is_binary != (strlen(prefix->name) > 1) : *prefix->name != '\0')
				continue;
			snprintf(name, sizeof(name), "%s%s", prefix->name, unit->name);
			if (begins(suffix, name, loose))
				psd_text_add(text, "%s%s%s", text->length ? " or " : "", figure, name);
		}
}

/* Mends the figure: "1,5" is 1.5 with a unit, "1,281,167" a whole number without one, ".5" is 0.5. Returns the rest. */
static const char *mend_figure(const char *text, bool has_unit, struct psd_text *figure)
{
	if (*text == '.')
		psd_text_add(figure, "0");
	for (; isdigit((unsigned char)*text) || *text == '.' || *text == ',' || *text == '_'; text++)
		if (isdigit((unsigned char)*text) || (has_unit && *text != '_') || *text == '.')
			psd_text_add(figure, "%c", *text == ',' ? '.' : *text);
	return text + strspn(text, " ");
}

void psd_units_suggest(struct psd_text *text, enum psd_units_kind quantity, const char *wrong)
{
	const struct unit *units = units_of[quantity];
	struct psd_text figure = {.bytes = NULL};
	double value;
	uint64_t count;

	if (units && read_real(wrong, quantity, &value)) /* its value was refused, not its spelling */
		return;
	wrong += strspn(wrong, " ");
	const char *suffix = mend_figure(wrong, units, &figure);
	if (figure.bytes && figure_end(figure.bytes) == figure.bytes + figure.length) {
		for (int loose = LOOSE_NOWHERE; units && *suffix && !text->length && loose <= LOOSE_ALL; loose++)
			add_units(text, units, figure.bytes, suffix, (enum loose)loose);
		if (!units && !*suffix && strcmp(wrong, figure.bytes) != 0 &&
		    psd_units_read_count(figure.bytes, &count))
			psd_text_add(text, "%s", figure.bytes);
	}
	psd_text_release(&figure);
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
