/* The table of commands and options, and checks of options that depend on each other. */
#define _GNU_SOURCE 1
#include "sim/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/base/units.h"
#include "engine/scenario/scenario.h"
#include "sim/import/import.h"

enum { MOST_PROCESSES = 4096, MOST_BATCH = 1 << 24, MOST_SHARDS = 1000000 };

static const char *const fidelity_settings[] = {"--fidelity fidelity =flow", "--fidelity fidelity =message", NULL};

static const struct psd_command commands[] = {
	[PSD_SIM_PREDICT] = {NULL, "SCENARIO.yaml", true,
			     "Predicts training speed, for each system and each combination of a sweep (a point)."},
	[PSD_SIM_PLAN] = {"plan", "SCENARIO.yaml", true,
			  "Shows each tensor's method, with bytes and seconds of all methods."},
	[PSD_SIM_DESCRIBE] = {"describe", "MODEL", false, "Shows layers, shapes and parameters of a model file."},
	[PSD_SIM_SHOW] = {"show", "SCENARIO.yaml", true, "Shows the scenario with all values that take effect."},
	[PSD_SIM_PLATFORM] = {"platform", "SCENARIO.yaml", true,
			      "Shows the cluster of the scenario's first point as SimGrid XML."},
	[PSD_SIM_ASK] = {"ask", "SCENARIO.yaml", true,
			 "Answers questions: efficiency, best system, hours, costs, memory."},
	[PSD_SIM_STACKS] = {"stacks", "[NAME]", true, "Shows software stacks: constants, published values and errors.",
			    true},
	[PSD_SIM_MERGE] = {"merge", "PART.csv", true, "Joins CSV files of --shard to that of the whole sweep."},
	[PSD_SIM_IMPORT] = {"import", "TRACE.json", false,
			    "Makes a profile of layers from a trace of PyTorch or Nsight."},
	[PSD_SIM_INIT] = {"init", "", false, "Writes a commented scenario, from a model, nodes and bandwidth.", true},
	[PSD_SIM_QUICKSTART] = {"quickstart", "[NAME]", false,
				"Predicts an installed scenario, or lists them without NAME.", true},
};

#define OF(command)  (1u << PSD_SIM_##command)
#define OF_SCENARIOS (OF(PREDICT) | OF(PLAN) | OF(SHOW) | OF(PLATFORM) | OF(ASK) | OF(QUICKSTART))
#define OF_TABLES    (OF(PREDICT) | OF(QUICKSTART))
#define AT(member)   .offset = offsetof(struct psd_options, member)
#define FORM(value)  .kind = PSD_OPTION_CHOICE, AT(form), .choice = PSD_FORM_##value
#define ABOUT(value) .kind = PSD_OPTION_CHOICE, AT(about), .choice = PSD_ABOUT_##value, .is_last = true

#define OPTION(text, value, help_text) .name = (text), .value_name = (value), .help = (help_text)

