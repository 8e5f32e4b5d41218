/* `cluster` of a scenario file: nodes, network, host side of the software, and what disturbs a run. Refuses nodes that
 * some point of the sweep does not have, and what a link could not carry. */
#include <inttypes.h>
#include <math.h>

#include "engine/scenario/scenario.h"
#include "engine/scenario/scenario_keys.h"
#include "engine/scenario/scenario_variant.h"
#include "engine/scenario/stack.h"

#define LEAST_BACKGROUND_BYTES 10000
#define LEAST_PERIOD_SEC       10e-6

static const char *const fabric_names[] = {"ethernet", "infiniband", NULL};
const char *const psd_topology_names[] = {"star", "racks", "fat-tree", "platform", NULL};

#define KEY(of, text, kind, member) .name = (text), .type = PSD_KEY_##kind, .offset = offsetof(struct of, member)
#define NETWORK(text, kind, member) KEY(psd_network, text, kind, member)
#define HOST(text, kind, member)    KEY(psd_host_costs, text, kind, member)
#define CLUSTER(text, kind, member) KEY(psd_scenario, text, kind, member)
#define FREE(flag)		    .word = "free", .word_offset = offsetof(struct psd_host_costs, flag)
#define BIT(topology)		    (1u << PSD_TOPOLOGY_##topology)
#define OF_RACKS		    (BIT(RACKS) | BIT(FAT_TREE))
#define OF_SWITCHES		    (BIT(STAR) | OF_RACKS)
#define OF_ALL			    (OF_SWITCHES | BIT(PLATFORM))

static const struct psd_key network_keys[] = {
	{NETWORK("topology", CHOICE, topology), .names = psd_topology_names, .fallback = "star", .uses = PSD_BY_SIM,
	 .is_refused = true,
	 .help = "shape of the network between nodes. star: one switch, which is never a bottleneck; racks: a leaf "
		 "switch for each rack, with one uplink to a core switch; fat-tree: a leaf switch for each rack, with "
		 "several uplinks; platform: as in the file `cluster.network.platform`"},
	{NETWORK("platform", PATH, platform_path), .when = {"topology", BIT(PLATFORM), BIT(PLATFORM)},
	 .uses = PSD_BY_SIMULATION, .is_refused = true,
	 .help = "SimGrid's platform file (XML): hosts, links and routes. `cluster.host.latency` is added to its "
		 "latencies"},
	{NETWORK("fabric", CHOICE, fabric), .names = fabric_names, .fallback = "ethernet", .uses = PSD_BY_SIM,
	 .help = "kind of network, which determines the default of `cluster.stack`. ethernet: TCP; infiniband: RDMA"},
	{NETWORK("bandwidth", RATE, bandwidth_bps), .when = {"topology", OF_ALL, OF_SWITCHES},
	 .help = "bandwidth of each node's link, each direction. psd-run accepts 100kbps to 400Gbps. With topology "
		 "platform it only serves to choose methods by predicted time"},
	{NETWORK("latency", SECONDS, latency_sec), .when = {"topology", OF_ALL, OF_SWITCHES},
	 .help = "one-way latency from node to node, through the links of both nodes. With topology platform it only "
		 "serves to choose methods by predicted time"},
	{NETWORK("payload", RATIO, payload_ratio), .lowest = 0.01, .highest = 1, .fallback = "1",
	 .when = {"topology", OF_SWITCHES, 0}, .uses = PSD_BY_SIM | PSD_BY_REPLAY | PSD_BY_CHOICE,
	 .help = "share of a link's rate that packet headers leave for tensors"},
	{NETWORK("nodes_per_rack", UNSIGNED, nodes_per_rack), .lowest = 1, .highest = PSD_MAX_NODES,
	 .when = {"topology", OF_RACKS, OF_RACKS}, .uses = PSD_BY_SIM,
	 .help = "number of worker nodes in a rack, below one leaf switch. The last rack may have fewer"},
	{NETWORK("oversubscription", NUMBER, oversubscription_ratio), .lowest = 1, .highest = 1000, .fallback = "1",
	 .when = {"topology", OF_RACKS, 0}, .uses = PSD_BY_SIM,
	 .help = "sum of the bandwidths of all node links in a full rack, divided by the sum of the bandwidths of all "
		 "uplinks of its leaf switch"},
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
	{NETWORK("bandwidth", RATE, local_bps), .is_required = true,
	 .help = "bandwidth of each worker's link to the other workers of its node, each direction"},
	{NETWORK("latency", SECONDS, local_latency_sec),
	 .help = "one-way latency from worker to worker in a node. Default: 0s"},
	{NETWORK("switches", UNSIGNED, local_switches), .lowest = 2, .highest = PSD_MAX_WORKERS_PER_NODE,
	 .help = "number of PCIe switches in each node; each switch has equally many consecutive workers. Traffic to "
		 "other nodes then also passes the worker's link and its switch. Default: one switch, which is never a "
		 "bottleneck"},
	{NETWORK("between", RATE, between_bps),
	 .help = "bandwidth of each PCIe switch's uplink to the other switches and the network, each direction. Needs "
		 "`cluster.local.switches`. Default: the value of `cluster.local.bandwidth`"},
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
	{CLASS("up_to", BYTES, up_to_bytes),
	 .help = "largest all-reduce to which this entry of the list applies: bytes of the summed tensor or bucket. "
		 "Default: no limit. The last entry of the list has no limits"},
	{CLASS("chunk", BYTES, chunk_bytes),
	 .help = "largest chunk to which this entry of the list applies: bytes of the summed tensor or bucket, divided "
		 "by the number of workers. Default: no limit"},
	{CLASS("workers", UNSIGNED, workers), .lowest = 1, .highest = PSD_MAX_HOSTS,
	 .help = "largest number of workers to which this entry of the list applies. Default: no limit"},
	{CLASS("call", SECONDS, call_sec), .fallback = "0s",
	 .help = "fixed time of each all-reduce, in addition to its steps"},
	{CLASS("step", SECONDS, step_sec), .fallback = "0s",
	 .help = "time of each step of an all-reduce, in addition to the latency. A ring of n workers has 2 (n - 1) "
		 "steps"},
	{CLASS("slowdown", NUMBER, slowdown_ratio), .lowest = 1, .highest = 1000, .fallback = "1",
	 .help = "factor by which an all-reduce takes longer than at the full rate of the links. It has no effect if "
		 "`cluster.host.transport` or `cluster.host.share` already makes the all-reduce slower than that"},
	{.name = NULL},
};

