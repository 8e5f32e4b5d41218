/* Names, panels, axes and looks of lines. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plots/lines_parts.h"

enum {
	MOST_OVER = 5,
	MOST_LINES = 8,
	MOST_PANELS = 24,
	MOST_AT_A_GLANCE = 9,
	EXECUTED_POINT = 5,
	DASHES = 4,
	MARKS = 4
};
#define MATERIAL 0.005 /* share by which a best value differs from another */

/* ---- panels, names and looks ---- */

static unsigned count_places(const struct psd_series *series)
{
	unsigned n = 0;
	double last = -1;

	for (const struct psd_point_at *point = series->points; point; point = point->next) {
		n += point->x != last;
		last = point->x;
	}
	return n;
}

/* A line of one point is none. Executed values are points beside the lines, or lines if nothing is predicted. */
static enum psd_status check_lines(struct psd_drawing *drawing)
{
	struct psd_figure *figure = drawing->figure;
	unsigned n_predicted = 0, n_lines = 0;

	if (!drawing->n_series)
		return psd_drawing_refuse(drawing, psd_figure_text(figure, "there is no result with a %s in it",
								   psd_measure_names[drawing->lines->measure]));
	for (unsigned s = 0; s < drawing->n_series; s++) {
		drawing->series[s].n_places = count_places(&drawing->series[s]);
		n_predicted += !drawing->series[s].is_executed;
	}
	for (unsigned s = 0; s < drawing->n_series; s++) {
		struct psd_series *series = &drawing->series[s];

		series->is_executed = series->is_executed && n_predicted;
		n_lines += series->n_places > 1 && !series->is_level;
	}
	if (n_lines)
		return PSD_OK;
	const char *other = NULL;

	for (unsigned i = 0; i < drawing->names.n && !other; i++)
		if (strcmp(drawing->names.columns[i], "scenario") != 0 &&
		    strcmp(drawing->names.columns[i], "executor") != 0)
			other = drawing->names.columns[i];
	return psd_drawing_refuse(
		drawing,
		psd_figure_text(figure, "has one value of '%s' in each line, a line needs several%s%s%s%s",
				drawing->over,
				!strcmp(drawing->over, "fuse_bytes") ? ": say 'sweep: {fuse: [...]}'" : "",
				other ? "; '" : "", other ? other : "",
				other ? "' varies, --over draws it" : "; 'psd-plot bars' draws single points"));
}

/* Numbers the panels by a column. Returns their number, or 0 if a panel would have more than MOST_LINES lines, or there
 * would be too many panels. */
static unsigned number_panels(struct psd_drawing *drawing, const char *column)
{
	unsigned n_panels = 0, n_lines[MOST_PANELS] = {0};
	const char *values[MOST_PANELS];

	for (unsigned s = 0; s < drawing->n_series; s++) {
		struct psd_series *series = &drawing->series[s];
		const char *value = psd_row_text(series->row, column);
		unsigned p = 0;

		while (p < n_panels && strcmp(values[p], value) != 0)
			p++;
		if (p == MOST_PANELS)
			return 0;
		if (p == n_panels)
			values[n_panels++] = value;
		series->panel = p;
		n_lines[p] += !series->is_executed;
		if (n_lines[p] > MOST_LINES)
			return 0;
	}
	return n_panels;
}

static enum psd_status refuse_many(struct psd_drawing *drawing, unsigned n_lines)
{
	return psd_drawing_refuse(
		drawing, psd_figure_text(drawing->figure,
					 "has %u lines, of which a plot takes %d in panels of %d: choose systems with "
					 "--systems, rows with --where, or give fewer files",
					 n_lines, MOST_PANELS * MOST_LINES, MOST_LINES));
}

static unsigned count_lines(const struct psd_drawing *drawing)
{
	unsigned n_lines = 0;

	for (unsigned s = 0; s < drawing->n_series; s++)
		n_lines += !drawing->series[s].is_executed;
	return n_lines;
}