static const struct psd_option option_list[] = {
	{OPTION("--csv", NULL, "print exact values as CSV, with units in column names"), FORM(CSV),
	 .commands = OF_TABLES},
	{OPTION("--json", NULL, "print results as JSON, with each resource's busy time"), FORM(JSON),
	 .commands = OF_TABLES | OF(ASK)},
	{OPTION("--plan", NULL, "add each tensor's method and its alternatives to the JSON"), .kind = PSD_OPTION_FLAG,
	 AT(has_plan), .commands = OF(PREDICT)},
	{OPTION("--trace", "FILE", "also write one system's run at the last point as a trace"),
	 .more = "It has Chrome trace events, for `psd-plot timeline` or ui.perfetto.dev. With %r in FILE: a file for "
		 "each worker, %r is its rank, in the form of PyTorch's profiler. These have no tracks of shared links",
	 .kind = PSD_OPTION_TEXT, AT(trace_path), .commands = OF(PREDICT)},
	{OPTION("--estimate", NULL, "estimate in closed form instead, most rows in 3 ms"), .kind = PSD_OPTION_FLAG,
	 AT(is_estimate), .commands = OF_TABLES | OF(ASK)},
	{OPTION("--every-node", NULL, "simulate every node and iteration, also equal ones"),
	 .more = "Default: equal ones are simulated once", .kind = PSD_OPTION_FLAG, AT(is_every_node),
	 .commands = OF_TABLES},
	{OPTION("--fidelity", "NAME", "detail: flow or message. Default: the scenario's"),
	 .more = "`message` simulates each message of a collective", .kind = PSD_OPTION_SETTING,
	 .settings = fidelity_settings, .commands = OF_TABLES | OF(SHOW) | OF(ASK)},
	{OPTION("--set", "KEY=VALUE", "set a value: sweep.nodes=8 or 'sweep.nodes=[8, 64]'"),
	 .more = "KEY is a path in the scenario, VALUE is as in a file. KEY= removes the key",
	 .kind = PSD_OPTION_SETTING, .commands = OF_SCENARIOS | OF(DESCRIBE)},
	{OPTION("--input", "NAME=SIZES", "set sizes of a model's input, as in data=3x224x224"),
	 .more = "NAME may be an open axis, too. Short for --set model.input.NAME=SIZES", .kind = PSD_OPTION_SETTING,
	 .prefix = "model.input.", .commands = OF_SCENARIOS | OF(DESCRIBE)},
	{OPTION("--sweep", "KEY=A,B", "make rows for values of a key: nodes=1..64*2, seed=1,2"),
	 .kind = PSD_OPTION_SETTING, .prefix = "sweep.", .is_list = true, .commands = OF_SCENARIOS},
	{OPTION("--system", "NAME", "use only this system of the scenario"), .kind = PSD_OPTION_TEXT, AT(system_name),
	 .commands = OF_TABLES | OF(PLAN) | OF(PLATFORM) | OF(ASK)},
	{OPTION("--question", "NAME", "answer only one question, such as break-even"),
	 .more = "One of efficiency, knee, bandwidth, bucket, best, break-even, hours, clusters, memory, failures, "
		 "runs",
	 .kind = PSD_OPTION_TEXT, AT(question), .commands = OF(ASK)},
	{OPTION("--shard", "I/N", "predict part I of N of the rows, for `psd-sim merge`"), .kind = PSD_OPTION_TEXT,
	 AT(shard), .commands = OF(PREDICT)},
	{OPTION("--jobs", "N", "make N rows in parallel. Default: one for each core"), .kind = PSD_OPTION_COUNT,
	 AT(n_processes), .least = 1, .most = MOST_PROCESSES, .commands = OF_TABLES | OF(ASK)},
	{OPTION("--wide", NULL, "show all columns, however narrow the terminal is"), .kind = PSD_OPTION_FLAG,
	 AT(is_wide), .commands = OF_TABLES | OF(PLAN) | OF(DESCRIBE) | OF(IMPORT)},
	{OPTION("--quiet", NULL, "print no progress and no notes on standard error"), .kind = PSD_OPTION_FLAG,
	 AT(is_quiet), .commands = OF_TABLES | OF(ASK)},
	{OPTION("-o", "PROFILE.csv", "profile to write"), .kind = PSD_OPTION_TEXT, .file = PSD_OPTION_WRITES,
	 AT(output_path), .commands = OF(IMPORT), .is_needed = true},
	{OPTION("--model", "MODEL",
		"model file to whose layers the trace's seconds are assigned. Default: each operator is a layer"),
	 .kind = PSD_OPTION_TEXT, AT(model_path), .commands = OF(IMPORT)},
	{OPTION("--graph", "GRAPH.yaml",
		"without --model: model file to write, with a layer for each operator. Default: PROFILE.yaml"),
	 .kind = PSD_OPTION_TEXT, .file = PSD_OPTION_WRITES, AT(graph_path), .commands = OF(IMPORT)},
	{OPTION("--batch", "N",
		"number of samples in a training step of one worker. Default: found in the trace, else 1"),
	 .kind = PSD_OPTION_COUNT, AT(batch), .least = 1, .most = MOST_BATCH, .commands = OF(IMPORT)},
	{OPTION("--bandwidth", "RATE", "predict the trace's collectives for links of this rate, such as 100Gbps"),
	 .kind = PSD_OPTION_TEXT, AT(bandwidth), .commands = OF(IMPORT)},
	{OPTION("--latency", "TIME", "latency of a message in the predictions of --bandwidth. Default: 0s"),
	 .kind = PSD_OPTION_SECONDS, AT(latency_sec), .commands = OF(IMPORT)},
	{OPTION("--model", "MODEL", "name of an installed model, or path of a model file"), .kind = PSD_OPTION_TEXT,
	 AT(init.model), .commands = OF(INIT), .is_needed = true},
	{OPTION("--nodes", "N", "number of nodes; the sweep has the powers of two up to it"), .kind = PSD_OPTION_TEXT,
	 AT(init.nodes), .commands = OF(INIT), .is_needed = true},
	{OPTION("--bandwidth", "RATE", "bandwidth of a node's link, such as 25Gbps"), .kind = PSD_OPTION_TEXT,
	 AT(init.bandwidth), .commands = OF(INIT), .is_needed = true},
	{OPTION("--device", "NAME", "device of a worker. Default: a100"), .kind = PSD_OPTION_TEXT, AT(init.device),
	 .commands = OF(INIT)},
	{OPTION("--workers", "N", "number of workers on a node. Default 1"), .kind = PSD_OPTION_TEXT, AT(init.workers),
	 .commands = OF(INIT)},
	{OPTION("--batch", "N", "samples of a worker in an iteration. Default 32"), .kind = PSD_OPTION_TEXT,
	 AT(init.batch), .commands = OF(INIT)},
	{OPTION("--latency", "TIME", "latency from node to node. Default 30us"), .kind = PSD_OPTION_TEXT,
	 AT(init.latency), .commands = OF(INIT)},
	{OPTION("--stack", "NAME", "software that moves gradients, see `psd-sim stacks`"), .kind = PSD_OPTION_TEXT,
	 AT(init.stack), .commands = OF(INIT)},
	{OPTION("--sync", "LIST", "methods to compare. Default: ring,ps"), .kind = PSD_OPTION_TEXT, AT(init.sync),
	 .commands = OF(INIT)},
	{OPTION("-o", "FILE", "file to write. Default: standard output"), .kind = PSD_OPTION_TEXT,
	 .file = PSD_OPTION_WRITES, AT(init.output_path), .commands = OF(INIT)},
	{OPTION("-o", "FILE", "copy the scenario to FILE instead, with whole paths"), .kind = PSD_OPTION_TEXT,
	 .file = PSD_OPTION_WRITES, AT(init.output_path), .commands = OF(QUICKSTART)},
	{OPTION("--markdown", NULL, NULL), .kind = PSD_OPTION_FLAG, AT(is_markdown), .commands = OF(PREDICT)},
	{OPTION("--keys", "[KEY]", "explain keys of a scenario: all, or those like KEY"),
	 .more = "KEY is a part of a path, such as `train.data`; else a word of the explanations", ABOUT(KEYS),
	 .commands = OF(PREDICT)},
	{OPTION("--columns", "[NAME]", "explain columns of --csv: all, or those like NAME"),
	 .more = "NAME is the beginning of a column\'s name; else a word of the explanations", ABOUT(COLUMNS),
	 .commands = OF(PREDICT)},
	{OPTION("--options", NULL, NULL), ABOUT(OPTIONS), .commands = OF(PREDICT)},
	{OPTION("--share", "[KIND]", NULL), ABOUT(SHARE), .commands = OF(PREDICT)},
	{OPTION("--version", NULL, "print the version"), ABOUT(VERSION), .commands = OF(PREDICT)},
	{OPTION("--help", NULL, "print this text"), ABOUT(HELP)},
};

