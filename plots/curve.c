/* Accuracy over epochs from logs, or seconds over bucket sizes from results. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plots/columns.h"
#include "plots/lines.h"
#include "plots/plot.h"
#include "plots/words.h"

enum { PANEL_CURVES = 8, MOST_CURVES = 24 };
static const char size_column[] = "fuse_bytes", accuracy_column[] = "test_accuracy_ratio";

struct dot {
	struct dot *next; /* x rises */
	double x, y;
};

/* Accuracy of test samples and of training samples. */
enum { TESTS, TRAINING, KINDS };

struct curve {
	const char *name;
	struct dot *dots[KINDS];
	unsigned n[KINDS];
};

struct learning {
	struct psd_figure *figure;
	const struct psd_results *results;
	struct psd_error *err;
	struct curve curves[MOST_CURVES];
	unsigned n_curves;
	double last_epoch;
	unsigned kind; /* drawn as lines */
};

/* ---- logs ---- */

static struct curve *find_curve(struct learning *learning, const char *name)
{
	unsigned c = 0;

	while (c < learning->n_curves && strcmp(learning->curves[c].name, name) != 0)
		c++;
	if (c == MOST_CURVES)
		return NULL;
	if (c == learning->n_curves) {
		learning->curves[c] = (struct curve){.name = name};
		learning->n_curves++;
	}
	return &learning->curves[c];
}

static enum psd_status add_dot(struct learning *learning, struct curve *curve, unsigned kind, double x, double ratio)
{
	struct dot *dot = psd_arena_take(&learning->figure->arena, sizeof(*dot)), **at = &curve->dots[kind];

	if (!dot)
		return psd_out_of_memory(learning->err);
	while (*at && (*at)->x <= x)
		at = &(*at)->next;
	*dot = (struct dot){*at, x, 100 * ratio};
	*at = dot;
	curve->n[kind]++;
	learning->last_epoch = fmax(learning->last_epoch, x);
	return PSD_OK;
}

static enum psd_status take_row(struct learning *learning, const struct psd_row *row)
{
	const char *accuracy = psd_row_text(row, accuracy_column), *epoch = psd_row_text(row, "epoch");
	struct curve *curve = find_curve(learning, psd_row_text(row, "system"));
	double x, y;

	if (!curve)
		return psd_error_set(
			learning->err, PSD_EINVAL, (struct psd_place){.path = row->table->path},
			"has %u curves, of which a plot takes %d: keep the rows of fewer systems (psd-sim and "
			"psd-run --system NAME)",
			psd_columns_count(learning->results, "system"), MOST_CURVES);
	if (*accuracy && (!psd_results_read_number(accuracy, &y) || y > 1))
		return psd_row_refuse(row, learning->err,
				      "'test_accuracy_ratio' is '%.80s', must be empty or a number up to 1", accuracy);
	if (*accuracy && !psd_results_read_number(epoch, &x))
		return psd_row_refuse(row, learning->err, "'epoch' is '%.80s', must be a number", epoch);
	if (*accuracy)
		PSD_TRY(add_dot(learning, curve, TESTS, x, y));
	if (psd_results_read_number(psd_row_text(row, "training_accuracy_ratio"), &y) && y <= 1 &&
	    psd_results_read_number(epoch, &x))
		PSD_TRY(add_dot(learning, curve, TRAINING, x, y));
	return PSD_OK;
}

static void draw_dots(struct learning *learning, struct psd_panel *panel, const struct dot *dots, struct psd_look look)
{
	struct psd_layer *layer = psd_figure_add_layer(learning->figure, panel, look);

	for (; dots; dots = dots->next)
		psd_text_add(&layer->data, "%.9g %.9g\n", dots->x, dots->y);
}

static double value_at(const struct dot *dots, double x)
{
	while (dots && dots->x != x)
		dots = dots->next;
	return dots ? dots->y : -1;
}

/* True if the curves differ by less than a hundredth of the axis wherever both have a point. */
static bool do_coincide(const struct dot *one, const struct dot *other)
{
	unsigned n_shared = 0;

	for (; one; one = one->next) {
		const double y = value_at(other, one->x);

		if (y >= 0 && fabs(y - one->y) > 1)
			return false;
		n_shared += y >= 0;
	}
	return n_shared > 0;
}

