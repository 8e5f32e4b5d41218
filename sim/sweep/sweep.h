/* Runs all cases of a scenario: each chosen system at each point of the sweep. If the scenario names a baseline and no
 * point of it has one worker, the baseline is run for one worker as well. */
#ifndef PSD_SIM_SWEEP_H
#define PSD_SIM_SWEEP_H

#include <stdbool.h>

#include "engine/base/error.h"
#include "engine/case/case.h"
#include "engine/result/result.h"
#include "engine/scenario/published.h"
#include "sim/executor/simulate.h"

struct psd_sweep {
	const struct psd_costed_model *costed; /* scenario, model and durations of layers, borrowed */
	const struct psd_published *published; /* published results to compare with; NULL: none */
	const char *system_name;	       /* name of the only system to run; NULL: all */
	enum psd_detail detail;		       /* detail of simulations */
	bool is_estimate;		       /* estimate in this process instead of simulating in children */
	unsigned n_at_once;		       /* number of concurrent children, >= 1 */
	bool has_progress;		       /* see struct psd_children */
};

/* Results of a sweep. It owns only the array `results`; all other pointers are borrowed. */
struct psd_report {
	const struct psd_costed_model *costed;
	const struct psd_published *published; /* published results with which predictions are compared; NULL: none */
	bool is_estimate;
	/* systems that were run, n_systems entries: a contiguous part of the scenario's list */
	const struct psd_system *systems;
	struct psd_result *results; /* one result per system and point: results[system * n_points + point] */
	unsigned n_systems;
	unsigned n_points;
	unsigned n_refused;	/* number of cases that have no result */
	enum psd_relief relief; /* requests that would give one of them a result */
	/* number of results that are estimates, because a simulation would have too many events */
	unsigned n_estimated;
};

/* Runs all cases and fills *report, which psd_report_release() releases. A case that needs more events than the key
 * `most_events` allows is estimated, if an estimate takes the whole scenario into account; otherwise it is refused, and
 * only the other cases have results. If all cases are refused, the first refusal is the error. Statuses and
 * *signal_number are those of psd_children_run(); PSD_EINVAL also for an unknown system. */
enum psd_status psd_sweep_run(const struct psd_sweep *sweep, struct psd_report *report, int *signal_number,
			      struct psd_error *err) PSD_MUST_CHECK;
void psd_report_release(struct psd_report *report);

/* Returns the name of the executor in results and traces: "sim-flow", "sim-message" or "estimate". */
const char *psd_sim_executor(const struct psd_scenario *scenario, bool is_estimate);

#endif
