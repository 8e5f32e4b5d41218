/* Aligned columns of text for people. Widths come from the content; a column without any content is left out. */
#ifndef PSD_SIM_GRID_H
#define PSD_SIM_GRID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "engine/error.h"

enum {
	PSD_GRID_COLUMNS = 16,
	PSD_GRID_CELL = 96,  /* bytes, longer content is cut */
	PSD_GRID_WIDTH = 120 /* characters of a line; the first left-aligned column gives way */
};

struct psd_grid_row {
	char cells[PSD_GRID_COLUMNS][PSD_GRID_CELL];
	bool is_gap; /* an empty line */
};

struct psd_grid {
	const char *heads[PSD_GRID_COLUMNS][2]; /* two lines, borrowed */
	bool is_left[PSD_GRID_COLUMNS];
	unsigned n_columns;
	struct psd_grid_row *rows;
	unsigned n_rows;
	unsigned rows_capacity;
	bool is_out_of_memory; /* found out by psd_grid_write() */
};

/* Adds a column; returns its number. upper, lower: the two lines of its head, borrowed for the life of the grid. */
unsigned psd_grid_add_column(struct psd_grid *grid, const char *upper, const char *lower, bool is_left);
void psd_grid_add_row(struct psd_grid *grid);
/* An empty line, unless the last row is one or there is none yet. */
void psd_grid_add_gap(struct psd_grid *grid);
/* Sets a cell of the newest row. Control characters become '?', so that no file drives the terminal. */
void psd_grid_set(struct psd_grid *grid, unsigned column, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Writes heads, a rule and rows; write errors stay in the stream's flag. PSD_ENOMEM. */
enum psd_status psd_grid_write(FILE *out, const struct psd_grid *grid, struct psd_error *err) PSD_MUST_CHECK;
void psd_grid_release(struct psd_grid *grid);

/* Writes text with control characters as '?'. */
void psd_grid_write_text(FILE *out, const char *text);

/* A sentence put together in pieces; what does not fit is cut. */
struct psd_sentence {
	char text[1024];
	size_t length;
};
void psd_sentence_add(struct psd_sentence *sentence, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Writes it in lines of at most PSD_GRID_WIDTH characters; further lines begin with `indent` blanks. */
void psd_sentence_write(FILE *out, const struct psd_sentence *sentence, int indent);

/* Decimals that show `value` (> 0) with three significant digits, from 0 to most. */
int psd_grid_decimals(double value, int most);

#endif
