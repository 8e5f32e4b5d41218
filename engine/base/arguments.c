/* The table's reader and its printer. */
#include "engine/base/arguments.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/units.h"

enum { NAME_AND_VALUE = 18 }; /* places in the help */

struct reader {
	struct psd_arguments *arguments;
	const struct psd_option_table *table;
	char *target;
	struct psd_error *err;
};

/* ---- values ---- */

static enum psd_status misuse(const struct reader *reader, const char *argument, const char *what)
{
	return psd_error_set(reader->err, PSD_EINVAL, PSD_NOWHERE, "'%.200s' %s, see %s --help", argument, what,
			     reader->table->program);
}

static enum psd_status take_count(const struct reader *reader, const struct psd_option *option, const char *value)
{
	uint64_t count;

	if (!psd_units_read_count(value, &count) || count < option->least || count > option->most)
		return psd_error_set(reader->err, PSD_EINVAL, PSD_NOWHERE,
				     "'%s' is '%.80s', must be from %" PRIu64 " to %" PRIu64, option->name, value,
				     option->least, option->most);
	*(uint64_t *)(void *)(reader->target + option->offset) = count;
	return PSD_OK;
}

static enum psd_status take_seconds(const struct reader *reader, const struct psd_option *option, const char *value)
{
	double sec;

	if (!psd_units_read_seconds(value, &sec) || sec <= 0.0)
		return psd_error_set(reader->err, PSD_EINVAL, PSD_NOWHERE, "'%s' is '%.80s', must be %s", option->name,
				     value, psd_units_seconds_help);
	*(double *)(void *)(reader->target + option->offset) = sec;
	return PSD_OK;
}

static enum psd_status take_choice(const struct reader *reader, const struct psd_option *option, const char *value)
{
	unsigned *member = (unsigned *)(void *)(reader->target + option->offset);

	if (*member && *member != option->choice)
		return psd_error_set(reader->err, PSD_EINVAL, PSD_NOWHERE, "'%s' and '%s' exclude each other",
				     psd_option_of_choice(reader->table, option->offset, *member), option->name);
	*member = option->choice;
	if (value)
		*(const char **)(void *)(reader->target + option->text_offset) = value;
	return PSD_OK;
}

static const char *value_of(const char *setting)
{
	return strchr(setting, '=') + 1;
}

static enum psd_status take_setting(const struct reader *reader, const struct psd_option *option, const char *value)
{
	const char **next = &reader->arguments->settings[reader->arguments->n_settings];
	struct psd_text names = {.bytes = NULL};

	*next = option->settings ? NULL : value;
	for (unsigned i = 0; option->settings && option->settings[i]; i++) {
		if (!strcmp(value_of(option->settings[i]), value))
			*next = option->settings[i];
		psd_text_add(&names, "%s%s", i ? " or " : "", value_of(option->settings[i]));
	}
	if (*next)
		reader->arguments->n_settings++;
	else
		psd_error_set(reader->err, PSD_EINVAL, PSD_NOWHERE, "'%s' is '%.80s', must be %s", option->name, value,
			      names.bytes ? names.bytes : "another");
	psd_text_release(&names);
	return *next ? PSD_OK : PSD_EINVAL;
}

static enum psd_status take(const struct reader *reader, const struct psd_option *option, const char *value)
{
	void *member = reader->target + option->offset;

	reader->arguments->is_last = reader->arguments->is_last || option->is_last;
	switch (option->kind) {
	case PSD_OPTION_FLAG: *(bool *)member = true; return PSD_OK;
	case PSD_OPTION_TEXT: *(const char **)member = value; return PSD_OK;
	case PSD_OPTION_COUNT: return take_count(reader, option, value);
	case PSD_OPTION_SECONDS: return take_seconds(reader, option, value);
	case PSD_OPTION_CHOICE: return take_choice(reader, option, value);
	case PSD_OPTION_SETTING: return take_setting(reader, option, value);
	}
	return PSD_OK;
}

/* ---- the line ---- */