static const struct psd_hint hints[] = {
	{"--systems", "--system NAME"},
	{"--nodes", "--set sweep.nodes=4"},
	{"--bandwidth", "--set cluster.network.bandwidth=10Gbps"},
	{"--iterations", "--set iterations=6"},
	{"new", "psd-sim init"},
	{"-o", "--csv >FILE"},
	{"--output", "--csv >FILE"},
	{"help", "psd-sim --help"},
	{"run", "psd-run SCENARIO.yaml"},
	{"calibrate", "psd-run calibrate"},
	{"weights", "psd-run weights"},
	{"pack", "psd-run pack"},
	{NULL, NULL},
};

const struct psd_command_table psd_options_table = {
	.program = "psd-sim",
	.commands = commands,
	.n_commands = sizeof(commands) / sizeof(commands[0]),
	.options = option_list,
	.n_options = sizeof(option_list) / sizeof(option_list[0]),
	.hints = hints,
};

static enum psd_status check_trace(const struct psd_options *options, struct psd_error *err)
{
	if (options->is_estimate)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE,
				     "'--trace' needs a simulation, '--estimate' makes none");
	if (options->arguments.n_operands > 1)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "'--trace' takes one scenario, %u are given",
				     options->arguments.n_operands);
	return PSD_OK;
}

