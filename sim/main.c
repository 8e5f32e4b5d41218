/* psd-sim: predicts training on a cluster from scenario files. Prints, and chooses the exit status; all other work is
 * done elsewhere. */
#define _GNU_SOURCE 1

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/inputs.h"
#include "engine/base/output.h"
#include "engine/base/spelling.h"
#include "engine/base/stack.h"
#include "engine/result/columns.h"
#include "engine/scenario/scenario.h"
#include "engine/scenario/stack.h"
#include "sim/ask/ask.h"
#include "sim/executor/simulate.h"
#include "sim/import/import.h"
#include "sim/installed.h"
#include "sim/loaded_scenario.h"
#include "sim/merge.h"
#include "sim/options.h"
#include "sim/output/describe.h"
#include "sim/output/grid.h"
#include "sim/output/output.h"
#include "sim/output/terminal.h"
#include "sim/output/trace.h"
#include "sim/sweep/children.h"
#include "sim/sweep/sweep.h"

#ifndef PSD_VERSION
#define PSD_VERSION "unknown"
#endif

enum { EXIT_DONE = 0, EXIT_RUN_FAILED = 1, EXIT_BAD_INPUT = 2, EXIT_SIGNAL = 128 };

/* the command `plan` shows all points of a sweep with at most this number, and otherwise only the last point */
enum { MOST_PLANS_POINTS = 3 };

/* ---- messages and streams ---- */

static int exit_of(enum psd_status status)
{
	if (status == PSD_OK)
		return EXIT_DONE;
	return status == PSD_EINVAL || status == PSD_EFILE ? EXIT_BAD_INPUT : EXIT_RUN_FAILED;
}

/* Prints the error, and returns the exit status for it. The program's name comes first, unless the text begins with
 * file and line: editors find the place in messages like a compiler's. */
static int complain(enum psd_status status, const struct psd_error *err, bool has_place)
{
	const bool begins_with_it = has_place && *err->text != '\''; /* else with an option's value */

	fprintf(stderr, "%s%s\n", begins_with_it ? "" : "psd-sim: ", err->text);
	return exit_of(status);
}

static int end_by_signal(int number)
{
	fprintf(stderr, "psd-sim: stopped by signal %d (%s)\n", number, strsignal(number));
	return EXIT_SIGNAL + number;
}

/* errno of the first failed write to standard output; a FILE remembers only that it failed. */
static int output_errno;

static bool push_output(void)
{
	errno = 0;
	if (fflush(stdout) && !output_errno)
		output_errno = errno;
	return !ferror(stdout);
}

/* Writes buffered standard output. Returns `done`, or the exit status of a failed run if the output could not be
 * written. */
static int flush_output(int done)
{
	if (push_output() || done > EXIT_SIGNAL)
		return done;
	fprintf(stderr, "psd-sim: cannot write to standard output%s%s\n", output_errno ? ": " : "",
		output_errno ? strerror(output_errno) : "");
	return done == EXIT_DONE ? EXIT_RUN_FAILED : done;
}

/* ---- results ---- */

/* State that all scenarios of one command share. */
struct command {
	const struct psd_options *options;
	struct psd_json json;
	struct psd_trace_files trace; /* open files of the option --trace */
	int signal_number;
};

/* Chooses the system for commands that show only one: the system of the option --system; without it the last or the
 * first of the scenario. */
static enum psd_status choose_system(const struct psd_options *options, const struct psd_scenario *scenario,
				     bool is_last, const struct psd_system **system, struct psd_error *err)
{
	unsigned index = is_last ? scenario->n_systems - 1 : 0;
	enum psd_status status = PSD_OK;

	if (options->system_name)
		status = psd_scenario_find_system(scenario, options->system_name, &index, err);
	*system = &scenario->systems[index];
	return status;
}

/* Tries a user's platform file in a child first: SimGrid may abort() on a bad one. */
static enum psd_status check_platform(const struct psd_options *options, const struct psd_loaded_scenario *loaded,
				      struct psd_error *err)
{
	const struct psd_scenario *scenario = &loaded->scenario;
	struct psd_case made;

