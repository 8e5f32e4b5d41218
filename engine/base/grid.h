/* Aligned columns of text for people. Widths follow from the content; a column without any content is left out. */
#ifndef PSD_GRID_H
#define PSD_GRID_H

#include <stdbool.h>

#include "engine/base/text.h"

enum {
	PSD_GRID_COLUMNS = 28,
	PSD_GRID_CELL = 96,  /* largest length of a cell, bytes; longer contents are cut */
	PSD_GRID_DIGITS = 4, /* significant digits of a number; digits before the point are never cut */
	PSD_GRID_WIDTH = 120 /* characters of a line; left-aligned columns become narrower, the first one first */
};

struct psd_grid_row {
	char cells[PSD_GRID_COLUMNS][PSD_GRID_CELL];
	bool is_gap; /* the row is an empty line */
};

struct psd_grid {
	const char *heads[PSD_GRID_COLUMNS][2]; /* head of each column in two lines, borrowed */
	bool is_left[PSD_GRID_COLUMNS];
	bool is_number[PSD_GRID_COLUMNS]; /* cells of the column are numbers, with aligned decimal points */
	unsigned n_columns;
	struct psd_grid_row *rows;
	unsigned n_rows;
	unsigned rows_capacity;
	bool is_out_of_memory; /* memory ran out; psd_grid_add() passes it on to the text */
};

/* Adds a column; returns its number. upper, lower: the two lines of its head, borrowed for the life of the grid. */
unsigned psd_grid_add_column(struct psd_grid *grid, const char *upper, const char *lower, bool is_left);
void psd_grid_add_row(struct psd_grid *grid);
/* Adds an empty line, unless the last row is one or there is none yet. */
void psd_grid_add_gap(struct psd_grid *grid);
/* Sets a cell of the newest row. Control characters become '?', so that no file controls the terminal. */
void psd_grid_set(struct psd_grid *grid, unsigned column, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Sets a cell of the newest row to a number with at most most_decimals decimals; a value that rounds to 0 is 0. */
void psd_grid_set_number(struct psd_grid *grid, unsigned column, double value, int most_decimals);
/* Adds the whole grid to a text: heads, a rule and rows. */
void psd_grid_add(struct psd_text *text, const struct psd_grid *grid);
void psd_grid_release(struct psd_grid *grid);

#endif