/* Appends " --set seed=2", from "seed=2", or " --sweep nodes=[2]", from "--sweep sweep. nodes=[2]". */
static void add_setting(struct psd_text *text, const char *setting)
{
	const int length = strncmp(setting, "--", 2) ? 0 : (int)strcspn(setting, " ");

	if (length)
		psd_text_add(text, " %.*s %s", length, setting, strchr(setting + length + 1, ' ') + 1);
	else
		psd_text_add(text, " --set %s", setting);
}

/* Appends the options that change rows or values. */
static void add_settings(struct psd_text *text, const struct psd_options *options)
{
	psd_text_add(text, "psd-sim%s%s", options->is_estimate ? " --estimate" : "",
		     options->is_every_node ? " --every-node" : "");
	if (options->system_name)
		psd_text_add(text, " --system %s", options->system_name);
	for (unsigned i = 0; i < options->arguments.n_settings; i++)
		add_setting(text, options->arguments.settings[i]);
}

/* Reads "2/8". */
static enum psd_status check_shard(struct psd_options *options, struct psd_error *err)
{
	const char *slash = strchr(options->shard, '/');
	const size_t length = slash ? (size_t)(slash - options->shard) : 0;
	char number[16];

	if (slash && length < sizeof(number)) {
		memcpy(number, options->shard, length);
		number[length] = '\0';
	}
	if (!slash || length >= sizeof(number) || !psd_units_read_count(number, &options->shard_number) ||
	    !psd_units_read_count(slash + 1, &options->n_shards) || options->shard_number < 1 ||
	    options->shard_number > options->n_shards || options->n_shards > MOST_SHARDS)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE,
				     "'--shard' is '%.80s', must be a part and their number, such as 1/8 to 8/8",
				     options->shard);
	if (options->form != PSD_FORM_CSV)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE,
				     "'--shard' needs '--csv', since `psd-sim merge` joins files of CSV");
	if (options->arguments.n_operands > 1)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "'--shard' takes one scenario, %u are given",
				     options->arguments.n_operands);
	add_settings(&options->settings, options);
	return options->settings.is_out_of_memory ? psd_out_of_memory(err) : PSD_OK;
}

/* Refuses a file that nobody named and no import wrote. */
static enum psd_status check_replaced(const char *path, struct psd_error *err)
{
	char head[sizeof(PSD_IMPORT_GRAPH_HEAD)] = "";
	struct stat facts;
	FILE *in = !stat(path, &facts) && S_ISREG(facts.st_mode) ? fopen(path, "r") : NULL;

	if (!in)
		return PSD_OK;
	const size_t length = fread(head, 1, sizeof(head) - 1, in);
	fclose(in);
	return length == 0 || !strcmp(head, PSD_IMPORT_GRAPH_HEAD)
		       ? PSD_OK
		       : psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = path},
				       "exists, and no import wrote it: '--graph GRAPH.yaml' must name the file of the "
				       "graph");
}

/* The graph stands beside the profile: p.yaml beside p.csv. */
static enum psd_status name_graph(struct psd_options *options, struct psd_error *err)
{
	const size_t length = strlen(options->output_path);
	const bool has_end = length > 4 && !strcmp(options->output_path + length - 4, ".csv");

	options->beside = malloc(length + sizeof(".yaml"));
	if (!options->beside)
		return psd_out_of_memory(err);
	snprintf(options->beside, length + sizeof(".yaml"), "%.*s.yaml", (int)(length - (has_end ? 4 : 0)),
		 options->output_path);
	options->graph_path = options->beside;
	return check_replaced(options->beside, err);
}

