/* Lists the cases of a scenario, runs them in children, and turns outcomes into results. */
#include "sim/sweep/sweep.h"

#include <stdio.h>
#include <stdlib.h>

#include "engine/base/units.h"
#include "engine/estimate/estimate.h"
#include "sim/executor/simulate.h"
#include "sim/sweep/children.h"

enum { PROCESS_EVENTS = 5000 }; /* events that cost as much as a process for a case */

struct job {
	const struct psd_costed_model *costed;
	const struct psd_system *system;
	struct psd_point point;
};

/* Cases: those of the report in its order, then those needed only as a baseline. */
struct work_list {
	const struct psd_sweep *sweep;
	struct job *jobs;
	struct psd_outcome *outcomes;
	unsigned n_jobs;
	unsigned n_systems;
	unsigned n_points;
	unsigned n_report_jobs;		     /* n_systems * n_points */
	struct psd_scenario *calm;	     /* scenario of baselines: without slow nodes and background traffic */
	struct psd_costed_model calm_matter; /* borrows graph and costs */
};

static const struct psd_scenario *scenario_of(const struct psd_sweep *sweep)
{
	return sweep->costed->scenario;
}

/* ---- one case ---- */

static enum psd_status run_job(const struct psd_sweep *sweep, const struct job *job, struct psd_outcome *outcome,
			       struct psd_error *err)
{
	const struct psd_scenario *scenario = scenario_of(sweep);
	struct psd_run_length length = psd_run_length_make(job->system, scenario->iterations, 0.0);
	struct psd_case made;
	enum psd_status status = psd_case_make(&made, job->costed, job->system, job->point, err);

	if (status)
		return status;
	length.most_events = scenario->most_events;
	if (sweep->is_estimate && job->point.bandwidth_bps == 0.0)
		status = psd_error_set(err, PSD_EINVAL, (struct psd_place){scenario->path, 0, 0},
				       "an estimate needs 'bandwidth' and 'latency' in 'network' beside 'platform'");
	else if (sweep->is_estimate)
		status = psd_estimate(&made.program, length, outcome, err);
	else
		status = psd_simulate(&made, NULL, NULL, outcome, err);
	psd_case_release(&made);
	return status;
}

static enum psd_status run_in_child(void *context, unsigned job, struct psd_outcome *outcome, struct psd_error *err)
{
	const struct work_list *list = context;
	const enum psd_status status = run_job(list->sweep, &list->jobs[job], outcome, err);

	outcome->n_events += PROCESS_EVENTS;
	return status;
}

static enum psd_status refuse_sum(const void *context, struct psd_error *err)
{
	const struct work_list *list = context;
	const struct psd_scenario *scenario = scenario_of(list->sweep);
	char count[PSD_UNITS_TEXT_MAX];

	return psd_error_set(err, PSD_EINVAL, (struct psd_place){scenario->path, 0, 0},
			     "the %u cases of this scenario need more than %s events together: ask for fewer, for flow "
			     "fidelity or an estimate, or for a larger 'most_events'",
			     list->n_jobs, psd_units_write_count(scenario->most_events, count));
}

static void name_job(const void *context, unsigned job, char *text, size_t room)
{
	const struct work_list *list = context;
	const struct psd_scenario *scenario = scenario_of(list->sweep);
	const struct job *named = &list->jobs[job];
	const bool has_rate = scenario->n_sweep_bandwidths > 1, has_size = scenario->n_sweep_fuses > 1;
	char point[64], rate[PSD_UNITS_TEXT_MAX], size[PSD_UNITS_TEXT_MAX];

	psd_result_point_name(&named->point, point, sizeof(point));
	snprintf(text, room, "%s at %s%s%s%s%s", named->system->name, point, has_rate ? ", " : "",
		 has_rate ? psd_units_write_rate(named->point.bandwidth_bps, rate) : "",
		 has_size ? ", gathered to " : "",
		 has_size ? psd_units_write_bytes(named->point.fuse_bytes, size) : "");
}

/* ---- the list ---- */

static const struct psd_system *baseline_system(const struct psd_scenario *scenario)
{
	return scenario->baseline_system < 0 ? NULL : &scenario->systems[scenario->baseline_system];
}

/* Finds the undisturbed job with one worker of the baseline system at this bandwidth; n_jobs if there is none. */
static unsigned find_baseline(const struct work_list *list, double bandwidth_bps)
{
	const struct psd_scenario *scenario = scenario_of(list->sweep);
	unsigned i = scenario->n_slowdowns || scenario->n_backgrounds ? list->n_report_jobs : 0;

	while (i < list->n_jobs &&
	       !(list->jobs[i].system == baseline_system(scenario) && list->jobs[i].point.workers == 1 &&
		 list->jobs[i].point.bandwidth_bps == bandwidth_bps))
		i++;
	return i;
}

static enum psd_status make_calm(struct work_list *list, struct psd_error *err)
{
	list->calm = malloc(sizeof(*list->calm));
	if (!list->calm)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a sweep");
	*list->calm = *scenario_of(list->sweep);
	list->calm->n_slowdowns = 0;
	list->calm->n_backgrounds = 0;
	list->calm_matter = *list->sweep->costed;
	list->calm_matter.scenario = list->calm;
	return PSD_OK;
}

static enum psd_status add_baselines(struct work_list *list, struct psd_error *err)
{
	const struct psd_scenario *scenario = scenario_of(list->sweep);
	enum psd_status status = baseline_system(scenario) ? make_calm(list, err) : PSD_OK;

	for (unsigned p = 0; list->calm && p < list->n_points; p++) {
		struct psd_point point = psd_scenario_point(scenario, p);

		if (find_baseline(list, point.bandwidth_bps) < list->n_jobs)
			continue;
		point.nodes = point.workers_per_node = point.workers = 1;
		list->jobs[list->n_jobs++] = (struct job){&list->calm_matter, baseline_system(scenario), point};
	}
	return status;
}

