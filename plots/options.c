#include "plots/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/spelling.h"
#include "engine/base/units.h"
#include "plots/measure.h"

static const struct psd_command commands[] = {
	[PSD_PLOT_NOTHING] = {NULL, "COMMAND FILE", true,
			      "Draws results and traces of psd-sim and psd-run with gnuplot; runs neither."},
	[PSD_PLOT_SPEEDUP] = {"speedup", "FILE.csv", true,
			      "Draws speedup over workers, from CSV of psd-sim and psd-run or from traces. Lines are "
			      "predicted, ribbons hold 8 of 10 published values, hollow markers are published, crosses "
			      "published and fitted, squares executed. A line that others cover is wider. Traces "
			      "(psd-sim, psd-run, PyTorch's profiler; .gz too) give one point each."},
	[PSD_PLOT_EFFICIENCY] = {"efficiency", "FILE.csv", true,
				 "Draws speedup over workers in per cent, over any column."},
	[PSD_PLOT_SECONDS] = {"seconds", "FILE.csv", true,
			      "Draws time of an iteration over any column. A ring marks the least of a line."},
	[PSD_PLOT_THROUGHPUT] = {"throughput", "FILE.csv", true,
				 "Draws samples per second over any column. A ring marks the most of a line."},
	[PSD_PLOT_BARS] = {"bars", "FILE.csv", true,
			   "Draws a bar for each result, with the published value below it and the error behind it."},
	[PSD_PLOT_CURVE] =
		{"curve", "FILE.csv", true,
		 "Draws accuracy over epochs from logs of psd-run --log: on test samples, or on training "
		 "samples if no system was tested twice. From CSV with bucket sizes: seconds of an iteration "
		 "over the size; systems without buckets are horizontal lines."},
	[PSD_PLOT_TIMELINE] = {"timeline", "TRACE.json", false,
			       "Draws operations of each worker over time, from --trace of psd-sim or psd-run."},
	[PSD_PLOT_COMPARE] =
		{"compare", "PREDICTED.csv MEASURED.csv", true,
		 "Compares predictions with all measured points; several rows of a point are repeats. Prints "
		 "a table and a summary; writes the page, OUT.csv and a plot, OUT.svg."},
};

#define OF(command)  (1u << PSD_PLOT_##command)
#define OF_LINES     (OF(SPEEDUP) | OF(EFFICIENCY) | OF(SECONDS) | OF(THROUGHPUT))
#define OF_RESULTS   (OF_LINES | OF(BARS) | OF(CURVE))
#define OF_ALL	     (OF_RESULTS | OF(TIMELINE) | OF(COMPARE))
#define AT(member)   .offset = offsetof(struct psd_plot_options, member)
#define TEXT(member) .kind = PSD_OPTION_TEXT, AT(member)
#define ABOUT(value) .kind = PSD_OPTION_CHOICE, AT(about), .choice = PSD_PLOT_##value, .is_last = true

#define OPTION(text, value, help_text) .name = (text), .value_name = (value), .help = (help_text)

