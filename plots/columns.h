/* Columns by which rows of results differ: the words of names, panels and axes. */
#ifndef PSD_PLOTS_COLUMNS_H
#define PSD_PLOTS_COLUMNS_H

#include "plots/figure.h"
#include "plots/results.h"

enum { PSD_NAME_COLUMNS_MAX = 64 };

/* Columns that tell rows of one system apart. */
struct psd_name_columns {
	const char *columns[PSD_NAME_COLUMNS_MAX];
	unsigned n;
	/* lengths of the beginning and the end that all titles of scenarios share */
	unsigned head, tail;
	const char **keys; /* one for each row: rows with equal keys have the same system and columns */
};

/* Finds them. over: the column of the x axis, which is not one of them. PSD_ENOMEM. */
enum psd_status psd_name_columns_find(struct psd_name_columns *names, struct psd_results *results, const char *over,
				      struct psd_error *err) PSD_MUST_CHECK;
/* True if a column, by its number, is a key that the results sweep. */
bool psd_columns_is_swept(const struct psd_table *table, unsigned column);
/* Returns the number of different values of a column. */
unsigned psd_columns_count(const struct psd_results *results, const char *column);
/* Returns the value of a column for people: 10 Gb/s, 4MiB, 8 workers; "" if the field is empty. */
const char *psd_columns_value(struct psd_figure *figure, const struct psd_name_columns *names,
			      const struct psd_row *row, const char *column);
/* Returns a number of a column for people, by the unit at the end of the column's name: 10 Gb/s, 4MiB, 30 us, 8. */
const char *psd_columns_quantity(struct psd_figure *figure, const char *column, double value);
/* Returns the words for a column on an axis. */
const char *psd_columns_label(struct psd_figure *figure, const char *column);
/* Returns the name of a row without its system: the values of the columns that vary among the rows of the system, or of
 * all systems with is_full, but for the column `except` (NULL: none). */
const char *psd_columns_name(struct psd_figure *figure, const struct psd_name_columns *names,
			     const struct psd_results *results, const struct psd_row *row, bool is_full,
			     const char *except);

/* Returns the title of the rows: that of one scenario with the bandwidth of its points, of several the parts that they
 * share, or `other` if they share none. */
const char *psd_columns_title(struct psd_figure *figure, const struct psd_name_columns *names,
			      const struct psd_results *results, const char *other);

#endif
