/* Predicted against measured results, point by point: medians, spreads, errors, and what they say together. */
#ifndef PSD_PLOTS_COMPARE_H
#define PSD_PLOTS_COMPARE_H

#include "engine/base/text.h"
#include "plots/figure.h"
#include "plots/results.h"
#include "plots/words.h"

/* Columns that are compared; the first PSD_COMPARED_SECONDS are seconds, the others bytes. */
enum psd_compared {
	PSD_COMPARED_ITERATION,
	PSD_COMPARED_COMPUTE,
	PSD_COMPARED_EXPOSED,
	PSD_COMPARED_SENT,
	PSD_COMPARED_RECEIVED,
	PSD_COMPARED
};
enum { PSD_COMPARED_SECONDS = PSD_COMPARED_EXPOSED + 1 };
extern const char *const psd_compared_names[PSD_COMPARED];

/* Values of the columns in one row. */
struct psd_sample {
	double values[PSD_COMPARED];
};

struct psd_samples {
	struct psd_sample *samples;
	uint32_t n, room;
	const char *executor;
	struct psd_place first; /* place of the first row */
};

/* A point of a scenario. An absent number is NaN. */
struct psd_compared_point {
	const char *title, *system_name;
	const char *key;   /* system, nodes, workers, bandwidth and bucket size */
	const char *sizes; /* the same without the size, with the title */
	const char *fuse;  /* text of fuse_bytes */
	double nodes, workers;
	const char *bps_text; /* "" : on its own platform */
	double bps;
	unsigned line; /* line of its last prediction */
	struct psd_samples predictions, runs;
	const char *run_title;
	bool is_fitted; /* a constant was fitted to its published value */
	double predicted[PSD_COMPARED], measured[PSD_COMPARED], errors[PSD_COMPARED];
	/* range of the runs: seconds, and seconds over their prediction; spread_ratio: over the median */
	struct psd_range sec, ratio;
	double spread_ratio;
	bool are_bytes_exact, is_calibrated, is_extrapolated, is_in_median, is_in_worst;
	const char *marks;
};

/* Seconds of one kind of operation in an iteration. */
struct psd_compared_kind {
	const char *name;
	double predicted, measured, error; /* NaN: absent */
};

struct psd_comparison {
	struct psd_figure *figure;		      /* its memory is used for all texts */
	const char *predicted_path, *calibrated_path; /* calibrated_path: NULL: none */
	const char *const *measured_paths;
	unsigned n_measured_paths;
	double bar_ratio, worst_ratio;

	struct psd_compared_point *points;
	uint32_t n_points, points_room;
	struct psd_compared_point **measured; /* points with runs, in the order of the predictions */
	unsigned n_measured;

	double calibrated_workers_most;
	unsigned n_unmet_calibrated;
	const char *predicted_by, *measured_by; /* executors, sorted, separated by ", " */
	const char *title;			/* title of the page */
	unsigned n_titles;			/* titles of measured points */

	unsigned n_runs, n_exact, n_calibrated, n_fitted, n_too_noisy, n_only_in_worst, n_in_median, n_in_worst;
	unsigned n_extrapolated, n_single_runs, n_predicted_often;
	double median_error, extrapolated_median, extrapolated_worst;
	const struct psd_compared_point *worst;
	bool is_median_met, is_worst_met;

	struct psd_compared_kind *kinds; /* kinds in --traces */
	unsigned n_kinds;
	const char *traced; /* system and nodes of the traces */
};

/* True if a ratio is above a bar by more than rounding: results have nine digits. NaN is within. */
bool psd_is_beyond(double ratio, double bar);

/* ---- text, in compare_text.c ---- */

enum { PSD_COMPARED_COLUMNS = 17, PSD_SENTENCES_MAX = 12 };

struct psd_compared_column {
	const char *group; /* name of several columns side by side; "": none */
	const char *head;
	bool is_left;
	int figure; /* column of errors of this figure; -1: it is none */
};
extern const struct psd_compared_column psd_compared_columns[PSD_COMPARED_COLUMNS];

/* Returns the text of a cell. */
const char *psd_compared_cell(const struct psd_comparison *comparison, const struct psd_compared_point *point,
			      unsigned column);
/* Writes the summary: the first two sentences are the verdicts. Returns the number of sentences. */
unsigned psd_compared_summary(const struct psd_comparison *comparison, const char *sentences[PSD_SENTENCES_MAX]);
/* Returns the name of a point in a sentence. */
const char *psd_compared_name(const struct psd_comparison *comparison, const struct psd_compared_point *point);
const char *psd_compared_seconds(const struct psd_comparison *comparison, double sec);	 /* writes 0.2345, - */
const char *psd_compared_percent(const struct psd_comparison *comparison, double ratio); /* writes 2.3 % */
const char *psd_compared_error(const struct psd_comparison *comparison, double ratio);	 /* writes +2.3 % */
const char *psd_compared_bar(const struct psd_comparison *comparison, double ratio);	 /* writes 5 % */
bool psd_compared_has_sends(const struct psd_comparison *comparison);
/* Append the table for a terminal, and a row for each point as CSV. */
void psd_compared_add_table(struct psd_text *text, const struct psd_comparison *comparison);
void psd_compared_add_csv(struct psd_text *text, const struct psd_comparison *comparison);

/* ---- plot and page ---- */

/* Fills the figure of the comparison with both plots. */
void psd_compared_fill(struct psd_figure *figure, const struct psd_comparison *comparison);
/* Appends the page with its plots: SVGs; predicted and measured are timelines, empty without --traces. */
void psd_compared_add_page(struct psd_text *page, const struct psd_comparison *comparison, const struct psd_text *plot,
			   const struct psd_text *predicted, const struct psd_text *measured);

/* ---- traces, in compare_kinds.c ---- */

struct psd_plot_options;
/* Reads both traces, fills the kinds of the comparison and appends both timelines as SVG. PSD_EINVAL: they are not of
 * one point. PSD_EFILE, PSD_ERUN, PSD_ENOMEM. */
enum psd_status psd_compared_read_traces(struct psd_comparison *comparison, const struct psd_plot_options *options,
					 const struct psd_canvas *canvas, struct psd_text *predicted,
					 struct psd_text *measured, struct psd_error *err) PSD_MUST_CHECK;

#endif
