/* A command line read by a table of options, which is also what --help prints. Refuses to print and to open files. */
#ifndef PSD_ARGUMENTS_H
#define PSD_ARGUMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/error.h"
#include "engine/base/text.h"

enum psd_option_kind {
	PSD_OPTION_FLAG,    /* bool */
	PSD_OPTION_TEXT,    /* const char *, borrowed from argv */
	PSD_OPTION_COUNT,   /* uint64_t, from `least` to `most` */
	PSD_OPTION_SECONDS, /* double, more than 0 */
	PSD_OPTION_CHOICE,  /* unsigned, becomes `choice`; two different ones for the same member exclude each other */
	PSD_OPTION_SETTING, /* adds to the settings */
};

struct psd_option {
	const char *name;	/* "--csv" */
	const char *value_name; /* NULL: takes none */
	enum psd_option_kind kind;
	size_t offset; /* of the member in the program's own struct; a setting has none */
	uint64_t least, most;
	unsigned choice;    /* not 0 */
	size_t text_offset; /* a choice with a value: of the const char * that it goes to */
	bool is_last;	    /* what follows on the command line is not looked at */
	/* A setting whose values these are: "fidelity=flow" for `--fidelity flow`, NULL-terminated; NULL: its value is
	 * a setting itself. */
	const char *const *settings;
	const char *help;
};

struct psd_option_table {
	const char *program;	  /* "psd-sim", for "see psd-sim --help" */
	const char *introduction; /* of the help: usage and purpose, up to the options */
	const struct psd_option *options;
	unsigned n_options;
	unsigned most_scenarios; /* 0: any number */
};

/* What is not in the program's own struct. Strings are borrowed from argv. */
struct psd_arguments {
	const char **settings; /* "key=value", NULL-terminated, owned array */
	unsigned n_settings;
	const char **scenarios; /* paths, owned array */
	unsigned n_scenarios;
	bool is_last; /* an option that is the last one was there */
};

/* Reads all of argv into target, a struct that the table's offsets are of, and *arguments, released by
 * psd_arguments_release(); on failure it holds nothing. PSD_EINVAL with a line for the user, PSD_ENOMEM. */
enum psd_status psd_arguments_read(struct psd_arguments *arguments, const struct psd_option_table *table, void *target,
				   int argc, char *const argv[], struct psd_error *err) PSD_MUST_CHECK;
void psd_arguments_release(struct psd_arguments *arguments);

/* The option that makes the member at offset this choice; "" when there is none. */
const char *psd_option_of_choice(const struct psd_option_table *table, size_t offset, unsigned choice);
void psd_option_table_add_help(struct psd_text *text, const struct psd_option_table *table);

#endif
