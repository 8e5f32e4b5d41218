/* The table of options, and what makes sense only together or not together. */
#include "real/run_options.h"

#include <string.h>

#include "engine/scenario/scenario.h"
#include "engine/scenario/train.h"
#include "real/cluster/hosts.h"
#include "real/data/pack_format.h"

enum { MOST_NODES = 400, LEAST_SIDE = 8, ATTEMPTS = 3, MOST_ATTEMPTS = 100 };

#define STALL_SEC 60.0

#define OPTION(text, value, help_text) .name = (text), .value_name = (value), .help = (help_text)
#define AT(member)		       .offset = offsetof(struct psd_run_options, member)
#define MODE(value)		       .kind = PSD_OPTION_CHOICE, AT(mode), .choice = PSD_RUN_##value

static const struct psd_option option_list[] = {
	{OPTION("--csv", NULL, "results as CSV, exact and with units in the column names"), .kind = PSD_OPTION_FLAG,
	 AT(is_csv)},
	{OPTION("--trace", "FILE", "also write one system's run as Chrome trace events"), .kind = PSD_OPTION_TEXT,
	 AT(trace_path)},
	{OPTION("--log", "FILE", "also write loss and accuracy of every iteration as CSV"), .kind = PSD_OPTION_TEXT,
	 AT(log_path)},
	{OPTION("--system", "NAME", "only this system of the scenario"), .kind = PSD_OPTION_TEXT, AT(system_name)},
	{OPTION("--nodes", "N", "on so many nodes (if not given: the scenario's first cluster of 2 to 4)"),
	 .kind = PSD_OPTION_COUNT, AT(n_nodes), .least = 1, .most = MOST_NODES},
	{OPTION("--iterations", "N", "train so long, whatever the scenario says"), .kind = PSD_OPTION_COUNT,
	 AT(n_iterations), .least = 1, .most = PSD_MAX_ITERATIONS},
	{OPTION("--no-emulation", NULL, "processes on loopback, no link has the scenario's rate"),
	 .kind = PSD_OPTION_FLAG, AT(has_no_emulation)},
	{OPTION("--hosts", "FILE", "on these hosts, one ADDRESS[:PORT] a line; psd-run is to be started on each"),
	 .kind = PSD_OPTION_TEXT, AT(hosts_path)},
	{OPTION("--rank", "N", "with --hosts: this is its host N, from 0 (if not given: as mpirun or srun numbers it)"),
	 .kind = PSD_OPTION_COUNT, AT(rank), .least = 0, .most = PSD_HOSTS_MAX - 1},
	{OPTION("--stall", "TIME", "give up when nothing moves for so long (if not given: 60s)"),
	 .kind = PSD_OPTION_SECONDS, AT(stall_sec)},
	{OPTION("--dilation", "K",
		"of a replay: so many times as slow, or `auto` (short for --set emulation.dilation=K)"),
	 .kind = PSD_OPTION_TEXT, AT(dilation)},
	{OPTION("--set", "KEY=VALUE",
		"replace a plain value of the scenario, such as cluster.network.bandwidth=10Gbps"),
	 .kind = PSD_OPTION_SETTING},
	{OPTION("--print-scenario", NULL, "instead: the scenario with all values that take effect"),
	 MODE(PRINT_SCENARIO)},
	{OPTION("--calibrate", NULL, "instead: measure this machine, and write the scenario with what psd-sim needs"),
	 MODE(CALIBRATE)},
	{OPTION("--attempts", "N",
		"with --calibrate: at each measurement; the third and later only if it spreads by over 5 % (if not "
		"given: 3)"),
	 .kind = PSD_OPTION_COUNT, AT(n_attempts), .least = 1, .most = MOST_ATTEMPTS},
	{OPTION("--pack", "FOLDER", "instead: FOLDER/CLASS/NAME.jpg as one file for `data: {kind: packed}`"),
	 MODE(PACK), .text_offset = offsetof(struct psd_run_options, pack_folder)},
	{OPTION("-o", "FILE", "the packed file, or the calibrated scenario"), .kind = PSD_OPTION_TEXT, AT(output_path)},
	{OPTION("--side", "PIXELS", "of packed images, which are square (if not given: 256)"), .kind = PSD_OPTION_COUNT,
	 AT(side), .least = LEAST_SIDE, .most = PSD_PACK_MAX_SIDE},
	{OPTION("--quiet", NULL, "no progress and no remarks on standard error"), .kind = PSD_OPTION_FLAG,
	 AT(is_quiet)},
	{OPTION("--version", NULL, "the version"), MODE(VERSION), .is_last = true},
	{OPTION("--help", NULL, "this text"), MODE(HELP), .is_last = true},
};

