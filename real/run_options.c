/* The table of commands and options, and the options that need or exclude each other. */
#include "real/run_options.h"

#include "engine/result/trace_files.h"
#include "engine/scenario/scenario.h"
#include "engine/scenario/train.h"
#include "real/cluster/hosts.h"
#include "real/data/pack_format.h"

enum {
	MOST_NODES = 400,
	PACKED_SIDE = 256,
	LEAST_SIDE = 8,
	ATTEMPTS = 3,
	MOST_ATTEMPTS = 100,
	MOST_RESTARTS = 1000000
};

#define STALL_SEC 60.0

static const struct psd_command commands[] = {
	[PSD_RUN_TRAIN] =
		{NULL, "SCENARIO.yaml", false,
		 "Trains with each of the scenario's systems, in worker processes that exchange gradients over TCP. "
		 "They run in an emulated cluster on this machine, whose links have the scenario's rate. In a replay "
		 "only the messages are real, and operations are waits of the predicted duration."},
	[PSD_RUN_CALIBRATE] = {"calibrate", "SCENARIO.yaml", false,
			       "Measures this machine; writes the scenario with its constants."},
	[PSD_RUN_PACK] = {"pack", "FOLDER", false, "Packs FOLDER/CLASS/NAME.jpg into one file, for data.kind packed."},
	[PSD_RUN_WEIGHTS] = {"weights", "MODEL.onnx", false,
			     "Writes an ONNX model's parameters to a file, for train.start."},
	[PSD_RUN_SHOW] = {"show", "SCENARIO.yaml", false,
			  "Shows the scenario with all values, also those of a solver file."},
};

#define AT(member)   .offset = offsetof(struct psd_run_options, member)
#define OF(command)  (1u << PSD_RUN_##command)
#define ABOUT(value) .kind = PSD_OPTION_CHOICE, AT(about), .choice = PSD_RUN_ABOUT_##value, .is_last = true

#define OPTION(text, value, help_text) .name = (text), .value_name = (value), .help = (help_text)

