/* Layout of text for people on standard output. On a terminal lines fit its width, and notes are dim and appear once.
 * Elsewhere lines are as long as they are written, and nothing has a style. This module does not print. */
#ifndef PSD_VIEW_H
#define PSD_VIEW_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/text.h"

struct psd_view {
	bool is_terminal; /* lines have at most `width` characters */
	bool has_styles;  /* text may be bold or dim */
	bool is_wide;	  /* tables show all columns, also those that do not fit */
	int width;	  /* length of the longest line, characters; only on a terminal */
};

/* Sets the view of this process. Without it nothing is a terminal. */
void psd_view_set(struct psd_view view);
/* Sets the view from standard output and its environment: styles need a terminal, `NO_COLOR` and TERM=dumb forbid
 * them. */
void psd_view_find(bool is_wide);
struct psd_view psd_view_get(void);
/* Returns the longest line of text, characters: `most`, or the width of a narrower terminal. */
int psd_view_width(int most);

/* Text that is fitted to the view's terminal, line by line. A fitter of all zeros is new. */
struct psd_fitter {
	struct psd_text line;  /* begin of a line whose end is still missing */
	struct psd_text note;  /* note whose end is still missing, with a newline behind each line */
	struct psd_text notes; /* all notes so far, a NUL byte behind each */
};

/* Appends bytes to `out`, whole lines only; the rest waits for its end. A line that is too long continues below, with
 * an indent, unless the view is wide. A line of `note: ` and the indented lines behind it are dim; a note that was
 * there before is left out. */
void psd_fitter_add(struct psd_fitter *fitter, struct psd_text *out, const char *bytes, size_t length);
/* Appends the text that still waits for its end, an incomplete line or note, and releases the fitter. */
void psd_fitter_end(struct psd_fitter *fitter, struct psd_text *out);
/* Fits a whole text, if standard output is a terminal. */
void psd_view_fit(struct psd_text *text);

#endif
