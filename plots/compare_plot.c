/* Both plots of a comparison: predicted over measured seconds, and the errors of the same points. Each system has a
 * colour and a marker: filled for counted points, hollow for calibrated ones, a cross for noisy ones. Whiskers reach
 * over the spread of the runs. */
#include <math.h>
#include <string.h>

#include "plots/compare.h"

enum { MARKS = 5, NOISY_POINT = 2, STEPS = 64 };
static const int filled[MARKS] = {7, 5, 9, 13, 11}, hollow[MARKS] = {6, 4, 8, 12, 10};
static const char band_colour[] = "#e4e4e4", line_colour[] = "#888888";

struct plots {
	struct psd_figure *figure;
	const struct psd_comparison *comparison;
	struct psd_panel *seconds, *errors;
	const char **systems;
	unsigned n_systems;
	bool has_calibrated, has_noisy;
};

/* Errors have the prediction above, the quotient of a run and its prediction below. */
static double error_at(double run_ratio)
{
	return 100 * (1 / run_ratio - 1);
}

static double error_of(const struct psd_compared_point *point)
{
	return 100 * point->errors[PSD_COMPARED_ITERATION];
}

static bool is_noisy(const struct psd_compared_point *point)
{
	return !point->is_calibrated && !point->is_in_worst;
}

static void make_axes(struct plots *plots)
{
	const struct psd_comparison *comparison = plots->comparison;
	struct psd_axis *x = &plots->seconds->x;
	struct psd_range sec = {.is_there = false};
	double most = 160 * comparison->bar_ratio;

	for (unsigned m = 0; m < comparison->n_measured; m++) {
		const struct psd_compared_point *point = comparison->measured[m];

		psd_range_add(&sec, point->sec.least);
		psd_range_add(&sec, point->sec.most);
		psd_range_add(&sec, point->predicted[PSD_COMPARED_ITERATION]);
		most = fmax(most, fabs(error_of(point)));
		if (!is_noisy(point)) /* its whiskers would leave no room for the others */
			most = fmax(most, fmax(fabs(error_at(point->ratio.most)), fabs(error_at(point->ratio.least))));
	}
	*x = (struct psd_axis){
		"measured, seconds per iteration", sec.least / 1.25, sec.most * 1.25, 10, NULL, 0, true, false};
	psd_figure_add_round_tics(plots->figure, x);
	plots->seconds->y = *x;
	plots->seconds->y.label = "predicted, seconds per iteration";
	plots->errors->x = *x;
	plots->errors->y =
		(struct psd_axis){"error of the prediction, %", -1.12 * most, 1.12 * most, 0, NULL, 0, true, false};
	psd_figure_add_round_tics(plots->figure, &plots->errors->y);
	for (unsigned i = 0; i < plots->errors->y.n_tics; i++)
		if (plots->errors->y.tics[i].at > 0)
			plots->errors->y.tics[i].text =
				psd_figure_text(plots->figure, "+%s", plots->errors->y.tics[i].text);
}

/* The bar around equality. */
static void draw_bars(struct plots *plots)
{
	const double bar = plots->comparison->bar_ratio, low = plots->seconds->x.low, high = plots->seconds->x.high;
	const struct psd_look band = {PSD_STYLE_BAND, band_colour, 0, 0, 0, 0, 1},
			      line = {PSD_STYLE_LINE, line_colour, 2, 1.4, 0, 0, 1};
	struct psd_layer *layer = psd_figure_add_layer(plots->figure, plots->seconds, band);

	for (unsigned i = 0; i <= STEPS; i++) {
		const double at = low * pow(high / low, (double)i / STEPS);

		psd_text_add(&layer->data, "%.9g %.9g %.9g\n", at, at * (1 - bar), at * (1 + bar));
	}
	psd_text_add(&psd_figure_add_layer(plots->figure, plots->seconds, line)->data, "%.9g %.9g\n%.9g %.9g\n", low,
		     low, high, high);
	psd_text_add(&psd_figure_add_layer(plots->figure, plots->errors, band)->data,
		     "%.9g %.9g %.9g\n%.9g %.9g %.9g\n", low, -100 * bar, 100 * bar, high, -100 * bar, 100 * bar);
	psd_text_add(&psd_figure_add_layer(plots->figure, plots->errors, line)->data, "%.9g 0\n%.9g 0\n", low, high);
	psd_figure_add_entry(
		plots->figure,
		psd_figure_text(plots->figure, "within \302\261%s", psd_compared_bar(plots->comparison, bar)), band);
	psd_figure_add_entry(plots->figure, "predicted = measured", line);
}