	if (options->is_estimate || scenario->network.topology != PSD_TOPOLOGY_PLATFORM)
		return PSD_OK;
	PSD_TRY(psd_case_make(&made, &loaded->costed, &scenario->systems[0], psd_scenario_point(scenario, 0), err));
	struct psd_platform platform = psd_simulate_platform(&made);
	enum psd_status status = psd_scenario_place_file(scenario, psd_platform_check(&platform, err), err);
	psd_case_release(&made);
	return status;
}

static enum psd_status write_report(struct command *command, const struct psd_report *report, struct psd_error *err)
{
	switch ((enum psd_form)command->options->form) {
	case PSD_FORM_TABLE: return psd_output_table(stdout, report, err);
	case PSD_FORM_CSV: return psd_output_csv(stdout, report, err);
	case PSD_FORM_JSON: return psd_output_json(&command->json, report, command->options->has_plan, err);
	}
	return PSD_OK;
}

static struct psd_ask_settings ask_settings(const struct psd_options *options, const struct psd_costed_model *costed)
{
	return (struct psd_ask_settings){
		.costed = costed,
		.system_name = options->system_name,
		.question = options->question,
		.is_estimate = options->is_estimate,
		.n_at_once = options->n_processes ? (unsigned)options->n_processes : psd_children_cores(),
		.has_progress = !options->is_quiet && isatty(STDERR_FILENO),
	};
}

/* Writes answers about a variant of a scenario. The title names the values of swept keys. */
static enum psd_status write_answers(struct command *command, const struct psd_ask_settings *settings,
				     struct psd_error *err)
{
	const struct psd_scenario *scenario = settings->costed->scenario;
	struct psd_text title = {.bytes = NULL};
	struct psd_answers answers;
	enum psd_status status = psd_ask_all(settings, &answers, &command->signal_number, err);

	if (status)
		return status;
	psd_text_add(&title, "%s", scenario->title);
	psd_result_add_swept(&title, scenario);
	if (title.is_out_of_memory)
		status = psd_out_of_memory(err);
	else if (command->options->form == PSD_FORM_JSON)
		status = psd_answers_write_json(&command->json, title.bytes, &answers, err);
	else
		status = psd_answers_write_text(stdout, settings->is_short && !scenario->n_swept ? NULL : title.bytes,
						&answers, err);
	psd_text_release(&title);
	psd_answers_release(&answers);
	return status;
}

/* Writes answers about each variant of a scenario. known: results of the same scenario, below which the answers are
 * short; NULL: there are none. */
static enum psd_status write_all_answers(struct command *command, const struct psd_loaded_scenario *loaded,
					 const struct psd_report *known, struct psd_error *err)
{
	for (unsigned v = 0; v < loaded->n_variants; v++) {
		struct psd_ask_settings settings =
			ask_settings(command->options, loaded->models ? loaded->models[v] : &loaded->costed);

		settings.known = known;
		settings.is_short = known != NULL;
		if (command->options->form != PSD_FORM_JSON && (known ? loaded->scenario.n_swept > 0 : v > 0))
			fputs(known ? "\n" : "\n\n", stdout);
		PSD_TRY(write_answers(command, &settings, err));
	}
	return PSD_OK;
}

/* A job is asked about all its clusters: a part of a sweep has no answers, nor has a cluster without a bandwidth. */
static bool has_answers(const struct psd_options *options, const struct psd_scenario *scenario)
{
	return scenario->has_job && options->form != PSD_FORM_CSV && !options->shard &&
	       psd_scenario_point(scenario, 0).bandwidth_bps > 0.0;
}

