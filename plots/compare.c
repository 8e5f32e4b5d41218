/* Statistics of points, the verdicts on them, and the command. */
#include "plots/compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/base/output.h"
#include "plots/compare_match.h"
#include "plots/plot.h"

static const double rounding = 1e-9;

bool psd_is_beyond(double ratio, double bar)
{
	return ratio > bar * (1 + rounding);
}

/* ---- statistics of a point ---- */

static double median_of(const struct psd_samples *samples, unsigned f, double *values)
{
	for (unsigned i = 0; i < samples->n; i++)
		values[i] = samples->samples[i].values[f];
	return psd_words_median(values, samples->n);
}

/* Prediction of a run: its own, or the one for all runs. */
static double prediction(const struct psd_compared_point *point, unsigned f, unsigned i)
{
	return point->predictions.samples[point->predictions.n == 1 ? 0 : i].values[f];
}

static double error_of(double value, double measured)
{
	return measured > 0 ? value / measured - 1 : NAN;
}

/* Error of the median run, each run over its prediction. */
static double error_of_runs(const struct psd_compared_point *point, unsigned f, double *ratios)
{
	for (unsigned i = 0; i < point->runs.n; i++) {
		if (prediction(point, f, i) == 0)
			return error_of(point->predicted[f], point->measured[f]);
		ratios[i] = point->runs.samples[i].values[f] / prediction(point, f, i);
	}
	return error_of(1, psd_words_median(ratios, point->runs.n));
}

static bool has_exact_bytes(const struct psd_compared_point *point)
{
	for (unsigned i = 0; i < point->runs.n; i++)
		for (unsigned f = PSD_COMPARED_SENT; f <= PSD_COMPARED_RECEIVED; f++)
			if (point->runs.samples[i].values[f] != prediction(point, f, i))
				return false;
	return true;
}

/* A quarter of the runs, rounded down, is dropped at each end: otherwise the spread would grow with every repeat. */
static void measure_spread(struct psd_compared_point *point, double *values)
{
	const unsigned n = point->runs.n, n_left_out = n / 4;

	for (unsigned i = 0; i < n; i++)
		values[i] = point->runs.samples[i].values[PSD_COMPARED_ITERATION];
	psd_words_median(values, n); /* sorts */
	point->sec = (struct psd_range){true, values[n_left_out], values[n - 1 - n_left_out]};
	for (unsigned i = 0; i < n; i++)
		values[i] = point->runs.samples[i].values[PSD_COMPARED_ITERATION] /
			    prediction(point, PSD_COMPARED_ITERATION, i);
	const double middle = psd_words_median(values, n);
	point->ratio = (struct psd_range){true, values[n_left_out], values[n - 1 - n_left_out]};
	/* One run says nothing about it. */
	point->spread_ratio = n > 1 ? (point->ratio.most - point->ratio.least) / middle : NAN;
}

/* A part with hardly any measured time has no error: one of a microsecond would be millions of per cent. */
static bool is_tiny(const struct psd_compared_point *point, unsigned f)
{
	return f > PSD_COMPARED_ITERATION && f < PSD_COMPARED_SECONDS &&
	       point->measured[f] < point->measured[PSD_COMPARED_ITERATION] / 100;
}

static void measure_point(struct psd_compared_point *point, double *values)
{
	for (unsigned f = 0; f < PSD_COMPARED; f++) {
		point->predicted[f] = median_of(&point->predictions, f, values);
		point->measured[f] = median_of(&point->runs, f, values);
	}
	for (unsigned f = 0; f < PSD_COMPARED; f++)
		point->errors[f] = is_tiny(point, f) ? NAN : error_of_runs(point, f, values);
	point->are_bytes_exact = has_exact_bytes(point);
	measure_spread(point, values);
}

static void add_mark(struct psd_comparison *comparison, struct psd_compared_point *point, const char *mark)
{
	point->marks = psd_figure_text(comparison->figure, "%s%s%s", point->marks, *point->marks ? "; " : "", mark);
}

