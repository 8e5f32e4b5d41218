/* `cluster` of a scenario file: nodes, network, host side of the software. Slow nodes and background traffic are in
 * scenario_events.c. Refuses keys that the chosen topology would not heed. */
#include <stddef.h>

#include "engine/document/fields.h"
#include "engine/scenario/scenario_parts.h"

static const struct psd_field cluster_fields[] = {
	{.key = "nodes",
	 .kind = PSD_FIELD_UNSIGNED,
	 .offset = offsetof(struct psd_scenario, nodes),
	 .lowest = 1,
	 .highest = PSD_MAX_NODES},
	{.key = "workers_per_node",
	 .kind = PSD_FIELD_UNSIGNED,
	 .offset = offsetof(struct psd_scenario, workers_per_node),
	 .lowest = 1,
	 .highest = PSD_MAX_WORKERS_PER_NODE},
	{.key = "network", .is_required = true},
	{.key = "local"},
	{.key = "host"},
	{.key = "machine"},
	{.key = "slow"},
	{.key = "background"},
	{.key = NULL},
};

#define NETWORK(name, type, member)                                                                                    \
	.key = (name), .kind = PSD_FIELD_##type, .offset = offsetof(struct psd_network, member)

static const struct psd_field network_fields[] = {
	{NETWORK("bandwidth", RATE, bandwidth_bps)},
	{NETWORK("payload", RATIO, payload_ratio), .lowest = 0.01, .highest = 1},
	{NETWORK("latency", SECONDS, latency_sec)},
	{NETWORK("topology", CHOICE, topology), .names = psd_topology_names},
	{NETWORK("nodes_per_rack", UNSIGNED, nodes_per_rack), .lowest = 1, .highest = PSD_MAX_NODES},
	{NETWORK("oversubscription", NUMBER, oversubscription_ratio), .lowest = 1, .highest = 1000},
	{NETWORK("platform", TEXT, platform_path)},
	{.key = NULL},
};

static const struct psd_field local_fields[] = {
	{NETWORK("bandwidth", RATE, local_bps), .is_required = true},
	{.key = NULL},
};

#define HOST(name, type, member) .key = (name), .kind = PSD_FIELD_##type, .offset = offsetof(struct psd_host, member)

static const struct psd_field host_fields[] = {
	{HOST("copy", RATE, copy_bps)},
	{HOST("reduce", RATE, reduce_bps)},
	{HOST("update", RATE, update_bps)},
	{HOST("transport", RATE, transport_bps)},
	{HOST("incast", RATIO, incast_ratio), .highest = 10},
	{HOST("latency", SECONDS, latency_sec)},
	{HOST("iteration", SECONDS, iteration_sec)},
	{.key = "collective"},
	{.key = NULL},
};

#define MACHINE(name, type, member)                                                                                    \
	.key = (name), .kind = PSD_FIELD_##type, .offset = offsetof(struct psd_machine, member)

static const struct psd_field machine_fields[] = {
	{MACHINE("cores", UNSIGNED, cores), .lowest = 1, .highest = PSD_MAX_CORES, .is_required = true},
	{MACHINE("nodes", UNSIGNED, nodes), .lowest = 1, .highest = PSD_MAX_NODES},
	{MACHINE("bytes", RATE, bytes_bps)},
	{MACHINE("message", SECONDS, message_sec)},
	{.key = NULL},
};

#define CLASS(name, type, member)                                                                                      \
	.key = (name), .kind = PSD_FIELD_##type, .offset = offsetof(struct psd_collective_class, member)

static const struct psd_field class_fields[] = {
	{CLASS("up_to", BYTES, up_to_bytes)},
	{CLASS("call", SECONDS, call_sec)},
	{CLASS("step", SECONDS, step_sec)},
	{CLASS("slowdown", NUMBER, slowdown_ratio), .lowest = 1, .highest = 1000},
	{.key = NULL},
};

static enum psd_status check_class(const struct psd_host *host, const struct psd_node *entry, struct psd_error *err)
{
	const struct psd_collective_class *newest = &host->collective[host->n_collective_classes - 1];
	const struct psd_node *up_to = psd_node_child(entry, "up_to");

