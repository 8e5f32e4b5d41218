#include "plots/words.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/sort.h"
#include "engine/base/units.h"

void psd_range_add(struct psd_range *range, double value)
{
	if (!range->is_there || value < range->least)
		range->least = value;
	if (!range->is_there || value > range->most)
		range->most = value;
	range->is_there = true;
}

/* ---- widths ---- */

/* Advance widths of ASCII's characters from the blank on, hundredths of the font size: DejaVu Sans 2.37. */
static const uint8_t widths[] = {32, 41, 46, 84, 64, 96, 78, 28, 40, 40, 50, 84, 32, 37,  32, 34, 64, 64, 64,
				 64, 64, 64, 64, 64, 64, 64, 34, 34, 84, 84, 84, 54, 100, 69, 69, 70, 77, 64,
				 58, 78, 76, 30, 30, 66, 56, 87, 75, 79, 61, 79, 70, 64,  62, 74, 69, 99, 69,
				 62, 69, 40, 34, 40, 84, 50, 50, 62, 64, 55, 64, 62, 36,  64, 64, 28, 28, 58,
				 28, 98, 64, 62, 64, 64, 42, 53, 40, 64, 60, 82, 60, 60,  53, 64, 34, 64, 84};
enum { OTHER_WIDTH = 100, LAST_ASCII = 126 };

static bool is_continued(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

static double width_of(char c)
{
	if (is_continued(c))
		return 0;
	return c >= ' ' && c <= LAST_ASCII ? widths[c - ' '] / 100.0 : OTHER_WIDTH / 100.0;
}

double psd_words_width(const char *text)
{
	double sum = 0;

	for (; *text; text++)
		sum += width_of(*text);
	return sum;
}

const char *psd_words_cut(struct psd_arena *arena, const char *text, double width)
{
	static const char dots[] = "...";
	const size_t length = strlen(text);
	const double room = width - psd_words_width(dots);
	size_t head = 0, tail = length;
	double sum = 0;

	if (psd_words_width(text) <= width)
		return text;
	/* names differ at their end more often than at their beginning: it gets a third */
	while (tail > 0 && (is_continued(text[tail]) || sum + width_of(text[tail - 1]) <= room / 3))
		sum += width_of(text[--tail]);
	while (tail < length && is_continued(text[tail]))
		tail++;
	while (head < tail && sum + width_of(text[head]) <= room)
		sum += width_of(text[head++]);
	while (head && is_continued(text[head]))
		head--;
	char *cut = psd_arena_take(arena, head + sizeof(dots) + length - tail);
	if (!cut)
		return text;
	snprintf(cut, head + sizeof(dots) + length - tail, "%.*s%s%s", (int)head, text, dots, text + tail);
	return cut;
}

/* ---- text for gnuplot and for pages ---- */

/* U+FFFE and U+FFFF are UTF-8, but XML excludes them. */
static bool is_excluded(const char *at)
{
	return !strncmp(at, "\357\277\276", 3) || !strncmp(at, "\357\277\277", 3);
}

/* Returns the bytes of the character at `at` that may be written as they are; 0: it is to be replaced. */
static unsigned plain_bytes(const char *at)
{
	return is_excluded(at) ? 0 : psd_text_plain_bytes(at);
}

/* Bytes that are replaced together by one mark. */
static unsigned refused_bytes(const char *at)
{
	if (is_excluded(at))
		return 3;
	return (unsigned char)*at == 0xc2 && is_continued(at[1]) ? 2 : 1;
}

void psd_words_add_quoted(struct psd_text *text, const char *string)
{
	psd_text_add_bytes(text, "'", 1);
	while (*string) {
		const unsigned n = plain_bytes(string);

		/* A quote stands in double quotes, in which a backquote would be a command. */
		if (*string == '\'')
			psd_text_add(text, "'.\"'\".'");
		else
			psd_text_add_bytes(text, n ? string : "?", n ? n : 1);
		string += n ? n : refused_bytes(string);
	}
	psd_text_add_bytes(text, "'", 1);
}

void psd_words_add_escaped(struct psd_text *text, const char *string)
{
	while (*string) {
		const unsigned n = plain_bytes(string);

		switch (*string) {
		case '&': psd_text_add(text, "&amp;"); break;
		case '<': psd_text_add(text, "&lt;"); break;
		case '>': psd_text_add(text, "&gt;"); break;
		case '"': psd_text_add(text, "&quot;"); break;
		default: psd_text_add_bytes(text, n ? string : "?", n ? n : 1); break;
		}
		string += n ? n : refused_bytes(string);
	}
}

/* ---- quantities ---- */

char *psd_words_bandwidth(double bps, char text[PSD_WORDS_MAX])
{
	snprintf(text, PSD_WORDS_MAX, bps >= 1e9 ? "%g Gb/s" : "%g Mb/s", bps / (bps >= 1e9 ? 1e9 : 1e6));
	return text;
}

char *psd_words_bytes(double bytes, char text[PSD_WORDS_MAX])
{
	static const struct {
		const char *name;
		uint64_t bytes;
	} units[] = {{"GiB", 1 << 30},	 {"MiB", 1 << 20}, {"KiB", 1 << 10},
		     {"GB", 1000000000}, {"MB", 1000000},  {"kB", 1000}};

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]) && bytes >= 1 && bytes < 1e15; i++)
		if ((uint64_t)bytes % units[i].bytes == 0) {
			snprintf(text, PSD_WORDS_MAX, "%.0f%s", bytes / (double)units[i].bytes, units[i].name);
			return text;
		}
	snprintf(text, PSD_WORDS_MAX, "%gB", bytes);
	return text;
}

