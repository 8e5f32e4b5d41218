/* A command line read by one table of commands and options, which is also what --help and the reference print. Refuses
 * to print and to open files. */
#ifndef PSD_ARGUMENTS_H
#define PSD_ARGUMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/error.h"
#include "engine/base/text.h"

enum psd_option_kind {
	PSD_OPTION_FLAG,    /* bool */
	PSD_OPTION_TEXT,    /* const char *, borrowed from argv; refused if it is given twice */
	PSD_OPTION_COUNT,   /* uint64_t, from `least` to `most` */
	PSD_OPTION_SECONDS, /* double, more than 0 */
	PSD_OPTION_CHOICE,  /* unsigned, becomes `choice`; two different ones for the same member exclude each other */
	PSD_OPTION_SETTING, /* adds to the settings */
};

struct psd_option {
	const char *name;	/* "--csv" */
	const char *value_name; /* NULL: takes none */
	enum psd_option_kind kind;
	unsigned commands; /* bit c is set where command c takes it; 0: all do */
	bool is_needed;	   /* a command that takes it needs it */
	bool is_last;	   /* what follows on the command line is not looked at; its value may be missing */
	size_t offset;	   /* of the member in the program's own struct; a setting has none */
	uint64_t least, most;
	unsigned choice; /* not 0 */
	/* A setting whose values these are: "fidelity=flow" for `--fidelity flow`, NULL-terminated; NULL: its value is
	 * a setting itself. */
	const char *const *settings;
	const char *help; /* NULL: left out of the help, for the tree's own scripts */
};

struct psd_command {
	const char *name;    /* the first word of the command line, "plan"; NULL: the command without a word */
	const char *operand; /* "SCENARIO.yaml" */
	bool has_operands;   /* takes one or more of them, not just one */
	const char *help;
};

/* What somebody may try who knows another program or command, and what to say instead. */
struct psd_hint {
	const char *tried; /* an option, or a first word */
	const char *instead;
};

struct psd_command_table {
	const char *program; /* "psd-sim" */
	const struct psd_command *commands;
	unsigned n_commands;
	const struct psd_option *options;
	unsigned n_options;	      /* 64 at most */
	const struct psd_hint *hints; /* up to one without `tried`; may be NULL */
};

/* What is not in the program's own struct. Strings are borrowed from argv. */
struct psd_arguments {
	unsigned command;      /* its number in the table */
	const char **settings; /* "key=value", NULL-terminated, owned array */
	unsigned n_settings;
	const char **operands; /* owned array */
	unsigned n_operands;
	bool is_last;	   /* an option that is the last one was there */
	const char *topic; /* its value, or NULL */
};

/* Reads all of argv, -h as --help, into target, a struct that the table's offsets are of, and *arguments, released by
 * psd_arguments_release(); on failure it holds nothing. PSD_EINVAL with a line for the user, PSD_ENOMEM. */
enum psd_status psd_arguments_read(struct psd_arguments *arguments, const struct psd_command_table *table, void *target,
				   int argc, char *const argv[], struct psd_error *err) PSD_MUST_CHECK;
void psd_arguments_release(struct psd_arguments *arguments);

/* Why a first word that is no file is no command either: PSD_EINVAL. PSD_OK: it looks like a file's name. */
enum psd_status psd_command_table_check_word(const struct psd_command_table *table, const char *word,
					     struct psd_error *err) PSD_MUST_CHECK;

/* The help of one command; that of the first lists the others. */
void psd_command_table_add_help(struct psd_text *text, const struct psd_command_table *table, unsigned command);
/* Every command with its options, in Markdown. */
void psd_command_table_add_reference(struct psd_text *text, const struct psd_command_table *table);

#endif
