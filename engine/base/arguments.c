#include "engine/base/arguments.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/inputs.h"
#include "engine/base/output.h"
#include "engine/base/spelling.h"
#include "engine/base/units.h"
#include "engine/base/view.h"

enum { HELP_WIDTH = 80, REFERENCE_WIDTH = 100, MOST_INDENT = 22, NAME_GAP = 4, NAME_ROOM = 48, MOST_OPTIONS = 64 };

struct reader {
	struct psd_arguments *arguments;
	const struct psd_command_table *table;
	char *target;
	uint64_t seen; /* bit i: the table's option i was present */
	char name[NAME_ROOM];
	struct psd_error *err;
};

/* "psd-run pack" */
static void write_name(char name[NAME_ROOM], const struct psd_command_table *table, unsigned command)
{
	const char *word = table->commands[command].name;

	snprintf(name, NAME_ROOM, "%s%s%s", table->program, word ? " " : "", word ? word : "");
}

static bool takes(const struct psd_option *option, unsigned command)
{
	return !option->commands || (option->commands >> command & 1u);
}

/* ---- values ---- */

static enum psd_status misuse(const struct reader *reader, const char *argument, const char *what)
{
	return psd_error_set(reader->err, PSD_EINVAL, PSD_NOWHERE, "'%.200s' %s, see %s --help", argument, what,
			     reader->name);
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
		return psd_error_set(reader->err, PSD_EINVAL, PSD_NOWHERE, "'%s' is '%.80s', must be %s, more than 0",
				     option->name, value, psd_units_seconds_help);
	*(double *)(void *)(reader->target + option->offset) = sec;
	return PSD_OK;
}

static const char *name_of_choice(const struct psd_command_table *table, size_t offset, unsigned choice)
{
	for (unsigned i = 0; i < table->n_options; i++) {
		const struct psd_option *option = &table->options[i];

		if (option->kind == PSD_OPTION_CHOICE && option->offset == offset && option->choice == choice)
			return option->name;
	}
	return "";
}

static enum psd_status take_choice(const struct reader *reader, const struct psd_option *option)
{
	unsigned *member = (unsigned *)(void *)(reader->target + option->offset);

	if (*member && *member != option->choice)
		return psd_error_set(reader->err, PSD_EINVAL, PSD_NOWHERE, "'%s' and '%s' exclude each other",
				     name_of_choice(reader->table, option->offset, *member), option->name);
	*member = option->choice;
	return PSD_OK;
}

static const char *value_of(const char *setting)
{
	return strchr(setting, '=') + 1;
}

static enum psd_status take_prefixed(const struct reader *reader, const struct psd_option *option, const char *value)
{
	const size_t room = strlen(option->name) + strlen(option->prefix) + strlen(value) + sizeof("  []");
	const char *equals = strchr(value, '=');
	const bool in_brackets = option->is_list && equals && equals[1] != '[';
	char *setting = psd_arena_take(&reader->arguments->made, room);

	if (!equals)
		return psd_error_set(reader->err, PSD_EINVAL, PSD_NOWHERE, "'%s' is '%.80s', must be %s", option->name,
				     value, option->value_name);
	if (!setting)
		return psd_out_of_memory(reader->err);
	if (in_brackets)
		snprintf(setting, room, "%s %s %.*s=[%s]", option->name, option->prefix, (int)(equals - value), value,
			 equals + 1);
	else
		snprintf(setting, room, "%s %s %s", option->name, option->prefix, value);
	reader->arguments->settings[reader->arguments->n_settings++] = setting;
	return PSD_OK;
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
	case PSD_OPTION_CHOICE: return take_choice(reader, option);
	case PSD_OPTION_SETTING:
		return option->prefix ? take_prefixed(reader, option, value) : take_setting(reader, option, value);
	}
	return PSD_OK;
}

/* ---- the line ---- */

/* Prefers the option of that name which the command accepts. */
static const struct psd_option *find(const struct psd_command_table *table, unsigned command, const char *argument,
				     size_t length)
{
	const struct psd_option *first = NULL;

	if (!strcmp(argument, "-h"))
		return find(table, command, "--help", strlen("--help"));
	for (unsigned i = 0; i < table->n_options; i++) {
		const struct psd_option *option = &table->options[i];

		if (strlen(option->name) != length || strncmp(option->name, argument, length) != 0)
			continue;
		if (takes(option, command))
			return option;
		first = first ? first : option;
	}
	return first;
}

static const char *find_instead(const struct psd_command_table *table, const char *tried, size_t length)
{
	for (const struct psd_hint *hint = table->hints; hint && hint->tried; hint++)
		if (strlen(hint->tried) == length && !strncmp(hint->tried, tried, length))
			return hint->instead;
	return NULL;
}

