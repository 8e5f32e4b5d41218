/* `cluster` of a scenario file: nodes, network, host side of the software, and what disturbs a run. Refuses nodes that
 * some point of the sweep does not have, and what a link could not carry. */
#include <math.h>

#include "engine/scenario/scenario.h"
#include "engine/scenario/scenario_keys.h"

#define LEAST_BACKGROUND_BYTES 10000
#define LEAST_PERIOD_SEC       10e-6

const char *const psd_topology_names[] = {"star", "racks", "fat-tree", "platform", NULL};

#define KEY(of, text, kind, member) .name = (text), .type = PSD_KEY_##kind, .offset = offsetof(struct of, member)
#define NETWORK(text, kind, member) KEY(psd_network, text, kind, member)
#define HOST(text, kind, member)    KEY(psd_host_costs, text, kind, member)
#define CLUSTER(text, kind, member) KEY(psd_scenario, text, kind, member)
#define BIT(topology)		    (1u << PSD_TOPOLOGY_##topology)
#define OF_RACKS		    (BIT(RACKS) | BIT(FAT_TREE))
#define OF_SWITCHES		    (BIT(STAR) | OF_RACKS)
#define OF_ALL			    (OF_SWITCHES | BIT(PLATFORM))

static const struct psd_key network_keys[] = {
	{NETWORK("topology", CHOICE, topology), .names = psd_topology_names, .fallback = "star",
	 .uses = PSD_BY_SIMULATION, .is_refused = true,
	 .help = "star: one switch that never blocks; platform: what `platform` says"},
	{NETWORK("platform", PATH, platform_path), .when = {"topology", BIT(PLATFORM), BIT(PLATFORM)},
	 .uses = PSD_BY_SIMULATION, .is_refused = true, .help = "SimGrid's XML; `host.latency` still counts"},
	{NETWORK("bandwidth", RATE, bandwidth_bps), .when = {"topology", OF_ALL, OF_SWITCHES},
	 .help = "of a node's link, each direction; psd-run takes 100kbps to 400Gbps; beside `platform` for planning "
		 "only"},
	{NETWORK("latency", SECONDS, latency_sec), .when = {"topology", OF_ALL, OF_SWITCHES},
	 .help = "from node to node, one way, of the links alone; beside `platform` for planning only"},
	{NETWORK("payload", RATIO, payload_ratio), .lowest = 0.01, .highest = 1, .fallback = "1",
	 .when = {"topology", OF_SWITCHES, 0}, .uses = PSD_BY_SIM | PSD_BY_REPLAY | PSD_BY_CHOICE,
	 .help = "what packet headers leave of a link's rate to tensors"},
	{NETWORK("nodes_per_rack", UNSIGNED, nodes_per_rack), .lowest = 1, .highest = PSD_MAX_NODES,
	 .when = {"topology", OF_RACKS, OF_RACKS}, .uses = PSD_BY_SIMULATION, .help = "nodes below one leaf switch"},
	{NETWORK("oversubscription", NUMBER, oversubscription_ratio), .lowest = 1, .highest = 1000, .fallback = "1",
	 .when = {"topology", OF_RACKS, 0}, .uses = PSD_BY_SIMULATION,
	 .help = "sum of a leaf's node links over that of its uplinks"},
	{.name = NULL},
};

static enum psd_status settle_network(const struct psd_schema_reader *reader, void *base,
				      const struct psd_node *mapping)
{
	struct psd_network *network = base;

	(void)reader;
	if (network->platform_path && !psd_node_child(mapping, "topology"))
		network->topology = PSD_TOPOLOGY_PLATFORM;
	return PSD_OK;
}

static const struct psd_section network = {.tables = {network_keys}, .settle = settle_network};

static const struct psd_key local_keys[] = {
	{NETWORK("bandwidth", RATE, local_bps), .is_required = true, .help = "of each one's own link, each direction"},
	{NETWORK("latency", SECONDS, local_latency_sec), .help = "from worker to worker, one way; else none"},
	{NETWORK("switches", UNSIGNED, local_switches), .lowest = 2, .highest = PSD_MAX_WORKERS_PER_NODE,
	 .help = "of a node, each with an equal share of its workers, in their order; what leaves the node passes its "
		 "worker's link and switch, too; else one that never blocks, and what leaves the node passes none"},
	{NETWORK("between", RATE, between_bps),
	 .help = "of the uplink of each of `switches`, each direction; else as `bandwidth`"},
	{.name = NULL},
};

