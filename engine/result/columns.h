/* The columns of results, once: names, units and order, for CSV and JSON, for people's tables and for the reference in
 * engine/result/README.md. In CSV names and order are a promise: a new column goes behind the last. */
#ifndef PSD_COLUMNS_H
#define PSD_COLUMNS_H

#include "engine/base/reference.h"
#include "engine/base/text.h"
#include "engine/result/result.h"

/* Value of one column in a result; texts are borrowed. */
struct psd_field {
	const char *name;
	const char *text; /* text of the column; NULL: it is a number or a flag, or absent words */
	struct psd_result_value number;
	int digits;   /* number of significant digits; 0: a whole number */
	bool is_flag; /* the number is 1 for yes, 0 for no */
	bool is_words;
};
/* Fills in the value of a column, counted in their order; false behind the last column. */
bool psd_result_field(const struct psd_result *result, unsigned column, struct psd_field *field);

/* Add the head and a row of CSV by RFC 4180, but with "\n" line ends; an absent value is empty. A refused result has no
 * row. */
void psd_columns_add_csv_head(struct psd_text *text);
void psd_columns_add_csv(struct psd_text *text, const struct psd_result *result);
/* Adds a table for people, one block per point if there are several. results: systems outermost, as in a report. */
void psd_columns_add_table(struct psd_text *text, const struct psd_result results[], unsigned n_systems,
			   unsigned n_points);
/* Appends the meaning of each column of the CSV. PSD_EINVAL: no column matches the topic. */
enum psd_status psd_columns_add_reference(struct psd_text *text, const struct psd_reference *how,
					  struct psd_error *err) PSD_MUST_CHECK;

#endif
