/* Parts of the drawing of lines, private to lines.c and lines_draw.c. */
#ifndef PSD_PLOTS_LINES_PARTS_H
#define PSD_PLOTS_LINES_PARTS_H

#include "plots/columns.h"
#include "plots/lines.h"
#include "plots/words.h"

struct psd_point_at {
	const struct psd_row *row;
	double x;
	struct psd_value value;
	struct psd_point_at *next; /* in its series, x rises */
};

struct psd_series {
	const char *key, *name;	   /* name: as in the legend */
	const struct psd_row *row; /* the first one */
	struct psd_point_at *points;
	unsigned n_points, n_places; /* n_places: different x */
	unsigned system_number, colour, variant, n_over, panel;
	bool is_executed; /* points beside the predictions */
	bool is_level;	  /* the rows have no x: a horizontal line */
};

/* Everything that one figure is made of. */
struct psd_drawing {
	struct psd_figure *figure;
	struct psd_results *results;
	const struct psd_lines *lines;
	struct psd_error *err;
	const char *over;
	struct psd_name_columns names;
	struct psd_series *series;
	unsigned n_series;
	bool is_category;
	const char **categories;
	unsigned n_categories;
	struct psd_range x;
	const char *panel_column; /* NULL: panels, if several, are parts of the list of lines */
	bool has_bests, has_published, has_fitted, has_executed, has_one_system;
};

/* Fills *err of the drawing with the first file and the text. Returns PSD_EINVAL. */
enum psd_status psd_drawing_refuse(const struct psd_drawing *drawing, const char *text);
/* Returns the value of a line at x; 0: it has none. */
double psd_drawing_value_at(const struct psd_series *series, double x);
/* Returns the best value of a line: the least of seconds, the greatest of other measures. */
double psd_drawing_best_of(const struct psd_drawing *drawing, const struct psd_series *series);
/* Make the axes of panel `number`. */
void psd_drawing_make_x_axis(struct psd_drawing *drawing, struct psd_panel *panel);
void psd_drawing_make_y_axis(struct psd_drawing *drawing, struct psd_panel *panel, unsigned number);
/* Draws the lines that were collected. PSD_EINVAL: they mean nothing, or are too many. PSD_ENOMEM. */
enum psd_status psd_drawing_draw(struct psd_drawing *drawing) PSD_MUST_CHECK;

#endif
