/* psd-run's command line. Refuses to print errors and to open files. */
#ifndef PSD_REAL_RUN_OPTIONS_H
#define PSD_REAL_RUN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/arguments.h"
#include "engine/base/error.h"
#include "engine/base/text.h"

/* Commands of psd-run, in the order of its table. */
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

/* Options of psd-run's command line. Strings are borrowed from argv. */
struct psd_run_options {
	unsigned about;	     /* enum psd_run_about */
	const char *version; /* version and commit of this psd-run; the caller's */
	bool is_csv;
	bool is_quiet;
	bool is_markdown;
	bool has_no_emulation;
	const char *hosts_path;	 /* hosts file; NULL: all processes are on this machine */
	const char *secret_path; /* file of the pre-shared key; NULL: connections are not encrypted */
	uint64_t rank;		 /* number of this process among the hosts; UINT64_MAX: from the environment */
	const char *system_name; /* name of the only system to run; NULL: all systems */
	uint64_t n_nodes;	 /* number of nodes; 0: as in the scenario */
	uint64_t n_iterations;	 /* number of iterations; 0: as in the scenario */
	double stall_sec;
	double join_sec;	/* limit to join; 0: not given */
	uint64_t n_attempts;	/* `calibrate`: largest number of attempts at a measurement */
	const char *dilation;	/* text of --dilation; NULL: as in the scenario */
	const char *trace_path; /* file of the trace; NULL: none */
	const char *log_path;	/* file of the log; NULL: none */
	const char *save_path;	/* folder of checkpoints; NULL: none are written */
	uint64_t save_every;	/* interval of checkpoints in iterations; 0: an epoch */
	bool resumes; /* resume from a checkpoint: --resume or --restarts, as a restarted host has the same command */
	uint64_t n_restarts;		/* largest number of restarts of a system */
	const char *output_path;	/* path of the file that `pack`, `weights` or `calibrate` writes */
	uint64_t side;			/* height and width of packed images, pixels */
	struct psd_arguments arguments; /* other arguments; their command is an enum psd_run_command */
};

/* Commands and options; for tests, which go through them. */
extern const struct psd_command_table psd_run_options_table;

/* Reads psd-run's command line into *options; psd_run_options_release() releases it. With `about` set, the other
 * options are not checked. PSD_EINVAL with a line for the user, PSD_ENOMEM. */
enum psd_status psd_run_options_parse(struct psd_run_options *options, int argc, char *const argv[],
				      struct psd_error *err) PSD_MUST_CHECK;
/* Notes the files that the options read and plans those that they write, see psd_arguments_plan_files(). */
enum psd_status psd_run_options_plan_files(const struct psd_run_options *options, struct psd_error *err) PSD_MUST_CHECK;
/* Checks a first word that is not a command, see psd_command_table_check_word(). */
enum psd_status psd_run_options_check_word(const char *word, struct psd_error *err) PSD_MUST_CHECK;
/* Checks the options of a process that joins other hosts. PSD_EINVAL: one is for a cluster on this machine. at: place
 * of the error; how: the quoted option or program by which it joins. */
enum psd_status psd_run_options_check_joined(const struct psd_run_options *options, struct psd_place at,
					     const char *how, struct psd_error *err) PSD_MUST_CHECK;
void psd_run_options_release(struct psd_run_options *options);
void psd_run_options_add_help(struct psd_text *text, const struct psd_run_options *options);
void psd_run_options_add_reference(struct psd_text *text);

#endif
