#include "engine/collectives/collective.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>

#include "engine/collectives/step_times.h"

enum { MOST_COUNTED_NODES = 64 }; /* a node has no more workers than this */

#define PSD_ADDRESS(identifier, name) &psd_##identifier,
const struct psd_collective *const psd_all_reduces[PSD_N_ALL_REDUCES] = {PSD_ALL_REDUCES(PSD_ADDRESS)};
const struct psd_collective *const psd_libraries[PSD_N_LIBRARIES] = {PSD_LIBRARIES(PSD_ADDRESS)};

struct psd_group psd_payload_group(const struct psd_payload *payload, const struct psd_layout *layout)
{
	return payload->group.n > 0 ? payload->group : (struct psd_group){0, 1, layout->workers};
}

bool psd_payload_has_member(const struct psd_payload *payload, const struct psd_layout *layout, unsigned host)
{
	return payload->group.n > 0 ? psd_group_has(payload->group, host) : psd_layout_is_worker(layout, host);
}

struct psd_members psd_payload_members(const struct psd_payload *payload, const struct psd_layout *layout)
{
	if (payload->group.n == 0) {
		const bool has_kinds = layout->is_uneven || layout->has_own_latencies || layout->has_own_rates;

		return (struct psd_members){.n = layout->workers,
					    .per_node = layout->workers_per_node,
					    .layout = has_kinds ? layout : NULL};
	}
	const unsigned per_node = layout->workers_per_node / payload->group.stride;

	return (struct psd_members){.n = payload->group.n, .per_node = per_node > 1 ? per_node : 1};
}

unsigned psd_members_nodes(struct psd_members members)
{
	return psd_members_node(members, members.n - 1) + 1;
}

struct psd_members psd_members_leaders(struct psd_members members)
{
	return (struct psd_members){psd_members_nodes(members), 1, members.layout, true};
}

unsigned psd_members_on_node(struct psd_members members)
{
	return members.n < members.per_node ? members.n : members.per_node;
}

unsigned psd_payload_per_switch(const struct psd_payload *payload, const struct psd_layout *layout)
{
	const unsigned per_switch =
		payload->group.n > 0 ? layout->workers_per_switch / payload->group.stride : layout->workers_per_switch;

	return layout->workers_per_switch > 0 && per_switch == 0 ? 1 : per_switch;
}

/* Members of a group whose stride is a multiple of a node's workers are that much rarer in a rack. */
unsigned psd_payload_per_rack(const struct psd_payload *payload, const struct psd_layout *layout)
{
	const unsigned n = layout->nodes_per_rack * layout->workers_per_node;
	const unsigned per_rack = payload->group.n > 0 ? n / payload->group.stride : n;

	return n > 0 && per_rack == 0 ? 1 : per_rack;
}

enum psd_reach psd_members_reach_inside(const struct psd_links *links, unsigned from, unsigned to)
{
	const unsigned per_switch = links->per_switch;

	return per_switch == 0 || from / per_switch == to / per_switch ? PSD_REACH_NEAR : PSD_REACH_ACROSS;
}

enum psd_reach psd_members_reach(struct psd_members members, const struct psd_links *links, unsigned from, unsigned to)
{
	if (psd_members_node(members, from) != psd_members_node(members, to))
		return links->per_rack > 0 && from / links->per_rack != to / links->per_rack ? PSD_REACH_BEYOND
											     : PSD_REACH_FAR;
	return psd_members_reach_inside(links, psd_members_position(members, from), psd_members_position(members, to));
}

double psd_links_busy_sec(const struct psd_links *links, enum psd_reach reach, double bits)
{
	const double inside_bps = fmin(links->near_bps, links->between_bps);
	const double far_bps = links->per_switch > 0 ? fmin(links->far_bps, inside_bps) : links->far_bps;

	switch (reach) {
	case PSD_REACH_NEAR: return bits / links->near_bps;
	case PSD_REACH_ACROSS: return bits / inside_bps;
	case PSD_REACH_FAR: return bits / far_bps;
	case PSD_REACH_BEYOND: return bits / fmin(far_bps, links->uplink_bps);
	case PSD_REACHES: break;
	}
	assert(false);
	return 0.0;
}

