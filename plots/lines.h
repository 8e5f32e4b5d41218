/* Lines over a column of results: speedup, efficiency, seconds or throughput over workers, bandwidth, bucket size or
 * any other column. One colour for each system, one panel for eight lines at most. */
#ifndef PSD_PLOTS_LINES_H
#define PSD_PLOTS_LINES_H

#include "plots/figure.h"
#include "plots/measure.h"

/* True if a list of names, separated by commas, has this one, or is NULL. */
bool psd_lines_has_system(const char *list, const char *name);

struct psd_lines {
	enum psd_measure measure;
	const char *over;     /* column of the x axis; NULL: the one that varies */
	const char *panels;   /* column with a panel for each value; NULL: as the number of lines wants it */
	const char *relative; /* system whose values are 1, or "best": the best of each line; NULL: plain values */
	const char *systems;  /* names of the systems to draw, separated by commas; NULL: all */
	bool is_linear;	      /* axes of a speedup are linear instead of powers of two */
};

/* Fills the figure. PSD_EINVAL: there is nothing to draw, or more than a plot can show; the message says what fits.
 * PSD_ENOMEM. */
enum psd_status psd_lines_fill(struct psd_figure *figure, struct psd_results *results, const struct psd_lines *lines,
			       struct psd_error *err) PSD_MUST_CHECK;

#endif
