#include "plots/figure.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plots/words.h"

const char *const psd_palette[PSD_PALETTE] = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
					      "#E69F00", "#56B4E9", "#000000", "#8C510A"};

/* All lengths of the layout are multiples of the font size (em), but for those whose names end in _pt. */
#define LINE	  1.35 /* height of a line of text */
#define PAD	  0.7  /* between the picture's edge and anything */
#define SAMPLE	  2.6  /* length of a legend's line */
#define TIC_ROW	  1.9  /* height of the tics of an x axis and their texts */
#define TIC_GAP	  0.9  /* between an axis and the texts of its tics */
#define TITLE	  1.12 /* size of the title */
#define NARROWEST 17.0 /* a panel beside others */

/* ---- building ---- */

void psd_figure_init(struct psd_figure *figure)
{
	*figure = (struct psd_figure){.n_panels = 0};
	figure->last_entry = &figure->entries;
}

void psd_figure_release(struct psd_figure *figure)
{
	for (unsigned p = 0; p < figure->n_panels; p++)
		for (struct psd_layer *layer = figure->panels[p].layers; layer; layer = layer->next)
			psd_text_release(&layer->data);
	psd_arena_release(&figure->arena);
	psd_arena_release(&figure->kept);
}

void psd_figure_keep(struct psd_figure *figure, struct psd_arena *arena)
{
	figure->kept = *arena;
	*arena = (struct psd_arena){.blocks = NULL};
}

static void *take(struct psd_figure *figure, size_t size, void *fallback)
{
	void *taken = psd_arena_take(&figure->arena, size);

	figure->is_out_of_memory = figure->is_out_of_memory || !taken;
	return taken ? taken : fallback;
}

struct psd_panel *psd_figure_add_panel(struct psd_figure *figure, const char *title)
{
	struct psd_panel *panel = &figure->panels[figure->n_panels++];

	*panel = (struct psd_panel){.title = title};
	panel->last_layer = &panel->layers;
	panel->last_note = &panel->notes;
	return panel;
}

struct psd_layer *psd_figure_add_layer(struct psd_figure *figure, struct psd_panel *panel, struct psd_look look)
{
	static struct psd_layer lost; /* the figure is refused */
	struct psd_layer *layer = take(figure, sizeof(*layer), &lost);

	layer->look = look;
	if (layer != &lost) {
		*panel->last_layer = layer;
		panel->last_layer = &layer->next;
	}
	return layer;
}

void psd_figure_add_note(struct psd_figure *figure, struct psd_panel *panel, struct psd_note note)
{
	struct psd_note *added = take(figure, sizeof(*added), NULL);

	if (!added)
		return;
	*added = note;
	added->next = NULL;
	*panel->last_note = added;
	panel->last_note = &added->next;
}

void psd_figure_add_entry(struct psd_figure *figure, const char *text, struct psd_look look)
{
	struct psd_entry *entry = figure->entries;

	while (entry && strcmp(entry->text, text) != 0)
		entry = entry->next;
	if (entry || !(entry = take(figure, sizeof(*entry), NULL)))
		return;
	*entry = (struct psd_entry){NULL, text, look};
	*figure->last_entry = entry;
	figure->last_entry = &entry->next;
	figure->n_entries++;
}

const char *psd_figure_text(struct psd_figure *figure, const char *format, ...)
{
	va_list arguments;
	char *text;
	int length;

	va_start(arguments, format);
	length = vsnprintf(NULL, 0, format, arguments);
	va_end(arguments);
	text = take(figure, (size_t)length + 1, NULL);
	if (!text)
		return "";
	va_start(arguments, format);
	vsnprintf(text, (size_t)length + 1, format, arguments);
	va_end(arguments);
	return text;
}