double psd_links_latency_sec(const struct psd_links *links, enum psd_reach reach)
{
	return reach >= PSD_REACH_FAR ? links->latency_sec : links->near_latency_sec;
}

double psd_members_busy_sec(struct psd_members members, const struct psd_links *links, unsigned from, unsigned to,
			    double bits)
{
	const enum psd_reach reach = psd_members_reach(members, links, from, to);
	struct psd_links own = *links;

	if (!members.layout || reach < PSD_REACH_FAR)
		return psd_links_busy_sec(links, reach, bits);
	own.far_bps *= fmin(psd_layout_link_ratio(members.layout, psd_members_node(members, from)),
			    psd_layout_link_ratio(members.layout, psd_members_node(members, to))) /
		       psd_layout_slowest_link_ratio(members.layout);
	return psd_links_busy_sec(&own, reach, bits);
}

double psd_members_latency_sec(struct psd_members members, const struct psd_links *links, unsigned from, unsigned to)
{
	const double sec = psd_links_latency_sec(links, psd_members_reach(members, links, from, to));
	const unsigned from_node = psd_members_node(members, from), to_node = psd_members_node(members, to);

	return members.layout && from_node != to_node
		       ? sec + psd_layout_more_latency_sec(members.layout, from_node, to_node)
		       : sec;
}

double psd_members_most_latency_sec(struct psd_members members, const struct psd_links *links)
{
	return links->latency_sec + (members.layout ? psd_layout_most_more_latency_sec(members.layout) : 0.0);
}

struct psd_payload psd_payload_scaled(const struct psd_payload *payload, const struct psd_layout *layout, double ratio)
{
	const uint64_t parts = layout->shards > layout->workers ? layout->shards : layout->workers;
	struct psd_payload scaled = *payload;

	if (ratio >= 1.0 || payload->elements <= parts)
		return scaled;
	scaled.elements = (uint64_t)ceil((double)payload->elements * ratio);
	if (scaled.elements < parts)
		scaled.elements = parts;
	return scaled;
}

/* ---- steps ---- */

struct psd_step psd_payload_step(const struct psd_payload *payload, const struct psd_layout *layout, unsigned host,
				 unsigned step)
{
	const struct psd_members members = psd_payload_members(payload, layout);
	const struct psd_group group = payload->group;

	if (group.n == 0)
		return payload->collective->step(payload->elements, members, host, step);
	struct psd_step own = payload->collective->step(payload->elements, members, psd_group_rank(group, host), step);
	own.to = psd_group_host(group, own.to);
	own.from = psd_group_host(group, own.from);
	return own;
}

bool psd_payload_is_staged(const struct psd_payload *payload, const struct psd_layout *layout, unsigned host,
			   unsigned step)
{
	const struct psd_step own = psd_payload_step(payload, layout, host, step);

	if (own.to == host || own.from == host)
		return false;
	const struct psd_range came = psd_payload_step(payload, layout, own.from, step).sent;
	return own.sent.first < came.first + came.elements && came.first < own.sent.first + own.sent.elements;
}

unsigned psd_payload_steps(const struct psd_payload *payload, const struct psd_layout *layout)
{
	return payload->collective->steps
		       ? payload->collective->steps(payload->elements, psd_payload_members(payload, layout))
		       : 0;
}

unsigned psd_payload_hops(const struct psd_payload *payload, const struct psd_layout *layout)
{
	return payload->collective->hops
		       ? payload->collective->hops(payload->elements, psd_payload_members(payload, layout))
		       : psd_payload_steps(payload, layout);
}

unsigned psd_payload_next_step(const struct psd_payload *payload, const struct psd_layout *layout, unsigned host,
			       unsigned step, bool sends)
{
	const unsigned n_steps = psd_payload_steps(payload, layout);

	for (; step < n_steps; step++) {
		const struct psd_step own = psd_payload_step(payload, layout, host, step);

		if ((sends ? own.to : own.from) != host)
			break;
	}
	return step;
}

