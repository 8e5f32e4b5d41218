/* Timelines of traces. */
#ifndef PSD_PLOTS_TIMELINE_H
#define PSD_PLOTS_TIMELINE_H

#include "plots/figure.h"
#include "plots/trace.h"

struct psd_timeline {
	const char *workers; /* list such as 0-3 or 0,2,7; NULL: the first 4 */
	int64_t iteration;   /* the only one that is drawn; -1: all */
	double span_ms;	     /* least width of the time axis, so that two timelines can share one */
};

/* Fills the figure with a panel for each worker; *span_ms: width of its time axis. The trace must live as long as the
 * figure. PSD_EINVAL: a worker or iteration is not in the trace, or it has too many events. PSD_ENOMEM. */
enum psd_status psd_timeline_fill(struct psd_figure *figure, const struct psd_plot_trace *trace,
				  const struct psd_timeline *timeline, double *span_ms,
				  struct psd_error *err) PSD_MUST_CHECK;

#endif
