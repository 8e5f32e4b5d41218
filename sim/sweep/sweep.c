/* Lists the cases of a scenario, runs them in children, and turns outcomes into results. */
#include "sim/sweep/sweep.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/base/units.h"
#include "engine/document/document.h"
#include "engine/estimate/estimate.h"
#include "engine/scenario/scenario_heed.h"
#include "sim/executor/simulate.h"
#include "sim/sweep/children.h"
#include "sim/sweep/progress.h"

struct job {
	const struct psd_costed_model *costed;
	const struct psd_system *system;
	struct psd_point point;
	unsigned number; /* index of its result; unused for a baseline */
	unsigned row;	 /* number of its row in the whole sweep, from 0 */
};

/* Scenario of baselines, without slow nodes and background traffic; its graph and costs are borrowed. */
struct calm {
	struct psd_scenario scenario;
	struct psd_costed_model costed;
};

/* List of cases (jobs): first the cases of the report, in its order, then cases that are needed only as a baseline. */
struct work_list {
	const struct psd_sweep *sweep;
	struct job *jobs;
	struct psd_outcome *outcomes;
	unsigned n_jobs;
	unsigned n_systems;
	unsigned n_points;
	unsigned first_system;	/* index of the first system of the report in the scenario */
	unsigned n_report_jobs; /* those that are not repeated, of this part */
	unsigned n_rows;	/* rows of the whole sweep */
	struct calm *calms;	/* one for each variant; NULL: no system is a baseline */
};

static unsigned n_variants(const struct psd_sweep *sweep)
{
	return sweep->variants ? sweep->n_variants : 1;
}

static const struct psd_costed_model *variant_of(const struct psd_sweep *sweep, unsigned variant)
{
	return sweep->variants ? sweep->variants[variant] : sweep->costed;
}

static const struct psd_scenario *scenario_of(const struct psd_sweep *sweep)
{
	return sweep->costed->scenario;
}

/* ---- one case ---- */

/* The case that was estimated last. Estimates that differ from it in the bandwidth alone take it again. */
struct prepared {
	struct psd_case made;
	uint64_t memory_bytes;		 /* memory of its workers */
	struct psd_estimator *estimator; /* NULL: there is no case */
};

static void discard(struct prepared *prepared)
{
	if (prepared->estimator)
		psd_case_release(&prepared->made);
	psd_estimator_free(prepared->estimator);
	prepared->estimator = NULL;
}

/* Makes *prepared the case of the job. */
static enum psd_status prepare(struct prepared *prepared, const struct job *job, struct psd_run_length length,
			       struct psd_error *err)
{
	if (prepared->estimator && psd_case_reaches(&prepared->made, job->costed, job->system, job->point)) {
		psd_case_move(&prepared->made, job->point);
		return PSD_OK;
	}
	discard(prepared);
	PSD_TRY(psd_case_make(&prepared->made, job->costed, job->system, job->point, err));
	const enum psd_status status = psd_estimator_new(&prepared->estimator, &prepared->made.program, length, err);
	if (status)
		psd_case_release(&prepared->made);
	else
		prepared->memory_bytes = psd_case_memory_bytes(&prepared->made);
	return status;
}

static enum psd_status estimate_job(const struct job *job, struct prepared *prepared, struct psd_outcome *outcome,
				    struct psd_error *err)
{
	const struct psd_scenario *scenario = job->costed->scenario;
	struct psd_run_length length = psd_run_length_make(job->system, scenario->iterations, 0.0);

	length.most_events = scenario->most_events;
	PSD_TRY(prepare(prepared, job, length, err));
	if (job->point.bandwidth_bps == 0.0)
		return psd_error_set(err, PSD_EINVAL, (struct psd_place){scenario->path, 0, 0},
				     "an estimate needs 'bandwidth' and 'latency' in 'network' beside 'platform'");
	PSD_TRY(psd_estimator_run(prepared->estimator, length, outcome, err));
	outcome->memory_bytes = prepared->memory_bytes;
	return PSD_OK;
}

static enum psd_status simulate_job(const struct psd_sweep *sweep, const struct job *job, struct psd_outcome *outcome,
				    struct psd_error *err)
{
	struct psd_case made;

	PSD_TRY(psd_case_make(&made, job->costed, job->system, job->point, err));
	enum psd_status status = psd_simulate(&made, sweep->detail, NULL, NULL, outcome, err);
	if (!status)
		outcome->memory_bytes = psd_case_memory_bytes(&made);
	psd_case_release(&made);
	return status;
}

