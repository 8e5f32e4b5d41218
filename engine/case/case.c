/* From scenario to program. */
#include "engine/case/case.h"

#include <math.h>
#include <stdlib.h>

#include "engine/document/document.h"
#include "engine/estimate/estimate.h"
#include "engine/program/footprint.h"

enum { LEAST_GATHERED_BYTES = 4096 };

static enum psd_status kept_costs(struct psd_costs *costs, const struct psd_graph *graph,
				  const struct psd_workload *workload, struct psd_place at, struct psd_error *err)
{
	const enum psd_precision precision = psd_workload_precision(workload);
	const struct psd_device_row *device;
	double samples_per_sec = workload->samples_per_sec;

	if (workload->profile_path)
		return psd_costs_from_profile(costs, graph, workload->profile_path, workload->batch_per_worker,
					      samples_per_sec, err);
	device = psd_device_find(workload->device_name);
	if (!psd_device_has(device, precision))
		return psd_error_set(err, PSD_EINVAL, at, "'precision' is '%s', must be fp32 or mixed on a '%s'",
				     workload->precision_name, workload->device_name);
	if (workload->mfu_ratio > 0.0)
		samples_per_sec = psd_costs_mfu_rate(graph, device, precision, workload->mfu_ratio);
	return psd_costs_from_device(costs, graph, device, workload->batch_per_worker, precision, samples_per_sec, err);
}

static enum psd_status check_mfu(const struct psd_workload *workload, struct psd_place at, struct psd_error *err)
{
	if (!workload->profile_path || workload->mfu_ratio <= 0.0)
		return PSD_OK;
	return psd_error_set(err, PSD_EINVAL, at, "'mfu' needs 'device', since a profile has no peak rate");
}

static enum psd_status check_blocks(const struct psd_graph *graph, const struct psd_workload *workload,
				    struct psd_place at, struct psd_error *err)
{
	if (!psd_workload_recomputes(workload) || graph->n_blocks > 0)
		return PSD_OK;
	return psd_error_set(err, PSD_EINVAL, at,
			     "'recompute' is 'blocks', must be 'none' for model '%.80s', whose file has no 'repeat'",
			     graph->name);
}

enum psd_status psd_workload_costs(struct psd_costs *costs, const struct psd_graph *graph,
				   const struct psd_workload *workload, struct psd_place at, struct psd_error *err)
{
	const bool recomputes = psd_workload_recomputes(workload);
	enum psd_status status;

	PSD_TRY(check_mfu(workload, at, err));
	PSD_TRY(check_blocks(graph, workload, at, err));
	PSD_TRY(kept_costs(costs, graph, workload, at, err));
	if (!recomputes)
		return PSD_OK;
	/* costs are scaled to a throughput already, with `mfu` as well */
	status = psd_costs_recompute(costs, graph, workload->batch_per_worker,
				     workload->samples_per_sec > 0.0 || workload->mfu_ratio > 0.0
					     ? workload->batch_per_worker / costs->compute_sec
					     : 0.0,
				     err);
	if (status)
		psd_costs_release(costs);
	return status;
}

static struct psd_place place_of(const struct psd_node *mapping, const char *name, struct psd_place otherwise)
{
	const struct psd_node *child = psd_node_child(mapping, name);

	return child ? child->at : otherwise;
}

static enum psd_status load_all_costs(struct psd_costed_model *costed, struct psd_error *err)
{
	const struct psd_scenario *scenario = costed->scenario;
	const struct psd_workload common = psd_scenario_workload(scenario, &(struct psd_system){.name = NULL});
	const struct psd_node *model = psd_node_child(scenario->root, "model");
	const struct psd_node *compute = psd_node_child(scenario->root, "compute");
	const struct psd_place recompute_at =
		place_of(model, "recompute", psd_node_option_at(model, "graph", model->at));

	PSD_TRY(check_mfu(&common, place_of(compute, "mfu", model->at), err));
	PSD_TRY(check_blocks(&costed->graph, &common, recompute_at, err));
	PSD_TRY(psd_workload_costs(&costed->costs, &costed->graph, &common, model->at, err));
	for (unsigned s = 0; s < scenario->n_systems; s++) {
		const struct psd_workload workload = psd_scenario_workload(scenario, &scenario->systems[s]);

		if (psd_system_has_workload(&scenario->systems[s]))
			PSD_TRY(psd_workload_costs(&costed->own_costs[s], &costed->graph, &workload,
						   scenario->systems[s].at, err));
	}
	return PSD_OK;
}

