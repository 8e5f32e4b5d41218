/* Runs all cases of a scenario: each chosen system at each point, and one worker of the baseline where no point has it.
 * */
#ifndef PSD_SIM_SWEEP_H
#define PSD_SIM_SWEEP_H

#include <stdbool.h>

#include "engine/base/error.h"
#include "engine/case/case.h"
#include "engine/result/result.h"
#include "engine/scenario/published.h"

struct psd_sweep {
	const struct psd_costed_model *costed;
	const struct psd_published *published; /* published results to compare with; NULL: none */
	const char *system_name;	       /* name of the only system to run; NULL: all */
	bool is_estimate;		       /* estimate in this process instead of simulating in children */
	unsigned n_at_once;		       /* number of concurrent children, >= 1 */
	bool has_progress;
};

/* Results of a sweep; only `results` is owned. */
struct psd_report {
	const struct psd_costed_model *costed;
	const struct psd_published *published; /* published results that were compared with; NULL: none */
	bool is_estimate;
	const struct psd_system *systems; /* systems that were run: a contiguous part of the scenario's, borrowed */
	struct psd_result *results;	  /* one result per system and point: results[system * n_points + point] */
	unsigned n_systems;
	unsigned n_points;
	unsigned n_refused;   /* results without a row */
	unsigned n_estimated; /* rows that an estimate makes, since their simulation has too many events */
};

/* Runs all cases. A case with more than `most_events` is estimated where an estimate heeds the whole scenario, else
 * refused: the others have their rows. Without any row the first refusal is the error. *report is filled on success;
 * psd_report_release() releases it. Statuses and *signal_number are those of psd_children_run(); PSD_EINVAL also for an
 * unknown system. */
enum psd_status psd_sweep_run(const struct psd_sweep *sweep, struct psd_report *report, int *signal_number,
			      struct psd_error *err) PSD_MUST_CHECK;
void psd_report_release(struct psd_report *report);

/* Name of the executor in results and traces: "sim-flow", "sim-message" or "estimate". */
const char *psd_sim_executor(const struct psd_scenario *scenario, bool is_estimate);

#endif