static const struct psd_section class_section = {.tables = {class_keys}};

/* Values that follow from the device are others in each group. */
static const char of_groups[] = "cluster.groups";

static const struct psd_key host_keys[] = {
	{HOST("copy", RATE, copy_bps), FREE(is_copy_free),
	 .help = "rate of copies between a device with its own memory (any but `cpu`) and its host, each direction. "
		 "free: copies take no time"},
	{HOST("reduce", RATE, reduce_bps), FREE(is_reduce_free), .varies_by = of_groups,
	 .help = "bytes of gradients per second that a server receives, sums and applies; also rate at which the first "
		 "worker of a node sums for its node. free: no time"},
	{HOST("update", RATE, update_bps), FREE(is_update_free), .varies_by = of_groups,
	 .help = "bytes of gradients per second that a worker applies to its parameters, where no server does. free: "
		 "updates take no time. If the stack sets none: a fifth of the rate of the device's memory, or free "
		 "with `compute.profile`, `compute.samples_per_sec` or `compute.mfu`, whose times include updates"},
	{HOST("convert", RATE, convert_bps), FREE(is_convert_free), .varies_by = of_groups,
	 .help = "bytes per second that a worker's device reads plus writes when it converts, packs or selects values, "
		 "or multiplies low-rank factors. free: no time. If the stack sets none: the rate of the device's "
		 "memory; with `compute.profile` the value of `cluster.host.update`"},
	{HOST("transport", RATE, transport_bps), FREE(is_transport_free),
	 .help = "rate at which a node's communication software sends to other nodes, and also rate at which it "
		 "receives from them. free: only the link limits the rate"},
	{HOST("share", RATIO, share_ratio), .lowest = 0.01, .highest = 1, .fallback = "1",
	 .help = "largest share of a link's rate that the communication software reaches, whatever the rate in "
		 "`cluster.host.transport`"},
	{HOST("streams", RATIO, streams_ratio), .highest = 1, .fallback = "0",
	 .help = "share of a link's rate that several parallel connections reach together. `cluster.host.transport` is "
		 "then the rate of one connection. A node sends at most at the higher of two rates: this share times "
		 "the link's rate, or `cluster.host.transport`. 0: one connection"},
	{HOST("local", RATE, local_bps), FREE(is_local_free), .uses = PSD_BY_SIM | PSD_BY_CHOICE,
	 .help = "rate at which a worker's communication software sends to other workers of its node, and also rate at "
		 "which it receives from them. free: only the link limits the rate"},
	{HOST("incast", RATIO, incast_ratio), .highest = 10, .fallback = "0",
	 .help = "coefficient by which a node receives more slowly while several nodes send to it: its rate is "
		 "`cluster.host.transport` / (1 + incast * number of senders). Needs `cluster.host.transport`"},
	{HOST("latency", SECONDS, latency_sec), .fallback = "0s",
	 .help = "time that sender and receiver together add to each message, in addition to "
		 "`cluster.network.latency`"},
	{HOST("iteration", SECONDS, iteration_sec), .fallback = "0s",
	 .help = "time at the end of each iteration in which a worker's device computes nothing: bookkeeping of the "
		 "software, and reading of samples if layers have to wait for them"},
	{HOST("agree", SECONDS, agree_sec), .fallback = "0s",
	 .help = "time before each all-reduce in which workers agree that all of them are ready for it. Always 0 with "
		 "`schedule: sequential`"},
	{HOST("request", SECONDS, request_sec), .fallback = "0s",
	 .help = "processor time of a server for each request, in addition to `cluster.host.reduce`"},
	{HOST("requests", UNSIGNED, requests), .lowest = 1, .highest = 1e6, .fallback = "1",
	 .help = "number of requests by which a worker sends the gradient of one tensor to one server. Some software "
		 "sends each row of a matrix as a request of its own"},
	{HOST("tensor", SECONDS, tensor_sec), .fallback = "0s", .varies_by = of_groups,
	 .help = "time of the kernel launches that a worker's device needs for each tensor that it updates with a sum "
		 "over all workers. The time that depends on the tensor's size is added. A single worker needs no such "
		 "launches. If the stack sets none: 10us; 0s on a device that shares its host's memory"},
	{HOST("device_share", RATIO, device_share_ratio), .former = "overlap", .highest = 0.99, .fallback = "0",
	 .uses = PSD_BY_SIM | PSD_BY_CHOICE,
	 .help = "share of a worker's device that an all-reduce occupies while it runs; layers have only the rest of "
		 "the device during that time"},
	{HOST("collective", SECTION, collective), .section = &class_section, .most_entries = PSD_MAX_COLLECTIVE_CLASSES,
	 .n_entries_offset = offsetof(struct psd_host_costs, n_collective_classes),
	 .entry_bytes = sizeof(struct psd_collective_class),
	 .help = "list of costs of a ring all-reduce beside bandwidth and latency, an entry for each range of sizes. "
		 "The first entry applies whose limits up_to, chunk and workers are not exceeded. The list of a "
		 "system's `host` replaces the cluster's"},
	{.name = NULL},
};

