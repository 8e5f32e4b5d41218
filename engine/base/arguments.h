/* Reads a command line by one table of commands and options, which --help and the reference print as well. Refuses to
 * print and to open files. */
#ifndef PSD_ARGUMENTS_H
#define PSD_ARGUMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/arena.h"
#include "engine/base/error.h"
#include "engine/base/text.h"

enum psd_option_kind {
	PSD_OPTION_FLAG,    /* bool in the program's struct, set to true */
	PSD_OPTION_TEXT,    /* const char *, borrowed from argv; the option must not be repeated */
	PSD_OPTION_COUNT,   /* uint64_t in the program's struct, from `least` to `most` */
	PSD_OPTION_SECONDS, /* double in the program's struct, a number of seconds above 0 */
	PSD_OPTION_CHOICE,  /* unsigned, set to `choice`; two options of one member exclude each other */
	PSD_OPTION_SETTING, /* value that is appended to the settings */
};

/* Role of the file that an option's value names. */
enum psd_option_file {
	PSD_OPTION_NO_FILE,
	PSD_OPTION_READS,  /* a file */
	PSD_OPTION_WRITES, /* a file */
	PSD_OPTION_KEEPS,  /* a folder of files */
};

struct psd_option {
	const char *name;	/* name of the option with its dashes, "--csv" */
	const char *value_name; /* word for the option's value in the help; NULL: the option takes no value */
	enum psd_option_kind kind;
	enum psd_option_file file; /* role of a text option's value */
	unsigned commands;	   /* commands that take the option, bit c for command c; 0: all */
	bool is_needed;		   /* the option is required by commands that take it */
	bool is_last;		   /* arguments behind it and its value are ignored; the value may be missing */
	size_t offset;		   /* offset of the member in the program's own struct; unused for a setting */
	uint64_t least, most;
	unsigned choice; /* value that a PSD_OPTION_CHOICE sets, not 0 */
	/* Settings that the option makes of its value, NULL-terminated: "fidelity=flow" for `--fidelity flow`. NULL:
	 * the value itself is a setting. */
	const char *const *settings;
	const char *prefix; /* beginning of the settings that the option makes: "model.input."; NULL: none */
	const char *help; /* help text; NULL: the option is not in the help, since only the tree's own scripts use it */
};

struct psd_command {
	const char *name;    /* first word of the command line, "plan"; NULL: the command without a word */
	const char *operand; /* word for the command's operand in the help, "SCENARIO.yaml" */
	bool has_operands;   /* the command takes one or more operands instead of exactly one */
	const char *help;
	bool may_lack_operands; /* the command may also have none */
};

/* Advice for users of another program or command. */
struct psd_hint {
	const char *tried;   /* option or first word that a user may try */
	const char *instead; /* words to use in its place */
};

struct psd_command_table {
	const char *program; /* name of the program, "psd-sim" */
	const struct psd_command *commands;
	unsigned n_commands;
	const struct psd_option *options;
	unsigned n_options;	      /* number of options, at most 64 */
	const char *more_statuses;    /* end of the help line about exit statuses; NULL: nothing is added */
	const struct psd_hint *hints; /* list of hints whose last has no `tried`; may be NULL */
};

/* Parts of a command line that are not in the program's own struct. Strings are borrowed from argv. */
struct psd_arguments {
	unsigned command;      /* number of the command in the table */
	const char **settings; /* settings "key=value", NULL-terminated; owned array */
	struct psd_arena made; /* settings with a prefix */
	unsigned n_settings;
	const char **operands; /* operands of the command; owned array */
	unsigned n_operands;
	bool is_last;	   /* an option with is_last (such as --help) was given */
	const char *topic; /* value of that option: the topic of a help text; NULL: none */
};

/* Reads the whole command line; -h is --help. The command's name may be behind options. target: the program's own
 * struct, to which the table's offsets refer. *arguments: released by psd_arguments_release(), empty on failure.
 * PSD_EINVAL with a line for the user, PSD_ENOMEM. */
enum psd_status psd_arguments_read(struct psd_arguments *arguments, const struct psd_command_table *table, void *target,
				   int argc, char *const argv[], struct psd_error *err) PSD_MUST_CHECK;
/* Notes the files that the options in target read as inputs (inputs.h), then plans those that they write (output.h).
 * PSD_EINVAL: one is read, kept, or written twice; PSD_EFILE, PSD_ENOMEM. */
enum psd_status psd_arguments_plan_files(const struct psd_command_table *table, const void *target,
					 struct psd_error *err) PSD_MUST_CHECK;
void psd_arguments_release(struct psd_arguments *arguments);

/* Checks a first word that is not a command. PSD_OK: it may be a file's name. PSD_EINVAL: no; the text explains it. */
enum psd_status psd_command_table_check_word(const struct psd_command_table *table, const char *word,
					     struct psd_error *err) PSD_MUST_CHECK;

/* Adds the help of one command; the command without a word lists the others. */
void psd_command_table_add_help(struct psd_text *text, const struct psd_command_table *table, unsigned command);
/* Adds a reference of all commands with their options, in Markdown. */
void psd_command_table_add_reference(struct psd_text *text, const struct psd_command_table *table);

#endif
