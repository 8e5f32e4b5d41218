/* The comparison as text: cells of its table, sentences of its summary, rows of its CSV. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plots/compare.h"

enum { DIGITS = 4, MOST_DECIMALS = 9, TEXT_ROOM = 64, FIRST_OF_POINT = 4 };

const struct psd_compared_column psd_compared_columns[PSD_COMPARED_COLUMNS] = {
	{"", "system", true, -1},
	{"", "nodes", false, -1},
	{"", "workers", false, -1},
	{"", "bandwidth", false, -1},
	{"iteration, s", "predicted", false, -1},
	{"iteration, s", "measured", false, -1},
	{"iteration, s", "error", false, PSD_COMPARED_ITERATION},
	{"iteration, s", "runs", false, -1},
	{"iteration, s", "spread", false, -1},
	{"compute, s", "predicted", false, -1},
	{"compute, s", "measured", false, -1},
	{"compute, s", "error", false, PSD_COMPARED_COMPUTE},
	{"exposed communication, s", "predicted", false, -1},
	{"exposed communication, s", "measured", false, -1},
	{"exposed communication, s", "error", false, PSD_COMPARED_EXPOSED},
	{"", "bytes", true, -1},
	{"", "marks", true, -1},
};
enum { SYSTEM, NODES, WORKERS, BANDWIDTH, RUNS = 7, SPREAD, BYTES = 15, MARKS };

/* ---- figures as text ---- */

const char *psd_compared_seconds(const struct psd_comparison *comparison, double sec)
{
	if (isnan(sec))
		return "-";
	if (sec <= 0)
		return "0";
	int decimals = DIGITS - 1 - (int)(log(sec) / log(10) + 1000) + 1000;
	decimals = decimals < 0 ? 0 : decimals > MOST_DECIMALS ? MOST_DECIMALS : decimals;
	return psd_figure_text(comparison->figure, "%.*f", decimals, sec);
}

const char *psd_compared_percent(const struct psd_comparison *comparison, double ratio)
{
	char text[TEXT_ROOM];

	if (isnan(ratio))
		return "-";
	snprintf(text, sizeof(text), "%.1f", 100 * ratio);
	return psd_figure_text(comparison->figure, "%s %%", strcmp(text, "-0.0") != 0 ? text : "0.0");
}

const char *psd_compared_error(const struct psd_comparison *comparison, double ratio)
{
	const char *text = psd_compared_percent(comparison, ratio);

	return *text == '-' || !strncmp(text, "0.0 ", 4) ? text : psd_figure_text(comparison->figure, "+%s", text);
}

const char *psd_compared_bar(const struct psd_comparison *comparison, double ratio)
{
	return psd_figure_text(comparison->figure, "%g %%", 100 * ratio);
}

static const char *count_of(const struct psd_comparison *comparison, double n, const char *one, const char *many)
{
	return psd_figure_text(comparison->figure, "%.0f %s", n, n == 1 ? one : many);
}

static const char *bandwidth_of(const struct psd_comparison *comparison, const struct psd_compared_point *point)
{
	char words[PSD_WORDS_MAX];

	return *point->bps_text ? psd_figure_text(comparison->figure, "%s", psd_words_bandwidth(point->bps, words))
				: "own platform";
}

const char *psd_compared_name(const struct psd_comparison *comparison, const struct psd_compared_point *point)
{
	const bool has_titles = comparison->n_titles > 1;

	return psd_figure_text(comparison->figure, "%s, %s, %s, %s%s%s", point->system_name,
			       count_of(comparison, point->nodes, "node", "nodes"),
			       count_of(comparison, point->workers, "worker", "workers"),
			       bandwidth_of(comparison, point), has_titles ? " of " : "",
			       has_titles ? point->title : "");
}

/* ---- cells ---- */

const char *psd_compared_cell(const struct psd_comparison *comparison, const struct psd_compared_point *point,
			      unsigned column)
{
	struct psd_figure *figure = comparison->figure;
	const char *head = psd_compared_columns[column].head;
	unsigned f = PSD_COMPARED_ITERATION;

	switch (column) {
	case SYSTEM: return point->system_name;
	case NODES: return psd_figure_text(figure, "%.0f", point->nodes);
	case WORKERS: return psd_figure_text(figure, "%.0f", point->workers);
	case BANDWIDTH: return bandwidth_of(comparison, point);
	case RUNS: return psd_figure_text(figure, "%u", point->runs.n);
	case SPREAD: return psd_compared_percent(comparison, point->spread_ratio);
	case BYTES:
		return point->are_bytes_exact
			       ? "exact"
			       : psd_figure_text(figure, "sent %s, received %s",
						 psd_compared_error(comparison, point->errors[PSD_COMPARED_SENT]),
						 psd_compared_error(comparison, point->errors[PSD_COMPARED_RECEIVED]));
	case MARKS: return point->marks;
	default: break;
	}
	if (column > SPREAD)
		f = column < 12 ? PSD_COMPARED_COMPUTE : PSD_COMPARED_EXPOSED;
	if (!strcmp(head, "error"))
		return psd_compared_error(comparison, point->errors[f]);
	return psd_compared_seconds(comparison, !strcmp(head, "predicted") ? point->predicted[f] : point->measured[f]);
}

