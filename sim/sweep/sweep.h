/* All cases of a scenario: each chosen system at each point, and one worker of the baseline where the points lack it.
 */
#ifndef PSD_SIM_SWEEP_H
#define PSD_SIM_SWEEP_H

#include <stdbool.h>

#include "engine/base/error.h"
#include "engine/case/case.h"
#include "engine/result/result.h"
#include "engine/scenario/published.h"

struct psd_sweep {
	const struct psd_costed_model *costed;
	const struct psd_published *published; /* or NULL */
	const char *system_name;	       /* only this system; NULL: all */
	bool is_estimate;		       /* in this process, else simulated in children */
	unsigned n_at_once;		       /* children at a time, >= 1 */
	bool has_progress;
};

/* What came of it; owns `results` only. */
struct psd_report {
	const struct psd_costed_model *costed;
	const struct psd_published *published; /* or NULL */
	bool is_estimate;
	const struct psd_system *systems; /* those that were asked for, a run of the scenario's, borrowed */
	struct psd_result *results;	  /* systems outermost: results[system * n_points + point] */
	unsigned n_systems;
	unsigned n_points;
};

/* Runs the sweep. *report is filled on success, released by psd_report_release(). Statuses and *signal_number as
 * psd_children_run(); PSD_EINVAL when there is no such system. */
enum psd_status psd_sweep_run(const struct psd_sweep *sweep, struct psd_report *report, int *signal_number,
			      struct psd_error *err) PSD_MUST_CHECK;
void psd_report_release(struct psd_report *report);

/* Who predicts, as results and traces name it: "sim-flow", "sim-message" or "estimate". */
const char *psd_sim_executor(const struct psd_scenario *scenario, bool is_estimate);

#endif