void psd_figure_add_tic(struct psd_figure *figure, struct psd_axis *axis, double at, const char *text)
{
	struct psd_tic *grown = axis->tics;

	if ((axis->n_tics & (axis->n_tics - 1)) == 0) {
		grown = take(figure, (axis->n_tics ? 2 * axis->n_tics : 1) * sizeof(*grown), NULL);
		if (!grown)
			return;
		if (axis->n_tics)
			memcpy(grown, axis->tics, axis->n_tics * sizeof(*grown));
	}
	axis->tics = grown;
	axis->tics[axis->n_tics++] = (struct psd_tic){at, text};
}

void psd_figure_add_round_tics(struct psd_figure *figure, struct psd_axis *axis)
{
	static const double mantissas[] = {1, 2, 5}, many[] = {1, 1.5, 2, 3, 4, 5, 6, 8};

	if (axis->log_base) {
		const double ratio = axis->high / axis->low;
		const double *of = ratio < 8 ? many : mantissas;
		const unsigned n = ratio < 8 ? 8 : ratio < 200 ? 3 : 1;

		for (int decade = (int)floor(log10(axis->low)); pow(10, decade) <= axis->high; decade++)
			for (unsigned i = 0; i < n; i++) {
				const double at = of[i] * pow(10, decade);

				if (at >= axis->low && at <= axis->high)
					psd_figure_add_tic(figure, axis, at, psd_figure_text(figure, "%g", at));
			}
		return;
	}
	const double rough = (axis->high - axis->low) / 6, decade = pow(10, floor(log10(rough)));
	const double step = decade * (rough / decade < 1.5   ? 1
				      : rough / decade < 3.5 ? 2
				      : rough / decade < 7.5 ? 5
							     : 10);

	for (double k = ceil(axis->low / step - 1e-9); k * step <= axis->high + 1e-9 * step; k++)
		psd_figure_add_tic(figure, axis, k * step,
				   psd_figure_text(figure, "%g", fabs(k * step) < step / 2 ? 0 : k * step));
}

/* ---- layout ---- */

struct lines {
	const char *line[4];
	unsigned n;
};

/* Places in points, from the left and from the top. */
struct layout {
	struct psd_figure *figure;
	double em, width, height;
	struct lines title, note;
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

/* The last comma of a line whose rest is shorter than half of it, else the line's end. */
static const char *after_comma(const char *line, const char *end)
{
	for (const char *at = end - 1; at > line + (end - line) / 2; at--)
		if (*at == ',')
			return at + 1;
	return end;
}

/* Breaks a text at blanks into lines of at most `width` ems; what remains of it after `most` lines is cut. */
static struct lines break_lines(struct psd_figure *figure, const char *text, double width, unsigned most)
{
	struct lines lines = {.n = 0};

