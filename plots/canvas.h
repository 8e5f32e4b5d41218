/* The picture that gnuplot draws: its form, by the end of the file's name, and its size. */
#ifndef PSD_PLOTS_CANVAS_H
#define PSD_PLOTS_CANVAS_H

#include "engine/base/error.h"
#include "engine/base/text.h"

enum psd_form { PSD_FORM_SVG, PSD_FORM_PNG, PSD_FORM_PDF, PSD_FORM_EPS, PSD_FORMS };

struct psd_canvas {
	const char *path; /* borrowed, for messages */
	enum psd_form form;
	double width_pt, height_pt; /* height 0: it follows from the content */
	double dots_per_inch;	    /* resolution of a PNG */
	bool is_scalable;	    /* an SVG without a size of its own, which fills the page it is on */
};

/* Reads the form from the end of the output's name, and the size from "85mm", "85mm,60mm", "1440px" or "16cm"; size
 * NULL: the form's own. PSD_EINVAL: the name has another end, or the size is not one. */
enum psd_status psd_canvas_read(struct psd_canvas *canvas, const char *path, const char *size,
				struct psd_error *err) PSD_MUST_CHECK;
/* Returns the size of all text but the title, points: 7 on a column of a paper, more on wider pictures, never below
 * 6. */
double psd_canvas_font_pt(const struct psd_canvas *canvas);
/* Appends gnuplot's choice of the terminal, for a picture of this height. */
void psd_canvas_add_terminal(struct psd_text *script, const struct psd_canvas *canvas, double height_pt);
/* Returns the number that gnuplot's terminal wants for a font of `pt` points. */
double psd_canvas_font(const struct psd_canvas *canvas, double pt);

/* Runs gnuplot on a script; its picture is appended to `picture`. PSD_EINVAL: gnuplot is not installed. PSD_ERUN: it
 * failed, or could not write all of the picture. PSD_ENOMEM. */
enum psd_status psd_canvas_draw(struct psd_text *picture, const struct psd_canvas *canvas,
				const struct psd_text *script, struct psd_error *err) PSD_MUST_CHECK;
/* Appends an SVG of psd_canvas_draw() as an element of an HTML page. prefix: put before identifiers, so that those of
 * several plots differ. label: describes the plot, already escaped. */
void psd_canvas_embed(struct psd_text *page, const struct psd_text *svg, const char *prefix, const char *label);

#endif