static enum psd_status load_graph(struct psd_graph *graph, const struct psd_scenario *scenario, struct psd_error *err)
{
	struct psd_model_choices choices = scenario->choices;

	if (scenario->has_replay && !scenario->replay.real_workers)
		choices.allows_other = true;
	if (scenario->has_train)
		choices.sample = psd_data_sample_shape(&scenario->train.data);
	return psd_graph_load_as(graph, scenario->graph_path, &choices, err);
}

enum psd_status psd_costed_model_load(struct psd_costed_model *costed, const struct psd_scenario *scenario,
				      struct psd_error *err)
{
	struct psd_costed_model loaded = {.scenario = scenario};
	enum psd_status status;

	PSD_TRY(psd_scenario_place_file(scenario, load_graph(&loaded.graph, scenario, err), err));
	loaded.own_costs = calloc(scenario->n_systems, sizeof(*loaded.own_costs));
	status = loaded.own_costs ? psd_scenario_place_file(scenario, load_all_costs(&loaded, err), err)
				  : psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a scenario");
	if (status)
		psd_costed_model_release(&loaded);
	else
		*costed = loaded;
	return status;
}

void psd_costed_model_compute_on(struct psd_costed_model *costed, bool has_own_memory)
{
	costed->is_computing = true;
	costed->costs.has_own_memory = costed->has_own_memory = has_own_memory;
	for (unsigned s = 0; costed->own_costs && s < costed->scenario->n_systems; s++)
		costed->own_costs[s].has_own_memory = has_own_memory;
}

void psd_costed_model_release(struct psd_costed_model *costed)
{
	for (unsigned s = 0; costed->own_costs && s < costed->scenario->n_systems; s++)
		psd_costs_release(&costed->own_costs[s]);
	free(costed->own_costs);
	psd_costs_release(&costed->costs);
	psd_graph_release(&costed->graph);
	*costed = (struct psd_costed_model){0};
}

const struct psd_costs *psd_costed_model_costs(const struct psd_costed_model *costed, const struct psd_system *system)
{
	return psd_system_has_workload(system) ? &costed->own_costs[system->number] : &costed->costs;
}

double psd_costed_model_compute_sec(const struct psd_costed_model *costed, const struct psd_system *system,
				    const struct psd_point *point)
{
	double samples = 0.0, samples_per_sec = 0.0;
	struct psd_kinds kinds;
	struct psd_error err;

	if (costed->scenario->n_groups == 0 ||
	    psd_kinds_make(&kinds, costed->scenario, &costed->graph, system, point, NULL, &err))
		return psd_costed_model_costs(costed, system)->compute_sec;
	for (unsigned k = 0, first = 0; k < kinds.n; first = kinds.nodes[k++].end_node) {
		const struct psd_plan_kind *kind = &kinds.plan[k];
		const double batches = (double)(kinds.nodes[k].end_node - first) * kinds.nodes[k].workers * kind->batch;

		samples += batches;
		samples_per_sec += batches * kind->speed_ratio / kind->costs.compute_sec;
	}
	psd_kinds_release(&kinds);
	return samples / samples_per_sec;
}

/* Without a link rate there is nothing to weigh seconds by. */
static enum psd_status check_rule(const struct psd_system *system, struct psd_point point, struct psd_error *err)
{
	if ((system->rule != PSD_RULE_SECONDS && !system->finds_fuse && !system->finds_early) ||
	    point.bandwidth_bps > 0)
		return PSD_OK;
	return psd_error_set(
		err, PSD_EINVAL, system->at,
		"system '%s' chooses methods by seconds, so 'network' needs 'bandwidth' in addition to 'platform'",
		system->name);
}

static enum psd_status check_hosts(const struct psd_layout *layout, const struct psd_system *system,
				   struct psd_error *err)
{
	if (psd_layout_hosts(layout) <= PSD_MAX_HOSTS)
		return PSD_OK;
	return psd_error_set(err, PSD_EINVAL, system->at, "system '%s' has %u hosts, at most %u are possible",
			     system->name, psd_layout_hosts(layout), (unsigned)PSD_MAX_HOSTS);
}

