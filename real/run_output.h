/* Results of real runs: for people, and as CSV with psd-sim's columns. */
#ifndef PSD_REAL_RUN_OUTPUT_H
#define PSD_REAL_RUN_OUTPUT_H

#include "engine/base/text.h"
#include "real/cluster/launch.h"

enum { PSD_RUN_EXECUTOR_MAX = 32 };

/* One system's run. */
struct psd_run_row {
	const struct psd_system *system; /* borrowed from the scenario */
	struct psd_point point;
	enum psd_cluster_kind cluster_kind;
	bool has_rebuilds; /* compute lacks gradients that are rebuilt from factors */
	bool has_replay;
	char executor[PSD_RUN_EXECUTOR_MAX]; /* psd_run_name_executor() */
	struct psd_replay replay;	     /* with the dilation that was used */
	struct psd_worker_result result;
};

/* The rows of a run, and their common parts. */
struct psd_run_report {
	const struct psd_costed_model *costed;
	uint32_t n_iterations;
	const struct psd_run_row *rows;
	unsigned n_rows;
};

/* The executor's name in CSV and traces: "real-cpu", "real-cuda", "real-replay" without a device, "real-cpu-replay" if
 * some workers compute and some replay. PSD_CLUSTER_SHAPED adds "-paced": its processes limit their own rate. */
void psd_run_name_executor(char text[PSD_RUN_EXECUTOR_MAX], const struct psd_device_kind *device, bool has_replay,
			   enum psd_cluster_kind cluster_kind);

/* Adds rows of CSV, as psd_columns_add_csv(). */
void psd_run_output_add_csv(struct psd_text *text, const struct psd_run_report *report);
/* Adds the reason why the rows have no speedup, as in "not known ..."; nothing if they have one. */
void psd_run_output_add_no_speedup(struct psd_text *text, const struct psd_run_report *report);
/* Adds the table for people. PSD_ENOMEM. */
enum psd_status psd_run_output_add_table(struct psd_text *text, const struct psd_run_report *report,
					 struct psd_error *err) PSD_MUST_CHECK;

#endif
