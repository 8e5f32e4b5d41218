/* The choices of a run that its other parts depend on: systems, device, cluster, length. */
#include <inttypes.h>
#include <string.h>

#include "engine/document/document.h"
#include "real/run_parts.h"

enum { MOST_NODES_UNASKED = 4, REPLAYED_ITERATIONS = 6 };

bool psd_run_is_chosen(const struct psd_run *run, const struct psd_system *system)
{
	return !run->options->system_name || !strcmp(run->options->system_name, system->name);
}

const struct psd_replay *psd_run_replay(const struct psd_run *run)
{
	return run->scenario->has_replay ? &run->replay : NULL;
}

bool psd_run_trains(const struct psd_run *run)
{
	return psd_worker_use(run->scenario) != PSD_BY_REPLAY;
}

/* The system that runs, or before that the first one that will run. */
static const struct psd_system *counted_system(const struct psd_run *run)
{
	const struct psd_system *systems = run->scenario->systems;
	unsigned first = 0;

	while (first + 1 < run->scenario->n_systems && !psd_run_is_chosen(run, &systems[first]))
		first++;
	return run->system ? run->system : &systems[first];
}

uint64_t psd_run_global_batch(const struct psd_run *run)
{
	return psd_scenario_all_samples(run->scenario, counted_system(run), run->point.nodes, run->point.workers);
}

static struct psd_worker_start start_of(const struct psd_run *run)
{
	return (struct psd_worker_start){run->first_iteration, run->first_sample};
}

uint32_t psd_run_iterations(const struct psd_run *run)
{
	const struct psd_scenario *scenario = run->scenario;

	if (run->options->n_iterations)
		return (uint32_t)run->options->n_iterations;
	if (!scenario->has_replay)
		return psd_worker_iterations(&scenario->train, run->training_samples, psd_run_global_batch(run),
					     start_of(run));
	return scenario->iterations ? psd_worker_warmed_up(scenario->iterations) : REPLAYED_ITERATIONS;
}

bool psd_run_is_done(const struct psd_run *run)
{
	return run->first_iteration >= psd_run_iterations(run);
}

/* The position of a key of `train` in the scenario. */
static struct psd_place place_of_key(const struct psd_run *run, const char *key)
{
	const struct psd_node *node = psd_node_child(psd_node_child(run->scenario->root, "train"), key);

	return node ? node->at : PSD_NOWHERE;
}

static enum psd_status check_arithmetic(const struct psd_run *run, struct psd_error *err)
{
	const enum psd_layer_arithmetic arithmetic = run->scenario->train.arithmetic;

	if (arithmetic == PSD_LAYERS_FP32 || !run->device->has_fp32_alone)
		return PSD_OK;
	return psd_error_set(err, PSD_EINVAL, place_of_key(run, "arithmetic"),
			     "'arithmetic' is '%s', must be 'fp32' where '%s' computes",
			     psd_layer_arithmetic_names[arithmetic], run->device->name);
}

enum psd_status psd_run_choose_device(struct psd_run *run, struct psd_error *err)
{
	PSD_TRY(psd_device_choose(&run->device, run->scenario->train.device, place_of_key(run, "device"), err));
	PSD_TRY(check_arithmetic(run, err));
	psd_costed_model_compute_on(&run->costed, run->device->has_own_memory);
	return PSD_OK;
}

enum psd_status psd_run_check_loss(const struct psd_run *run, struct psd_error *err)
{
	const struct psd_graph *graph = &run->costed.graph;
	const struct psd_node *file = psd_node_child(psd_node_child(run->scenario->root, "model"), "graph");

	for (unsigned l = 0; l < graph->n_layers; l++)
		if (graph->layers[l].kind->is_loss)
			return PSD_OK;
	return psd_error_set(err, PSD_EINVAL, file->at,
			     "'graph' is '%.80s', which has no loss for training: end it with a softmax-loss layer "
			     "(Caffe: SoftmaxWithLoss)",
			     run->scenario->graph_path);
}

/* ---- the cluster ---- */