/* Tells whether an estimate may replace a simulation, because it takes all keys of the scenario into account. */
static bool may_estimate(const struct psd_sweep *sweep, const struct job *job)
{
	const struct psd_scenario *scenario = job->costed->scenario;
	struct psd_text unheeded = {.bytes = NULL};

	psd_scenario_add_unheeded(&unheeded, scenario, PSD_BY_ESTIMATE, PSD_BY_SIMULATION);
	const bool heeds_all = unheeded.length == 0 && !unheeded.is_out_of_memory;

	psd_text_release(&unheeded);
	return heeds_all && !sweep->is_estimate && job->point.bandwidth_bps > 0.0 &&
	       scenario->fidelity == PSD_FIDELITY_FLOW;
}

/* Runs a case. If it has too many events, it is estimated, or *outcome says that it was refused; the other cases run
 * all the same. An estimate that leaves keys out is tried only to know whether it would help. */
static enum psd_status run_or_refuse(const struct psd_sweep *sweep, const struct job *job, struct prepared *prepared,
				     struct psd_outcome *outcome, struct psd_error *err)
{
	const bool is_flow = job->costed->scenario->fidelity == PSD_FIDELITY_FLOW;
	struct psd_error of_estimate = {.is_limit = true};
	enum psd_relief relief = PSD_RELIEF_LENGTH;
	enum psd_status status =
		sweep->is_estimate ? estimate_job(job, prepared, outcome, err) : simulate_job(sweep, job, outcome, err);

	if (status != PSD_EINVAL || !err->is_limit)
		return status;
	if (!sweep->is_estimate && !estimate_job(job, prepared, outcome, &of_estimate)) {
		if (may_estimate(sweep, job)) {
			outcome->is_estimate = true;
			return PSD_OK;
		}
		relief = is_flow ? PSD_RELIEF_ESTIMATE : PSD_RELIEF_FLOW_OR_ESTIMATE;
	} else if (!of_estimate.is_limit && !is_flow) {
		relief = PSD_RELIEF_FLOW;
	}
	*outcome = (struct psd_outcome){.is_refused = true, .relief = relief};
	return PSD_OK;
}

static enum psd_status run_in_child(void *context, unsigned job, struct psd_outcome *outcome, struct psd_error *err)
{
	const struct work_list *list = context;
	struct prepared prepared = {.estimator = NULL};
	const enum psd_status status = run_or_refuse(list->sweep, &list->jobs[job], &prepared, outcome, err);

	discard(&prepared);
	return status;
}

static void name_job(const void *context, unsigned job, char *text, size_t room)
{
	const struct work_list *list = context;
	const struct job *named = &list->jobs[job];
	const struct psd_scenario *scenario = named->costed->scenario;
	struct psd_text swept = {.bytes = NULL};
	const bool has_rate = scenario->n_sweep_bandwidths > 1, has_size = scenario->n_sweep_fuses > 1;
	char point[64], rate[PSD_UNITS_TEXT_MAX], size[PSD_UNITS_TEXT_MAX];

	psd_result_point_name(&named->point, point, sizeof(point));
	psd_result_add_swept(&swept, scenario);
	snprintf(text, room, "%s at %s%s%s%s%s%s", named->system->name, point, has_rate ? ", " : "",
		 has_rate ? psd_units_write_rate(named->point.bandwidth_bps, rate) : "",
		 has_size ? ", gathered to " : "", has_size ? psd_units_write_bytes(named->point.fuse_bytes, size) : "",
		 swept.bytes ? swept.bytes : "");
	psd_text_release(&swept);
}

/* ---- the list ---- */

static const struct psd_system *baseline_system(const struct psd_scenario *scenario)
{
	return scenario->baseline_system < 0 ? NULL : &scenario->systems[scenario->baseline_system];
}

/* Finds the undisturbed job with one worker of the scenario's baseline system at this bandwidth; n_jobs if there is
 * none. */
static unsigned find_baseline(const struct work_list *list, const struct psd_scenario *scenario, double bandwidth_bps)
{
	unsigned i = scenario->n_slowdowns || scenario->n_backgrounds ? list->n_report_jobs : 0;

	while (i < list->n_jobs &&
	       !(list->jobs[i].system == baseline_system(scenario) && list->jobs[i].point.workers == 1 &&
		 list->jobs[i].point.bandwidth_bps == bandwidth_bps))
		i++;
	return i;
}