static enum psd_status check_local(const struct psd_schema_reader *reader, void *base, const struct psd_node *mapping)
{
	const struct psd_network *links = base;
	const struct psd_node *between = psd_node_child(mapping, "between");

	if (between && links->local_switches == 0)
		return psd_error_set(reader->err, PSD_EINVAL, between->key_at,
				     "'between' has no effect without 'switches'");
	return PSD_OK;
}

static const struct psd_section local = {.tables = {local_keys}, .check = check_local};

/* ---- the host side of software ---- */

#define CLASS(text, kind, member) KEY(psd_collective_class, text, kind, member)

static const struct psd_key class_keys[] = {
	{CLASS("up_to", BYTES, up_to_bytes), .help = "the largest message of this class; the last class has no bound"},
	{CLASS("chunk", BYTES, chunk_bytes), .help = "the largest share of a message for each worker"},
	{CLASS("workers", UNSIGNED, workers), .lowest = 1, .highest = PSD_MAX_HOSTS, .help = "the most"},
	{CLASS("call", SECONDS, call_sec), .fallback = "0s", .help = "of each collective"},
	{CLASS("step", SECONDS, step_sec), .fallback = "0s", .help = "of each step, beyond latency"},
	{CLASS("slowdown", NUMBER, slowdown_ratio), .lowest = 1, .highest = 1000, .fallback = "1",
	 .help = "of the bytes, against the links' bandwidth; what `transport` slows is not slowed again"},
	{.name = NULL},
};

static const struct psd_section class_section = {.tables = {class_keys}};

static const struct psd_key host_keys[] = {
	{HOST("copy", RATE, copy_bps),
	 .help = "between a device with memory of its own (not `cpu`) and its host, each direction its own engine"},
	{HOST("reduce", RATE, reduce_bps), .help = "gradient bytes that a server sums and applies, or a leader sums"},
	{HOST("update", RATE, update_bps), .help = "gradient bytes that a worker applies where no server does"},
	{HOST("transport", RATE, transport_bps), .help = "what the stack moves in or out of a node, each direction"},
	{HOST("local", RATE, local_bps), .uses = PSD_BY_SIM | PSD_BY_CHOICE,
	 .help = "what the stack moves out of or into a worker, to or from others of its node"},
	{HOST("incast", RATIO, incast_ratio), .highest = 10, .fallback = "0",
	 .help = "each sender slows its receiver: rate = transport / (1 + incast * senders)"},
	{HOST("latency", SECONDS, latency_sec), .fallback = "0s",
	 .help = "what the two ends add to a message's way, beyond `network.latency`"},
	{HOST("iteration", SECONDS, iteration_sec), .fallback = "0s",
	 .help = "of each iteration, after synchronisation: bookkeeping, reading data where layers wait for it"},
	{HOST("agree", SECONDS, agree_sec), .fallback = "0s",
	 .help = "before each all-reduce of a wait-free schedule: until all workers are known to be ready"},
	{HOST("tensor", SECONDS, tensor_sec), .fallback = "0s",
	 .help = "of a worker's device for each tensor whose sum it applies, whatever its bytes: what it launches "
		 "beyond "
		 "what a single worker does"},
	{HOST("overlap", RATIO, overlap_ratio), .highest = 0.99, .fallback = "0", .uses = PSD_BY_SIM | PSD_BY_CHOICE,
	 .help = "share of a worker's device that an all-reduce takes while it runs"},
	{HOST("collective", SECTION, collective), .section = &class_section, .most_entries = PSD_MAX_COLLECTIVE_CLASSES,
	 .n_entries_offset = offsetof(struct psd_host_costs, n_collective_classes),
	 .entry_bytes = sizeof(struct psd_collective_class),
	 .help = "what a ring costs beyond bandwidth, of the first class that holds; a system's list replaces the "
		 "cluster's"},
	{.name = NULL},
};

/* The last class holds for all others. */
static enum psd_status check_host(const struct psd_schema_reader *reader, void *base, const struct psd_node *mapping)
{
	const struct psd_collective_class *class = ((struct psd_host_costs *)base)->collective;
	const struct psd_node *list = psd_node_child(mapping, "collective");