bool psd_payload_rank_flow(const struct psd_payload *payload, struct psd_members members, unsigned rank, unsigned i,
			   struct psd_flow *flow)
{
	const struct psd_collective *collective = payload->collective;

	if (collective->flow)
		return collective->flow(payload->elements, members, rank, i, flow);
	if (i >= collective->steps(payload->elements, members))
		return false;
	const struct psd_step step = collective->step(payload->elements, members, rank, i);
	*flow = (struct psd_flow){.to = step.to, .n_messages = 1, .from = step.from};
	if (step.to != rank)
		flow->elements = step.sent.elements;
	if (step.from != rank)
		flow->received_elements = collective->step(payload->elements, members, step.from, i).sent.elements;
	return true;
}

bool psd_payload_flow(const struct psd_payload *payload, const struct psd_layout *layout, unsigned host, unsigned i,
		      struct psd_flow *flow)
{
	const struct psd_members members = psd_payload_members(payload, layout);
	const struct psd_group group = payload->group;

	if (group.n == 0)
		return psd_payload_rank_flow(payload, members, host, i, flow);
	if (!psd_payload_rank_flow(payload, members, psd_group_rank(group, host), i, flow))
		return false;
	flow->to = psd_group_host(group, flow->to);
	flow->from = psd_group_host(group, flow->from);
	return true;
}

/* ---- seconds ---- */

double psd_payload_alone_sec(const struct psd_payload *payload, const struct psd_layout *layout, double transfer_sec,
			     const struct psd_links *links)
{
	const struct psd_members members = psd_payload_members(payload, layout);

	if (payload->collective->alone_sec)
		return payload->collective->alone_sec(payload, members, transfer_sec, links);
	const double sec = psd_step_times_sec(payload, members, 8.0 * payload->value_bytes, links);
	return sec < transfer_sec ? transfer_sec : sec;
}

/* ---- bytes ---- */

struct psd_range psd_payload_range(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from,
				   unsigned to)
{
	const struct psd_collective *reverse = payload->collective->reverse_of;

	return reverse ? reverse->range(payload, layout, to, from)
		       : payload->collective->range(payload, layout, from, to);
}

uint64_t psd_payload_bytes_between(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from,
				   unsigned to)
{
	struct psd_flow flow;
	uint64_t elements = 0;

	assert(from != to);
	if (!payload->collective->steps)
		return psd_payload_range(payload, layout, from, to).elements * payload->value_bytes;
	if (!psd_payload_has_member(payload, layout, from))
		return 0;
	for (unsigned i = 0; psd_payload_flow(payload, layout, from, i, &flow); i++)
		elements += flow.to == to ? flow.elements : 0;
	return elements * payload->value_bytes;
}

uint64_t psd_payload_bytes_to_run(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from,
				  unsigned to, unsigned n)
{
	assert(!payload->collective->steps && n > 0 && (from < to || from >= to + n));
	const struct psd_range first = psd_payload_range(payload, layout, from, to);
	const struct psd_range last = psd_payload_range(payload, layout, from, to + n - 1);

	return payload->value_bytes *
	       (payload->collective->is_cut ? last.first + last.elements - first.first : n * first.elements);
}

/* Returns the hosts on a node: its workers, or the server on a server's node. */
static struct psd_group hosts_on(const struct psd_layout *layout, unsigned node)
{
	return node < layout->nodes
		       ? (struct psd_group){psd_layout_first(layout, node), 1, psd_layout_workers_on(layout, node)}
		       : (struct psd_group){layout->workers + node - layout->nodes, 1, 1};
}

/* True if the distance from `host` to `peer` is `least` or farther. near: the hosts on the node of `host`. */
static bool is_beyond(const struct psd_layout *layout, struct psd_group near, unsigned host, unsigned peer,
		      enum psd_reach least)
{
	if (peer - near.first >= near.n)
		return true;
	return peer != host && least < PSD_REACH_FAR && psd_layout_reach(layout, host, peer) >= least;
}

