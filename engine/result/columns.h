/* The columns of results, once: names, units and order, for CSV and JSON, for people's tables and for the reference in
 * engine/result/README.md. In CSV names and order are a promise: a new column goes behind the last. */
#ifndef PSD_COLUMNS_H
#define PSD_COLUMNS_H

#include "engine/base/reference.h"
#include "engine/base/text.h"
#include "engine/result/result.h"

/* Value of a column in a result; texts are borrowed. */
struct psd_field {
	const char *name;
	const char *text; /* NULL: a number or a flag, or absent words */
	struct psd_result_value number;
	int digits;   /* significant ones; 0: a whole number */
	bool is_flag; /* the number is 1 for yes, 0 for no */
	bool is_words;
};
/* The fields of a result in the order of the columns; false behind the last. */
bool psd_result_field(const struct psd_result *result, unsigned column, struct psd_field *field);

/* Refused results have no row. CSV by RFC 4180, but with "\n" line ends; an absent value is empty. */
void psd_columns_add_csv_head(struct psd_text *text);
void psd_columns_add_csv(struct psd_text *text, const struct psd_result *result);
/* A table for people, point by point where there are several. results: systems outermost, as in a report. */
void psd_columns_add_table(struct psd_text *text, const struct psd_result results[], unsigned n_systems,
			   unsigned n_points);
/* Appends the meaning of each column of the CSV. PSD_EINVAL: no column matches the topic. */
enum psd_status psd_columns_add_reference(struct psd_text *text, const struct psd_reference *how,
					  struct psd_error *err) PSD_MUST_CHECK;

#endif
