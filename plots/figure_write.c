/* Commands of gnuplot for a figure whose places are known. */
#include <math.h>
#include <string.h>

#include "plots/figure_layout.h"
#include "plots/words.h"

struct writer {
	struct psd_text *script;
	const struct psd_figure_layout *layout;
	const struct psd_canvas *canvas;
	unsigned n_labels;
	unsigned n_data;
};

static double screen_x(const struct writer *writer, double x)
{
	return x / writer->layout->width;
}

static double screen_y(const struct writer *writer, double y)
{
	return 1 - y / writer->layout->height;
}

/* Lines and points have the size that they have on a picture of 960 pixels, in proportion to the text. */
static double scale_of(const struct writer *writer)
{
	return writer->layout->em / 11.25;
}

static void write_label(struct writer *writer, const char *text, double x, double y, const char *how)
{
	psd_text_add(writer->script, "set label %u ", ++writer->n_labels);
	psd_words_add_quoted(writer->script, text);
	psd_text_add(writer->script, " at screen %.5f,%.5f %s\n", screen_x(writer, x), screen_y(writer, y), how);
}

static double place_on(const struct psd_axis *axis, double at)
{
	return axis->log_base ? log(at / axis->low) / log(axis->high / axis->low)
			      : (at - axis->low) / (axis->high - axis->low);
}

/* Half the length of a tic's text along the axis, points. */
static double half_tic(const struct writer *writer, const struct psd_axis *axis, unsigned i, char name)
{
	const double em = writer->layout->em;

	return name == 'x' ? (psd_words_width(axis->tics[i].text) + 0.7) * em / 2 : 0.6 * em;
}

/* True if texts of tics `step` apart do not touch. */
static bool is_roomy(const struct writer *writer, const struct psd_axis *axis, char name, double length_pt,
		     unsigned step)
{
	for (unsigned i = step; i < axis->n_tics; i += step)
		if (fabs(place_on(axis, axis->tics[i].at) - place_on(axis, axis->tics[i - step].at)) * length_pt <
		    half_tic(writer, axis, i, name) + half_tic(writer, axis, i - step, name))
			return false;
	return true;
}

static bool is_even(const struct psd_axis *axis)
{
	const double first = axis->n_tics > 1 ? place_on(axis, axis->tics[1].at) - place_on(axis, axis->tics[0].at) : 0;
	bool is_even = true;

	for (unsigned i = 1; i < axis->n_tics; i++)
		is_even = is_even &&
			  fabs(place_on(axis, axis->tics[i].at) - place_on(axis, axis->tics[i - 1].at) - first) < 1e-6;
	return is_even;
}

/* Finds the texts that do not touch each other: every second, third, ... on an even axis; on others one after another,
 * and the last one. A tic without text stays. */
static void choose_tics(const struct writer *writer, const struct psd_axis *axis, char name, double length_pt,
			bool is_shown[])
{
	unsigned step = 1, last = axis->n_tics ? axis->n_tics - 1 : 0;
	double end = -INFINITY;

	while (!axis->needs_all && step < axis->n_tics && !is_roomy(writer, axis, name, length_pt, step))
		step++;
	const bool is_regular = axis->needs_all || is_even(axis);

	for (unsigned i = 0; i < axis->n_tics; i++) {
		const double at = place_on(axis, axis->tics[i].at) * length_pt, half = half_tic(writer, axis, i, name);
		const double last_begin =
			place_on(axis, axis->tics[last].at) * length_pt - half_tic(writer, axis, last, name);

		is_shown[i] = is_regular ? i % step == 0 : i == last || (at - half >= end && at + half <= last_begin);
		if (is_shown[i])
			end = at + half;
	}
}