/* The option of the command whose name is nearest; NULL: none is near. */
static const char *option_near(const struct reader *reader, const char *argument, size_t length)
{
	const char *names[MOST_OPTIONS + 1] = {NULL};
	char word[NAME_ROOM];
	unsigned n = 0;

	if (length >= sizeof(word))
		return NULL;
	memcpy(word, argument, length);
	word[length] = '\0';
	for (unsigned i = 0; i < reader->table->n_options && n < MOST_OPTIONS; i++) {
		const struct psd_option *option = &reader->table->options[i];

		if (option->help && option->name[1] == '-' && takes(option, reader->arguments->command))
			names[n++] = option->name;
	}
	return psd_spelling_nearest(word, names);
}

static enum psd_status refuse_unknown(const struct reader *reader, const char *argument, size_t length)
{
	const char *instead = find_instead(reader->table, argument, length);
	const char *near = instead ? NULL : option_near(reader, argument, length);

	return psd_error_set(reader->err, PSD_EINVAL, PSD_NOWHERE, "unknown option '%.*s'%s%s%s %s --help",
			     (int)(length < 200 ? length : 200), argument,
			     instead ? ", say "
			     : near  ? ", did you mean '"
				     : "",
			     instead ? instead
			     : near  ? near
				     : "",
			     near ? "'? See" : ", see", reader->name);
}

static enum psd_status refuse_option(const struct reader *reader, const struct psd_option *option)
{
	const char *instead = find_instead(reader->table, option->name, strlen(option->name));
	unsigned owner = 0;
	char name[NAME_ROOM];

	while (!takes(option, owner))
		owner++;
	write_name(name, reader->table, owner);
	return psd_error_set(reader->err, PSD_EINVAL, PSD_NOWHERE,
			     "'%s' is an option of '%s', not of '%s'%s%s, see %s --help", option->name, name,
			     reader->name, instead ? ", say " : "", instead ? instead : "", reader->name);
}

/* The option's value would replace an earlier one, by this or another name. Settings of any keys add up. */
static bool is_given(const struct reader *reader, const struct psd_option *option)
{
	bool is_given = false;

	if (!option->value_name || (option->kind == PSD_OPTION_SETTING && !option->settings))
		return false;
	for (unsigned i = 0; i < reader->table->n_options && !is_given; i++) {
		const struct psd_option *other = &reader->table->options[i];

		is_given = reader->seen >> i & 1u && other->kind == option->kind && other->value_name &&
			   (other == option || (other->kind != PSD_OPTION_SETTING && other->offset == option->offset));
	}
	return is_given;
}

/* Reads the option at argv[*at]; moves *at to its value if that is an argument of its own. */
static enum psd_status read_option(struct reader *reader, int argc, char *const argv[], int *at)
{
	const char *argument = argv[*at];
	const size_t length = strcspn(argument, "=");
	const struct psd_option *option = find(reader->table, reader->arguments->command, argument, length);
	const char *value = argument[length] ? argument + length + 1 : NULL;

	if (!option)
		return refuse_unknown(reader, argument, length);
	if (!takes(option, reader->arguments->command))
		return refuse_option(reader, option);
	if (value && !option->value_name)
		return misuse(reader, option->name, "takes no value");
	if (option->is_last && option->value_name) {
		reader->arguments->topic = value ? value : argv[*at + 1]; /* NULL behind the last */
		return take(reader, option, NULL);
	}
	if (!value && option->value_name) {
		if (*at + 1 >= argc)
			return misuse(reader, option->name, "needs a value");
		value = argv[++*at];
	}
	if (value && !*value)
		return misuse(reader, option->name, "needs a value that is not empty");
	if (is_given(reader, option))
		return misuse(reader, option->name, "is given twice, must be given once");
	reader->seen |= UINT64_C(1) << (option - reader->table->options);
	return take(reader, option, value);
}

static enum psd_status read_operand(const struct reader *reader, const char *operand)
{
	struct psd_arguments *arguments = reader->arguments;
	const struct psd_command *command = &reader->table->commands[arguments->command];

	if (!*command->operand)
		return psd_error_set(reader->err, PSD_EINVAL, PSD_NOWHERE,
				     "'%.200s' is one too many, %s takes options alone, see %s --help", operand,
				     reader->name, reader->name);
	if (!command->has_operands && arguments->n_operands == 1)
		return psd_error_set(reader->err, PSD_EINVAL, PSD_NOWHERE, "'%.200s' is one too many, %s takes one %s",
				     operand, reader->name, command->operand);
	arguments->operands[arguments->n_operands++] = operand;
	return PSD_OK;
}

static enum psd_status check_needs(const struct reader *reader)
{
	const struct psd_command_table *table = reader->table;
	const unsigned command = reader->arguments->command;

