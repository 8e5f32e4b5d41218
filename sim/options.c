/* The table of options, and what makes sense only together or not together. */
#include "sim/options.h"

#include "engine/scenario/scenario.h"

enum { MOST_PROCESSES = 4096 };

static const char *const fidelity_settings[] = {"fidelity=flow", "fidelity=message", NULL};

#define AT(member)		       .offset = offsetof(struct psd_options, member)
#define FORM(value)		       .kind = PSD_OPTION_CHOICE, AT(form), .choice = PSD_FORM_##value
#define MODE(value)		       .kind = PSD_OPTION_CHOICE, AT(mode), .choice = PSD_MODE_##value
#define OPTION(text, value, help_text) .name = (text), .value_name = (value), .help = (help_text)

static const struct psd_option option_list[] = {
	{OPTION("--csv", NULL, "results as CSV, exact and with units in the column names"), FORM(CSV)},
	{OPTION("--json", NULL, "results as JSON, with the plan and how busy each resource is"), FORM(JSON)},
	{OPTION("--trace", "FILE", "also write one system's run at the last point as Chrome trace events"),
	 .kind = PSD_OPTION_TEXT, AT(trace_path)},
	{OPTION("--plan", NULL, "instead: each tensor's method, and bytes and seconds of every alternative"),
	 MODE(PLAN)},
	{OPTION("--describe", "MODEL", "instead: layers, shapes and parameters of a model file"), MODE(DESCRIBE),
	 .text_offset = offsetof(struct psd_options, model_path)},
	{OPTION("--print-scenario", NULL, "instead: the scenario with all values that take effect"),
	 MODE(PRINT_SCENARIO)},
	{OPTION("--dump-platform", NULL, "instead: the first point's cluster as SimGrid XML"), MODE(DUMP_PLATFORM)},
	{OPTION("--estimate", NULL, "closed-form estimate instead of simulation: microseconds a point"),
	 .kind = PSD_OPTION_FLAG, AT(is_estimate)},
	{OPTION("--fidelity", "NAME", "flow or message: what one simulated transfer stands for"),
	 .kind = PSD_OPTION_SETTING, .settings = fidelity_settings},
	{OPTION("--set", "KEY=VALUE",
		"replace a plain value of the scenario, such as cluster.network.bandwidth=10Gbps"),
	 .kind = PSD_OPTION_SETTING},
	{OPTION("--system", "NAME", "only this system of the scenario"), .kind = PSD_OPTION_TEXT, AT(system_name)},
	{OPTION("--jobs", "N", "simulate N points at a time (if not given: one for each core)"),
	 .kind = PSD_OPTION_COUNT, AT(n_processes), .least = 1, .most = MOST_PROCESSES},
	{OPTION("--quiet", NULL, "no progress and no remarks on standard error"), .kind = PSD_OPTION_FLAG,
	 AT(is_quiet)},
	{OPTION("--keys", NULL, "every key of a scenario, as a table in Markdown"), MODE(KEYS), .is_last = true},
	{OPTION("--columns", NULL, "every column of --csv, as a table in Markdown"), MODE(COLUMNS), .is_last = true},
	{OPTION("--version", NULL, "the version"), MODE(VERSION), .is_last = true},
	{OPTION("--help", NULL, "this text"), MODE(HELP), .is_last = true},
};

static const struct psd_option_table table = {
	.program = "psd-sim",
	.introduction = "usage: psd-sim [OPTIONS] SCENARIO.yaml...\n\n"
			"Predicts how fast a cluster trains, for each system and point of each scenario.\n",
	.options = option_list,
	.n_options = sizeof(option_list) / sizeof(option_list[0]),
};

static enum psd_status check_trace(const struct psd_options *options, struct psd_error *err)
{
	if (options->is_estimate)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE,
				     "'--trace' needs a simulation, '--estimate' makes none");
	if (options->arguments.n_scenarios > 1)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "'--trace' takes one scenario, %u are given",
				     options->arguments.n_scenarios);
	return PSD_OK;
}

static enum psd_status check(const struct psd_options *options, struct psd_error *err)
{
	const struct psd_arguments *arguments = &options->arguments;
	const char *mode_name = psd_option_of_choice(&table, offsetof(struct psd_options, mode), options->mode);

	if (options->mode == PSD_MODE_DESCRIBE && arguments->n_scenarios)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE,
				     "'--describe' takes no scenario, '%.200s' is one too many",
				     arguments->scenarios[0]);
	if (options->mode != PSD_MODE_DESCRIBE && !arguments->n_scenarios)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "no scenario is given, see psd-sim --help");
	if (options->mode == PSD_MODE_RESULTS)
		return options->trace_path ? check_trace(options, err) : PSD_OK;
	if (options->form)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "'%s' has no effect beside '%s'",
				     psd_option_of_choice(&table, offsetof(struct psd_options, form), options->form),
				     mode_name);
	if (options->trace_path)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "'--trace' has no effect beside '%s'", mode_name);
	return PSD_OK;
}

enum psd_status psd_options_parse(struct psd_options *options, int argc, char *const argv[], struct psd_error *err)
{
	struct psd_options parsed = {.mode = PSD_MODE_RESULTS};
	enum psd_status status = psd_arguments_read(&parsed.arguments, &table, &parsed, argc, argv, err);

	if (!status && !parsed.arguments.is_last)
		status = check(&parsed, err);
	if (status)
		psd_options_release(&parsed);
	else
		*options = parsed;
	return status;
}

void psd_options_release(struct psd_options *options)
{
	psd_arguments_release(&options->arguments);
	*options = (struct psd_options){.mode = PSD_MODE_RESULTS};
}

void psd_options_add_help(struct psd_text *text)
{
	psd_option_table_add_help(text, &table);
}