	if (entry->next && !up_to)
		return psd_error_set(err, PSD_EINVAL, entry->at,
				     "'collective' needs 'up_to' in every class but the last");
	if (!entry->next && up_to)
		return psd_error_set(
			err, PSD_EINVAL, up_to->key_at,
			"'up_to' stands in the last class of 'collective', which must hold for all larger messages");
	if (up_to && host->n_collective_classes > 1 && newest->up_to_bytes <= newest[-1].up_to_bytes)
		return psd_error_set(err, PSD_EINVAL, up_to->at,
				     "'up_to' is '%.80s', must be more than in the class before", up_to->text);
	return PSD_OK;
}

/* A system's own list replaces the cluster's. */
static enum psd_status read_collective(struct psd_host *host, const struct psd_node *list, struct psd_error *err)
{
	enum psd_status status = psd_fields_check_list(list, "collective", PSD_MAX_COLLECTIVE_CLASSES, err);

	host->n_collective_classes = 0;
	for (const struct psd_node *entry = list->first; !status && entry; entry = entry->next) {
		struct psd_collective_class *class = &host->collective[host->n_collective_classes++];

		*class = (struct psd_collective_class){.up_to_bytes = UINT64_MAX, .slowdown_ratio = 1};
		status = psd_fields_read(class, entry, "collective", class_fields, err);
		if (!status)
			status = check_class(host, entry, err);
	}
	return status;
}

enum psd_status psd_scenario_read_host(struct psd_host *host, const struct psd_node *mapping, struct psd_error *err)
{
	const struct psd_node *collective = psd_node_child(mapping, "collective");
	enum psd_status status = psd_fields_read(host, mapping, "host", host_fields, err);

	return !status && collective ? read_collective(host, collective, err) : status;
}

/* What a platform file decides by itself, and what only it may leave out. */
static enum psd_status check_platform(const struct psd_network *network, const struct psd_node *mapping,
				      struct psd_error *err)
{
	static const char *const needed[] = {"bandwidth", "latency"};
	const struct psd_node *topology = psd_node_child(mapping, "topology");

	if (!network->platform_path && network->topology == PSD_TOPOLOGY_PLATFORM)
		return psd_error_set(err, PSD_EINVAL, topology->at,
				     "'topology' is 'platform', which needs 'platform: file.xml'");
	if (network->platform_path && topology && network->topology != PSD_TOPOLOGY_PLATFORM)
		return psd_error_set(err, PSD_EINVAL, topology->key_at,
				     "'topology' has no effect beside 'platform', whose file decides");
	if (network->platform_path && psd_node_child(mapping, "payload"))
		return psd_error_set(err, PSD_EINVAL, psd_node_child(mapping, "payload")->key_at,
				     "'payload' has no effect beside 'platform', whose file decides");
	for (unsigned i = 0; i < 2; i++)
		if (!network->platform_path && !psd_node_child(mapping, needed[i]))
			return psd_error_set(err, PSD_EINVAL, mapping->at, "'network' needs '%s'", needed[i]);
	return PSD_OK;
}

static enum psd_status check_racks(const struct psd_network *network, const struct psd_node *mapping,
				   struct psd_error *err)
{
	static const char *const rack_keys[] = {"nodes_per_rack", "oversubscription"};
	const bool has_racks = network->topology == PSD_TOPOLOGY_RACKS || network->topology == PSD_TOPOLOGY_FAT_TREE;

	if (has_racks && network->nodes_per_rack == 0)
		return psd_error_set(err, PSD_EINVAL, mapping->at,
				     "'network' needs 'nodes_per_rack' where 'topology' is '%s'",
				     psd_topology_names[network->topology]);
	for (unsigned i = 0; !has_racks && i < 2; i++) {
		const struct psd_node *child = psd_node_child(mapping, rack_keys[i]);

		if (child)
			return psd_error_set(err, PSD_EINVAL, child->key_at,
					     "'%s' has no effect where 'topology' is '%s', only in racks and fat-tree",
					     rack_keys[i], psd_topology_names[network->topology]);
	}
	return PSD_OK;
}

