#include "plots/lines.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/names.h"
#include "engine/base/spelling.h"
#include "plots/columns.h"
#include "plots/plot.h"
#include "plots/steps.h"
#include "plots/words.h"

enum { MOST_OVER = 5, MOST_LINES = 8, MOST_CATEGORIES = 40, EXECUTED_POINT = 5, DASHES = 4, MARKS = 4 };

#define MATERIAL 0.005 /* share by which a best value differs from another */

/* ---- measures ---- */

const char *const psd_measure_names[] = {"speedup", "efficiency", "seconds", "throughput", NULL};

const char *psd_measure_columns(enum psd_measure measure)
{
	static const char *const columns[] = {
		[PSD_MEASURE_SPEEDUP] = "scenario system executor workers bandwidth_bps images_per_sec speedup "
					"published_images_per_sec published_speedup",
		[PSD_MEASURE_EFFICIENCY] = "scenario system executor workers images_per_sec speedup",
		[PSD_MEASURE_SECONDS] = "scenario system workers iteration_sec",
		[PSD_MEASURE_THROUGHPUT] = "scenario system executor workers images_per_sec",
	};

	return columns[measure];
}

const char *psd_measure_label(enum psd_measure measure)
{
	static const char *const labels[] = {
		[PSD_MEASURE_SPEEDUP] = "speedup",
		[PSD_MEASURE_EFFICIENCY] = "efficiency, %",
		[PSD_MEASURE_SECONDS] = "iteration, ms",
		[PSD_MEASURE_THROUGHPUT] = "samples per second",
	};

	return labels[measure];
}

static enum psd_status read_basis(enum psd_measure measure, const struct psd_row *row, double *value,
				  struct psd_error *err)
{
	double workers;

	switch (measure) {
	case PSD_MEASURE_SPEEDUP: return psd_row_read_positive(row, "speedup", true, value, err);
	case PSD_MEASURE_EFFICIENCY:
		PSD_TRY(psd_row_read_positive(row, "workers", false, &workers, err));
		PSD_TRY(psd_row_read_positive(row, "speedup", true, value, err));
		*value *= 100 / workers;
		return PSD_OK;
	case PSD_MEASURE_SECONDS:
		PSD_TRY(psd_row_read_positive(row, "iteration_sec", false, value, err));
		*value *= 1000;
		return PSD_OK;
	case PSD_MEASURE_THROUGHPUT: return psd_row_read_positive(row, "images_per_sec", true, value, err);
	}
	return PSD_OK;
}

enum psd_status psd_measure_read(enum psd_measure measure, const struct psd_row *row, struct psd_value *value,
				 struct psd_error *err)
{
	double images, speedup, low, high, published, published_speedup, ratio = 0;

	*value = (struct psd_value){.value = 0};
	PSD_TRY(read_basis(measure, row, &value->value, err));
	PSD_TRY(psd_row_read_positive(row, "images_per_sec", true, &images, err));
	PSD_TRY(psd_row_read_positive(row, "speedup", true, &speedup, err));
	PSD_TRY(psd_row_read_positive(row, "published_images_per_sec", true, &published, err));
	PSD_TRY(psd_row_read_positive(row, "published_speedup", true, &published_speedup, err));
	PSD_TRY(psd_row_read_positive(row, "low", true, &low, err));
	PSD_TRY(psd_row_read_positive(row, "high", true, &high, err));
	PSD_TRY(psd_row_read_fitted(row, &value->is_fitted, err));
	const bool is_speedup = measure == PSD_MEASURE_SPEEDUP || measure == PSD_MEASURE_EFFICIENCY;

	if (published > 0 && images > 0)
		ratio = published / images;
	if (published_speedup > 0 && speedup > 0 && (is_speedup || ratio <= 0))
		ratio = published_speedup / speedup;
	const bool is_inverse = measure == PSD_MEASURE_SECONDS;

	if (ratio > 0)
		value->published = is_inverse ? value->value / ratio : value->value * ratio;
	if (low > 0 && high > 0 && images > 0) {
		value->low = value->value * (is_inverse ? images / high : low / images);
		value->high = value->value * (is_inverse ? images / low : high / images);
	}
	return PSD_OK;
}

/* ---- points and series ---- */

struct point {
	const struct psd_row *row;
	double x;
	struct psd_value value;
	struct point *next; /* in its series, x rises */
};