static enum psd_status make_list(struct work_list *list, const struct psd_sweep *sweep, struct psd_error *err)
{
	const struct psd_scenario *scenario = scenario_of(sweep);
	unsigned first = 0;
	enum psd_status status = PSD_OK;

	*list = (struct work_list){
		.sweep = sweep, .n_systems = scenario->n_systems, .n_points = psd_scenario_points(scenario)};
	if (sweep->system_name) {
		list->n_systems = 1;
		status = psd_scenario_find_system(scenario, sweep->system_name, &first, err);
	}
	if (status)
		return status;
	const size_t most = ((size_t)list->n_systems + 1) * list->n_points;

	list->jobs = calloc(most, sizeof(*list->jobs));
	list->outcomes = calloc(most, sizeof(*list->outcomes));
	if (!list->jobs || !list->outcomes)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a sweep");
	for (unsigned s = first; s < first + list->n_systems; s++)
		for (unsigned p = 0; p < list->n_points; p++)
			list->jobs[list->n_jobs++] =
				(struct job){sweep->costed, &scenario->systems[s], psd_scenario_point(scenario, p)};
	list->n_report_jobs = list->n_jobs;
	return add_baselines(list, err);
}

/* Reports a system that cannot run before the first case runs, not after an hour of others. */
static enum psd_status check_systems(const struct work_list *list, struct psd_error *err)
{
	enum psd_status status = PSD_OK;

	for (unsigned i = list->n_points - 1; i < list->n_report_jobs && !status; i += list->n_points) {
		const struct job *last = &list->jobs[i];
		struct psd_case made;

		status = psd_case_make(&made, last->costed, last->system, last->point, err);
		if (!status)
			psd_case_release(&made);
	}
	return status;
}

static enum psd_status run_list(struct work_list *list, int *signal_number, struct psd_error *err)
{
	const struct psd_sweep *sweep = list->sweep;
	const struct psd_children children = {
		.work = run_in_child,
		.refuse = refuse_sum,
		.name = name_job,
		.context = list,
		.n_jobs = list->n_jobs,
		.n_at_once = sweep->n_at_once < list->n_jobs ? sweep->n_at_once : list->n_jobs,
		.most_events = scenario_of(sweep)->most_events,
		.has_progress = sweep->has_progress,
	};
	enum psd_status status = PSD_OK;
	uint64_t n_events = 0;

	if (!sweep->is_estimate)
		return psd_children_run(&children, list->outcomes, signal_number, err);
	for (unsigned i = 0; i < list->n_jobs && !status; i++) {
		status = run_job(sweep, &list->jobs[i], &list->outcomes[i], err);
		n_events += list->outcomes[i].n_events;
		if (!status && n_events > children.most_events)
			status = refuse_sum(list, err);
	}
	return status;
}

/* Without a baseline system, the baseline of each system is a worker that only computes. */
static double baseline_images_per_sec(const struct work_list *list, const struct job *job)
{
	const struct psd_costed_model *costed = list->sweep->costed;
	const struct psd_system *baseline = baseline_system(costed->scenario);
	const struct psd_workload workload = psd_scenario_workload(costed->scenario, baseline ? baseline : job->system);
	const struct psd_point one = {.nodes = 1, .workers_per_node = 1, .workers = 1};

	return psd_result_images_per_sec(
		&one, workload.batch_per_worker,
		baseline ? list->outcomes[find_baseline(list, job->point.bandwidth_bps)].iteration_sec
			 : psd_costed_model_costs(costed, job->system)->compute_sec);
}

static enum psd_status fill_report(const struct work_list *list, struct psd_report *report, struct psd_error *err)
{
	const struct psd_sweep *sweep = list->sweep;
	const struct psd_scenario *scenario = scenario_of(sweep);
	const unsigned n_results = list->n_report_jobs;
	const struct psd_result_basis basis = {scenario, psd_sim_executor(scenario, sweep->is_estimate),
					       sweep->published, true};
	struct psd_result *results = calloc(n_results, sizeof(*results));

	if (!results)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for %u results", n_results);
	for (unsigned i = 0; i < n_results; i++) {
		const struct job *job = &list->jobs[i];

		results[i] = psd_result_make(&basis, job->system, job->point, &list->outcomes[i],
					     baseline_images_per_sec(list, job));
		results[i].beyond = psd_result_beyond(&scenario->calibration, &job->point);
	}
	*report = (struct psd_report){.costed = sweep->costed,
				      .published = sweep->published,
				      .is_estimate = sweep->is_estimate,
				      .systems = list->jobs[0].system,
				      .results = results,
				      .n_systems = list->n_systems,
				      .n_points = list->n_points};
	return PSD_OK;
}

enum psd_status psd_sweep_run(const struct psd_sweep *sweep, struct psd_report *report, int *signal_number,
			      struct psd_error *err)
{
	struct work_list list;
	enum psd_status status = make_list(&list, sweep, err);

	*signal_number = 0;
	if (!status)
		status = check_systems(&list, err);
	if (!status)
		status = run_list(&list, signal_number, err);
	if (!status)
		status = fill_report(&list, report, err);
	free(list.jobs);
	free(list.outcomes);
	free(list.calm);
	return status;
}

void psd_report_release(struct psd_report *report)
{
	free(report->results);
	*report = (struct psd_report){.results = NULL};
}

const char *psd_sim_executor(const struct psd_scenario *scenario, bool is_estimate)
{
	if (is_estimate)
		return "estimate";
	return scenario->fidelity == PSD_FIDELITY_FLOW ? "sim-flow" : "sim-message";
}