/* True if a calibration used the point, under its predicted or its measured title. */
static bool meets_calibrated(struct psd_matching *matching, const struct psd_compared_point *point)
{
	const char *const titles[] = {point->title, point->run_title};
	bool is_met = false;
	unsigned number;

	for (unsigned i = 0; i < 2; i++) {
		const char *key = psd_matching_key(matching, point->key, titles[i]);

		if (psd_names_find(&matching->calibrated, key, &number) && psd_names_put(&matching->calibrated, key, 1))
			is_met = true;
	}
	return is_met;
}

/* The median has one bar, a single point a wider one. A point with more noise than a bar is not judged by it. */
static void judge_point(struct psd_matching *matching, struct psd_compared_point *point)
{
	struct psd_comparison *comparison = matching->comparison;
	const bool is_listed = meets_calibrated(matching, point);
	const bool is_noisy = psd_is_beyond(point->spread_ratio, comparison->worst_ratio);
	const bool is_restless = psd_is_beyond(point->spread_ratio, comparison->bar_ratio);

	point->marks = "";
	point->is_calibrated = is_listed || point->is_fitted;
	point->is_extrapolated = comparison->calibrated_path && point->workers > comparison->calibrated_workers_most;
	if (is_listed)
		add_mark(comparison, point, "calibrated");
	if (point->is_fitted)
		add_mark(comparison, point, "fitted");
	if (point->is_extrapolated)
		add_mark(comparison, point, "extrapolated");
	if (is_restless)
		add_mark(comparison, point, is_noisy ? "too noisy" : "too noisy for the median");
	point->is_in_worst = !point->is_calibrated && !is_noisy;
	point->is_in_median = !point->is_calibrated && !is_restless;
}

/* ---- all points ---- */

static void count_point(struct psd_comparison *comparison, const struct psd_compared_point *point)
{
	comparison->n_single_runs += point->runs.n == 1;
	comparison->n_exact += point->are_bytes_exact;
	comparison->n_fitted += point->is_fitted;
	comparison->n_calibrated += point->is_calibrated;
	comparison->n_too_noisy += !point->is_calibrated && !point->is_in_worst;
	comparison->n_only_in_worst += !point->is_calibrated && point->is_in_worst && !point->is_in_median;
	comparison->n_predicted_often += point->predictions.n > 1;
	if (!point->is_in_worst)
		return;
	comparison->n_in_worst++;
	if (!comparison->worst ||
	    fabs(point->errors[PSD_COMPARED_ITERATION]) > fabs(comparison->worst->errors[PSD_COMPARED_ITERATION]))
		comparison->worst = point;
}

/* As in a sweep of sizes, which repeats a system without sizes. */
static bool are_one_prediction(const struct psd_samples *predictions)
{
	for (unsigned i = 1; i < predictions->n; i++)
		for (unsigned f = 0; f < PSD_COMPARED; f++)
			if (predictions->samples[i].values[f] != predictions->samples[0].values[f])
				return false;
	return true;
}

static void name_sizes(struct psd_comparison *comparison)
{
	char words[PSD_WORDS_MAX];

	for (unsigned p = 0; p < comparison->n_points; p++) {
		struct psd_compared_point *point = &comparison->points[p];
		unsigned n = 0;

		for (unsigned o = 0; o < comparison->n_points && *point->fuse; o++)
			n += !strcmp(comparison->points[o].sizes, point->sizes);
		if (n > 1)
			point->system_name = psd_figure_text(comparison->figure, "%s, %s", point->system_name,
							     psd_words_bytes(strtod(point->fuse, NULL), words));
	}
}

static enum psd_status measure_points(struct psd_matching *matching)
{
	struct psd_comparison *comparison = matching->comparison;
	double *values = psd_arena_take(&matching->results->arena, (matching->results->n_rows + 1) * sizeof(*values));
	char words[PSD_WORDS_MAX];

