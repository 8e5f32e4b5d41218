/* Seconds and published rules, each formula beside its source. Keeps no state. */
#include "engine/cost/cost.h"

#include <math.h>
#include <stdlib.h>

#include "engine/collectives/step_times.h"

uint64_t psd_subject_factors(const struct psd_subject *subject)
{
	return subject->batch * (subject->rows + subject->columns);
}

static bool has_factors(const struct psd_subject *subject)
{
	return subject->rows > 0 && subject->columns > 0;
}

bool psd_cost_hybrid_takes_sfb(const struct psd_subject *subject, unsigned workers, unsigned shards)
{
	const double P = workers;
	const double S = shards;
	const double M = (double)subject->rows;
	const double N = (double)subject->columns;
	/* Products stay below 2^53 for every layer that fits in memory, so double keeps them exact. */
	return has_factors(subject) && 2.0 * subject->batch * (P - 1.0) * (M + N) * S <= 2.0 * M * N * (P + S - 2.0);
}

bool psd_cost_sacp_takes_sfb(const struct psd_subject *subject, unsigned workers)
{
	const double P = workers;
	const double M = (double)subject->rows;
	const double N = (double)subject->columns;
	const double factors = subject->batch * (M + N);
	return has_factors(subject) && (P - 1.0) * (P - 1.0) * factors <= P * factors + P * M * N;
}

struct psd_socket_work psd_cost_socket_work(const struct psd_machine *machine, const struct psd_rates *rates,
					    double bytes, double n_messages, bool is_near)
{
	const double way_sec = 8.0 * bytes / (is_near ? rates->local_bps : fmin(rates->send_bps, rates->receive_bps));
	const double socket_sec = psd_cost_bytes_sec(bytes, machine->bytes_bps);
	const bool is_memory = is_near && isfinite(rates->local_bps);
	const double moved_sec = is_memory ? fmin(socket_sec, way_sec) : socket_sec;
	const double sec = moved_sec + machine->message_sec * n_messages;

	return (struct psd_socket_work){sec, sec < way_sec ? sec / way_sec : sec > 0.0 ? 1.0 : 0.0};
}

double psd_cost_bytes_sec(double bytes, double rate_bps)
{
	return rate_bps > 0.0 ? 8.0 * bytes / rate_bps : 0.0;
}

double psd_cost_convert_bps(const struct psd_host_costs *host)
{
	return host->convert_bps > 0.0 || host->is_convert_free ? host->convert_bps : host->update_bps;
}

double psd_cost_rebuild_flops(const struct psd_subject *subject, unsigned senders)
{
	return 2.0 * subject->batch * senders * (double)subject->rows * (double)subject->columns;
}

unsigned psd_cost_spines(enum psd_topology topology, unsigned nodes_per_rack, double oversubscription_ratio)
{
	const double uplinks = nodes_per_rack / oversubscription_ratio;

	return topology != PSD_TOPOLOGY_FAT_TREE || uplinks < 1.5 ? 1 : (unsigned)(uplinks + 0.5);
}

double psd_cost_budget_bps(const struct psd_system *system)
{
	return system->budget_bps > 0.0 ? system->budget_bps * PSD_BUDGET_PAYLOAD_RATIO : INFINITY;
}

