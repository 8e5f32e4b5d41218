/* Measures and writes columns. A UTF-8 character counts as one. */
#include "engine/base/grid.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/grow.h"
#include "engine/base/units.h"
#include "engine/base/view.h"

enum { GAP = 2, NARROWEST = 12, LEAST_CUT = 4, MOST_NAMES = 64 };

#define BOLD  "\033[1m"
#define PLAIN "\033[0m"

unsigned psd_grid_add_column(struct psd_grid *grid, const char *upper, const char *lower, bool is_left)
{
	grid->heads[grid->n_columns][0] = upper;
	grid->heads[grid->n_columns][1] = lower;
	grid->is_left[grid->n_columns] = is_left;
	return grid->n_columns++;
}

void psd_grid_add_row(struct psd_grid *grid)
{
	struct psd_grid_row *rows = psd_grown(grid->rows, grid->n_rows, &grid->rows_capacity, sizeof(*rows));

	if (!rows) {
		grid->is_out_of_memory = true;
		return;
	}
	grid->rows = rows;
	memset(&grid->rows[grid->n_rows++], 0, sizeof(*grid->rows));
}

void psd_grid_add_gap(struct psd_grid *grid)
{
	if (!grid->n_rows || grid->rows[grid->n_rows - 1].is_gap)
		return;
	psd_grid_add_row(grid);
	grid->rows[grid->n_rows - 1].is_gap = !grid->is_out_of_memory;
}

/* Removes the bytes of a character that was cut in the middle from the end. */
static void drop_partial_character(char *text)
{
	size_t end = strlen(text), start = end;

	while (start > 0 && ((unsigned char)text[start - 1] & 0xc0) == 0x80)
		start--;
	if (start == 0)
		return;
	const unsigned char lead = (unsigned char)text[start - 1];
	if (lead >= 0xc0 && end - start < (lead < 0xe0 ? 1u : lead < 0xf0 ? 2u : 3u))
		text[start - 1] = '\0';
}

void psd_grid_set(struct psd_grid *grid, unsigned column, const char *format, ...)
{
	va_list values;

	if (grid->is_out_of_memory || !grid->n_rows)
		return;
	char *cell = grid->rows[grid->n_rows - 1].cells[column];
	va_start(values, format);
	if (vsnprintf(cell, PSD_GRID_CELL, format, values) >= PSD_GRID_CELL)
		drop_partial_character(cell);
	va_end(values);
	psd_text_make_plain(cell);
}

void psd_grid_set_number(struct psd_grid *grid, unsigned column, double value, int most_decimals)
{
	const int decimals = psd_units_decimals(value, PSD_GRID_DIGITS, most_decimals);
	const bool is_zero = round(fabs(value) * pow(10, decimals)) == 0.0;

	grid->is_number[column] = true;
	psd_grid_set(grid, column, "%.*f", is_zero ? 0 : decimals, is_zero ? 0.0 : value);
}

void psd_grid_set_best(struct psd_grid *grid)
{
	if (grid->n_rows && !grid->is_out_of_memory)
		grid->rows[grid->n_rows - 1].is_best = true;
}

static int wider(int width, const char *text)
{
	return psd_text_places(text) > width ? psd_text_places(text) : width;
}

/* Characters of a number from its point on. */
static int fraction_places(const struct psd_grid *grid, unsigned column, const char *cell)
{
	const char *point = grid->is_number[column] ? strchr(cell, '.') : NULL;

	return point ? psd_text_places(point) : 0;
}

static int column_fraction(const struct psd_grid *grid, unsigned column)
{
	int most = 0;

	for (unsigned r = 0; r < grid->n_rows; r++) {
		const int places = fraction_places(grid, column, grid->rows[r].cells[column]);

		most = places > most ? places : most;
	}
	return most;
}

/* 0 for a column that no row fills. */
static int column_width(const struct psd_grid *grid, unsigned column)
{
	const int fraction = column_fraction(grid, column);
	int width = 0;

	for (unsigned r = 0; r < grid->n_rows; r++) {
		const char *cell = grid->rows[r].cells[column];
		const int places = psd_text_places(cell) + fraction - fraction_places(grid, column, cell);

		width = *cell && places > width ? places : width;
	}
	return width ? wider(wider(width, grid->heads[column][0]), grid->heads[column][1]) : 0;
}