/* Without a formula for the sum over an all-reduce's steps, all steps are added up for each tensor. */
static enum psd_status check_steps(const struct psd_costed_model *costed, const struct psd_system *system,
				   const struct psd_layout *layout, struct psd_error *err)
{
	const struct psd_members members = {.n = layout->workers, .per_node = layout->workers_per_node};
	const double most = (double)costed->scenario->most_events / costed->graph.n_tensors / members.n;

	for (unsigned p = 0; p < PSD_N_ALL_REDUCES; p++)
		if ((system->sync == PSD_SYNC_ALL_REDUCE + p || system->sync == PSD_SYNC_AUTO) &&
		    !psd_all_reduces[p]->flow && psd_all_reduces[p]->steps(costed->graph.parameters, members) > most)
			return psd_refuse_length(system, layout->workers, costed->scenario->most_events,
						 PSD_RELIEF_NODES, err);
	return PSD_OK;
}

static struct psd_layout layout_of(const struct psd_scenario *scenario, const struct psd_system *system,
				   struct psd_point point)
{
	struct psd_layout layout = psd_layout_make(point.workers, point.workers_per_node, system->servers);

	if (scenario->network.local_switches > 0)
		layout.workers_per_switch = psd_scenario_most_per_node(scenario) / scenario->network.local_switches;
	layout.nodes_per_rack = scenario->network.nodes_per_rack;
	layout.servers_in = scenario->network.servers_in;
	layout.n_servers_in = scenario->network.n_servers_in;
	return layout;
}

static enum psd_status unroll(struct psd_case *made, const struct psd_plan_input *input, struct psd_error *err)
{
	enum psd_status status = psd_plan_make(&made->plan, input, err);

	if (status != PSD_OK)
		return status;
	status = check_hosts(&made->plan.layout, input->system, err);
	if (status == PSD_OK)
		status = psd_program_make(&made->program, &made->plan, err);
	if (status != PSD_OK)
		psd_plan_release(&made->plan);
	return status;
}

/* ---- how much is gathered ---- */

/* Estimated seconds of an iteration with buckets of this size; *is_one: all tensors are in one bucket. */
static enum psd_status try_size(const struct psd_plan_input *input, double *sec, bool *is_one, struct psd_error *err)
{
	/* with incast rates depend on the plan's methods */
	struct psd_prices *prices = input->system->host.incast_ratio > 0.0 ? NULL : input->prices;
	struct psd_case tried = {.system = input->system}; /* its kinds are those of the input */
	struct psd_outcome outcome = {.iteration_sec = 0.0};
	enum psd_status status = unroll(&tried, input, err);

	if (status != PSD_OK)
		return status;
	status = psd_estimate_time(&tried.program, psd_run_length_make(input->system, 0, 0.0), prices, &outcome, err);
	*sec = outcome.iteration_sec;
	*is_one = tried.plan.items[0].n_tensors == tried.plan.n_tensors;
	psd_case_release(&tried);
	return status;
}

/* Finds the size with the shortest estimated iteration, of sizes that double from a page on; the smallest of equals.
 * Machines are left out: hosts agree on sizes of buckets, not on machines. */
static enum psd_status find_fuse_bytes(uint64_t *fuse_bytes, const struct psd_plan_input *input, struct psd_error *err)
{
	struct psd_prices prices = {.all = NULL};
	struct psd_plan_input trial = *input;
	enum psd_status status = PSD_OK;
	double best_sec = INFINITY, sec;
	bool is_one = false;

	trial.machine = (struct psd_machine){.cores = 0};
	trial.prices = &prices;
	for (trial.fuse_bytes = 0; !is_one && status == PSD_OK;) {
		status = try_size(&trial, &sec, &is_one, err);
		if (status == PSD_OK && sec < best_sec) {
			best_sec = sec;
			*fuse_bytes = trial.fuse_bytes;
		}
		trial.fuse_bytes = trial.fuse_bytes > 0 ? 2 * trial.fuse_bytes : LEAST_GATHERED_BYTES;
	}
	psd_prices_release(&prices);
	return status;
}

/* A single worker exchanges nothing, so that an early begin gains nothing: all tensors are in one bucket. */
static enum psd_status settle_fuse(struct psd_plan_input *input, struct psd_error *err)
{
	if (!input->system->finds_fuse)
		return PSD_OK;
	if (input->layout.workers > 1)
		return find_fuse_bytes(&input->fuse_bytes, input, err);
	input->fuse_bytes = UINT64_MAX;
	return PSD_OK;
}

