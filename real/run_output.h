/* Results of real runs, for people and as CSV with psd-sim's columns. */
#ifndef PSD_REAL_RUN_OUTPUT_H
#define PSD_REAL_RUN_OUTPUT_H

#include <stdio.h>

#include "real/worker.h"

/* One system's run. */
struct psd_run_row {
	const struct psd_system *system; /* borrowed from the scenario */
	struct psd_point point;
	bool has_bandwidth; /* links had the point's */
	struct psd_worker_result result;
};

/* Write errors stay in the stream's flag, as for both below. */
void psd_run_output_csv_head(FILE *out);
void psd_run_output_csv(FILE *out, const struct psd_scenario *scenario, const struct psd_run_row *row);
void psd_run_output_table(FILE *out, const struct psd_scenario *scenario, const struct psd_run_row rows[], unsigned n_rows);

#endif
