/* Points of lines: their places, the systems and columns that they belong to, and ratios of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/names.h"
#include "plots/lines_parts.h"
#include "plots/plot.h"
#include "plots/steps.h"

enum { MOST_CATEGORIES = 40 };

bool psd_lines_has_system(const char *list, const char *name)
{
	const size_t length = strlen(name);

	for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
		if (!strncmp(at, name, length) && (at[length] == ',' || !at[length]))
			return true;
	return !list;
}

enum psd_status psd_drawing_refuse(const struct psd_drawing *drawing, const char *text)
{
	return psd_error_set(drawing->err, PSD_EINVAL, (struct psd_place){.path = drawing->results->tables[0].path},
			     "%s", text);
}

/* ---- the x axis ---- */

/* The column that varies within systems. Returns NULL: none does. */
static const char *find_over(const struct psd_results *results)
{
	static const char *const usual[] = {"workers", "bandwidth_bps", "fuse_bytes", NULL};

	for (unsigned i = 0; usual[i]; i++)
		if (psd_columns_count(results, usual[i]) > 1)
			return usual[i];
	for (unsigned t = 0; t < results->n_tables; t++)
		for (unsigned c = 0; c < results->tables[t].n_columns; c++) {
			const char *name = results->tables[t].names[c];

			if (psd_columns_is_swept(&results->tables[t], c) && psd_columns_count(results, name) > 1)
				return name;
		}
	return NULL;
}

static enum psd_status choose_over(struct psd_drawing *drawing)
{
	const struct psd_results *results = drawing->results;
	double value;

	drawing->over = drawing->lines->over ? drawing->lines->over : find_over(results);
	if (!drawing->over)
		return psd_drawing_refuse(
			drawing, "all rows are of one point, lines need several: 'psd-plot bars' draws one point");
	PSD_TRY(psd_results_check_column(drawing->results, "--over", drawing->over, drawing->err));
	for (unsigned r = 0; r < results->n_rows; r++) {
		const char *text = psd_row_text(&results->rows[r], drawing->over);

		drawing->is_category = drawing->is_category || (*text && !psd_results_read_number(text, &value));
	}
	if (!strcmp(drawing->over, "workers") || !strcmp(drawing->over, "nodes"))
		drawing->is_category = false; /* a damaged number is refused below */
	return PSD_OK;
}

static enum psd_status read_x(struct psd_drawing *drawing, const struct psd_row *row, double *x)
{
	const char *text = psd_row_text(row, drawing->over);

	if (!drawing->is_category)
		return psd_row_read_positive(row, drawing->over, strcmp(drawing->over, "workers") != 0, x,
					     drawing->err);
	for (unsigned i = 0; i < drawing->n_categories; i++)
		if (!strcmp(drawing->categories[i], text)) {
			*x = i + 1;
			return PSD_OK;
		}
	if (drawing->n_categories == MOST_CATEGORIES)
		return psd_drawing_refuse(drawing, psd_figure_text(drawing->figure,
								   "'%s' has more than %d values that are no numbers",
								   drawing->over, MOST_CATEGORIES));
	drawing->categories[drawing->n_categories++] = text;
	*x = drawing->n_categories;
	return PSD_OK;
}

/* ---- collecting ---- */

/* Adds a point in the order of x; equal ones keep the order of the files. A row that is repeated counts once. */
static enum psd_status add_point(struct psd_drawing *drawing, struct psd_series *series, struct psd_point_at *point)
{
	struct psd_point_at **at = &series->points;

	while (*at && (*at)->x <= point->x) {
		if ((*at)->x == point->x && !series->is_executed && (*at)->value.value == point->value.value)
			return PSD_OK;
		at = &(*at)->next;
	}
	if (at != &series->points && !series->is_executed) {
		const struct psd_point_at *before = series->points;

		while (before->next != *at)
			before = before->next;
		if (before->x == point->x)
			return psd_row_refuse(point->row, drawing->err,
					      "'%s' has a second result at %s %s, a line needs one: keep the rows of "
					      "one with --where, or give fewer files",
					      psd_row_text(point->row, "system"),
					      psd_columns_label(drawing->figure, drawing->over),
					      *psd_row_text(point->row, drawing->over) && !drawing->is_category
						      ? psd_columns_quantity(drawing->figure, drawing->over, point->x)
						      : psd_row_text(point->row, drawing->over));
	}
	point->next = *at;
	*at = point;
	series->n_points++;
	return PSD_OK;
}

