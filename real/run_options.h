/* Command line of psd-run. Reads and checks it; neither prints errors nor opens files. */
#ifndef PSD_REAL_RUN_OPTIONS_H
#define PSD_REAL_RUN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/arguments.h"
#include "engine/base/error.h"
#include "engine/base/text.h"

/* Commands of psd-run, in the order of psd_run_options_table. */
enum psd_run_command { PSD_RUN_TRAIN, PSD_RUN_CALIBRATE, PSD_RUN_PACK, PSD_RUN_WEIGHTS, PSD_RUN_SHOW };

/* Texts that psd-run prints instead of executing a command, such as its help. */
enum psd_run_about {
	PSD_RUN_ABOUT_NOTHING,
	PSD_RUN_ABOUT_HELP,
	PSD_RUN_ABOUT_OPTIONS,
	PSD_RUN_ABOUT_SHARE, /* a file that is installed beside the program */
	PSD_RUN_ABOUT_KEYS,
	PSD_RUN_ABOUT_COLUMNS,
	PSD_RUN_ABOUT_VERSION,
};

/* Values of psd-run's command line. Strings are borrowed from argv. */
struct psd_run_options {
	unsigned about;	     /* text to print (enum psd_run_about); 0: execute the command */
	const char *version; /* version and commit of this psd-run, set by the caller */
	bool is_csv;
	bool is_quiet;
	bool is_markdown;
	bool is_wide; /* --wide: tables show all columns */
	bool has_no_emulation;
	/* --hosts: file with the hosts of the cluster; NULL: all processes are on this machine. */
	const char *hosts_path;
	/* --secret: file with the pre-shared secret of all hosts; NULL: connections are not encrypted. */
	const char *secret_path;
	/* --rank: number of this process among the hosts, from 0; UINT64_MAX: the number is taken from the
	 * environment. */
	uint64_t rank;
	/* --system: name of the system to run; NULL: all systems of the scenario are run. */
	const char *system_name;
	uint64_t n_nodes;      /* --nodes: number of nodes; 0: as in the scenario */
	uint64_t n_iterations; /* --iterations: number of iterations; 0: as in the scenario */
	double stall_sec;
	/* --join-timeout: time limit for hosts to join, seconds. 0: 120 s if the hosts are started elsewhere, otherwise
	 * PSD_LAUNCH_CONNECT_SEC. */
	double join_sec;
	/* --attempts of the command 'calibrate': largest number of attempts at each measurement. */
	uint64_t n_attempts;
	/* --dilation: factor by which a replay is slowed down, as text: a number or 'auto'; NULL: as in the
	 * scenario. */
	const char *dilation;
	const char *trace_path; /* --trace: file to write the trace to; NULL: none */
	const char *log_path;	/* --log: CSV file to write the log to; NULL: none */
	const char *save_path;	/* --save: folder of checkpoints; NULL: no checkpoints are written */
	/* Number of iterations between two checkpoints; 0: the number of iterations of one epoch. */
	uint64_t save_every;
	/* --resume: continue from the newest checkpoint. --restarts sets it, too, because a host that is started again
	 * has the same command line. */
	bool resumes;
	/* --restarts: largest number of times that a system is restarted after a lost host; 0: it is not restarted. */
	uint64_t n_restarts;
	/* File that the command 'pack', 'weights' or 'calibrate' writes; NULL: not given. */
	const char *output_path;
	uint64_t side; /* height and width of the images that 'pack' writes, pixels */
	/* Command (enum psd_run_command), and the words of the command line that are not options. */
	struct psd_arguments arguments;
};

/* Table of psd-run's commands and options. Public because tests check each entry. */
extern const struct psd_command_table psd_run_options_table;

/* Reads psd-run's command line into *options, which psd_run_options_release() releases. If an option such as --help
 * sets options->about, the other options are not checked. PSD_EINVAL: the command line is wrong; the text is one line
 * for the user. PSD_ENOMEM. */
enum psd_status psd_run_options_parse(struct psd_run_options *options, int argc, char *const argv[],
				      struct psd_error *err) PSD_MUST_CHECK;
/* Checks the options of a process that joins hosts which were started elsewhere. at: position for the error; how:
 * quoted name of the option or program by which the process joins, for the error. PSD_EINVAL: an option is only for
 * clusters on this machine. */
enum psd_status psd_run_options_check_joined(const struct psd_run_options *options, struct psd_place at,
					     const char *how, struct psd_error *err) PSD_MUST_CHECK;
void psd_run_options_release(struct psd_run_options *options);

#endif