static const struct psd_option *find(const struct psd_option_table *table, const char *argument, size_t length)
{
	for (unsigned i = 0; i < table->n_options; i++)
		if (strlen(table->options[i].name) == length && !strncmp(table->options[i].name, argument, length))
			return &table->options[i];
	return NULL;
}

/* Reads the option at argv[*at] and moves *at past its value when that is an argument of its own. */
static enum psd_status read_option(const struct reader *reader, int argc, char *const argv[], int *at)
{
	const char *argument = argv[*at];
	const size_t length = strcspn(argument, "=");
	const struct psd_option *option = find(reader->table, argument, length);
	const char *value = argument[length] ? argument + length + 1 : NULL;

	if (!option)
		return psd_error_set(reader->err, PSD_EINVAL, PSD_NOWHERE, "unknown option '%.*s', see %s --help",
				     (int)(length < 200 ? length : 200), argument, reader->table->program);
	if (value && !option->value_name)
		return misuse(reader, option->name, "takes no value");
	if (!value && option->value_name) {
		if (*at + 1 >= argc)
			return misuse(reader, option->name, "needs a value");
		value = argv[++*at];
	}
	if (value && !*value)
		return misuse(reader, option->name, "needs a value that is not empty");
	return take(reader, option, value);
}

static enum psd_status read_scenario(const struct reader *reader, const char *path)
{
	struct psd_arguments *arguments = reader->arguments;
	const unsigned most = reader->table->most_scenarios;

	if (most && arguments->n_scenarios == most)
		return psd_error_set(reader->err, PSD_EINVAL, PSD_NOWHERE,
				     "'%.200s' is one scenario too many, %s takes %u", path, reader->table->program,
				     most);
	arguments->scenarios[arguments->n_scenarios++] = path;
	return PSD_OK;
}

static enum psd_status read_all(const struct reader *reader, int argc, char *const argv[])
{
	bool has_options = true;
	enum psd_status status = PSD_OK;

	for (int at = 1; at < argc && !status && !reader->arguments->is_last; at++) {
		if (has_options && !strcmp(argv[at], "--"))
			has_options = false;
		else if (has_options && argv[at][0] == '-')
			status = read_option(reader, argc, argv, &at);
		else
			status = read_scenario(reader, argv[at]);
	}
	return status;
}

enum psd_status psd_arguments_read(struct psd_arguments *arguments, const struct psd_option_table *table, void *target,
				   int argc, char *const argv[], struct psd_error *err)
{
	const struct reader reader = {arguments, table, target, err};
	const size_t most = argc > 0 ? (size_t)argc + 1 : 1;
	enum psd_status status;

	*arguments = (struct psd_arguments){.n_settings = 0};
	arguments->settings = calloc(most, sizeof(*arguments->settings));
	arguments->scenarios = calloc(most, sizeof(*arguments->scenarios));
	if (arguments->settings && arguments->scenarios)
		status = read_all(&reader, argc, argv);
	else
		status = psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory");
	if (status)
		psd_arguments_release(arguments);
	return status;
}

void psd_arguments_release(struct psd_arguments *arguments)
{
	free(arguments->settings);
	free(arguments->scenarios);
	*arguments = (struct psd_arguments){.n_settings = 0};
}

/* ---- the table ---- */

const char *psd_option_of_choice(const struct psd_option_table *table, size_t offset, unsigned choice)
{
	for (unsigned i = 0; i < table->n_options; i++) {
		const struct psd_option *option = &table->options[i];

		if (option->kind == PSD_OPTION_CHOICE && option->offset == offset && option->choice == choice)
			return option->name;
	}
	return "";
}

void psd_option_table_add_help(struct psd_text *text, const struct psd_option_table *table)
{
	psd_text_add(text, "%s\n", table->introduction);
	for (unsigned i = 0; i < table->n_options; i++) {
		const struct psd_option *option = &table->options[i];
		const int name_width = (int)strlen(option->name);

		psd_text_add(text, "  %s %-*s  %s\n", option->name, NAME_AND_VALUE - name_width,
			     option->value_name ? option->value_name : "", option->help);
	}
	psd_text_add(text,
		     "\nStatus: 0 done, 1 a run failed or a result could not be written, 2 bad usage or scenario.\n");
}
