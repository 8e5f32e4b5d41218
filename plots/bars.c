/* Bars of results, one below the other, with published values and errors. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/spelling.h"
#include "engine/base/units.h"
#include "plots/columns.h"
#include "plots/lines.h"
#include "plots/plot.h"
#include "plots/words.h"

enum { MOST_BARS = 96, MOST_PANELS = 24 };

struct bars {
	struct psd_figure *figure;
	struct psd_results *results;
	enum psd_measure measure;
	struct psd_name_columns names;
	const char *panel_column; /* NULL: one panel */
	struct psd_value *values; /* one for each row */
	bool has_published;
	double most;	 /* greatest value */
	double end_room; /* for the longest text behind a bar */
	struct psd_error *err;
};

static enum psd_status refuse(const struct bars *bars, const char *text)
{
	return psd_error_set(bars->err, PSD_EINVAL, (struct psd_place){.path = bars->results->tables[0].path}, "%s",
			     text);
}

/* Reads values; rows without one, and rows of other systems, are dropped. */
static enum psd_status read_values(struct bars *bars, const char *systems)
{
	struct psd_results *results = bars->results;
	uint32_t n = 0;

	bars->values = psd_arena_take(&bars->figure->arena, (results->n_rows + 1) * sizeof(*bars->values));
	if (!bars->values)
		return psd_out_of_memory(bars->err);
	for (uint32_t r = 0; r < results->n_rows; r++) {
		if (!psd_lines_has_system(systems, psd_row_text(&results->rows[r], "system")))
			continue;
		PSD_TRY(psd_measure_read(bars->measure, &results->rows[r], &bars->values[n], bars->err));
		if (bars->values[n].value <= 0)
			continue;
		bars->most = fmax(bars->most, fmax(bars->values[n].value, bars->values[n].published));
		bars->has_published = bars->has_published || bars->values[n].published > 0;
		results->rows[n++] = results->rows[r];
	}
	results->n_rows = n;
	if (n == 0)
		return refuse(bars, psd_figure_text(bars->figure, "there is no result with a %s in it",
						    psd_measure_names[bars->measure]));
	if (n > MOST_BARS)
		return refuse(bars,
			      psd_figure_text(bars->figure,
					      "has %u results, of which a plot of bars takes %d: choose rows with "
					      "--where, systems with --systems, or draw lines",
					      n, MOST_BARS));
	return psd_results_check_numbers(results, bars->err);
}

/* A panel for each value of the column by which rows differ most, if there are several. */
static void choose_panels(struct bars *bars)
{
	unsigned most = 1;

	for (unsigned i = 0; i < bars->names.n && psd_columns_count(bars->results, "system") > 1; i++) {
		const unsigned n = psd_columns_count(bars->results, bars->names.columns[i]);

		if (n > most && n <= MOST_PANELS && strcmp(bars->names.columns[i], "executor") != 0) {
			most = n;
			bars->panel_column = bars->names.columns[i];
		}
	}
}

static const char *text_of(const struct bars *bars, const struct psd_value *value, bool is_published)
{
	char words[PSD_UNITS_TEXT_MAX];
	const double error = value->published > 0 ? value->value / value->published - 1 : 0;

	psd_units_write_number(is_published ? value->published : value->value, words);
	if (is_published || value->published <= 0 || value->is_fitted)
		return psd_figure_text(bars->figure, " %s", words);
	return psd_figure_text(bars->figure, " %s (%+.1f %%)", words, fabs(100 * error) < 0.05 ? 0 : 100 * error);
}

static void draw_bar(struct bars *bars, struct psd_panel *panel, const struct psd_value *value, double y,
		     bool is_published, const char *colour)
{
	const bool is_hollow = is_published && value->is_fitted;
	const struct psd_look look = {PSD_STYLE_BOXES,
				      is_published ? "#999999" : colour,
				      0,
				      is_published ? 1 : 0,
				      0,
				      0,
				      is_hollow	     ? 0.0
				      : is_published ? 0.5
						     : 1};
	const double length = is_published ? value->published : value->value;
	const double top = value->published <= 0 ? y - 0.3 : is_published ? y + 0.02 : y - 0.38;
	const double bottom = value->published <= 0 ? y + 0.3 : is_published ? y + 0.38 : y - 0.02;
	const char *text = text_of(bars, value, is_published);

	psd_text_add(&psd_figure_add_layer(bars->figure, panel, look)->data, "%.9g %.9g 0 %.9g %.9g %.9g\n", length / 2,
		     (top + bottom) / 2, length, top, bottom);
	psd_figure_add_note(
		bars->figure, panel,
		(struct psd_note){
			.x = length, .y = (top + bottom) / 2, .text = text, .colour = "#000000", .is_left = true});
	bars->end_room = fmax(bars->end_room, psd_words_width(text) + 0.3);
	if (is_published)
		psd_figure_add_entry(bars->figure, is_hollow ? "fitted to published" : "published", look);
}