static void draw_curve(struct learning *learning, struct psd_panel *panel, unsigned c)
{
	const struct curve *curve = &learning->curves[c];
	const char *colour = psd_palette[c % PSD_PALETTE];
	const struct dot *dots = curve->dots[learning->kind];
	unsigned n_over = 0;

	for (unsigned o = c + 1; o < learning->n_curves && o / PANEL_CURVES == c / PANEL_CURVES; o++)
		n_over += do_coincide(dots, learning->curves[o].dots[learning->kind]);
	struct psd_look look = {PSD_STYLE_LINE, colour, 1, 2 + 2.5 * n_over, 7, 0.6 + 0.3 * n_over, 1};

	if (!dots)
		return;
	draw_dots(learning, panel, dots, look);
	if (learning->kind == TRAINING && curve->dots[TESTS])
		draw_dots(learning, panel, curve->dots[TESTS],
			  (struct psd_look){PSD_STYLE_POINTS, colour, 0, 1.6, 6, 1.6, 1});
	look.width = 2;
	look.size = 0.6;
	psd_figure_add_entry(learning->figure, curve->name, look);
}

/* Training accuracy is drawn if no system was tested twice. */
static enum psd_status choose_dots(struct learning *learning)
{
	unsigned most[KINDS] = {0};

	for (unsigned c = 0; c < learning->n_curves; c++)
		for (unsigned k = 0; k < KINDS; k++)
			most[k] = learning->curves[c].n[k] > most[k] ? learning->curves[c].n[k] : most[k];
	learning->kind = most[TESTS] < 2 && most[TRAINING] > 1 ? TRAINING : TESTS;
	return most[learning->kind] > 1
		       ? PSD_OK
		       : psd_error_set(learning->err, PSD_EINVAL,
				       (struct psd_place){.path = learning->results->tables[0].path},
				       "has no system with two tests or iterations, a curve needs several");
}

static enum psd_status draw_learning(struct psd_figure *figure, const struct psd_results *results,
				     struct psd_error *err)
{
	struct learning learning = {.figure = figure, .results = results, .err = err};
	struct psd_panel *panel = NULL;

	for (unsigned r = 0; r < results->n_rows; r++)
		PSD_TRY(take_row(&learning, &results->rows[r]));
	PSD_TRY(psd_results_check_numbers(results, err));
	PSD_TRY(choose_dots(&learning));
	for (unsigned c = 0; c < learning.n_curves; c++) {
		if (c % PANEL_CURVES == 0) {
			panel = psd_figure_add_panel(figure, NULL);
			panel->x = (struct psd_axis){.label = "epochs", .has_grid = true};
			panel->x.high = learning.last_epoch > 0 ? learning.last_epoch : 1;
			psd_figure_add_round_tics(figure, &panel->x);
			panel->y = (struct psd_axis){.label = learning.kind == TRAINING ? "top-1 of training samples, %"
											: "top-1 of test samples, %",
						     .high = 100,
						     .has_grid = true};
			psd_figure_add_round_tics(figure, &panel->y);
		}
		draw_curve(&learning, panel, c);
	}
	if (learning.kind == TRAINING)
		psd_figure_add_entry(figure, "test samples",
				     (struct psd_look){PSD_STYLE_POINTS, PSD_GREY, 0, 1.6, 6, 1.4, 1});
	figure->title = "Learning";
	return PSD_OK;
}

/* ---- bucket sizes ---- */

/* Adds an empty column to a table and its rows. */
static enum psd_status add_column(struct psd_results *results, struct psd_table *table, struct psd_error *err)
{
	const unsigned n = table->n_columns;
	const char **names = psd_arena_take(&results->arena, (n + 1) * sizeof(*names));