struct psd_rates psd_rates_make(const struct psd_host_costs *host, const struct psd_network *network, double link_bps,
				unsigned fan_in, double gemm_flops_per_sec)
{
	const double payload_bps = link_bps * network->payload_ratio;
	const double reached_bps = payload_bps * (host->share_ratio > 0.0 ? host->share_ratio : 1.0);
	const double transport_bps =
		host->transport_bps > 0 ? fmax(host->transport_bps, host->streams_ratio * payload_bps) : INFINITY;
	const double local_bps = network->local_bps > 0 ? network->local_bps : INFINITY;
	const bool has_racks = network->topology == PSD_TOPOLOGY_RACKS || network->topology == PSD_TOPOLOGY_FAT_TREE;
	const unsigned spines =
		psd_cost_spines(network->topology, network->nodes_per_rack, network->oversubscription_ratio);
	return (struct psd_rates){
		.link_bps = payload_bps,
		.send_bps = fmin(reached_bps, transport_bps),
		.receive_bps = fmin(reached_bps, transport_bps / (1.0 + host->incast_ratio * fan_in)),
		.local_bps = host->local_bps > 0 ? fmin(local_bps, host->local_bps) : local_bps,
		.between_bps = network->local_switches == 0 ? INFINITY
			       : network->between_bps > 0.0 ? network->between_bps
							    : network->local_bps,
		.uplink_bps = has_racks
				      ? network->nodes_per_rack * payload_bps / network->oversubscription_ratio / spines
				      : INFINITY,
		.spines = spines,
		.latency_sec = network->latency_sec + host->latency_sec,
		.local_latency_sec = network->local_latency_sec,
		.gemm_flops_per_sec = gemm_flops_per_sec,
		.host = host,
	};
}

static void take_larger(struct psd_traffic *most, struct psd_traffic traffic)
{
	most->sent_bytes = traffic.sent_bytes > most->sent_bytes ? traffic.sent_bytes : most->sent_bytes;
	most->received_bytes =
		traffic.received_bytes > most->received_bytes ? traffic.received_bytes : most->received_bytes;
}

double psd_cost_traffic_sec(struct psd_traffic traffic, double out_bps, double in_bps)
{
	return fmax(8.0 * (double)traffic.sent_bytes / out_bps, 8.0 * (double)traffic.received_bytes / in_bps);
}

/* Returns the bytes that take as long on one of the cluster's links as the traffic takes on a node's own link. */
static struct psd_traffic on_cluster_link(struct psd_traffic traffic, double link_ratio)
{
	if (link_ratio == 1.0)
		return traffic;
	return (struct psd_traffic){(uint64_t)((double)traffic.sent_bytes / link_ratio),
				    (uint64_t)((double)traffic.received_bytes / link_ratio)};
}

static struct psd_traffic busiest_node(const struct psd_payload *payload, const struct psd_layout *layout)
{
	struct psd_traffic most = {0, 0};

	for (unsigned node = 0; node < psd_layout_nodes(layout); node++)
		if (psd_payload_may_be_busiest(payload, layout, node))
			take_larger(&most, on_cluster_link(psd_payload_node_traffic(payload, layout, node),
							   psd_layout_link_ratio(layout, node)));
	return most;
}

double psd_cost_rack_bps(const struct psd_layout *layout, const struct psd_rates *rates, bool is_in)
{
	const double per_uplink = (layout->nodes_per_rack - 1) / rates->spines + 1;

	return is_in ? rates->uplink_bps * layout->nodes_per_rack / per_uplink : rates->uplink_bps * rates->spines;
}

/* Racks are alike except the first, the last, those of servers and of the root. */
static bool may_rack_be_busiest(const struct psd_payload *payload, const struct psd_layout *layout, unsigned rack)
{
	const unsigned n_racks = psd_layout_worker_racks(layout);
	bool has_server = false;

	for (unsigned i = 0; i < layout->n_servers_in && !has_server; i++)
		has_server = layout->servers_in[i] == rack;
	return rack < 2 || rack + 1 >= n_racks || has_server ||
	       (payload->collective->has_root &&
		rack == psd_layout_rack(layout, psd_layout_node(layout, payload->root)));
}

/* A single rack has no traffic beyond it. */
static struct psd_traffic busiest_rack(const struct psd_payload *payload, const struct psd_layout *layout)
{
	const unsigned n_racks = layout->nodes_per_rack > 0 ? psd_layout_racks(layout) : 0;
	struct psd_traffic most = {0, 0};