/* ---- the table ---- */

struct table {
	struct psd_text *text;
	const struct psd_comparison *comparison;
	int widths[PSD_COMPARED_COLUMNS];
	bool is_shown[PSD_COMPARED_COLUMNS];
};

static void add_padded(struct psd_text *text, const char *words, int width, bool is_left)
{
	const int blanks = width - psd_text_places(words);

	psd_text_add(text, "%*s%s%*s", is_left ? 0 : blanks, "", words, is_left ? blanks : 0, "");
}

static void trim(struct psd_text *text)
{
	while (text->length && text->bytes[text->length - 1] == ' ')
		text->bytes[--text->length] = '\0';
}

/* The page has all columns side by side. Here lines would be too long, so parts of the iteration follow below. */
static void choose_columns(struct table *table, bool is_of_parts)
{
	const struct psd_comparison *comparison = table->comparison;

	for (unsigned c = 0; c < PSD_COMPARED_COLUMNS; c++)
		table->is_shown[c] = c < FIRST_OF_POINT || is_of_parts == ((c > SPREAD && c < BYTES) || c == BYTES);
	table->is_shown[WORKERS] = false;
	for (unsigned m = 0; m < comparison->n_measured; m++)
		table->is_shown[WORKERS] =
			table->is_shown[WORKERS] || comparison->measured[m]->workers != comparison->measured[m]->nodes;
}

/* The name of a group stands above its columns, with a rule up to the end of the last one. */
static void add_groups(struct table *table)
{
	struct psd_text *text = table->text;
	const size_t begin = text->length;

	for (unsigned c = 0; c < PSD_COMPARED_COLUMNS; c++) {
		const char *group = psd_compared_columns[c].group;
		int width = table->widths[c], n_rules;

		if (!table->is_shown[c])
			continue;
		while (*group && c + 1 < PSD_COMPARED_COLUMNS && !strcmp(psd_compared_columns[c + 1].group, group))
			width += 2 + table->widths[++c];
		psd_text_add(text, "%s%s%s", text->length == begin ? "" : "  ", group, *group ? " " : "");
		n_rules = width - (*group ? psd_text_places(group) + 1 : 0);
		for (int i = 0; i < n_rules; i++)
			psd_text_add(text, *group ? "-" : " ");
	}
	trim(text);
	psd_text_add(text, "\n");
}

/* point: NULL: the line of heads. */
static void add_line(struct table *table, const struct psd_compared_point *point)
{
	for (unsigned c = 0; c < PSD_COMPARED_COLUMNS; c++)
		if (table->is_shown[c]) {
			psd_text_add(table->text, "%s", c == 0 ? "" : "  ");
			add_padded(table->text,
				   point ? psd_compared_cell(table->comparison, point, c)
					 : psd_compared_columns[c].head,
				   table->widths[c], psd_compared_columns[c].is_left);
		}
	trim(table->text);
	psd_text_add(table->text, "\n");
}

static void add_points(struct table *table, bool is_of_parts)
{
	const struct psd_comparison *comparison = table->comparison;
	const char *title = NULL;

	choose_columns(table, is_of_parts);
	add_groups(table);
	add_line(table, NULL);
	for (unsigned m = 0; m < comparison->n_measured; m++) {
		const struct psd_compared_point *point = comparison->measured[m];

		if (comparison->n_titles > 1 && (!title || strcmp(title, point->title) != 0))
			psd_text_add(table->text, "%s%s\n", title ? "\n" : "", point->title);
		title = point->title;
		add_line(table, point);
	}
	psd_text_add(table->text, "\n");
}