	comparison->measured =
		psd_arena_take(&comparison->figure->arena, (comparison->n_points + 1) * sizeof(*comparison->measured));
	if (!values || !comparison->measured)
		return psd_out_of_memory(matching->err);
	for (unsigned p = 0; p < comparison->n_points; p++) {
		struct psd_compared_point *point = &comparison->points[p];
		bool is_new_title = true;

		if (!point->runs.n)
			continue;
		if (are_one_prediction(&point->predictions))
			point->predictions.n = 1;
		if (point->predictions.n > 1 && point->predictions.n != point->runs.n)
			return psd_error_set(
				matching->err, PSD_EINVAL,
				(struct psd_place){comparison->predicted_path, point->line, 0},
				"is one of %u rows of this point, which has %s: must be its only one, or one "
				"for each run",
				point->predictions.n, psd_words_count(point->runs.n, "run", "runs", words));
		for (unsigned m = 0; m < comparison->n_measured; m++)
			is_new_title = is_new_title && strcmp(comparison->measured[m]->title, point->title) != 0;
		comparison->n_titles += is_new_title;
		comparison->measured[comparison->n_measured++] = point;
		measure_point(point, values);
		judge_point(matching, point);
		count_point(comparison, point);
	}
	return PSD_OK;
}

/* Medians of absolute errors, and the verdicts. */
static enum psd_status judge(struct psd_matching *matching)
{
	struct psd_comparison *comparison = matching->comparison;
	double *errors = psd_arena_take(&matching->results->arena, (comparison->n_measured + 1) * sizeof(*errors));
	unsigned number;

	if (!errors)
		return psd_out_of_memory(matching->err);
	for (unsigned m = 0; m < comparison->n_measured; m++)
		if (comparison->measured[m]->is_in_median)
			errors[comparison->n_in_median++] =
				fabs(comparison->measured[m]->errors[PSD_COMPARED_ITERATION]);
	comparison->median_error = comparison->n_in_median ? psd_words_median(errors, comparison->n_in_median) : NAN;
	for (unsigned m = 0; m < comparison->n_measured; m++)
		if (comparison->measured[m]->is_in_worst && comparison->measured[m]->is_extrapolated)
			errors[comparison->n_extrapolated++] =
				fabs(comparison->measured[m]->errors[PSD_COMPARED_ITERATION]);
	if (comparison->n_extrapolated) {
		comparison->extrapolated_median = psd_words_median(errors, comparison->n_extrapolated);
		comparison->extrapolated_worst = errors[comparison->n_extrapolated - 1];
	}
	comparison->is_median_met =
		comparison->n_in_median && !psd_is_beyond(comparison->median_error, comparison->bar_ratio);
	comparison->is_worst_met =
		comparison->n_in_worst &&
		!psd_is_beyond(fabs(comparison->worst->errors[PSD_COMPARED_ITERATION]), comparison->worst_ratio);
	for (unsigned i = 0; i < matching->n_calibrated_keys; i++)
		comparison->n_unmet_calibrated +=
			psd_names_find(&matching->calibrated, matching->calibrated_keys[i], &number) && !number;
	return PSD_OK;
}

static const char *join_executors(const struct psd_matching *matching, enum psd_role_of_file role)
{
	const char *text = "";

	for (unsigned i = 0; i < matching->n_executors[role]; i++)
		text = psd_figure_text(matching->comparison->figure, "%s%s%s", text, i ? ", " : "",
				       matching->executors[role][i]);
	return text;
}

static const char *choose_title(struct psd_comparison *comparison, const char *title)
{
	struct psd_range bps = {.is_there = false};

	for (unsigned m = 0; m < comparison->n_measured; m++)
		if (*comparison->measured[m]->bps_text)
			psd_range_add(&bps, comparison->measured[m]->bps);
	if (title && strcmp(title, "-") != 0)
		return title;
	return comparison->n_titles == 1
		       ? psd_words_title_at(&comparison->figure->arena, comparison->measured[0]->title, &bps)
		       : "Predicted against measured";
}

