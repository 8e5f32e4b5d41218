/* Places of a figure's parts on a picture. Private to the figure. */
#ifndef PSD_PLOTS_FIGURE_LAYOUT_H
#define PSD_PLOTS_FIGURE_LAYOUT_H

#include "plots/figure.h"

/* All lengths of the layout are multiples of the font size (em), but for those whose names end in _pt. */
#define PSD_EM_LINE	 1.35 /* height of a line of text */
#define PSD_EM_PAD	 0.7  /* between the picture's edge and anything */
#define PSD_EM_SAMPLE	 2.6  /* length of a legend's line */
#define PSD_EM_TIC_ROW	 1.8  /* height of the tics of an x axis and their texts */
#define PSD_EM_TIC_GAP	 0.9  /* between an axis and the texts of its tics */
#define PSD_EM_TITLE	 1.12 /* size of the title */
#define PSD_EM_NARROWEST 17.0 /* a panel beside others */

struct psd_broken {
	const char *line[4];
	unsigned n;
};

/* Places in points, from the left and from the top. */
struct psd_figure_layout {
	struct psd_figure *figure;
	double em, width, height;
	struct psd_broken title, note;
	bool is_legend_right;
	double legend_column, legend_left, legend_top; /* a column's width, and the place of the legend */
	unsigned legend_columns, legend_rows;
	unsigned columns, rows;
	double left[PSD_PANELS_MAX], right[PSD_PANELS_MAX]; /* margins of columns */
	double plot_width;
	double top[PSD_PANELS_MAX], bottom[PSD_PANELS_MAX]; /* margins of rows */
	double plot_height[PSD_PANELS_MAX];
	double x[PSD_PANELS_MAX], y[PSD_PANELS_MAX]; /* begin of columns and rows, margins included */
};

/* Finds all places, and cuts names that are too long. PSD_EINVAL: the canvas is too small. */
enum psd_status psd_figure_layout_make(struct psd_figure_layout *layout, struct psd_figure *figure,
				       const struct psd_canvas *canvas, struct psd_error *err) PSD_MUST_CHECK;

/* Returns the panel of a column and row; NULL: there is none. */
const struct psd_panel *psd_figure_layout_panel_at(const struct psd_figure_layout *layout, unsigned column,
						   unsigned row);
/* True if the label of the y axis, the label of the x axis, or the texts of the x axis are written beside this panel:
 * neighbours with the same ones share them. */
bool psd_figure_layout_has_y_label(const struct psd_figure_layout *layout, unsigned column, unsigned row);
bool psd_figure_layout_has_x_label(const struct psd_figure_layout *layout, unsigned column, unsigned row);
bool psd_figure_layout_has_x_texts(const struct psd_figure_layout *layout, unsigned column, unsigned row);

#endif