struct series {
	const char *key, *name;	   /* name: as in the legend */
	const struct psd_row *row; /* the first one */
	struct point *points;
	unsigned n_points, n_places; /* n_places: different x */
	unsigned system_number, colour, variant, n_over, panel;
	bool is_executed; /* points beside the predictions */
	bool is_level;	  /* the rows have no x: a horizontal line */
};

/* Everything that one figure is made of. */
struct drawing {
	struct psd_figure *figure;
	struct psd_results *results;
	const struct psd_lines *lines;
	struct psd_error *err;
	const char *over;
	struct psd_name_columns names;
	struct series *series;
	unsigned n_series, n_systems;
	bool is_category;
	const char **categories;
	unsigned n_categories;
	struct psd_range x, bps;
	const char *panel_column; /* NULL: panels, if several, are parts of the list of lines */
	bool has_bests, has_published, has_fitted, has_executed, has_one_system;
};

bool psd_lines_has_system(const char *list, const char *name)
{
	const size_t length = strlen(name);

	for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
		if (!strncmp(at, name, length) && (at[length] == ',' || !at[length]))
			return true;
	return !list;
}

static enum psd_status refuse(const struct drawing *drawing, const char *text)
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
		for (unsigned c = 0, is_behind = 0; c < results->tables[t].n_columns; c++) {
			const char *name = results->tables[t].names[c];

			if (is_behind && psd_columns_count(results, name) > 1)
				return name;
			is_behind = is_behind || !strcmp(name, "stack");
		}
	return NULL;
}

static bool has_column(const struct psd_results *results, const char *column)
{
	for (unsigned t = 0; t < results->n_tables; t++)
		for (unsigned c = 0; c < results->tables[t].n_columns; c++)
			if (!strcmp(results->tables[t].names[c], column))
				return true;
	return false;
}

static enum psd_status check_column(const struct drawing *drawing, const char *option, const char *column)
{
	if (has_column(drawing->results, column))
		return PSD_OK;
	const struct psd_table *table = &drawing->results->tables[0];
	const char **names = psd_arena_take(&drawing->results->arena, (table->n_columns + 1) * sizeof(*names));

	if (!names)
		return psd_out_of_memory(drawing->err);
	memcpy(names, table->names, table->n_columns * sizeof(*names));
	const char *nearest = psd_spelling_nearest(column, names);

	return psd_error_set(drawing->err, PSD_EINVAL, (struct psd_place){.path = table->path},
			     "'%s' is '%.80s', must be a column of the results%s%s", option, column,
			     nearest ? ", such as " : "", nearest ? nearest : "");
}

static enum psd_status choose_over(struct drawing *drawing)
{
	const struct psd_results *results = drawing->results;
	double value;

	drawing->over = drawing->lines->over ? drawing->lines->over : find_over(results);
	if (!drawing->over)
		return refuse(drawing,
			      "all rows are of one point, lines need several: 'psd-plot bars' draws one point");
	PSD_TRY(check_column(drawing, "--over", drawing->over));
	for (unsigned r = 0; r < results->n_rows; r++) {
		const char *text = psd_row_text(&results->rows[r], drawing->over);

		drawing->is_category = drawing->is_category || (*text && !psd_results_read_number(text, &value));
	}
	if (!strcmp(drawing->over, "workers") || !strcmp(drawing->over, "nodes"))
		drawing->is_category = false; /* a damaged number is refused below */
	return PSD_OK;
}

static enum psd_status read_x(struct drawing *drawing, const struct psd_row *row, double *x)
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
		return refuse(drawing,
			      psd_figure_text(drawing->figure, "'%s' has more than %d values that are no numbers",
					      drawing->over, MOST_CATEGORIES));
	drawing->categories[drawing->n_categories++] = text;
	*x = drawing->n_categories;
	return PSD_OK;
}

/* ---- collecting ---- */

/* Adds a point in the order of x; equal ones keep the order of the files. A row that is repeated counts once. */
static enum psd_status add_point(struct drawing *drawing, struct series *series, struct point *point)
{
	struct point **at = &series->points;

	while (*at && (*at)->x <= point->x) {
		if ((*at)->x == point->x && !series->is_executed && (*at)->value.value == point->value.value)
			return PSD_OK;
		at = &(*at)->next;
	}
	if (at != &series->points && !series->is_executed) {
		const struct point *before = series->points;

		while (before->next != *at)
			before = before->next;
		if (before->x == point->x)
			return psd_row_refuse(point->row, drawing->err,
					      "'%s' has a second result at this %s, a line needs one: keep the rows of "
					      "one with --where, or give fewer files",
					      psd_row_text(point->row, "system"),
					      psd_columns_label(drawing->figure, drawing->over));
	}
	point->next = *at;
	*at = point;
	series->n_points++;
	return PSD_OK;
}