	for (unsigned rack = 0; n_racks > 1 && rack < n_racks && !payload->collective->steps; rack++)
		if (may_rack_be_busiest(payload, layout, rack))
			take_larger(&most, psd_payload_rack_traffic(payload, layout, rack));
	return most;
}

static struct psd_inside busiest_inside(const struct psd_payload *payload, const struct psd_layout *layout,
					bool has_local_rate)
{
	if (layout->workers_per_switch > 0)
		return psd_payload_inside(payload, layout);
	return (struct psd_inside){has_local_rate ? psd_payload_local_elements(payload, layout) : 0.0, 0.0};
}

struct psd_loads psd_cost_loads(const struct psd_payload *payload, const struct psd_layout *layout, bool has_local_rate)
{
	struct psd_loads loads = {.value_bytes = payload->value_bytes};

	if (psd_layout_hosts(layout) == 1)
		return loads;
	loads.inside = busiest_inside(payload, layout, has_local_rate);
	if (psd_layout_nodes(layout) == 1)
		return loads;
	loads.node = busiest_node(payload, layout);
	loads.rack = busiest_rack(payload, layout);
	return loads;
}

double psd_cost_loads_sec(const struct psd_loads *loads, const struct psd_layout *layout, const struct psd_rates *rates)
{
	const double bits = 8.0 * loads->value_bytes;
	const double local_sec = layout->workers_per_switch > 0
					 ? bits * fmax(loads->inside.worker_elements / rates->local_bps,
						       loads->inside.switch_elements / rates->between_bps)
					 : bits * loads->inside.worker_elements / rates->local_bps;
	const double node_sec = psd_cost_traffic_sec(loads->node, rates->send_bps, rates->receive_bps);

	if (layout->nodes_per_rack == 0)
		return fmax(local_sec, node_sec);
	return fmax(fmax(local_sec, node_sec),
		    psd_cost_traffic_sec(loads->rack, psd_cost_rack_bps(layout, rates, false),
					 psd_cost_rack_bps(layout, rates, true)));
}

static struct psd_loads loads_at(const struct psd_payload *payload, const struct psd_layout *layout,
				 const struct psd_rates *rates)
{
	return psd_cost_loads(payload, layout, isfinite(rates->local_bps));
}

static bool class_holds(const struct psd_collective_class *class, uint64_t bytes, unsigned workers)
{
	return (!class->up_to_bytes || bytes <= class->up_to_bytes) &&
	       (!class->chunk_bytes || bytes <= class->chunk_bytes * workers) &&
	       (!class->workers || workers <= class->workers);
}

/* Seconds beyond transfer_sec where the collective reaches less of the link than the network stack does. */
static double slowed_sec(const struct psd_loads *loads, const struct psd_layout *layout, const struct psd_rates *rates,
			 double slowdown_ratio, double transfer_sec)
{
	struct psd_rates link = *rates;

	if (slowdown_ratio == 0.0)
		return 0.0;
	link.send_bps = link.receive_bps = rates->link_bps;
	return fmax(0.0, slowdown_ratio * psd_cost_loads_sec(loads, layout, &link) - transfer_sec);
}

static double class_sec(const struct psd_payload *payload, const struct psd_loads *loads,
			const struct psd_layout *layout, const struct psd_rates *rates, double transfer_sec)
{
	const struct psd_host_costs *host = rates->host;
	const unsigned n_members = psd_payload_members(payload, layout).n;
	const uint64_t bytes = payload->elements * payload->value_bytes;
	for (unsigned i = 0; i < host->n_collective_classes && n_members > 1; i++) {
		const struct psd_collective_class *class = &host->collective[i];
		if (class_holds(class, bytes, n_members))
			return rates->agree_sec + class->call_sec +
			       psd_payload_hops(payload, layout) * class->step_sec +
			       slowed_sec(loads, layout, rates, class->slowdown_ratio, transfer_sec);
	}
	return n_members > 1 ? rates->agree_sec : 0.0;
}