static void settle_rate(double *rate_bps, bool is_free)
{
	if (is_free)
		*rate_bps = 0.0;
}

/* A rate that is said to be free replaces one that was inherited. */
static enum psd_status settle_host(const struct psd_schema_reader *reader, void *base, const struct psd_node *mapping)
{
	struct psd_host_costs *host = base;

	(void)reader;
	(void)mapping;
	settle_rate(&host->copy_bps, host->is_copy_free);
	settle_rate(&host->reduce_bps, host->is_reduce_free);
	settle_rate(&host->update_bps, host->is_update_free);
	settle_rate(&host->convert_bps, host->is_convert_free);
	settle_rate(&host->transport_bps, host->is_transport_free);
	settle_rate(&host->local_bps, host->is_local_free);
	return PSD_OK;
}

/* The last class holds for all others. */
static enum psd_status check_host(const struct psd_schema_reader *reader, void *base, const struct psd_node *mapping)
{
	const struct psd_collective_class *class = ((struct psd_host_costs *)base)->collective;
	const struct psd_node *list = psd_node_child(mapping, "collective");

	for (const struct psd_node *entry = list ? list->first : NULL; entry; entry = entry->next, class ++) {
		const bool is_bounded = class->up_to_bytes || class->chunk_bytes || class->workers;

		if (entry->next && !is_bounded)
			return psd_error_set(
				reader->err, PSD_EINVAL, entry->at,
				"'collective' needs 'up_to', 'chunk' or 'workers' in each entry except the last");
		if (!entry->next && is_bounded)
			return psd_error_set(reader->err, PSD_EINVAL, entry->at,
					     "the last entry of 'collective' has 'up_to', 'chunk' or 'workers', must "
					     "have none of them");
		if (entry != list->first && class->up_to_bytes && class->up_to_bytes <= class[-1].up_to_bytes &&
		    !class[-1].chunk_bytes && !class[-1].workers)
			return psd_error_set(reader->err, PSD_EINVAL, psd_node_child(entry, "up_to")->at,
					     "'up_to' is '%.80s', must be more than in the entry before",
					     psd_node_child(entry, "up_to")->text);
	}
	return PSD_OK;
}

const struct psd_section psd_scenario_host = {.tables = {host_keys}, .settle = settle_host, .check = check_host};

/* ---- processors, and what disturbs a run ---- */

#define MACHINE(text, kind, member)    KEY(psd_machine, text, kind, member)
#define SLOW(text, kind, member)       KEY(psd_slowdown, text, kind, member)
#define BACKGROUND(text, kind, member) KEY(psd_background, text, kind, member)

static const struct psd_key machine_keys[] = {
	{MACHINE("cores", UNSIGNED, cores), .lowest = 1, .highest = PSD_MAX_CORES, .is_required = true,
	 .help = "number of processor cores of each machine. Each worker and each separate server on it has an equal "
		 "number of cores for itself. If there are more workers and servers than cores, all of them share all "
		 "cores"},
	{MACHINE("nodes", UNSIGNED, nodes), .lowest = 1, .highest = PSD_MAX_NODES,
	 .help = "number of nodes on each machine: the first machine has the first nodes, and so on. Default: one "
		 "machine has all nodes"},
	{MACHINE("bytes", RATE, bytes_bps),
	 .help = "bytes per second that an otherwise idle core moves through sockets, sent plus received. For messages "
		 "inside a node the rate is at least `cluster.local.bandwidth`. Default: bytes need no processor time"},
	{MACHINE("message", SECONDS, message_sec),
	 .help = "processor time that a message needs at the sender, and again at the receiver, in addition to the "
		 "time of its bytes. A message that its sender sends directly after another one needs no such time at "
		 "either end. Default: 0s"},
	{.name = NULL},
};
static const struct psd_section machine = {.tables = {machine_keys}};