static enum psd_status run_sweep(struct command *command, const struct psd_loaded_scenario *loaded,
				 struct psd_error *err)
{
	const struct psd_options *options = command->options;
	const struct psd_sweep sweep = {
		.costed = &loaded->costed,
		.variants = loaded->models,
		.n_variants = loaded->n_variants,
		.published = loaded->has_published ? &loaded->published : NULL,
		.system_name = options->system_name,
		.shard = options->shard,
		.settings = options->settings.bytes,
		.shard_number = (unsigned)options->shard_number,
		.n_shards = (unsigned)options->n_shards,
		.is_estimate = options->is_estimate,
		.detail = options->is_every_node ? PSD_DETAIL_ALL : PSD_DETAIL_CLASSES,
		.n_at_once = options->n_processes ? (unsigned)options->n_processes : psd_children_cores(),
		.has_progress = !options->is_quiet && isatty(STDERR_FILENO),
	};
	struct psd_report report;
	enum psd_status status = check_platform(options, loaded, err);

	if (!status)
		status = psd_sweep_run(&sweep, &report, &command->signal_number, err);
	if (status)
		return status;
	psd_output_find_limits(&report);
	status = write_report(command, &report, err);
	if (!status && has_answers(options, &loaded->scenario))
		status = write_all_answers(command, loaded, &report, err);
	if (!status)
		status = psd_output_refused(&report, err);
	psd_report_release(&report);
	return status;
}

static void say_what_is_traced(const struct psd_options *options, const struct psd_scenario *scenario,
			       const struct psd_system *system, const struct psd_point *point)
{
	const bool is_only_one =
		psd_scenario_points(scenario) == 1 && (options->system_name || scenario->n_systems == 1);
	char text[64];

	if (options->is_quiet || is_only_one)
		return;
	fputs("psd-sim: the trace is of ", stderr);
	psd_grid_write_text(stderr, system->name);
	fprintf(stderr, " at %s\n", psd_result_point_name(point, text, sizeof(text)));
}

static struct psd_point traced_point(const struct psd_scenario *scenario)
{
	return psd_scenario_point(scenario, psd_scenario_points(scenario) - 1);
}

/* Called before the sweep, so that a wrong path is reported at once. */
static enum psd_status open_trace(struct command *command, const struct psd_scenario *scenario, struct psd_error *err)
{
	const unsigned workers = traced_point(scenario).workers;

	return psd_trace_files_open(&command->trace, command->options->trace_path, 0, workers, workers, err);
}

static enum psd_status run_with_trace(struct command *command, const struct psd_loaded_scenario *loaded,
				      struct psd_error *err)
{
	const struct psd_loaded_scenario *last = psd_loaded_scenario_last(loaded);
	const struct psd_scenario *scenario = &last->scenario;
	const struct psd_point point = traced_point(scenario);
	const struct psd_system *system;
	enum psd_status status = choose_system(command->options, scenario, true, &system, err);

	if (!status)
		status = run_sweep(command, loaded, err);
	if (!status) {
		say_what_is_traced(command->options, scenario, system, &point);
		status = psd_trace_run(&command->trace, &last->costed, system, point,
				       command->options->is_every_node ? PSD_DETAIL_ALL : PSD_DETAIL_HOSTS,
				       &command->signal_number, err);
	}
	return status ? status : psd_outputs_commit(err);
}

static enum psd_status run_one(struct command *command, const struct psd_loaded_scenario *loaded, struct psd_error *err)
{
	return command->options->trace_path ? run_with_trace(command, loaded, err) : run_sweep(command, loaded, err);
}

/* Tells whether rows of both scenarios have the same columns. */
static bool has_same_columns(const struct psd_scenario *one, const struct psd_scenario *other)
{
	bool is_same = one->n_swept == other->n_swept;

	for (unsigned i = 0; i < one->n_swept && is_same; i++)
		is_same = !strcmp(one->swept[i].column, other->swept[i].column);
	return is_same;
}

static enum psd_status write_csv_head(const struct psd_loaded_scenario *scenarios, unsigned n, const char *shard,
				      struct psd_error *err)
{
	const struct psd_scenario *first = &scenarios[0].scenario;
	const struct psd_result example = {.swept = first->n_swept ? first : NULL, .shard = shard};
	struct psd_text text = {.bytes = NULL};

