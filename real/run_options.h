/* psd-run's command line: one table that is parsed from and printed by --help. Refuses to print errors and to open files. */
#ifndef PSD_REAL_RUN_OPTIONS_H
#define PSD_REAL_RUN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "engine/error.h"

/* Strings are borrowed from argv. */
struct psd_run_options {
	bool is_help, is_version;
	bool is_csv;
	bool is_quiet;
	bool has_no_emulation;
	const char *system_name; /* or NULL: all */
	uint64_t n_nodes;	 /* 0: the scenario's */
	uint64_t n_iterations;	 /* 0: the scenario's */
	double stall_sec;
	const char **settings; /* "key=value", NULL-terminated, owned array */
	unsigned n_settings;
	const char *scenario_path;
};

/* *options is filled on success and released by psd_run_options_release(). With --help or --version the rest is not looked at. PSD_EINVAL
 * with a line for the user, PSD_ENOMEM. */
enum psd_status psd_run_options_parse(struct psd_run_options *options, int argc, char *const argv[],
				      struct psd_error *err) PSD_MUST_CHECK;
void psd_run_options_release(struct psd_run_options *options);
/* Write errors stay in the stream's flag. */
void psd_run_options_write_help(FILE *out);

#endif