/* Returns the number of iterations of the training; 0: not known. */
static uint64_t job_iterations(const struct psd_scenario *scenario, const struct psd_system *system,
			       struct psd_point point)
{
	const uint64_t samples = psd_scenario_all_samples(scenario, system, point.nodes, point.workers);

	if (scenario->has_train && scenario->train.iterations > 0)
		return scenario->train.iterations;
	return scenario->has_job
		       ? (uint64_t)ceil((double)scenario->job.samples * scenario->job.epochs / (double)samples)
		       : 0;
}

static struct psd_plan_input input_of(const struct psd_costed_model *costed, const struct psd_system *system,
				      struct psd_point point)
{
	const struct psd_scenario *scenario = costed->scenario;
	const struct psd_workload workload = psd_scenario_workload(scenario, system);

	return (struct psd_plan_input){
		.graph = &costed->graph,
		.costs = psd_costed_model_costs(costed, system),
		.system = system,
		.network = &scenario->network,
		.layout = layout_of(scenario, system, point),
		.link_bps = point.bandwidth_bps > 0 ? point.bandwidth_bps : PSD_UNLIMITED_BPS,
		.fuse_bytes = psd_system_fuse_bytes(system, &point),
		.job_iterations = job_iterations(scenario, system, point),
		.batch = workload.batch_per_worker,
		.is_half = psd_workload_is_half(&workload),
		.is_adaptive = scenario->train.optimiser.kind == PSD_OPTIMISER_ADAMW,
		.clips = scenario->train.optimiser.most_norm > 0.0,
		.optimiser = psd_node_child(psd_node_child(scenario->root, "train"), "optimiser"),
		.is_by_norms = scenario->train.optimiser.kind == PSD_OPTIMISER_LARS,
		.machine = scenario->machine,
	};
}

/* ---- kinds of nodes ---- */

/* Factors and low-rank products of workers have sizes that follow from their batches. */
static enum psd_status check_kinds(const struct psd_case *made, struct psd_error *err)
{
	const struct psd_plan *plan = &made->plan;
	bool differ = false, has_factors = false;

	for (unsigned k = 1; k < made->kinds.n; k++)
		differ = differ || made->kinds.plan[k].batch != made->kinds.plan[0].batch;
	for (unsigned i = 0; i < plan->n_items; i++)
		has_factors = has_factors || psd_plan_rebuilds(plan, &plan->items[i]);
	if (!differ || !has_factors)
		return PSD_OK;
	return psd_error_set(err, PSD_EINVAL, made->system->at,
			     "system '%s' sends factors, which needs equal batches in all of 'cluster.groups'",
			     made->system->name);
}

static enum psd_status make_kinds(struct psd_case *made, struct psd_plan_input *input, struct psd_error *err)
{
	const struct psd_costed_model *costed = made->costed;
	struct psd_kinds *kinds = &made->kinds;

	if (costed->ignores_groups)
		return PSD_OK;
	PSD_TRY(psd_kinds_make(kinds, costed->scenario, &costed->graph, made->system, &made->point,
			       costed->is_measured ? costed->sample_sec : NULL, err));
	if (kinds->n == 0)
		return PSD_OK;
	made->first_costs = kinds->plan[0].costs;
	for (unsigned k = 0; k < kinds->n; k++) {
		struct psd_costs *costs = &kinds->plan[k].costs;

		costs->has_own_memory = costed->is_computing ? costed->has_own_memory : costs->has_own_memory;
		made->first_costs.has_own_memory = made->first_costs.has_own_memory || costs->has_own_memory;
	}
	input->costs = &made->first_costs;
	input->batch = kinds->plan[0].batch;
	input->kinds = kinds->plan;
	psd_layout_set_kinds(&input->layout, kinds->nodes, kinds->n);
	return PSD_OK;
}

static enum psd_status make_plan(struct psd_case *made, struct psd_plan_input *input, struct psd_error *err)
{
	PSD_TRY(settle_fuse(input, err));
	PSD_TRY(unroll(made, input, err));
	if (check_kinds(made, err) == PSD_OK)
		return PSD_OK;
	psd_program_release(&made->program);
	psd_plan_release(&made->plan);
	return err->status;
}