/* Bytes of the first n_places characters. */
static size_t bytes_of(const char *text, int n_places)
{
	size_t n_bytes = 0;

	while (text[n_bytes] && (n_places > 0 || ((unsigned char)text[n_bytes] & 0xc0) == 0x80))
		n_places -= ((unsigned char)text[n_bytes++] & 0xc0) != 0x80;
	return n_bytes;
}

/* Bytes that remain of a cut cell: two dots replace its last two characters. */
static int cut_bytes(const char *cell, int width)
{
	return (int)bytes_of(cell, psd_text_places(cell) > width ? width - 2 : width);
}

static bool look_alike(const char *one, const char *other, int width)
{
	const int n_bytes = cut_bytes(one, width);

	return n_bytes == cut_bytes(other, width) && !strncmp(one, other, (size_t)n_bytes);
}

/* The least width, NARROWEST or more, at which different cells, MOST_NAMES of them, do not look alike. */
static int least_width(const struct psd_grid *grid, unsigned column, int width)
{
	const char *names[MOST_NAMES];
	unsigned n_names = 0;
	int least = width < NARROWEST ? width : NARROWEST;

	for (unsigned r = 0; r < grid->n_rows && n_names < MOST_NAMES; r++) {
		const char *cell = grid->rows[r].cells[column];
		unsigned n = 0;

		while (n < n_names && strcmp(cell, names[n]) != 0)
			n++;
		if (n < n_names)
			continue;
		for (n = 0; n < n_names; n++)
			while (least < width && look_alike(cell, names[n], least))
				least++;
		names[n_names++] = cell;
	}
	return least;
}

struct layout {
	int widths[PSD_GRID_COLUMNS];	 /* 0: the column is not shown */
	int fractions[PSD_GRID_COLUMNS]; /* characters from the point on */
	bool is_left_out[PSD_GRID_COLUMNS];
	int line_width;
};

/* Makes left-aligned columns narrower until the line fits, the first one first. least: width to which a column may
 * shrink; 0: that at which its cells still differ. */
static void cut_names(const struct psd_grid *grid, struct layout *layout, int most_width, int least)
{
	const bool is_terminal = psd_view_get().is_terminal;

	for (unsigned c = 0; c < grid->n_columns; c++) {
		int *const width = &layout->widths[c];
		int surplus = layout->line_width - most_width;

		if (!grid->is_left[c] || !*width || surplus <= 0 || (grid->is_whole[c] && !is_terminal))
			continue;
		const int narrowest = least ? least : least_width(grid, c, *width);

		if (surplus > *width - narrowest)
			surplus = *width > narrowest ? *width - narrowest : 0;
		*width -= surplus;
		layout->line_width -= surplus;
	}
}

static void leave_out(struct layout *layout, unsigned column)
{
	layout->line_width -= layout->widths[column] + GAP;
	layout->widths[column] = 0;
	layout->is_left_out[column] = true;
}

/* Leaves out all columns that have a worth, and takes them back while they fit, those of most worth first. */
static void choose_columns(const struct psd_grid *grid, struct layout *layout, int most_width)
{
	int widths[PSD_GRID_COLUMNS];
	unsigned most_worth = 0;

	memcpy(widths, layout->widths, sizeof(widths));
	for (unsigned c = 0; c < grid->n_columns; c++) {
		most_worth = grid->worth[c] > most_worth ? grid->worth[c] : most_worth;
		if (grid->worth[c] && widths[c])
			leave_out(layout, c);
	}
	for (unsigned worth = most_worth; worth > 0; worth--)
		for (unsigned c = 0; c < grid->n_columns; c++) {
			if (grid->worth[c] != worth || !layout->is_left_out[c] ||
			    layout->line_width + GAP + widths[c] > most_width)
				continue;
			layout->is_left_out[c] = false;
			layout->widths[c] = widths[c];
			layout->line_width += GAP + widths[c];
		}
}

/* For a very narrow terminal: names become shorter than they should, then columns go, the last one first. */
static void squeeze(const struct psd_grid *grid, struct layout *layout, int most_width)
{
	cut_names(grid, layout, most_width, LEAST_CUT);
	for (unsigned c = grid->n_columns; c-- > 1 && layout->line_width > most_width;)
		if (layout->widths[c])
			leave_out(layout, c);
}