	if (!names)
		return psd_out_of_memory(err);
	memcpy(names, table->names, n * sizeof(*names));
	names[n] = size_column;
	for (unsigned r = 0; r < results->n_rows; r++) {
		struct psd_row *row = &results->rows[r];

		if (row->table != table)
			continue;
		const char **fields = psd_arena_take(&results->arena, (n + 1) * sizeof(*fields));

		if (!fields)
			return psd_out_of_memory(err);
		memcpy(fields, row->fields, n * sizeof(*fields));
		fields[n] = "";
		row->fields = fields;
	}
	table->names = names;
	table->n_columns++;
	return PSD_OK;
}

static void set_field(struct psd_row *row, const char *column, const char *value)
{
	for (unsigned c = 0; c < row->table->n_columns; c++)
		if (!strcmp(row->table->names[c], column))
			row->fields[c] = value;
}

/* A system that is named by a size, such as 64KiB, becomes a point of a system without a name. */
static enum psd_status take_named_sizes(struct psd_figure *figure, struct psd_results *results, struct psd_error *err)
{
	double bytes;

	for (unsigned r = 0; r < results->n_rows; r++) {
		struct psd_row *row = &results->rows[r];

		if (!psd_words_read_bytes(psd_row_text(row, "system"), &bytes))
			continue;
		if (!psd_row_has(row, size_column))
			for (unsigned t = 0; t < results->n_tables; t++)
				if (row->table == &results->tables[t])
					PSD_TRY(add_column(results, &results->tables[t], err));
		set_field(row, size_column, psd_figure_text(figure, "%.0f", bytes));
		set_field(row, "system", "");
	}
	for (unsigned r = 0; r < results->n_rows; r++)
		if (*psd_row_text(&results->rows[r], size_column))
			return PSD_OK;
	return psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = results->tables[0].path},
			     "has no curve: it needs accuracy of tests, bucket sizes (fuse_bytes), or systems named by "
			     "sizes such as 25MiB");
}

static enum psd_status check_kinds(const struct psd_results *results, bool *is_log, struct psd_error *err)
{
	static const char *const needed[] = {"scenario", "workers", "iteration_sec"};
	const struct psd_table *first = &results->tables[0];

	for (unsigned t = 0; t < results->n_tables; t++) {
		const struct psd_table *table = &results->tables[t];
		const struct psd_row head = {.table = table};
		const struct psd_place at = {.path = table->path, .line = 1};
		const bool has_tests = psd_row_has(&head, accuracy_column);

		if (t > 0 && has_tests != *is_log)
			return psd_error_set(err, PSD_EINVAL, at, "logs and results cannot be drawn together");
		*is_log = has_tests;
		if (has_tests && !psd_row_has(&head, "epoch"))
			return psd_error_set(err, PSD_EINVAL, at,
					     "column 'epoch' is missing, the first line must be that "
					     "of a log of psd-run --log");
		for (size_t i = 0; !has_tests && i < sizeof(needed) / sizeof(needed[0]); i++)
			if (!psd_row_has(&head, needed[i]))
				return psd_error_set(
					err, PSD_EINVAL, at,
					"column '%s' is missing, the first line must be that of psd-sim --csv "
					"or psd-run --csv: 'scenario,system,executor,nodes,workers,...'",
					needed[i]);
	}
	return results->n_rows ? PSD_OK
			       : psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = first->path, .line = 2},
					       "has no result, must have a row for each point");
}

enum psd_status psd_plot_curve(struct psd_figure *figure, const struct psd_plot_options *options, struct psd_error *err)
{
	const struct psd_lines lines = {
		.measure = PSD_MEASURE_SECONDS, .over = size_column, .systems = options->systems};
	struct psd_results results;
	bool is_log = false;
	enum psd_status status = psd_results_read(&results, (const char *const *)options->arguments.operands,
						  options->arguments.n_operands, "system",
						  (const char *const *)options->arguments.settings, err);

	if (!status)
		status = check_kinds(&results, &is_log, err);
	if (!status && is_log)
		status = draw_learning(figure, &results, err);
	if (!status && !is_log)
		status = take_named_sizes(figure, &results, err);
	if (!status && !is_log)
		status = psd_lines_fill(figure, &results, &lines, err);
	psd_figure_keep(figure, &results.arena);
	psd_results_release(&results);
	return status;
}