	for (const struct psd_node *entry = list ? list->first : NULL; entry; entry = entry->next, class ++) {
		const bool is_bounded = class->up_to_bytes || class->chunk_bytes || class->workers;

		if (entry->next && !is_bounded)
			return psd_error_set(reader->err, PSD_EINVAL, entry->at,
					     "'collective' needs 'up_to', 'chunk' or 'workers' in every class but the "
					     "last");
		if (!entry->next && is_bounded)
			return psd_error_set(reader->err, PSD_EINVAL, entry->at,
					     "the last class of 'collective' has 'up_to', 'chunk' or 'workers', must "
					     "hold for all");
		if (entry != list->first && class->up_to_bytes && class->up_to_bytes <= class[-1].up_to_bytes &&
		    !class[-1].chunk_bytes && !class[-1].workers)
			return psd_error_set(reader->err, PSD_EINVAL, psd_node_child(entry, "up_to")->at,
					     "'up_to' is '%.80s', must be more than in the class before",
					     psd_node_child(entry, "up_to")->text);
	}
	return PSD_OK;
}

const struct psd_section psd_scenario_host = {.tables = {host_keys}, .check = check_host};

/* ---- processors, and what disturbs a run ---- */

#define MACHINE(text, kind, member)    KEY(psd_machine, text, kind, member)
#define SLOW(text, kind, member)       KEY(psd_slowdown, text, kind, member)
#define BACKGROUND(text, kind, member) KEY(psd_background, text, kind, member)

static const struct psd_key machine_keys[] = {
	{MACHINE("cores", UNSIGNED, cores), .lowest = 1, .highest = PSD_MAX_CORES, .is_required = true,
	 .help = "of one machine: each worker and separate server has its share, with fewer cores all share all"},
	{MACHINE("nodes", UNSIGNED, nodes), .lowest = 1, .highest = PSD_MAX_NODES,
	 .help = "on one machine, in the order of their numbers; else all are on one"},
	{MACHINE("bytes", RATE, bytes_bps),
	 .help = "sent plus received, that a core moves through sockets if it does nothing else; through memory inside "
		 "a node it moves at least what `local` says"},
	{MACHINE("message", SECONDS, message_sec),
	 .help = "of a core at each end of a message that follows no other at once, its bytes aside"},
	{.name = NULL},
};
static const struct psd_section machine = {.tables = {machine_keys}};

static const struct psd_key slow_keys[] = {
	{SLOW("node", UNSIGNED, node), .is_required = true, .highest = PSD_MAX_NODES - 1, .help = "counted from 0"},
	{SLOW("compute", RATIO, compute_ratio), .lowest = 0.001, .highest = 100, .fallback = "1",
	 .help = "of its speed, 50%: half as fast"},
	{SLOW("link", RATIO, link_ratio), .lowest = 0.001, .highest = 100, .fallback = "1", .help = "of its link's"},
	{SLOW("from", SECONDS, from_sec), .fallback = "0s", .help = "since the start of the run"},
	{SLOW("until", SECONDS, until_sec), .help = "else for good"},
	{.name = NULL},
};

static enum psd_status check_slow(const struct psd_schema_reader *reader, void *base, const struct psd_node *entry)
{
	struct psd_slowdown *slow = base;
	const struct psd_node *until = psd_node_child(entry, "until");

	if (!psd_node_child(entry, "compute") && !psd_node_child(entry, "link"))
		return psd_error_set(reader->err, PSD_EINVAL, entry->at, "'slow' needs 'compute' or 'link'");
	if (!until)
		slow->until_sec = INFINITY;
	if (slow->until_sec <= slow->from_sec)
		return psd_error_set(reader->err, PSD_EINVAL, until->at,
				     "'until' is '%.80s', must be later than 'from'", until->text);
	return PSD_OK;
}

static const struct psd_section slow_section = {.tables = {slow_keys}, .check = check_slow};

static const struct psd_key background_keys[] = {
	{BACKGROUND("from", UNSIGNED, from_node), .is_required = true, .highest = PSD_MAX_NODES - 1, .help = "a node"},
	{BACKGROUND("to", UNSIGNED, to_node), .is_required = true, .highest = PSD_MAX_NODES - 1,
	 .help = "another node"},
	{BACKGROUND("bytes", BYTES, bytes), .is_required = true, .help = "of a transfer, 10kB or more"},
	{BACKGROUND("period", SECONDS, period_sec), .help = "10us or more; else one transfer follows the other"},
	{.name = NULL},
};

