/* Two-level all-reduce: every node's workers add up on its first, its leader; a ring of the leaders; and from there
 * back to the others. Source: NCCL's hierarchical all-reduce as GradientFlow (arXiv 1902.06855) describes it. Legend: g
 * workers on a full node, N nodes. Steps: g-1 towards the leaders, 2(N-1) between them, g-1 back. */
#include <math.h>

#include "engine/collectives/collective.h"

/* The leaders' ring, one on each node. */
static struct psd_members leaders_of(struct psd_members members)
{
	return (struct psd_members){psd_members_nodes(members), 1};
}

static unsigned workers_on_full_node(struct psd_members members)
{
	return members.n < members.per_node ? members.n : members.per_node;
}

static unsigned steps(uint64_t elements, struct psd_members members)
{
	return 2 * (workers_on_full_node(members) - 1) + psd_ring.steps(elements, leaders_of(members));
}

/* Between a leader and the worker of its node that comes `after` so many places behind it. */
static struct psd_step inside(uint64_t elements, struct psd_members members, unsigned rank, unsigned after,
			      bool is_towards_leader)
{
	const unsigned leader = rank - rank % members.per_node, other = leader + after;
	struct psd_step step = {.to = rank, .from = rank, .sent = {0, elements}, .adds = is_towards_leader};
	const unsigned sender = is_towards_leader ? other : leader, receiver = is_towards_leader ? leader : other;

	if (other >= members.n) /* the last node has fewer */
		return step;
	if (rank == sender)
		step.to = receiver;
	if (rank == receiver)
		step.from = sender;
	return step;
}

static struct psd_step between_leaders(uint64_t elements, struct psd_members members, unsigned rank, unsigned number)
{
	const unsigned g = members.per_node;
	struct psd_step step = {.to = rank, .from = rank};

	if (rank % g != 0)
		return step;
	step = psd_ring.step(elements, leaders_of(members), rank / g, number);
	step.to *= g;
	step.from *= g;
	return step;
}

static struct psd_step step_of(uint64_t elements, struct psd_members members, unsigned rank, unsigned number)
{
	const unsigned n_inside = workers_on_full_node(members) - 1;
	const unsigned n_between = psd_ring.steps(elements, leaders_of(members));

	if (number < n_inside)
		return inside(elements, members, rank, number + 1, true);
	if (number < n_inside + n_between)
		return between_leaders(elements, members, rank, number - n_inside);
	return inside(elements, members, rank, number - n_inside - n_between + 1, false);
}

/* A leader's: its way around the ring, then one to each worker of its node. */
static bool flow_of(uint64_t elements, struct psd_members members, unsigned rank, unsigned i, struct psd_flow *flow)
{
	const unsigned g = members.per_node, leader = rank - rank % g;
	const unsigned left = members.n - leader, n_here = left < g ? left : g;

	*flow = (struct psd_flow){rank == leader ? leader + i : leader, elements, 1};
	if (rank != leader)
		return i == 0;
	if (i > 0)
		return i < n_here;
	if (!psd_ring.flow(elements, leaders_of(members), rank / g, 0, flow))
		*flow = (struct psd_flow){0, 0, 0};
	flow->to *= g;
	return true;
}

/* The leaders' links carry a ring of one worker a node. */
static struct psd_traffic node_elements(const struct psd_payload *payload, const struct psd_layout *layout,
					unsigned node)
{
	const struct psd_layout leaders = psd_layout_make(layout->nodes, 1, 0);

	return psd_ring.node_elements(payload, &leaders, node);
}

static double local_elements(const struct psd_payload *payload, const struct psd_layout *layout)
{
	return (psd_layout_workers_on(layout, 0) - 1.0) * (double)payload->elements;
}

/* Nothing inside overlaps the ring: a leader begins it with its node's sum. Towards the leader each message waits until
 * the one before is there, on the way back until it has left. */
static double alone_sec(const struct psd_payload *payload, struct psd_members members, double transfer_sec,
			const struct psd_ways *ways)
{
	const double payload_bits = 8.0 * (double)payload->elements * payload->value_bytes;
	const struct psd_members leaders = leaders_of(members);
	const unsigned n_inside = workers_on_full_node(members) - 1;
	const double ring_bits = 2.0 * (leaders.n - 1.0) / leaders.n * payload_bits;
	const double ring_transfer_sec = psd_ways_busy_sec(ways, PSD_REACH_FAR, ring_bits);
	const double ring_sec = leaders.n == 1 ? 0.0 : psd_ring.alone_sec(payload, leaders, ring_transfer_sec, ways);
	double inside_sec = 0.0;

	for (unsigned w = 1; w <= n_inside; w++)
		inside_sec += psd_ways_busy_sec(ways, psd_members_reach(members, ways, 0, w), payload_bits);
	return fmax(transfer_sec, 2.0 * inside_sec + (n_inside + (n_inside > 0)) * ways->near_latency_sec + ring_sec);
}

#define AS_TWO_LEVEL                                                                                                   \
	.steps = steps, .step = step_of, .flow = flow_of, .node_elements = node_elements,                              \
	.local_elements = local_elements, .alone_sec = alone_sec

const struct psd_collective psd_two_level = {.name = "two-level", AS_TWO_LEVEL};

/* Inside nodes NCCL's, whatever its steps are there; the leaders' ring is this program's own. */
const struct psd_collective psd_nccl_two_level = {.name = "nccl-two-level", .assumed = "two-level", AS_TWO_LEVEL};
