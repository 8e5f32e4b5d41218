/* The table of options, its reader and its printer. */
#include "sim/options.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "engine/scenario.h"
#include "engine/units.h"

enum { MOST_PROCESSES = 4096 };

enum kind {
	KIND_CHOICE,   /* stores `choice`; two different ones for the same member exclude each other */
	KIND_DESCRIBE, /* a choice that takes a text, too */
	KIND_FLAG,
	KIND_TEXT,
	KIND_PROCESSES,
	KIND_SETTING,
	KIND_FIDELITY,
};

struct option {
	const char *name;
	const char *value_name; /* NULL: takes none */
	enum kind kind;
	size_t offset; /* of the member; settings have none */
	unsigned choice;
	const char *help;
};

#define AT(member) offsetof(struct psd_options, member)

static const struct option table[] = {
	{"--csv", NULL, KIND_CHOICE, AT(form), PSD_FORM_CSV, "results as CSV, exact and with units in the column names"},
	{"--json", NULL, KIND_CHOICE, AT(form), PSD_FORM_JSON, "results as JSON, with the plan and how busy each resource is"},
	{"--trace", "FILE", KIND_TEXT, AT(trace_path), 0, "also write one system's run at the last point as Chrome trace events"},
	{"--plan", NULL, KIND_CHOICE, AT(mode), PSD_MODE_PLAN,
	 "instead: each tensor's method, and bytes and seconds of every alternative"},
	{"--describe", "MODEL", KIND_DESCRIBE, AT(mode), PSD_MODE_DESCRIBE,
	 "instead: layers, shapes and parameters of a model file"},
	{"--print-scenario", NULL, KIND_CHOICE, AT(mode), PSD_MODE_PRINT_SCENARIO,
	 "instead: the scenario with all values that take effect"},
	{"--dump-platform", NULL, KIND_CHOICE, AT(mode), PSD_MODE_DUMP_PLATFORM,
	 "instead: the first point's cluster as SimGrid XML"},
	{"--estimate", NULL, KIND_FLAG, AT(is_estimate), 0, "closed-form estimate instead of simulation: microseconds a point"},
	{"--fidelity", "NAME", KIND_FIDELITY, 0, 0, "flow or message: what one simulated transfer stands for"},
	{"--set", "KEY=VALUE", KIND_SETTING, 0, 0, "replace a value of the scenario, such as cluster.network.bandwidth=10Gbps"},
	{"--system", "NAME", KIND_TEXT, AT(system_name), 0, "only this system of the scenario"},
	{"--jobs", "N", KIND_PROCESSES, AT(n_processes), 0, "simulate N points at a time (if not given: one for each core)"},
	{"--quiet", NULL, KIND_FLAG, AT(is_quiet), 0, "no progress and no remarks on standard error"},
	{"--version", NULL, KIND_CHOICE, AT(mode), PSD_MODE_VERSION, "the version"},
	{"--help", NULL, KIND_CHOICE, AT(mode), PSD_MODE_HELP, "this text"},
};

enum { N_OPTIONS = sizeof(table) / sizeof(table[0]) };

static const char *const fidelity_settings[] = {"fidelity=flow", "fidelity=message", NULL};

void psd_options_write_help(FILE *out)
{
	fputs("usage: psd-sim [OPTIONS] SCENARIO.yaml...\n\n"
	      "Predicts how fast a cluster trains, for each system and point of each scenario.\n\n",
	      out);
	for (unsigned i = 0; i < N_OPTIONS; i++) {
		const char *value_name = table[i].value_name ? table[i].value_name : "";
		const int name_width = (int)strlen(table[i].name);

		fprintf(out, "  %s %-*s  %s\n", table[i].name, 18 - name_width, value_name, table[i].help);
	}
	fputs("\nStatus: 0 done, 1 a run failed or a result could not be written, 2 bad usage or scenario.\n", out);
}

static enum psd_status misuse(struct psd_error *err, const char *argument, const char *what)
{
	return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "'%.200s' %s, see psd-sim --help", argument, what);
}

static const struct option *find(const char *argument, size_t length)
{
	for (unsigned i = 0; i < N_OPTIONS; i++)
		if (strlen(table[i].name) == length && !strncmp(table[i].name, argument, length))
			return &table[i];
	return NULL;
}

static const char *name_of_choice(size_t offset, unsigned choice)
{
	for (unsigned i = 0; i < N_OPTIONS; i++)
		if ((table[i].kind == KIND_CHOICE || table[i].kind == KIND_DESCRIBE) && table[i].offset == offset &&
		    table[i].choice == choice)
			return table[i].name;
	return "";
}

static enum psd_status take_choice(struct psd_options *options, const struct option *option, struct psd_error *err)
{
	unsigned *member = (unsigned *)((char *)options + option->offset);

	if (*member && *member != option->choice)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "'%s' and '%s' exclude each other",
				     name_of_choice(option->offset, *member), option->name);
	*member = option->choice;
	return PSD_OK;
}

static enum psd_status take_processes(struct psd_options *options, const char *value, struct psd_error *err)
{
	uint64_t count;