/* length_pt: length of the axis. */
static void write_tics(struct writer *writer, const struct psd_axis *axis, char name, double length_pt, bool has_texts)
{
	bool *is_shown = psd_arena_take(&writer->layout->figure->arena, axis->n_tics + 1);

	if (!is_shown) {
		writer->layout->figure->is_out_of_memory = true;
		return;
	}
	choose_tics(writer, axis, name, length_pt, is_shown);
	/* gnuplot's terminals have different distances between an axis and the texts of its tics */
	psd_text_add(writer->script, "set %ctics offset 0,%g (", name,
		     name == 'y'			    ? 0.0
		     : writer->canvas->form == PSD_FORM_SVG ? 0.5
							    : 0.25);
	for (unsigned i = 0; i < axis->n_tics; i++) {
		psd_text_add(writer->script, "%s", i ? ", " : "");
		psd_words_add_quoted(writer->script, is_shown[i] && has_texts ? axis->tics[i].text : "");
		psd_text_add(writer->script, " %.9g", axis->tics[i].at);
	}
	psd_text_add(writer->script, ")\nset %crange [%.9g:%.9g]\n", name, axis->low, axis->high);
	if (axis->log_base)
		psd_text_add(writer->script, "set logscale %c %u\n", name, axis->log_base);
	else
		psd_text_add(writer->script, "unset logscale %c\n", name);
	psd_text_add(writer->script,
		     axis->has_grid ? "set grid %ctics lt 1 lw 0.6 lc rgb '#dddddd'\n" : "set grid no%ctics\n", name);
}

static void write_look(struct writer *writer, const struct psd_look *look)
{
	const double scale = scale_of(writer);

	switch (look->style) {
	case PSD_STYLE_LINE:
		psd_text_add(writer->script, "with %s lc rgb '%s' dt %u lw %.2f", look->point ? "linespoints" : "lines",
			     look->colour, look->dash ? look->dash : 1, look->width * scale);
		if (look->point)
			psd_text_add(writer->script, " pt %d ps %.2f", look->point, look->size * scale);
		break;
	case PSD_STYLE_POINTS:
		psd_text_add(writer->script, "with points lc rgb '%s' lw %.2f pt %d ps %.2f", look->colour,
			     look->width * scale, look->point, look->size * scale);
		break;
	case PSD_STYLE_BAND:
		psd_text_add(writer->script, "with filledcurves lc rgb '%s' fs %ssolid %g noborder", look->colour,
			     look->opacity < 1 && writer->canvas->form != PSD_FORM_EPS ? "transparent " : "",
			     look->opacity);
		break;
	case PSD_STYLE_WHISKERS_X:
	case PSD_STYLE_WHISKERS_Y:
		psd_text_add(writer->script, "with %cerrorbars lc rgb '%s' lw %.2f pt -1",
			     look->style == PSD_STYLE_WHISKERS_X ? 'x' : 'y', look->colour, look->width * scale);
		break;
	case PSD_STYLE_BOXES:
		psd_text_add(writer->script, "with boxxyerror lc rgb '%s' lw %.2f fs solid %g %s", look->colour,
			     look->width * scale, look->opacity,
			     look->width > 0
				     ? psd_figure_text(writer->layout->figure, "border lc rgb '%s'", look->colour)
				     : "noborder");
		break;
	}
	psd_text_add(writer->script, " notitle");
}

static unsigned columns_of(enum psd_style style)
{
	static const unsigned columns[] = {
		[PSD_STYLE_LINE] = 2,	    [PSD_STYLE_POINTS] = 2,	[PSD_STYLE_BAND] = 3,
		[PSD_STYLE_WHISKERS_X] = 4, [PSD_STYLE_WHISKERS_Y] = 4, [PSD_STYLE_BOXES] = 6};

	return columns[style];
}

static void write_notes(struct writer *writer, const struct psd_panel *panel)
{
	const double em = writer->layout->em, width = writer->layout->plot_width;

	for (const struct psd_note *note = panel->notes; note; note = note->next) {
		const double room = note->room / (panel->x.high - panel->x.low) * width;

		if (note->room > 0 && psd_words_width(note->text) * em + 0.5 * em > room)
			continue;
		psd_text_add(writer->script, "set label %u ", ++writer->n_labels);
		psd_words_add_quoted(writer->script, note->text);
		psd_text_add(writer->script, " at first %.9g,%.9g %s front tc rgb '%s'\n", note->x, note->y,
			     note->is_left ? "left" : "center", note->colour);
	}
}

static void write_data(struct writer *writer, const struct psd_panel *panel)
{
	unsigned n = writer->n_data;

	for (const struct psd_layer *layer = panel->layers; layer; layer = layer->next) {
		psd_text_add(writer->script, "$d%u << EOD\n", ++n);
		psd_text_add_bytes(writer->script, layer->data.bytes ? layer->data.bytes : "", layer->data.length);
		psd_text_add(writer->script, "EOD\n");
	}
}