	for (unsigned i = 1; i < n; i++)
		if (!has_same_columns(first, &scenarios[i].scenario))
			return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE,
					     "'--csv' writes one table, '%s' and '%s' must sweep the same keys",
					     first->path, scenarios[i].scenario.path);
	psd_columns_add_csv_head(&text, &example);
	return psd_output_text(stdout, &text, err);
}

/* Calls `use` for each scenario. If one fails, the others follow, unless stops is set, and the exit status reports the
 * failure. */
static int use_each(struct command *command, const struct psd_loaded_scenario *scenarios,
		    enum psd_status (*use)(struct command *command, const struct psd_loaded_scenario *loaded,
					   struct psd_error *err),
		    bool stops)
{
	const struct psd_options *options = command->options;
	const bool is_json = options->form == PSD_FORM_JSON;
	int exit_status = EXIT_DONE;
	struct psd_error err;

	if (is_json)
		psd_json_begin(&command->json, NULL, '[');
	for (unsigned i = 0; i < options->arguments.n_operands && !ferror(stdout) && !(stops && exit_status); i++) {
		if (i && options->form == PSD_FORM_TABLE)
			fputs("\n\n", stdout);
		const enum psd_status status = use(command, &scenarios[i], &err);

		push_output();
		if (command->signal_number)
			return end_by_signal(command->signal_number);
		psd_loaded_scenario_blame(&scenarios[i], status, &err);
		if (status)
			exit_status = complain(status, &err, status == PSD_EINVAL || status == PSD_EFILE);
	}
	if (is_json) {
		fputc('\n', stdout);
		psd_json_end(&command->json, ']');
		fputc('\n', stdout);
	}
	return exit_status;
}

static int run_all(struct command *command, const struct psd_loaded_scenario *scenarios)
{
	const struct psd_options *options = command->options;
	struct psd_error err;

	if (options->trace_path && open_trace(command, &scenarios[0].scenario, &err))
		return complain(err.status, &err, true);
	if (options->form == PSD_FORM_CSV &&
	    write_csv_head(scenarios, options->arguments.n_operands, options->shard, &err))
		return complain(err.status, &err, false);
	return use_each(command, scenarios, run_one, false);
}

/* ---- the other commands ---- */

static enum psd_status write_plan(const struct psd_loaded_scenario *loaded, const struct psd_system *system,
				  unsigned point_index, struct psd_error *err)
{
	const unsigned n_points = psd_scenario_points(&loaded->scenario);
	char point_words[64];
	struct psd_case made;

	PSD_TRY(psd_case_make(&made, &loaded->costed, system, psd_scenario_point(&loaded->scenario, point_index), err));
	snprintf(point_words, sizeof(point_words), "point %u of %u%s", point_index + 1, n_points,
		 n_points > MOST_PLANS_POINTS ? ", the only one shown" : "");
	enum psd_status status = psd_output_plan(stdout, &made, point_words, err);
	psd_case_release(&made);
	return status;
}

static enum psd_status write_plans(const struct psd_options *options, const struct psd_loaded_scenario *loaded,
				   struct psd_error *err)
{
	const struct psd_scenario *scenario = &loaded->scenario;
	const unsigned n_points = psd_scenario_points(scenario);
	unsigned only = scenario->n_systems;
	enum psd_status status = PSD_OK;

	if (options->system_name)
		status = psd_scenario_find_system(scenario, options->system_name, &only, err);
	if (status)
		return status;
	psd_grid_write_text(stdout, scenario->title);
	fputc('\n', stdout);
	for (unsigned s = 0; s < scenario->n_systems && !status; s++) {
		if (only < scenario->n_systems && s != only)
			continue;
		for (unsigned p = n_points > MOST_PLANS_POINTS ? n_points - 1 : 0; p < n_points && !status; p++) {
			fputc('\n', stdout);
			status = write_plan(loaded, &scenario->systems[s], p, err);
		}
	}
	return status;
}

