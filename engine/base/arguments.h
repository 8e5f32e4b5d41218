/* Reads a command line by one table of commands and options, which --help and the reference print as well. Refuses to
 * print and to open files. */
#ifndef PSD_ARGUMENTS_H
#define PSD_ARGUMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/error.h"
#include "engine/base/text.h"

enum psd_option_kind {
	PSD_OPTION_FLAG,    /* bool */
	PSD_OPTION_TEXT,    /* const char *, borrowed from argv; must not be repeated */
	PSD_OPTION_COUNT,   /* uint64_t, from `least` to `most` */
	PSD_OPTION_SECONDS, /* double, more than 0 */
	PSD_OPTION_CHOICE,  /* unsigned, becomes `choice`; two options of one member exclude each other */
	PSD_OPTION_SETTING, /* adds to the settings */
};

/* Role of the file that an option's value names. */
enum psd_option_file {
	PSD_OPTION_NO_FILE,
	PSD_OPTION_READS,  /* a file */
	PSD_OPTION_WRITES, /* a file */
	PSD_OPTION_KEEPS,  /* a folder of files */
};

struct psd_option {
	const char *name;	/* "--csv" */
	const char *value_name; /* NULL: the option takes no value */
	enum psd_option_kind kind;
	enum psd_option_file file; /* role of a text option's value */
	unsigned commands;	   /* bit c: command c takes the option; 0: all commands do */
	bool is_needed;		   /* commands that take the option require it */
	bool is_last;		   /* arguments behind it and its value are ignored; the value may be missing */
	size_t offset;		   /* position of the member in the program's own struct; unused for a setting */
	uint64_t least, most;
	unsigned choice; /* not 0 */
	/* The settings that the option's values become, NULL-terminated: "fidelity=flow" for `--fidelity flow`. NULL:
	 * the value is a setting itself. */
	const char *const *settings;
	const char *help; /* NULL: left out of the help, for the tree's own scripts */
};

struct psd_command {
	const char *name;    /* "plan", the first word that is no option; NULL: the command without a word */
	const char *operand; /* "SCENARIO.yaml" */
	bool has_operands;   /* the command takes one or more operands instead of exactly one */
	const char *help;
};

/* Advice for users who know another program or command. */
struct psd_hint {
	const char *tried;   /* an option, or a first word */
	const char *instead; /* the words to use */
};

struct psd_command_table {
	const char *program; /* "psd-sim" */
	const struct psd_command *commands;
	unsigned n_commands;
	const struct psd_option *options;
	unsigned n_options;	      /* 64 at most */
	const char *more_statuses;    /* the end of the line of statuses; or NULL */
	const struct psd_hint *hints; /* the last has no `tried`; may be NULL */
};

/* Arguments that are not in the program's own struct. Strings are borrowed from argv. */
struct psd_arguments {
	unsigned command;      /* its number in the table */
	const char **settings; /* "key=value", NULL-terminated, owned array */
	unsigned n_settings;
	const char **operands; /* owned array */
	unsigned n_operands;
	bool is_last;	   /* an option with is_last was present */
	const char *topic; /* its value, or NULL */
};

/* Reads all of argv, -h as --help. The command's name may stand behind options. target: the program's own struct, to
 * which the table's offsets refer. *arguments: released by psd_arguments_release(), empty on failure. PSD_EINVAL with a
 * line for the user, PSD_ENOMEM. */
enum psd_status psd_arguments_read(struct psd_arguments *arguments, const struct psd_command_table *table, void *target,
				   int argc, char *const argv[], struct psd_error *err) PSD_MUST_CHECK;
/* Notes the files that the options in target read as inputs (inputs.h), then plans those that they write (output.h).
 * PSD_EINVAL: one is read, kept, or written twice; PSD_EFILE, PSD_ENOMEM. */
enum psd_status psd_arguments_plan_files(const struct psd_command_table *table, const void *target,
					 struct psd_error *err) PSD_MUST_CHECK;
void psd_arguments_release(struct psd_arguments *arguments);

/* Explains that a first word is neither a file nor a command: PSD_EINVAL. PSD_OK: it looks like a file's name. */
enum psd_status psd_command_table_check_word(const struct psd_command_table *table, const char *word,
					     struct psd_error *err) PSD_MUST_CHECK;

/* Adds the help of one command; the command without a word lists the others. */
void psd_command_table_add_help(struct psd_text *text, const struct psd_command_table *table, unsigned command);
/* Adds every command with its options, in Markdown. */
void psd_command_table_add_reference(struct psd_text *text, const struct psd_command_table *table);

#endif
