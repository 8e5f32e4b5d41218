#include "engine/base/share.h"

#include <string.h>

/* ---- the manual page ---- */

void psd_manual_add_title(struct psd_text *text, const char *name, unsigned section, const char *version)
{
	psd_text_add(text, ".TH \"%s\" %u \"\" \"psd %.*s\" \"psd\"\n", name, section, (int)strcspn(version, " "),
		     version);
}

static void add_character(struct psd_text *text, char c)
{
	if (c == '\\')
		psd_text_add(text, "\\e");
	else if (c == '-')
		psd_text_add(text, "\\-");
	else if (c == '\'')
		psd_text_add(text, "\\(aq");
	else if (c == '^')
		psd_text_add(text, "\\(ha");
	else if (c == '~')
		psd_text_add(text, "\\(ti");
	else
		psd_text_add_bytes(text, &c, 1);
}

void psd_manual_add_line(struct psd_text *text, const char *words)
{
	bool is_bold = false;

	psd_text_add(text, "%s", *words == '.' ? "\\&" : "");
	for (; *words; words++) {
		if (*words != '`') {
			add_character(text, *words);
			continue;
		}
		is_bold = !is_bold;
		psd_text_add(text, "%s", is_bold ? "\\fB" : "\\fR");
	}
	psd_text_add(text, "%s\n", is_bold ? "\\fR" : "");
}

static bool takes(const struct psd_option *option, unsigned command)
{
	return option->help && (!option->commands || (option->commands >> command & 1u));
}

static void add_synopsis(struct psd_text *text, const struct psd_command_table *table, unsigned command)
{
	const struct psd_command *used = &table->commands[command];

	psd_text_add(text, ".B %s%s%s\n[\\fIOPTIONS\\fR]%s\\fI%s\\fR%s", table->program, used->name ? " " : "",
		     used->name ? used->name : "", *used->operand ? " " : "", used->operand,
		     used->has_operands ? "..." : "");
	for (unsigned i = 0; i < table->n_options; i++)
		if (table->options[i].is_needed && takes(&table->options[i], command))
			psd_text_add(text, " \\fB\\%s\\fR \\fI%s\\fR", table->options[i].name,
				     table->options[i].value_name);
	psd_text_add(text, "\n");
}

static void add_manual_option(struct psd_text *text, const struct psd_option *option)
{
	struct psd_text words = {.bytes = NULL};

	psd_text_add(&words, "`%s`", option->name);
	psd_text_add(text, ".TP\n");
	if (option->value_name)
		psd_text_add(&words, " %s", option->value_name);
	psd_manual_add_line(text, words.bytes ? words.bytes : "");
	psd_text_clear(&words);
	psd_text_add(&words, "%s%s%s.", option->help, option->more ? ". " : "", option->more ? option->more : "");
	psd_manual_add_line(text, words.bytes ? words.bytes : "");
	text->is_out_of_memory = text->is_out_of_memory || words.is_out_of_memory;
	psd_text_release(&words);
}

static void add_manual(struct psd_text *text, const struct psd_command_table *table, const char *version)
{
	psd_manual_add_title(text, table->program, 1, version);
	psd_text_add(text, ".SH NAME\n%s \\- ", table->program);
	psd_manual_add_line(text, table->commands[0].help);
	psd_text_add(text, ".SH SYNOPSIS\n");
	for (unsigned c = 0; c < table->n_commands; c++) {
		psd_text_add(text, "%s", c ? ".br\n" : "");
		add_synopsis(text, table, c);
	}
	psd_text_add(text, ".SH COMMANDS AND OPTIONS\n");
	for (unsigned c = 0; c < table->n_commands; c++) {
		psd_text_add(text, ".SS %s%s%s\n", table->program, table->commands[c].name ? " " : "",
			     table->commands[c].name ? table->commands[c].name : "");
		psd_manual_add_line(text, table->commands[c].help);
		for (unsigned i = 0; i < table->n_options; i++)
			if (takes(&table->options[i], c))
				add_manual_option(text, &table->options[i]);
	}
	psd_text_add(text, ".SH EXIT STATUS\n");
	psd_text_add(text, "0 done, 1 a run or an output failed, 2 bad usage or scenario%s.\n",
		     table->more_statuses ? table->more_statuses : "");
	psd_text_add(text, ".SH SEE ALSO\n.BR psd\\-sim (1),\n.BR psd\\-run (1),\n.BR psd\\-plot (1),\n"
			   ".BR psd\\-scenario (5)\n");
}

/* ---- completion ---- */

enum value { VALUE_NONE, VALUE_FILE, VALUE_WORDS, VALUE_KEY, VALUE_OTHER };

static enum value value_of(const struct psd_option *option)
{
	static const char *const files[] = {"FILE", "FOLDER", "MODEL", ".", "OUT"};

