/* Prints the results of real runs: as a table for people to read, or as CSV with the columns of psd-sim. */
#ifndef PSD_REAL_RUN_OUTPUT_H
#define PSD_REAL_RUN_OUTPUT_H

#include "engine/base/text.h"
#include "real/cluster/launch.h"

enum { PSD_RUN_EXECUTOR_MAX = 32 };

/* Result of the run of one system: one row of the table and of the CSV. */
struct psd_run_row {
	const struct psd_system *system; /* the system; borrowed from the scenario */
	struct psd_point point;
	enum psd_cluster_kind cluster_kind;
	/* Some gradients are computed from factors during the update, not in the backward pass. So the measured
	 * computing time lacks them, and no speedup may be based on it. */
	bool has_rebuilds;
	bool has_replay;
	uint32_t period;  /* number of iterations of a period or clock, see psd_plan_steps() */
	uint32_t n_parts; /* number of parts that exchange in turn, see psd_plan_parts() */
	/* Name of the executor in CSV and in traces, see psd_run_name_executor(). */
	char executor[PSD_RUN_EXECUTOR_MAX];
	/* If has_replay: settings of the replay, including the dilation that was used. */
	struct psd_replay replay;
	uint32_t samples; /* number of samples of worker 0 in an iteration */
	/* Division of the samples among groups of nodes, see psd_run_add_split(); empty without groups. The row owns
	 * the text. */
	struct psd_text split;
	struct psd_worker_result result;
};

/* Results of all systems that were run, and values that are the same for all of them. */
struct psd_run_report {
	const struct psd_costed_model *costed;
	uint32_t n_iterations;
	const struct psd_run_row *rows;
	unsigned n_rows;
};

/* Writes the executor's name, for CSV and traces, into text: "real-" and the device's name, such as "real-cpu". It is
 * "real-replay" if no worker computes (device is NULL), and "real-cpu-replay" if some workers compute while the others
 * replay. "-paced" is appended for PSD_CLUSTER_SHAPED, in which processes limit their own rate. */
void psd_run_name_executor(char text[PSD_RUN_EXECUTOR_MAX], const struct psd_device_kind *device, bool has_replay,
			   enum psd_cluster_kind cluster_kind);

/* Adds the results as CSV to `text`, see psd_columns_add_csv(). */
void psd_run_output_add_csv(struct psd_text *text, const struct psd_run_report *report);
/* Adds a line to `text` if the results have no speedup. The line tells why, and begins with "not known". Adds nothing
 * if they have one. */
void psd_run_output_add_no_speedup(struct psd_text *text, const struct psd_run_report *report);
/* Adds the results to `text` as a table for people to read. PSD_ENOMEM. */
enum psd_status psd_run_output_add_table(struct psd_text *text, const struct psd_run_report *report,
					 struct psd_error *err) PSD_MUST_CHECK;

#endif