char *psd_words_count(unsigned long n, const char *one, const char *many, char text[PSD_WORDS_MAX])
{
	snprintf(text, PSD_WORDS_MAX, "%lu %s", n, n == 1 ? one : many);
	return text;
}

bool psd_words_read_bytes(const char *text, double *bytes)
{
	uint64_t read;

	if (!isdigit((unsigned char)*text) || !psd_units_read_bytes(text, &read) || !read)
		return false;
	*bytes = (double)read;
	return true;
}

/* ---- titles ---- */

/* The first bandwidth in a title, such as "40 GbE" or "1 Gbit/s"; *bps: its value. Returns its length; 0: none. */
static size_t find_bandwidth(const char *title, const char **found, double *bps)
{
	static const char *const units[] = {"bit/s", "b/s", "bps", "bE"};

	for (const char *at = title; *at; at++) {
		char *end;

		if (!isdigit((unsigned char)*at) && *at != '.')
			continue;
		const size_t n_digits = strspn(at, "0123456789.");
		const double value = strtod(at, &end);
		const char *unit = at + n_digits + (at[n_digits] == ' ');

		for (size_t i = 0; i < sizeof(units) / sizeof(units[0]) && (*unit == 'G' || *unit == 'M'); i++)
			if (!strncmp(unit + 1, units[i], strlen(units[i]))) {
				*found = at;
				*bps = value * (*unit == 'G' ? 1e9 : 1e6);
				return (size_t)(unit - at) + 1 + strlen(units[i]);
			}
		at += n_digits - 1;
	}
	return 0;
}

const char *psd_words_title_at(struct psd_arena *arena, const char *title, const struct psd_range *bps)
{
	char least[PSD_WORDS_MAX], most[PSD_WORDS_MAX];
	const char *found = title + strlen(title);
	double named = 0;
	const size_t length = find_bandwidth(title, &found, &named), room = strlen(title) + 2 * PSD_WORDS_MAX + 8;

	if (!bps->is_there || (length && bps->least == bps->most && named == bps->least))
		return title;
	char *made = psd_arena_take(arena, room);
	if (!made)
		return title;
	snprintf(made, room, "%.*s%s%s%s%s%s", (int)(found - title), title, length ? "" : ", ",
		 psd_words_bandwidth(bps->least, least), bps->least < bps->most ? " to " : "",
		 bps->least < bps->most ? psd_words_bandwidth(bps->most, most) : "", found + length);
	return made;
}

bool psd_words_ends_with(const char *text, const char *end)
{
	const size_t length = strlen(text), n = strlen(end);

	return length >= n && !strcmp(text + length - n, end);
}

/* ---- statistics ---- */

double psd_words_median(double *values, unsigned n)
{
	psd_sort_doubles(values, n);
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}
