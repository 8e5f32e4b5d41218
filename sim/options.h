/* psd-sim's command line. Refuses to print errors and to open files. */
#ifndef PSD_SIM_OPTIONS_H
#define PSD_SIM_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/arguments.h"
#include "engine/base/error.h"
#include "engine/base/text.h"

/* Commands of psd-sim, in the order of its table. */
enum psd_sim_command {
	PSD_SIM_PREDICT,
	PSD_SIM_PLAN,
	PSD_SIM_DESCRIBE,
	PSD_SIM_SHOW,
	PSD_SIM_PLATFORM,
	PSD_SIM_STACKS
};

/* Texts about psd-sim that it prints instead of a prediction. */
enum psd_about {
	PSD_ABOUT_NOTHING,
	PSD_ABOUT_HELP,
	PSD_ABOUT_OPTIONS,
	PSD_ABOUT_KEYS,
	PSD_ABOUT_COLUMNS,
	PSD_ABOUT_VERSION,
};

enum psd_form { PSD_FORM_TABLE, PSD_FORM_CSV, PSD_FORM_JSON };

/* Options of psd-sim's command line. Strings are borrowed from argv. */
struct psd_options {
	unsigned about; /* text about psd-sim to print instead of a prediction, an enum psd_about */
	unsigned form;	/* form of the output, an enum psd_form */
	bool is_estimate;
	bool is_quiet;
	bool is_markdown;
	uint64_t n_processes;		/* number of concurrent processes; 0: one for each core */
	const char *trace_path;		/* path of the trace to write; NULL without --trace */
	const char *system_name;	/* name of the only system to predict; NULL: all systems */
	struct psd_arguments arguments; /* other arguments; their command is an enum psd_sim_command */
};

/* Reads psd-sim's command line into *options; psd_options_release() releases it. With an option that asks for a text
 * about psd-sim, the others are not checked. PSD_EINVAL with a line for the user, PSD_ENOMEM. */
enum psd_status psd_options_parse(struct psd_options *options, int argc, char *const argv[],
				  struct psd_error *err) PSD_MUST_CHECK;
/* Checks a first word that is not a command, see psd_command_table_check_word(). */
enum psd_status psd_options_check_word(const char *word, struct psd_error *err) PSD_MUST_CHECK;
void psd_options_release(struct psd_options *options);
void psd_options_add_help(struct psd_text *text, const struct psd_options *options);
void psd_options_add_reference(struct psd_text *text);

#endif