static struct series *find_series(struct drawing *drawing, struct psd_names *known, const char *key, bool is_executed,
				  bool is_level)
{
	const char *full = psd_figure_text(drawing->figure, "%s\2%d%d", key, is_executed, is_level);
	unsigned number = drawing->n_series;

	if (psd_names_find(known, full, &number))
		return &drawing->series[number];
	if (!psd_names_put(known, full, number))
		drawing->figure->is_out_of_memory = true;
	drawing->series[number] = (struct series){.key = key, .is_executed = is_executed, .is_level = is_level};
	drawing->n_series++;
	return &drawing->series[number];
}

static enum psd_status collect_row(struct drawing *drawing, unsigned r, struct psd_names *known)
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
	struct series *series = find_series(drawing, known, drawing->names.keys[r], is_executed, x <= 0);
	struct point *point = psd_arena_take(&drawing->figure->arena, sizeof(*point));

	if (!point)
		return psd_out_of_memory(drawing->err);
	*point = (struct point){row, x, value, NULL};
	series->row = series->row ? series->row : row;
	if (x > 0)
		psd_range_add(&drawing->x, x);
	if (bps > 0)
		psd_range_add(&drawing->bps, bps);
	return add_point(drawing, series, point);
}

/* Numbers systems in the order of the files, so that each keeps its colour whatever is left out; then drops the rows of
 * those that are not to be drawn. */
static enum psd_status number_systems(struct drawing *drawing, struct psd_names *systems)
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
		return refuse(drawing,
			      psd_figure_text(drawing->figure, "there is no system '%.80s', there are %s", name, all));
	}
	for (unsigned r = 0; r < results->n_rows; r++)
		if (psd_lines_has_system(list, psd_row_text(&results->rows[r], "system")))
			results->rows[kept++] = results->rows[r];
	results->n_rows = kept;
	return PSD_OK;
}

static enum psd_status collect(struct drawing *drawing)
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
	drawing->n_systems = (unsigned)systems.n_used;
	psd_names_release(&known);
	psd_names_release(&systems);
	return status ? status : psd_results_check_numbers(results, drawing->err);
}

/* ---- ratios ---- */

static double value_at(const struct series *series, double x)
{
	for (const struct point *point = series->points; point; point = point->next)
		if (point->x == x || series->is_level)
			return point->value.value;
	return 0;
}

/* The series of the baseline that has the same values in all columns of the name. */
static const struct series *find_baseline(const struct drawing *drawing, const struct series *series)
{
	const char *rest = strchr(series->key, '\1');

	for (unsigned s = 0; s < drawing->n_series; s++) {
		const struct series *other = &drawing->series[s];
		const char *other_rest = strchr(other->key, '\1');

		if (!strcmp(psd_row_text(other->row, "system"), drawing->lines->relative) && !other->is_executed &&
		    !strcmp(rest ? rest : "", other_rest ? other_rest : ""))
			return other;
	}
	return NULL;
}

