/* Reads a command line by a table of commands and options. --help and the reference of options are made from the same
 * table. This module does not print, and opens no files. */
#ifndef PSD_ARGUMENTS_H
#define PSD_ARGUMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/arena.h"
#include "engine/base/error.h"
#include "engine/base/text.h"

/* An option with a value must not be given twice, except for a PSD_OPTION_SETTING without psd_option.settings. */
enum psd_option_kind {
	PSD_OPTION_FLAG,    /* bool, set to true */
	PSD_OPTION_TEXT,    /* const char *, borrowed from argv */
	PSD_OPTION_COUNT,   /* uint64_t, from psd_option.least to most */
	PSD_OPTION_SECONDS, /* double, a number of seconds above 0 */
	/* unsigned, set to psd_option.choice. Options with the same offset exclude each other. */
	PSD_OPTION_CHOICE,
	PSD_OPTION_SETTING, /* setting "key=value" that is appended to psd_arguments.settings */
};

/* Role of a file or folder whose path is the value of an option. */
enum psd_option_file {
	PSD_OPTION_NO_FILE,
	PSD_OPTION_READS,  /* path of a file that the program reads */
	PSD_OPTION_WRITES, /* path of a file that the program writes */
	PSD_OPTION_KEEPS,  /* path of a folder in which the program keeps its own files, such as checkpoints */
};

struct psd_option {
	/* Name of the option with its dashes, such as "--csv". Several options may have one name if no command accepts
	 * two of them. */
	const char *name;
	/* word for the option's value in the help, such as "N"; NULL: the option has no value */
	const char *value_name;
	enum psd_option_kind kind;
	enum psd_option_file file; /* role of the file that the value of a PSD_OPTION_TEXT names */
	unsigned commands;	   /* commands that accept the option: bit c for command number c; 0: all commands */
	bool is_needed;		   /* commands that accept the option require it */
	/* Arguments behind the option and its value are ignored, and the value may be missing, as with --help. */
	bool is_last;
	size_t offset; /* offset of the member in the program's own struct; unused with PSD_OPTION_SETTING */
	uint64_t least, most;
	unsigned choice; /* value that a PSD_OPTION_CHOICE stores; not 0 */
	/* For PSD_OPTION_SETTING: settings that the words accepted as the option's value mean, NULL-terminated. For
	 * `--fidelity flow` the setting is "--fidelity fidelity =flow". NULL: the value itself is a setting. */
	const char *const *settings;
	/* beginning of the keys that the option sets: "model.input.". Its setting is "--option model.input. key=value".
	 * NULL: none */
	const char *prefix;
	bool is_list; /* with prefix: the value is put into brackets, KEY=A,B becomes KEY=[A,B] */
	/* Help text. NULL: the help does not list the option, because only scripts of this repository use it. */
	const char *help;
	/* Further sentences, which the reference has and --help leaves out; NULL: none. */
	const char *more;
};

struct psd_command {
	/* First word of the command line, such as "plan". NULL: the command that is meant if the command line has no
	 * such word. */
	const char *name;
	/* word for the command's argument in the help, such as "SCENARIO.yaml"; "": the command has none */
	const char *operand;
	bool has_operands; /* the command has one or more arguments beside its options; false: exactly one */
	const char *help;
	bool may_lack_operands; /* the command may also have no arguments */
};

/* Hint for a user who tries an option or command of another program. */
struct psd_hint {
	const char *tried;   /* option or first word that the user may have tried */
	const char *instead; /* option or command that the message recommends in place of `tried` */
};

struct psd_command_table {
	const char *program; /* name of the program, such as "psd-sim" */
	const struct psd_command *commands;
	unsigned n_commands;
	const struct psd_option *options;
	unsigned n_options; /* number of options, at most 64 */
	/* Last words of the help's line about exit statuses; NULL: none. */
	const char *more_statuses;
	const struct psd_hint *hints; /* hints; the last entry has `tried` NULL. May be NULL. */
};

/* Result of reading a command line, beside the members of the program's own struct. Strings are borrowed from argv. */
struct psd_arguments {
	unsigned command;      /* index of the command in the table */
	const char **settings; /* settings "key=value", n_settings entries and a NULL; the array is owned */
	struct psd_arena made; /* memory of the settings to which psd_option.prefix was added */
	unsigned n_settings;
	/* arguments of the command without options, n_operands entries; the array is owned */
	const char **operands;
	unsigned n_operands;
	bool is_last; /* an option with psd_option.is_last was given, such as --help */
	/* value of the option with psd_option.is_last, such as the topic of the help; NULL: no value */
	const char *topic;
};

/* Reads the whole command line; -h means --help. Options may be in front of the command's name. target: the program's
 * own struct. *arguments is released by psd_arguments_release(); it is empty after a failure. PSD_EINVAL with a line
 * for the user, PSD_ENOMEM. */
enum psd_status psd_arguments_read(struct psd_arguments *arguments, const struct psd_command_table *table, void *target,
				   int argc, char *const argv[], struct psd_error *err) PSD_MUST_CHECK;
/* Records the files that are values of options. If the program reads them, or keeps its own files there, they are noted
 * as inputs (inputs.h). If the program writes them, their paths are claimed (output.h). target: the program's own
 * struct. PSD_EINVAL: a file to write is also an input, or is written twice. PSD_EFILE, PSD_ENOMEM. */
enum psd_status psd_arguments_plan_files(const struct psd_command_table *table, const void *target,
					 struct psd_error *err) PSD_MUST_CHECK;
void psd_arguments_release(struct psd_arguments *arguments);

/* Checks the first word of a command line if it is not a command. PSD_OK: it may be the name of a file. PSD_EINVAL: it
 * looks like a wrong command; the text explains it. */
enum psd_status psd_command_table_check_word(const struct psd_command_table *table, const char *word,
					     struct psd_error *err) PSD_MUST_CHECK;

/* Appends the help of command number `command`. The help of the command whose name is NULL also lists the other
 * commands. */
void psd_command_table_add_help(struct psd_text *text, const struct psd_command_table *table, unsigned command);
/* Appends the reference of all commands and their options, in Markdown. */
void psd_command_table_add_reference(struct psd_text *text, const struct psd_command_table *table);

#endif
