/* Points of a sweep: nodes, workers, bandwidth of links, size of buckets. */
#include "engine/scenario/scenario.h"
#include "engine/scenario/scenario_keys.h"

#define SWEPT(text, kind, member, number)                                                                              \
	.name = (text), .type = PSD_KEY_##kind, .offset = offsetof(struct psd_scenario, member),                       \
	.most_entries = PSD_MAX_SWEEP, .n_entries_offset = offsetof(struct psd_scenario, number)

static const struct psd_key keys[] = {
	{SWEPT("nodes", COUNT, sweep_nodes, n_sweep_nodes), .lowest = 1, .highest = PSD_MAX_NODES,
	 .help = "numbers of nodes, in place of `cluster.nodes`"},
	{SWEPT("workers", COUNT, sweep_workers, n_sweep_workers), .lowest = 1,
	 .highest = (double)PSD_MAX_NODES * PSD_MAX_WORKERS_PER_NODE, .rival = "nodes",
	 .help = "total numbers of workers, in place of `cluster.nodes`. Each node has `cluster.workers_per_node` "
		 "workers; the last node has the rest"},
	{SWEPT("bandwidth", RATE, sweep_bandwidth_bps, n_sweep_bandwidths), .uses = PSD_BY_ALL | PSD_BY_CHOICE,
	 .help = "bandwidths of a node's link, in place of `cluster.network.bandwidth`"},
	{SWEPT("fuse", BYTES, sweep_fuse_bytes, n_sweep_fuses), .uses = PSD_BY_ALL | PSD_AGREED,
	 .help = "smallest sizes of buckets, in place of `systems.fuse` in all systems that give a size there"},
	{.name = NULL},
};

const struct psd_section psd_scenario_sweep = {.tables = {keys}};

/* Cluster sizes of the sweep, at least 1. */
static unsigned n_sizes(const struct psd_scenario *scenario)
{
	if (scenario->n_sweep_workers)
		return scenario->n_sweep_workers;
	return scenario->n_sweep_nodes ? scenario->n_sweep_nodes : 1;
}

static unsigned n_bandwidths(const struct psd_scenario *scenario)
{
	return scenario->n_sweep_bandwidths ? scenario->n_sweep_bandwidths : 1;
}

unsigned psd_scenario_points(const struct psd_scenario *scenario)
{
	return n_sizes(scenario) * n_bandwidths(scenario) * (scenario->n_sweep_fuses ? scenario->n_sweep_fuses : 1);
}

struct psd_point psd_scenario_point(const struct psd_scenario *scenario, unsigned i)
{
	const unsigned size = i % n_sizes(scenario), bandwidth = i / n_sizes(scenario) % n_bandwidths(scenario);
	const unsigned fuse = i / n_sizes(scenario) / n_bandwidths(scenario);
	struct psd_point point = {
		.nodes = scenario->n_sweep_nodes ? (unsigned)scenario->sweep_nodes[size] : scenario->nodes,
		.workers_per_node = psd_scenario_most_per_node(scenario),
		.bandwidth_bps = scenario->n_sweep_bandwidths ? scenario->sweep_bandwidth_bps[bandwidth]
							      : scenario->network.bandwidth_bps,
		.fuse_bytes = scenario->n_sweep_fuses ? scenario->sweep_fuse_bytes[fuse] : 0,
	};

	point.workers = psd_scenario_workers(scenario, point.nodes);
	if (!scenario->n_sweep_workers)
		return point;
	point.workers = (unsigned)scenario->sweep_workers[size];
	if (point.workers < point.workers_per_node)
		point.workers_per_node = point.workers;
	point.nodes = (point.workers - 1) / point.workers_per_node + 1;
	return point;
}

uint64_t psd_system_fuse_bytes(const struct psd_system *system, const struct psd_point *point)
{
	return system->fuse_bytes && point->fuse_bytes ? point->fuse_bytes : system->fuse_bytes;
}