static double best_of(const struct drawing *drawing, const struct series *series)
{
	double best = 0;

	for (const struct point *point = series->points; point; point = point->next)
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
static enum psd_status make_relative(struct drawing *drawing)
{
	const char *relative = drawing->lines->relative;
	const bool is_best = relative && !strcmp(relative, "best");
	unsigned n_kept = 0;

	if (!relative)
		return PSD_OK;
	const struct series **bases = psd_arena_take(&drawing->figure->arena, (drawing->n_series + 1) * sizeof(*bases));

	if (!bases)
		return psd_out_of_memory(drawing->err);
	for (unsigned s = 0; s < drawing->n_series; s++)
		bases[s] = is_best ? NULL : find_baseline(drawing, &drawing->series[s]);
	for (unsigned pass = 0; pass < 2; pass++)
		for (unsigned s = 0; s < drawing->n_series; s++) {
			struct series *series = &drawing->series[s];
			const double best = best_of(drawing, series);

			if ((bases[s] == series) != (pass == 1)) /* the baseline comes last: others need its values */
				continue;
			for (struct point **at = &series->points; *at;) {
				const double base = is_best ? best : bases[s] ? value_at(bases[s], (*at)->x) : 0;

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
		      : refuse(drawing,
			       psd_figure_text(drawing->figure,
					       "'--relative' is '%.80s', must be 'best' or a system that has a "
					       "result where others have one",
					       relative));
}

/* ---- panels, names and looks ---- */

static unsigned count_places(const struct series *series)
{
	unsigned n = 0;
	double last = -1;

	for (const struct point *point = series->points; point; point = point->next) {
		n += point->x != last;
		last = point->x;
	}
	return n;
}

/* A line of one point is none. Executed values are points beside the lines, or lines if nothing is predicted. */
static enum psd_status check_lines(struct drawing *drawing)
{
	struct psd_figure *figure = drawing->figure;
	unsigned n_predicted = 0, n_lines = 0;

	if (!drawing->n_series)
		return refuse(drawing, psd_figure_text(figure, "there is no result with a %s in it",
						       psd_measure_names[drawing->lines->measure]));
	for (unsigned s = 0; s < drawing->n_series; s++) {
		drawing->series[s].n_places = count_places(&drawing->series[s]);
		n_predicted += !drawing->series[s].is_executed;
	}
	for (unsigned s = 0; s < drawing->n_series; s++) {
		struct series *series = &drawing->series[s];

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
	return refuse(drawing,
		      psd_figure_text(figure, "has one value of '%s' in each line, a line needs several%s%s%s%s",
				      drawing->over,
				      !strcmp(drawing->over, "fuse_bytes") ? ": say 'sweep: {fuse: [...]}'" : "",
				      other ? "; '" : "", other ? other : "",
				      other ? "' varies, --over draws it" : "; 'psd-plot bars' draws single points"));
}

/* Numbers the panels by a column. Returns their number, or 0 if a panel would have more than MOST_LINES lines, or there
 * would be too many panels. */
static unsigned number_panels(struct drawing *drawing, const char *column)
{
	unsigned n_panels = 0, n_lines[PSD_PANELS_MAX] = {0};
	const char *values[PSD_PANELS_MAX];

	for (unsigned s = 0; s < drawing->n_series; s++) {
		struct series *series = &drawing->series[s];
		const char *value = psd_row_text(series->row, column);
		unsigned p = 0;

		while (p < n_panels && strcmp(values[p], value) != 0)
			p++;
		if (p == PSD_PANELS_MAX)
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

static enum psd_status refuse_many(struct drawing *drawing, unsigned n_lines)
{
	return refuse(drawing,
		      psd_figure_text(drawing->figure,
				      "has %u lines, of which a plot takes %d in panels of %d: choose systems with "
				      "--systems, rows with --where, or give fewer files",
				      n_lines, PSD_PANELS_MAX * MOST_LINES, MOST_LINES));
}

/* Sets the panel of each series; *n_panels: their number. */
static enum psd_status choose_panels(struct drawing *drawing, unsigned *n_panels)
{
	const char *asked = drawing->lines->panels;
	unsigned n_lines = 0;

	*n_panels = 1;
	for (unsigned s = 0; s < drawing->n_series; s++)
		n_lines += !drawing->series[s].is_executed;
	if (asked) {
		PSD_TRY(check_column(drawing, "--panels", asked));
		drawing->panel_column = asked;
		*n_panels = number_panels(drawing, asked);
		return *n_panels ? PSD_OK
				 : refuse(drawing,
					  psd_figure_text(
						  drawing->figure,
						  "'--panels %s' makes more than %d panels, or more than %d lines in "
						  "one: choose systems with --systems, or rows with --where",
						  asked, PSD_PANELS_MAX, MOST_LINES));
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
		if (drawing->series[s].panel >= PSD_PANELS_MAX)
			return refuse_many(drawing, n_lines);
		*n_panels = drawing->series[s].panel + 1;
	}
	return PSD_OK;
}

/* Returns the number of a text in a list that grows. */
static unsigned number_of(struct drawing *drawing, const char **list, unsigned *n, const char *text)
{
	unsigned i = 0;

	while (i < *n && strcmp(list[i], text) != 0)
		i++;
	if (i == *n && *n < drawing->n_series)
		list[(*n)++] = text;
	return i;
}

static enum psd_status name_series(struct drawing *drawing)
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
		const struct series *series = &drawing->series[s];

		if (series->is_level || series->is_executed)
			continue;
		drawing->has_one_system = drawing->has_one_system &&
					  (first_system == UINT32_MAX || first_system == series->system_number);
		first_system = series->system_number;
	}
	for (unsigned s = 0; s < drawing->n_series; s++) {
		struct series *series = &drawing->series[s];
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
		struct series *series = &drawing->series[s];
		const bool is_by_name = is_by_system || (drawing->has_one_system && n_rests > 1);

		series->colour = is_by_name ? series->variant : series->system_number;
		series->variant += series->colour / PSD_PALETTE; /* no colour is left for it */
		series->colour %= PSD_PALETTE;
	}
	return PSD_OK;
}

static unsigned dash_of(const struct drawing *drawing, const struct series *series)
{
	static const unsigned dashes[DASHES] = {1, 4, 5, 3};

	if (series->is_level)
		return 2 + series->system_number % DASHES;
	return dashes[(drawing->has_one_system ? series->variant / PSD_PALETTE : series->variant) % DASHES];
}

/* Another mark beside the same dash, so that 16 variants differ. The square is for executed values. */
static int mark_of(const struct series *series, bool is_filled)
{
	static const int filled[MARKS] = {7, 9, 11, 13}, hollow[MARKS] = {6, 8, 10, 12};
	const unsigned v = series->variant;
	const unsigned i = (v + v / MARKS) % MARKS;

	return is_filled ? filled[i] : hollow[i];
}

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

static struct psd_range y_range(const struct drawing *drawing, unsigned panel)
{
	/* panels of a speedup have one scale, so that they compare; seconds have their own, which shows valleys */
	const bool is_shared =
		drawing->lines->measure == PSD_MEASURE_SPEEDUP || drawing->lines->measure == PSD_MEASURE_EFFICIENCY;
	struct psd_range range = {.is_there = false};

	for (unsigned s = 0; s < drawing->n_series; s++)
		for (const struct point *point = drawing->series[s].points; point; point = point->next)
			if (is_shared || drawing->series[s].panel == panel)
				widen(&range, &point->value);
	if (drawing->lines->relative)
		psd_range_add(&range, 1);
	return range;
}

static bool is_powers_of_two(const struct drawing *drawing)
{
	return !strcmp(drawing->over, "workers") || !strcmp(drawing->over, "nodes") ||
	       !strcmp(drawing->over, "fuse_bytes") || strstr(drawing->over, "batch");
}

static void make_speedup_axis(struct drawing *drawing, struct psd_axis *axis, const struct psd_range *range)
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
static void make_y_axis(struct drawing *drawing, struct psd_panel *panel, unsigned number)
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

static int compare_numbers(const void *one, const void *other)
{
	const double a = *(const double *)one, b = *(const double *)other;

	return (a > b) - (a < b);
}

static void make_x_axis(struct drawing *drawing, struct psd_panel *panel)
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
		for (const struct point *point = drawing->series[s].points; point && point->x > 0; point = point->next)
			if (n < drawing->results->n_rows)
				values[n++] = point->x;
	qsort(values, n, sizeof(*values), compare_numbers);
	for (unsigned i = 0; i < n; i++) {
		if (i && values[i] == values[i - 1])
			continue;
		if (!strcmp(drawing->over, "workers") && i && values[i] != drawing->x.most &&
		    (exp2(round(log2(values[i]))) != values[i] || values[i] * 1.3 > drawing->x.most))
			continue;
		psd_figure_add_tic(figure, axis, values[i], psd_columns_quantity(figure, drawing->over, values[i]));
	}
}

/* ---- drawing ---- */

static double tolerance_of(const struct psd_axis *axis)
{
	return axis->log_base ? 0 : (axis->high - axis->low) / 100;
}

/* True if two lines look equal: each common x has values that the axis does not tell apart. */
static bool do_coincide(const struct series *one, const struct series *other, const struct psd_axis *axis)
{
	const double tolerance = tolerance_of(axis);
	unsigned n_shared = 0;

	for (const struct point *point = one->points; point; point = point->next) {
		const double a = point->value.value, b = value_at(other, point->x);

		if (b <= 0)
			continue;
		if (tolerance > 0 ? fabs(a - b) > tolerance : (a > 1.02 * b || b > 1.02 * a))
			return false;
		n_shared++;
	}
	return n_shared > 0;
}

/* The number of later lines of the panel that cover this one. It is drawn wider by as much, so that it shows. */
static unsigned lines_over(const struct drawing *drawing, unsigned s, const struct psd_axis *axis)
{
	unsigned n = 0;

	for (unsigned o = s + 1; o < drawing->n_series && n < MOST_OVER; o++) {
		const struct series *one = &drawing->series[s], *other = &drawing->series[o];

		if (one->panel == other->panel && !one->is_executed && !other->is_executed && !one->is_level &&
		    !other->is_level && one->colour != other->colour)
			n += do_coincide(one, other, axis);
	}
	return n;
}

static void draw_published(struct drawing *drawing, struct psd_panel *panel, const struct series *series)
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

		for (const struct point *point = series->points; point; point = point->next) {
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
static bool is_valley(const struct series *series, double best)
{
	double last = 0;

	for (const struct point *point = series->points; point; point = point->next)
		last = point->value.value;
	return fabs(series->points->value.value - best) > MATERIAL * best && fabs(last - best) > MATERIAL * best;
}

/* Marks the best point of a line where it is not an end. */
static void draw_best(struct drawing *drawing, struct psd_panel *panel, const struct series *series)
{
	const struct psd_look look = {PSD_STYLE_POINTS, psd_palette[series->colour], 0, 1.8, 6, 1.9, 1};
	const double best = best_of(drawing, series);
	const struct point *found = NULL;

	for (const struct point *point = series->points; point; point = point->next)
		found = point->value.value == best && !found ? point : found;
	if (!found || !is_valley(series, best) || series->is_executed || series->is_level ||
	    (drawing->lines->relative && strcmp(drawing->lines->relative, "best") != 0))
		return;
	psd_text_add(&psd_figure_add_layer(drawing->figure, panel, look)->data, "%.9g %.9g\n", found->x, best);
	drawing->has_bests = true;
}

static void draw_band(struct drawing *drawing, struct psd_panel *panel, const struct series *series)
{
	struct psd_layer *layer = NULL;
	unsigned n = 0;

	for (const struct point *point = series->points; point; point = point->next)
		n += point->value.low > 0 && point->value.high > 0;
	if (n > 1)
		layer = psd_figure_add_layer(
			drawing->figure, panel,
			(struct psd_look){PSD_STYLE_BAND, psd_palette[series->colour], 0, 0, 0, 0, 0.15});
	for (const struct point *point = series->points; point && layer; point = point->next)
		if (point->value.low > 0 && point->value.high > 0)
			psd_text_add(&layer->data, "%.9g %.9g %.9g\n", point->x, point->value.low, point->value.high);
}

static struct psd_look look_of(const struct drawing *drawing, const struct series *series)
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

static void draw_series(struct drawing *drawing, struct psd_panel *panel, struct series *series)
{
	const struct psd_look look = look_of(drawing, series);
	struct psd_look sample = look;
	struct psd_layer *layer = psd_figure_add_layer(drawing->figure, panel, look);

	for (const struct point *point = series->points; point; point = point->next) {
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

static void draw_panel(struct drawing *drawing, unsigned number)
{
	struct psd_figure *figure = drawing->figure;
	const struct series *first = NULL;

	for (unsigned s = 0; s < drawing->n_series && !first; s++)
		if (drawing->series[s].panel == number)
			first = &drawing->series[s];
	struct psd_panel *panel = psd_figure_add_panel(
		figure, drawing->panel_column && first
				? psd_columns_value(figure, &drawing->names, first->row, drawing->panel_column)
				: NULL);

	make_x_axis(drawing, panel);
	make_y_axis(drawing, panel, number);
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

static void add_common_entries(struct drawing *drawing)
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

enum psd_status psd_lines_fill(struct psd_figure *figure, struct psd_results *results, const struct psd_lines *lines,
			       struct psd_error *err)
{
	struct drawing drawing = {.figure = figure, .results = results, .lines = lines, .err = err};
	unsigned n_panels;

	PSD_TRY(collect(&drawing));
	PSD_TRY(make_relative(&drawing));
	PSD_TRY(check_lines(&drawing));
	PSD_TRY(choose_panels(&drawing, &n_panels));
	PSD_TRY(name_series(&drawing));
	const char *title = psd_columns_title(figure, &drawing.names, results,
					      psd_figure_text(figure, "%c%s", psd_measure_names[lines->measure][0] - 32,
							      psd_measure_names[lines->measure] + 1));
	const char *system_name = psd_row_text(drawing.series[0].row, "system");

	figure->title = drawing.has_one_system && lines->measure != PSD_MEASURE_SPEEDUP && *system_name &&
					psd_columns_count(results, "system") == 1
				? psd_figure_text(figure, "%s: %s", title, system_name)
				: title;
	for (unsigned p = 0; p < n_panels; p++)
		draw_panel(&drawing, p);
	add_common_entries(&drawing);
	return PSD_OK;
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