static enum psd_status check_background(const struct psd_schema_reader *reader, void *base,
					const struct psd_node *entry)
{
	const struct psd_background *background = base;
	const struct psd_node *bytes = psd_node_child(entry, "bytes"), *period = psd_node_child(entry, "period");

	if (background->from_node == background->to_node)
		return psd_error_set(reader->err, PSD_EINVAL, psd_node_child(entry, "to")->at,
				     "'to' is %u, must be another node than 'from'", background->to_node);
	/* very small or frequent transfers would be all that is simulated */
	if (background->bytes < LEAST_BACKGROUND_BYTES)
		return psd_error_set(reader->err, PSD_EINVAL, bytes->at, "'bytes' is '%.80s', must be 10kB or more",
				     bytes->text);
	if (period && background->period_sec < LEAST_PERIOD_SEC)
		return psd_error_set(
			reader->err, PSD_EINVAL, period->at,
			"'period' is '%.80s', must be 10us or more; without it transfers follow one another",
			period->text);
	return PSD_OK;
}

static const struct psd_section background_section = {.tables = {background_keys}, .check = check_background};

static const struct psd_key cluster_keys[] = {
	{CLUSTER("nodes", UNSIGNED, nodes), .lowest = 1, .highest = PSD_MAX_NODES,
	 .help = "where `sweep` does not name them; hosts of a hosts file are as many as it says"},
	{CLUSTER("workers_per_node", UNSIGNED, workers_per_node), .lowest = 1, .highest = PSD_MAX_WORKERS_PER_NODE,
	 .fallback = "1", .uses = PSD_BY_ALL | PSD_AGREED, .help = "who share its link"},
	{CLUSTER("network", SECTION, network), .section = &network, .is_required = true,
	 .uses = PSD_BY_ALL | PSD_BY_CHOICE, .help = "links between nodes"},
	{CLUSTER("local", SECTION, network), .section = &local, .uses = PSD_BY_SIM | PSD_BY_CHOICE,
	 .help = "links inside a node, from worker to worker"},
	{CLUSTER("host", SECTION, host), .section = &psd_scenario_host,
	 .uses = PSD_BY_SIM | PSD_BY_REPLAY | PSD_BY_CHOICE,
	 .help = "what a software stack costs; what is left out costs nothing"},
	{CLUSTER("machine", SECTION, machine), .section = &machine, .uses = PSD_BY_SIM,
	 .help = "processors that compute the layers, and reduce, update and serve the sockets as well"},
	{CLUSTER("slow", SECTION, slowdowns), .section = &slow_section, .most_entries = PSD_MAX_EVENTS,
	 .n_entries_offset = offsetof(struct psd_scenario, n_slowdowns), .entry_bytes = sizeof(struct psd_slowdown),
	 .uses = PSD_BY_SIMULATION, .is_refused = true, .help = "nodes that are slow, for a time or for good"},
	{CLUSTER("background", SECTION, backgrounds), .section = &background_section, .most_entries = PSD_MAX_EVENTS,
	 .n_entries_offset = offsetof(struct psd_scenario, n_backgrounds), .entry_bytes = sizeof(struct psd_background),
	 .uses = PSD_BY_SIMULATION, .is_refused = true, .help = "traffic of others"},
	{.name = NULL},
};

const struct psd_section psd_scenario_cluster = {.tables = {cluster_keys}};

/* ---- together with the sweep ---- */

/* 'nodes' and the sweep say the same thing; the sweep wins in a file, but a setting must not vanish. */
static enum psd_status settle_nodes(const struct psd_schema_reader *reader, const struct psd_node *cluster)
{
	struct psd_scenario *scenario = reader->base;
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

static enum psd_status check_swept(const struct psd_schema_reader *reader, const struct psd_node *root,
				   const struct psd_node *cluster)
{
	const struct psd_scenario *scenario = reader->base;
	const struct psd_node *sweep = psd_node_child(root, "sweep"), *swept = psd_node_child(sweep, "bandwidth");
	const struct psd_node *bandwidth = psd_node_child(psd_node_child(cluster, "network"), "bandwidth");

	for (unsigned i = 0; i < scenario->n_sweep_workers; i++)
		if (scenario->sweep_workers[i] > (uint64_t)PSD_MAX_NODES * scenario->workers_per_node)
			return psd_error_set(reader->err, PSD_EINVAL, psd_node_child(sweep, "workers")->at,
					     "'workers' needs more than %d nodes", PSD_MAX_NODES);
	if (swept && scenario->network.platform_path)
		return psd_error_set(reader->err, PSD_EINVAL, swept->key_at,
				     "'bandwidth' cannot be swept beside 'platform', whose file decides");
	if (swept && bandwidth && bandwidth->at.line == 0)
		return psd_error_set(reader->err, PSD_EINVAL, bandwidth->at,
				     "'bandwidth' has no effect beside 'sweep', set 'sweep.bandwidth'");
	return PSD_OK;
}

/* A user's platform says itself what is inside a node. */
static enum psd_status check_switches(const struct psd_schema_reader *reader, const struct psd_node *cluster)
{
	const struct psd_scenario *scenario = reader->base;
	const struct psd_node *switches = psd_node_child(psd_node_child(cluster, "local"), "switches");
	const unsigned n = scenario->network.local_switches;

