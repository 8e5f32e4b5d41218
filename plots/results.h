/* Results of psd-sim and psd-run, and logs, as rows in memory: CSV with columns by name. */
#ifndef PSD_PLOTS_RESULTS_H
#define PSD_PLOTS_RESULTS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/arena.h"
#include "engine/base/error.h"

/* One file. */
struct psd_table {
	const char *path; /* borrowed */
	const char *const *names;
	unsigned n_columns;
	unsigned n_rows;
};

struct psd_row {
	const struct psd_table *table;
	const char **fields; /* one for each column of the table */
	unsigned line;
};

struct psd_results {
	struct psd_arena arena;
	struct psd_table *tables;
	unsigned n_tables;
	struct psd_row *rows; /* in the order of files and lines */
	uint32_t n_rows, rows_room;
};

/* Reads files. needed: names of columns that every file must have, separated by blanks. where: conditions
 * "COLUMN=VALUE", NULL-terminated, or NULL; rows that miss one are left out. Checks that no row of a sweep in parts
 * (psd-sim --shard) is missing. psd_results_release() releases *results, also after a failure. PSD_EFILE, PSD_EINVAL
 * with file and line, PSD_ENOMEM. */
enum psd_status psd_results_read(struct psd_results *results, const char *const paths[], unsigned n_paths,
				 const char *needed, const char *const where[], struct psd_error *err) PSD_MUST_CHECK;
/* Checks that a file has the column that the value of an option names. PSD_EINVAL with the nearest one, PSD_ENOMEM. */
enum psd_status psd_results_check_column(struct psd_results *results, const char *option, const char *column,
					 struct psd_error *err) PSD_MUST_CHECK;
/* Drops the rows that miss a condition of `where`. PSD_EINVAL: no row is left. */
enum psd_status psd_results_keep(struct psd_results *results, const char *const where[],
				 struct psd_error *err) PSD_MUST_CHECK;
void psd_results_release(struct psd_results *results);

/* Checks that columns of numbers have numbers or nothing, also columns that a plot does not use. Called after the
 * plot's own checks, which know ranges. PSD_EINVAL with file and line. */
enum psd_status psd_results_check_numbers(const struct psd_results *results, struct psd_error *err) PSD_MUST_CHECK;

/* The same for one row. */
enum psd_status psd_row_check_numbers(const struct psd_row *row, struct psd_error *err) PSD_MUST_CHECK;

/* Returns a field of the row; "" if the file lacks the column. */
const char *psd_row_text(const struct psd_row *row, const char *column);
bool psd_row_has(const struct psd_row *row, const char *column);
/* Fills *err with the place of the row and the message. Returns PSD_EINVAL. */
enum psd_status psd_row_refuse(const struct psd_row *row, struct psd_error *err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Reads a field that must be a number above 0. may_lack: it may be empty; then *value is 0. PSD_EINVAL. */
enum psd_status psd_row_read_positive(const struct psd_row *row, const char *column, bool may_lack, double *value,
				      struct psd_error *err) PSD_MUST_CHECK;
/* Sets *is_fitted: a constant was fitted to the published value of the row. PSD_EINVAL: neither yes, no nor empty. */
enum psd_status psd_row_read_fitted(const struct psd_row *row, bool *is_fitted, struct psd_error *err) PSD_MUST_CHECK;
/* True if a program that executes wrote the row: psd-run. */
bool psd_row_is_executed(const struct psd_row *row);

/* Reads digits with a decimal point and an exponent, no sign, up to 1e18. */
bool psd_results_read_number(const char *text, double *value);

#endif