double psd_cost_class_sec(const struct psd_payload *payload, const struct psd_layout *layout,
			  const struct psd_rates *rates)
{
	const struct psd_loads loads = loads_at(payload, layout, rates);

	return class_sec(payload, &loads, layout, rates, psd_cost_loads_sec(&loads, layout, rates));
}

static struct psd_links links_of(const struct psd_payload *payload, const struct psd_layout *layout,
				 const struct psd_rates *rates)
{
	return (struct psd_links){
		/* steps of an all-reduce follow the slowest link */
		.far_bps = fmin(rates->send_bps, rates->receive_bps) * psd_layout_slowest_link_ratio(layout),
		.near_bps = rates->local_bps,
		.between_bps = rates->between_bps,
		.latency_sec = rates->latency_sec,
		.near_latency_sec = rates->local_latency_sec,
		.per_switch = psd_payload_per_switch(payload, layout),
		.per_rack = psd_payload_per_rack(payload, layout),
		.spines = rates->spines,
		.uplink_bps = rates->uplink_bps,
	};
}

/* ---- processors that move the bytes of an all-reduce over nodes of several workers ---- */

enum { MOST_TIMED = 1 << 22 }; /* members x members x steps: 0.2 s at most */

/* Processors of a machine that is full. */
static struct psd_processors processors_of(const struct psd_layout *layout, const struct psd_rates *rates)
{
	const struct psd_machine *machine = &rates->machine;
	const unsigned all_nodes = psd_layout_nodes(layout);
	const unsigned n = machine->nodes > 0 && machine->nodes < all_nodes ? machine->nodes : all_nodes;
	const unsigned n_worker_nodes = n < layout->nodes ? n : layout->nodes;
	const unsigned n_full = psd_layout_first(layout, n_worker_nodes);
	const unsigned n_hosts = (n_full < layout->workers ? n_full : layout->workers) + (n - n_worker_nodes);
	const bool is_shared = n_hosts > machine->cores;

	return (struct psd_processors){
		.far_bit_sec = psd_cost_socket_work(machine, rates, 1.0 / 8.0, 0.0, false).sec,
		.near_bit_sec = psd_cost_socket_work(machine, rates, 1.0 / 8.0, 0.0, true).sec,
		.cores = is_shared ? machine->cores : machine->cores / n_hosts,
		.shared_nodes = is_shared ? n : 0,
	};
}

struct ends {
	double sent_sec, received_sec;
};

/* Fills the seconds of all flows at both ends. *longest_sec: the longest flow at one end. */
static void find_ends(struct ends ends[], const struct psd_payload *payload, const struct psd_layout *layout,
		      const struct psd_processors *processors, double *longest_sec)
{
	const struct psd_group group = psd_payload_group(payload, layout);

	for (unsigned rank = 0; rank < group.n; rank++) {
		const unsigned host = psd_group_host(group, rank);
		struct psd_flow flow;

		for (unsigned i = 0; psd_payload_flow(payload, layout, host, i, &flow); i++) {
			const bool is_near = psd_layout_node(layout, flow.to) == psd_layout_node(layout, host);
			const double sec = 8.0 * payload->value_bytes * (double)flow.elements *
					   (is_near ? processors->near_bit_sec : processors->far_bit_sec);

			if (flow.to == host)
				continue;
			*longest_sec = fmax(*longest_sec, sec);
			ends[host].sent_sec += sec;
			ends[flow.to].received_sec += sec;
		}
	}
}

/* Seconds of the processors when all flows begin together, as in executors that leave out steps: until the busiest
 * member, or all members on a machine, are done. One core at most works at a flow's end, or, in one piece, at all flows
 * of one direction. NaN when memory runs out. */