uint32_t psd_case_batch(const struct psd_case *made, unsigned worker)
{
	const struct psd_layout *layout = &made->plan.layout;

	return made->kinds.n > 0 ? made->kinds.plan[psd_layout_kind(layout, psd_layout_node(layout, worker))].batch
				 : psd_scenario_workload(made->costed->scenario, made->system).batch_per_worker;
}

unsigned psd_case_largest(const struct psd_case *made)
{
	unsigned largest = 0;

	for (unsigned node = 1; node < made->plan.layout.nodes; node++) {
		const unsigned first = psd_layout_first(&made->plan.layout, node);

		largest = psd_case_batch(made, first) > psd_case_batch(made, largest) ? first : largest;
	}
	return largest;
}

uint64_t psd_case_memory_bytes(const struct psd_case *made)
{
	const struct psd_footprint footprint =
		psd_footprint_make(&made->program, psd_case_batch(made, psd_case_largest(made)));

	return psd_footprint_bytes(&footprint);
}

uint64_t psd_case_batches_before(const struct psd_case *made, unsigned worker)
{
	const struct psd_layout *layout = &made->plan.layout;
	uint64_t sum = 0;

	if (made->kinds.n == 0)
		return (uint64_t)worker * psd_case_batch(made, 0);
	for (unsigned k = 0, first = 0; k < made->kinds.n && first < worker; k++) {
		const unsigned end = psd_layout_first(layout, made->kinds.nodes[k].end_node);

		sum += (uint64_t)((end < worker ? end : worker) - first) * made->kinds.plan[k].batch;
		first = end;
	}
	return sum;
}

uint64_t psd_case_samples(const struct psd_case *made)
{
	return psd_case_batches_before(made, made->plan.layout.workers) * made->plan.micro_batches;
}

/* ---- the whole ---- */

enum psd_status psd_case_make(struct psd_case *made, const struct psd_costed_model *costed,
			      const struct psd_system *system, struct psd_point point, struct psd_error *err)
{
	struct psd_plan_input input = input_of(costed, system, point);

	*made = (struct psd_case){.costed = costed, .system = system, .point = point};
	PSD_TRY(check_rule(system, point, err));
	PSD_TRY(check_steps(costed, system, &input.layout, err));
	PSD_TRY(psd_scenario_place_file(costed->scenario, make_kinds(made, &input, err), err));
	if (make_plan(made, &input, err) == PSD_OK)
		return PSD_OK;
	psd_kinds_release(&made->kinds);
	return err->status;
}

bool psd_case_reaches(const struct psd_case *made, const struct psd_costed_model *costed,
		      const struct psd_system *system, struct psd_point point)
{
	return made->costed == costed && made->system == system && made->kinds.n == 0 &&
	       !psd_plan_depends_on_link(system) && made->point.nodes == point.nodes &&
	       made->point.workers == point.workers && made->point.workers_per_node == point.workers_per_node &&
	       made->point.fuse_bytes == point.fuse_bytes;
}

void psd_case_move(struct psd_case *made, struct psd_point point)
{
	const struct psd_plan_input input = input_of(made->costed, made->system, point);

	made->point = point;
	psd_plan_set_link(&made->plan, &input);
}

void psd_case_release(struct psd_case *made)
{
	psd_program_release(&made->program);
	psd_plan_release(&made->plan);
	psd_kinds_release(&made->kinds);
	*made = (struct psd_case){0};
}

enum psd_status psd_case_check_all(const struct psd_scenario *scenario, struct psd_error *err)
{
	const unsigned n_points = psd_scenario_points(scenario);
	struct psd_scenario predicted = *scenario;
	struct psd_costed_model costed;
	struct psd_case made;

	predicted.choices.allows_other = true;
	PSD_TRY(psd_costed_model_load(&costed, &predicted, err));
	enum psd_status status = PSD_OK;
	for (unsigned i = 0; i < 2 * scenario->n_systems && !status; i++) {
		const struct psd_point point = psd_scenario_point(&predicted, i % 2 ? n_points - 1 : 0);

		status = psd_case_make(&made, &costed, &predicted.systems[i / 2], point, err);
		if (!status)
			psd_case_release(&made);
	}
	psd_costed_model_release(&costed);
	return status;
}
