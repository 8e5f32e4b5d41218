/* Reads psd-sim's command line. This module prints nothing and opens no files. */
#ifndef PSD_SIM_OPTIONS_H
#define PSD_SIM_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/arguments.h"
#include "engine/base/error.h"
#include "engine/base/text.h"
#include "sim/init.h"

/* Commands of psd-sim, in the order of its table. */
enum psd_sim_command {
	PSD_SIM_PREDICT,
	PSD_SIM_PLAN,
	PSD_SIM_DESCRIBE,
	PSD_SIM_SHOW,
	PSD_SIM_PLATFORM,
	PSD_SIM_ASK,
	PSD_SIM_STACKS,
	PSD_SIM_MERGE, /* joins the parts of a sweep */
	PSD_SIM_IMPORT,
	PSD_SIM_INIT,	    /* writes a new scenario */
	PSD_SIM_QUICKSTART, /* predicts an installed scenario; psd_options_name_scenario() makes it PREDICT */
};

/* Text about psd-sim that an option such as --help prints; a prediction is then not made. */
enum psd_about {
	PSD_ABOUT_NOTHING,
	PSD_ABOUT_HELP,
	PSD_ABOUT_OPTIONS,
	PSD_ABOUT_SHARE, /* a file that is installed beside the program */
	PSD_ABOUT_KEYS,
	PSD_ABOUT_COLUMNS,
	PSD_ABOUT_VERSION,
};

/* Form of the output. */
enum psd_form { PSD_FORM_TABLE, PSD_FORM_CSV, PSD_FORM_JSON };

/* Options of psd-sim's command line. Strings are borrowed from argv. */
struct psd_options {
	unsigned about;	    /* an enum psd_about: text about psd-sim to print instead of a prediction */
	unsigned form;	    /* form of the output, an enum psd_form */
	bool is_estimate;   /* --estimate: predictions are estimates instead of simulations */
	bool is_every_node; /* --every-node: all nodes and messages are simulated, equal ones as well */
	bool is_quiet;	    /* --quiet: no progress is shown */
	bool is_wide;	    /* --wide: tables show all columns */
	bool is_markdown;   /* the text of `about` is written as Markdown, for the documentation */
	/* number of child processes that simulate at the same time; 0: one for each processor core */
	uint64_t n_processes;
	bool has_plan;			 /* the JSON has the plan of each row */
	const char *trace_path;		 /* path of the trace to write, from --trace; NULL: no trace is written */
	const char *shard;		 /* part of the sweep to predict, such as "2/8"; NULL: the whole sweep */
	uint64_t shard_number, n_shards; /* the same part as numbers; 0: the whole sweep */
	struct psd_text settings;	 /* options that all parts must have in common; owned */
	const char *question;		 /* name of the only question to answer; NULL: all questions */
	const char *system_name;	 /* name of the only system to predict; NULL: all systems */
	const char *output_path;	 /* path of the profile that an import writes */
	/* import: path of the model file; NULL: layers are made from the trace's operators */
	const char *model_path;
	/* import without a model file: path of the graph to write; NULL with a model file */
	const char *graph_path;
	char *beside; /* memory of graph_path if the user gave no path; owned */
	/* import: number of samples in a training step of one worker; 0: it is found from the trace */
	uint64_t batch;
	/* import: rate of a node's link, for predicted times of collectives, as the user wrote it; NULL: not given */
	const char *bandwidth;
	double bits_per_sec; /* the same rate, bits per second; 0: not given */
	/* import: latency of a message between nodes, for predicted times of collectives, seconds */
	double latency_sec;
	struct psd_init_answers init;	/* answers for a new scenario */
	char *installed_path;		/* path of the installed scenario that is predicted; owned */
	struct psd_arguments arguments; /* further arguments; arguments.command is an enum psd_sim_command */
};

/* Commands and options of psd-sim. */
extern const struct psd_command_table psd_options_table;

/* Reads psd-sim's command line into *options, which psd_options_release() releases. If an option asks for a text about
 * psd-sim (enum psd_about), the other arguments are not checked. PSD_EINVAL: wrong usage; the text is a line for the
 * user. PSD_ENOMEM. */
enum psd_status psd_options_parse(struct psd_options *options, int argc, char *const argv[],
				  struct psd_error *err) PSD_MUST_CHECK;
/* Turns the command `quickstart` into a prediction of the scenario at `path`; the path is copied. PSD_ENOMEM. */
enum psd_status psd_options_name_scenario(struct psd_options *options, const char *path,
					  struct psd_error *err) PSD_MUST_CHECK;
void psd_options_release(struct psd_options *options);
/* Appends the file that is installed beside the program and whose kind the option --share names. version: version of
 * psd-sim. PSD_EINVAL: there is no such kind. */
enum psd_status psd_options_add_share(struct psd_text *text, const struct psd_options *options, const char *version,
				      struct psd_error *err) PSD_MUST_CHECK;

#endif
