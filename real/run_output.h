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
	bool has_rebuilds; /* from factors, so that forward and backward are not all compute of a worker alone */
	bool has_replay;
	char executor[PSD_RUN_EXECUTOR_MAX]; /* psd_run_name_executor() */
	struct psd_replay replay;	     /* as it was carried out */
	struct psd_worker_result result;
};

/* What all rows have in common. */
struct psd_run_report {
	const struct psd_costed_model *costed;
	uint32_t n_iterations;
	const struct psd_run_row *rows;
	unsigned n_rows;
};

/* As the CSV and traces name it: "real-cpu", "real-cuda", "real-replay" where there is no device, "real-cpu-replay"
 * where some workers compute and some replay; "-paced" behind it on PSD_CLUSTER_SHAPED, whose links are no network's. */
void psd_run_name_executor(char text[PSD_RUN_EXECUTOR_MAX], const struct psd_device_kind *device, bool has_replay,
			   enum psd_cluster_kind cluster_kind);

/* Rows of CSV, as psd_columns_add_csv(). */
void psd_run_output_add_csv(struct psd_text *text, const struct psd_run_report *report);
/* Why the rows have no speedup, as in "not known ..."; nothing where they have. */
void psd_run_output_add_no_speedup(struct psd_text *text, const struct psd_run_report *report);
/* PSD_ENOMEM. */
enum psd_status psd_run_output_add_table(struct psd_text *text, const struct psd_run_report *report,
					 struct psd_error *err) PSD_MUST_CHECK;

#endif