static void add_kinds(struct psd_text *text, const struct psd_comparison *comparison)
{
	psd_text_add(
		text,
		"\nOperations of %s, seconds of an iteration in which a worker is at it, from the traces:\n\n%-10s  "
		"%11s  %10s  %9s\n",
		comparison->traced, "kind", "predicted s", "measured s", "error");
	for (unsigned k = 0; k < comparison->n_kinds; k++)
		psd_text_add(text, "%-10s  %11s  %10s  %9s\n", comparison->kinds[k].name,
			     psd_compared_seconds(comparison, comparison->kinds[k].predicted),
			     psd_compared_seconds(comparison, comparison->kinds[k].measured),
			     psd_compared_error(comparison, comparison->kinds[k].error));
	if (psd_compared_has_sends(comparison))
		psd_text_add(text,
			     "send has no error: psd-run's ends when the kernel has taken the message, the line's "
			     "time is in receive.\n");
}

bool psd_compared_has_sends(const struct psd_comparison *comparison)
{
	for (unsigned k = 0; k < comparison->n_kinds; k++)
		if (!strcmp(comparison->kinds[k].name, "send"))
			return true;
	return false;
}

void psd_compared_add_table(struct psd_text *text, const struct psd_comparison *comparison)
{
	struct table table = {.text = text, .comparison = comparison};
	const char *sentences[PSD_SENTENCES_MAX];
	const unsigned n_sentences = psd_compared_summary(comparison, sentences);

	for (unsigned c = 0; c < PSD_COMPARED_COLUMNS; c++) {
		table.widths[c] = psd_text_places(psd_compared_columns[c].head);
		for (unsigned m = 0; m < comparison->n_measured; m++) {
			const int width = psd_text_places(psd_compared_cell(comparison, comparison->measured[m], c));

			table.widths[c] = width > table.widths[c] ? width : table.widths[c];
		}
	}
	add_points(&table, false);
	add_points(&table, true);
	psd_text_add(text, "compute: measured as time of the processor or GPU, predicted as time of the clock. "
			   "-: less than a hundredth of the iteration.\n\n");
	for (unsigned i = 0; i < n_sentences; i++)
		psd_text_add(text, "%s\n", sentences[i]);
	if (comparison->traced)
		add_kinds(text, comparison);
}

/* ---- the summary ---- */

static const char *not_counted(const struct psd_comparison *comparison)
{
	struct psd_figure *figure = comparison->figure;
	const char *text = "";

	if (comparison->n_calibrated > comparison->n_fitted)
		text = psd_figure_text(figure, "%u calibrated", comparison->n_calibrated - comparison->n_fitted);
	if (comparison->n_fitted)
		text = psd_figure_text(figure, "%s%s%u fitted to published values", text, *text ? ", " : "",
				       comparison->n_fitted);
	if (comparison->n_too_noisy)
		text = psd_figure_text(figure, "%s%s%u too noisy (spread above %s)", text, *text ? ", " : "",
				       comparison->n_too_noisy, psd_compared_bar(comparison, comparison->worst_ratio));
	return text;
}

static const char *median_verdict(const struct psd_comparison *comparison)
{
	const char *bar = psd_compared_bar(comparison, comparison->bar_ratio);

	if (!comparison->n_in_median)
		return psd_figure_text(comparison->figure,
				       "Median absolute error: no point is counted, the bar of %s is neither met nor "
				       "missed.",
				       bar);
	return psd_figure_text(comparison->figure, "Median absolute error %s of %s, bar %s: %s.",
			       psd_compared_percent(comparison, comparison->median_error),
			       count_of(comparison, comparison->n_in_median, "point", "points"), bar,
			       comparison->is_median_met ? "met" : "not met");
}

static const char *worst_verdict(const struct psd_comparison *comparison)
{
	const char *bar = psd_compared_bar(comparison, comparison->worst_ratio);

	if (!comparison->n_in_worst)
		return psd_figure_text(comparison->figure,
				       "Worst absolute error: no point is counted, the bar of %s is neither met nor "
				       "missed.",
				       bar);
	return psd_figure_text(
		comparison->figure, "Worst absolute error %s of %s, bar %s: %s; it is at %s.",
		psd_compared_percent(comparison, fabs(comparison->worst->errors[PSD_COMPARED_ITERATION])),
		count_of(comparison, comparison->n_in_worst, "point", "points"), bar,
		comparison->is_worst_met ? "met" : "not met", psd_compared_name(comparison, comparison->worst));
}

static const char *counts(const struct psd_comparison *comparison)
{
	struct psd_figure *figure = comparison->figure;
	const char *left_out = not_counted(comparison);
	const char *text = psd_figure_text(
		figure, "%s measured by %s%s%s", count_of(comparison, comparison->n_measured, "point", "points"),
		count_of(comparison, comparison->n_runs, "run", "runs"), *left_out ? "; not counted: " : "", left_out);

	if (comparison->n_only_in_worst)
		text = psd_figure_text(figure, "%s; too noisy for the median: %u (spread above %s)", text,
				       comparison->n_only_in_worst,
				       psd_compared_bar(comparison, comparison->bar_ratio));
	return psd_figure_text(figure, "%s.", text);
}

