/* Measures and writes columns. Counts one place for each UTF-8 character. */
#include "engine/base/grid.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GAP = 2, NARROWEST = 12 };

unsigned psd_grid_add_column(struct psd_grid *grid, const char *upper, const char *lower, bool is_left)
{
	grid->heads[grid->n_columns][0] = upper;
	grid->heads[grid->n_columns][1] = lower;
	grid->is_left[grid->n_columns] = is_left;
	return grid->n_columns++;
}

void psd_grid_add_row(struct psd_grid *grid)
{
	if (grid->n_rows == grid->rows_capacity) {
		const unsigned wanted = grid->rows_capacity ? 2 * grid->rows_capacity : 32;
		struct psd_grid_row *grown = realloc(grid->rows, wanted * sizeof(*grown));

		if (!grown) {
			grid->is_out_of_memory = true;
			return;
		}
		grid->rows = grown;
		grid->rows_capacity = wanted;
	}
	memset(&grid->rows[grid->n_rows++], 0, sizeof(*grid->rows));
}

void psd_grid_add_gap(struct psd_grid *grid)
{
	if (!grid->n_rows || grid->rows[grid->n_rows - 1].is_gap)
		return;
	psd_grid_add_row(grid);
	grid->rows[grid->n_rows - 1].is_gap = !grid->is_out_of_memory;
}

/* Takes the bytes of a character that was cut in the middle off the end. */
static void drop_partial_character(char *text)
{
	size_t end = strlen(text), start = end;
	unsigned char lead;

	while (start > 0 && ((unsigned char)text[start - 1] & 0xc0) == 0x80)
		start--;
	if (start == 0)
		return;
	lead = (unsigned char)text[start - 1];
	if (lead >= 0xc0 && end - start < (lead < 0xe0 ? 1u : lead < 0xf0 ? 2u : 3u))
		text[start - 1] = '\0';
}

void psd_grid_set(struct psd_grid *grid, unsigned column, const char *format, ...)
{
	va_list values;
	char *cell;

	if (grid->is_out_of_memory || !grid->n_rows)
		return;
	cell = grid->rows[grid->n_rows - 1].cells[column];
	va_start(values, format);
	if (vsnprintf(cell, PSD_GRID_CELL, format, values) >= PSD_GRID_CELL)
		drop_partial_character(cell);
	va_end(values);
	psd_text_make_plain(cell);
}

static int wider(int width, const char *text)
{
	return psd_text_places(text) > width ? psd_text_places(text) : width;
}

/* 0 for a column that no row fills. */
static int column_width(const struct psd_grid *grid, unsigned column)
{
	int width = 0;

	for (unsigned r = 0; r < grid->n_rows; r++)
		width = wider(width, grid->rows[r].cells[column]);
	return width ? wider(wider(width, grid->heads[column][0]), grid->heads[column][1]) : 0;
}

/* Returns the width of a whole line. */
static int measure(const struct psd_grid *grid, int widths[PSD_GRID_COLUMNS])
{
	int line_width = -GAP;

	for (unsigned c = 0; c < grid->n_columns; c++) {
		widths[c] = column_width(grid, c);
		line_width += widths[c] ? widths[c] + GAP : 0;
	}
	for (unsigned c = 0; c < grid->n_columns; c++) {
		if (!grid->is_left[c] || widths[c] <= NARROWEST || line_width <= PSD_GRID_WIDTH)
			continue;
		const int surplus = line_width - PSD_GRID_WIDTH;
		const int less = surplus < widths[c] - NARROWEST ? surplus : widths[c] - NARROWEST;

		widths[c] -= less;
		line_width -= less;
	}
	return line_width;
}

/* A line is put together with its padding, then written without blanks at its end. */
struct line {
	char text[PSD_GRID_COLUMNS * (PSD_GRID_CELL + GAP) + 1];
	size_t length;
};

static void append(struct line *line, const char *text, size_t length)
{
	if (length > sizeof(line->text) - line->length)
		length = sizeof(line->text) - line->length;
	memcpy(line->text + line->length, text, length);
	line->length += length;
}

static void append_blanks(struct line *line, int n_blanks)
{
	while (n_blanks-- > 0)
		append(line, " ", 1);
}

/* Bytes of the first n_places characters. */
static size_t bytes_of(const char *text, int n_places)
{
	size_t n_bytes = 0;

	while (text[n_bytes] && (n_places > 0 || ((unsigned char)text[n_bytes] & 0xc0) == 0x80))
		n_places -= ((unsigned char)text[n_bytes++] & 0xc0) != 0x80;
	return n_bytes;
}

static void append_cell(struct line *line, const char *text, int width, bool is_left)
{
	const int blanks = width - psd_text_places(text);

	if (line->length)
		append_blanks(line, GAP);
	if (!is_left)
		append_blanks(line, blanks);
	if (blanks < 0) {
		append(line, text, bytes_of(text, width - 2));
		append(line, "..", 2);
	} else {
		append(line, text, strlen(text));
	}
	if (is_left)
		append_blanks(line, blanks);
}

static void add_line(struct psd_text *text, struct line *line)
{
	while (line->length && line->text[line->length - 1] == ' ')
		line->length--;
	psd_text_add_bytes(text, line->text, line->length);
	psd_text_add(text, "\n");
}

static void add_head(struct psd_text *text, const struct psd_grid *grid, const int widths[], unsigned which)
{
	struct line line = {.length = 0};

	for (unsigned c = 0; c < grid->n_columns; c++)
		if (widths[c])
			append_cell(&line, grid->heads[c][which], widths[c], grid->is_left[c]);
	add_line(text, &line);
}

static void add_row(struct psd_text *text, const struct psd_grid *grid, const int widths[],
		    const struct psd_grid_row *row)
{
	struct line line = {.length = 0};

	for (unsigned c = 0; c < grid->n_columns && !row->is_gap; c++)
		if (widths[c])
			append_cell(&line, row->cells[c], widths[c], grid->is_left[c]);
	add_line(text, &line);
}

void psd_grid_add(struct psd_text *text, const struct psd_grid *grid)
{
	int widths[PSD_GRID_COLUMNS] = {0};
	int line_width = measure(grid, widths);

	text->is_out_of_memory = text->is_out_of_memory || grid->is_out_of_memory;
	add_head(text, grid, widths, 0);
	add_head(text, grid, widths, 1);
	while (line_width-- > 0)
		psd_text_add(text, "-");
	psd_text_add(text, "\n");
	for (unsigned r = 0; r < grid->n_rows; r++)
		add_row(text, grid, widths, &grid->rows[r]);
}

void psd_grid_release(struct psd_grid *grid)
{
	free(grid->rows);
	*grid = (struct psd_grid){.n_rows = 0};
}

int psd_grid_decimals(double value, int most)
{
	const int decimals = value > 0.0 && isfinite(value) ? 2 - (int)floor(log10(value)) : 0;

	return decimals < 0 ? 0 : decimals > most ? most : decimals;
}
