/* Text for people into a stream: tables, titles, sentences. */
#ifndef PSD_SIM_GRID_H
#define PSD_SIM_GRID_H

#include <stdio.h>

#include "engine/base/error.h"
#include "engine/base/grid.h"

/* Writes heads, a rule and rows; write errors stay in the stream's flag. PSD_ENOMEM. */
enum psd_status psd_grid_write(FILE *out, const struct psd_grid *grid, struct psd_error *err) PSD_MUST_CHECK;

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

#endif