	while (text && *text && lines.n < most) {
		const char *end = text, *fits = NULL;

		while (*end) {
			const char *word = end + strcspn(end + (*end == ' '), " ") + (*end == ' ');
			const char *line = psd_figure_text(figure, "%.*s", (int)(word - text), text);

			if (psd_words_width(line) > width)
				break;
			fits = end = word;
		}
		if (!fits || lines.n + 1 == most)
			fits = text + strlen(text);
		else if (*fits)
			fits = after_comma(text, fits);
		lines.line[lines.n++] =
			psd_words_cut(&figure->arena, psd_figure_text(figure, "%.*s", (int)(fits - text), text), width);
		text = fits + strspn(fits, " ");
	}
	return lines;
}

static double longest_tic(const struct psd_axis *axis)
{
	double longest = 0;

	for (unsigned i = 0; i < axis->n_tics; i++)
		longest = fmax(longest, psd_words_width(axis->tics[i].text));
	return longest;
}

static bool is_equal(const char *one, const char *other)
{
	return one == other || (one && other && !strcmp(one, other));
}

static const struct psd_panel *panel_at(const struct layout *layout, unsigned column, unsigned row)
{
	const unsigned p = row * layout->columns + column;

	return p < layout->figure->n_panels ? &layout->figure->panels[p] : NULL;
}

/* A label that the neighbour on the left, or the one below, has too is written once. */
static bool has_y_label(const struct layout *layout, unsigned column, unsigned row)
{
	const struct psd_panel *panel = panel_at(layout, column, row);

	return panel && panel->y.label &&
	       (column == 0 || !is_equal(panel_at(layout, column - 1, row)->y.label, panel->y.label));
}

static bool has_x_label(const struct layout *layout, unsigned column, unsigned row)
{
	const struct psd_panel *panel = panel_at(layout, column, row), *below = panel_at(layout, column, row + 1);

	return panel && panel->x.label && (!below || !is_equal(below->x.label, panel->x.label));
}

static bool is_same_axis(const struct psd_axis *one, const struct psd_axis *other)
{
	return one->low == other->low && one->high == other->high && one->log_base == other->log_base &&
	       one->n_tics == other->n_tics && is_equal(one->label, other->label);
}

/* Texts of tics are left out where the panel below has the same. */
static bool has_x_texts(const struct layout *layout, unsigned column, unsigned row)
{
	const struct psd_panel *panel = panel_at(layout, column, row), *below = panel_at(layout, column, row + 1);

	return panel && panel->x.n_tics && (!below || !is_same_axis(&panel->x, &below->x));
}

static double widest_entry(const struct psd_figure *figure)
{
	double widest = 0;

	for (const struct psd_entry *entry = figure->entries; entry; entry = entry->next)
		widest = fmax(widest, psd_words_width(entry->text));
	return widest;
}

static void place_legend(struct layout *layout)
{
	const struct psd_figure *figure = layout->figure;
	const double em = layout->em, room = layout->width - 2 * PAD * em, column = SAMPLE + 0.6 + widest_entry(figure);

	layout->is_legend_right = layout->width > 500 && column * em < 0.3 * room && figure->most_columns != 1 &&
				  figure->n_panels == 1 && figure->n_entries * LINE * em < 0.5 * layout->width;
	layout->legend_column = fmin((column + 1.4) * em, room);
	layout->legend_columns = 1;
	if (!layout->is_legend_right && figure->n_entries)
		layout->legend_columns = (unsigned)fmax(1, floor((room + 1.4 * em) / layout->legend_column));
	layout->legend_rows = (figure->n_entries + layout->legend_columns - 1) / layout->legend_columns;
	if (layout->legend_rows)
		layout->legend_columns = (figure->n_entries + layout->legend_rows - 1) / layout->legend_rows;
}

static void choose_grid(struct layout *layout, double room)
{
	const struct psd_figure *figure = layout->figure;
	unsigned columns = (unsigned)fmax(1, floor(room / (NARROWEST * layout->em)));

	if (figure->most_columns && columns > figure->most_columns)
		columns = figure->most_columns;
	if (columns > figure->n_panels)
		columns = figure->n_panels;
	layout->rows = (figure->n_panels + columns - 1) / columns;
	layout->columns = (figure->n_panels + layout->rows - 1) / layout->rows;
}

static void place_columns(struct layout *layout, double room)
{
	const double em = layout->em;
	double used = 0;

	for (unsigned c = 0; c < layout->columns; c++) {
		double left = 0, right = 0.5;
		bool is_labelled = false;

		for (unsigned r = 0; r < layout->rows; r++) {
			const struct psd_panel *panel = panel_at(layout, c, r);

			if (!panel)
				continue;
			left = fmax(left, longest_tic(&panel->y));
			is_labelled = is_labelled || has_y_label(layout, c, r);
			if (panel->x.n_tics)
				right = fmax(right, psd_words_width(panel->x.tics[panel->x.n_tics - 1].text) / 2);
		}
		layout->left[c] = (left + TIC_GAP + (is_labelled ? LINE + 0.2 : 0) + (c > 0 ? 0.6 : 0)) * em;
		layout->right[c] = right * em;
		used += layout->left[c] + layout->right[c];
	}
	layout->plot_width = (room - used) / layout->columns;
	for (unsigned c = 0; c < layout->columns; c++)
		layout->x[c] =
			c == 0 ? PAD * em
			       : layout->x[c - 1] + layout->left[c - 1] + layout->plot_width + layout->right[c - 1];
}

/* Margins of rows, and heights of plots as the width wants them. Returns the height of all rows. */
static double measure_rows(struct layout *layout)
{
	const double em = layout->em;
	double sum = 0;

	for (unsigned r = 0; r < layout->rows; r++) {
		bool has_title = false, is_labelled = false, has_tics = false;
		double lines = 0;

		for (unsigned c = 0; c < layout->columns; c++) {
			const struct psd_panel *panel = panel_at(layout, c, r);

			has_title = has_title || (panel && panel->title);
			is_labelled = is_labelled || has_x_label(layout, c, r);
			has_tics = has_tics || has_x_texts(layout, c, r);
			lines = fmax(lines, panel ? panel->lines : 0);
		}
		layout->top[r] = (has_title ? LINE + 0.2 : 0.5) * em;
		layout->bottom[r] = ((has_tics ? TIC_ROW : 0.4) + (is_labelled ? LINE : 0) + 0.4) * em;
		layout->plot_height[r] = lines > 0 ? lines * LINE * em
						   : fmin((layout->rows * layout->columns == 1 ? 0.62
							   : layout->columns == 1	       ? 0.5
											       : 0.7) *
								  layout->plot_width,
							  0.55 * layout->width);
		sum += layout->top[r] + layout->plot_height[r] + layout->bottom[r];
	}
	return sum;
}

static enum psd_status make_layout(struct layout *layout, struct psd_figure *figure, const struct psd_canvas *canvas,
				   struct psd_error *err)
{
	const double em = psd_canvas_font_pt(canvas), width = canvas->width_pt;