static unsigned number_of(struct plots *plots, const char *system_name)
{
	unsigned s = 0;

	while (s < plots->n_systems && strcmp(plots->systems[s], system_name) != 0)
		s++;
	if (s == plots->n_systems)
		plots->systems[plots->n_systems++] = system_name;
	return s;
}

static void add_marker(struct plots *plots, const struct psd_compared_point *point, struct psd_look look)
{
	const double x = point->measured[PSD_COMPARED_ITERATION];

	psd_text_add(&psd_figure_add_layer(plots->figure, plots->seconds, look)->data, "%.9g %.9g\n", x,
		     point->predicted[PSD_COMPARED_ITERATION]);
	psd_text_add(&psd_figure_add_layer(plots->figure, plots->errors, look)->data, "%.9g %.6f\n", x,
		     error_of(point));
}

static void draw_point(struct plots *plots, const struct psd_compared_point *point)
{
	const unsigned s = number_of(plots, point->system_name);
	const char *colour = psd_palette[s % PSD_PALETTE];
	const struct psd_look whiskers = {PSD_STYLE_WHISKERS_X, colour, 0, 1.2, 0, 0, 1};
	struct psd_look look = {PSD_STYLE_POINTS, colour, 0, 1, filled[s % MARKS], 1.1, 1};
	struct psd_look upright = whiskers;

	upright.style = PSD_STYLE_WHISKERS_Y;
	psd_text_add(&psd_figure_add_layer(plots->figure, plots->seconds, whiskers)->data, "%.9g %.9g %.9g %.9g\n",
		     point->measured[PSD_COMPARED_ITERATION], point->predicted[PSD_COMPARED_ITERATION],
		     point->sec.least, point->sec.most);
	psd_text_add(&psd_figure_add_layer(plots->figure, plots->errors, upright)->data, "%.9g %.6f %.6f %.6f\n",
		     point->measured[PSD_COMPARED_ITERATION], error_of(point), error_at(point->ratio.most),
		     error_at(point->ratio.least));
	psd_figure_add_entry(plots->figure, point->system_name, look);
	if (point->is_calibrated) {
		look.colour = "#ffffff";
		add_marker(plots, point, look);
		look = (struct psd_look){PSD_STYLE_POINTS, colour, 0, 1.8, hollow[s % MARKS], 1.2, 1};
	} else if (is_noisy(point)) {
		look = (struct psd_look){PSD_STYLE_POINTS, colour, 0, 1.8, NOISY_POINT, 1.1, 1};
	}
	plots->has_calibrated = plots->has_calibrated || point->is_calibrated;
	plots->has_noisy = plots->has_noisy || is_noisy(point);
	add_marker(plots, point, look);
}

void psd_compared_fill(struct psd_figure *figure, const struct psd_comparison *comparison)
{
	struct plots plots = {.figure = figure,
			      .comparison = comparison,
			      .seconds = psd_figure_add_panel(figure, NULL),
			      .errors = psd_figure_add_panel(figure, NULL)};

	plots.systems = psd_arena_take(&figure->arena, (comparison->n_measured + 1) * sizeof(*plots.systems));
	if (!plots.systems) {
		figure->is_out_of_memory = true;
		return;
	}
	figure->title = comparison->title;
	make_axes(&plots);
	draw_bars(&plots);
	for (unsigned m = 0; m < comparison->n_measured; m++)
		draw_point(&plots, comparison->measured[m]);
	if (plots.has_calibrated)
		psd_figure_add_entry(figure, "calibrated (hollow)",
				     (struct psd_look){PSD_STYLE_POINTS, PSD_GREY, 0, 1.8, 6, 1.2, 1});
	if (plots.has_noisy)
		psd_figure_add_entry(figure, "too noisy",
				     (struct psd_look){PSD_STYLE_POINTS, PSD_GREY, 0, 1.8, NOISY_POINT, 1.1, 1});
}