static struct psd_series *find_series(struct psd_drawing *drawing, struct psd_names *known, const char *key,
				      bool is_executed, bool is_level)
{
	const char *full = psd_figure_text(drawing->figure, "%s\2%d%d", key, is_executed, is_level);
	unsigned number = drawing->n_series;

	if (psd_names_find(known, full, &number))
		return &drawing->series[number];
	if (!psd_names_put(known, full, number))
		drawing->figure->is_out_of_memory = true;
	drawing->series[number] = (struct psd_series){.key = key, .is_executed = is_executed, .is_level = is_level};
	drawing->n_series++;
	return &drawing->series[number];
}

static enum psd_status collect_row(struct psd_drawing *drawing, unsigned r, struct psd_names *known)
{
	const struct psd_row *row = &drawing->results->rows[r];
	struct psd_value value;
	double x, bps;

	PSD_TRY(psd_measure_read(drawing->lines->measure, row, &value, drawing->err));
	PSD_TRY(psd_row_read_positive(row, "bandwidth_bps", true, &bps, drawing->err));
	PSD_TRY(read_x(drawing, row, &x));
	if (value.value <= 0)
		return PSD_OK; /* no baseline to compare with */
	const bool is_executed = psd_row_is_executed(row);
	struct psd_series *series = find_series(drawing, known, drawing->names.keys[r], is_executed, x <= 0);
	struct psd_point_at *point = psd_arena_take(&drawing->figure->arena, sizeof(*point));

	if (!point)
		return psd_out_of_memory(drawing->err);
	*point = (struct psd_point_at){row, x, value, NULL};
	series->row = series->row ? series->row : row;
	if (x > 0)
		psd_range_add(&drawing->x, x);
	return add_point(drawing, series, point);
}

/* Numbers systems in the order of the files, so that each keeps its colour whatever is left out; then drops the rows of
 * those that are not to be drawn. */
static enum psd_status number_systems(struct psd_drawing *drawing, struct psd_names *systems)
{
	struct psd_results *results = drawing->results;
	const char *list = drawing->lines->systems;
	unsigned number;
	uint32_t kept = 0;

	for (unsigned r = 0; r < results->n_rows; r++) {
		const char *name = psd_row_text(&results->rows[r], "system");

		if (!psd_names_find(systems, name, &number) && !psd_names_put(systems, name, (unsigned)systems->n_used))
			return psd_out_of_memory(drawing->err);
	}
	for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
		const char *name = psd_figure_text(drawing->figure, "%.*s", (int)strcspn(at, ","), at);
		const char *all = "";
		unsigned n = 0;

		if (psd_names_find(systems, name, &number))
			continue;
		for (unsigned r = 0; r < results->n_rows; r++) {
			const char *known = psd_row_text(&results->rows[r], "system");

			if (psd_names_find(systems, known, &number) && number == n) {
				n++;
				all = psd_figure_text(drawing->figure, "%s%s'%s'", all,
						      n == 1		     ? ""
						      : n == systems->n_used ? " and "
									     : ", ",
						      known);
			}
		}
		return psd_drawing_refuse(
			drawing,
			psd_figure_text(drawing->figure, "there is no system '%.80s', there are %s", name, all));
	}
	for (unsigned r = 0; r < results->n_rows; r++)
		if (psd_lines_has_system(list, psd_row_text(&results->rows[r], "system")))
			results->rows[kept++] = results->rows[r];
	results->n_rows = kept;
	return PSD_OK;
}

static enum psd_status collect(struct psd_drawing *drawing)
{
	struct psd_results *results = drawing->results;
	struct psd_names known = {.slots = NULL}, systems = {.slots = NULL};
	enum psd_status status = number_systems(drawing, &systems);

	if (!status)
		status = choose_over(drawing);
	if (!status)
		status = psd_name_columns_find(&drawing->names, results, drawing->over, drawing->err);
	drawing->series = psd_arena_take(&drawing->figure->arena, (results->n_rows + 1) * sizeof(*drawing->series));
	drawing->categories = psd_arena_take(&drawing->figure->arena, MOST_CATEGORIES * sizeof(char *));
	if (!status && (!drawing->series || !drawing->categories))
		status = psd_out_of_memory(drawing->err);
	for (unsigned r = 0; r < results->n_rows && !status; r++)
		status = collect_row(drawing, r, &known);
	for (unsigned s = 0; s < drawing->n_series && !status; s++)
		psd_names_find(&systems, psd_row_text(drawing->series[s].row, "system"),
			       &drawing->series[s].system_number);
	psd_names_release(&known);
	psd_names_release(&systems);
	return status ? status : psd_results_check_numbers(results, drawing->err);
}

/* ---- ratios ---- */

double psd_drawing_value_at(const struct psd_series *series, double x)
{
	for (const struct psd_point_at *point = series->points; point; point = point->next)
		if (point->x == x || series->is_level)
			return point->value.value;
	return 0;
}