static const struct psd_option option_list[] = {
	{OPTION("--csv", NULL, "print results as exact CSV with psd-sim's columns"), .kind = PSD_OPTION_FLAG,
	 AT(is_csv), .commands = OF(TRAIN)},
	{OPTION("--trace", "FILE", "write a trace of the last system"), .more = "With %r in FILE: a file for each rank",
	 .kind = PSD_OPTION_TEXT, .file = PSD_OPTION_WRITES, AT(trace_path), .commands = OF(TRAIN)},
	{OPTION("--log", "FILE", "write loss, accuracy and seconds of iterations as CSV"),
	 .more = "Only host 0 writes it", .kind = PSD_OPTION_TEXT, .file = PSD_OPTION_WRITES, AT(log_path),
	 .commands = OF(TRAIN)},
	{OPTION("--save", "FOLDER", "keep checkpoints and parameters of one system in FOLDER"),
	 .more = "Only the newest ones stay there", .kind = PSD_OPTION_TEXT, .file = PSD_OPTION_KEEPS, AT(save_path),
	 .commands = OF(TRAIN)},
	{OPTION("--save-every", "N", "iterations between checkpoints. Default: an epoch"),
	 .more = "The `snapshot` of a solver file comes before that default", .kind = PSD_OPTION_COUNT, AT(save_every),
	 .least = 1, .most = PSD_MAX_ITERATIONS, .commands = OF(TRAIN)},
	{OPTION("--resume", NULL, "resume from the newest checkpoint of --save, if any"),
	 .more = "Without one the run starts anew", .kind = PSD_OPTION_FLAG, AT(resumes), .commands = OF(TRAIN)},
	{OPTION("--restarts", "N", "with --save: resume N times after a loss. Default 0"),
	 .more = "A loss is that of a host, a process or a connection", .kind = PSD_OPTION_COUNT, AT(n_restarts),
	 .least = 0, .most = MOST_RESTARTS, .commands = OF(TRAIN)},
	{OPTION("--system", "NAME", "run only this system of the scenario"), .kind = PSD_OPTION_TEXT, AT(system_name),
	 .commands = OF(TRAIN)},
	{OPTION("--nodes", "N", "number of nodes. Default: first 2, 3 or 4 of the sweep"),
	 .more = "If the sweep has none of these: 1", .kind = PSD_OPTION_COUNT, AT(n_nodes), .least = 1,
	 .most = MOST_NODES, .commands = OF(TRAIN)},
	{OPTION("--iterations", "N", "number of iterations. Default: the scenario's"), .kind = PSD_OPTION_COUNT,
	 AT(n_iterations), .least = 1, .most = PSD_MAX_ITERATIONS, .commands = OF(TRAIN)},
	{OPTION("--no-emulation", NULL, "run on loopback at full speed, without emulated links"),
	 .kind = PSD_OPTION_FLAG, AT(has_no_emulation), .commands = OF(TRAIN) | OF(CALIBRATE)},
	{OPTION("--hosts", "FILE", "run on the hosts in FILE, one ADDRESS[:PORT] a line"),
	 .more = "psd-run is started on each of them", .kind = PSD_OPTION_TEXT, .file = PSD_OPTION_READS,
	 AT(hosts_path), .commands = OF(TRAIN)},
	{OPTION("--secret", "FILE", "with --hosts: file of a pre-shared key, to encrypt"),
	 .more = "Hosts with another key are refused", .kind = PSD_OPTION_TEXT, .file = PSD_OPTION_READS,
	 AT(secret_path), .commands = OF(TRAIN)},
	{OPTION("--rank", "N", "with --hosts: line of this host in FILE, from 0"),
	 .more = "Default: the launcher's rank", .kind = PSD_OPTION_COUNT, AT(rank), .least = 0,
	 .most = PSD_HOSTS_MAX - 1, .commands = OF(TRAIN)},
	{OPTION("--join-timeout", "TIME", "longest wait until all hosts have joined. Default 300s"),
	 .more = "Default with --hosts: 120s", .kind = PSD_OPTION_SECONDS, AT(join_sec), .commands = OF(TRAIN)},
	{OPTION("--stall", "TIME", "end after TIME without progress. Default 60s"),
	 .more = "The error names the process that made none. Emulated pauses count as progress",
	 .kind = PSD_OPTION_SECONDS, AT(stall_sec), .commands = OF(TRAIN) | OF(CALIBRATE)},
	{OPTION("--dilation", "K", "slow a replay down K times, or `auto`: as needed"),
	 .more = "Sets emulation.dilation", .kind = PSD_OPTION_TEXT, AT(dilation), .commands = OF(TRAIN)},
	{OPTION("--set", "KEY=VALUE", "set a value: sweep.nodes=8 or 'sweep.nodes=[8, 64]'"),
	 .more = "KEY is a path in the scenario, VALUE is as in a file. KEY= removes the key",
	 .kind = PSD_OPTION_SETTING, .commands = OF(TRAIN) | OF(CALIBRATE) | OF(SHOW) | OF(WEIGHTS)},
	{OPTION("--attempts", "N", "measure N times at most. Default 3"),
	 .more = "A third time only if the first two values differ by over 5 %", .kind = PSD_OPTION_COUNT,
	 AT(n_attempts), .least = 1, .most = MOST_ATTEMPTS, .commands = OF(CALIBRATE)},
	{OPTION("--side", "PIXELS", "width and height of packed images, in pixels. Default 256"),
	 .kind = PSD_OPTION_COUNT, AT(side), .least = LEAST_SIDE, .most = PSD_PACK_MAX_SIDE, .commands = OF(PACK)},
	{OPTION("-o", "FILE", "file to write"), .kind = PSD_OPTION_TEXT, .file = PSD_OPTION_WRITES, AT(output_path),
	 .is_needed = true, .commands = OF(CALIBRATE) | OF(PACK) | OF(WEIGHTS)},
	{OPTION("--wide", NULL, "show all columns, however narrow the terminal is"), .kind = PSD_OPTION_FLAG,
	 AT(is_wide), .commands = OF(TRAIN) | OF(CALIBRATE)},
	{OPTION("--quiet", NULL, "print no progress and no notes on standard error"), .kind = PSD_OPTION_FLAG,
	 AT(is_quiet), .commands = OF(TRAIN) | OF(CALIBRATE) | OF(PACK) | OF(WEIGHTS)},
	{OPTION("--markdown", NULL, NULL), .kind = PSD_OPTION_FLAG, AT(is_markdown), .commands = OF(TRAIN)},
	{OPTION("--keys", "[KEY]", "explain keys of a scenario: all, or those like KEY"),
	 .more = "KEY is a part of a path, such as `train.data`; else a word of the explanations", ABOUT(KEYS),
	 .commands = OF(TRAIN)},
	{OPTION("--columns", "[NAME]", "explain columns of --csv: all, or those like NAME"),
	 .more = "NAME is the beginning of a column\'s name", ABOUT(COLUMNS), .commands = OF(TRAIN)},
	{OPTION("--options", NULL, NULL), ABOUT(OPTIONS), .commands = OF(TRAIN)},
	{OPTION("--share", "[KIND]", NULL), ABOUT(SHARE), .commands = OF(TRAIN)},
	{OPTION("--version", NULL, "print the version"), ABOUT(VERSION), .commands = OF(TRAIN)},
	{OPTION("--help", NULL, "print this text"), ABOUT(HELP)},
};

