/* Texts of plots: names of quantities, text as gnuplot reads it, and the width of text. */
#ifndef PSD_PLOTS_WORDS_H
#define PSD_PLOTS_WORDS_H

#include <stdbool.h>

#include "engine/base/arena.h"
#include "engine/base/text.h"

enum { PSD_WORDS_MAX = 64 };

/* Least and greatest value of a quantity. Values of all zeros are empty. */
struct psd_range {
	bool is_there;
	double least, most;
};
void psd_range_add(struct psd_range *range, double value);

bool psd_words_ends_with(const char *text, const char *end);
/* Returns the width of a text in multiples of the font size. The font is DejaVu Sans; Helvetica and Arial are
 * narrower. */
double psd_words_width(const char *text);
/* Returns a text of at most `width`: the text itself if it fits, else its beginning and its end with "..." between.
 * Returns `text` if memory runs out. */
const char *psd_words_cut(struct psd_arena *arena, const char *text, double width);

/* Appends a text as gnuplot's expression of a string. No byte of the text is a command, and XML accepts it. */
void psd_words_add_quoted(struct psd_text *text, const char *string);
/* Appends a text with the characters that XML and HTML keep for themselves replaced. */
void psd_words_add_escaped(struct psd_text *text, const char *string);

/* Write a quantity to `text` and return it. */
char *psd_words_bandwidth(double bps, char text[PSD_WORDS_MAX]);	  /* writes 10 Gb/s, 200 Mb/s */
char *psd_words_bytes(double bytes, char text[PSD_WORDS_MAX]);		  /* writes 4MiB, 2MB, 100B */
char *psd_words_count(unsigned long n, const char *one, const char *many, /* writes 1 worker, 2 workers */
		      char text[PSD_WORDS_MAX]);
/* Reads a size such as 64KiB or 2 MB, which has a unit. */
bool psd_words_read_bytes(const char *text, double *bytes);

/* Returns a title in which the bandwidth is that of the points: --set changes the points, not the title. */
const char *psd_words_title_at(struct psd_arena *arena, const char *title, const struct psd_range *bps);

/* Returns the median of n values, at least one, which it sorts. */
double psd_words_median(double *values, unsigned n);

#endif
