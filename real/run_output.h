/* Results of real runs: for people, and as CSV with psd-sim's columns. */
#ifndef PSD_REAL_RUN_OUTPUT_H
#define PSD_REAL_RUN_OUTPUT_H

#include "engine/base/text.h"
#include "real/cluster/launch.h"

enum { PSD_RUN_EXECUTOR_MAX = 32 };

/* Result of one system's run. */
struct psd_run_row {
	const struct psd_system *system; /* system that was run, borrowed from the scenario */
	struct psd_point point;
	enum psd_cluster_kind cluster_kind;
	bool has_rebuilds; /* compute time does not include gradients that are rebuilt from factors */
	bool has_replay;
	char executor[PSD_RUN_EXECUTOR_MAX]; /* name of the executor, see psd_run_name_executor() */
	struct psd_replay replay;	     /* replay with the dilation that was used */
	struct psd_worker_result result;
};

/* Results of all systems that were run, and their common parts. */
struct psd_run_report {
	const struct psd_costed_model *costed;
	uint32_t n_iterations;
	const struct psd_run_row *rows;
	unsigned n_rows;
};

/* Writes the executor's name for CSV and traces: "real-cpu", "real-cuda", "real-replay" without a device,
 * "real-cpu-replay" if some workers compute. "-paced" is added for PSD_CLUSTER_SHAPED: processes limit their rate. */
void psd_run_name_executor(char text[PSD_RUN_EXECUTOR_MAX], const struct psd_device_kind *device, bool has_replay,
			   enum psd_cluster_kind cluster_kind);

/* Adds the rows as CSV, see psd_columns_add_csv(). */
void psd_run_output_add_csv(struct psd_text *text, const struct psd_run_report *report);
/* Adds the reason why the rows have no speedup, as in "not known ..."; nothing if they have one. */
void psd_run_output_add_no_speedup(struct psd_text *text, const struct psd_run_report *report);
/* Adds the rows as a table for people. PSD_ENOMEM. */
enum psd_status psd_run_output_add_table(struct psd_text *text, const struct psd_run_report *report,
					 struct psd_error *err) PSD_MUST_CHECK;

#endif