static enum psd_status fill(struct psd_comparison *comparison, struct psd_results *results, const char *title,
			    struct psd_error *err)
{
	struct psd_matching matching = {.comparison = comparison, .results = results, .err = err};
	enum psd_status status = psd_matching_read(&matching);

	if (!status) {
		name_sizes(comparison);
		status = measure_points(&matching);
	}
	if (!status)
		status = judge(&matching);
	comparison->predicted_by = join_executors(&matching, PSD_FILE_PREDICTED);
	comparison->measured_by = join_executors(&matching, PSD_FILE_MEASURED);
	comparison->title = choose_title(comparison, title);
	psd_names_release(&matching.points);
	psd_names_release(&matching.calibrated);
	return status;
}

/* ---- the command ---- */

static enum psd_status read_ratio(const char *name, const char *text, double *ratio, struct psd_error *err)
{
	const size_t length = strlen(text);
	const bool is_percent = length && text[length - 1] == '%';
	char number[32];
	double value = 0;

	snprintf(number, sizeof(number), "%.*s", (int)(length - is_percent), text);
	const bool is_number = length < sizeof(number) && psd_results_read_number(number, &value);

	*ratio = value / (is_percent ? 100 : 1);
	if (is_number && value > 0 && value <= (is_percent ? 1000 : 1))
		return PSD_OK;
	if (!is_percent && is_number && value > 1)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE,
				     "'%s' is '%s', must be a ratio such as 0.05 or 5%%: %s is %g %%", name, text,
				     number, 100 * value);
	return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "'%s' is '%.80s', must be a ratio such as 0.05 or 5%%", name,
			     text);
}

static enum psd_status read_bars(struct psd_comparison *comparison, const struct psd_plot_options *options,
				 struct psd_error *err)
{
	PSD_TRY(read_ratio("--bar", options->bar ? options->bar : "0.05", &comparison->bar_ratio, err));
	PSD_TRY(read_ratio("--worst", options->worst ? options->worst : "0.15", &comparison->worst_ratio, err));
	return comparison->worst_ratio >= comparison->bar_ratio
		       ? PSD_OK
		       : psd_error_set(err, PSD_EINVAL, PSD_NOWHERE,
				       "'--worst' is %g, must be %g or more, which is '--bar'", comparison->worst_ratio,
				       comparison->bar_ratio);
}

/* Refuses a measured file that is given twice, under any name. */
static enum psd_status check_different(const char *const paths[], unsigned n, struct psd_error *err)
{
	struct stat one, other;

	for (unsigned i = 0; i < n; i++)
		for (unsigned k = i + 1; k < n; k++)
			if (!strcmp(paths[i], paths[k]) ||
			    (!stat(paths[i], &one) && !stat(paths[k], &other) && S_ISREG(one.st_mode) &&
			     one.st_dev == other.st_dev && one.st_ino == other.st_ino))
				return psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = paths[k]},
						     "is given twice, must be given once: its runs would count twice");
	return PSD_OK;
}

static enum psd_status read_files(struct psd_comparison *comparison, const struct psd_plot_options *options,
				  struct psd_results *results, struct psd_error *err)
{
	const unsigned n = options->arguments.n_operands;
	const char **paths = psd_arena_take(&comparison->figure->arena, (n + 1) * sizeof(*paths));
	unsigned n_paths = 0;

	if (n < 2)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE,
				     "compare takes a predicted and one or more measured files, %u was given%s", n,
				     options->measured_trace ? "; the 2 files behind '--traces' do not count" : "");
	if (!paths)
		return psd_out_of_memory(err);
	paths[n_paths++] = comparison->predicted_path = options->arguments.operands[0];
	comparison->calibrated_path = options->calibrated;
	if (options->calibrated)
		paths[n_paths++] = options->calibrated;
	comparison->measured_paths = paths + n_paths;
	comparison->n_measured_paths = n - 1;
	for (unsigned i = 1; i < n; i++)
		paths[n_paths++] = options->arguments.operands[i];
	PSD_TRY(check_different(comparison->measured_paths, n - 1, err));
	return psd_results_read(results, paths, n_paths, psd_matching_columns, NULL, err);
}

