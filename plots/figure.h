/* A figure: panels with axes and layers of data, one legend, a title. This module places all of it, by the widths of
 * the texts, so that nothing covers anything else, and writes gnuplot's commands. */
#ifndef PSD_PLOTS_FIGURE_H
#define PSD_PLOTS_FIGURE_H

#include <stdbool.h>

#include "engine/base/arena.h"
#include "engine/base/error.h"
#include "engine/base/text.h"
#include "plots/canvas.h"

enum { PSD_PANELS_MAX = 256, PSD_PALETTE = 8 };

/* Okabe and Ito's palette, which colour-blind readers tell apart; dark colours first, and brown for their yellow. */
extern const char *const psd_palette[PSD_PALETTE];
#define PSD_GREY "#555555"

enum psd_style {
	PSD_STYLE_LINE,	      /* x y: a line, with points if `point` is above 0 */
	PSD_STYLE_POINTS,     /* x y */
	PSD_STYLE_BAND,	      /* x low high: the area between */
	PSD_STYLE_WHISKERS_X, /* x y low high */
	PSD_STYLE_WHISKERS_Y, /* x y low high */
	PSD_STYLE_BOXES,      /* x y left right top bottom */
};

struct psd_look {
	enum psd_style style;
	const char *colour; /* as in #0072B2 */
	unsigned dash;	    /* gnuplot's dash type; 0: solid */
	double width;	    /* width of a line; 1 is a thin one */
	int point;	    /* gnuplot's point type; 0: no points */
	double size;	    /* size of points */
	double opacity;	    /* opacity of areas */
};

struct psd_layer {
	struct psd_layer *next;
	struct psd_look look;
	struct psd_text data; /* lines of numbers as the style says */
};

/* Text at a place of a panel. */
struct psd_note {
	struct psd_note *next;
	double x, y;
	double room;	    /* width that the text may have, in units of x; 0: it is written anyway */
	const char *text;   /* borrowed */
	const char *colour; /* colour of the text */
	bool is_left;	    /* the text begins at x; false: it is centred there */
};

struct psd_tic {
	double at;
	const char *text; /* borrowed */
};

struct psd_axis {
	const char *label; /* NULL: none */
	double low, high;
	unsigned log_base; /* 0: linear */
	struct psd_tic *tics;
	unsigned n_tics;
	bool has_grid;
	bool needs_all; /* every tic keeps its text, as names of bars do */
};

struct psd_panel {
	const char *title; /* NULL: none */
	struct psd_axis x, y;
	struct psd_layer *layers, **last_layer;
	struct psd_note *notes, **last_note;
	double lines;	 /* height of the plot in lines of text; 0: it follows from the width */
	double end_room; /* room for notes behind the greatest x, in multiples of the font size */
};

struct psd_entry {
	struct psd_entry *next;
	const char *text;
	struct psd_look look;
};

struct psd_figure {
	struct psd_arena arena;
	struct psd_arena kept; /* memory of texts that the figure borrows */
	const char *title;
	const char *note; /* line below everything; NULL: none */
	const char *hint; /* line for the user, not in the picture; NULL: none */
	struct psd_panel panels[PSD_PANELS_MAX];
	unsigned n_panels;
	unsigned most_columns; /* most panels side by side; 0: as many as fit */
	struct psd_entry *entries, **last_entry;
	unsigned n_entries;
	bool is_out_of_memory;
};

void psd_figure_init(struct psd_figure *figure);
void psd_figure_release(struct psd_figure *figure);

/* The next functions set figure->is_out_of_memory on failure. Then they return a valid pointer all the same. */
struct psd_panel *psd_figure_add_panel(struct psd_figure *figure, const char *title);
/* Adds a layer on top of the others. */
struct psd_layer *psd_figure_add_layer(struct psd_figure *figure, struct psd_panel *panel, struct psd_look look);
void psd_figure_add_note(struct psd_figure *figure, struct psd_panel *panel, struct psd_note note);
/* Adds a line to the legend, unless it has this text. */
void psd_figure_add_entry(struct psd_figure *figure, const char *text, struct psd_look look);
/* Returns a copy of a formatted text that lives as long as the figure. */
const char *psd_figure_text(struct psd_figure *figure, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Takes over the memory of texts that the figure borrows; *arena is empty then. Called once. */
void psd_figure_keep(struct psd_figure *figure, struct psd_arena *arena);
/* Adds a tic to the axis. */
void psd_figure_add_tic(struct psd_figure *figure, struct psd_axis *axis, double at, const char *text);
/* Adds tics at round values between axis->low and high, 4 to 8 of them, or at decades of a logarithmic axis. */
void psd_figure_add_round_tics(struct psd_figure *figure, struct psd_axis *axis);

/* Draws the figure and appends the picture. title: replaces the figure's; "-": no title; NULL: the figure's.
 * PSD_EINVAL: the canvas is too small. PSD_ERUN: gnuplot failed. PSD_ENOMEM. */
enum psd_status psd_figure_draw(struct psd_text *picture, struct psd_figure *figure, const struct psd_canvas *canvas,
				const char *title, struct psd_error *err) PSD_MUST_CHECK;

#endif