static const struct psd_hint hints[] = {
	{"--systems", "--system NAME"},
	{"--bandwidth", "--set cluster.network.bandwidth=1Gbps"},
	{"-o", "--csv >FILE"},
	{"--output", "--csv >FILE"},
	{"help", "psd-run --help"},
	{"plan", "psd-sim plan"},
	{"describe", "psd-sim describe"},
	{"platform", "psd-sim platform"},
	{NULL, NULL},
};

const struct psd_command_table psd_run_options_table = {
	.program = "psd-run",
	.commands = commands,
	.n_commands = sizeof(commands) / sizeof(commands[0]),
	.options = option_list,
	.n_options = sizeof(option_list) / sizeof(option_list[0]),
	.more_statuses = ",\n75 a host or process was lost: try again",
	.hints = hints,
};

enum psd_status psd_run_options_check_joined(const struct psd_run_options *options, struct psd_place at,
					     const char *how, struct psd_error *err)
{
	const char *const other = options->n_nodes ? "--nodes" : options->has_no_emulation ? "--no-emulation" : NULL;

	if (!other && options->trace_path && !psd_trace_path_is_by_rank(options->trace_path))
		return psd_error_set(err, PSD_EINVAL, at,
				     "'--trace' is '%s', must have '%%r' for the rank with %s: each host writes a file",
				     options->trace_path, how);
	if (!other)
		return PSD_OK;
	return psd_error_set(err, PSD_EINVAL, at, "'%s' is for a cluster on this machine, must be left out with %s",
			     other, how);
}

static enum psd_status check_hosts(const struct psd_run_options *options, struct psd_error *err)
{
	const char *const other = options->rank != UINT64_MAX ? "--rank" : options->secret_path ? "--secret" : NULL;

	if (!options->hosts_path && other)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "'%s' has no effect without '--hosts'", other);
	return options->hosts_path ? psd_run_options_check_joined(options, PSD_NOWHERE, "'--hosts'", err) : PSD_OK;
}

static enum psd_status check_save(const struct psd_run_options *options, struct psd_error *err)
{
	const char *const other = options->resumes	    ? "--resume"
				  : options->save_every > 0 ? "--save-every"
				  : options->n_restarts > 0 ? "--restarts"
							    : NULL;

	if (!options->save_path && other)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "'%s' has no effect without '--save'", other);
	return PSD_OK;
}

enum psd_status psd_run_options_parse(struct psd_run_options *options, int argc, char *const argv[],
				      struct psd_error *err)
{
	struct psd_run_options parsed = {
		.rank = UINT64_MAX, .stall_sec = STALL_SEC, .n_attempts = ATTEMPTS, .side = PACKED_SIDE};
	enum psd_status status =
		psd_arguments_read(&parsed.arguments, &psd_run_options_table, &parsed, argc, argv, err);

	if (!status && !parsed.about)
		status = check_hosts(&parsed, err);
	if (!status && !parsed.about)
		status = check_save(&parsed, err);
	parsed.resumes = parsed.resumes || parsed.n_restarts > 0;
	if (status)
		psd_run_options_release(&parsed);
	else
		*options = parsed;
	return status;
}

void psd_run_options_release(struct psd_run_options *options)
{
	psd_arguments_release(&options->arguments);
	*options = (struct psd_run_options){.about = PSD_RUN_ABOUT_NOTHING};
}