/* OUT.html, OUT.csv and OUT.svg beside each other, or the plot alone. */
enum { PAGE, CSV, PLOT, OUTPUTS };

static void name_outputs(struct psd_figure *figure, const char *output, const char *paths[OUTPUTS])
{
	const size_t length = strlen(output);

	paths[PLOT] = output;
	if (length < 5 || strcmp(output + length - 5, ".html") != 0)
		return;
	paths[PAGE] = output;
	paths[CSV] = psd_figure_text(figure, "%.*s.csv", (int)length - 5, output);
	paths[PLOT] = psd_figure_text(figure, "%.*s.svg", (int)length - 5, output);
}

/* Writes text i to path i, if there is one. */
static enum psd_status write_outputs(const char *const paths[OUTPUTS], const struct psd_text texts[OUTPUTS],
				     struct psd_error *err)
{
	FILE *out;

	for (unsigned i = 0; i < OUTPUTS; i++) {
		if (texts[i].is_out_of_memory)
			return psd_out_of_memory(err);
		if (!paths[i])
			continue;
		PSD_TRY(psd_output_open(&out, paths[i], err));
		psd_output_write(out, texts[i].bytes, texts[i].length);
	}
	return PSD_OK;
}

static enum psd_status compare(struct psd_comparison *comparison, const struct psd_plot_options *options,
			       struct psd_results *results, struct psd_text *table, struct psd_error *err)
{
	struct psd_text texts[OUTPUTS] = {{.bytes = NULL}}, timelines[2] = {{.bytes = NULL}};
	const char *paths[OUTPUTS] = {NULL};
	struct psd_canvas canvas;

	name_outputs(comparison->figure, options->output_path, paths);
	PSD_TRY(psd_canvas_read(&canvas, paths[PLOT], options->size, err));
	if (!options->size && paths[PAGE])
		canvas.width_pt = 900; /* as wide as the page */
	PSD_TRY(read_bars(comparison, options, err));
	PSD_TRY(read_files(comparison, options, results, err));
	PSD_TRY(fill(comparison, results, options->title, err));
	psd_compared_fill(comparison->figure, comparison);
	enum psd_status status = !paths[PAGE] ? PSD_OK
					      : psd_compared_read_traces(comparison, options, &canvas, &timelines[0],
									 &timelines[1], err);
	if (!status)
		status = psd_figure_draw(&texts[PLOT], comparison->figure, &canvas, options->title, err);
	if (!status) {
		psd_compared_add_table(table, comparison);
		psd_compared_add_csv(&texts[CSV], comparison);
		if (paths[PAGE])
			psd_compared_add_page(&texts[PAGE], comparison, &texts[PLOT], &timelines[0], &timelines[1]);
		status = comparison->figure->is_out_of_memory ? psd_out_of_memory(err)
							      : write_outputs(paths, texts, err);
	}
	for (unsigned i = 0; i < OUTPUTS; i++)
		psd_text_release(&texts[i]);
	psd_text_release(&timelines[0]);
	psd_text_release(&timelines[1]);
	return status;
}

enum psd_status psd_plot_compare(struct psd_text *table, const struct psd_plot_options *options, struct psd_error *err)
{
	struct psd_figure *figure = malloc(sizeof(*figure));
	struct psd_comparison comparison = {.figure = figure};
	struct psd_results results = {.n_rows = 0};

	if (!figure)
		return psd_out_of_memory(err);
	psd_figure_init(figure);
	const enum psd_status status = compare(&comparison, options, &results, table, err);
	for (unsigned p = 0; p < comparison.n_points; p++) {
		free(comparison.points[p].predictions.samples);
		free(comparison.points[p].runs.samples);
	}
	free(comparison.points);
	psd_results_release(&results);
	psd_figure_release(figure);
	free(figure);
	return status;
}
