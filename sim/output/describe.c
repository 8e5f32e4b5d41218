/* The layer table of a graph. Column widths follow its names and counts, so that cells stay aligned. */
#include "sim/output/describe.h"

#include <limits.h>
#include <stdint.h>
#include <string.h>

#include "engine/base/units.h"
#include "engine/base/view.h"
#include "sim/output/grid.h"

#define SHAPE_MAX 40

static int wider(int width, const char *text)
{
	const int n_places = psd_text_places(text);

	return n_places > width ? n_places : width;
}

static char *write_shape(struct psd_shape shape, char text[SHAPE_MAX])
{
	if (shape.height == 1 && shape.width == 1)
		snprintf(text, SHAPE_MAX, "%u", shape.channels);
	else
		snprintf(text, SHAPE_MAX, "%u x %u x %u", shape.channels, shape.height, shape.width);
	return text;
}

/* Writes zero as an empty cell, so that other figures stand out. */
static char *write_mflops(uint64_t flops, char text[PSD_UNITS_TEXT_MAX])
{
	text[0] = '\0';
	if (flops)
		snprintf(text, PSD_UNITS_TEXT_MAX, "%.3f", (double)flops / 1e6);
	return text;
}

static char *write_cell(uint64_t count, char text[PSD_UNITS_TEXT_MAX])
{
	if (count)
		return psd_units_write_count(count, text);
	text[0] = '\0';
	return text;
}

struct widths {
	int name;
	int kind;
	int shape;
	int parameters;
	bool has_kind, has_flops, has_activations; /* columns that a narrow terminal leaves out */
};

enum { FLOPS_WIDTH = 13, ACTIVATIONS_WIDTH = 11, GAP = 2, LEAST_NAME = 8 };

static int line_width(const struct widths *widths)
{
	return widths->name + (widths->has_kind ? GAP + widths->kind : 0) + GAP + widths->shape + GAP +
	       widths->parameters + (widths->has_flops ? GAP + FLOPS_WIDTH : 0) +
	       (widths->has_activations ? GAP + ACTIVATIONS_WIDTH : 0);
}

static void fit(struct widths *widths)
{
	const struct psd_view view = psd_view_get();

	if (!view.is_terminal || view.is_wide)
		return;
	widths->has_activations = line_width(widths) <= view.width;
	widths->has_kind = line_width(widths) <= view.width;
	widths->has_flops = line_width(widths) <= view.width;
	const int surplus = line_width(widths) - view.width;
	if (surplus > 0)
		widths->name = widths->name - surplus > LEAST_NAME ? widths->name - surplus : LEAST_NAME;
}

static struct widths measure(const struct psd_graph *graph)
{
	struct widths widths = {.name = 5,
				.kind = 4,
				.shape = 6,
				.parameters = 10,
				.has_kind = true,
				.has_flops = true,
				.has_activations = true};
	char count[PSD_UNITS_TEXT_MAX], shape[SHAPE_MAX];

	for (unsigned i = 0; i < graph->n_layers; i++) {
		widths.name = wider(widths.name, graph->layers[i].name);
		widths.kind = wider(widths.kind, graph->layers[i].kind->name);
		widths.shape = wider(widths.shape, write_shape(graph->layers[i].shape, shape));
	}
	widths.parameters = wider(widths.parameters, psd_units_write_count(graph->parameters, count));
	fit(&widths);
	return widths;
}

/* A name that is too long ends with two dots. */
static void write_name(FILE *out, const char *name, int width)
{
	const int surplus = psd_text_places(name) - width;
	int n_left = surplus > 0 ? width - 2 : INT_MAX;

	for (; *name && n_left > 0; n_left--) {
		const unsigned n_bytes = psd_text_plain_bytes(name);

		fprintf(out, "%.*s", n_bytes ? (int)n_bytes : 1, n_bytes ? name : "?");
		name += n_bytes ? n_bytes : 1;
	}
	fprintf(out, "%s%*s", surplus > 0 ? ".." : "", surplus < 0 ? -surplus : 0, "");
}

static void write_line(FILE *out, const struct widths *widths, const char *name, const char *const cells[5])
{
	write_name(out, name, widths->name);
	if (widths->has_kind)
		fprintf(out, "  %-*s", widths->kind, cells[0]);
	fprintf(out, "  %*s  %*s", widths->shape, cells[1], widths->parameters, cells[2]);
	if (widths->has_flops)
		fprintf(out, "  %*s", FLOPS_WIDTH, cells[3]);
	fprintf(out, "%s%s\n", widths->has_activations ? "  " : "", widths->has_activations ? cells[4] : "");
}

