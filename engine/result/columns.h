/* The columns of results: name, unit and order of each. CSV, JSON, tables for people and engine/result/README.md are
 * made from them. Names and order in CSV never change: a new column is added behind the last. */
#ifndef PSD_COLUMNS_H
#define PSD_COLUMNS_H

#include "engine/base/reference.h"
#include "engine/base/text.h"
#include "engine/result/result.h"

/* Value of one column of a result; strings are borrowed. */
struct psd_field {
	const char *name;
	/* text of the column; NULL: the value is a number or flag, or it is a text that is absent */
	const char *text;
	struct psd_result_value number;
	int digits;   /* number of significant digits; 0: the number is whole */
	bool is_flag; /* the value is a flag: 1 means yes, 0 no */
	bool is_words;
};
/* Sets *field to the value of a column, counted from 0. Returns false if there are `column` columns or fewer. */
bool psd_result_field(const struct psd_result *result, unsigned column, struct psd_field *field);

/* Append a line of column names, or a line with the values of a result, as CSV by RFC 4180; lines end with "\n". An
 * absent value is an empty field. example: a result with the same swept keys as all rows of the file; NULL: no key is
 * swept. For a refused result (is_refused) no line is appended. */
void psd_columns_add_csv_head(struct psd_text *text, const struct psd_result *example);
void psd_columns_add_csv(struct psd_text *text, const struct psd_result *result);
/* Appends a table for people, with a block of rows for each point of the sweep. results[s * n_points + p]: system s at
 * point p. */
void psd_columns_add_table(struct psd_text *text, const struct psd_result results[], unsigned n_systems,
			   unsigned n_points);
/* Appends the explanations of the CSV's columns that match how->topic. PSD_EINVAL: no column matches. */
enum psd_status psd_columns_add_reference(struct psd_text *text, const struct psd_reference *how,
					  struct psd_error *err) PSD_MUST_CHECK;

#endif