/* Returns the numbers of elements that a host sends to and receives from all hosts at distance `least` or farther; the
 * fields of struct psd_traffic count elements here. */
static struct psd_traffic beyond_at_once(const struct psd_payload *payload, const struct psd_layout *layout,
					 struct psd_group near, unsigned host, enum psd_reach least)
{
	const struct psd_collective *reverse = payload->collective->reverse_of;
	const struct psd_traffic all = (reverse ? reverse : payload->collective)->host_elements(payload, layout, host);
	struct psd_traffic beyond = reverse ? (struct psd_traffic){all.received_bytes, all.sent_bytes} : all;

	for (unsigned peer = near.first; peer < near.first + near.n; peer++)
		if (peer != host && !is_beyond(layout, near, host, peer, least)) {
			beyond.sent_bytes -= psd_payload_range(payload, layout, host, peer).elements;
			beyond.received_bytes -= psd_payload_range(payload, layout, peer, host).elements;
		}
	return beyond;
}

static struct psd_traffic beyond(const struct psd_payload *payload, const struct psd_layout *layout,
				 struct psd_group near, unsigned host, enum psd_reach least)
{
	struct psd_traffic sum = {0, 0};
	struct psd_flow flow;

	if (!payload->collective->steps)
		return beyond_at_once(payload, layout, near, host, least);
	if (!psd_payload_has_member(payload, layout, host))
		return sum;
	for (unsigned i = 0; psd_payload_flow(payload, layout, host, i, &flow); i++) {
		if (is_beyond(layout, near, host, flow.to, least))
			sum.sent_bytes += flow.elements;
		if (is_beyond(layout, near, host, flow.from, least))
			sum.received_bytes += flow.received_elements;
	}
	return sum;
}

struct psd_traffic psd_payload_node_traffic(const struct psd_payload *payload, const struct psd_layout *layout,
					    unsigned node)
{
	const struct psd_group hosts = hosts_on(layout, node);
	struct psd_traffic sum = {0, 0};

	for (unsigned host = hosts.first; host < hosts.first + hosts.n; host++) {
		const struct psd_traffic traffic = beyond(payload, layout, hosts, host, PSD_REACH_FAR);

		sum.sent_bytes += traffic.sent_bytes * payload->value_bytes;
		sum.received_bytes += traffic.received_bytes * payload->value_bytes;
	}
	return sum;
}

/* Moves *host to the next host of a rack: workers, then servers. False: there is none. */
static bool find_in_rack(const struct psd_layout *layout, unsigned rack, unsigned *host)
{
	const uint64_t per_rack = (uint64_t)layout->nodes_per_rack * layout->workers_per_node;
	const unsigned n_hosts = psd_layout_hosts(layout);

	if (*host < layout->workers && *host < rack * per_rack)
		*host = rack * per_rack < layout->workers ? (unsigned)(rack * per_rack) : layout->workers;
	if (*host < layout->workers && *host >= (rack + 1) * per_rack)
		*host = layout->workers;
	while (*host >= layout->workers && *host < n_hosts &&
	       psd_layout_rack(layout, psd_layout_node(layout, *host)) != rack)
		++*host;
	return *host < n_hosts;
}

struct psd_traffic psd_payload_rack_traffic(const struct psd_payload *payload, const struct psd_layout *layout,
					    unsigned rack)
{
	const struct psd_collective *reverse = payload->collective->reverse_of;
	struct psd_traffic sum = {0, 0};
	uint64_t inside = 0;

	for (unsigned host = 0; find_in_rack(layout, rack, &host); host++) {
		const struct psd_traffic all =
			(reverse ? reverse : payload->collective)->host_elements(payload, layout, host);

		sum.sent_bytes += reverse ? all.received_bytes : all.sent_bytes;
		sum.received_bytes += reverse ? all.sent_bytes : all.received_bytes;
		for (unsigned peer = 0; find_in_rack(layout, rack, &peer); peer++)
			inside += peer != host ? psd_payload_range(payload, layout, host, peer).elements : 0;
	}
	return (struct psd_traffic){(sum.sent_bytes - inside) * payload->value_bytes,
				    (sum.received_bytes - inside) * payload->value_bytes};
}