static void write_layer(FILE *out, const struct psd_layer *layer, const struct widths *widths)
{
	char shape[SHAPE_MAX], parameters[PSD_UNITS_TEXT_MAX], bytes[PSD_UNITS_TEXT_MAX], mflops[PSD_UNITS_TEXT_MAX];

	write_line(
		out, widths, layer->name,
		(const char *const[]){layer->kind->name, write_shape(layer->shape, shape),
				      write_cell(layer->n_shared ? 0 : layer->parameters, parameters),
				      write_mflops(layer->forward_flops, mflops),
				      layer->kind->is_in_place
					      ? "in place"
					      : psd_units_write_bytes(layer->write_bytes + layer->kept_bytes, bytes)});
}

static void write_rule(FILE *out, const struct widths *widths)
{
	for (int i = line_width(widths); i > 0; i--)
		fputc('-', out);
	fputc('\n', out);
}

static void write_left_out(FILE *out, const struct widths *widths)
{
	if (widths->has_kind && widths->has_flops && widths->has_activations)
		return;
	fprintf(out, "note: left out, as the terminal is narrow (all: --wide): %s%s%s%s%s\n",
		widths->has_kind ? "" : "kind", !widths->has_kind && !widths->has_flops ? ", " : "",
		widths->has_flops ? "" : "fwd MFLOPs",
		widths->has_activations			? ""
		: widths->has_kind && widths->has_flops ? ""
							: ", ",
		widths->has_activations ? "" : "activations");
}

static void write_totals(FILE *out, const struct psd_graph *graph)
{
	char forward[PSD_UNITS_TEXT_MAX], backward[PSD_UNITS_TEXT_MAX], activations[PSD_UNITS_TEXT_MAX],
		parameters[PSD_UNITS_TEXT_MAX], bytes[PSD_UNITS_TEXT_MAX];

	fprintf(out, "%u layers, %u tensor%s, %s parameters (%s as fp32)\n", graph->n_layers, graph->n_tensors,
		psd_text_plural(graph->n_tensors), psd_units_write_count(graph->parameters, parameters),
		psd_units_write_bytes(4 * graph->parameters, bytes));
	fprintf(out, "per sample: forward %s, backward %s, activations %s\n",
		psd_units_write_flops((double)graph->forward_flops, forward),
		psd_units_write_flops((double)graph->backward_flops, backward),
		psd_units_write_bytes(graph->activation_bytes, activations));
}

/* For a comparison with PyTorch's counter, where the two differ by more than 3 %. */
static void write_products(FILE *out, const struct psd_graph *graph)
{
	const double products = (double)psd_graph_product_flops(graph);
	char text[PSD_UNITS_TEXT_MAX];

	if ((double)graph->forward_flops > 1.03 * products)
		fprintf(out, "products and convolutions alone: forward %s\n", psd_units_write_flops(products, text));
}

static void write_predicted_only(FILE *out, const struct psd_graph *graph)
{
	const struct psd_graph_share share = psd_graph_predicted_only(graph);

	if (!share.first)
		return;
	fprintf(out, "for psd-sim alone: %u layers and inputs, first ", share.n_layers);
	psd_grid_write_text(out, share.first);
	fprintf(out, ": %.0f %% of the FLOPs, %.0f %% of the parameters\n", 100 * share.flops_ratio,
		100 * share.parameters_ratio);
}

static void write_lines(FILE *out, const char *lines, const char *before)
{
	for (const char *line = lines; line && *line; line = strchr(line, '\n') + 1)
		fprintf(out, "%s%.*s\n", before, (int)strcspn(line, "\n"), line);
}

void psd_describe(FILE *out, const struct psd_graph *graph)
{
	const struct widths widths = measure(graph);

	psd_grid_write_text(out, graph->name);
	fputs("\n\n", out);
	write_line(out, &widths, "layer",
		   (const char *const[]){"kind", "output", "parameters", "fwd MFLOPs", "activations"});
	write_rule(out, &widths);
	for (unsigned i = 0; i < graph->n_layers; i++)
		write_layer(out, &graph->layers[i], &widths);
	write_rule(out, &widths);
	write_left_out(out, &widths);
	write_totals(out, graph);
	write_products(out, graph);
	write_predicted_only(out, graph);
	write_lines(out, graph->remarks, "");
	write_lines(out, graph->doubts, "open: ");
}
