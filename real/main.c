/* psd-run: trains on a cluster of worker processes from a scenario file. Chooses the command and the exit status. */
#define _GNU_SOURCE 1

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/output.h"
#include "engine/base/stack.h"
#include "engine/base/view.h"
#include "engine/result/columns.h"
#include "engine/scenario/scenario.h"
#include "real/base/console.h"
#include "real/data/pack.h"
#include "real/data/start_file.h"
#include "real/run.h"
#include "real/run_options.h"

#ifndef PSD_VERSION
#define PSD_VERSION "unknown"
#endif

/* EXIT_TRY_AGAIN is EX_TEMPFAIL of sysexits.h. */
enum { EXIT_DONE = 0, EXIT_RUN_FAILED = 1, EXIT_BAD_INPUT = 2, EXIT_TRY_AGAIN = 75, EXIT_SIGNAL = 128 };

enum { MOST_PROGRESS_LINES = 20, LEAST_THREAD_BYTES = 1 << 20 };

/* ---- the end ---- */

static int exit_of(enum psd_status status)
{
	switch (status) {
	case PSD_OK: return EXIT_DONE;
	case PSD_EINVAL:
	case PSD_EFILE: return EXIT_BAD_INPUT;
	case PSD_ELOST:
	case PSD_EABSENT: return EXIT_TRY_AGAIN;
	case PSD_ENOMEM:
	case PSD_ERUN: break;
	}
	return EXIT_RUN_FAILED;
}

static int complain(enum psd_status status, const struct psd_error *err, bool has_place)
{
	if (psd_console_stop_signal) {
		psd_console_say("psd-run: stopped by signal %d (%s)", (int)psd_console_stop_signal,
				strsignal(psd_console_stop_signal));
		return EXIT_SIGNAL + psd_console_stop_signal;
	}
	psd_console_complain(err->text, has_place);
	return exit_of(status);
}

/* ---- commands ---- */

static enum psd_status print_scenario(const struct psd_scenario *scenario, struct psd_error *err)
{
	struct psd_text text = {.bytes = NULL};

	psd_scenario_add_text(&text, scenario);
	return psd_console_print(&text, err);
}

/* --dilation becomes the last of the settings. */
static enum psd_status load_scenario(const struct psd_run_options *options, struct psd_scenario *scenario,
				     struct psd_error *err)
{
	const struct psd_arguments *arguments = &options->arguments;
	const char **settings = calloc(arguments->n_settings + 2u, sizeof(*settings));
	struct psd_text dilation = {.bytes = NULL};
	enum psd_status status;

	for (unsigned i = 0; settings && i < arguments->n_settings; i++)
		settings[i] = arguments->settings[i];
	if (options->dilation)
		psd_text_add(&dilation, "--dilation emulation.dilation =%s", options->dilation);
	if (settings && !dilation.is_out_of_memory) {
		settings[arguments->n_settings] = dilation.bytes;
		status = psd_scenario_load(scenario, arguments->operands[0], settings, err);
	} else {
		status = psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory");
	}
	psd_text_release(&dilation);
	free(settings);
	return status;
}

static int use_scenario(const struct psd_run_options *options)
{
	struct psd_scenario scenario;
	struct psd_error err;
	unsigned n_joined = 0;

	if (options->arguments.command == PSD_RUN_TRAIN)
		psd_run_name_host(options);
	enum psd_status status = load_scenario(options, &scenario, &err);
	const bool is_loaded = !status;

	if (status == PSD_EFILE && access(options->arguments.operands[0], F_OK) &&
	    psd_command_table_check_word(&psd_run_options_table, options->arguments.operands[0], &err))
		return complain(err.status, &err, false);
	if (is_loaded)
		status = psd_scenario_load_solver(&scenario, &err);
	if (!status)
		status = options->arguments.command == PSD_RUN_SHOW ? print_scenario(&scenario, &err)
			 : options->arguments.command == PSD_RUN_CALIBRATE
				 ? psd_run_calibration(options, &scenario, &err)
				 : psd_run_scenario(options, &scenario, &n_joined, &err);
	if (is_loaded)
		psd_scenario_release(&scenario);
	if (!status)
		return EXIT_DONE;
	const int exit_status = complain(status, &err, !is_loaded || status == PSD_EINVAL || status == PSD_EFILE);
	psd_run_excuse(options, n_joined, err.text);
	return exit_status;
}

static bool print_packed(void *context, uint64_t n_done, uint64_t n_images)
{
	const struct psd_run_options *options = context;
	const uint64_t stride = (n_images - 1) / MOST_PROGRESS_LINES + 1;

	if (!options->is_quiet && (n_done % stride == 0 || n_done == n_images))
		psd_console_say("%s: %llu of %llu images", options->output_path, (unsigned long long)n_done,
				(unsigned long long)n_images);
	return !psd_console_stop_signal;
}