static void make_calm(struct calm *calm, const struct psd_costed_model *costed)
{
	calm->scenario = *costed->scenario;
	calm->scenario.n_slowdowns = 0;
	calm->scenario.n_backgrounds = 0;
	calm->costed = *costed;
	calm->costed.scenario = &calm->scenario;
}

static enum psd_status add_baselines(struct work_list *list, struct psd_error *err)
{
	if (!baseline_system(scenario_of(list->sweep)))
		return PSD_OK;
	list->calms = calloc(n_variants(list->sweep), sizeof(*list->calms));
	if (!list->calms)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a sweep");
	for (unsigned v = 0; v < n_variants(list->sweep); v++) {
		const struct psd_costed_model *costed = variant_of(list->sweep, v);
		const struct psd_scenario *scenario = costed->scenario;

		make_calm(&list->calms[v], costed);
		for (unsigned p = 0; baseline_system(scenario) && p < psd_scenario_points(scenario); p++) {
			struct psd_point point = psd_scenario_point(scenario, p);

			if (find_baseline(list, scenario, point.bandwidth_bps) < list->n_jobs)
				continue;
			point.nodes = point.workers_per_node = point.workers = 1;
			list->jobs[list->n_jobs++] =
				(struct job){&list->calms[v].costed, baseline_system(scenario), point, 0, 0};
		}
	}
	return PSD_OK;
}

/* The case of a system, counted from the first of the report, at a point of all variants. */
static struct job job_of(const struct work_list *list, unsigned s, unsigned p)
{
	const unsigned n_points = psd_scenario_points(scenario_of(list->sweep));
	const struct psd_costed_model *costed = variant_of(list->sweep, p / n_points);

	return (struct job){costed, &costed->scenario->systems[list->first_system + s],
			    psd_scenario_point(costed->scenario, p % n_points), s * list->n_points + p, 0};
}

/* Tells whether a point's row of a system is that of an earlier variant: only keys of other systems differ. A system
 * that is the baseline changes all rows. */
static bool is_repeated(const struct work_list *list, unsigned s, unsigned p)
{
	const struct psd_scenario *scenario = scenario_of(list->sweep);
	unsigned variant = p / psd_scenario_points(scenario);

	for (unsigned k = scenario->n_swept; k-- > 0;) {
		const unsigned n_values = scenario->swept[k].values->n_children;
		const unsigned owner = psd_scenario_swept_system(scenario, k);

		if (variant % n_values > 0 && owner < scenario->n_systems && owner != list->first_system + s &&
		    scenario->baseline_system != (int)owner)
			return true;
		variant /= n_values;
	}
	return false;
}

enum psd_status psd_sweep_check(const struct psd_scenario *scenario, const char *system_name, struct psd_error *err)
{
	const uint64_t n_points = (uint64_t)psd_scenario_variants(scenario) * psd_scenario_points(scenario);
	const unsigned n_systems = system_name ? 1 : scenario->n_systems;
	const struct psd_node *sweep = psd_node_child(scenario->whole, "sweep");

	if (n_points * n_systems <= PSD_SWEEP_MOST_CASES)
		return PSD_OK;
	return psd_error_set(err, PSD_EINVAL, sweep ? sweep->key_at : PSD_NOWHERE,
			     "'sweep' has %" PRIu64 " points of %u system%s, must have %u points or fewer", n_points,
			     n_systems, psd_text_plural(n_systems), PSD_SWEEP_MOST_CASES / n_systems);
}

static enum psd_status make_list(struct work_list *list, const struct psd_sweep *sweep, struct psd_error *err)
{
	const struct psd_scenario *scenario = scenario_of(sweep);
	unsigned first = 0;
	enum psd_status status = PSD_OK;

	*list = (struct work_list){.sweep = sweep,
				   .n_systems = scenario->n_systems,
				   .n_points = n_variants(sweep) * psd_scenario_points(scenario)};
	if (sweep->system_name) {
		list->n_systems = 1;
		status = psd_scenario_find_system(scenario, sweep->system_name, &first, err);
	}
	if (status)
		return status;
	list->first_system = first;
	const size_t most = ((size_t)list->n_systems + 1) * list->n_points;