/* The series of the baseline that has the same values in all columns of the name. */
static const struct psd_series *find_baseline(const struct psd_drawing *drawing, const struct psd_series *series)
{
	const char *rest = strchr(series->key, '\1');

	for (unsigned s = 0; s < drawing->n_series; s++) {
		const struct psd_series *other = &drawing->series[s];
		const char *other_rest = strchr(other->key, '\1');

		if (!strcmp(psd_row_text(other->row, "system"), drawing->lines->relative) && !other->is_executed &&
		    !strcmp(rest ? rest : "", other_rest ? other_rest : ""))
			return other;
	}
	return NULL;
}

double psd_drawing_best_of(const struct psd_drawing *drawing, const struct psd_series *series)
{
	double best = 0;

	for (const struct psd_point_at *point = series->points; point; point = point->next)
		if (best <= 0 || (drawing->lines->measure == PSD_MEASURE_SECONDS ? point->value.value < best
										 : point->value.value > best))
			best = point->value.value;
	return best;
}

static void divide(struct psd_value *value, double by)
{
	value->value /= by;
	value->low /= by;
	value->high /= by;
	value->published /= by;
}

/* Divides all values by those of the baseline; points without one are dropped, and the baseline itself. */
static enum psd_status make_relative(struct psd_drawing *drawing)
{
	const char *relative = drawing->lines->relative;
	const bool is_best = relative && !strcmp(relative, "best");
	unsigned n_kept = 0;

	if (!relative)
		return PSD_OK;
	const struct psd_series **bases =
		psd_arena_take(&drawing->figure->arena, (drawing->n_series + 1) * sizeof(*bases));

	if (!bases)
		return psd_out_of_memory(drawing->err);
	for (unsigned s = 0; s < drawing->n_series; s++)
		bases[s] = is_best ? NULL : find_baseline(drawing, &drawing->series[s]);
	for (unsigned pass = 0; pass < 2; pass++)
		for (unsigned s = 0; s < drawing->n_series; s++) {
			struct psd_series *series = &drawing->series[s];
			const double best = psd_drawing_best_of(drawing, series);

			if ((bases[s] == series) != (pass == 1)) /* the baseline comes last: others need its values */
				continue;
			for (struct psd_point_at **at = &series->points; *at;) {
				const double base = is_best    ? best
						    : bases[s] ? psd_drawing_value_at(bases[s], (*at)->x)
							       : 0;

				if (base > 0 && bases[s] != series) {
					divide(&(*at)->value, base);
					at = &(*at)->next;
				} else {
					*at = (*at)->next;
					series->n_points--;
				}
			}
		}
	for (unsigned s = 0; s < drawing->n_series; s++)
		if (drawing->series[s].n_points)
			drawing->series[n_kept++] = drawing->series[s];
	drawing->n_series = n_kept;
	return n_kept ? PSD_OK
		      : psd_drawing_refuse(
				drawing,
				psd_figure_text(drawing->figure,
						"'--relative' is '%.80s', must be 'best' or a system that has a "
						"result where others have one",
						relative));
}

/* ---- the command ---- */

enum psd_status psd_lines_fill(struct psd_figure *figure, struct psd_results *results, const struct psd_lines *lines,
			       struct psd_error *err)
{
	struct psd_drawing drawing = {.figure = figure, .results = results, .lines = lines, .err = err};

	if (!results->n_rows)
		return psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = results->tables[0].path, .line = 2},
				     "has no result, must have a row for each point");
	PSD_TRY(collect(&drawing));
	PSD_TRY(make_relative(&drawing));
	return psd_drawing_draw(&drawing);
}

enum psd_status psd_plot_lines(struct psd_figure *figure, const struct psd_plot_options *options, struct psd_error *err)
{
	const struct psd_lines lines = {
		.measure = (enum psd_measure)(options->arguments.command - PSD_PLOT_SPEEDUP),
		.over = options->over ? options->over
				      : (options->arguments.command == PSD_PLOT_SPEEDUP ? "workers" : NULL),
		.panels = options->panels,
		.relative = options->relative,
		.systems = options->systems,
		.is_linear = options->is_linear,
	};
	const char *const *paths = (const char *const *)options->arguments.operands;
	const unsigned n_paths = options->arguments.n_operands;
	const char *const *where = (const char *const *)options->arguments.settings;
	struct psd_results results;
	enum psd_status status;

	if (psd_steps_are_traces(paths, n_paths))
		status = psd_steps_read(&results, paths, n_paths, where, err);
	else
		status = psd_results_read(&results, paths, n_paths, psd_measure_columns(lines.measure), where, err);
	if (!status)
		status = psd_lines_fill(figure, &results, &lines, err);
	psd_figure_keep(figure, &results.arena);
	psd_results_release(&results);
	return status;
}
