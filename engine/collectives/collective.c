/* What follows from a pattern's row, whatever it is. */
#include "engine/collectives/collective.h"

#include <assert.h>
#include <math.h>

#include "engine/collectives/step_times.h"

enum { MOST_COUNTED_NODES = 64 }; /* no node has more workers */

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
	if (payload->group.n == 0)
		return (struct psd_members){layout->workers, layout->workers_per_node};
	const unsigned per_node = layout->workers_per_node / payload->group.stride;

	return (struct psd_members){payload->group.n, per_node > 1 ? per_node : 1};
}

unsigned psd_members_nodes(struct psd_members members)
{
	return (members.n - 1) / members.per_node + 1;
}

unsigned psd_payload_per_switch(const struct psd_payload *payload, const struct psd_layout *layout)
{
	const unsigned per_switch =
		payload->group.n > 0 ? layout->workers_per_switch / payload->group.stride : layout->workers_per_switch;

	return layout->workers_per_switch > 0 && per_switch == 0 ? 1 : per_switch;
}

enum psd_reach psd_members_reach(struct psd_members members, const struct psd_ways *ways, unsigned from, unsigned to)
{
	const unsigned per_node = members.per_node, per_switch = ways->per_switch;

	if (from / per_node != to / per_node)
		return PSD_REACH_FAR;
	return per_switch == 0 || from % per_node / per_switch == to % per_node / per_switch ? PSD_REACH_NEAR
											     : PSD_REACH_ACROSS;
}

double psd_ways_busy_sec(const struct psd_ways *ways, enum psd_reach reach, double bits)
{
	const double inside_bps = fmin(ways->near_bps, ways->between_bps);

	switch (reach) {
	case PSD_REACH_NEAR: return bits / ways->near_bps;
	case PSD_REACH_ACROSS: return bits / inside_bps;
	case PSD_REACH_FAR: return bits / (ways->per_switch > 0 ? fmin(ways->far_bps, inside_bps) : ways->far_bps);
	case PSD_REACHES: break;
	}
	assert(false);
	return 0.0;
}

double psd_ways_latency_sec(const struct psd_ways *ways, enum psd_reach reach)
{
	return reach == PSD_REACH_FAR ? ways->latency_sec : ways->near_latency_sec;
}