static const struct psd_key slow_keys[] = {
	{SLOW("node", UNSIGNED, node), .is_required = true, .highest = PSD_MAX_NODES - 1,
	 .help = "number of the slow worker node, counted from 0"},
	{SLOW("compute", RATIO, compute_ratio), .lowest = 0.001, .highest = 100, .fallback = "1",
	 .help = "factor on the speed of the node's devices: 0.5 or 50% is half as fast, 2 is twice as fast. In "
		 "training at most 1, since psd-run emulates it by pauses of a processor after each operation"},
	{SLOW("link", RATIO, link_ratio), .lowest = 0.001, .highest = 100, .fallback = "1", .uses = PSD_BY_SIMULATION,
	 .is_refused = true,
	 .help = "factor on the speed of the node's link, in both directions: 0.5 or 50% is half as fast, 2 is twice "
		 "as fast"},
	{SLOW("from", SECONDS, from_sec), .fallback = "0s", .uses = PSD_BY_SIMULATION, .is_refused = true,
	 .help = "time at which the node's speed changes, counted from the start of the run, at most 1000000s"},
	{SLOW("until", SECONDS, until_sec), .uses = PSD_BY_SIMULATION, .is_refused = true,
	 .help = "time at which the node has its normal speed again, counted from "
		 "the start of the run, at most 1000000s. Default: never"},
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

double psd_scenario_compute_ratio(const struct psd_scenario *scenario, unsigned node)
{
	double ratio = 1.0;

	for (unsigned i = 0; i < scenario->n_slowdowns; i++)
		if (scenario->slowdowns[i].node == node)
			ratio *= scenario->slowdowns[i].compute_ratio;
	return ratio;
}

static const struct psd_section slow_section = {.tables = {slow_keys}, .check = check_slow};

static const struct psd_key background_keys[] = {
	{BACKGROUND("from", UNSIGNED, from_node), .is_required = true, .highest = PSD_MAX_NODES - 1,
	 .help = "number of the sending worker node, counted from 0"},
	{BACKGROUND("to", UNSIGNED, to_node), .is_required = true, .highest = PSD_MAX_NODES - 1,
	 .help = "number of the receiving worker node, counted from 0. It must differ from `cluster.background.from`"},
	{BACKGROUND("bytes", BYTES, bytes), .is_required = true, .help = "size of each transfer, at least 10kB"},
	{BACKGROUND("period", SECONDS, period_sec),
	 .help = "time from the start of one transfer to the start of the next, at least 10us. Default: the next one "
		 "starts when the previous one has ended"},
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

/* ---- groups of nodes ---- */

#define GROUP(text, kind, member) KEY(psd_node_group, text, kind, member)

static const struct psd_key group_network_keys[] = {
	{GROUP("bandwidth", RATE, bandwidth_bps),
	 .help = "bandwidth of the link of each node of the group, each direction. Default: "
		 "`cluster.network.bandwidth`"},
	{GROUP("latency", SECONDS, latency_sec), .lowest = 1e-9,
	 .help = "one-way latency between two nodes of the group. Half of it is that of a node's end: a message "
		 "between nodes of two groups has the mean of both latencies. Refused with racks. Default: "
		 "`cluster.network.latency`"},
	{.name = NULL},
};
static const struct psd_section group_network = {.tables = {group_network_keys}};

/* Costs of one host alone; those of transfers between hosts of two groups belong to neither. */
static const struct psd_key group_host_keys[] = {
	{HOST("copy", RATE, copy_bps), FREE(is_copy_free), .help = "`cluster.host.copy` of the group's hosts"},
	{HOST("reduce", RATE, reduce_bps), FREE(is_reduce_free), .help = "`cluster.host.reduce` of the group's hosts"},
	{HOST("update", RATE, update_bps), FREE(is_update_free), .help = "`cluster.host.update` of the group's hosts"},
	{HOST("convert", RATE, convert_bps), FREE(is_convert_free),
	 .help = "`cluster.host.convert` of the group's hosts"},
	{HOST("transport", RATE, transport_bps), FREE(is_transport_free),
	 .help = "`cluster.host.transport` of the group's nodes"},
	{.name = NULL},
};
static const struct psd_section group_host = {.tables = {group_host_keys}};

static const struct psd_key group_keys[] = {
	{GROUP("nodes", UNSIGNED, nodes), .lowest = 1, .highest = PSD_MAX_NODES, .is_required = true,
	 .help = "number of nodes in the group. Nodes are numbered through all groups, in their order"},
	{GROUP("workers_per_node", UNSIGNED, workers_per_node), .lowest = 1, .highest = PSD_MAX_WORKERS_PER_NODE,
	 .help = "number of workers on each node of the group; they share the node's link. Default: "
		 "`cluster.workers_per_node`"},
	{GROUP("batch_per_worker", UNSIGNED, own.batch_per_worker), .lowest = 1, .highest = 1e6,
	 .help = "number of samples that each worker of the group processes at a time, unless `systems.split` divides "
		 "the sum of all batches anew. Default: `model.batch_per_worker`"},
	{GROUP("profile", PATH, own.profile_path), .rival = "device", .uses = PSD_BY_SIM | PSD_BY_REPLAY,
	 .help = "CSV file with the measured seconds of each layer on one worker of the group. Default: "
		 "`compute.profile`"},
	{GROUP("device", NAME, own.device_name), .names = psd_device_names, .uses = PSD_BY_SIM | PSD_BY_REPLAY,
	 .help = "device for which layer times are modelled. Default: `compute.device`. A group with its own device "
		 "or profile does not use `compute.samples_per_sec` and `compute.mfu`"},
	{GROUP("samples_per_sec", NUMBER, own.samples_per_sec), .lowest = 0.001, .highest = 1e9,
	 .uses = PSD_BY_SIM | PSD_BY_REPLAY,
	 .help = "measured throughput of one worker of the group, in samples per second; layer times are scaled to "
		 "it. With a device it also scales matrix products of factors and low-rank gradients. Default: "
		 "`compute.samples_per_sec`"},
	{GROUP("mfu", RATIO, own.mfu_ratio), .lowest = 0.0001, .highest = 1, .rival = "samples_per_sec",
	 .uses = PSD_BY_SIM | PSD_BY_REPLAY,
	 .help = "model FLOPs utilisation of one worker of the group; layer times are scaled to it. It also scales "
		 "matrix products of factors and low-rank gradients. Default: `compute.mfu`"},
	{GROUP("speed", RATIO, speed_ratio), .lowest = 0.001, .highest = 100, .fallback = "1",
	 .help = "factor on the speed of the group's devices: 0.25 or 25% is a quarter of the speed that layer times "
		 "have otherwise. psd-run emulates up to 1, on the processor: workers wait after their work. With "
		 "psd-run --hosts devices are as fast as they are"},
	{.name = "network", .type = PSD_KEY_SECTION, .section = &group_network, .help = "links of the group's nodes"},
	{GROUP("host", SECTION, host), .section = &group_host, .uses = PSD_BY_SIM | PSD_BY_REPLAY,
	 .help = "costs of the communication software on the group's hosts. A key that is not given is that of "
		 "`systems.host` or `cluster.host`, or follows from the group's device"},
	{.name = NULL},
};

static const struct psd_section group_section = {.tables = {group_keys}};

static const struct psd_key cluster_keys[] = {
	{CLUSTER("nodes", UNSIGNED, nodes), .lowest = 1, .highest = PSD_MAX_NODES,
	 .help = "number of nodes with workers. Required unless `sweep.nodes` or `sweep.workers` replaces it, or "
		 "`cluster.groups` have them. With psd-run --hosts the hosts file determines the number"},
	{CLUSTER("workers_per_node", UNSIGNED, workers_per_node), .lowest = 1, .highest = PSD_MAX_WORKERS_PER_NODE,
	 .fallback = "1", .uses = PSD_BY_ALL | PSD_AGREED,
	 .help = "number of workers on each node; they share the node's link"},
	{CLUSTER("groups", SECTION, groups), .section = &group_section, .most_entries = PSD_MAX_GROUPS,
	 .n_entries_offset = offsetof(struct psd_scenario, n_groups), .entry_bytes = sizeof(struct psd_node_group),
	 .uses = PSD_BY_ALL,
	 .help = "groups of nodes with other devices, numbers of workers, batches or links than the rest of the "
		 "cluster. Together they have `cluster.nodes` nodes. Default: all nodes are alike"},
	{CLUSTER("network", SECTION, network), .section = &network, .is_required = true,
	 .uses = PSD_BY_ALL | PSD_BY_CHOICE, .help = "network between the nodes"},
	{CLUSTER("servers_in", COUNT, network.servers_in), .highest = PSD_MAX_NODES,
	 .when = {"network.topology", OF_RACKS, 0}, .uses = PSD_BY_SIM, .is_refused = true,
	 .most_entries = PSD_MAX_SERVER_RACKS, .n_entries_offset = offsetof(struct psd_scenario, network.n_servers_in),
	 .help = "list of rack numbers, one for each separate server (`systems.servers`), counted from 0. A list that "
		 "is shorter than the number of servers is repeated. The number after the last rack of workers is an "
		 "additional rack without workers. Default: servers are spread evenly over the racks of workers"},
	{CLUSTER("local", SECTION, network), .section = &local, .uses = PSD_BY_SIM | PSD_BY_CHOICE,
	 .help = "links between the workers of a node. Default: they are never a bottleneck"},
	{CLUSTER("stack", NAME, stack_name), .names = psd_stack_names, .uses = PSD_BY_ALL,
	 .help = "communication software; it determines the costs in `cluster.host`. The command `psd-sim stacks` "
		 "lists all. Default: psd in three cases: sync ps, two-level-ps, sfb, adam, hybrid or sacp; workers "
		 "that compute on `cpu`; `cluster.machine` is given. Otherwise mpi for sync mpi, nccl-rdma with fabric "
		 "infiniband, nccl-tcp with ethernet"},
	{CLUSTER("host", SECTION, host), .section = &psd_scenario_host,
	 .uses = PSD_BY_SIM | PSD_BY_REPLAY | PSD_BY_CHOICE,
	 .help = "costs of the communication software in a node. A key that is not given is set by `cluster.stack`"},
	{CLUSTER("machine", SECTION, machine), .section = &machine, .uses = PSD_BY_SIM,
	 .help = "machines without accelerators. A machine hosts several nodes; its cores compute layers, sum "
		 "gradients, update parameters and send and receive messages. Default: each worker has a device, and "
		 "messages need no processor time"},
	{CLUSTER("slow", SECTION, slowdowns), .section = &slow_section, .most_entries = PSD_MAX_EVENTS,
	 .n_entries_offset = offsetof(struct psd_scenario, n_slowdowns), .entry_bytes = sizeof(struct psd_slowdown),
	 .uses = PSD_BY_SIMULATION | PSD_BY_PSD_RUN, .is_refused = true,
	 .help = "nodes with another speed than normal, during a part of the run or all of it. Default: all nodes have "
		 "their normal speed"},
	{CLUSTER("background", SECTION, backgrounds), .section = &background_section, .most_entries = PSD_MAX_EVENTS,
	 .n_entries_offset = offsetof(struct psd_scenario, n_backgrounds), .entry_bytes = sizeof(struct psd_background),
	 .uses = PSD_BY_SIMULATION, .is_refused = true,
	 .help = "traffic of other jobs on the nodes' links. Each entry of the list repeats one transfer during the "
		 "whole run. Default: no such traffic"},
	{.name = NULL},
};

const struct psd_section psd_scenario_cluster = {.tables = {cluster_keys}};

/* ---- together with the sweep ---- */

/* Racks and switches inside nodes are counted in workers, so that all nodes need the same number. */
static enum psd_status check_plain_network(const struct psd_schema_reader *reader, const struct psd_node *cluster,
					   const struct psd_node *groups)
{
	const struct psd_scenario *scenario = reader->base;
	const struct psd_node *switches = psd_node_child(psd_node_child(cluster, "local"), "switches");
	const bool is_star = scenario->network.topology == PSD_TOPOLOGY_STAR;
	const char *instead = is_star ? "'local.switches'" : "racks";
	const unsigned first = psd_scenario_group_workers(scenario, &scenario->groups[0]);
	const struct psd_node *entry = groups->first;

	for (unsigned g = 0; g < scenario->n_groups && entry && (!is_star || switches); g++, entry = entry->next) {
		const struct psd_node *latency = psd_node_child(psd_node_child(entry, "network"), "latency");
		const unsigned own = psd_scenario_group_workers(scenario, &scenario->groups[g]);

		if (own != first)
			return psd_error_set(
				reader->err, PSD_EINVAL, entry->at,
				"entry %u of 'groups' has %u worker%s on a node, must have %u like entry 0: "
				"%s need as many on each node",
				g, own, psd_text_plural(own), first, instead);
		if (latency && !is_star)
			return psd_error_set(reader->err, PSD_EINVAL, latency->at,
					     "'latency' of a group cannot be used with racks, set 'topology: star'");
	}
	return PSD_OK;
}

static const struct psd_node *child_at(const struct psd_node *node, const char *section, const char *name)
{
	return psd_node_child(section ? psd_node_child(node, section) : node, name);
}

/* An option or a sweep gives a value of all nodes that each group replaces by its own. Separate servers are in no
 * group, and neither are switches between racks. */
static enum psd_status check_hidden(const struct psd_schema_reader *reader, const struct psd_node *root)
{
	static const struct {
		const char *section, *name, *path, *short_name;
	} rows[] = {
		{NULL, "workers_per_node", "cluster.workers_per_node", NULL},
		{"network", "bandwidth", "cluster.network.bandwidth", "bandwidth"},
		{"network", "latency", "cluster.network.latency", NULL},
	};
	const struct psd_scenario *scenario = reader->base;
	const struct psd_node *cluster = psd_node_child(root, "cluster"), *sweep = psd_node_child(root, "sweep");
	const struct psd_node *groups = psd_node_child(cluster, "groups");
	bool is_star = scenario->network.topology == PSD_TOPOLOGY_STAR;

	for (unsigned s = 0; s < scenario->n_systems; s++)
		is_star = is_star && scenario->systems[s].servers == 0;
	for (unsigned i = 0; is_star && i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct psd_node *value = child_at(cluster, rows[i].section, rows[i].name);
		const struct psd_node *swept = rows[i].short_name ? psd_node_child(sweep, rows[i].short_name) : NULL;
		const struct psd_node *entry = groups->first;

		if (!swept && !(value && (psd_node_is_set(value) || psd_scenario_sweeps(scenario, rows[i].path))))
			continue;
		while (entry && child_at(entry, rows[i].section, rows[i].name))
			entry = entry->next;
		if (!entry)
			return psd_error_set(reader->err, PSD_EINVAL, swept ? swept->at : value->at,
					     "'%s' has no effect: all entries of 'groups' have their own",
					     rows[i].name);
	}
	return PSD_OK;
}

/* The groups have all nodes, and a division among groups needs them. */
static enum psd_status settle_groups(const struct psd_schema_reader *reader, const struct psd_node *root,
				     const struct psd_node *cluster)
{
	struct psd_scenario *scenario = reader->base;
	const struct psd_node *groups = psd_node_child(cluster, "groups"), *nodes = psd_node_child(cluster, "nodes");
	const struct psd_node *sweep = psd_node_child(root, "sweep");
	double most_bps;
	uint64_t n_nodes = 0;

	if (scenario->n_groups == 0)
		return PSD_OK;
	for (unsigned g = 0; g < scenario->n_groups; g++)
		n_nodes += scenario->groups[g].nodes;
	if (n_nodes > PSD_MAX_NODES)
		return psd_error_set(reader->err, PSD_EINVAL, groups->at,
				     "'groups' have %llu nodes together, at most %d are possible",
				     (unsigned long long)n_nodes, PSD_MAX_NODES);
	for (unsigned i = 0; i < scenario->n_sweep_nodes; i++)
		if (scenario->sweep_nodes[i] != n_nodes)
			return psd_error_set(reader->err, PSD_EINVAL, psd_node_child(sweep, "nodes")->at,
					     "'sweep.nodes' has %" PRIu64 ", must be %" PRIu64
					     ", the sum of 'cluster.groups', or left out",
					     scenario->sweep_nodes[i], n_nodes);
	if (scenario->n_sweep_workers > 0)
		return psd_error_set(reader->err, PSD_EINVAL, psd_node_child(sweep, "workers")->at,
				     "'sweep.workers' cannot be used together with 'cluster.groups', which have their "
				     "own numbers of workers");
	if (nodes && scenario->nodes != n_nodes)
		return psd_error_set(reader->err, PSD_EINVAL, nodes->at,
				     "'nodes' is %u, must be %u, the sum of 'groups', or left out", scenario->nodes,
				     (unsigned)n_nodes);
	if (scenario->network.topology == PSD_TOPOLOGY_PLATFORM)
		return psd_error_set(reader->err, PSD_EINVAL, groups->key_at,
				     "'groups' cannot be used with 'platform', whose file defines the links");
	scenario->nodes = (unsigned)n_nodes;
	PSD_TRY(check_hidden(reader, root));
	psd_scenario_find_links(scenario, &scenario->network.bandwidth_bps, &most_bps);
	return check_plain_network(reader, cluster, groups);
}

static enum psd_status check_group_system(const struct psd_schema_reader *reader, const struct psd_system *system)
{
	const struct psd_workload *own = &system->own;

	if (own->profile_path || own->device_name || own->samples_per_sec > 0.0 || own->mfu_ratio > 0.0)
		return psd_error_set(
			reader->err, PSD_EINVAL, system->at,
			"system '%s' has 'compute', must leave it out: 'cluster.groups' decide how fast workers are",
			system->name);
	if (system->is_local)
		return psd_error_set(reader->err, PSD_EINVAL, system->at,
				     "system '%s' has 'local_sgd', which 'cluster.groups' do not support",
				     system->name);
	return PSD_OK;
}

static enum psd_status check_group_systems(const struct psd_schema_reader *reader)
{
	const struct psd_scenario *scenario = reader->base;

	for (unsigned s = 0; s < scenario->n_systems; s++) {
		const struct psd_system *system = &scenario->systems[s];

		if (scenario->n_groups > 0)
			PSD_TRY(check_group_system(reader, system));
		else if (system->split != PSD_SPLIT_EVEN)
			return psd_error_set(reader->err, PSD_EINVAL, psd_system_key_at(system, "split"),
					     "'split' of system '%s' is '%s', must be 'even' unless 'cluster.groups' "
					     "lists groups of nodes",
					     system->name, psd_split_names[system->split]);
	}
	return PSD_OK;
}

/* 'nodes' and the sweep say the same thing; the sweep wins in a file, but a setting must not vanish. */
static enum psd_status settle_nodes(const struct psd_schema_reader *reader, const struct psd_node *cluster)
{
	struct psd_scenario *scenario = reader->base;
	const struct psd_node *nodes = psd_node_child(cluster, "nodes");
	const bool has_sweep = scenario->n_sweep_nodes || scenario->n_sweep_workers;

	if (scenario->n_groups > 0)
		return PSD_OK;
	if (!nodes && !has_sweep)
		return psd_error_set(reader->err, PSD_EINVAL, cluster->at,
				     "'cluster' needs 'nodes', or 'sweep' must name them");
	if (nodes && has_sweep && nodes->at.line == 0)
		return psd_error_set(reader->err, PSD_EINVAL, nodes->at,
				     "'nodes' has no effect beside 'sweep', set 'sweep.%s' or give --sweep %s=VALUES",
				     scenario->n_sweep_nodes ? "nodes" : "workers",
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
				     "'bandwidth' cannot be swept with 'platform', whose file defines the links");
	if (swept && bandwidth && bandwidth->at.line == 0)
		return psd_error_set(reader->err, PSD_EINVAL, bandwidth->at,
				     "'bandwidth' has no effect beside 'sweep', set 'sweep.bandwidth' or give --sweep "
				     "bandwidth=VALUES");
	return PSD_OK;
}

/* A platform file describes the inside of a node itself. */
static enum psd_status check_switches(const struct psd_schema_reader *reader, const struct psd_node *cluster)
{
	const struct psd_scenario *scenario = reader->base;
	const struct psd_node *switches = psd_node_child(psd_node_child(cluster, "local"), "switches");
	const unsigned n = scenario->network.local_switches;

	if (!switches)
		return PSD_OK;
	if (scenario->network.topology == PSD_TOPOLOGY_PLATFORM)
		return psd_error_set(reader->err, PSD_EINVAL, switches->key_at,
				     "'switches' has no effect beside 'platform', whose file defines the links");
	if (psd_scenario_most_per_node(scenario) % n != 0)
		return psd_error_set(reader->err, PSD_EINVAL, switches->at,
				     "'switches' is %u, must divide the %u workers of a node", n,
				     psd_scenario_most_per_node(scenario));
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
			     psd_text_plural(fewest));
}

/* Racks of workers, and one that may have servers alone. */
static enum psd_status check_servers_in(const struct psd_schema_reader *reader, const struct psd_node *cluster)
{
	const struct psd_scenario *scenario = reader->base;
	const struct psd_network *links = &scenario->network;
	const struct psd_node *entry = psd_node_child(cluster, "servers_in");

	entry = entry ? entry->first : NULL;
	for (unsigned i = 0; i < links->n_servers_in; i++, entry = entry ? entry->next : NULL) {
		const unsigned n_racks = (fewest_nodes(scenario) - 1) / links->nodes_per_rack + 1;

		if (links->servers_in[i] > n_racks)
			return psd_error_set(reader->err, PSD_EINVAL, entry ? entry->at : cluster->at,
					     "'servers_in' has rack %u, must be from 0 to %u: workers have %u rack%s",
					     (unsigned)links->servers_in[i], n_racks, n_racks,
					     psd_text_plural(n_racks));
	}
	return PSD_OK;
}

static double slowest_link_bps(const struct psd_scenario *scenario)
{
	double slowest_bps = INFINITY;

	for (unsigned i = 0; i < psd_scenario_points(scenario); i++)
		slowest_bps = fmin(slowest_bps, psd_scenario_point(scenario, i).bandwidth_bps);
	return slowest_bps;
}

/* Traffic beyond the link's rate would pile up during the whole run. */
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

/* A node may have 'compute' in one entry and 'link' in another, or the same key at different times. */
static enum psd_status check_twice(const struct psd_schema_reader *reader, const struct psd_node *first, unsigned i,
				   const struct psd_node *entry)
{
	static const char *const keys[] = {"compute", "link"};
	const struct psd_slowdown *slowdowns = ((const struct psd_scenario *)reader->base)->slowdowns;

	for (unsigned before = 0; before < i; before++, first = first->next) {
		const struct psd_slowdown *a = &slowdowns[before], *b = &slowdowns[i];

		if (a->node != b->node || a->from_sec >= b->until_sec || b->from_sec >= a->until_sec)
			continue;
		for (unsigned k = 0; k < 2; k++)
			if (psd_node_child(first, keys[k]) && psd_node_child(entry, keys[k]))
				return psd_error_set(reader->err, PSD_EINVAL, psd_node_child(entry, keys[k])->at,
						     "'%s' of node %u is in two entries of 'slow' for the same time, "
						     "must be in one",
						     keys[k], a->node);
	}
	return PSD_OK;
}

static enum psd_status check_disturbances(const struct psd_schema_reader *reader, const struct psd_node *cluster)
{
	const struct psd_scenario *scenario = reader->base;
	const struct psd_node *slow = psd_node_child(cluster, "slow"), *entry = slow ? slow->first : NULL;
	const struct psd_node *background = psd_node_child(cluster, "background");

	for (unsigned i = 0; entry; i++, entry = entry->next) {
		PSD_TRY(check_node(reader, entry, "node", scenario->slowdowns[i].node));
		PSD_TRY(check_twice(reader, slow->first, i, entry));
	}
	entry = background ? background->first : NULL;
	for (unsigned i = 0; entry; i++, entry = entry->next) {
		PSD_TRY(check_amount(reader, &scenario->backgrounds[i], entry));
		PSD_TRY(check_node(reader, entry, "from", scenario->backgrounds[i].from_node));
		PSD_TRY(check_node(reader, entry, "to", scenario->backgrounds[i].to_node));
	}
	return PSD_OK;
}

enum psd_status psd_scenario_check_cluster(const struct psd_schema_reader *reader, const struct psd_node *root)
{
	const struct psd_node *cluster = psd_node_child(root, "cluster");

	PSD_TRY(settle_groups(reader, root, cluster));
	PSD_TRY(settle_nodes(reader, cluster));
	PSD_TRY(check_group_systems(reader));
	PSD_TRY(check_swept(reader, root, cluster));
	PSD_TRY(check_switches(reader, cluster));
	PSD_TRY(check_servers_in(reader, cluster));
	return check_disturbances(reader, cluster);
}
