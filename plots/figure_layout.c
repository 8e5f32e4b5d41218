#include "plots/figure_layout.h"

#include <math.h>
#include <string.h>

#include "plots/words.h"

/* The last comma of a line whose rest is shorter than half of it, else the line's end. */
static const char *after_comma(const char *line, const char *end)
{
	for (const char *at = end - 1; at > line + (end - line) / 2; at--)
		if (*at == ',')
			return at + 1;
	return end;
}

/* Breaks a text at blanks into lines of at most `width` ems; what remains of it after `most` lines is cut. */
static struct psd_broken break_lines(struct psd_figure *figure, const char *text, double width, unsigned most)
{
	struct psd_broken lines = {.n = 0};

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

const struct psd_panel *psd_figure_layout_panel_at(const struct psd_figure_layout *layout, unsigned column,
						   unsigned row)
{
	const unsigned p = row * layout->columns + column;

	return p < layout->figure->n_panels ? &layout->figure->panels[p] : NULL;
}

/* A label that the neighbour on the left, or the one below, has too is written once. */
bool psd_figure_layout_has_y_label(const struct psd_figure_layout *layout, unsigned column, unsigned row)
{
	const struct psd_panel *panel = psd_figure_layout_panel_at(layout, column, row);

	return panel && panel->y.label &&
	       (column == 0 || !is_equal(psd_figure_layout_panel_at(layout, column - 1, row)->y.label, panel->y.label));
}

bool psd_figure_layout_has_x_label(const struct psd_figure_layout *layout, unsigned column, unsigned row)
{
	const struct psd_panel *panel = psd_figure_layout_panel_at(layout, column, row),
			       *below = psd_figure_layout_panel_at(layout, column, row + 1);

	return panel && panel->x.label && (!below || !is_equal(below->x.label, panel->x.label));
}

static bool is_same_axis(const struct psd_axis *one, const struct psd_axis *other)
{
	return one->low == other->low && one->high == other->high && one->log_base == other->log_base &&
	       one->n_tics == other->n_tics && is_equal(one->label, other->label);
}

/* Texts of tics are left out where the panel below has the same. */
bool psd_figure_layout_has_x_texts(const struct psd_figure_layout *layout, unsigned column, unsigned row)
{
	const struct psd_panel *panel = psd_figure_layout_panel_at(layout, column, row),
			       *below = psd_figure_layout_panel_at(layout, column, row + 1);

	return panel && panel->x.n_tics && (!below || !is_same_axis(&panel->x, &below->x));
}

static double widest_entry(const struct psd_figure *figure)
{
	double widest = 0;

	for (const struct psd_entry *entry = figure->entries; entry; entry = entry->next)
		widest = fmax(widest, psd_words_width(entry->text));
	return widest;
}

static void place_legend(struct psd_figure_layout *layout)
{
	const struct psd_figure *figure = layout->figure;
	const double em = layout->em, room = layout->width - 2 * PSD_EM_PAD * em,
		     column = PSD_EM_SAMPLE + 0.6 + widest_entry(figure);

	layout->is_legend_right = layout->width > 500 && column * em < 0.3 * room && figure->most_columns != 1 &&
				  figure->n_panels == 1 && figure->n_entries * PSD_EM_LINE * em < 0.5 * layout->width;
	layout->legend_column = fmin((column + 1.4) * em, room);
	layout->legend_columns = 1;
	if (!layout->is_legend_right && figure->n_entries)
		layout->legend_columns = (unsigned)fmax(1, floor((room + 1.4 * em) / layout->legend_column));
	layout->legend_rows = (figure->n_entries + layout->legend_columns - 1) / layout->legend_columns;
	if (layout->legend_rows)
		layout->legend_columns = (figure->n_entries + layout->legend_rows - 1) / layout->legend_rows;
}

static void choose_grid(struct psd_figure_layout *layout, double room)
{
	const struct psd_figure *figure = layout->figure;
	unsigned columns = (unsigned)fmax(1, floor(room / (PSD_EM_NARROWEST * layout->em)));

	if (figure->most_columns && columns > figure->most_columns)
		columns = figure->most_columns;
	if (columns > figure->n_panels)
		columns = figure->n_panels;
	layout->rows = (figure->n_panels + columns - 1) / columns;
	layout->columns = (figure->n_panels + layout->rows - 1) / layout->rows;
}

/* Names of bars take a third of a panel at most. */
static void cut_names(struct psd_figure_layout *layout, double room)
{
	struct psd_figure *figure = layout->figure;

	for (unsigned p = 0; p < figure->n_panels; p++)
		for (unsigned i = 0; i < figure->panels[p].y.n_tics && figure->panels[p].y.needs_all; i++)
			figure->panels[p].y.tics[i].text =
				psd_words_cut(&figure->arena, figure->panels[p].y.tics[i].text,
					      room / layout->columns / layout->em / 3);
}

static void place_columns(struct psd_figure_layout *layout, double room)
{
	const double em = layout->em;
	double used = 0;

	cut_names(layout, room);

	for (unsigned c = 0; c < layout->columns; c++) {
		double left = 0, right = 0.5;
		bool is_labelled = false;

		for (unsigned r = 0; r < layout->rows; r++) {
			const struct psd_panel *panel = psd_figure_layout_panel_at(layout, c, r);

			if (!panel)
				continue;
			left = fmax(left, longest_tic(&panel->y));
			is_labelled = is_labelled || psd_figure_layout_has_y_label(layout, c, r);
			if (panel->x.n_tics)
				right = fmax(right, psd_words_width(panel->x.tics[panel->x.n_tics - 1].text) / 2);
		}
		layout->left[c] =
			(left + PSD_EM_TIC_GAP + (is_labelled ? PSD_EM_LINE + 0.2 : 0) + (c > 0 ? 0.6 : 0)) * em;
		layout->right[c] = right * em;
		used += layout->left[c] + layout->right[c];
	}
	layout->plot_width = (room - used) / layout->columns;
	for (unsigned c = 0; c < layout->columns; c++)
		layout->x[c] =
			c == 0 ? PSD_EM_PAD * em
			       : layout->x[c - 1] + layout->left[c - 1] + layout->plot_width + layout->right[c - 1];
}

/* Margins of rows, and heights of plots as the width wants them. Returns the height of all rows. */
static double measure_rows(struct psd_figure_layout *layout)
{
	const double em = layout->em;
	double sum = 0;

	for (unsigned r = 0; r < layout->rows; r++) {
		bool has_title = false, is_labelled = false, has_tics = false;
		double lines = 0, label = 0;

		for (unsigned c = 0; c < layout->columns; c++) {
			const struct psd_panel *panel = psd_figure_layout_panel_at(layout, c, r);

			has_title = has_title || (panel && panel->title);
			is_labelled = is_labelled || psd_figure_layout_has_x_label(layout, c, r);
			has_tics = has_tics || psd_figure_layout_has_x_texts(layout, c, r);
			lines = fmax(lines, panel ? panel->lines : 0);
			if (psd_figure_layout_has_y_label(layout, c, r))
				label = fmax(label, psd_words_width(panel->y.label) + 0.5);
		}
		layout->top[r] = (has_title ? PSD_EM_LINE + 0.2 : 0.5) * em;
		layout->bottom[r] = ((has_tics ? PSD_EM_TIC_ROW : 0.4) + (is_labelled ? PSD_EM_LINE : 0) + 0.4) * em;
		layout->plot_height[r] = lines > 0 ? lines * PSD_EM_LINE * em
						   : fmin((layout->rows * layout->columns == 1 ? 0.62
							   : layout->columns == 1	       ? 0.5
											       : 0.7) *
								  layout->plot_width,
							  0.55 * layout->width);
		layout->plot_height[r] = fmax(layout->plot_height[r], label * em);
		sum += layout->top[r] + layout->plot_height[r] + layout->bottom[r];
	}
	return sum;
}

/* The longest room for notes behind the data of a panel, ems. */
static double room_behind(const struct psd_figure_layout *layout)
{
	double room = 0;

	for (unsigned p = 0; p < layout->figure->n_panels; p++)
		room = fmax(room, layout->figure->panels[p].end_room);
	return room;
}

enum psd_status psd_figure_layout_make(struct psd_figure_layout *layout, struct psd_figure *figure,
				       const struct psd_canvas *canvas, struct psd_error *err)
{
	const double em = psd_canvas_font_pt(canvas), width = canvas->width_pt;

	*layout = (struct psd_figure_layout){.figure = figure, .em = em, .width = width};
	layout->title = break_lines(figure, figure->title, (width / em - 2 * PSD_EM_PAD) / PSD_EM_TITLE, 3);
	layout->note = break_lines(figure, figure->note, width / em - 2 * PSD_EM_PAD, 3);
	place_legend(layout);
	const double room = width - 2 * PSD_EM_PAD * em - (layout->is_legend_right ? layout->legend_column : 0);

	choose_grid(layout, room);
	place_columns(layout, room);
	const double head = (PSD_EM_PAD + layout->title.n * PSD_EM_LINE * PSD_EM_TITLE) * em,
		     legend = layout->is_legend_right ? 0 : layout->legend_rows * PSD_EM_LINE * em,
		     foot = legend + (PSD_EM_PAD + layout->note.n * PSD_EM_LINE) * em;
	double rows = measure_rows(layout);

	layout->height = canvas->height_pt > 0 ? canvas->height_pt : head + rows + foot;
	for (unsigned r = 0; r < layout->rows && canvas->height_pt > 0; r++)
		layout->plot_height[r] += (layout->height - head - rows - foot) / layout->rows;
	for (unsigned r = 0; r < layout->rows; r++) {
		layout->y[r] = r == 0 ? head
				      : layout->y[r - 1] + layout->top[r - 1] + layout->plot_height[r - 1] +
						layout->bottom[r - 1];
		if (layout->plot_height[r] < em || layout->plot_width < (4 + room_behind(layout)) * em)
			return psd_error_set(
				err, PSD_EINVAL, PSD_NOWHERE,
				"the picture is too small for its texts: say a larger --size, or draw fewer systems");
	}
	layout->legend_left =
		layout->is_legend_right ? width - PSD_EM_PAD * em - layout->legend_column + 1.4 * em : PSD_EM_PAD * em;
	layout->legend_top = layout->is_legend_right ? layout->y[0] + layout->top[0] : layout->height - foot;
	return PSD_OK;
}