static double flows_process_sec(const struct psd_payload *payload, const struct psd_layout *layout,
				const struct psd_processors *processors, bool is_in_one_piece)
{
	const double shared_ratio = (double)psd_layout_first(layout, processors->shared_nodes) / layout->workers;
	struct ends *ends = calloc(layout->workers, sizeof(*ends));
	double one_core_sec = 0.0, most_sec = 0.0, sum_sec = 0.0;

	if (!ends)
		return NAN;
	find_ends(ends, payload, layout, processors, &one_core_sec);
	for (unsigned w = 0; w < layout->workers; w++) {
		if (is_in_one_piece)
			one_core_sec = fmax(one_core_sec, fmax(ends[w].sent_sec, ends[w].received_sec));
		most_sec = fmax(most_sec, ends[w].sent_sec + ends[w].received_sec);
		sum_sec += ends[w].sent_sec + ends[w].received_sec;
	}
	free(ends);
	const double work_sec = processors->shared_nodes > 0 ? sum_sec * fmin(1.0, shared_ratio) : most_sec;
	return fmax(one_core_sec, work_sec / processors->cores);
}

/* Inside a node cores are the bound where links are not: if steps were not timed, they would overlap those between
 * nodes. */
static bool is_timed_with_processors(const struct psd_payload *payload, const struct psd_layout *layout,
				     const struct psd_rates *rates)
{
	const uint64_t n = psd_payload_members(payload, layout).n;

	return layout->workers_per_node > 1 && rates->machine.cores > 0 && rates->machine.bytes_bps > 0.0 &&
	       n * n * psd_payload_steps(payload, layout) <= MOST_TIMED;
}

static double delay_with_processors_sec(const struct psd_payload *payload, const struct psd_layout *layout,
					const struct psd_rates *rates, double transfer_sec, bool is_in_one_piece)
{
	const struct psd_processors processors = processors_of(layout, rates);
	struct psd_links links = links_of(payload, layout, rates);
	const double flows_sec = fmax(transfer_sec, flows_process_sec(payload, layout, &processors, is_in_one_piece));

	links.processors = &processors;
	const double alone_sec =
		psd_step_times_sec(payload, psd_payload_members(payload, layout), 8.0 * payload->value_bytes, &links);
	return alone_sec < flows_sec ? 0.0 : alone_sec - flows_sec;
}

static double delay_sec_of(const struct psd_payload *payload, const struct psd_loads *loads,
			   const struct psd_layout *layout, const struct psd_rates *rates, double transfer_sec,
			   bool is_in_one_piece)
{
	if (psd_payload_members(payload, layout).n == 1)
		return 0.0;
	const struct psd_links links = links_of(payload, layout, rates);
	const double beyond_sec =
		is_timed_with_processors(payload, layout, rates)
			? delay_with_processors_sec(payload, layout, rates, transfer_sec, is_in_one_piece)
			: psd_payload_alone_sec(payload, layout, transfer_sec, &links) - transfer_sec;
	return class_sec(payload, loads, layout, rates, transfer_sec) + beyond_sec;
}

double psd_cost_delay_sec(const struct psd_payload *payload, const struct psd_loads *loads,
			  const struct psd_layout *layout, const struct psd_rates *rates)
{
	return delay_sec_of(payload, loads, layout, rates, psd_cost_loads_sec(loads, layout, rates), true);
}

double psd_cost_flows_delay_sec(const struct psd_payload *payload, const struct psd_layout *layout,
				const struct psd_rates *rates)
{
	const struct psd_members members = psd_payload_members(payload, layout);
	const struct psd_loads loads = loads_at(payload, layout, rates);
	const double transfer_sec = psd_cost_loads_sec(&loads, layout, rates);
	const double delay_sec = delay_sec_of(payload, &loads, layout, rates, transfer_sec, false);

	if ((layout->workers_per_switch == 0 && layout->nodes_per_rack == 0 && !layout->has_own_rates) ||
	    members.n == 1)
		return delay_sec;
	const struct psd_links links = links_of(payload, layout, rates);
	const double more_sec = psd_step_times_flows_sec(payload, members, &links) - transfer_sec;
	return delay_sec < more_sec ? 0.0 : delay_sec - more_sec;
}