/* A picture of many panels is hard to read. */
static void hint_at_fewer(struct psd_drawing *drawing, unsigned n_panels)
{
	if (n_panels > MOST_AT_A_GLANCE)
		drawing->figure->hint =
			psd_figure_text(drawing->figure,
					"%u lines in %u panels: --where COLUMN=VALUE or --systems NAME,... draws fewer",
					count_lines(drawing), n_panels);
}

/* Sets the panel of each series; *n_panels: their number. */
static enum psd_status choose_panels(struct psd_drawing *drawing, unsigned *n_panels)
{
	const char *asked = drawing->lines->panels;
	const unsigned n_lines = count_lines(drawing);

	*n_panels = 1;
	if (asked) {
		PSD_TRY(psd_results_check_column(drawing->results, "--panels", asked, drawing->err));
		drawing->panel_column = asked;
		*n_panels = number_panels(drawing, asked);
		return *n_panels ? PSD_OK
				 : psd_drawing_refuse(
					   drawing,
					   psd_figure_text(
						   drawing->figure,
						   "'--panels %s' makes more than %d panels, or more than %d lines in "
						   "one: choose systems with --systems, or rows with --where",
						   asked, MOST_PANELS, MOST_LINES));
	}
	if (n_lines <= MOST_LINES)
		return PSD_OK;
	for (unsigned i = 0; i <= drawing->names.n; i++) {
		const char *column = i < drawing->names.n ? drawing->names.columns[i] : "system";

		*n_panels = number_panels(drawing, column);
		if (*n_panels > 1 && *n_panels < n_lines) { /* a panel of one line shows nothing */
			drawing->panel_column = column;
			return PSD_OK;
		}
	}
	for (unsigned s = 0, n = 0; s < drawing->n_series; s++) {
		drawing->series[s].panel = n / MOST_LINES;
		n += !drawing->series[s].is_executed;
		if (drawing->series[s].panel >= MOST_PANELS)
			return refuse_many(drawing, n_lines);
		*n_panels = drawing->series[s].panel + 1;
	}
	return PSD_OK;
}

/* Returns the number of a text in a list that grows. */
static unsigned number_of(struct psd_drawing *drawing, const char **list, unsigned *n, const char *text)
{
	unsigned i = 0;

	while (i < *n && strcmp(list[i], text) != 0)
		i++;
	if (i == *n && *n < drawing->n_series)
		list[(*n)++] = text;
	return i;
}

static enum psd_status name_series(struct psd_drawing *drawing)
{
	struct psd_figure *figure = drawing->figure;
	const size_t room = (drawing->n_series + 1) * sizeof(char *);
	const char **rests = psd_arena_take(&figure->arena, room);
	const bool is_by_system = drawing->panel_column && !strcmp(drawing->panel_column, "system");
	unsigned n_rests = 0, first_system = UINT32_MAX;

	if (!rests)
		return psd_out_of_memory(drawing->err);
	drawing->has_one_system = true;
	for (unsigned s = 0; s < drawing->n_series; s++) {
		const struct psd_series *series = &drawing->series[s];

		if (series->is_level || series->is_executed)
			continue;
		drawing->has_one_system = drawing->has_one_system &&
					  (first_system == UINT32_MAX || first_system == series->system_number);
		first_system = series->system_number;
	}
	for (unsigned s = 0; s < drawing->n_series; s++) {
		struct psd_series *series = &drawing->series[s];
		const char *rest = psd_columns_name(figure, &drawing->names, drawing->results, series->row,
						    series->is_level, drawing->panel_column);
		const char *system_name = psd_row_text(series->row, "system");
		const bool is_short = (is_by_system || (drawing->has_one_system && !series->is_level &&
							drawing->lines->measure != PSD_MEASURE_SPEEDUP)) &&
				      *rest;

		if (!*system_name && !*rest)
			rest = psd_columns_value(figure, &drawing->names, series->row, "workers");
		series->name = is_short ? rest
					: psd_figure_text(figure, "%s%s%s", system_name,
							  *rest && *system_name ? ", " : "", rest);
		const unsigned number = number_of(drawing, rests, &n_rests, rest);

		series->variant = number;
	}
	for (unsigned s = 0; s < drawing->n_series; s++) {
		struct psd_series *series = &drawing->series[s];
		const bool is_by_name = is_by_system || (drawing->has_one_system && n_rests > 1);

		series->colour = is_by_name ? series->variant : series->system_number;
		series->variant += series->colour / PSD_PALETTE; /* no colour is left for it */
		series->colour %= PSD_PALETTE;
	}
	return PSD_OK;
}