static const struct psd_option option_list[] = {
	{OPTION("-o", "OUT",
		"file to write: .svg, .png, .pdf or .eps. compare with .html writes the page, OUT.csv and OUT.svg"),
	 TEXT(output_path), .commands = OF_ALL},
	{OPTION("--output", "OUT", NULL), TEXT(output_path), .commands = OF_ALL},
	{OPTION("--size", "SIZE",
		"width, or width and height, such as 85mm, 85mm,60mm or 1440px. Text is 7 points on 85 mm, and grows "
		"with the width. Default: 960px; 162mm for .pdf and .eps"),
	 TEXT(size), .commands = OF_ALL},
	{OPTION("--title", "TEXT", "title instead of the scenario's; - for none"), TEXT(title), .commands = OF_ALL},
	{OPTION("--systems", "LIST", "only these systems, such as \"PS,Poseidon\""), TEXT(systems),
	 .commands = OF_LINES | OF(BARS) | OF(CURVE)},
	{OPTION("--where", "COLUMN=VALUE", "only rows with this value, such as workers=8 or bandwidth_bps=10Gbps"),
	 .kind = PSD_OPTION_SETTING, .commands = OF_RESULTS},
	{OPTION("--over", "COLUMN",
		"column of the x axis, such as bandwidth_bps or a swept key. Default: workers if they vary, then "
		"bandwidth, bucket size, a swept key"),
	 TEXT(over), .commands = OF_LINES},
	{OPTION("--panels", "COLUMN",
		"a panel for each value of a column, such as system or bandwidth_bps. Default: one panel up to 8 "
		"lines"),
	 TEXT(panels), .commands = OF_LINES},
	{OPTION("--relative", "SYSTEM", "divide by the values of this system, or by each line's best: best"),
	 TEXT(relative), .commands = OF_LINES},
	{OPTION("--measure", "NAME", "speedup, efficiency, seconds or throughput. Default: throughput"), TEXT(measure),
	 .commands = OF(BARS)},
	{OPTION("--linear", NULL, "linear axes instead of powers of two"), .kind = PSD_OPTION_FLAG, AT(is_linear),
	 .commands = OF_LINES},
	{OPTION("--iteration", "N", "only this iteration, counted from 0"), TEXT(iteration), .commands = OF(TIMELINE)},
	{OPTION("--workers", "LIST", "timelines of only these, such as 0-3 or 0,2,7. Default: the first 4"),
	 TEXT(workers), .commands = OF(TIMELINE) | OF(COMPARE)},
	{OPTION("--traces", "P M",
		"predicted and measured trace of one point; adds seconds of each kind of operation, and both "
		"timelines"),
	 TEXT(predicted_trace), .commands = OF(COMPARE)},
	{OPTION("--measured-trace", "M", NULL), TEXT(measured_trace), .commands = OF(COMPARE)},
	{OPTION("--calibrated", "FILE",
		"CSV rows of the points to which the prediction was fitted; they are marked, and do not count as "
		"errors"),
	 TEXT(calibrated), .commands = OF(COMPARE)},
	{OPTION("--bar", "RATIO", "largest median of absolute errors, such as 0.05 or 5%. Default: 0.05"), TEXT(bar),
	 .commands = OF(COMPARE)},
	{OPTION("--worst", "RATIO",
		"largest allowed error of a single point. Default: 0.15. A point whose runs differ by more than this "
		"is not judged"),
	 TEXT(worst), .commands = OF(COMPARE)},
	{OPTION("--options", NULL, NULL), ABOUT(OPTIONS), .commands = OF(NOTHING)},
	{OPTION("--share", "[KIND]", NULL), ABOUT(SHARE), .commands = OF(NOTHING)},
	{OPTION("--version", NULL, "print the version"), ABOUT(VERSION), .commands = OF(NOTHING)},
	{OPTION("--help", NULL, "print this text"), ABOUT(HELP)},
};

static const struct psd_hint hints[] = {
	{"--nodes", "--where nodes=8"},
	{"--system", "--systems LIST"},
	{NULL, NULL},
};

const struct psd_command_table psd_plot_options_table = {
	.program = "psd-plot",
	.commands = commands,
	.n_commands = sizeof(commands) / sizeof(commands[0]),
	.options = option_list,
	.n_options = sizeof(option_list) / sizeof(option_list[0]),
	.hints = hints,
};

/* Copies the arguments; the second value of --traces becomes that of an option of its own. */
static enum psd_status split_traces(struct psd_plot_options *options, int *argc, char *argv[], struct psd_error *err)
{
	static char second[] = "--measured-trace";
	int n = 0;