	if (!option->value_name)
		return VALUE_NONE;
	if (option->settings)
		return VALUE_WORDS;
	if (strstr(option->value_name, "KEY"))
		return VALUE_KEY;
	for (size_t f = 0; f < sizeof(files) / sizeof(files[0]); f++)
		if (option->kind == PSD_OPTION_TEXT && strstr(option->value_name, files[f]))
			return VALUE_FILE;
	return VALUE_OTHER;
}

/* Appends the program's name as a name of a shell's function. */
static void add_function(struct psd_text *text, const struct psd_command_table *table)
{
	psd_text_add(text, "_");
	for (const char *c = table->program; *c; c++)
		psd_text_add(text, "%c", *c == '-' ? '_' : *c);
}

static void add_names(struct psd_text *text, const struct psd_command_table *table, const char *between)
{
	const char *separator = "";

	for (unsigned c = 0; c < table->n_commands; c++)
		if (table->commands[c].name) {
			psd_text_add(text, "%s%s", separator, table->commands[c].name);
			separator = between;
		}
}

static void add_words(struct psd_text *text, const struct psd_option *option)
{
	for (unsigned i = 0; option->settings[i]; i++)
		psd_text_add(text, "%s%s", i ? " " : "", strchr(option->settings[i], '=') + 1);
}

/* The case of a shell for options of one kind of value; several rows may have one name. */
static void add_bash_values(struct psd_text *text, const struct psd_command_table *table, enum value value,
			    const char *action)
{
	const char *separator = "\t";

	for (unsigned i = 0; i < table->n_options; i++) {
		if (!table->options[i].help || value_of(&table->options[i]) != value)
			continue;
		psd_text_add(text, "%s%s", separator, table->options[i].name);
		separator = " | ";
	}
	if (*separator == ' ')
		psd_text_add(text, ") %s ;;\n", action);
}

static void add_bash(struct psd_text *text, const struct psd_command_table *table, const char *keys)
{
	psd_text_add(text, "# Completion of %s for bash.\n", table->program);
	add_function(text, table);
	psd_text_add(text,
		     "() {\n\tlocal current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}\n"
		     "\tlocal command='' options='' word\n\tlocal keys='%s'\n",
		     keys ? keys : "");
	psd_text_add(text, "\tfor word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n\t\tcase $word in\n\t\t");
	add_names(text, table, " | ");
	psd_text_add(text, ") command=$word; break ;;\n\t\tesac\n\tdone\n\tCOMPREPLY=()\n\tcase $before in\n");
	for (unsigned i = 0; i < table->n_options; i++)
		if (value_of(&table->options[i]) == VALUE_WORDS) {
			psd_text_add(text, "\t%s) mapfile -t COMPREPLY < <(compgen -W '", table->options[i].name);
			add_words(text, &table->options[i]);
			psd_text_add(text, "' -- \"$current\"); return ;;\n");
		}
	add_bash_values(text, table, VALUE_KEY,
			"mapfile -t COMPREPLY < <(compgen -W \"$keys\" -- \"$current\"); compopt -o nospace; return");
	add_bash_values(text, table, VALUE_FILE, "return");
	add_bash_values(text, table, VALUE_OTHER, "compopt +o default; return");
	psd_text_add(text, "\tesac\n\tcase $command in\n");
	for (unsigned c = table->n_commands; c-- > 0;) {
		psd_text_add(text, "\t%s) options='", table->commands[c].name ? table->commands[c].name : "*");
		for (unsigned i = 0; i < table->n_options; i++)
			if (takes(&table->options[i], c))
				psd_text_add(text, "%s ", table->options[i].name);
		psd_text_add(text, "' ;;\n");
	}
	psd_text_add(text, "\tesac\n\tcase $current in\n\t-*) mapfile -t COMPREPLY < <(compgen -W \"$options\" -- "
			   "\"$current\") ;;\n\t*)\n\t\tif [ -z \"$command\" ]; then\n\t\t\tmapfile -t COMPREPLY < "
			   "<(compgen -W '");
	add_names(text, table, " ");
	psd_text_add(text, "' -- \"$current\")\n\t\tfi\n\t\t;;\n\tesac\n}\ncomplete -o default -F ");
	add_function(text, table);
	psd_text_add(text, " %s\n", table->program);
}

/* Appends words inside single quotes of a shell, with a backslash before each of the `escaped` characters. */
static void add_quoted(struct psd_text *text, const char *words, const char *escaped)
{
	for (; *words; words++) {
		if (*words == '\'')
			psd_text_add(text, "'\\''");
		else
			psd_text_add(text, "%s%c", strchr(escaped, *words) ? "\\" : "", *words);
	}
}

