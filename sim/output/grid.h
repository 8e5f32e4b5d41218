/* Text for people, written to a FILE: titles and sentences. */
#ifndef PSD_SIM_GRID_H
#define PSD_SIM_GRID_H

#include <stdio.h>

#include "engine/base/error.h"
#include "engine/base/grid.h"

/* Writes text with control characters replaced by '?'. */
void psd_grid_write_text(FILE *out, const char *text);

/* Writes a sentence in lines of at most PSD_GRID_WIDTH characters, then releases `sentence`. All lines except the first
 * begin with `indent` blanks. */
void psd_sentence_write(FILE *out, struct psd_text *sentence, int indent);

#endif