static const struct psd_option_table table = {
	.program = "psd-run",
	.introduction = "usage: psd-run [OPTIONS] SCENARIO.yaml\n"
			"       psd-run --calibrate SCENARIO.yaml -o CALIBRATED.yaml\n"
			"       psd-run --pack FOLDER -o FILE [--side PIXELS]\n\n"
			"Trains as the scenario says, with each of its systems, in worker processes that exchange "
			"gradients over TCP: on "
			"this\n"
			"machine, in an emulated cluster whose links have the scenario's rate. Where the scenario asks "
			"for a replay, "
			"nothing is\n"
			"computed: operations last as long as they are predicted to, only the messages are real.\n",
	.options = option_list,
	.n_options = sizeof(option_list) / sizeof(option_list[0]),
	.most_scenarios = 1,
};

static enum psd_status check_pack(const struct psd_run_options *options, struct psd_error *err)
{
	if (!options->output_path)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "'--pack' needs '-o FILE', see psd-run --help");
	if (options->arguments.n_settings > 0)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "'--set' has no effect beside '--pack'");
	if (options->dilation || options->n_attempts)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "'%s' has no effect beside '--pack'",
				     options->dilation ? "--dilation" : "--attempts");
	if (options->arguments.n_scenarios)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE,
				     "'--pack' takes no scenario, '%.200s' is one too many",
				     options->arguments.scenarios[0]);
	return PSD_OK;
}

static enum psd_status check_calibration(const struct psd_run_options *options, struct psd_error *err)
{
	if (!options->output_path)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "'--calibrate' needs '-o FILE', see psd-run --help");
	if (options->side)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "'--side' has no effect without '--pack'");
	if (options->dilation)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "'--dilation' has no effect beside '--calibrate'");
	return PSD_OK;
}

/* What only a run heeds, and of it what a calibration does, too. */
static const char *find_run_option(const struct psd_run_options *options)
{
	const bool is_calibration = options->mode == PSD_RUN_CALIBRATE;

	return options->is_csv				      ? "--csv"
	       : options->trace_path			      ? "--trace"
	       : options->log_path			      ? "--log"
	       : options->n_nodes			      ? "--nodes"
	       : options->n_iterations			      ? "--iterations"
	       : options->system_name			      ? "--system"
	       : options->has_no_emulation && !is_calibration ? "--no-emulation"
	       : options->hosts_path			      ? "--hosts"
	       : options->rank != UINT64_MAX		      ? "--rank"
	       : options->stall_sec > 0.0 && !is_calibration  ? "--stall"
							      : NULL;
}

/* What stands for a cluster of this machine's own. */
static enum psd_status check_hosts(const struct psd_run_options *options, struct psd_error *err)
{
	const char *const other = options->n_nodes	      ? "--nodes"
				  : options->has_no_emulation ? "--no-emulation"
				  : options->trace_path	      ? "--trace"
							      : NULL;

	if (!options->hosts_path && options->rank != UINT64_MAX)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "'--rank' has no effect without '--hosts'");
	if (options->hosts_path && other)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE,
				     "'%s' is for a cluster on this machine, not beside '--hosts'", other);
	return PSD_OK;
}

static enum psd_status check(const struct psd_run_options *options, struct psd_error *err)
{
	const char *mode_name = psd_option_of_choice(&table, offsetof(struct psd_run_options, mode), options->mode);
	const char *pack_option = options->output_path ? "-o" : options->side ? "--side" : NULL;

	if (options->mode != PSD_RUN_TRAIN && find_run_option(options))
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "'%s' has no effect beside '%s'",
				     find_run_option(options), mode_name);
	if (options->mode == PSD_RUN_PACK)
		return check_pack(options, err);
	if (options->mode == PSD_RUN_CALIBRATE) {
		const enum psd_status status = check_calibration(options, err);

		if (status)
			return status;
	} else if (pack_option) {
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "'%s' has no effect without '--pack'%s", pack_option,
				     options->output_path ? " or '--calibrate'" : "");
	}
	if (options->n_attempts && options->mode != PSD_RUN_CALIBRATE)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "'--attempts' has no effect without '--calibrate'");
	if (!options->arguments.n_scenarios)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "no scenario is given, see psd-run --help");
	if (options->trace_path && options->log_path && !strcmp(options->trace_path, options->log_path))
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE,
				     "'--trace' and '--log' are both '%.200s', must be two files", options->log_path);
	return check_hosts(options, err);
}

enum psd_status psd_run_options_parse(struct psd_run_options *options, int argc, char *const argv[],
				      struct psd_error *err)
{
	struct psd_run_options parsed = {.rank = UINT64_MAX};
	enum psd_status status = psd_arguments_read(&parsed.arguments, &table, &parsed, argc, argv, err);

	if (!status && !parsed.arguments.is_last)
		status = check(&parsed, err);
	if (parsed.stall_sec == 0.0) /* none is given: 0s is refused */
		parsed.stall_sec = STALL_SEC;
	if (!parsed.n_attempts)
		parsed.n_attempts = ATTEMPTS;
	if (status)
		psd_run_options_release(&parsed);
	else
		*options = parsed;
	return status;
}

void psd_run_options_release(struct psd_run_options *options)
{
	psd_arguments_release(&options->arguments);
	*options = (struct psd_run_options){.mode = PSD_RUN_TRAIN};
}

void psd_run_options_add_help(struct psd_text *text)
{
	psd_option_table_add_help(text, &table);
}
