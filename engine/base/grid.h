/* Table of aligned columns as text for people. The widths of the columns follow from their cells. A column without any
 * text is omitted. */
#ifndef PSD_GRID_H
#define PSD_GRID_H

#include <stdbool.h>

#include "engine/base/text.h"

enum {
	PSD_GRID_COLUMNS = 40,
	PSD_GRID_CELL = 96, /* size of a cell, bytes, with the zero at its end; longer texts are cut */
	/* number of significant digits of a number; all digits before the decimal point are shown */
	PSD_GRID_DIGITS = 4,
	/* Largest length of a line, characters, unless standard output is a terminal (view.h). If lines are longer,
	 * left-aligned columns are made narrower, the first one first. */
	PSD_GRID_WIDTH = 120
};

struct psd_grid_row {
	char cells[PSD_GRID_COLUMNS][PSD_GRID_CELL];
	bool is_gap;  /* this row is an empty line */
	bool is_best; /* this row is bold on a terminal */
};

struct psd_grid {
	const char *heads[PSD_GRID_COLUMNS][2]; /* the two lines of each column's head, borrowed */
	bool is_left[PSD_GRID_COLUMNS];
	/* cells of the column are numbers, and their decimal points are aligned */
	bool is_number[PSD_GRID_COLUMNS];
	/* Worth of a column on a terminal that is too narrow: columns with the smallest worth are left out first. 0:
	 * the column is shown in any case, and names are cut instead. */
	unsigned worth[PSD_GRID_COLUMNS];
	bool is_whole[PSD_GRID_COLUMNS]; /* cells are cut on a narrow terminal only */
	unsigned n_columns;
	struct psd_grid_row *rows;
	unsigned n_rows;
	unsigned rows_capacity;
	bool is_out_of_memory; /* memory ran out; psd_grid_add() then marks its text as incomplete */
};

/* Adds a column on the right and returns its number. upper, lower: the two lines of its head, borrowed as long as the
 * grid exists. is_left: its cells are aligned to the left; false: to the right. */
unsigned psd_grid_add_column(struct psd_grid *grid, const char *upper, const char *lower, bool is_left);
void psd_grid_add_row(struct psd_grid *grid);
/* Adds an empty line as a row. Does nothing if there are no rows yet, or if the last row is empty. */
void psd_grid_add_gap(struct psd_grid *grid);
/* Sets a cell of the newest row. Control characters are replaced by '?', so that a name from a file cannot control the
 * terminal. */
void psd_grid_set(struct psd_grid *grid, unsigned column, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Sets a cell of the newest row to a number with at most most_decimals decimals. A value that rounds to 0 is written
 * as 0. */
void psd_grid_set_number(struct psd_grid *grid, unsigned column, double value, int most_decimals);
/* Makes the newest row bold on a terminal. */
void psd_grid_set_best(struct psd_grid *grid);
/* Appends the whole table to a text: heads, a rule and rows. On a terminal it fits the view (view.h); a note names the
 * columns that are left out. */
void psd_grid_add(struct psd_text *text, const struct psd_grid *grid);
void psd_grid_release(struct psd_grid *grid);

#endif
