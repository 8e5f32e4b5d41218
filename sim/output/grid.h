/* Writes text for people to a file: titles and sentences. */
#ifndef PSD_SIM_GRID_H
#define PSD_SIM_GRID_H

#include <stdio.h>

#include "engine/base/error.h"
#include "engine/base/grid.h"

/* Writes text; control characters are replaced by '?'. */
void psd_grid_write_text(FILE *out, const char *text);

/* Writes a sentence in lines of at most PSD_GRID_WIDTH characters, and releases `sentence`. The first line begins at
 * the left; the others begin with `indent` blanks. */
void psd_sentence_write(FILE *out, struct psd_text *sentence, int indent);

#endif
