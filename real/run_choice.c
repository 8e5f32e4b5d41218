/* The choice of a cluster and of a length. */
#include "real/run_choice.h"

#include <stdbool.h>

#include "real/session/worker.h"

enum { MOST_NODES_UNASKED = 4, REPLAYED_ITERATIONS = 6 };

enum psd_status psd_run_choose_point(const struct psd_scenario *scenario, uint64_t n_nodes, struct psd_point *point,
				     struct psd_error *err)
{
	const unsigned n_points = psd_scenario_points(scenario);
	bool has_point = false;

	*point = psd_scenario_point(scenario, 0);
	if (n_nodes) {
		point->workers_per_node = scenario->workers_per_node;
		point->nodes = (unsigned)n_nodes;
		point->workers = point->nodes * point->workers_per_node;
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
			     "has no cluster of %d nodes or fewer, say how many with --set sweep.nodes=2",
			     MOST_NODES_UNASKED);
}

enum psd_status psd_run_choose_hosts(const struct psd_scenario *scenario, const struct psd_system *system,
				     unsigned n_hosts, struct psd_point *point, struct psd_error *err)
{
	const unsigned per_node = scenario->workers_per_node;

	if (n_hosts <= system->servers)
		return psd_error_set(
			err, PSD_EINVAL, system->at,
			"system '%s' has %u separate servers, the hosts file names %u hosts: no worker is left",
			system->name, system->servers, n_hosts);
	*point = psd_scenario_point(scenario, 0);
	point->workers = n_hosts - system->servers;
	point->workers_per_node = per_node < point->workers ? per_node : point->workers;
	point->nodes = (point->workers + per_node - 1) / per_node;
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

uint32_t psd_run_choose_iterations(const struct psd_scenario *scenario, uint64_t n_asked, uint64_t training_samples,
				   uint64_t global_batch, struct psd_worker_start start)
{
	if (n_asked)
		return (uint32_t)n_asked;
	if (!scenario->has_replay)
		return psd_worker_iterations(&scenario->train, training_samples, global_batch, start);
	return scenario->iterations ? psd_worker_warmed_up(scenario->iterations) : REPLAYED_ITERATIONS;
}

uint32_t psd_run_whole_periods(uint32_t n_iterations, uint32_t steps)
{
	const uint32_t warm = psd_worker_warmed_up(0), n_measured = n_iterations > warm ? n_iterations - warm : 1;

	return steps == 1 ? n_iterations : (1 + (n_measured + steps - 1) / steps) * steps;
}