/* Nodes of a kind are alike except the first, the root's, and the last one, which may have fewer workers and whose
 * shard has the largest part. Beside a root on the first node, the second represents the others. */
bool psd_payload_may_be_busiest(const struct psd_payload *payload, const struct psd_layout *layout, unsigned node)
{
	const struct psd_collective *collective = payload->collective;

	return collective->is_uneven || collective->is_timed_by_steps || payload->group.n > 0 || layout->n_kinds > 0 ||
	       node < 2 || node + 1 == layout->nodes || node + 1 == psd_layout_nodes(layout) ||
	       (collective->has_root && node == psd_layout_node(layout, payload->root));
}

static double larger_of(struct psd_traffic traffic)
{
	return (double)(traffic.sent_bytes > traffic.received_bytes ? traffic.sent_bytes : traffic.received_bytes);
}

static double near_elements(const struct psd_payload *payload, const struct psd_layout *layout, struct psd_group hosts,
			    unsigned host)
{
	struct psd_traffic near = beyond(payload, layout, hosts, host, PSD_REACH_NEAR);
	const struct psd_traffic far = beyond(payload, layout, hosts, host, PSD_REACH_FAR);

	near.sent_bytes -= far.sent_bytes;
	near.received_bytes -= far.received_bytes;
	return larger_of(near);
}

double psd_payload_local_elements(const struct psd_payload *payload, const struct psd_layout *layout)
{
	double most = 0.0;

	for (unsigned node = 0; node < layout->nodes && layout->workers_per_node > 1; node++) {
		const struct psd_group hosts = hosts_on(layout, node);

		for (unsigned i = 0; i < hosts.n && psd_payload_may_be_busiest(payload, layout, node); i++)
			most = fmax(most, near_elements(payload, layout, hosts, hosts.first + i));
	}
	return most;
}

static void add_node(struct psd_inside *inside, const struct psd_payload *payload, const struct psd_layout *layout,
		     unsigned node)
{
	const struct psd_group hosts = hosts_on(layout, node);
	struct psd_traffic uplink = {0, 0};

	for (unsigned i = 0; i < hosts.n; i++) {
		const unsigned host = hosts.first + i;
		const struct psd_traffic all = beyond(payload, layout, hosts, host, PSD_REACH_NEAR);
		const struct psd_traffic passing = beyond(payload, layout, hosts, host, PSD_REACH_ACROSS);

		if (i % layout->workers_per_switch == 0)
			uplink = (struct psd_traffic){0, 0};
		uplink.sent_bytes += passing.sent_bytes;
		uplink.received_bytes += passing.received_bytes;
		inside->switch_elements = fmax(inside->switch_elements, larger_of(uplink));
		inside->worker_elements = fmax(inside->worker_elements, larger_of(all));
	}
}

struct psd_inside psd_payload_inside(const struct psd_payload *payload, const struct psd_layout *layout)
{
	struct psd_inside inside = {0.0, 0.0};

	for (unsigned node = 0; node < layout->nodes; node++)
		if (psd_payload_may_be_busiest(payload, layout, node))
			add_node(&inside, payload, layout, node);
	return inside;
}

/* ---- numbers of hosts and nodes ---- */

unsigned psd_payload_senders(const struct psd_payload *payload, const struct psd_layout *layout, unsigned to)
{
	const struct psd_collective *reverse = payload->collective->reverse_of;

	if (payload->elements == 0)
		return 0;
	return reverse ? reverse->receivers(payload, layout, to) : payload->collective->senders(payload, layout, to);
}

unsigned psd_payload_receivers(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from)
{
	const struct psd_collective *reverse = payload->collective->reverse_of;

	if (payload->elements == 0)
		return 0;
	return reverse ? reverse->senders(payload, layout, from)
		       : payload->collective->receivers(payload, layout, from);
}