	if (!switches)
		return PSD_OK;
	if (scenario->network.topology == PSD_TOPOLOGY_PLATFORM)
		return psd_error_set(reader->err, PSD_EINVAL, switches->key_at,
				     "'switches' has no effect beside 'platform', whose file decides");
	if (scenario->workers_per_node % n != 0)
		return psd_error_set(reader->err, PSD_EINVAL, switches->at,
				     "'switches' is %u, must divide the %u workers of a node", n,
				     scenario->workers_per_node);
	return PSD_OK;
}

static unsigned fewest_nodes(const struct psd_scenario *scenario)
{
	unsigned fewest = PSD_MAX_NODES;

	for (unsigned i = 0; i < psd_scenario_points(scenario); i++)
		if (psd_scenario_point(scenario, i).nodes < fewest)
			fewest = psd_scenario_point(scenario, i).nodes;
	return fewest;
}

static enum psd_status check_node(const struct psd_schema_reader *reader, const struct psd_node *entry, const char *key,
				  unsigned node)
{
	const unsigned fewest = fewest_nodes(reader->base);
	const bool has_sweep = psd_scenario_points(reader->base) > 1;

	if (node < fewest)
		return PSD_OK;
	return psd_error_set(reader->err, PSD_EINVAL, psd_node_child(entry, key)->at,
			     "'%s' is %u, must be from 0 to %u: %s has %u node%s", key, node, fewest - 1,
			     has_sweep ? "the smallest point of the sweep" : "the cluster", fewest,
			     fewest == 1 ? "" : "s");
}

static double slowest_link_bps(const struct psd_scenario *scenario)
{
	double slowest_bps = INFINITY;

	for (unsigned i = 0; i < psd_scenario_points(scenario); i++)
		slowest_bps = fmin(slowest_bps, psd_scenario_point(scenario, i).bandwidth_bps);
	return slowest_bps;
}

/* What a link cannot carry would pile up for as long as the run lasts. */
static enum psd_status check_amount(const struct psd_schema_reader *reader, const struct psd_background *background,
				    const struct psd_node *entry)
{
	const double link_bps = slowest_link_bps(reader->base);
	const struct psd_node *period = psd_node_child(entry, "period");

	if (period && link_bps > 0.0 && 8.0 * (double)background->bytes / background->period_sec >= link_bps)
		return psd_error_set(reader->err, PSD_EINVAL, period->at,
				     "'period' is '%.80s', must be longer: the link cannot carry %.80s in that time",
				     period->text, psd_node_child(entry, "bytes")->text);
	return PSD_OK;
}

static enum psd_status check_disturbances(const struct psd_schema_reader *reader, const struct psd_node *cluster)
{
	const struct psd_scenario *scenario = reader->base;
	const struct psd_node *slow = psd_node_child(cluster, "slow"), *entry = slow ? slow->first : NULL;
	const struct psd_node *background = psd_node_child(cluster, "background");
	enum psd_status status = PSD_OK;

	for (unsigned i = 0; entry && !status; i++, entry = entry->next)
		status = check_node(reader, entry, "node", scenario->slowdowns[i].node);
	entry = background ? background->first : NULL;
	for (unsigned i = 0; entry && !status; i++, entry = entry->next) {
		status = check_amount(reader, &scenario->backgrounds[i], entry);
		if (!status)
			status = check_node(reader, entry, "from", scenario->backgrounds[i].from_node);
		if (!status)
			status = check_node(reader, entry, "to", scenario->backgrounds[i].to_node);
	}
	return status;
}

enum psd_status psd_scenario_check_cluster(const struct psd_schema_reader *reader, const struct psd_node *root)
{
	const struct psd_node *cluster = psd_node_child(root, "cluster");
	enum psd_status status = settle_nodes(reader, cluster);

	if (!status)
		status = check_swept(reader, root, cluster);
	if (!status)
		status = check_switches(reader, cluster);
	return status ? status : check_disturbances(reader, cluster);
}