	*layout = (struct layout){.figure = figure, .em = em, .width = width};
	layout->title = break_lines(figure, figure->title, (width / em - 2 * PAD) / TITLE, 3);
	layout->note = break_lines(figure, figure->note, width / em - 2 * PAD, 3);
	place_legend(layout);
	const double room = width - 2 * PAD * em - (layout->is_legend_right ? layout->legend_column : 0);

	choose_grid(layout, room);
	place_columns(layout, room);
	const double head = (PAD + layout->title.n * LINE * TITLE) * em,
		     legend = layout->is_legend_right ? 0 : layout->legend_rows * LINE * em,
		     foot = legend + (PAD + layout->note.n * LINE) * em;
	double rows = measure_rows(layout);

	layout->height = canvas->height_pt > 0 ? canvas->height_pt : head + rows + foot;
	for (unsigned r = 0; r < layout->rows && canvas->height_pt > 0; r++)
		layout->plot_height[r] += (layout->height - head - rows - foot) / layout->rows;
	for (unsigned r = 0; r < layout->rows; r++) {
		layout->y[r] = r == 0 ? head
				      : layout->y[r - 1] + layout->top[r - 1] + layout->plot_height[r - 1] +
						layout->bottom[r - 1];
		if (layout->plot_height[r] < em || layout->plot_width < 4 * em)
			return psd_error_set(
				err, PSD_EINVAL, PSD_NOWHERE,
				"the picture is too small for its texts: say a larger --size, or draw fewer "
				"systems");
	}
	layout->legend_left = layout->is_legend_right ? width - PAD * em - layout->legend_column + 1.4 * em : PAD * em;
	layout->legend_top = layout->is_legend_right ? layout->y[0] + layout->top[0] : layout->height - foot;
	return PSD_OK;
}

/* ---- gnuplot's commands ---- */

struct writer {
	struct psd_text *script;
	const struct layout *layout;
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
	psd_text_add(writer->script, "set %ctics (", name);
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
	const struct layout *layout = writer->layout;
	const double em = layout->em, left = layout->x[column] + layout->left[column], width = layout->plot_width;
	const double top = layout->y[row] + layout->top[row], bottom = top + layout->plot_height[row];
	struct psd_panel panel = *panel_at(layout, column, row);
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
	write_tics(writer, &panel.x, 'x', width, has_x_texts(layout, column, row));
	write_tics(writer, &panel.y, 'y', layout->plot_height[row], true);
	if (panel.title)
		write_label(writer,
			    psd_words_cut(&layout->figure->arena, panel.title, (width + layout->right[column]) / em),
			    left, top - (LINE / 2 + 0.1) * em, "left");
	if (has_x_label(layout, column, row))
		write_label(writer, panel.x.label, left + width / 2,
			    bottom + ((has_x_texts(layout, column, row) ? TIC_ROW + 0.1 : 0.4) + LINE / 2) * em,
			    "center");
	if (has_y_label(layout, column, row))
		write_label(writer, panel.y.label, layout->x[column] + (LINE / 2 + (column > 0 ? 0.6 : 0)) * em,
			    (top + bottom) / 2, "center rotate by 90");
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
	const double em = writer->layout->em, scale = scale_of(writer), middle = left + SAMPLE * em / 2;