static unsigned dash_of(const struct psd_drawing *drawing, const struct psd_series *series)
{
	static const unsigned dashes[DASHES] = {1, 4, 5, 3};

	if (series->is_level)
		return 2 + series->system_number % DASHES;
	return dashes[(drawing->has_one_system ? series->variant / PSD_PALETTE : series->variant) % DASHES];
}

/* Another mark beside the same dash, so that 16 variants differ. The square is for executed values. */
static int mark_of(const struct psd_series *series, bool is_filled)
{
	static const int filled[MARKS] = {7, 9, 11, 13}, hollow[MARKS] = {6, 8, 10, 12};
	const unsigned v = series->variant;
	const unsigned i = (v + v / MARKS) % MARKS;

	return is_filled ? filled[i] : hollow[i];
}

/* ---- drawing ---- */

static double tolerance_of(const struct psd_axis *axis)
{
	return axis->log_base ? 0 : (axis->high - axis->low) / 100;
}

/* True if two lines look equal: each common x has values that the axis does not tell apart. */
static bool do_coincide(const struct psd_series *one, const struct psd_series *other, const struct psd_axis *axis)
{
	const double tolerance = tolerance_of(axis);
	unsigned n_shared = 0;

	for (const struct psd_point_at *point = one->points; point; point = point->next) {
		const double a = point->value.value, b = psd_drawing_value_at(other, point->x);

		if (b <= 0)
			continue;
		if (tolerance > 0 ? fabs(a - b) > tolerance : (a > 1.02 * b || b > 1.02 * a))
			return false;
		n_shared++;
	}
	return n_shared > 0;
}

/* The number of later lines of the panel that cover this one. It is drawn wider by as much, so that it shows. */
static unsigned lines_over(const struct psd_drawing *drawing, unsigned s, const struct psd_axis *axis)
{
	unsigned n = 0;

	for (unsigned o = s + 1; o < drawing->n_series && n < MOST_OVER; o++) {
		const struct psd_series *one = &drawing->series[s], *other = &drawing->series[o];

		if (one->panel == other->panel && !one->is_executed && !other->is_executed && !one->is_level &&
		    !other->is_level && one->colour != other->colour)
			n += do_coincide(one, other, axis);
	}
	return n;
}

static void draw_published(struct psd_drawing *drawing, struct psd_panel *panel, const struct psd_series *series)
{
	for (unsigned is_fitted = 0; is_fitted < 2; is_fitted++) {
		const struct psd_look look =
			is_fitted ? (struct psd_look){PSD_STYLE_POINTS, psd_palette[series->colour], 0, 2.2, 2, 1.2, 1}
				  : (struct psd_look){PSD_STYLE_POINTS,
						      psd_palette[series->colour],
						      0,
						      1.6,
						      mark_of(series, false),
						      1.35,
						      1};
		struct psd_layer *layer = NULL;

		for (const struct psd_point_at *point = series->points; point; point = point->next) {
			if (point->value.published <= 0 || point->value.is_fitted != is_fitted)
				continue;
			layer = layer ? layer : psd_figure_add_layer(drawing->figure, panel, look);
			psd_text_add(&layer->data, "%.9g %.9g\n", point->x, point->value.published);
			drawing->has_fitted = drawing->has_fitted || is_fitted;
			drawing->has_published = drawing->has_published || !is_fitted;
		}
	}
}

/* True if both ends of a line are at least half a per cent worse than its best. */
static bool is_valley(const struct psd_series *series, double best)
{
	double last = 0;

	for (const struct psd_point_at *point = series->points; point; point = point->next)
		last = point->value.value;
	return fabs(series->points->value.value - best) > MATERIAL * best && fabs(last - best) > MATERIAL * best;
}