static enum psd_status dump_platform(const struct psd_options *options, const struct psd_loaded_scenario *loaded,
				     struct psd_error *err)
{
	const struct psd_system *system;
	struct psd_case made;
	enum psd_status status = choose_system(options, &loaded->scenario, false, &system, err);

	if (!status)
		status = psd_case_make(&made, &loaded->costed, system, psd_scenario_point(&loaded->scenario, 0), err);
	if (status)
		return status;
	struct psd_platform platform = psd_simulate_platform(&made);
	errno = 0;
	status = psd_platform_write(stdout, &platform, err);
	if (status == PSD_EFILE) {
		output_errno = errno;
		status = PSD_OK; /* flush_output() reports it, as for any other output */
	}
	psd_case_release(&made);
	return status;
}

/* Names the installed model in the error about a file that is missing. */
static void offer_model(const char *operand, struct psd_error *err)
{
	const size_t length = strlen(err->text);
	struct psd_text path = {.bytes = NULL};
	struct psd_error ignored;

	if (err->status == PSD_EFILE && access(operand, F_OK) && !strstr(err->text, "did you mean") &&
	    !psd_installed_find_model(&path, operand, &ignored))
		snprintf(err->text + length, sizeof(err->text) - length, ", did you mean '%s'?", path.bytes);
	psd_text_release(&path);
}

static int describe(const struct psd_arguments *arguments)
{
	struct psd_scenario scenario; /* has settings alone */
	struct psd_graph graph;
	struct psd_error err;
	enum psd_status status = psd_scenario_parse_choices(&scenario, arguments->settings, &err);

	if (status)
		return complain(status, &err, true);
	scenario.choices.allows_other = true;
	status = psd_graph_load_as(&graph, arguments->operands[0], &scenario.choices, &err);
	psd_scenario_release(&scenario);
	if (status) {
		offer_model(arguments->operands[0], &err);
		return complain(status, &err, true);
	}
	psd_describe(stdout, &graph);
	psd_graph_release(&graph);
	return EXIT_DONE;
}

static enum psd_status write_file(const char *path, struct psd_text *text, struct psd_error *err)
{
	FILE *out;
	enum psd_status status = psd_output_open(&out, path, err);

	if (status)
		psd_text_release(text);
	return status ? status : psd_output_text(out, text, err);
}

static enum psd_status write_import(const struct psd_options *options, const struct psd_import *import,
				    struct psd_error *err)
{
	struct psd_text profile = {.bytes = NULL}, graph = {.bytes = NULL}, summary = {.bytes = NULL};

	psd_import_add_profile(&profile, import);
	PSD_TRY(write_file(options->output_path, &profile, err));
	if (!options->model_path) {
		psd_import_add_graph(&graph, import);
		PSD_TRY(write_file(options->graph_path, &graph, err));
	}
	PSD_TRY(psd_outputs_commit(err));
	psd_import_add_summary(&summary, import);
	return psd_output_text(stdout, &summary, err);
}

static int import_trace(const struct psd_options *options)
{
	const struct psd_import_settings settings = {
		.trace_path = options->arguments.operands[0],
		.model_path = options->model_path,
		.profile_path = options->output_path,
		.graph_path = options->graph_path,
		.batch = (unsigned)options->batch,
		.bits_per_sec = options->bits_per_sec,
		.latency_sec = options->latency_sec,
	};
	struct psd_import import;
	struct psd_error err;
	enum psd_status status = psd_import_make(&import, &settings, &err);

	if (!status)
		status = write_import(options, &import, &err);
	psd_import_release(&import);
	return status ? complain(status, &err, true) : EXIT_DONE;
}

static enum psd_status write_scenario(const struct psd_scenario *scenario, struct psd_error *err)
{
	struct psd_text text = {.bytes = NULL};

	psd_scenario_add_text(&text, scenario);
	return psd_output_text(stdout, &text, err);
}