unsigned psd_compared_summary(const struct psd_comparison *comparison, const char *sentences[PSD_SENTENCES_MAX])
{
	struct psd_figure *figure = comparison->figure;
	const unsigned n_unmeasured = comparison->n_points - comparison->n_measured;
	unsigned n = 0;

	sentences[n++] = median_verdict(comparison);
	sentences[n++] = worst_verdict(comparison);
	sentences[n++] = counts(comparison);
	if (comparison->n_extrapolated)
		sentences[n++] = psd_figure_text(
			figure,
			"Counted and extrapolated to more than %.0f workers: %s, median absolute error %s, worst %s.",
			comparison->calibrated_workers_most,
			count_of(comparison, comparison->n_extrapolated, "point", "points"),
			psd_compared_percent(comparison, comparison->extrapolated_median),
			psd_compared_percent(comparison, comparison->extrapolated_worst));
	sentences[n++] = psd_figure_text(figure, "Bytes per node are exact at %u of %s.", comparison->n_exact,
					 count_of(comparison, comparison->n_measured, "point", "points"));
	if (comparison->n_single_runs)
		sentences[n++] =
			psd_figure_text(figure,
					"%s run once: how far runs scatter is not known, and a miss may be noise. Run "
					"again, and give all files.",
					count_of(comparison, comparison->n_single_runs, "point was", "points were"));
	if (comparison->n_predicted_often)
		sentences[n++] = psd_figure_text(
			figure, "%s a prediction for each run: errors and spreads are of the runs over theirs.",
			count_of(comparison, comparison->n_predicted_often, "point has", "points have"));
	if (n_unmeasured)
		sentences[n++] =
			psd_figure_text(figure, "%s no measurement.",
					count_of(comparison, n_unmeasured, "predicted row has", "predicted rows have"));
	if (comparison->n_unmet_calibrated)
		sentences[n++] = psd_figure_text(figure, "%s of points that were not measured here.",
						 count_of(comparison, comparison->n_unmet_calibrated,
							  "calibrated row is", "calibrated rows are"));
	return n;
}

/* ---- CSV ---- */

static void add_number(struct psd_text *text, double value)
{
	if (isnan(value))
		psd_text_add(text, ",");
	else
		psd_text_add(text, ",%.9g", value);
}

static const char *yes_or_no(bool is_so)
{
	return is_so ? "yes" : "no";
}

static void add_point(struct psd_text *text, const struct psd_comparison *comparison,
		      const struct psd_compared_point *point)
{
	psd_text_add_csv(text, point->title);
	psd_text_add(text, ",");
	psd_text_add_csv(text, point->system_name);
	psd_text_add(text, ",");
	psd_text_add_csv(text, point->runs.executor);
	psd_text_add(text, ",%.0f,%.0f,", point->nodes, point->workers);
	if (*point->bps_text)
		psd_text_add(text, "%.15g", point->bps);
	psd_text_add(text, ",%u", point->runs.n);
	for (unsigned f = 0; f < PSD_COMPARED; f++) {
		psd_text_add(text, f < PSD_COMPARED_SECONDS ? ",%.9g,%.9g" : ",%.0f,%.0f", point->predicted[f],
			     point->measured[f]);
		if (f == PSD_COMPARED_ITERATION) {
			add_number(text, point->spread_ratio);
			add_number(text, point->errors[f]);
		}
	}
	psd_text_add(text, ",%s,%s,%s,%s,%s\n", yes_or_no(point->are_bytes_exact), yes_or_no(point->is_calibrated),
		     comparison->calibrated_path ? yes_or_no(point->is_extrapolated) : "",
		     yes_or_no(point->is_in_median), yes_or_no(point->is_in_worst));
}

void psd_compared_add_csv(struct psd_text *text, const struct psd_comparison *comparison)
{
	psd_text_add(text, "scenario,system,executor,nodes,workers,bandwidth_bps,repeats");
	for (unsigned f = 0; f < PSD_COMPARED; f++)
		psd_text_add(text, ",predicted_%s,measured_%s%s", psd_compared_names[f], psd_compared_names[f],
			     f == PSD_COMPARED_ITERATION ? ",spread_ratio,error_ratio" : "");
	psd_text_add(text, ",are_bytes_exact,is_calibrated,is_extrapolated,is_in_median,is_in_worst\n");
	for (unsigned m = 0; m < comparison->n_measured; m++)
		add_point(text, comparison, comparison->measured[m]);
}