/* Marks the best point of a line where it is not an end. */
static void draw_best(struct psd_drawing *drawing, struct psd_panel *panel, const struct psd_series *series)
{
	const struct psd_look look = {PSD_STYLE_POINTS, psd_palette[series->colour], 0, 1.8, 6, 1.9, 1};
	const double best = psd_drawing_best_of(drawing, series);
	const struct psd_point_at *found = NULL;

	for (const struct psd_point_at *point = series->points; point; point = point->next)
		found = point->value.value == best && !found ? point : found;
	if (!found || !is_valley(series, best) || series->is_executed || series->is_level ||
	    (drawing->lines->relative && strcmp(drawing->lines->relative, "best") != 0))
		return;
	psd_text_add(&psd_figure_add_layer(drawing->figure, panel, look)->data, "%.9g %.9g\n", found->x, best);
	drawing->has_bests = true;
}

static void draw_band(struct psd_drawing *drawing, struct psd_panel *panel, const struct psd_series *series)
{
	struct psd_layer *layer = NULL;
	unsigned n = 0;

	for (const struct psd_point_at *point = series->points; point; point = point->next)
		n += point->value.low > 0 && point->value.high > 0;
	if (n > 1)
		layer = psd_figure_add_layer(
			drawing->figure, panel,
			(struct psd_look){PSD_STYLE_BAND, psd_palette[series->colour], 0, 0, 0, 0, 0.15});
	for (const struct psd_point_at *point = series->points; point && layer; point = point->next)
		if (point->value.low > 0 && point->value.high > 0)
			psd_text_add(&layer->data, "%.9g %.9g %.9g\n", point->x, point->value.low, point->value.high);
}

static struct psd_look look_of(const struct psd_drawing *drawing, const struct psd_series *series)
{
	const char *colour = psd_palette[series->colour];
	const double over = series->n_over;

	if (series->is_executed)
		return (struct psd_look){PSD_STYLE_POINTS, colour, 0, 1.6, EXECUTED_POINT, 1.2, 1};
	if (series->is_level)
		return (struct psd_look){PSD_STYLE_LINE, colour, dash_of(drawing, series), 1.6, 0, 0, 1};
	return (struct psd_look){series->n_places > 1 ? PSD_STYLE_LINE : PSD_STYLE_POINTS,
				 colour,
				 dash_of(drawing, series),
				 2 + 2.5 * over,
				 psd_row_is_executed(series->row) ? EXECUTED_POINT : mark_of(series, true),
				 0.6 + 0.3 * over,
				 1};
}

static void draw_series(struct psd_drawing *drawing, struct psd_panel *panel, struct psd_series *series)
{
	const struct psd_look look = look_of(drawing, series);
	struct psd_look sample = look;
	struct psd_layer *layer = psd_figure_add_layer(drawing->figure, panel, look);

	for (const struct psd_point_at *point = series->points; point; point = point->next) {
		if (series->is_level)
			psd_text_add(&layer->data, "%.9g %.9g\n%.9g %.9g\n", panel->x.low, point->value.value,
				     panel->x.high, point->value.value);
		else
			psd_text_add(&layer->data, "%.9g %.9g\n", point->x, point->value.value);
	}
	sample.width = fmin(sample.width, 2);
	sample.size = fmin(sample.size, 1.2);
	if (!series->is_executed)
		psd_figure_add_entry(drawing->figure, series->name, sample);
	drawing->has_executed = drawing->has_executed || series->is_executed;
}

