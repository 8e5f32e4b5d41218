/* Reads comma-separated files that people write by hand. Lines that begin with '#' are comments, blank lines are
 * skipped, and cells are trimmed. A cell may be quoted as by psd_text_add_csv(), and must not contain a line break. A
 * file that contains a byte 0 is an error. Private to the engine. */
#ifndef PSD_CSV_H
#define PSD_CSV_H

#include <stdbool.h>

#include "engine/base/error.h"

enum { PSD_CSV_CELLS_MAX = 64 };

struct psd_csv {
	/* place of the current line; its path is borrowed from the caller of psd_csv_open() */
	struct psd_place at;
	char *text;	     /* contents of the whole file, into which the cells point */
	char *rest;	     /* part of the contents that has not been read yet */
	const char *comment; /* comment of the current line, without '#'; NULL: the line is not a comment */
	const char *cells[PSD_CSV_CELLS_MAX];
	unsigned n_cells;
};

/* Reads the file into memory; psd_csv_close() releases it. PSD_EFILE, PSD_EINVAL, PSD_ENOMEM. */
enum psd_status psd_csv_open(struct psd_csv *csv, const char *path, struct psd_error *err) PSD_MUST_CHECK;
/* Reads the next line that is not blank; *has_line is false if there is none. PSD_EINVAL with the place of the
 * line. */
enum psd_status psd_csv_next(struct psd_csv *csv, bool *has_line, struct psd_error *err) PSD_MUST_CHECK;
/* Checks that the cells of the current line are the names in `header`, such as "a,b,c". PSD_EINVAL: they differ. */
enum psd_status psd_csv_check_header(const struct psd_csv *csv, const char *header,
				     struct psd_error *err) PSD_MUST_CHECK;
void psd_csv_close(struct psd_csv *csv);

#endif
