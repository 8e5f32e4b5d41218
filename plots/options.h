/* Commands and options of psd-plot: one table, from which help and reference are made. */
#ifndef PSD_PLOTS_OPTIONS_H
#define PSD_PLOTS_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/arguments.h"

enum psd_plot_command {
	PSD_PLOT_NOTHING, /* no command is named */
	PSD_PLOT_SPEEDUP,
	PSD_PLOT_EFFICIENCY,
	PSD_PLOT_SECONDS,
	PSD_PLOT_THROUGHPUT,
	PSD_PLOT_BARS,
	PSD_PLOT_CURVE,
	PSD_PLOT_TIMELINE,
	PSD_PLOT_COMPARE,
};

enum psd_plot_about { PSD_PLOT_NO_WORDS, PSD_PLOT_HELP, PSD_PLOT_OPTIONS, PSD_PLOT_SHARE, PSD_PLOT_VERSION };

struct psd_plot_options {
	struct psd_arguments arguments; /* settings: conditions of --where */
	char **argv;			/* arguments in which each option has one value */
	unsigned about;
	const char *output_path, *size, *title;
	const char *systems, *over, *panels, *relative, *measure;
	bool is_linear;
	const char *iteration, *workers;
	uint64_t iteration_number; /* value of --iteration */
	const char *predicted_trace, *measured_trace, *calibrated, *bar, *worst;
};

/* Commands and options of psd-plot. */
extern const struct psd_command_table psd_plot_options_table;

/* Reads the command line. psd_plot_options_release() releases *options. PSD_EINVAL with a line for the user,
 * PSD_ENOMEM. */
enum psd_status psd_plot_options_read(struct psd_plot_options *options, int argc, char *argv[],
				      struct psd_error *err) PSD_MUST_CHECK;
void psd_plot_options_release(struct psd_plot_options *options);

#endif