static enum psd_status check_import(struct psd_options *options, struct psd_error *err)
{
	if (options->model_path && options->graph_path)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "'--model' and '--graph' exclude each other");
	if (options->bandwidth &&
	    (!psd_units_read_rate(options->bandwidth, &options->bits_per_sec) || options->bits_per_sec <= 0))
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "'--bandwidth' is '%.80s', must be %s, more than 0",
				     options->bandwidth, psd_units_rate_help);
	if (options->latency_sec > 0 && !options->bandwidth)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "'--latency' needs '--bandwidth'");
	return options->model_path || options->graph_path ? PSD_OK : name_graph(options, err);
}

/* The second list would replace the first one. */
static enum psd_status check_sweeps(const struct psd_arguments *arguments, struct psd_error *err)
{
	for (unsigned i = 0; i < arguments->n_settings; i++)
		for (unsigned j = 0; j < i && !strncmp(arguments->settings[i], "--sweep ", 8); j++) {
			const size_t length = strcspn(arguments->settings[i], "=");

			if (!strncmp(arguments->settings[i], arguments->settings[j], length + 1))
				return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE,
						     "'--sweep %.*s' is given twice, must have all values in one list",
						     (int)(length - strlen("--sweep sweep. ")),
						     arguments->settings[i] + strlen("--sweep sweep. "));
		}
	return PSD_OK;
}

static enum psd_status check_estimate(const struct psd_options *options, struct psd_error *err)
{
	const char *option = options->is_every_node ? "--every-node" : NULL;

	for (unsigned i = 0; i < options->arguments.n_settings; i++)
		if (!strncmp(options->arguments.settings[i], "--fidelity ", strlen("--fidelity ")))
			option = "--fidelity";
	return option ? psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "'%s' needs a simulation, '--estimate' makes none",
				      option)
		      : PSD_OK;
}

enum psd_status psd_options_parse(struct psd_options *options, int argc, char *const argv[], struct psd_error *err)
{
	struct psd_options parsed = {.about = PSD_ABOUT_NOTHING};
	enum psd_status status = psd_arguments_read(&parsed.arguments, &psd_options_table, &parsed, argc, argv, err);

	if (!status)
		status = check_sweeps(&parsed.arguments, err);
	if (!status && !parsed.about && parsed.trace_path)
		status = check_trace(&parsed, err);
	if (!status && !parsed.about && parsed.is_estimate)
		status = check_estimate(&parsed, err);
	if (!status && !parsed.about && parsed.shard)
		status = check_shard(&parsed, err);
	if (!status && !parsed.about && parsed.has_plan && parsed.form != PSD_FORM_JSON)
		status = psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "'--plan' needs '--json'");
	if (!status && !parsed.arguments.is_last && parsed.arguments.command == PSD_SIM_IMPORT)
		status = check_import(&parsed, err);
	if (status)
		psd_options_release(&parsed);
	else
		*options = parsed;
	return status;
}

enum psd_status psd_options_name_scenario(struct psd_options *options, const char *path, struct psd_error *err)
{
	options->installed_path = strdup(path);
	if (!options->installed_path)
		return psd_out_of_memory(err);
	options->arguments.operands[0] = options->installed_path;
	options->arguments.command = PSD_SIM_PREDICT;
	return PSD_OK;
}

void psd_options_release(struct psd_options *options)
{
	free(options->installed_path);
	psd_arguments_release(&options->arguments);
	free(options->beside);
	psd_text_release(&options->settings);
	*options = (struct psd_options){.about = PSD_ABOUT_NOTHING};
}

enum psd_status psd_options_add_share(struct psd_text *text, const struct psd_options *options, const char *version,
				      struct psd_error *err)
{
	const char *kind = options->arguments.topic;

	if (kind && !strcmp(kind, "scenario"))
		psd_scenario_add_manual(text, version);
	else if (kind && !strcmp(kind, "schema"))
		psd_scenario_add_json_schema(text);
	else
		return psd_scenario_add_share(text, &psd_options_table, kind, version, err);
	return PSD_OK;
}