static const char *name_of(const struct bars *bars, const struct psd_row *row)
{
	const char *rest = psd_columns_name(bars->figure, &bars->names, bars->results, row, false, bars->panel_column);
	const char *system_name = psd_row_text(row, "system");

	return psd_figure_text(bars->figure, "%s%s%s", system_name, *rest ? ", " : "", rest);
}

static unsigned colour_of(const struct bars *bars, const struct psd_row *row)
{
	const char *name = psd_row_text(row, "system");
	unsigned n = 0;

	for (unsigned r = 0; r < bars->results->n_rows; r++) {
		const char *other = psd_row_text(&bars->results->rows[r], "system");
		bool is_first = true;

		if (!strcmp(other, name))
			break;
		for (unsigned q = 0; q < r; q++)
			is_first = is_first && strcmp(psd_row_text(&bars->results->rows[q], "system"), other) != 0;
		n += is_first;
	}
	return n % PSD_PALETTE;
}

/* Draws the rows that have the value of the first one in the column of panels. */
static enum psd_status draw_panel(struct bars *bars, const struct psd_row *first)
{
	struct psd_results *results = bars->results;
	struct psd_figure *figure = bars->figure;
	const char *column = bars->panel_column;
	struct psd_panel *panel =
		psd_figure_add_panel(figure, column ? psd_columns_value(figure, &bars->names, first, column) : NULL);
	unsigned n = 0;

	for (unsigned r = 0; r < results->n_rows; r++) {
		const struct psd_row *row = &results->rows[r];

		if (column && strcmp(psd_row_text(row, column), psd_row_text(first, column)) != 0)
			continue;
		n++;
		psd_figure_add_tic(figure, &panel->y, n, name_of(bars, row));
		draw_bar(bars, panel, &bars->values[r], n, false, psd_palette[colour_of(bars, row)]);
		if (bars->values[r].published > 0)
			draw_bar(bars, panel, &bars->values[r], n, true, NULL);
	}
	panel->y.low = n + 0.6;
	panel->y.high = 0.4;
	panel->y.needs_all = true;
	panel->x.label = psd_measure_label(bars->measure);
	panel->x.high = bars->most * 1.02;
	panel->x.has_grid = true;
	psd_figure_add_round_tics(figure, &panel->x);
	panel->lines = n * (bars->has_published ? 1.9 : 1.3) + 0.3;
	return PSD_OK;
}

static enum psd_status draw(struct bars *bars)
{
	struct psd_results *results = bars->results;

	for (unsigned r = 0; r < results->n_rows; r++) {
		bool is_first = r == 0 || bars->panel_column;

		for (unsigned q = 0; q < r && bars->panel_column; q++)
			is_first = is_first && strcmp(psd_row_text(&results->rows[q], bars->panel_column),
						      psd_row_text(&results->rows[r], bars->panel_column)) != 0;
		if (is_first && bars->figure->n_panels == MOST_PANELS)
			return refuse(bars, "has more panels than a plot takes: choose rows with --where");
		if (is_first)
			PSD_TRY(draw_panel(bars, &results->rows[r]));
	}
	for (unsigned p = 0; p < bars->figure->n_panels; p++) /* one scale */
		bars->figure->panels[p].end_room = bars->end_room;
	bars->figure->title = psd_columns_title(bars->figure, &bars->names, results, "Predicted and published");
	return PSD_OK;
}

enum psd_status psd_plot_bars(struct psd_figure *figure, const struct psd_plot_options *options, struct psd_error *err)
{
	struct psd_results results;
	struct bars bars = {.figure = figure, .results = &results, .err = err};
	unsigned measure = PSD_MEASURE_THROUGHPUT;

	if (options->measure && !psd_spelling_find(options->measure, psd_measure_names, &measure))
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE,
				     "'--measure' is '%.80s', must be speedup, efficiency, seconds or throughput",
				     options->measure);
	bars.measure = (enum psd_measure)measure;
	enum psd_status status = psd_results_read(&results, (const char *const *)options->arguments.operands,
						  options->arguments.n_operands, psd_measure_columns(bars.measure),
						  (const char *const *)options->arguments.settings, err);
	if (!status)
		status = read_values(&bars, options->systems);
	if (!status)
		status = psd_name_columns_find(&bars.names, &results, "", err);
	if (!status) {
		choose_panels(&bars);
		status = draw(&bars);
	}
	psd_figure_keep(figure, &results.arena);
	psd_results_release(&results);
	return status;
}