static enum psd_status answer(struct command *command, const struct psd_loaded_scenario *loaded, struct psd_error *err)
{
	PSD_TRY(check_platform(command->options, loaded, err));
	return write_all_answers(command, loaded, NULL, err);
}

/* Writes a document of each variant. */
static enum psd_status write_variants(const struct psd_loaded_scenario *loaded, struct psd_error *err)
{
	PSD_TRY(write_scenario(&loaded->scenario, err));
	for (unsigned i = 1; i < loaded->n_variants; i++) {
		fputs("---\n", stdout);
		PSD_TRY(write_scenario(&loaded->variants[i - 1].scenario, err));
	}
	return PSD_OK;
}

static int show_one(const struct psd_options *options, const struct psd_loaded_scenario *loaded)
{
	struct psd_error err;
	enum psd_status status = PSD_OK;

	if (options->arguments.command == PSD_SIM_PLAN)
		status = write_plans(options, psd_loaded_scenario_last(loaded), &err);
	else if (options->arguments.command == PSD_SIM_PLATFORM)
		status = dump_platform(options, loaded, &err);
	else
		status = write_variants(loaded, &err);
	psd_loaded_scenario_blame(loaded, status, &err);
	return status ? complain(status, &err, true) : EXIT_DONE;
}

static int use_all(const struct psd_options *options, const struct psd_loaded_scenario *scenarios)
{
	struct command command = {.options = options, .json = {.out = stdout}};

	int predicted;

	if (options->arguments.command == PSD_SIM_PREDICT) {
		predicted = run_all(&command, scenarios);
		psd_trace_files_release(&command.trace);
		return predicted;
	}
	if (options->arguments.command == PSD_SIM_ASK)
		return use_each(&command, scenarios, answer, true);
	for (unsigned i = 0; i < options->arguments.n_operands; i++) {
		if (i)
			fputs(options->arguments.command == PSD_SIM_SHOW ? "---\n" : "\n\n", stdout);
		const int exit_status = show_one(options, &scenarios[i]);

		if (exit_status)
			return exit_status;
	}
	return EXIT_DONE;
}

/* Prints the error about a scenario file that could not be loaded, and returns the exit status. If there is no such
 * file, the word may be a misspelt command, and the error says so. */
static int complain_of_operand(enum psd_status status, const char *operand, const struct psd_error *err)
{
	struct psd_error word_err;

	if (status == PSD_EFILE && access(operand, F_OK) &&
	    psd_command_table_check_word(&psd_options_table, operand, &word_err))
		return complain(word_err.status, &word_err, false);
	return complain(status, err, true);
}

/* Loads all scenarios before the first runs: a mistake in the last one shows at once. */
static int load_and_use(const struct psd_options *options)
{
	const struct psd_arguments *arguments = &options->arguments;
	struct psd_loaded_scenario *scenarios = calloc(arguments->n_operands, sizeof(*scenarios));
	const bool with_costed = arguments->command != PSD_SIM_SHOW;
	int exit_status = EXIT_DONE;
	struct psd_error err;
	unsigned n_loaded = 0;

	if (!scenarios) {
		psd_error_set(&err, PSD_ENOMEM, PSD_NOWHERE, "out of memory");
		return complain(PSD_ENOMEM, &err, false);
	}
	while (n_loaded < arguments->n_operands && !exit_status) {
		const enum psd_status status =
			psd_loaded_scenario_load(&scenarios[n_loaded], arguments->operands[n_loaded],
						 arguments->settings, with_costed, options->system_name, &err);

		if (status)
			exit_status = complain_of_operand(status, arguments->operands[n_loaded], &err);
		n_loaded++;
	}
	if (!exit_status)
		exit_status = use_all(options, scenarios);
	for (unsigned i = 0; i < n_loaded; i++)
		psd_loaded_scenario_release(&scenarios[i]);
	free(scenarios);
	return exit_status;
}