static void write_panel(struct writer *writer, unsigned column, unsigned row)
{
	const struct psd_figure_layout *layout = writer->layout;
	const double em = layout->em, left = layout->x[column] + layout->left[column], width = layout->plot_width;
	const double top = layout->y[row] + layout->top[row], bottom = top + layout->plot_height[row];
	struct psd_panel panel = *psd_figure_layout_panel_at(layout, column, row);
	const char *separator = "plot ";

	if (panel.end_room > 0)
		panel.x.high += (panel.x.high - panel.x.low) * panel.end_room * em / (width - panel.end_room * em);
	write_data(writer, &panel);
	writer->n_labels = 0;
	psd_text_add(writer->script,
		     "unset label\nset lmargin at screen %.5f\nset rmargin at screen %.5f\n"
		     "set tmargin at screen %.5f\nset bmargin at screen %.5f\n",
		     screen_x(writer, left), screen_x(writer, left + width), screen_y(writer, top),
		     screen_y(writer, bottom));
	write_tics(writer, &panel.x, 'x', width, psd_figure_layout_has_x_texts(layout, column, row));
	write_tics(writer, &panel.y, 'y', layout->plot_height[row], true);
	if (panel.title)
		write_label(writer,
			    psd_words_cut(&layout->figure->arena, panel.title, (width + layout->right[column]) / em),
			    left, top - (PSD_EM_LINE / 2 + 0.1) * em, "left");
	if (psd_figure_layout_has_x_label(layout, column, row))
		write_label(writer, panel.x.label, left + width / 2,
			    bottom +
				    ((psd_figure_layout_has_x_texts(layout, column, row) ? PSD_EM_TIC_ROW + 0.1 : 0.4) +
				     PSD_EM_LINE / 2) *
					    em,
			    "center");
	if (psd_figure_layout_has_y_label(layout, column, row))
		write_label(writer, psd_words_cut(&layout->figure->arena, panel.y.label, layout->plot_height[row] / em),
			    layout->x[column] + (PSD_EM_LINE / 2 + (column > 0 ? 0.6 : 0)) * em, (top + bottom) / 2,
			    "center rotate by 90");
	write_notes(writer, &panel);
	for (const struct psd_layer *layer = panel.layers; layer; layer = layer->next) {
		psd_text_add(writer->script, "%s$d%u using 1:2", separator, ++writer->n_data);
		for (unsigned c = 3; c <= columns_of(layer->look.style); c++)
			psd_text_add(writer->script, ":%u", c);
		psd_text_add(writer->script, " ");
		write_look(writer, &layer->look);
		separator = ", \\\n\t";
	}
	psd_text_add(writer->script, "\n");
}

static void write_sample(struct writer *writer, const struct psd_look *look, unsigned number, double left, double y)
{
	const double em = writer->layout->em, scale = scale_of(writer), middle = left + PSD_EM_SAMPLE * em / 2;

	switch (look->style) {
	case PSD_STYLE_LINE:
		psd_text_add(
			writer->script,
			"set arrow %u from screen %.5f,%.5f to screen %.5f,%.5f nohead lc rgb '%s' dt %u lw %.2f\n",
			number, screen_x(writer, left), screen_y(writer, y),
			screen_x(writer, left + PSD_EM_SAMPLE * em), screen_y(writer, y), look->colour,
			look->dash ? look->dash : 1, look->width * scale);
		break;
	case PSD_STYLE_BAND:
	case PSD_STYLE_BOXES:
		psd_text_add(
			writer->script,
			"set object %u rectangle from screen %.5f,%.5f to screen %.5f,%.5f fc rgb '%s' fs %ssolid %g "
			"%s\n",
			number, screen_x(writer, left + 0.5 * em), screen_y(writer, y + 0.4 * em),
			screen_x(writer, left + (PSD_EM_SAMPLE - 0.5) * em), screen_y(writer, y - 0.4 * em),
			look->colour,
			look->style == PSD_STYLE_BAND && writer->canvas->form != PSD_FORM_EPS ? "transparent " : "",
			look->opacity,
			look->width > 0 && look->style == PSD_STYLE_BOXES
				? psd_figure_text(writer->layout->figure, "border lc rgb '%s'", look->colour)
				: "noborder");
		break;
	case PSD_STYLE_POINTS:
	case PSD_STYLE_WHISKERS_X:
	case PSD_STYLE_WHISKERS_Y: break;
	}
	if (look->point && (look->style == PSD_STYLE_LINE || look->style == PSD_STYLE_POINTS))
		psd_text_add(writer->script,
			     "set label %u '' at screen %.5f,%.5f point pt %d ps %.2f lw %.2f lc rgb '%s'\n",
			     ++writer->n_labels, screen_x(writer, middle), screen_y(writer, y), look->point,
			     look->size * scale, look->width * scale, look->colour);
}

