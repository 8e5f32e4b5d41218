/* The commands of psd-plot: each reads files and fills a figure. */
#ifndef PSD_PLOTS_PLOT_H
#define PSD_PLOTS_PLOT_H

#include "plots/figure.h"
#include "plots/options.h"

/* Read the files of the options and fill the figure. Each is called once, with an empty figure. PSD_EFILE, PSD_EINVAL
 * with a place, PSD_ENOMEM. */
enum psd_status psd_plot_lines(struct psd_figure *figure, const struct psd_plot_options *options,
			       struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_plot_bars(struct psd_figure *figure, const struct psd_plot_options *options,
			      struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_plot_curve(struct psd_figure *figure, const struct psd_plot_options *options,
			       struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_plot_timeline(struct psd_figure *figure, const struct psd_plot_options *options,
				  struct psd_error *err) PSD_MUST_CHECK;

/* Compares predicted with measured results; opens the three outputs and appends the table to `table`. PSD_EFILE,
 * PSD_EINVAL, PSD_ERUN, PSD_ENOMEM. */
enum psd_status psd_plot_compare(struct psd_text *table, const struct psd_plot_options *options,
				 struct psd_error *err) PSD_MUST_CHECK;

#endif