static int tell(const struct psd_options *options)
{
	const struct psd_reference how = {.is_markdown = options->is_markdown,
					  .topic = options->arguments.topic,
					  .width = psd_output_terminal_width()};
	struct psd_text text = {.bytes = NULL};
	struct psd_error err;
	enum psd_status status = PSD_OK;

	switch ((enum psd_about)options->about) {
	case PSD_ABOUT_HELP: psd_command_table_add_help(&text, &psd_options_table, options->arguments.command); break;
	case PSD_ABOUT_OPTIONS: psd_command_table_add_reference(&text, &psd_options_table); break;
	case PSD_ABOUT_SHARE: status = psd_options_add_share(&text, options, PSD_VERSION, &err); break;
	case PSD_ABOUT_KEYS: status = psd_scenario_add_reference(&text, &how, &err); break;
	case PSD_ABOUT_COLUMNS: status = psd_columns_add_reference(&text, &how, &err); break;
	case PSD_ABOUT_VERSION: psd_text_add(&text, "psd-sim " PSD_VERSION "\n"); break;
	case PSD_ABOUT_NOTHING: break;
	}
	if (!status)
		return psd_output_text(stdout, &text, &err) ? complain(PSD_ENOMEM, &err, false) : EXIT_DONE;
	psd_text_release(&text);
	return complain(status, &err, false);
}

/* The list of stacks, or the details of those that are named. */
static int show_stacks(const struct psd_arguments *arguments)
{
	struct psd_text text = {.bytes = NULL};
	struct psd_error err;
	enum psd_status status = PSD_OK;

	if (arguments->n_operands == 0)
		psd_stack_add_list(&text);
	for (unsigned i = 0; i < arguments->n_operands && !status; i++) {
		unsigned index;

		psd_text_add(&text, "%s", i ? "\n" : "");
		if (psd_spelling_find(arguments->operands[i], psd_stack_names, &index))
			psd_stack_add_details(&text, psd_stack_find(psd_stack_names[index]));
		else
			status = psd_error_set(&err, PSD_EINVAL, PSD_NOWHERE,
					       "there is no stack '%.80s', `psd-sim stacks` lists them",
					       arguments->operands[i]);
	}
	if (!status)
		status = psd_output_text(stdout, &text, &err);
	else
		psd_text_release(&text);
	return status ? complain(status, &err, false) : EXIT_DONE;
}

static int merge_parts(const struct psd_arguments *arguments)
{
	struct psd_text text = {.bytes = NULL};
	struct psd_error err;
	enum psd_status status =
		psd_merge(&text, (const char *const *)arguments->operands, arguments->n_operands, &err);

	if (!status)
		status = psd_output_text(stdout, &text, &err);
	else
		psd_text_release(&text);
	return status ? complain(status, &err, true) : EXIT_DONE;
}

/* Checks that no file is lost: a new scenario may hold work of its user already. */
static enum psd_status check_is_new(const char *path, struct psd_error *err)
{
	struct stat status;

	if (stat(path, &status) || !S_ISREG(status.st_mode))
		return PSD_OK;
	return psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = path},
			     "the file exists, and is not overwritten: remove it, or name another one");
}

/* Writes the text to a new file, or to standard output if there is no path. */
static int write_new(const char *path, struct psd_text *text)
{
	struct psd_error err;
	enum psd_status status = path ? check_is_new(path, &err) : PSD_OK;

	if (status)
		psd_text_release(text);
	else
		status = path ? write_file(path, text, &err) : psd_output_text(stdout, text, &err);
	if (!status)
		status = psd_outputs_commit(&err);
	return status ? complain(status, &err, false) : EXIT_DONE;
}

static int make_scenario(const struct psd_options *options)
{
	struct psd_text text = {.bytes = NULL};
	struct psd_error err;

	if (!psd_init_add_scenario(&text, &options->init, &err))
		return write_new(options->init.output_path, &text);
	psd_text_release(&text);
	return complain(err.status, &err, false);
}