static void measure(const struct psd_grid *grid, struct layout *layout)
{
	const struct psd_view view = psd_view_get();
	const int most_width = view.is_terminal ? view.width : PSD_GRID_WIDTH;

	layout->line_width = -GAP;
	for (unsigned c = 0; c < grid->n_columns; c++) {
		layout->fractions[c] = column_fraction(grid, c);
		layout->widths[c] = column_width(grid, c);
		layout->line_width += layout->widths[c] ? layout->widths[c] + GAP : 0;
	}
	if (view.is_wide || layout->line_width <= most_width)
		return;
	if (view.is_terminal)
		choose_columns(grid, layout, most_width);
	cut_names(grid, layout, most_width, 0);
	if (view.is_terminal)
		squeeze(grid, layout, most_width);
}

static void add_cell(struct psd_text *text, const char *cell, int width, bool is_left)
{
	const int blanks = width - psd_text_places(cell), padding = blanks > 0 ? blanks : 0;

	psd_text_add(text, "%*s%.*s%s%*s", is_left ? 0 : padding, "", cut_bytes(cell, width), cell,
		     blanks < 0 ? ".." : "", is_left ? padding + GAP : GAP, "");
}

static void end_line(struct psd_text *text, const char *style)
{
	while (text->length && text->bytes[text->length - 1] == ' ')
		text->length--;
	psd_text_add(text, "%s\n", style);
}

static void add_head(struct psd_text *text, const struct psd_grid *grid, const int widths[], unsigned which)
{
	for (unsigned c = 0; c < grid->n_columns; c++)
		if (widths[c])
			add_cell(text, grid->heads[c][which], widths[c], grid->is_left[c]);
	end_line(text, "");
}

static void add_row(struct psd_text *text, const struct psd_grid *grid, const struct layout *layout,
		    const struct psd_grid_row *row)
{
	const bool is_bold = row->is_best && psd_view_get().has_styles;

	psd_text_add(text, "%s", is_bold ? BOLD : "");
	for (unsigned c = 0; c < grid->n_columns && !row->is_gap; c++) {
		const int behind = layout->fractions[c] - fraction_places(grid, c, row->cells[c]);

		if (layout->widths[c]) {
			add_cell(text, row->cells[c], layout->widths[c] - behind, grid->is_left[c]);
			psd_text_add(text, "%*s", behind, "");
		}
	}
	end_line(text, is_bold ? PLAIN : "");
}

/* Appends words with single blanks between them. */
static void add_words(struct psd_text *text, const char *words, const char **separator)
{
	for (words += strspn(words, " "); *words; words += strspn(words, " ")) {
		const int length = (int)strcspn(words, " ");

		psd_text_add(text, "%s%.*s", *separator, length, words);
		*separator = " ";
		words += length;
	}
}

static void add_left_out(struct psd_text *text, const struct psd_grid *grid, const struct layout *layout)
{
	const char *separator = "note: left out, as the terminal is narrow (all: --wide): ";

	for (unsigned c = 0; c < grid->n_columns; c++) {
		if (!layout->is_left_out[c])
			continue;
		add_words(text, grid->heads[c][0], &separator);
		add_words(text, grid->heads[c][1], &separator);
		separator = ", ";
	}
	psd_text_add(text, "%s", *separator == ',' ? "\n" : "");
}

void psd_grid_add(struct psd_text *text, const struct psd_grid *grid)
{
	struct layout layout = {.line_width = 0};

	measure(grid, &layout);
	text->is_out_of_memory = text->is_out_of_memory || grid->is_out_of_memory;
	add_head(text, grid, layout.widths, 0);
	add_head(text, grid, layout.widths, 1);
	while (layout.line_width-- > 0)
		psd_text_add_bytes(text, "-", 1);
	psd_text_add(text, "\n");
	for (unsigned r = 0; r < grid->n_rows; r++)
		add_row(text, grid, &layout, &grid->rows[r]);
	add_left_out(text, grid, &layout);
}

void psd_grid_release(struct psd_grid *grid)
{
	free(grid->rows);
	*grid = (struct psd_grid){.n_rows = 0};
}
