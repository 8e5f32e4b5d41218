#include "plots/figure.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plots/words.h"

const char *const psd_palette[PSD_PALETTE] = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
					      "#E69F00", "#56B4E9", "#000000", "#8C510A"};

enum { MOST_TICS = 64 };

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

	va_start(arguments, format);
	const int length = vsnprintf(NULL, 0, format, arguments);
	va_end(arguments);
	char *text = take(figure, (size_t)length + 1, NULL);
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

	const double first = ceil(axis->low / step - 1e-9);
	const int decimals = step < 1 ? (int)-floor(log10(step) + 1e-9) : 0;

	/* counted, because far from 0 a step may change nothing */
	for (unsigned i = 0; i < MOST_TICS && (first + i) * step <= axis->high + 1e-9 * step; i++) {
		const double at = fabs((first + i) * step) < step / 2 ? 0 : (first + i) * step;
		const bool is_usual = fabs(at) < 1e7 && decimals < 7;

		psd_figure_add_tic(figure, axis, at,
				   is_usual ? psd_figure_text(figure, "%.*f", decimals, at)
					    : psd_figure_text(figure, "%g", at));
	}
}