/* Title, legend and note, with a plot of nothing. */
static void write_frame(struct writer *writer)
{
	const struct psd_figure_layout *layout = writer->layout;
	const double em = layout->em;
	const char *title_font =
		psd_figure_text(layout->figure, "center font ',%.2f'",
				psd_canvas_font(writer->canvas, PSD_EM_TITLE * psd_canvas_font_pt(writer->canvas)));
	unsigned n = 0;

	writer->n_labels = 0;
	psd_text_add(writer->script, "unset label\n");
	for (unsigned i = 0; i < layout->title.n; i++)
		write_label(writer, layout->title.line[i], layout->width / 2,
			    (PSD_EM_PAD + (i + 0.5) * PSD_EM_LINE * PSD_EM_TITLE) * em, title_font);
	for (unsigned i = 0; i < layout->note.n; i++)
		write_label(writer, layout->note.line[i], PSD_EM_PAD * em,
			    layout->height - (PSD_EM_PAD + (layout->note.n - i - 0.5) * PSD_EM_LINE) * em, "left");
	for (const struct psd_entry *entry = layout->figure->entries; entry; entry = entry->next, n++) {
		const double left = layout->legend_left + n / layout->legend_rows * layout->legend_column;
		const double y = layout->legend_top + (n % layout->legend_rows + 0.5) * PSD_EM_LINE * em;
		const double room = layout->legend_column / em - PSD_EM_SAMPLE - 0.6;

		write_sample(writer, &entry->look, n + 1, left, y);
		write_label(writer, psd_words_cut(&layout->figure->arena, entry->text, room),
			    left + (PSD_EM_SAMPLE + 0.6) * em, y, "left");
	}
	psd_text_add(
		writer->script,
		"unset border\nunset tics\nunset grid\nunset logscale\nset lmargin at screen 0\nset rmargin at screen "
		"1\nset tmargin at screen 1\nset bmargin at screen 0\nplot [0:1][0:1] 2 notitle\n");
}

/* Appends the commands that draw the figure on the canvas. */
static enum psd_status write_figure(struct psd_text *script, struct psd_figure *figure, const struct psd_canvas *canvas,
				    struct psd_error *err)
{
	struct psd_figure_layout layout;
	struct writer writer = {script, &layout, canvas, 0, 0};

	PSD_TRY(psd_figure_layout_make(&layout, figure, canvas, err));
	psd_canvas_add_terminal(script, canvas, layout.height);
	psd_text_add(script,
		     "set encoding utf8\nset border 3 lc rgb '#444444' lw %.2f\nset tics nomirror out scale 0.5\n"
		     "unset key\nset multiplot\n",
		     scale_of(&writer));
	for (unsigned p = 0; p < figure->n_panels; p++)
		write_panel(&writer, p % layout.columns, p / layout.columns);
	write_frame(&writer);
	psd_text_add(script, "unset multiplot\nunset output\n");
	return figure->is_out_of_memory || script->is_out_of_memory ? psd_out_of_memory(err) : PSD_OK;
}

enum psd_status psd_figure_draw(struct psd_text *picture, struct psd_figure *figure, const struct psd_canvas *canvas,
				const char *title, struct psd_error *err)
{
	struct psd_text script = {.bytes = NULL};

	if (title)
		figure->title = strcmp(title, "-") != 0 ? title : NULL;
	enum psd_status status = write_figure(&script, figure, canvas, err);
	if (!status)
		status = psd_canvas_draw(picture, canvas, &script, err);
	psd_text_release(&script);
	return status;
}
