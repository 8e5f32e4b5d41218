/* Axes of lines: ranges that show a valley, tics at the values that occur. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/sort.h"
#include "plots/lines_parts.h"

/* ---- the y axis ---- */

static void widen(struct psd_range *range, const struct psd_value *value)
{
	psd_range_add(range, value->value);
	if (value->published > 0)
		psd_range_add(range, value->published);
	if (value->low > 0)
		psd_range_add(range, value->low);
	if (value->high > 0)
		psd_range_add(range, value->high);
}

static struct psd_range y_range(const struct psd_drawing *drawing, unsigned panel)
{
	/* panels of a speedup have one scale, so that they compare; seconds have their own, which shows valleys */
	const bool is_shared =
		drawing->lines->measure == PSD_MEASURE_SPEEDUP || drawing->lines->measure == PSD_MEASURE_EFFICIENCY;
	struct psd_range range = {.is_there = false};

	for (unsigned s = 0; s < drawing->n_series; s++)
		for (const struct psd_point_at *point = drawing->series[s].points; point; point = point->next)
			if (is_shared || drawing->series[s].panel == panel)
				widen(&range, &point->value);
	if (drawing->lines->relative)
		psd_range_add(&range, 1);
	return range;
}

static bool is_powers_of_two(const struct psd_drawing *drawing)
{
	return !strcmp(drawing->over, "workers") || !strcmp(drawing->over, "nodes") ||
	       !strcmp(drawing->over, "fuse_bytes") || strstr(drawing->over, "batch");
}

static void make_speedup_axis(struct psd_drawing *drawing, struct psd_axis *axis, const struct psd_range *range)
{
	const bool is_over_workers = !strcmp(drawing->over, "workers");
	const double top = is_over_workers ? fmax(range->most, drawing->x.most) : range->most;
	const double low = is_over_workers ? fmin(range->least, drawing->x.least) : range->least;

	if (drawing->lines->is_linear || drawing->is_category) {
		axis->low = 0;
		axis->high = top * 1.04;
		psd_figure_add_round_tics(drawing->figure, axis);
		return;
	}
	axis->log_base = 2;
	axis->low = low / 1.12;
	axis->high = top * 1.15;
	for (double power = exp2(ceil(log2(axis->low))); power <= axis->high; power *= 2)
		psd_figure_add_tic(drawing->figure, axis, power, psd_figure_text(drawing->figure, "%g", power));
}

/* A valley of 6 % shows: an axis begins at 0 only if its values reach down there. Values of very different size have a
 * logarithmic one. */
void psd_drawing_make_y_axis(struct psd_drawing *drawing, struct psd_panel *panel, unsigned number)
{
	const struct psd_range range = y_range(drawing, number);
	struct psd_axis *axis = &panel->y;
	const char *label = psd_measure_label(drawing->lines->measure);
	const char *relative = drawing->lines->relative;

	axis->has_grid = true;
	axis->label = !relative ? label
		      : !strcmp(relative, "best")
			      ? psd_figure_text(drawing->figure, "%s, over the best",
						psd_measure_names[drawing->lines->measure])
			      : psd_figure_text(drawing->figure, "%s, over %s",
						psd_measure_names[drawing->lines->measure], relative);
	if (drawing->lines->measure == PSD_MEASURE_SPEEDUP && !relative) {
		make_speedup_axis(drawing, axis, &range);
		return;
	}
	const double span = fmax(range.most - range.least, 0.02 * range.most);

	if (range.most > 25 * range.least && drawing->lines->measure != PSD_MEASURE_EFFICIENCY) {
		axis->log_base = 10;
		axis->low = range.least / 1.25;
		axis->high = range.most * 1.25;
	} else if (range.least > 0.4 * range.most) {
		axis->low = range.least - 0.12 * span;
		axis->high = range.most + 0.12 * span;
	} else {
		axis->low = 0;
		axis->high = range.most * 1.08;
	}
	psd_figure_add_round_tics(drawing->figure, axis);
}

/* ---- the x axis of a panel ---- */

void psd_drawing_make_x_axis(struct psd_drawing *drawing, struct psd_panel *panel)
{
	struct psd_axis *axis = &panel->x;
	struct psd_figure *figure = drawing->figure;
	double *values = psd_arena_take(&figure->arena, (drawing->results->n_rows + 1) * sizeof(*values));
	unsigned n = 0;

	axis->label = psd_columns_label(figure, drawing->over);
	axis->has_grid = true;
	if (!values) {
		figure->is_out_of_memory = true;
		return;
	}
	if (drawing->is_category) {
		axis->low = 0.5;
		axis->high = drawing->n_categories + 0.5;
		for (unsigned i = 0; i < drawing->n_categories; i++)
			psd_figure_add_tic(figure, axis, i + 1, drawing->categories[i]);
		return;
	}
	const double ratio = drawing->x.most / drawing->x.least;
	const bool is_log = is_powers_of_two(drawing) ? !drawing->lines->is_linear : ratio >= 8;

	if (is_log) {
		axis->log_base = is_powers_of_two(drawing) ? 2 : 10;
		axis->low = drawing->x.least / 1.12;
		axis->high = drawing->x.most * 1.12;
	} else {
		const double margin = fmax(0.04 * (drawing->x.most - drawing->x.least), 0.04 * drawing->x.most);

		axis->low = !strcmp(drawing->over, "workers") ? 0 : drawing->x.least - margin;
		axis->high = drawing->x.most + margin;
	}
	/* one tic for each value; workers: at powers of two, and at the ends */
	for (unsigned s = 0; s < drawing->n_series; s++)
		for (const struct psd_point_at *point = drawing->series[s].points; point && point->x > 0;
		     point = point->next)
			if (n < drawing->results->n_rows)
				values[n++] = point->x;
	psd_sort_doubles(values, n);
	for (unsigned i = 0; i < n; i++) {
		if (i && values[i] == values[i - 1])
			continue;
		if (!strcmp(drawing->over, "workers") && i && values[i] != drawing->x.most &&
		    (exp2(round(log2(values[i]))) != values[i] || values[i] * 1.3 > drawing->x.most))
			continue;
		psd_figure_add_tic(figure, axis, values[i], psd_columns_quantity(figure, drawing->over, values[i]));
	}
}