	options->argv = calloc(2 * (size_t)*argc + 2, sizeof(*options->argv));
	if (!options->argv)
		return psd_out_of_memory(err);
	for (int at = 0; at < *argc; at++) {
		options->argv[n++] = argv[at];
		if (strcmp(argv[at], "--traces") != 0)
			continue;
		if (at + 2 >= *argc || argv[at + 1][0] == '-' || argv[at + 2][0] == '-')
			return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE,
					     "'--traces' needs 2 files, the predicted and the measured trace, see "
					     "psd-plot compare --help");
		options->argv[n++] = argv[at + 1];
		if (!*argv[at + 2])
			return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE,
					     "'--traces' needs a value that is not empty, see psd-plot compare --help");
		options->argv[n++] = second;
		options->argv[n++] = argv[at + 2];
		at += 2;
	}
	*argc = n;
	return PSD_OK;
}

/* The first word must be a command: options belong to commands. */
static enum psd_status check_command(int argc, char *argv[], struct psd_error *err)
{
	enum { N_COMMANDS = sizeof(commands) / sizeof(commands[0]) };
	const char *names[N_COMMANDS], *nearest;
	struct psd_text list = {.bytes = NULL};

	for (unsigned c = 1; c < N_COMMANDS; c++)
		names[c - 1] = commands[c].name;
	names[N_COMMANDS - 1] = NULL;
	if (argc > 1 && argv[1][0] == '-')
		return PSD_OK;
	for (unsigned c = 0; names[c]; c++) {
		if (argc > 1 && !strcmp(argv[1], names[c])) {
			psd_text_release(&list);
			return PSD_OK;
		}
		psd_text_add(&list, "%s%s", c == 0 ? "" : names[c + 1] ? ", " : " or ", names[c]);
	}
	nearest = argc > 1 ? psd_spelling_nearest(argv[1], names) : NULL;
	psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "%s%.80s%s, must be %s, see psd-plot --help",
		      argc > 1 ? "unknown command '" : "no command is given", argc > 1 ? argv[1] : "",
		      argc > 1 ? "'" : "",
		      nearest	   ? nearest
		      : list.bytes ? list.bytes
				   : "one of its commands");
	psd_text_release(&list);
	return PSD_EINVAL;
}

static enum psd_status check_where(const struct psd_plot_options *options, struct psd_error *err)
{
	for (const char **setting = options->arguments.settings; *setting; setting++)
		if (!strchr(*setting, '=') || strchr(*setting, '=') == *setting)
			return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE,
					     "'--where' is '%.80s', must be COLUMN=VALUE such as workers=8", *setting);
	return PSD_OK;
}

static enum psd_status check(struct psd_plot_options *options, struct psd_error *err)
{
	const char *iteration = options->iteration;

	if (options->arguments.command == PSD_PLOT_NOTHING)
		return check_command(0, NULL, err);
	if (!options->output_path)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "no output file, say -o OUT%s",
				     options->arguments.command == PSD_PLOT_COMPARE ? ".html" : ".svg");
	if (iteration &&
	    (!psd_units_read_count(iteration, &options->iteration_number) || options->iteration_number >= 1000000000))
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE,
				     "'--iteration' is '%.80s', must be a number such as 0", iteration);
	if (options->workers && options->arguments.command == PSD_PLOT_COMPARE && !options->predicted_trace)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "'--workers' has no effect without '--traces'");
	const size_t length = strlen(options->output_path);

	if (options->predicted_trace && (length < 5 || strcmp(options->output_path + length - 5, ".html") != 0))
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "'--traces' needs a page, say -o OUT.html");
	return check_where(options, err);
}

enum psd_status psd_plot_options_read(struct psd_plot_options *options, int argc, char *argv[], struct psd_error *err)
{
	*options = (struct psd_plot_options){.about = PSD_PLOT_NO_WORDS};
	PSD_TRY(check_command(argc, argv, err));
	PSD_TRY(split_traces(options, &argc, argv, err));
	PSD_TRY(psd_arguments_read(&options->arguments, &psd_plot_options_table, options, argc, options->argv, err));
	if (!options->about)
		PSD_TRY(check(options, err));
	return PSD_OK;
}

void psd_plot_options_release(struct psd_plot_options *options)
{
	psd_arguments_release(&options->arguments);
	free(options->argv);
}
