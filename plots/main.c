/* psd-plot: draws CSV and traces of psd-sim and psd-run with gnuplot, and compares them. Prints, and chooses the exit
 * status; reads only the files that it is given, and keeps older output if the new one cannot be made. */
#define _GNU_SOURCE 1

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/output.h"
#include "engine/base/share.h"
#include "engine/base/stack.h"
#include "plots/plot.h"

#ifndef PSD_VERSION
#define PSD_VERSION "unknown"
#endif

enum { EXIT_DONE = 0, EXIT_RUN_FAILED = 1, EXIT_BAD_INPUT = 2 };

typedef enum psd_status (*fill_fn)(struct psd_figure *figure, const struct psd_plot_options *options,
				   struct psd_error *err);

static const fill_fn fills[] = {
	[PSD_PLOT_SPEEDUP] = psd_plot_lines,	 [PSD_PLOT_EFFICIENCY] = psd_plot_lines,
	[PSD_PLOT_SECONDS] = psd_plot_lines,	 [PSD_PLOT_THROUGHPUT] = psd_plot_lines,
	[PSD_PLOT_BARS] = psd_plot_bars,	 [PSD_PLOT_CURVE] = psd_plot_curve,
	[PSD_PLOT_TIMELINE] = psd_plot_timeline,
};

/* ---- streams ---- */

/* Prints a text and releases it. PSD_ERUN: it cannot be written. */
static enum psd_status print(struct psd_text *text, struct psd_error *err)
{
	const bool is_lost = text->is_out_of_memory;

	if (text->length)
		fwrite(text->bytes, 1, text->length, stdout);
	psd_text_release(text);
	const bool is_written = !fflush(stdout) && !ferror(stdout);
	if (is_lost)
		return psd_out_of_memory(err);
	return is_written ? PSD_OK : psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "cannot write to standard output");
}

/* ---- commands ---- */

static enum psd_status tell(const struct psd_plot_options *options, struct psd_error *err)
{
	const struct psd_share share = {options->arguments.topic, PSD_VERSION, NULL};
	struct psd_text text = {.bytes = NULL};
	enum psd_status status = PSD_OK;

	switch ((enum psd_plot_about)options->about) {
	case PSD_PLOT_HELP:
		psd_command_table_add_help(&text, &psd_plot_options_table, options->arguments.command);
		break;
	case PSD_PLOT_OPTIONS: psd_command_table_add_reference(&text, &psd_plot_options_table); break;
	case PSD_PLOT_SHARE: status = psd_command_table_add_share(&text, &psd_plot_options_table, &share, err); break;
	case PSD_PLOT_VERSION: psd_text_add(&text, "psd-plot " PSD_VERSION "\n"); break;
	case PSD_PLOT_NO_WORDS: break;
	}
	if (status == PSD_OK)
		return print(&text, err);
	psd_text_release(&text);
	return status;
}

static enum psd_status draw(const struct psd_plot_options *options, struct psd_error *err)
{
	struct psd_text picture = {.bytes = NULL};
	struct psd_canvas canvas;
	struct psd_figure *figure;
	FILE *out;

	PSD_TRY(psd_canvas_read(&canvas, options->output_path, options->size, err));
	figure = malloc(sizeof(*figure));
	if (!figure)
		return psd_out_of_memory(err);
	psd_figure_init(figure);
	enum psd_status status = fills[options->arguments.command](figure, options, err);
	if (!status)
		status = psd_output_open(&out, options->output_path, err);
	if (!status)
		status = psd_figure_draw(&picture, figure, &canvas, options->title, err);
	if (!status && picture.is_out_of_memory)
		status = psd_out_of_memory(err);
	if (!status)
		psd_output_write(out, picture.bytes, picture.length);
	if (!status && figure->hint)
		fprintf(stderr, "psd-plot: %s\n", figure->hint);
	psd_figure_release(figure);
	free(figure);
	psd_text_release(&picture);
	return status ? status : psd_outputs_commit(err);
}

static enum psd_status compare(const struct psd_plot_options *options, struct psd_error *err)
{
	struct psd_text table = {.bytes = NULL};
	enum psd_status status = psd_plot_compare(&table, options, err);

	if (status)
		psd_text_release(&table);
	else
		status = print(&table, err);
	return status ? status : psd_outputs_commit(err);
}

static enum psd_status run(const struct psd_plot_options *options, struct psd_error *err)
{
	if (options->about)
		return tell(options, err);
	return options->arguments.command == PSD_PLOT_COMPARE ? compare(options, err) : draw(options, err);
}

PSD_STACK_RAISE_FIRST("psd-plot");

int main(int argc, char *argv[])
{
	struct psd_plot_options options;
	struct psd_error err;

	if (!psd_output_fill_streams())
		_exit(EXIT_RUN_FAILED);
	psd_outputs_heed_signals();
	enum psd_status status = psd_plot_options_read(&options, argc, argv, &err);
	if (!status)
		status = run(&options, &err);
	psd_outputs_discard();
	psd_plot_options_release(&options);
	if (!status)
		return EXIT_DONE;
	fprintf(stderr, "psd-plot: %s\n", err.text);
	return status == PSD_EINVAL || status == PSD_EFILE ? EXIT_BAD_INPUT : EXIT_RUN_FAILED;
}