static enum psd_status read_network(const struct psd_scenario_reader *reader, const struct psd_node *mapping)
{
	struct psd_network *network = &reader->scenario->network;
	enum psd_status status = psd_fields_read(network, mapping, "network", network_fields, reader->err);

	if (!status)
		status = check_platform(network, mapping, reader->err);
	if (!status && network->platform_path) {
		network->topology = PSD_TOPOLOGY_PLATFORM;
		status = psd_scenario_join(reader, network->platform_path, &network->platform_path);
	}
	return status ? status : check_racks(network, mapping, reader->err);
}

/* 'nodes' and the sweep say the same thing; the sweep wins in a file, but a setting must not vanish. */
static enum psd_status settle_nodes(const struct psd_scenario_reader *reader, const struct psd_node *cluster)
{
	struct psd_scenario *scenario = reader->scenario;
	const struct psd_node *nodes = psd_node_child(cluster, "nodes");
	const bool has_sweep = scenario->n_sweep_nodes || scenario->n_sweep_workers;

	if (!nodes && !has_sweep)
		return psd_error_set(reader->err, PSD_EINVAL, cluster->at,
				     "'cluster' needs 'nodes', or 'sweep' must name them");
	if (nodes && has_sweep && nodes->at.line == 0)
		return psd_error_set(reader->err, PSD_EINVAL, nodes->at,
				     "'nodes' has no effect beside 'sweep', set 'sweep.%s'",
				     scenario->n_sweep_nodes ? "nodes" : "workers");
	for (unsigned i = 0; !nodes && i < psd_scenario_points(scenario); i++)
		if (scenario->nodes < psd_scenario_point(scenario, i).nodes)
			scenario->nodes = psd_scenario_point(scenario, i).nodes;
	return PSD_OK;
}

static enum psd_status check_swept_bandwidth(const struct psd_scenario_reader *reader)
{
	const struct psd_node *swept = psd_node_child(psd_node_child(reader->root, "sweep"), "bandwidth");
	const struct psd_node *network = psd_node_child(psd_node_child(reader->root, "cluster"), "network");
	const struct psd_node *bandwidth = psd_node_child(network, "bandwidth");

	if (swept && reader->scenario->network.platform_path)
		return psd_error_set(reader->err, PSD_EINVAL, swept->key_at,
				     "'bandwidth' cannot be swept beside 'platform', whose file decides");
	if (swept && bandwidth && bandwidth->at.line == 0)
		return psd_error_set(reader->err, PSD_EINVAL, bandwidth->at,
				     "'bandwidth' has no effect beside 'sweep', set 'sweep.bandwidth'");
	return PSD_OK;
}

enum psd_status psd_scenario_read_cluster(const struct psd_scenario_reader *reader)
{
	struct psd_scenario *scenario = reader->scenario;
	const struct psd_node *mapping = psd_node_child(reader->root, "cluster");
	const struct psd_node *local = psd_node_child(mapping, "local"), *host = psd_node_child(mapping, "host");
	const struct psd_node *machine = psd_node_child(mapping, "machine");
	enum psd_status status = psd_fields_read(scenario, mapping, "cluster", cluster_fields, reader->err);

	if (!status)
		status = read_network(reader, psd_node_child(mapping, "network"));
	if (!status && local)
		status = psd_fields_read(&scenario->network, local, "local", local_fields, reader->err);
	if (!status && machine)
		status = psd_fields_read(&scenario->machine, machine, "machine", machine_fields, reader->err);
	if (!status && host)
		status = psd_scenario_read_host(&scenario->host, host, reader->err);
	if (!status)
		status = psd_scenario_read_sweep(reader);
	if (!status)
		status = settle_nodes(reader, mapping);
	if (!status)
		status = check_swept_bandwidth(reader);
	return status ? status : psd_scenario_read_events(reader, mapping);
}