/* Returns the number of workers on a host's node to which the host sends (is_sender) or from which it receives. */
static unsigned count_near(const struct psd_payload *payload, const struct psd_layout *layout, unsigned host,
			   bool is_sender)
{
	const unsigned node = psd_layout_node(layout, host), first = psd_layout_first(layout, node);
	unsigned n_near = 0;

	for (unsigned i = 0; node < layout->nodes && i < psd_layout_workers_on(layout, node); i++) {
		const unsigned peer = first + i, from = is_sender ? host : peer, to = is_sender ? peer : host;

		n_near += peer != host && psd_payload_bytes_between(payload, layout, from, to) > 0;
	}
	return n_near;
}

/* Returns the number of hosts to which `host` sends (is_sender) or from which it receives. If `peer` is on the node of
 * `host`, it counts hosts on that node, otherwise hosts on other nodes. */
static unsigned count_beside(const struct psd_payload *payload, const struct psd_layout *layout, unsigned host,
			     unsigned peer, bool is_sender)
{
	const unsigned n_near = count_near(payload, layout, host, is_sender);
	const unsigned n_all =
		is_sender ? psd_payload_receivers(payload, layout, host) : psd_payload_senders(payload, layout, host);

	return psd_layout_node(layout, host) == psd_layout_node(layout, peer) ? n_near : n_all - n_near;
}

unsigned psd_payload_senders_beside(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from,
				    unsigned to)
{
	return count_beside(payload, layout, to, from, false);
}

unsigned psd_payload_receivers_beside(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from,
				      unsigned to)
{
	return count_beside(payload, layout, from, to, true);
}

/* Returns the number of nodes whose members send to members of this node in some step, at most the number of this
 * node's workers. */
static unsigned nodes_into(const struct psd_payload *payload, const struct psd_layout *layout, unsigned node)
{
	const struct psd_group hosts = hosts_on(layout, node);
	const unsigned most = hosts.n < MOST_COUNTED_NODES ? hosts.n : MOST_COUNTED_NODES;
	unsigned seen[MOST_COUNTED_NODES], n = 0;
	struct psd_flow flow;

	for (unsigned host = hosts.first; host < hosts.first + hosts.n; host++)
		for (unsigned i = 0; n < most && psd_payload_has_member(payload, layout, host) &&
				     psd_payload_flow(payload, layout, host, i, &flow);
		     i++) {
			const unsigned from = psd_layout_node(layout, flow.from);
			unsigned known = 0;

			while (known < n && seen[known] != from)
				known++;
			if (from != node && known == n)
				seen[n++] = from;
		}
	return n;
}

/* A member executes one step at a time, but the members of a node need not be at the same one. */
unsigned psd_payload_fan_in(const struct psd_payload *payload, const struct psd_layout *layout)
{
	const struct psd_collective *collective = payload->collective, *reverse = collective->reverse_of;
	unsigned (*const at_once)(const struct psd_layout *) = reverse ? reverse->fan_out : collective->fan_in;
	unsigned most = 0;

	if (!collective->steps)
		return at_once ? at_once(layout) : 0;
	for (unsigned node = 0; node < layout->nodes && layout->nodes > 1; node++) {
		const unsigned n = nodes_into(payload, layout, node);

		most = n > most ? n : most;
	}
	return most;
}

static unsigned pairs_into(const struct psd_payload *payload, const struct psd_layout *layout, unsigned node)
{
	const unsigned n_hosts = psd_layout_hosts(layout);
	unsigned n_pairs = 0;

	for (unsigned to = 0; to < n_hosts; to++)
		for (unsigned from = 0; from < n_hosts && psd_layout_node(layout, to) == node; from++)
			n_pairs += psd_layout_node(layout, from) != node &&
				   psd_payload_bytes_between(payload, layout, from, to) > 0;
	return n_pairs;
}

unsigned psd_payload_pairs_in(const struct psd_payload *payload, const struct psd_layout *layout)
{
	unsigned most = 0;

	for (unsigned node = 0; node < psd_layout_nodes(layout); node++) {
		const unsigned n_pairs = pairs_into(payload, layout, node);

		most = n_pairs > most ? n_pairs : most;
	}
	return most;
}
