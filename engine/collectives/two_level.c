/* Two-level all-reduce: each node's first worker, its leader, sums the node's values, a ring of the leaders sums those,
 * and leaders send the result to the others. Source: NCCL's hierarchical all-reduce as GradientFlow (arXiv 1902.06855)
 * describes it. Legend: g workers on a full node, N nodes. Steps: g-1 towards the leaders, 2(N-1) between them, g-1
 * back. */
#include <math.h>

#include "engine/collectives/ring.h"

static unsigned steps(uint64_t elements, struct psd_members members)
{
	return 2 * (psd_members_on_node(members) - 1) + psd_ring.steps(elements, psd_members_leaders(members));
}

/* Returns the step of a rank in which a leader and the worker `after` positions behind it on the node exchange. */
static struct psd_step inside(uint64_t elements, struct psd_members members, unsigned rank, unsigned after,
			      bool is_towards_leader)
{
	const unsigned node = psd_members_node(members, rank);
	const unsigned leader = psd_members_first(members, node), other = leader + after;
	struct psd_step step = {.to = rank, .from = rank, .sent = {0, elements}, .adds = is_towards_leader};
	const unsigned sender = is_towards_leader ? other : leader, receiver = is_towards_leader ? leader : other;

	if (after >= psd_members_on(members, node)) /* other nodes may have more workers */
		return step;
	if (rank == sender)
		step.to = receiver;
	if (rank == receiver)
		step.from = sender;
	return step;
}

static struct psd_step between_leaders(uint64_t elements, struct psd_members members, unsigned rank, unsigned number)
{
	struct psd_step step = {.to = rank, .from = rank};

	if (psd_members_position(members, rank) != 0)
		return step;
	step = psd_ring.step(elements, psd_members_leaders(members), psd_members_node(members, rank), number);
	step.to = psd_members_first(members, step.to);
	step.from = psd_members_first(members, step.from);
	return step;
}

static struct psd_step step_of(uint64_t elements, struct psd_members members, unsigned rank, unsigned number)
{
	const unsigned n_inside = psd_members_on_node(members) - 1;
	const unsigned n_between = psd_ring.steps(elements, psd_members_leaders(members));

	if (number < n_inside)
		return inside(elements, members, rank, number + 1, true);
	if (number < n_inside + n_between)
		return between_leaders(elements, members, rank, number - n_inside);
	return inside(elements, members, rank, number - n_inside - n_between + 1, false);
}

/* A leader's flows are the one to the next leader, then one to each worker of its node. */
static bool flow_of(uint64_t elements, struct psd_members members, unsigned rank, unsigned i, struct psd_flow *flow)
{
	const unsigned node = psd_members_node(members, rank), leader = psd_members_first(members, node);
	const unsigned peer = rank == leader ? leader + i : leader;

	*flow = (struct psd_flow){peer, elements, 1, peer, elements};
	if (rank != leader)
		return i == 0;
	if (i > 0)
		return i < psd_members_on(members, node);
	psd_ring.flow(elements, psd_members_leaders(members), node, 0, flow);
	flow->to = psd_members_first(members, flow->to);
	flow->from = psd_members_first(members, flow->from);
	return true;
}

/* No transfer inside a node overlaps with the ring: a leader begins it with its node's sum. A message to the leader
 * waits until the one before has arrived, one from the leader until it has left. */
static double alone_sec(const struct psd_payload *payload, struct psd_members members, double transfer_sec,
			const struct psd_links *links)
{
	const double payload_bits = 8.0 * (double)payload->elements * payload->value_bytes;
	const struct psd_members leaders = psd_members_leaders(members);
	const unsigned n_inside = psd_members_on_node(members) - 1;
	const double ring_bits = 2.0 * (leaders.n - 1.0) / leaders.n * payload_bits;
	const double ring_transfer_sec = psd_links_busy_sec(links, PSD_REACH_FAR, ring_bits);
	struct psd_links between = *links;
	double inside_sec = 0.0;

	between.per_rack = links->per_rack / members.per_node;
	const double ring_sec =
		leaders.n == 1 ? 0.0 : psd_ring_alone_sec(payload, leaders, ring_transfer_sec, &between);

	for (unsigned w = 1; w <= n_inside; w++)
		inside_sec += psd_links_busy_sec(links, psd_members_reach_inside(links, 0, w), payload_bits);
	return fmax(transfer_sec, 2.0 * inside_sec + (n_inside + (n_inside > 0)) * links->near_latency_sec + ring_sec);
}

const struct psd_collective psd_two_level = {
	.name = "two-level",
	.steps = steps,
	.step = step_of,
	.flow = flow_of,
	.alone_sec = alone_sec,
	.period = psd_ring_period,
};