static int list_installed(void)
{
	struct psd_text text = {.bytes = NULL};
	struct psd_error err;

	if (!psd_installed_add_list(&text, &err))
		return write_new(NULL, &text);
	psd_text_release(&text);
	return complain(err.status, &err, false);
}

/* The command becomes a prediction of the scenario, unless that is to be copied. */
static int use_installed(struct psd_options *options)
{
	struct psd_text path = {.bytes = NULL}, copy = {.bytes = NULL};
	struct psd_error err;

	if (!options->arguments.n_operands)
		return list_installed();
	enum psd_status status = psd_installed_find(&path, options->arguments.operands[0], &err);
	if (!status && options->init.output_path) {
		psd_inputs_note(path.bytes);
		status = psd_installed_add_copy(&copy, path.bytes, &err);
	} else if (!status) {
		status = psd_options_name_scenario(options, path.bytes, &err);
	}
	psd_text_release(&path);
	if (!status && options->init.output_path)
		return write_new(options->init.output_path, &copy);
	psd_text_release(&copy);
	return status ? complain(status, &err, false) : load_and_use(options);
}

static int run(struct psd_options *options)
{
	if (options->about)
		return tell(options);
	if (options->arguments.command == PSD_SIM_INIT)
		return make_scenario(options);
	if (options->arguments.command == PSD_SIM_QUICKSTART)
		return use_installed(options);
	if (options->arguments.command == PSD_SIM_STACKS)
		return show_stacks(&options->arguments);
	if (options->arguments.command == PSD_SIM_DESCRIBE)
		return describe(&options->arguments);
	if (options->arguments.command == PSD_SIM_MERGE)
		return merge_parts(&options->arguments);
	if (options->arguments.command == PSD_SIM_IMPORT)
		return import_trace(options);
	return load_and_use(options);
}

/* Tells whether the output is text for people, which fits the terminal. */
static bool is_for_people(const struct psd_options *options)
{
	if (options->about)
		return !options->is_markdown && options->about != PSD_ABOUT_OPTIONS &&
		       options->about != PSD_ABOUT_SHARE;
	switch ((enum psd_sim_command)options->arguments.command) {
	case PSD_SIM_PREDICT:
	case PSD_SIM_PLAN:
	case PSD_SIM_DESCRIBE:
	case PSD_SIM_ASK:
	case PSD_SIM_STACKS:
	case PSD_SIM_QUICKSTART:
	case PSD_SIM_IMPORT: return options->form == PSD_FORM_TABLE;
	case PSD_SIM_SHOW:
	case PSD_SIM_PLATFORM:
	case PSD_SIM_INIT:
	case PSD_SIM_MERGE: break;
	}
	return false;
}

static char output_buffer[65536];

static int use(int argc, char *argv[])
{
	struct psd_options options;
	struct psd_error err;

	const enum psd_status status = psd_options_parse(&options, argc, argv, &err);
	if (status)
		return complain(status, &err, false);
	if (is_for_people(&options) && !psd_terminal_open(options.is_wide)) {
		psd_error_set(&err, PSD_ENOMEM, PSD_NOWHERE, "out of memory");
		return complain(PSD_ENOMEM, &err, false);
	}
	int exit_status = run(&options);
	psd_terminal_close();
	exit_status = flush_output(exit_status);
	psd_outputs_discard();
	psd_options_release(&options);
	return exit_status;
}

PSD_STACK_RAISE_FIRST("psd-sim");

int main(int argc, char *argv[])
{
	const bool is_small = psd_stack_is_small();
	struct psd_error err;
	int exit_status;

	if (!psd_output_fill_streams())
		_exit(EXIT_RUN_FAILED);
	setvbuf(stdout, output_buffer, _IOFBF,
		sizeof(output_buffer)); /* most outputs become one write, so that the reason of a failure is known */
	psd_outputs_heed_signals();	/* psd_children_run() has handlers of its own meanwhile */
	if (psd_stack_run(is_small, use, argc, argv, &exit_status, &err))
		return complain(err.status, &err, false);
	return exit_status;
}