	list->jobs = calloc(most, sizeof(*list->jobs));
	list->outcomes = calloc(most, sizeof(*list->outcomes));
	if (!list->jobs || !list->outcomes)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a sweep");
	for (unsigned s = first; s < first + list->n_systems; s++)
		for (unsigned p = 0; p < list->n_points; p++) {
			struct job job = job_of(list, s - first, p);

			if (is_repeated(list, s - first, p))
				continue;
			job.row = list->n_rows++;
			if (!sweep->shard || job.row % sweep->n_shards == sweep->shard_number - 1)
				list->jobs[list->n_jobs++] = job;
		}
	list->n_report_jobs = list->n_jobs;
	return add_baselines(list, err);
}

/* Reports a system that cannot run before the first case runs, not after an hour of others. */
static enum psd_status check_systems(const struct work_list *list, struct psd_error *err)
{
	const unsigned n_points = psd_scenario_points(scenario_of(list->sweep));
	enum psd_status status = PSD_OK;

	for (unsigned i = 0; i < list->n_report_jobs && !status; i++) {
		const struct job *last = &list->jobs[i];
		struct psd_case made;

		if (last->number % n_points != n_points - 1)
			continue;

		status = psd_case_make(&made, last->costed, last->system, last->point, err);
		if (!status)
			psd_case_release(&made);
		else if (status == PSD_EINVAL && err->is_limit)
			status = PSD_OK; /* not an error of the system: its smaller points may need fewer events */
	}
	return status;
}

