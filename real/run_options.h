/* psd-run's command line. Refuses to print errors and to open files. */
#ifndef PSD_REAL_RUN_OPTIONS_H
#define PSD_REAL_RUN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/arguments.h"
#include "engine/base/error.h"
#include "engine/base/text.h"

/* The commands in the order of psd-run's table. */
enum psd_run_command { PSD_RUN_TRAIN, PSD_RUN_CALIBRATE, PSD_RUN_PACK, PSD_RUN_WEIGHTS, PSD_RUN_SHOW };

/* Texts about psd-run that are printed instead of a command. */
enum psd_run_about {
	PSD_RUN_ABOUT_NOTHING,
	PSD_RUN_ABOUT_HELP,
	PSD_RUN_ABOUT_OPTIONS,
	PSD_RUN_ABOUT_KEYS,
	PSD_RUN_ABOUT_COLUMNS,
	PSD_RUN_ABOUT_VERSION,
};

/* Strings are borrowed from argv. */
struct psd_run_options {
	unsigned about; /* enum psd_run_about */
	bool is_csv;
	bool is_quiet;
	bool is_markdown;
	bool has_no_emulation;
	const char *hosts_path;	 /* or NULL: all on this machine */
	const char *secret_path; /* or NULL: connections are plain */
	uint64_t rank;		 /* this process's number among the hosts; UINT64_MAX: the environment's */
	const char *system_name; /* or NULL: all */
	uint64_t n_nodes;	 /* 0: the scenario's */
	uint64_t n_iterations;	 /* 0: the scenario's */
	double stall_sec;
	double join_sec;		/* 0: not given */
	uint64_t n_attempts;		/* most attempts at a measurement of `calibrate` */
	const char *dilation;		/* or NULL: the scenario's */
	const char *trace_path;		/* or NULL */
	const char *log_path;		/* or NULL */
	const char *save_path;		/* a folder, or NULL */
	uint64_t save_every;		/* iterations; 0: an epoch */
	bool resumes;			/* --resume or --restarts: a restarted host has the same command */
	uint64_t n_restarts;		/* most restarts */
	const char *output_path;	/* file that `pack`, `weights` or `calibrate` writes */
	uint64_t side;			/* width and height of packed images, in pixels */
	struct psd_arguments arguments; /* its command: enum psd_run_command */
};

/* Fills *options on success; psd_run_options_release() releases it. With `about` set, the other options are not
 * checked. PSD_EINVAL with a line for the user, PSD_ENOMEM. */
enum psd_status psd_run_options_parse(struct psd_run_options *options, int argc, char *const argv[],
				      struct psd_error *err) PSD_MUST_CHECK;
/* As psd_command_table_check_word(). */
enum psd_status psd_run_options_check_word(const char *word, struct psd_error *err) PSD_MUST_CHECK;
/* Checks a process that joins other hosts. PSD_EINVAL: an option is for a cluster on this machine. at: place of the
 * error; how: the quoted option or program by which it joins. */
enum psd_status psd_run_options_check_joined(const struct psd_run_options *options, struct psd_place at,
					     const char *how, struct psd_error *err) PSD_MUST_CHECK;
void psd_run_options_release(struct psd_run_options *options);
void psd_run_options_add_help(struct psd_text *text, const struct psd_run_options *options);
void psd_run_options_add_reference(struct psd_text *text);

#endif