	for (unsigned i = 0; i < table->n_options; i++) {
		const struct psd_option *option = &table->options[i];

		if (option->is_needed && takes(option, command) && !(reader->seen >> i & 1u))
			return psd_error_set(reader->err, PSD_EINVAL, PSD_NOWHERE, "'%s' needs '%s %s', see %s --help",
					     reader->name, option->name, option->value_name, reader->name);
	}
	if (!reader->arguments->n_operands && !table->commands[command].may_lack_operands)
		return psd_error_set(reader->err, PSD_EINVAL, PSD_NOWHERE, "no %s is given, see %s --help",
				     table->commands[command].operand, reader->name);
	return PSD_OK;
}

enum psd_status psd_command_table_check_word(const struct psd_command_table *table, const char *word,
					     struct psd_error *err)
{
	struct psd_text names = {.bytes = NULL};

	if (strpbrk(word, "./"))
		return PSD_OK;
	for (unsigned c = 0; c < table->n_commands; c++)
		if (table->commands[c].name)
			psd_text_add(&names, "%s%s", names.bytes ? ", " : "", table->commands[c].name);
	psd_error_set(err, PSD_EINVAL, PSD_NOWHERE,
		      "'%.80s' is neither a file nor a command; commands are %s, see %s --help", word,
		      names.bytes ? names.bytes : "none", table->program);
	psd_text_release(&names);
	return PSD_EINVAL;
}

static enum psd_status check_first_word(const struct reader *reader, const char *word)
{
	const char *instead = find_instead(reader->table, word, strlen(word));

	return instead ? psd_error_set(reader->err, PSD_EINVAL, PSD_NOWHERE, "%s has no command '%.80s', say %s",
				       reader->table->program, word, instead)
		       : PSD_OK;
}

/* The position of the first argument that is neither an option nor an option's value; argc when there is none. */
static int first_word(const struct reader *reader, int argc, char *const argv[])
{
	int at = 1;

	for (; at < argc && argv[at][0] == '-' && strcmp(argv[at], "--"); at++) {
		const size_t length = strcspn(argv[at], "=");
		const struct psd_option *option = find(reader->table, reader->arguments->command, argv[at], length);

		if (!option || option->is_last)
			return argc;
		at += option->value_name && !argv[at][length];
	}
	return at < argc && strcmp(argv[at], "--") ? at : argc;
}

/* Sets the command that a first word names: true. */
static bool read_command(struct reader *reader, const char *word)
{
	const struct psd_command_table *table = reader->table;

	for (unsigned c = 0; c < table->n_commands; c++)
		if (table->commands[c].name && !strcmp(word, table->commands[c].name)) {
			reader->arguments->command = c;
			return true;
		}
	return false;
}

static enum psd_status read_all(struct reader *reader, int argc, char *const argv[])
{
	const int word = first_word(reader, argc, argv);
	const bool has_command = word < argc && read_command(reader, argv[word]);
	bool has_options = true;
	enum psd_status status = PSD_OK;

	write_name(reader->name, reader->table, reader->arguments->command);
	if (word < argc && !has_command)
		status = check_first_word(reader, argv[word]);
	for (int at = 1; at < argc && !status && !reader->arguments->is_last; at++) {
		if (has_command && at == word)
			continue;
		if (has_options && !strcmp(argv[at], "--"))
			has_options = false;
		else if (has_options && argv[at][0] == '-')
			status = read_option(reader, argc, argv, &at);
		else
			status = read_operand(reader, argv[at]);
	}
	return status || reader->arguments->is_last ? status : check_needs(reader);
}

enum psd_status psd_arguments_read(struct psd_arguments *arguments, const struct psd_command_table *table, void *target,
				   int argc, char *const argv[], struct psd_error *err)
{
	struct reader reader = {.arguments = arguments, .table = table, .target = target, .err = err};
	const size_t most = argc > 0 ? (size_t)argc + 1 : 1;
	enum psd_status status;

	*arguments = (struct psd_arguments){.n_settings = 0};
	arguments->settings = calloc(most, sizeof(*arguments->settings));
	arguments->operands = calloc(most, sizeof(*arguments->operands));
	if (arguments->settings && arguments->operands)
		status = read_all(&reader, argc, argv);
	else
		status = psd_out_of_memory(err);
	if (status)
		psd_arguments_release(arguments);
	return status;
}

enum psd_status psd_arguments_plan_files(const struct psd_command_table *table, const void *target,
					 struct psd_error *err)
{
	enum psd_status status = PSD_OK;

