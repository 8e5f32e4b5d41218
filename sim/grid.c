/* Measures and writes columns. Counts one place for each UTF-8 character. */
#include "sim/grid.h"

#include <math.h>
#include <stdarg.h>
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

static bool is_control(char c)
{
	return (unsigned char)c < 0x20 || c == 0x7f;
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
	for (; *cell; cell++)
		if (is_control(*cell))
			*cell = '?';
}

static int places(const char *text)
{
	int n_places = 0;

	for (; *text; text++)
		n_places += ((unsigned char)*text & 0xc0) != 0x80;
	return n_places;
}

static int wider(int width, const char *text)
{
	return places(text) > width ? places(text) : width;
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
	const int blanks = width - places(text);

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

static void write_line(FILE *out, struct line *line)
{
	while (line->length && line->text[line->length - 1] == ' ')
		line->length--;
	fwrite(line->text, 1, line->length, out);
	fputc('\n', out);
}

static void write_head(FILE *out, const struct psd_grid *grid, const int widths[], unsigned which)
{
	struct line line = {.length = 0};

	for (unsigned c = 0; c < grid->n_columns; c++)
		if (widths[c])
			append_cell(&line, grid->heads[c][which], widths[c], grid->is_left[c]);
	write_line(out, &line);
}

static void write_row(FILE *out, const struct psd_grid *grid, const int widths[], const struct psd_grid_row *row)
{
	struct line line = {.length = 0};

	for (unsigned c = 0; c < grid->n_columns && !row->is_gap; c++)
		if (widths[c])
			append_cell(&line, row->cells[c], widths[c], grid->is_left[c]);
	write_line(out, &line);
}

enum psd_status psd_grid_write(FILE *out, const struct psd_grid *grid, struct psd_error *err)
{
	int widths[PSD_GRID_COLUMNS] = {0};
	int line_width;

	if (grid->is_out_of_memory)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a table");
	line_width = measure(grid, widths);
	write_head(out, grid, widths, 0);
	write_head(out, grid, widths, 1);
	while (line_width-- > 0)
		fputc('-', out);
	fputc('\n', out);
	for (unsigned r = 0; r < grid->n_rows; r++)
		write_row(out, grid, widths, &grid->rows[r]);
	return PSD_OK;
}

void psd_grid_release(struct psd_grid *grid)
{
	free(grid->rows);
	*grid = (struct psd_grid){.n_rows = 0};
}

void psd_grid_write_text(FILE *out, const char *text)
{
	for (; *text; text++)
		fputc(is_control(*text) ? '?' : *text, out);
}

void psd_sentence_add(struct psd_sentence *sentence, const char *format, ...)
{
	const size_t room = sizeof(sentence->text) - sentence->length;
	va_list values;
	int n_bytes;

	va_start(values, format);
	n_bytes = vsnprintf(sentence->text + sentence->length, room, format, values);
	va_end(values);
	if (n_bytes < 0)
		return;
	sentence->length += (size_t)n_bytes < room ? (size_t)n_bytes : room - 1;
}

void psd_sentence_write(FILE *out, const struct psd_sentence *sentence, int indent)
{
	const char *word = sentence->text;
	int column = 0;

	while (*word) {
		const size_t n_blanks = strspn(word, " ");
		size_t n_bytes = strcspn(word + n_blanks, " ");
		char text[sizeof(sentence->text)];

		if (!strncmp(word + n_blanks + n_bytes, " %", 2)) /* stays with its figure */
			n_bytes += 1 + strcspn(word + n_blanks + n_bytes + 1, " ");
		snprintf(text, sizeof(text), "%.*s", (int)n_bytes, word + n_blanks);
		if (column && column + (int)n_blanks + places(text) > PSD_GRID_WIDTH) {
			fprintf(out, "\n%*s", indent, "");
			column = indent;
		} else {
			fprintf(out, "%*s", (int)n_blanks, "");
			column += (int)n_blanks;
		}
		psd_grid_write_text(out, text);
		column += places(text);
		word += n_blanks + n_bytes;
	}
	fputc('\n', out);
}

int psd_grid_decimals(double value, int most)
{
	const int decimals = value > 0.0 && isfinite(value) ? 2 - (int)floor(log10(value)) : 0;

	return decimals < 0 ? 0 : decimals > most ? most : decimals;
}
