/* psd-sim's command line. Refuses to print errors and to open files. */
#ifndef PSD_SIM_OPTIONS_H
#define PSD_SIM_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/arguments.h"
#include "engine/base/error.h"
#include "engine/base/text.h"

enum psd_mode {
	PSD_MODE_RESULTS,
	PSD_MODE_PLAN,
	PSD_MODE_DESCRIBE,
	PSD_MODE_PRINT_SCENARIO,
	PSD_MODE_DUMP_PLATFORM,
	PSD_MODE_KEYS,
	PSD_MODE_COLUMNS,
	PSD_MODE_HELP,
	PSD_MODE_VERSION,
};

enum psd_form { PSD_FORM_TABLE, PSD_FORM_CSV, PSD_FORM_JSON };

/* Strings are borrowed from argv. */
struct psd_options {
	unsigned mode; /* enum psd_mode */
	unsigned form; /* enum psd_form */
	bool is_estimate;
	bool is_quiet;
	uint64_t n_processes;	 /* 0: one for each core */
	const char *trace_path;	 /* or NULL */
	const char *model_path;	 /* of --describe */
	const char *system_name; /* or NULL: all */
	struct psd_arguments arguments;
};

/* *options is filled on success and released by psd_options_release(). With --columns, --help or --version the rest is
 * not looked at. PSD_EINVAL with a line for the user, PSD_ENOMEM. */
enum psd_status psd_options_parse(struct psd_options *options, int argc, char *const argv[],
				  struct psd_error *err) PSD_MUST_CHECK;
void psd_options_release(struct psd_options *options);
void psd_options_add_help(struct psd_text *text);

#endif