static void add_zsh_option(struct psd_text *text, const struct psd_option *option)
{
	const enum value value = value_of(option);

	psd_text_add(text, " \\\n\t\t\t'%s%s[", option->kind == PSD_OPTION_SETTING ? "*" : "", option->name);
	add_quoted(text, option->help, "[]:\\");
	psd_text_add(text, "]");
	if (value != VALUE_NONE) {
		psd_text_add(text, ":");
		add_quoted(text, option->value_name, "[]:\\");
		psd_text_add(text, ":");
	}
	if (value == VALUE_FILE)
		psd_text_add(text, "_files");
	else if (value == VALUE_KEY)
		psd_text_add(text, "($keys)");
	if (value == VALUE_WORDS) {
		psd_text_add(text, "(");
		add_words(text, option);
		psd_text_add(text, ")");
	}
	psd_text_add(text, "'");
}

static void add_zsh(struct psd_text *text, const struct psd_command_table *table, const char *keys)
{
	psd_text_add(text, "#compdef %s\n# Completion of %s for zsh.\n", table->program, table->program);
	add_function(text, table);
	psd_text_add(text, "() {\n\tlocal command=\"\" word\n\tlocal -a keys\n\tkeys=(%s)\n", keys ? keys : "");
	psd_text_add(text, "\tfor word in ${words[2,CURRENT-1]}; do\n\t\tcase $word in\n\t\t");
	add_names(text, table, " | ");
	psd_text_add(text, ") command=$word; break ;;\n\t\tesac\n\tdone\n\tcase $command in\n");
	for (unsigned c = table->n_commands; c-- > 0;) {
		const char *name = table->commands[c].name;

		psd_text_add(text, "\t%s)\n\t\t_arguments -S", name ? name : "*");
		for (unsigned i = 0; i < table->n_options; i++)
			if (takes(&table->options[i], c))
				add_zsh_option(text, &table->options[i]);
		if (!name) {
			psd_text_add(text, " \\\n\t\t\t'1:command or file:{_alternative \"commands:command:(");
			add_names(text, table, " ");
			psd_text_add(text, ")\" \"files:file:_files\"}'");
		}
		psd_text_add(text, " \\\n\t\t\t'*:file:_files'\n\t\t;;\n");
	}
	psd_text_add(text, "\tesac\n}\n");
	add_function(text, table);
	psd_text_add(text, " \"$@\"\n");
}

static void add_fish_option(struct psd_text *text, const struct psd_command_table *table,
			    const struct psd_option *option, unsigned command, const char *keys)
{
	const enum value value = value_of(option);
	const char *name = table->commands[command].name;

	psd_text_add(text, "complete -c %s -n '%s__fish_seen_subcommand_from ", table->program, name ? "" : "not ");
	if (name)
		psd_text_add(text, "%s", name);
	else
		add_names(text, table, " ");
	psd_text_add(text, "' -%s %s", option->name[1] == '-' ? "l" : "s",
		     option->name + (option->name[1] == '-' ? 2 : 1));
	if (value != VALUE_NONE)
		psd_text_add(text, value == VALUE_FILE ? " -r" : " -x");
	if (value == VALUE_WORDS || (value == VALUE_KEY && keys)) {
		psd_text_add(text, " -a '");
		if (value == VALUE_WORDS)
			add_words(text, option);
		else
			psd_text_add(text, "%s", keys);
		psd_text_add(text, "'");
	}
	psd_text_add(text, " -d \"");
	for (const char *c = option->help; *c; c++)
		psd_text_add(text, "%s%c", strchr("\"$\\", *c) ? "\\" : "", *c);
	psd_text_add(text, "\"\n");
}

static void add_fish(struct psd_text *text, const struct psd_command_table *table, const char *keys)
{
	psd_text_add(text, "# Completion of %s for fish.\n", table->program);
	for (unsigned c = 0; c < table->n_commands; c++) {
		if (table->commands[c].name) {
			psd_text_add(text, "complete -c %s -n __fish_use_subcommand -a %s -d \"", table->program,
				     table->commands[c].name);
			for (const char *at = table->commands[c].help; *at; at++)
				psd_text_add(text, "%s%c", strchr("\"$\\", *at) ? "\\" : "", *at);
			psd_text_add(text, "\"\n");
		}
		for (unsigned i = 0; i < table->n_options; i++)
			if (takes(&table->options[i], c))
				add_fish_option(text, table, &table->options[i], c, keys);
	}
}

enum psd_status psd_command_table_add_share(struct psd_text *text, const struct psd_command_table *table,
					    const struct psd_share *share, struct psd_error *err)
{
	const char *kind = share->kind ? share->kind : "";

	if (!strcmp(kind, "man"))
		add_manual(text, table, share->version);
	else if (!strcmp(kind, "bash"))
		add_bash(text, table, share->keys);
	else if (!strcmp(kind, "zsh"))
		add_zsh(text, table, share->keys);
	else if (!strcmp(kind, "fish"))
		add_fish(text, table, share->keys);
	else
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE,
				     "'--share' is '%.80s', must be man, bash, zsh or fish", kind);
	return PSD_OK;
}