	for (int file = PSD_OPTION_READS; file <= PSD_OPTION_WRITES; file++)
		for (unsigned i = 0; i < table->n_options && !status; i++) {
			const struct psd_option *option = &table->options[i];
			const char *path;

			if ((int)option->file != file)
				continue;
			path = *(const char *const *)(const void *)((const char *)target + option->offset);
			if (path && option->file == PSD_OPTION_READS)
				psd_inputs_note(path);
			else if (path)
				status = psd_output_claim(path, err);
		}
	return status;
}

void psd_arguments_release(struct psd_arguments *arguments)
{
	psd_arena_release(&arguments->made);
	free(arguments->settings);
	free(arguments->operands);
	*arguments = (struct psd_arguments){.n_settings = 0};
}

/* ---- the table ---- */

static void add_usage(struct psd_text *text, const struct psd_command_table *table, unsigned command)
{
	const struct psd_command *used = &table->commands[command];
	char name[NAME_ROOM];

	write_name(name, table, command);
	psd_text_add(text, "%s [OPTIONS]%s%s%s", name, *used->operand ? " " : "", used->operand,
		     used->has_operands ? "..." : "");
	for (unsigned i = 0; i < table->n_options; i++)
		if (table->options[i].is_needed && takes(&table->options[i], command))
			psd_text_add(text, " %s %s", table->options[i].name, table->options[i].value_name);
}

/* Column at which the texts behind names of these lengths begin. */
static int wider_indent(int indent, const char *name, const char *value_name)
{
	const int width = (int)(strlen(name) + (value_name ? strlen(value_name) + 1 : 0)) + NAME_GAP;

	return width <= indent ? indent : width < MOST_INDENT ? width : MOST_INDENT;
}

/* A name that is too long for its column gets a line of its own. */
static void add_row(struct psd_text *text, const char *name, const char *value_name, const char *help, int indent)
{
	const size_t begin = text->length;

	psd_text_add(text, "  %s%s%s", name, value_name ? " " : "", value_name ? value_name : "");
	const int width = (int)(text->length - begin);
	psd_text_add(text, width < indent ? "%*s" : "\n%*s", indent - (width < indent ? width : 0), "");
	psd_text_add_wrapped(text, help, indent, indent, psd_view_width(HELP_WIDTH));
}

static void add_commands(struct psd_text *text, const struct psd_command_table *table)
{
	int indent = 0;

	psd_text_add(text, "\nCommands, each with a --help of its own:\n");
	for (unsigned c = 0; c < table->n_commands; c++)
		if (table->commands[c].name)
			indent = wider_indent(indent, table->commands[c].name, NULL);
	for (unsigned c = 0; c < table->n_commands; c++)
		if (table->commands[c].name)
			add_row(text, table->commands[c].name, NULL, table->commands[c].help, indent);
}

void psd_command_table_add_help(struct psd_text *text, const struct psd_command_table *table, unsigned command)
{
	int indent = 0;

	psd_text_add(text, "usage: ");
	add_usage(text, table, command);
	psd_text_add(text, "\n\n");
	psd_text_add_wrapped(text, table->commands[command].help, 0, 0, psd_view_width(HELP_WIDTH));
	psd_text_add(text, "\n");
	for (const struct psd_option *option = table->options; option < table->options + table->n_options; option++)
		if (takes(option, command) && option->help)
			indent = wider_indent(indent, option->name, option->value_name);
	for (const struct psd_option *option = table->options; option < table->options + table->n_options; option++)
		if (takes(option, command) && option->help)
			add_row(text, option->name, option->value_name, option->help, indent);
	if (table->commands[command].name)
		return;
	add_commands(text, table);
	psd_text_add(text, "\nStatus: 0 done, 1 a run or an output failed, 2 bad usage or scenario%s.\n",
		     table->more_statuses ? table->more_statuses : "");
}

/* Appends the whole text of an option. */
static void add_option_text(struct psd_text *text, const struct psd_option *option)
{
	psd_text_add(text, "%s%s%s", option->help, option->more ? ". " : "", option->more ? option->more : "");
}

void psd_command_table_add_reference(struct psd_text *text, const struct psd_command_table *table)
{
	for (unsigned c = 0; c < table->n_commands; c++) {
		psd_text_add(text, "### `");
		add_usage(text, table, c);
		psd_text_add(text, "`\n\n");
		psd_text_add_wrapped(text, table->commands[c].help, 0, 0, REFERENCE_WIDTH);
		psd_text_add(text, "\n| option | effect |\n|---|---|\n");
		for (unsigned i = 0; i < table->n_options; i++) {
			const struct psd_option *option = &table->options[i];

			if (!takes(option, c) || !option->help)
				continue;
			psd_text_add(text, "| `%s%s%s` | ", option->name, option->value_name ? " " : "",
				     option->value_name ? option->value_name : "");
			add_option_text(text, option);
			psd_text_add(text, " |\n");
		}
		psd_text_add(text, "\n");
	}
}