enum psd_status psd_run_choose_point(const struct psd_scenario *scenario, uint64_t n_nodes, struct psd_point *point,
				     struct psd_error *err)
{
	const unsigned n_points = psd_scenario_points(scenario);
	bool has_point = false;

	*point = psd_scenario_point(scenario, 0);
	if (n_nodes) {
		point->workers_per_node = psd_scenario_most_per_node(scenario);
		point->nodes = (unsigned)n_nodes;
		point->workers = psd_scenario_workers(scenario, point->nodes);
		return PSD_OK;
	}
	for (unsigned i = 0; i < n_points; i++) {
		const struct psd_point candidate = psd_scenario_point(scenario, i);

		if (candidate.nodes > MOST_NODES_UNASKED || (has_point && (point->nodes > 1 || candidate.nodes == 1)))
			continue;
		*point = candidate;
		has_point = true;
	}
	if (has_point)
		return PSD_OK;
	return psd_error_set(err, PSD_EINVAL, (struct psd_place){scenario->path, 0, 0},
			     "the scenario has no cluster of %d nodes or fewer, choose one with --set sweep.nodes=2",
			     MOST_NODES_UNASKED);
}

enum psd_status psd_run_choose_hosts(const struct psd_scenario *scenario, const struct psd_system *system,
				     unsigned n_hosts, struct psd_point *point, struct psd_error *err)
{
	const unsigned per_node = psd_scenario_most_per_node(scenario);

	if (n_hosts <= system->servers)
		return psd_error_set(
			err, PSD_EINVAL, system->at,
			"system '%s' has %u separate servers, the hosts file names %u hosts: no worker is left",
			system->name, system->servers, n_hosts);
	*point = psd_scenario_point(scenario, 0);
	point->workers = n_hosts - system->servers;
	point->workers_per_node = per_node < point->workers ? per_node : point->workers;
	point->nodes = (point->workers + per_node - 1) / per_node;
	if (scenario->n_groups > 0 && point->workers == psd_scenario_workers(scenario, scenario->nodes))
		point->nodes = scenario->nodes;
	return PSD_OK;
}

enum psd_status psd_run_check_hosts(const struct psd_system *system, const struct psd_point *point, unsigned n_hosts,
				    struct psd_error *err)
{
	if (point->workers + system->servers == n_hosts)
		return PSD_OK;
	return psd_error_set(err, PSD_EINVAL, system->at,
			     "system '%s' has %u hosts, %u workers and %u separate servers; the hosts file names %u",
			     system->name, point->workers + system->servers, point->workers, system->servers, n_hosts);
}

/* ---- the length ---- */

uint32_t psd_run_whole_periods(uint32_t n_iterations, uint32_t first, uint32_t steps)
{
	const uint32_t warm = psd_worker_warmed_up(0), n_measured = n_iterations > warm ? n_iterations - warm : 1;
	const uint32_t n_before = first > warm ? first : warm;

	return steps == 1 ? n_iterations : ((n_before + steps - 1) / steps + (n_measured + steps - 1) / steps) * steps;
}

/* At rate 0 nothing is trained. */
static enum psd_status check_end(const struct psd_run *run, struct psd_error *err)
{
	const struct psd_learning_rate *rate = &run->train.rate;
	const uint32_t n_iterations = psd_run_iterations(run);

	if (psd_run_replay(run) || !psd_rate_ends_at_zero(rate) || n_iterations <= rate->max_iterations)
		return PSD_OK;
	return psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = run->scenario->path},
			     "the run has %" PRIu32 " iterations, '%s' ends after %" PRIu64
			     ": the rate is 0 from there on",
			     n_iterations, psd_rate_policy_names[rate->policy], rate->max_iterations);
}

enum psd_status psd_run_settle_end(struct psd_run *run, struct psd_error *err)
{
	if (psd_run_trains(run) && run->scenario->train.rate.max_iterations == 0)
		run->train.rate.max_iterations = psd_worker_iterations(&run->train, run->training_samples,
								       psd_run_global_batch(run), start_of(run));
	return check_end(run, err);
}
