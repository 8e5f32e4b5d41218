/* Predicts all cases of a scenario: each chosen system at each point of the sweep. If the scenario names a baseline
 * and no point has a single worker, the baseline is also predicted for one worker. */
#ifndef PSD_SIM_SWEEP_H
#define PSD_SIM_SWEEP_H

#include <stdbool.h>

#include "engine/base/error.h"
#include "engine/case/case.h"
#include "engine/result/result.h"
#include "engine/scenario/published.h"
#include "sim/executor/simulate.h"

struct psd_sweep {
	const struct psd_costed_model *costed; /* scenario, model and layer times; borrowed */
	/* models of all variants of the scenario, of which `costed` is the first; NULL: the scenario has no other
	 * variant */
	const struct psd_costed_model *const *variants;
	unsigned n_variants;
	const struct psd_published *published; /* published results to compare with; NULL: none */
	const char *system_name;	       /* name of the only system to predict; NULL: all systems */
	const char *shard;		       /* part of the sweep to predict, as in 2/8; NULL: the whole sweep */
	const char *settings;		       /* options that all parts must have in common; NULL: the whole sweep */
	unsigned shard_number, n_shards;       /* the same as numbers */
	enum psd_detail detail;		       /* detail of simulations */
	/* cases are estimated in this process; false: they are simulated in child processes */
	bool is_estimate;
	unsigned n_at_once; /* largest number of children that run at the same time, >= 1 */
	bool has_progress;  /* progress is shown, see psd_children.has_progress */
};

/* Results of a sweep. It owns only the array `results`; all other pointers are borrowed. */
struct psd_report {
	const struct psd_costed_model *costed;
	const struct psd_published *published; /* published results to compare with; NULL: none */
	bool is_estimate;
	/* systems that were predicted, n_systems consecutive entries of the scenario's list; borrowed */
	const struct psd_system *systems;
	/* One result per system and point: results[s * n_points + p]. Cases that another part of the sweep has, or an
	 * earlier variant, are marked by is_elsewhere. */
	struct psd_result *results;
	unsigned n_systems;
	unsigned n_points;	/* number of points of all variants together; points of one variant follow each other */
	unsigned n_refused;	/* number of cases without a result, since they need too many events */
	enum psd_relief relief; /* advice to the user for getting results of the refused cases */
	/* number of results that are estimates, because a simulation would have too many events */
	unsigned n_estimated;
};

/* Largest number of cases, systems times points of all variants. A case takes 1.3 kB for its job, outcome and result,
 * so that these take 2.7 GB. */
enum { PSD_SWEEP_MOST_CASES = 1 << 21 };

/* Checks the number of cases, before the variants of a scenario are loaded. system_name: as in struct psd_sweep.
 * PSD_EINVAL: there are too many. */
enum psd_status psd_sweep_check(const struct psd_scenario *scenario, const char *system_name,
				struct psd_error *err) PSD_MUST_CHECK;
/* Predicts all cases and fills *report, which psd_report_release() releases. A case that needs more events than the
 * key `most_events` allows is estimated, if an estimate supports all keys that the scenario has. Otherwise this case
 * is refused, and the other cases still get results. If all cases are refused, the first refusal is the error.
 * Statuses and *signal_number are those of psd_children_run(); PSD_EINVAL also for an unknown system. */
enum psd_status psd_sweep_run(const struct psd_sweep *sweep, struct psd_report *report, int *signal_number,
			      struct psd_error *err) PSD_MUST_CHECK;
/* Returns the model of the result's variant, borrowed. */
const struct psd_costed_model *psd_report_costed(const struct psd_report *report, const struct psd_result *result);
void psd_report_release(struct psd_report *report);

/* Returns the name of the executor in results and traces: "sim-flow", "sim-message" or "estimate". */
const char *psd_sim_executor(const struct psd_scenario *scenario, bool is_estimate);

#endif