static int pack(const struct psd_run_options *options)
{
	const struct psd_pack_options pack_options = {
		.side = (uint32_t)options->side,
		.progress = print_packed,
		.context = (void *)(uintptr_t)options,
	};
	struct psd_error err;
	const enum psd_status status =
		psd_pack_directory(options->arguments.operands[0], options->output_path, &pack_options, &err);

	return status ? complain(status, &err, status == PSD_EINVAL || status == PSD_EFILE) : EXIT_DONE;
}

static int write_weights(const struct psd_run_options *options)
{
	struct psd_scenario scenario; /* has settings alone */
	struct psd_start_counts counts;
	struct psd_error err;
	enum psd_status status = psd_scenario_parse_choices(&scenario, options->arguments.settings, &err);

	if (status)
		return complain(status, &err, true);
	status = psd_start_file_write(options->arguments.operands[0], &scenario.choices, options->output_path, &counts,
				      &err);
	psd_scenario_release(&scenario);
	if (status)
		return complain(status, &err, status == PSD_EINVAL || status == PSD_EFILE);
	if (!options->is_quiet)
		psd_console_say("%s: %u of the model's %u parameters and statistics", options->output_path,
				counts.n_found, counts.n_all);
	return EXIT_DONE;
}

static int print_about(const struct psd_run_options *options)
{
	const struct psd_reference how = {.is_markdown = options->is_markdown,
					  .topic = options->arguments.topic,
					  .width = psd_output_terminal_width()};
	struct psd_text text = {.bytes = NULL};
	struct psd_error err;
	enum psd_status status = PSD_OK;

	switch ((enum psd_run_about)options->about) {
	case PSD_RUN_ABOUT_HELP:
		psd_command_table_add_help(&text, &psd_run_options_table, options->arguments.command);
		break;
	case PSD_RUN_ABOUT_OPTIONS: psd_command_table_add_reference(&text, &psd_run_options_table); break;
	case PSD_RUN_ABOUT_SHARE:
		status = psd_scenario_add_share(&text, &psd_run_options_table, options->arguments.topic, PSD_VERSION,
						&err);
		break;
	case PSD_RUN_ABOUT_KEYS: status = psd_scenario_add_reference(&text, &how, &err); break;
	case PSD_RUN_ABOUT_COLUMNS: status = psd_columns_add_reference(&text, &how, &err); break;
	case PSD_RUN_ABOUT_VERSION: psd_text_add(&text, "psd-run " PSD_VERSION "\n"); break;
	case PSD_RUN_ABOUT_NOTHING: break;
	}
	if (!status)
		status = psd_console_print(&text, &err);
	else
		psd_text_release(&text);
	return status ? complain(status, &err, false) : EXIT_DONE;
}

static int use(int argc, char *argv[])
{
	struct psd_run_options options;
	struct psd_error err;

	if (psd_run_options_parse(&options, argc, argv, &err))
		return complain(PSD_EINVAL, &err, false);
	options.version = PSD_VERSION;
	if (!options.is_csv && !options.is_markdown && options.about != PSD_RUN_ABOUT_OPTIONS &&
	    options.about != PSD_RUN_ABOUT_SHARE && (options.about || options.arguments.command != PSD_RUN_SHOW))
		psd_view_find(options.is_wide);
	const int exit_status = options.about				       ? print_about(&options)
				: options.arguments.command == PSD_RUN_PACK    ? pack(&options)
				: options.arguments.command == PSD_RUN_WEIGHTS ? write_weights(&options)
									       : use_scenario(&options);
	psd_run_options_release(&options);
	return exit_status;
}

/* Threads have stacks as large as the process's limit was at the start: 2 MiB without a limit. */
static void enlarge_stacks_of_threads(void)
{
	pthread_attr_t attributes;
	size_t bytes = PSD_STACK_LEAST_BYTES;

	if (pthread_getattr_default_np(&attributes))
		return;
	(void)pthread_attr_getstacksize(&attributes, &bytes);
	if (bytes < LEAST_THREAD_BYTES && !pthread_attr_setstacksize(&attributes, PSD_STACK_LEAST_BYTES))
		(void)pthread_setattr_default_np(&attributes);
	pthread_attr_destroy(&attributes);
}

PSD_STACK_RAISE_FIRST("psd-run");

int main(int argc, char *argv[])
{
	const bool is_small = psd_stack_is_small();
	struct psd_error err;
	int exit_status;

	enlarge_stacks_of_threads();
	psd_console_open();
	if (psd_stack_run(is_small, use, argc, argv, &exit_status, &err))
		return complain(err.status, &err, false);
	return exit_status;
}
