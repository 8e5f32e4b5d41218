/* NCCL's all-reduces. On several nodes `nccl` takes double trees over nodes for small messages and otherwise one ring
 * over all members; a chain inside each node leads to the member with the tree. `nccl-two-level` takes chains inside
 * nodes and a ring between their leaders, one after another. Chains and trees pass chunks on as they come. Source:
 * NCCL 2's tuning (src/graph/tuning.cc): latency of hops plus bytes at a rate, trees at 92 % of a ring's. Legend: g
 * members on a full node, N nodes, P members, C chunks. */
#include "engine/collectives/nccl.h"

#include <math.h>

#include "engine/collectives/ring.h"

enum {
	SMALLEST_CHUNK = 32768, /* elements: NCCL's slices are 128 KiB to 512 KiB */
	MOST_CHUNKS = 64,
	TREE_ELEMENTS = 1 << 18, /* elements for each member, see psd_nccl_takes_trees() */
};

/* A ring has 2(P-1) hops, trees about 2(log2 N + g), of some 6 us on 100 Gbit/s; 8 % more seconds for the bytes are
 * less than those hops up to about 1 MiB for each member. On two nodes trees send each byte once, a ring 2(P-1)/P
 * times. */
bool psd_nccl_takes_trees(uint64_t elements, struct psd_members members)
{
	const unsigned n_nodes = psd_members_nodes(members);

	if (n_nodes < 2 || members.n < 4)
		return false;
	return n_nodes == 2 || elements <= (uint64_t)TREE_ELEMENTS * members.n;
}

static unsigned n_chunks(uint64_t elements)
{
	const uint64_t chunks = elements / SMALLEST_CHUNK;

	return chunks < 1 ? 1 : chunks < MOST_CHUNKS ? (unsigned)chunks : MOST_CHUNKS;
}

/* ---- chains inside nodes around a collective of leaders ---- */

/* Number of steps from the end of a chain to its leader: chunk c leaves the last member in step c. */
static unsigned chain_steps(uint64_t elements, struct psd_members members)
{
	const unsigned g = psd_members_on_node(members);

	return g > 1 ? n_chunks(elements) + g - 2 : 0;
}

/* The chunk that the hop between positions p - 1 and p of a node carries in a step; false: none. */
static bool carries(uint64_t elements, struct psd_members members, unsigned position, unsigned number, bool is_up,
		    struct psd_range *chunk)
{
	const unsigned before = is_up ? psd_members_on_node(members) - 1 - position : position - 1;
	const unsigned C = n_chunks(elements);

	if (number < before || number - before >= C)
		return false;
	*chunk = psd_range_part(elements, C, number - before);
	return true;
}

static struct psd_step along_chain(uint64_t elements, struct psd_members members, unsigned rank, unsigned number,
				   bool is_up)
{
	const unsigned position = psd_members_position(members, rank);
	const bool has_next = position + 1 < psd_members_on(members, psd_members_node(members, rank));
	struct psd_step step = {.to = rank, .from = rank, .adds = is_up};
	struct psd_range before = {0, 0}, behind = {0, 0};
	const bool has_before = position > 0 && carries(elements, members, position, number, is_up, &before);
	const bool has_behind = has_next && carries(elements, members, position + 1, number, is_up, &behind);

	if (has_before)
		*(is_up ? &step.to : &step.from) = rank - 1;
	if (has_behind)
		*(is_up ? &step.from : &step.to) = rank + 1;
	if (is_up ? has_before : has_behind)
		step.sent = is_up ? before : behind;
	return step;
}

static unsigned chained_steps(uint64_t elements, struct psd_members members, const struct psd_collective *between)
{
	return 2 * chain_steps(elements, members) + between->steps(elements, psd_members_leaders(members));
}

static struct psd_step chained_step(uint64_t elements, struct psd_members members, unsigned rank, unsigned number,
				    const struct psd_collective *between)
{
	const unsigned n_inside = chain_steps(elements, members);
	const unsigned n_between = between->steps(elements, psd_members_leaders(members));

	if (number < n_inside)
		return along_chain(elements, members, rank, number, true);
	if (number >= n_inside + n_between)
		return along_chain(elements, members, rank, number - n_inside - n_between, false);
	if (psd_members_position(members, rank) != 0)
		return (struct psd_step){.to = rank, .from = rank};
	struct psd_step step = between->step(elements, psd_members_leaders(members), psd_members_node(members, rank),
					     number - n_inside);
	step.to = psd_members_first(members, step.to);
	step.from = psd_members_first(members, step.from);
	return step;
}

/* Flows 0 and 1 are of the chain, the others of the leaders. */
static bool chained_flow(uint64_t elements, struct psd_members members, unsigned rank, unsigned i,
			 struct psd_flow *flow, const struct psd_collective *between)
{
	const unsigned node = psd_members_node(members, rank), position = psd_members_position(members, rank);
	const bool has_peer = i == 0 ? position > 0 : position + 1 < psd_members_on(members, node);
	const unsigned peer = !has_peer ? rank : i == 0 ? rank - 1 : rank + 1;
	const uint64_t sent = has_peer ? elements : 0;

	*flow = (struct psd_flow){peer, sent, n_chunks(elements), peer, sent};
	if (i < 2)
		return true;
	if (position > 0 || !psd_payload_rank_flow(&(struct psd_payload){.collective = between, .elements = elements},
						   psd_members_leaders(members), node, i - 2, flow))
		return false;
	flow->to = psd_members_first(members, flow->to);
	flow->from = psd_members_first(members, flow->from);
	return true;
}