	switch (look->style) {
	case PSD_STYLE_LINE:
		psd_text_add(
			writer->script,
			"set arrow %u from screen %.5f,%.5f to screen %.5f,%.5f nohead lc rgb '%s' dt %u lw %.2f\n",
			number, screen_x(writer, left), screen_y(writer, y), screen_x(writer, left + SAMPLE * em),
			screen_y(writer, y), look->colour, look->dash ? look->dash : 1, look->width * scale);
		break;
	case PSD_STYLE_BAND:
	case PSD_STYLE_BOXES:
		psd_text_add(
			writer->script,
			"set object %u rectangle from screen %.5f,%.5f to screen %.5f,%.5f fc rgb '%s' fs %ssolid %g "
			"%s\n",
			number, screen_x(writer, left + 0.5 * em), screen_y(writer, y + 0.4 * em),
			screen_x(writer, left + (SAMPLE - 0.5) * em), screen_y(writer, y - 0.4 * em), look->colour,
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
	const struct layout *layout = writer->layout;
	const double em = layout->em;
	const char *title_font =
		psd_figure_text(layout->figure, "center font ',%.2f'",
				psd_canvas_font(writer->canvas, TITLE * psd_canvas_font_pt(writer->canvas)));
	unsigned n = 0;

	writer->n_labels = 0;
	psd_text_add(writer->script, "unset label\n");
	for (unsigned i = 0; i < layout->title.n; i++)
		write_label(writer, layout->title.line[i], layout->width / 2, (PAD + (i + 0.5) * LINE * TITLE) * em,
			    title_font);
	for (unsigned i = 0; i < layout->note.n; i++)
		write_label(writer, layout->note.line[i], PAD * em,
			    layout->height - (PAD + (layout->note.n - i - 0.5) * LINE) * em, "left");
	for (const struct psd_entry *entry = layout->figure->entries; entry; entry = entry->next, n++) {
		const double left = layout->legend_left + n / layout->legend_rows * layout->legend_column;
		const double y = layout->legend_top + (n % layout->legend_rows + 0.5) * LINE * em;
		const double room = layout->legend_column / em - SAMPLE - 0.6;

		write_sample(writer, &entry->look, n + 1, left, y);
		write_label(writer, psd_words_cut(&layout->figure->arena, entry->text, room),
			    left + (SAMPLE + 0.6) * em, y, "left");
	}
	psd_text_add(
		writer->script,
		"unset border\nunset tics\nunset grid\nunset logscale\nset lmargin at screen 0\nset rmargin at screen "
		"1\nset tmargin at screen 1\nset bmargin at screen 0\nplot [0:1][0:1] 2 notitle\n");
}

enum psd_status psd_figure_write(struct psd_text *script, struct psd_figure *figure, const struct psd_canvas *canvas,
				 struct psd_error *err)
{
	struct layout layout;
	struct writer writer = {script, &layout, canvas, 0, 0};

	PSD_TRY(make_layout(&layout, figure, canvas, err));
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
	enum psd_status status;

	if (title)
		figure->title = strcmp(title, "-") != 0 ? title : NULL;
	status = psd_figure_write(&script, figure, canvas, err);
	if (!status)
		status = psd_canvas_draw(picture, canvas, &script, err);
	psd_text_release(&script);
	return status;
}