	if (!psd_units_read_count(value, &count) || count < 1 || count > MOST_PROCESSES)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "'--jobs' is '%.80s', must be from 1 to %d", value,
				     MOST_PROCESSES);
	options->n_processes = count;
	return PSD_OK;
}

static enum psd_status take_fidelity(struct psd_options *options, const char *value, struct psd_error *err)
{
	for (unsigned i = 0; fidelity_settings[i]; i++)
		if (!strcmp(strchr(fidelity_settings[i], '=') + 1, value)) {
			options->settings[options->n_settings++] = fidelity_settings[i];
			return PSD_OK;
		}
	return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "'--fidelity' is '%.80s', must be flow or message", value);
}

static enum psd_status take(struct psd_options *options, const struct option *option, const char *value, struct psd_error *err)
{
	char *member = (char *)options + option->offset;

	switch (option->kind) {
	case KIND_CHOICE: return take_choice(options, option, err);
	case KIND_DESCRIBE: options->model_path = value; return take_choice(options, option, err);
	case KIND_FLAG: *(bool *)member = true; return PSD_OK;
	case KIND_TEXT: *(const char **)member = value; return PSD_OK;
	case KIND_PROCESSES: return take_processes(options, value, err);
	case KIND_SETTING: options->settings[options->n_settings++] = value; return PSD_OK;
	case KIND_FIDELITY: return take_fidelity(options, value, err);
	}
	return PSD_OK;
}

/* Reads the option at argv[*at] and moves *at past its value when that is an argument of its own. */
static enum psd_status read_option(struct psd_options *options, int argc, char *const argv[], int *at, struct psd_error *err)
{
	const char *argument = argv[*at];
	const size_t length = strcspn(argument, "=");
	const struct option *option = find(argument, length);
	const char *value = argument[length] ? argument + length + 1 : NULL;

	if (!option)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "unknown option '%.*s', see psd-sim --help",
				     (int)(length < 200 ? length : 200), argument);
	if (value && !option->value_name)
		return misuse(err, option->name, "takes no value");
	if (!value && option->value_name) {
		if (*at + 1 >= argc)
			return misuse(err, option->name, "needs a value");
		value = argv[++*at];
	}
	if (value && !*value)
		return misuse(err, option->name, "needs a value that is not empty");
	return take(options, option, value, err);
}

static enum psd_status check_trace(const struct psd_options *options, struct psd_error *err)
{
	if (options->is_estimate)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "'--trace' needs a simulation, '--estimate' makes none");
	if (options->n_scenarios > 1)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "'--trace' takes one scenario, %u are given",
				     options->n_scenarios);
	return PSD_OK;
}

/* What makes sense only together, or not together. */
static enum psd_status check(const struct psd_options *options, struct psd_error *err)
{
	const char *mode_name = name_of_choice(AT(mode), options->mode);

	if (options->mode == PSD_MODE_DESCRIBE && options->n_scenarios)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "'--describe' takes no scenario, '%.200s' is one too many",
				     options->scenarios[0]);
	if (options->mode != PSD_MODE_DESCRIBE && !options->n_scenarios)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "no scenario is given, see psd-sim --help");
	if (options->mode == PSD_MODE_RESULTS)
		return options->trace_path ? check_trace(options, err) : PSD_OK;
	if (options->form)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "'%s' has no effect beside '%s'",
				     name_of_choice(AT(form), options->form), mode_name);
	if (options->trace_path)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "'--trace' has no effect beside '%s'", mode_name);
	return PSD_OK;
}

static enum psd_status read_all(struct psd_options *options, int argc, char *const argv[], struct psd_error *err)
{
	bool has_options = true;

	for (int at = 1; at < argc; at++) {
		enum psd_status status = PSD_OK;

		if (has_options && !strcmp(argv[at], "--"))
			has_options = false;
		else if (has_options && argv[at][0] == '-')
			status = read_option(options, argc, argv, &at, err);
		else
			options->scenarios[options->n_scenarios++] = argv[at];
		if (status || options->mode == PSD_MODE_HELP || options->mode == PSD_MODE_VERSION)
			return status;
	}
	return check(options, err);
}

enum psd_status psd_options_parse(struct psd_options *options, int argc, char *const argv[], struct psd_error *err)
{
	const size_t most = argc > 0 ? (size_t)argc + 1 : 1;
	struct psd_options parsed = {.mode = PSD_MODE_RESULTS};
	enum psd_status status;

	parsed.settings = calloc(most, sizeof(*parsed.settings));
	parsed.scenarios = calloc(most, sizeof(*parsed.scenarios));
	if (parsed.settings && parsed.scenarios)
		status = read_all(&parsed, argc, argv, err);
	else
		status = psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory");
	if (status)
		psd_options_release(&parsed);
	else
		*options = parsed;
	return status;
}

void psd_options_release(struct psd_options *options)
{
	free(options->settings);
	free(options->scenarios);
	*options = (struct psd_options){.mode = PSD_MODE_RESULTS};
}
