/* Output of the results of real runs: as a table for people, and as CSV with the columns of psd-sim. */
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
	/* Some gradients are made from factors by the update, not by the backward pass, and the time of computing lacks
	 * that. */
	bool has_rebuilds;
	bool has_replay;
	char executor[PSD_RUN_EXECUTOR_MAX]; /* name of the executor in CSV and traces, see psd_run_name_executor() */
	/* If has_replay: settings of the replay, with the dilation that was used. */
	struct psd_replay replay;
	struct psd_worker_result result;
};

/* Results of all systems that were run, and the values that they have in common. */
struct psd_run_report {
	const struct psd_costed_model *costed;
	uint32_t n_iterations;
	const struct psd_run_row *rows;
	unsigned n_rows;
};

/* Writes the executor's name for CSV and traces into text. It is "real-" and the device's name, as in "real-cpu";
 * "real-replay" if no worker computes (device is NULL); "real-cpu-replay" if some workers compute and the others
 * replay. "-paced" is appended for PSD_CLUSTER_SHAPED, in which processes limit their own rate. */
void psd_run_name_executor(char text[PSD_RUN_EXECUTOR_MAX], const struct psd_device_kind *device, bool has_replay,
			   enum psd_cluster_kind cluster_kind);

/* Adds the results as CSV to `text`, see psd_columns_add_csv(). */
void psd_run_output_add_csv(struct psd_text *text, const struct psd_run_report *report);
/* Adds a line to `text` that says why the results have no speedup, as in "not known ..."; adds nothing if they have
 * one. */
void psd_run_output_add_no_speedup(struct psd_text *text, const struct psd_run_report *report);
/* Adds the results as a table for people to `text`. PSD_ENOMEM. */
enum psd_status psd_run_output_add_table(struct psd_text *text, const struct psd_run_report *report,
					 struct psd_error *err) PSD_MUST_CHECK;

#endif
