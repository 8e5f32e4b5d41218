/* The table of options, its reader and its printer. */
#include "real/run_options.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "engine/scenario.h"
#include "engine/train.h"
#include "engine/units.h"

enum kind { KIND_FLAG, KIND_TEXT, KIND_COUNT, KIND_SECONDS, KIND_SETTING };

struct option {
	const char *name;
	const char *value_name; /* NULL: takes none */
	enum kind kind;
	size_t offset; /* of the member; settings have none */
	uint64_t most; /* counts */
	const char *help;
};

#define AT(member) offsetof(struct psd_run_options, member)

static const struct option table[] = {
	{"--csv", NULL, KIND_FLAG, AT(is_csv), 0, "results as CSV, exact and with units in the column names"},
	{"--system", "NAME", KIND_TEXT, AT(system_name), 0, "only this system of the scenario"},
	{"--nodes", "N", KIND_COUNT, AT(n_nodes), 400, "on so many nodes (if not given: the scenario's first cluster of 2 to 4)"},
	{"--iterations", "N", KIND_COUNT, AT(n_iterations), PSD_MAX_ITERATIONS, "train so long, whatever the scenario says"},
	{"--no-emulation", NULL, KIND_FLAG, AT(has_no_emulation), 0, "processes on loopback, no link has the scenario's rate"},
	{"--stall", "TIME", KIND_SECONDS, AT(stall_sec), 0, "give up when nothing moves for so long (if not given: 60s)"},
	{"--set", "KEY=VALUE", KIND_SETTING, 0, 0, "replace a value of the scenario, such as cluster.network.bandwidth=10Gbps"},
	{"--quiet", NULL, KIND_FLAG, AT(is_quiet), 0, "no progress and no remarks on standard error"},
	{"--version", NULL, KIND_FLAG, AT(is_version), 0, "the version"},
	{"--help", NULL, KIND_FLAG, AT(is_help), 0, "this text"},
};

enum { N_OPTIONS = sizeof(table) / sizeof(table[0]) };

void psd_run_options_write_help(FILE *out)
{
	fputs("usage: psd-run [OPTIONS] SCENARIO.yaml\n\n"
	      "Trains as the scenario says, with each of its systems, in worker processes that exchange gradients over TCP: on "
	      "this\n"
	      "machine, in an emulated cluster whose links have the scenario's rate.\n\n",
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
	return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "'%.200s' %s, see psd-run --help", argument, what);
}

static const struct option *find(const char *argument, size_t length)
{
	for (unsigned i = 0; i < N_OPTIONS; i++)
		if (strlen(table[i].name) == length && !strncmp(table[i].name, argument, length))
			return &table[i];
	return NULL;
}

static enum psd_status take_count(const struct option *option, uint64_t *member, const char *value, struct psd_error *err)
{
	uint64_t count;

	if (!psd_units_read_count(value, &count) || count < 1 || count > option->most)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "'%s' is '%.80s', must be from 1 to %llu", option->name, value,
				     (unsigned long long)option->most);
	*member = count;
	return PSD_OK;
}

static enum psd_status take_seconds(const struct option *option, double *member, const char *value, struct psd_error *err)
{
	double sec;

	if (!psd_units_read_seconds(value, &sec) || sec <= 0.0)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "'%s' is '%.80s', must be %s", option->name, value,
				     psd_units_seconds_help);
	*member = sec;
	return PSD_OK;
}

static enum psd_status take(struct psd_run_options *options, const struct option *option, const char *value,
			    struct psd_error *err)
{
	void *member = (char *)options + option->offset;

	switch (option->kind) {
	case KIND_FLAG: *(bool *)member = true; return PSD_OK;
	case KIND_TEXT: *(const char **)member = value; return PSD_OK;
	case KIND_COUNT: return take_count(option, member, value, err);
	case KIND_SECONDS: return take_seconds(option, member, value, err);
	case KIND_SETTING: options->settings[options->n_settings++] = value; return PSD_OK;
	}
	return PSD_OK;
}

/* Reads the option at argv[*at] and moves *at past its value when that is an argument of its own. */
static enum psd_status read_option(struct psd_run_options *options, int argc, char *const argv[], int *at, struct psd_error *err)
{
	const char *argument = argv[*at];
	const size_t length = strcspn(argument, "=");
	const struct option *option = find(argument, length);
	const char *value = argument[length] ? argument + length + 1 : NULL;

	if (!option)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "unknown option '%.*s', see psd-run --help",
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

static enum psd_status read_all(struct psd_run_options *options, int argc, char *const argv[], struct psd_error *err)
{
	bool has_options = true;

	for (int at = 1; at < argc; at++) {
		enum psd_status status = PSD_OK;

		if (has_options && !strcmp(argv[at], "--"))
			has_options = false;
		else if (has_options && argv[at][0] == '-')
			status = read_option(options, argc, argv, &at, err);
		else if (options->scenario_path)
			return misuse(err, argv[at], "is a second scenario, psd-run takes one");
		else
			options->scenario_path = argv[at];
		if (status || options->is_help || options->is_version)
			return status;
	}
	return options->scenario_path ? PSD_OK
				      : psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "no scenario is given, see psd-run --help");
}

enum psd_status psd_run_options_parse(struct psd_run_options *options, int argc, char *const argv[], struct psd_error *err)
{
	struct psd_run_options parsed = {.stall_sec = 60.0};
	enum psd_status status;

	parsed.settings = calloc(argc > 0 ? (size_t)argc + 1 : 1, sizeof(*parsed.settings));
	if (!parsed.settings)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory");
	status = read_all(&parsed, argc, argv, err);
	if (status)
		psd_run_options_release(&parsed);
	else
		*options = parsed;
	return status;
}

void psd_run_options_release(struct psd_run_options *options)
{
	free(options->settings);
	*options = (struct psd_run_options){.stall_sec = 0.0};
}
