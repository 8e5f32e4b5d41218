/* The points of a sweep: how many nodes, how many workers, how fast the links. Refuses to know what else differs
 * between points. */
#include "engine/document/fields.h"
#include "engine/scenario/scenario_parts.h"

static const struct psd_field sweep_fields[] = {
	{.key = "nodes"},
	{.key = "workers"},
	{.key = "bandwidth"},
	{.key = NULL},
};

/* The entries of a list; a plain value counts as a list of one, so that --set sweep.nodes=8 works. */
static enum psd_status open_list(const struct psd_node *node, const struct psd_node **first, struct psd_error *err)
{
	if (node->kind == PSD_NODE_SCALAR) {
		*first = node;
		return PSD_OK;
	}
	*first = node->first;
	return psd_fields_check_list(node, node->key, PSD_MAX_SWEEP, err);
}

static const struct psd_node *next_entry(const struct psd_node *list, const struct psd_node *entry)
{
	return list == entry ? NULL : entry->next;
}

static enum psd_status read_counts(uint64_t *counts, unsigned *n_counts, const struct psd_node *list, uint64_t highest,
				   struct psd_error *err)
{
	const struct psd_node *entry;
	enum psd_status status;

	if (!list)
		return PSD_OK;
	status = open_list(list, &entry, err);
	for (; !status && entry; entry = next_entry(list, entry))
		status = psd_node_count(entry, 1, highest, &counts[(*n_counts)++], err);
	return status;
}

static enum psd_status read_rates(double *rates, unsigned *n_rates, const struct psd_node *list, struct psd_error *err)
{
	const struct psd_node *entry;
	enum psd_status status;

	if (!list)
		return PSD_OK;
	status = open_list(list, &entry, err);
	for (; !status && entry; entry = next_entry(list, entry))
		status = psd_node_rate(entry, &rates[(*n_rates)++], err);
	return status;
}

enum psd_status psd_scenario_read_sweep(const struct psd_scenario_reader *reader)
{
	struct psd_scenario *scenario = reader->scenario;
	const struct psd_node *mapping = psd_node_child(reader->root, "sweep");
	const struct psd_node *nodes = psd_node_child(mapping, "nodes"), *workers = psd_node_child(mapping, "workers");
	enum psd_status status;

	if (!mapping)
		return PSD_OK;
	status = psd_fields_read(scenario, mapping, "sweep", sweep_fields, reader->err);
	if (!status && nodes && workers)
		status = psd_error_set(reader->err, PSD_EINVAL, workers->key_at,
				       "'workers' and 'nodes' cannot both be swept, must be one of them");
	if (!status)
		status =
			read_counts(scenario->sweep_nodes, &scenario->n_sweep_nodes, nodes, PSD_MAX_NODES, reader->err);
	if (!status)
		status = read_counts(scenario->sweep_workers, &scenario->n_sweep_workers, workers,
				     (uint64_t)PSD_MAX_NODES * scenario->workers_per_node, reader->err);
	if (!status)
		status = read_rates(scenario->sweep_bandwidth_bps, &scenario->n_sweep_bandwidths,
				    psd_node_child(mapping, "bandwidth"), reader->err);
	return status;
}

/* Cluster sizes of the sweep, at least 1. */
static unsigned n_sizes(const struct psd_scenario *scenario)
{
	if (scenario->n_sweep_workers)
		return scenario->n_sweep_workers;
	return scenario->n_sweep_nodes ? scenario->n_sweep_nodes : 1;
}

unsigned psd_scenario_points(const struct psd_scenario *scenario)
{
	return n_sizes(scenario) * (scenario->n_sweep_bandwidths ? scenario->n_sweep_bandwidths : 1);
}

struct psd_point psd_scenario_point(const struct psd_scenario *scenario, unsigned i)
{
	const unsigned size = i % n_sizes(scenario), bandwidth = i / n_sizes(scenario);
	struct psd_point point = {
		.nodes = scenario->n_sweep_nodes ? (unsigned)scenario->sweep_nodes[size] : scenario->nodes,
		.workers_per_node = scenario->workers_per_node,
		.bandwidth_bps = scenario->n_sweep_bandwidths ? scenario->sweep_bandwidth_bps[bandwidth]
							      : scenario->network.bandwidth_bps,
	};

	point.workers = point.nodes * point.workers_per_node;
	if (!scenario->n_sweep_workers)
		return point;
	point.workers = (unsigned)scenario->sweep_workers[size];
	if (point.workers < point.workers_per_node)
		point.workers_per_node = point.workers;
	point.nodes = (point.workers - 1) / point.workers_per_node + 1;
	return point;
}