static void draw_panel(struct psd_drawing *drawing, unsigned number)
{
	struct psd_figure *figure = drawing->figure;
	const struct psd_series *first = NULL;

	for (unsigned s = 0; s < drawing->n_series && !first; s++)
		if (drawing->series[s].panel == number)
			first = &drawing->series[s];
	struct psd_panel *panel = psd_figure_add_panel(
		figure, drawing->panel_column && first
				? psd_columns_value(figure, &drawing->names, first->row, drawing->panel_column)
				: NULL);

	psd_drawing_make_x_axis(drawing, panel);
	psd_drawing_make_y_axis(drawing, panel, number);
	for (unsigned s = 0; s < drawing->n_series; s++)
		drawing->series[s].n_over = lines_over(drawing, s, &panel->y);
	if (drawing->lines->relative ||
	    (drawing->lines->measure == PSD_MEASURE_SPEEDUP && !strcmp(drawing->over, "workers"))) {
		struct psd_layer *ideal = psd_figure_add_layer(
			figure, panel, (struct psd_look){PSD_STYLE_LINE, "#999999", 2, 1.4, 0, 0, 1});

		if (drawing->lines->relative)
			psd_text_add(&ideal->data, "%.9g 1\n%.9g 1\n", panel->x.low, panel->x.high);
		for (double x = drawing->x.least; !drawing->lines->relative && x <= drawing->x.most;
		     x += (drawing->x.most - drawing->x.least) / 64)
			psd_text_add(&ideal->data, "%.9g %.9g\n", x, x);
	}
	for (unsigned s = 0; s < drawing->n_series; s++)
		if (drawing->series[s].panel == number)
			draw_band(drawing, panel, &drawing->series[s]);
	for (unsigned s = 0; s < drawing->n_series; s++)
		if (drawing->series[s].panel == number)
			draw_series(drawing, panel, &drawing->series[s]);
	for (unsigned s = 0; s < drawing->n_series; s++)
		if (drawing->series[s].panel == number) {
			draw_published(drawing, panel, &drawing->series[s]);
			draw_best(drawing, panel, &drawing->series[s]);
		}
}

static void add_common_entries(struct psd_drawing *drawing)
{
	struct psd_figure *figure = drawing->figure;
	const struct psd_look published = {PSD_STYLE_POINTS, PSD_GREY, 0, 1.6, 6, 1.2, 1},
			      fitted = {PSD_STYLE_POINTS, PSD_GREY, 0, 2.2, 2, 1.1, 1},
			      executed = {PSD_STYLE_POINTS, PSD_GREY, 0, 1.6, EXECUTED_POINT, 1.1, 1},
			      best = {PSD_STYLE_POINTS, PSD_GREY, 0, 1.8, 6, 1.5, 1},
			      ideal = {PSD_STYLE_LINE, "#999999", 2, 1.4, 0, 0, 1};
	const char *relative = drawing->lines->relative;

	if (drawing->has_published)
		psd_figure_add_entry(figure, "published", published);
	if (drawing->has_fitted)
		psd_figure_add_entry(figure, "fitted to published", fitted);
	if (drawing->has_executed)
		psd_figure_add_entry(figure, "executed", executed);
	if (drawing->has_bests)
		psd_figure_add_entry(figure, drawing->lines->measure == PSD_MEASURE_SECONDS ? "least" : "most", best);
	if (relative && strcmp(relative, "best") != 0)
		psd_figure_add_entry(figure, relative, ideal);
	else if (!relative && drawing->lines->measure == PSD_MEASURE_SPEEDUP && !strcmp(drawing->over, "workers"))
		psd_figure_add_entry(figure, "ideal", ideal);
}

enum psd_status psd_drawing_draw(struct psd_drawing *drawing)
{
	unsigned n_panels;

	PSD_TRY(check_lines(drawing));
	PSD_TRY(choose_panels(drawing, &n_panels));
	hint_at_fewer(drawing, n_panels);
	PSD_TRY(name_series(drawing));
	const char *title = psd_columns_title(drawing->figure, &drawing->names, drawing->results,
					      psd_figure_text(drawing->figure, "%c%s",
							      psd_measure_names[drawing->lines->measure][0] - 32,
							      psd_measure_names[drawing->lines->measure] + 1));
	const char *system_name = psd_row_text(drawing->series[0].row, "system");

	drawing->figure->title = drawing->has_one_system && drawing->lines->measure != PSD_MEASURE_SPEEDUP &&
						 *system_name && psd_columns_count(drawing->results, "system") == 1
					 ? psd_figure_text(drawing->figure, "%s: %s", title, system_name)
					 : title;
	for (unsigned p = 0; p < n_panels; p++)
		draw_panel(drawing, p);
	add_common_entries(drawing);
	return PSD_OK;
}