bool psd_ways_are_plain(const struct psd_ways *ways)
{
	return ways->per_switch == 0 && ways->near_latency_sec == 0.0;
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
	struct psd_step taken =
		payload->collective->step(payload->elements, members, psd_group_rank(group, host), step);
	taken.to = psd_group_host(group, taken.to);
	taken.from = psd_group_host(group, taken.from);
	return taken;
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

unsigned psd_payload_next_step(const struct psd_payload *payload, const struct psd_layout *layout, unsigned host,
			       unsigned step, bool sends)
{
	const unsigned n_steps = psd_payload_steps(payload, layout);

	for (; step < n_steps; step++) {
		const struct psd_step taken = psd_payload_step(payload, layout, host, step);

		if ((sends ? taken.to : taken.from) != host)
			break;
	}
	return step;
}

bool psd_payload_rank_flow(const struct psd_payload *payload, struct psd_members members, unsigned rank, unsigned i,
			   struct psd_flow *flow)
{
	if (payload->collective->flow)
		return payload->collective->flow(payload->elements, members, rank, i, flow);
	if (i >= payload->collective->steps(payload->elements, members))
		return false;
	const struct psd_step step = payload->collective->step(payload->elements, members, rank, i);
	*flow = (struct psd_flow){step.to, step.to == rank ? 0 : step.sent.elements, 1};
	return true;
}

bool psd_payload_flow(const struct psd_payload *payload, const struct psd_layout *layout, unsigned host, unsigned i,
		      struct psd_flow *flow)
{
	const struct psd_members members = psd_payload_members(payload, layout);
	const struct psd_group group = payload->group;

	if (group.n == 0)
		return psd_payload_rank_flow(payload, members, host, i, flow);
	const bool is_there = psd_payload_rank_flow(payload, members, psd_group_rank(group, host), i, flow);
	flow->to = psd_group_host(group, flow->to);
	return is_there;
}

static uint64_t flows_between(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from,
			      unsigned to)
{
	struct psd_flow flow;
	uint64_t elements = 0;

	for (unsigned i = 0; psd_payload_flow(payload, layout, from, i, &flow); i++)
		elements += flow.to == to ? flow.elements : 0;
	return elements;
}

/* What a member moves in a step, in elements: to and from others of its node, to and from other nodes. */
struct moves {
	uint64_t near_out, near_in;
	uint64_t far_out, far_in;
};

static struct moves moves_in_step(const struct psd_payload *payload, const struct psd_layout *layout, unsigned host,
				  unsigned number)
{
	const struct psd_step step = psd_payload_step(payload, layout, host, number);
	const unsigned node = psd_layout_node(layout, host);
	struct moves moves = {0, 0, 0, 0};

	if (step.to != host)
		*(psd_layout_node(layout, step.to) == node ? &moves.near_out : &moves.far_out) = step.sent.elements;
	if (step.from != host)
		*(psd_layout_node(layout, step.from) == node ? &moves.near_in : &moves.far_in) =
			psd_payload_step(payload, layout, step.from, number).sent.elements;
	return moves;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* A node's link carries what all its members move, its inside what each moves by itself: of that the most. */
static struct moves node_moves(const struct psd_payload *payload, const struct psd_layout *layout, unsigned node,
			       unsigned number)
{
	const struct psd_group group = psd_payload_group(payload, layout);
	const unsigned first = node * layout->workers_per_node, end = first + psd_layout_workers_on(layout, node);
	struct moves sum = {0, 0, 0, 0};

	for (unsigned host = first; host < end; host++) {
		if (!psd_group_has(group, host))
			continue;
		const struct moves moves = moves_in_step(payload, layout, host, number);

		sum.near_out = larger(sum.near_out, moves.near_out);
		sum.near_in = larger(sum.near_in, moves.near_in);
		sum.far_out += moves.far_out;
		sum.far_in += moves.far_in;
	}
	return sum;
}

/* ---- seconds ---- */

double psd_payload_alone_sec(const struct psd_payload *payload, const struct psd_layout *layout, double transfer_sec,
			     const struct psd_ways *ways)
{
	const struct psd_members members = psd_payload_members(payload, layout);

	if (payload->collective->alone_sec)
		return payload->collective->alone_sec(payload, members, transfer_sec, ways);
	const double sec = psd_step_times_sec(payload, members, 8.0 * payload->value_bytes, ways);
	return sec < transfer_sec ? transfer_sec : sec;
}

/* ---- bytes ---- */

uint64_t psd_payload_bytes_between(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from,
				   unsigned to)
{
	assert(from != to);
	if (payload->collective->range)
		return payload->collective->range(payload, layout, from, to).elements * payload->value_bytes;
	if (!psd_payload_has_member(payload, layout, from))
		return 0;
	return flows_between(payload, layout, from, to) * payload->value_bytes;
}

uint64_t psd_payload_bytes_to_run(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from,
				  unsigned to, unsigned n)
{
	assert(payload->collective->range && n > 0 && (from < to || from >= to + n));
	const struct psd_range first = payload->collective->range(payload, layout, from, to);
	const struct psd_range last = payload->collective->range(payload, layout, from, to + n - 1);

	return payload->value_bytes *
	       (payload->collective->is_cut ? last.first + last.elements - first.first : n * first.elements);
}

/* Elements, by all steps. */
static struct psd_traffic walk_node(const struct psd_payload *payload, const struct psd_layout *layout, unsigned node)
{
	const unsigned n_steps = psd_payload_steps(payload, layout);
	struct psd_traffic traffic = {0, 0};

	for (unsigned s = 0; s < n_steps; s++) {
		const struct moves moves = node_moves(payload, layout, node, s);

		traffic.sent_bytes += moves.far_out;
		traffic.received_bytes += moves.far_in;
	}
	return traffic;
}

static bool takes_all_workers(const struct psd_payload *payload, const struct psd_layout *layout)
{
	return payload->group.n == 0 || payload->group.n == layout->workers;
}

struct psd_traffic psd_payload_node_traffic(const struct psd_payload *payload, const struct psd_layout *layout,
					    unsigned node)
{
	const struct psd_collective *collective = payload->collective;
	struct psd_traffic traffic = collective->node_elements && takes_all_workers(payload, layout)
					     ? collective->node_elements(payload, layout, node)
					     : walk_node(payload, layout, node);

	traffic.sent_bytes *= payload->value_bytes;
	traffic.received_bytes *= payload->value_bytes;
	return traffic;
}

/* By all steps of a worker: what stays on its node, one way or the other. */
static double walk_worker(const struct psd_payload *payload, const struct psd_layout *layout, unsigned host)
{
	const unsigned n_steps = psd_payload_steps(payload, layout);
	uint64_t sent = 0, received = 0;

	for (unsigned s = 0; s < n_steps; s++) {
		const struct moves moves = moves_in_step(payload, layout, host, s);

		sent += moves.near_out;
		received += moves.near_in;
	}
	return (double)larger(sent, received);
}

double psd_payload_local_elements(const struct psd_payload *payload, const struct psd_layout *layout)
{
	const struct psd_group group = psd_payload_group(payload, layout);
	double most = 0.0;

	if (payload->collective->local_elements && takes_all_workers(payload, layout))
		return payload->collective->local_elements(payload, layout);
	for (unsigned rank = 0; rank < group.n; rank++)
		most = fmax(most, walk_worker(payload, layout, psd_group_host(group, rank)));
	return most;
}

/* What a host sends, and, all at once, receives: through its own link, and of that through its switch's uplink. Step by
 * step as much comes in as goes out: each all-reduce sends back what it has gathered. */
struct passing {
	double out, in;
	double up, down;
};

static struct passing passing_by_flows(const struct psd_payload *payload, const struct psd_layout *layout,
				       unsigned host)
{
	struct passing passing = {0.0, 0.0, 0.0, 0.0};
	struct psd_flow flow;

	for (unsigned i = 0; psd_payload_flow(payload, layout, host, i, &flow); i++) {
		if (flow.to == host)
			continue;
		passing.out += (double)flow.elements;
		if (psd_layout_reach(layout, host, flow.to) != PSD_REACH_NEAR)
			passing.up += (double)flow.elements;
	}
	return passing;
}

static struct passing passing_by_peers(const struct psd_payload *payload, const struct psd_layout *layout,
				       unsigned host)
{
	const struct psd_traffic all = payload->collective->host_elements(payload, layout, host);
	const unsigned node = psd_layout_node(layout, host), first = node * layout->workers_per_node;
	const unsigned end = first + psd_layout_workers_on(layout, node);
	struct psd_traffic beyond = all; /* its switch */

	for (unsigned peer = first; peer < end; peer++) {
		if (peer == host || psd_layout_reach(layout, host, peer) != PSD_REACH_NEAR)
			continue;
		beyond.sent_bytes -= payload->collective->range(payload, layout, host, peer).elements;
		beyond.received_bytes -= payload->collective->range(payload, layout, peer, host).elements;
	}
	return (struct passing){(double)all.sent_bytes, (double)all.received_bytes, (double)beyond.sent_bytes,
				(double)beyond.received_bytes};
}

/* All at once nodes are alike but for the first, the last and a root's. */
static bool may_be_busiest(const struct psd_payload *payload, const struct psd_layout *layout, unsigned node)
{
	return !payload->collective->range || node < 2 || node + 1 == layout->nodes ||
	       (payload->collective->has_root && node == psd_layout_node(layout, payload->root));
}

static void add_node(struct psd_inside *inside, const struct psd_payload *payload, const struct psd_layout *layout,
		     unsigned node)
{
	const unsigned first = node * layout->workers_per_node, end = first + psd_layout_workers_on(layout, node);
	double up = 0.0, down = 0.0;

	for (unsigned host = first; host < end; host++) {
		struct passing passing = {0.0, 0.0, 0.0, 0.0};

		if (payload->collective->range)
			passing = passing_by_peers(payload, layout, host);
		else if (psd_payload_has_member(payload, layout, host))
			passing = passing_by_flows(payload, layout, host);
		const bool is_first = (host - first) % layout->workers_per_switch == 0;
		up = passing.up + (is_first ? 0.0 : up);
		down = passing.down + (is_first ? 0.0 : down);
		inside->worker_elements = fmax(inside->worker_elements, fmax(passing.out, passing.in));
		inside->switch_elements = fmax(inside->switch_elements, fmax(up, down));
	}
}

struct psd_inside psd_payload_inside(const struct psd_payload *payload, const struct psd_layout *layout)
{
	struct psd_inside inside = {0.0, 0.0};

	for (unsigned node = 0; node < layout->nodes; node++)
		if (may_be_busiest(payload, layout, node))
			add_node(&inside, payload, layout, node);
	return inside;
}

unsigned psd_payload_senders(const struct psd_payload *payload, const struct psd_layout *layout, unsigned to)
{
	return payload->elements == 0 ? 0 : payload->collective->senders(payload, layout, to);
}

unsigned psd_payload_receivers(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from)
{
	unsigned n_receivers = 0;

	if (payload->collective->has_root && from != payload->root)
		return psd_payload_bytes_between(payload, layout, from, payload->root) > 0;
	for (unsigned to = 0; to < psd_layout_hosts(layout); to++)
		n_receivers += to != from && psd_payload_bytes_between(payload, layout, from, to) > 0;
	return n_receivers;
}

/* Workers of a host's node that it sends to, or that send to it. */
static unsigned count_near(const struct psd_payload *payload, const struct psd_layout *layout, unsigned host,
			   bool is_sender)
{
	const unsigned node = psd_layout_node(layout, host), first = node * layout->workers_per_node;
	unsigned n_near = 0;

	for (unsigned i = 0; node < layout->nodes && i < psd_layout_workers_on(layout, node); i++) {
		const unsigned peer = first + i, from = is_sender ? host : peer, to = is_sender ? peer : host;

		n_near += peer != host && psd_payload_bytes_between(payload, layout, from, to) > 0;
	}
	return n_near;
}

unsigned psd_payload_senders_beside(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from,
				    unsigned to)
{
	const unsigned n_near = count_near(payload, layout, to, false);
	const bool is_near = psd_layout_node(layout, from) == psd_layout_node(layout, to);

	return is_near ? n_near : psd_payload_senders(payload, layout, to) - n_near;
}

unsigned psd_payload_receivers_beside(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from,
				      unsigned to)
{
	const unsigned n_near = count_near(payload, layout, from, true);
	const bool is_near = psd_layout_node(layout, from) == psd_layout_node(layout, to);

	return is_near ? n_near : psd_payload_receivers(payload, layout, from) - n_near;
}

/* Nodes whose members send to this one's in some step, but no more than it has workers. */
static unsigned nodes_into(const struct psd_payload *payload, const struct psd_layout *layout, unsigned node)
{
	const unsigned first = node * layout->workers_per_node, n_here = psd_layout_workers_on(layout, node);
	const unsigned most = n_here < MOST_COUNTED_NODES ? n_here : MOST_COUNTED_NODES;
	const unsigned n_steps = psd_payload_steps(payload, layout);
	unsigned seen[MOST_COUNTED_NODES], n = 0;

	for (unsigned i = 0; i < n_here * n_steps && n < most; i++) {
		const unsigned host = first + i / n_steps;
		unsigned from = node, known = 0;

		if (psd_payload_has_member(payload, layout, host))
			from = psd_layout_node(layout, psd_payload_step(payload, layout, host, i % n_steps).from);
		while (known < n && seen[known] != from)
			known++;
		if (from != node && known == n)
			seen[n++] = from;
	}
	return n;
}

/* A member takes one step at a time, but those of a node need not be at the same one. */
unsigned psd_payload_fan_in(const struct psd_payload *payload, const struct psd_layout *layout)
{
	unsigned most = 0;

	if (payload->collective->fan_in)
		return payload->collective->fan_in(layout);
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