/* Seconds until the first chunk has passed a chain; *last_sec: seconds of one chunk on its slowest hop. */
static double chain_sec(const struct psd_payload *payload, struct psd_members members, const struct psd_links *links,
			double *last_sec)
{
	const double chunk_bits = 8.0 * (double)payload->elements * payload->value_bytes / n_chunks(payload->elements);
	double sec = 0.0;

	*last_sec = 0.0;
	for (unsigned p = 1; p < psd_members_on_node(members); p++) {
		const enum psd_reach reach = psd_members_reach_inside(links, p - 1, p);
		const double busy_sec = psd_links_busy_sec(links, reach, chunk_bits);

		sec += busy_sec + psd_links_latency_sec(links, reach);
		*last_sec = fmax(*last_sec, busy_sec);
	}
	return sec;
}

/* ---- nccl ---- */

static unsigned steps(uint64_t elements, struct psd_members members)
{
	return psd_nccl_takes_trees(elements, members) ? chained_steps(elements, members, &psd_double_tree)
						       : psd_ring.steps(elements, members);
}

static struct psd_step step_of(uint64_t elements, struct psd_members members, unsigned rank, unsigned number)
{
	return psd_nccl_takes_trees(elements, members) ? chained_step(elements, members, rank, number, &psd_double_tree)
						       : psd_ring.step(elements, members, rank, number);
}

static bool flow_of(uint64_t elements, struct psd_members members, unsigned rank, unsigned i, struct psd_flow *flow)
{
	return psd_nccl_takes_trees(elements, members)
		       ? chained_flow(elements, members, rank, i, flow, &psd_double_tree)
		       : psd_ring.flow(elements, members, rank, i, flow);
}

static unsigned hops(uint64_t elements, struct psd_members members)
{
	return psd_nccl_takes_trees(elements, members)
		       ? 2 * (psd_tree_levels(psd_members_nodes(members)) + psd_members_on_node(members) - 1)
		       : psd_ring.steps(elements, members);
}

/* All links of the trees work at the same time, each on another chunk. */
static double alone_sec(const struct psd_payload *payload, struct psd_members members, double transfer_sec,
			const struct psd_links *links)
{
	if (!psd_nccl_takes_trees(payload->elements, members))
		return psd_ring_alone_sec(payload, members, transfer_sec, links);
	const double chunk_bits = 8.0 * (double)payload->elements * payload->value_bytes / n_chunks(payload->elements);
	const enum psd_reach reach = links->per_rack > 0 ? PSD_REACH_BEYOND : PSD_REACH_FAR;
	const double far_sec =
		psd_links_busy_sec(links, reach, chunk_bits) + psd_members_most_latency_sec(members, links);
	double last_sec;
	const double inside_sec = chain_sec(payload, members, links, &last_sec);

	return transfer_sec + 2.0 * (inside_sec + psd_tree_levels(psd_members_nodes(members)) * far_sec);
}

const struct psd_collective psd_nccl = {
	.name = "nccl",
	.assumed = "ring",
	.predicted = "a ring's, or those of double trees over nodes where these are quicker",
	.steps = steps,
	.step = step_of,
	.flow = flow_of,
	.hops = hops,
	.alone_sec = alone_sec,
	.is_uneven = true,
	.overlaps = true,
};

/* ---- nccl-two-level: NCCL sums inside nodes; the leaders' ring is this program's own ---- */

static unsigned two_level_steps(uint64_t elements, struct psd_members members)
{
	return chained_steps(elements, members, &psd_ring);
}

static struct psd_step two_level_step(uint64_t elements, struct psd_members members, unsigned rank, unsigned number)
{
	return chained_step(elements, members, rank, number, &psd_ring);
}

static bool two_level_flow(uint64_t elements, struct psd_members members, unsigned rank, unsigned i,
			   struct psd_flow *flow)
{
	return chained_flow(elements, members, rank, i, flow, &psd_ring);
}

static unsigned two_level_hops(uint64_t elements, struct psd_members members)
{
	return 2 * (psd_members_on_node(members) - 1) + psd_ring.steps(elements, psd_members_leaders(members));
}

static double two_level_alone_sec(const struct psd_payload *payload, struct psd_members members, double transfer_sec,
				  const struct psd_links *links)
{
	const double payload_bits = 8.0 * (double)payload->elements * payload->value_bytes;
	const struct psd_members leaders = psd_members_leaders(members);
	const double ring_transfer_sec =
		psd_links_busy_sec(links, PSD_REACH_FAR, 2.0 * (leaders.n - 1.0) / leaders.n * payload_bits);
	struct psd_links between = *links;
	double last_sec;

	between.per_rack = links->per_rack / members.per_node;
	const double ring_sec =
		leaders.n == 1 ? 0.0 : psd_ring_alone_sec(payload, leaders, ring_transfer_sec, &between);
	const double first_sec = chain_sec(payload, members, links, &last_sec);
	const double inside_sec = first_sec + (n_chunks(payload->elements) - 1) * last_sec;

	return fmax(transfer_sec, 2.0 * inside_sec + ring_sec);
}

const struct psd_collective psd_nccl_two_level = {
	.name = "nccl-two-level",
	.assumed = "two-level",
	.predicted = "those of chains inside nodes and a ring between them",
	.steps = two_level_steps,
	.step = two_level_step,
	.flow = two_level_flow,
	.hops = two_level_hops,
	.alone_sec = two_level_alone_sec,
	.period = psd_ring_period,
};