static int compare_numbers(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

/* Order of estimates: jobs of which one case reaches the other follow each other. */
static int compare_jobs(const void *left, const void *right)
{
	const struct job *a = *(const struct job *const *)left, *b = *(const struct job *const *)right;
	int order = compare_numbers((uintptr_t)a->costed, (uintptr_t)b->costed);

	if (!order)
		order = compare_numbers(a->system->number, b->system->number);
	if (!order)
		order = compare_numbers(a->point.workers, b->point.workers);
	if (!order)
		order = compare_numbers(a->point.nodes, b->point.nodes);
	if (!order)
		order = compare_numbers(a->point.fuse_bytes, b->point.fuse_bytes);
	return order ? order : (a > b) - (a < b);
}

/* Estimates all jobs. If several of them fail, the error is that of the first one in the list. */
static enum psd_status estimate_list(struct work_list *list, struct psd_error *err)
{
	const struct job **order = malloc((list->n_jobs + 1) * sizeof(*order));
	struct prepared prepared = {.estimator = NULL};
	enum psd_status status = PSD_OK;
	unsigned end = list->n_jobs; /* later jobs need no estimate: this one has failed */
	struct psd_progress progress;

	if (!order)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a sweep");
	for (unsigned i = 0; i < list->n_jobs; i++)
		order[i] = &list->jobs[i];
	qsort(order, list->n_jobs, sizeof(*order), compare_jobs);
	psd_progress_start(&progress, list->n_jobs, list->sweep->has_progress);
	for (unsigned i = 0; i < list->n_jobs; i++) {
		const unsigned job = (unsigned)(order[i] - list->jobs);
		struct psd_error cause;
		const enum psd_status ended =
			job < end ? run_or_refuse(list->sweep, order[i], &prepared, &list->outcomes[job], &cause)
				  : PSD_OK;

		psd_progress_show(&progress, i + 1, order[i]->system->name);
		if (!ended)
			continue;
		status = ended;
		end = job;
		*err = cause;
	}
	psd_progress_end(&progress);
	discard(&prepared);
	free(order);
	return status;
}

static enum psd_status run_list(struct work_list *list, int *signal_number, struct psd_error *err)
{
	const struct psd_sweep *sweep = list->sweep;
	const struct psd_children children = {
		.work = run_in_child,
		.name = name_job,
		.context = list,
		.n_jobs = list->n_jobs,
		.n_at_once = sweep->n_at_once < list->n_jobs ? sweep->n_at_once : list->n_jobs,
		.has_progress = sweep->has_progress,
	};

	if (sweep->is_estimate)
		return estimate_list(list, err);
	return psd_children_run(&children, list->outcomes, signal_number, err);
}

/* Without a baseline system, the baseline of each system is a worker that only computes. */
static double baseline_images_per_sec(const struct work_list *list, const struct job *job)
{
	const struct psd_costed_model *costed = job->costed;
	const struct psd_system *baseline = baseline_system(costed->scenario);
	const struct psd_workload workload = psd_scenario_workload(costed->scenario, job->system);
	const struct psd_point one = {.nodes = 1, .workers_per_node = 1, .workers = 1};

	const struct psd_outcome *outcome =
		baseline ? &list->outcomes[find_baseline(list, costed->scenario, job->point.bandwidth_bps)] : NULL;

	if (outcome && outcome->is_refused)
		return 0.0;
	return outcome ? (double)psd_scenario_all_samples(costed->scenario, baseline, 1, 1) / outcome->iteration_sec
		       : psd_result_images_per_sec(&one, workload.batch_per_worker,
						   psd_costed_model_costs(costed, job->system)->compute_sec);
}

/* A result without a row, which another part of the sweep has. */
static struct psd_result make_elsewhere(struct job job)
{
	const struct psd_scenario *scenario = job.costed->scenario;

	return (struct psd_result){.system = job.system,
				   .system_name = job.system->name,
				   .point = job.point,
				   .swept = scenario->n_swept ? scenario : NULL,
				   .costed = job.costed,
				   .is_refused = true,
				   .is_elsewhere = true};
}

static struct psd_result make_result(const struct work_list *list, unsigned i)
{
	const struct psd_sweep *sweep = list->sweep;
	const struct job *job = &list->jobs[i];
	const struct psd_outcome *outcome = &list->outcomes[i];
	const struct psd_scenario *scenario = job->costed->scenario;
	const struct psd_result_basis basis = {
		.scenario = scenario,
		.executor = psd_sim_executor(scenario, sweep->is_estimate || outcome->is_estimate),
		.published = sweep->published,
		.tokens = psd_graph_tokens(&job->costed->graph),
		.model = job->costed->graph.name,
		.has_band = true,
		.compute_sec = psd_costed_model_compute_sec(job->costed, job->system, &job->point),
	};

	struct psd_result result = make_elsewhere(*job);
	result.is_elsewhere = false;
	if (outcome->is_refused)
		return result;
	result = psd_result_make(&basis, job->system, job->point, outcome, baseline_images_per_sec(list, job));
	result.beyond = psd_result_beyond(&scenario->calibration, &job->point);
	result.costed = job->costed;
	return result;
}

static enum psd_status fill_report(const struct work_list *list, struct psd_report *report, struct psd_error *err)
{
	const struct psd_sweep *sweep = list->sweep;
	const struct psd_scenario *scenario = scenario_of(sweep);
	const unsigned n_results = list->n_systems * list->n_points;
	struct psd_result *results = calloc(n_results, sizeof(*results));
	enum psd_relief relief = PSD_RELIEF_NODES;
	unsigned n_refused = 0, n_estimated = 0;

	if (!results)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for %u results", n_results);
	for (unsigned i = 0; i < n_results; i++)
		results[i] = make_elsewhere(job_of(list, i / list->n_points, i % list->n_points));
	for (unsigned i = 0; i < list->n_report_jobs; i++) {
		const struct psd_outcome *outcome = &list->outcomes[i];
		struct psd_result *result = &results[list->jobs[i].number];

		*result = make_result(list, i);
		result->shard = sweep->shard;
		result->settings = sweep->settings;
		result->row = list->jobs[i].row + 1;
		result->n_rows = list->n_rows;
		n_refused += outcome->is_refused;
		n_estimated += outcome->is_estimate;
		if (outcome->is_refused && outcome->relief > relief)
			relief = outcome->relief;
	}
	if (n_refused > 0 && n_refused == list->n_report_jobs) {
		const struct job *first = &list->jobs[0];

		free(results);
		return psd_refuse_length(first->system, first->point.workers, scenario->most_events, relief, err);
	}
	*report = (struct psd_report){.costed = sweep->costed,
				      .published = sweep->published,
				      .is_estimate = sweep->is_estimate,
				      .systems = &scenario->systems[list->first_system],
				      .results = results,
				      .n_systems = list->n_systems,
				      .n_points = list->n_points,
				      .n_refused = n_refused,
				      .relief = relief,
				      .n_estimated = n_estimated};
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
	free(list.calms);
	return status;
}

const struct psd_costed_model *psd_report_costed(const struct psd_report *report, const struct psd_result *result)
{
	return result->costed ? result->costed : report->costed;
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
