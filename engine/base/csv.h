/* Reads comma-separated files that people write by hand: '#' lines are comments, blank lines are skipped, cells are
 * trimmed. Private to the engine. A cell may be quoted as psd_text_add_csv() does, and has no line break. Refuses zero
 * bytes. */
#ifndef PSD_CSV_H
#define PSD_CSV_H

#include <stdbool.h>

#include "engine/base/error.h"

enum { PSD_CSV_CELLS_MAX = 16 };

struct psd_csv {
	struct psd_place at; /* place of the current line; path borrowed from the caller of psd_csv_open() */
	char *text;	     /* contents of the whole file, into which cells point */
	char *rest;	     /* rest of the contents, not read yet */
	const char *comment; /* comment of the current line, behind '#'; NULL: none */
	const char *cells[PSD_CSV_CELLS_MAX];
	unsigned n_cells;
};

/* Reads the file; psd_csv_close() releases it. PSD_EFILE, PSD_EINVAL, PSD_ENOMEM. */
enum psd_status psd_csv_open(struct psd_csv *csv, const char *path, struct psd_error *err) PSD_MUST_CHECK;
/* Reads the next line that is not blank; *has_line is false at the end. PSD_EINVAL with the line. */
enum psd_status psd_csv_next(struct psd_csv *csv, bool *has_line, struct psd_error *err) PSD_MUST_CHECK;
/* Checks that the current line's cells are the names in `header`, "a,b,c". PSD_EINVAL: they are not. */
enum psd_status psd_csv_check_header(const struct psd_csv *csv, const char *header,
				     struct psd_error *err) PSD_MUST_CHECK;
void psd_csv_close(struct psd_csv *csv);

#endif
