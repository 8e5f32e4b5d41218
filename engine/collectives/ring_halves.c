/* The two halves of a ring all-reduce, over all workers or inside each node. After a reduce-scatter of n members,
 * member m has the sum of part m, as psd_layout_owned() divides elements; an all-gather begins with part m at member
 * m. Between them an all-reduce across nodes sums each part over the workers of all nodes that have it; nodes must
 * then have equal numbers of workers. Sources: Rajbhandari et al. 2020, ZeRO (arXiv 1910.02054), section 5; Zhao et
 * al. 2023, PyTorch FSDP (arXiv 2304.11277), section 3.2.2, hybrid sharding. */
#include "engine/collectives/ring.h"

/* Two members of a ring of ranks first to first + n - 1, in the order of its messages: upwards, or downwards. Sums go
 * downwards and parts upwards, so that a node which sends most, or receives most, is the first or the last. */
static unsigned beside(unsigned n, unsigned rank, unsigned distance)
{
	return rank - rank % n + (rank % n + distance) % n;
}

/* Each part moves on to the rank below, from the one below its owner, to its owner. */
static struct psd_step scatter(uint64_t elements, unsigned n, unsigned rank, unsigned step)
{
	return (struct psd_step){
		.to = beside(n, rank, n - 1),
		.from = beside(n, rank, 1),
		.sent = psd_range_part(elements, n, (rank % n + 1 + step) % n),
		.adds = true,
	};
}

/* Each part moves on to the rank above, from its owner on. */
static struct psd_step gather(uint64_t elements, unsigned n, unsigned rank, unsigned step)
{
	return (struct psd_step){
		.to = beside(n, rank, 1),
		.from = beside(n, rank, n - 1),
		.sent = psd_range_part(elements, n, (rank % n + n - step) % n),
	};
}

/* A rank sends all parts but its own in a reduce-scatter, and all but that of the rank above in an all-gather. */
static bool scatter_flow_of(uint64_t elements, unsigned n, unsigned rank, struct psd_flow *flow)
{
	*flow = (struct psd_flow){
		.to = beside(n, rank, n - 1),
		.elements = elements - psd_range_part(elements, n, rank % n).elements,
		.n_messages = n - 1,
		.from = beside(n, rank, 1),
		.received_elements = elements - psd_range_part(elements, n, (rank % n + 1) % n).elements,
	};
	return n > 1;
}

static bool gather_flow_of(uint64_t elements, unsigned n, unsigned rank, struct psd_flow *flow)
{
	*flow = (struct psd_flow){
		.to = beside(n, rank, 1),
		.elements = elements - psd_range_part(elements, n, (rank % n + 1) % n).elements,
		.n_messages = n - 1,
		.from = beside(n, rank, n - 1),
		.received_elements = elements - psd_range_part(elements, n, rank % n).elements,
	};
	return n > 1;
}

/* ---- over all workers, and inside nodes ---- */

/* Defines both halves for rings of `size` members. */
#define HALVES(scatter_half, gather_half, size)                                                                        \
	static unsigned scatter_half##_steps(uint64_t elements, struct psd_members members)                            \
	{                                                                                                              \
		(void)elements;                                                                                        \
		return members.size - 1;                                                                               \
	}                                                                                                              \
	static double scatter_half##_alone_sec(const struct psd_payload *payload, struct psd_members members,          \
					       double transfer_sec, const struct psd_links *links)                     \
	{                                                                                                              \
		const struct psd_members ring = {members.size, members.per_node, members.layout, members.are_leaders}; \
                                                                                                                       \
		return psd_ring_steps_sec(payload, ring, ring.n - 1, transfer_sec, links);                             \
	}                                                                                                              \
	HALF(scatter_half, size, scatter)                                                                              \
	HALF(gather_half, size, gather)
#define HALF(half, size, kind)                                                                                         \
	static struct psd_step half##_step(uint64_t elements, struct psd_members members, unsigned rank,               \
					   unsigned step)                                                              \
	{                                                                                                              \
		return kind(elements, members.size, rank, step);                                                       \
	}                                                                                                              \
	static bool half##_flow(uint64_t elements, struct psd_members members, unsigned rank, unsigned i,              \
				struct psd_flow *flow)                                                                 \
	{                                                                                                              \
		return i == 0 && kind##_flow_of(elements, members.size, rank, flow);                                   \
	}
HALVES(reduce_scatter, all_gather, n)
HALVES(node_reduce_scatter, node_all_gather, per_node)

#define ROW(half, of)                                                                                                  \
	.steps = of##_steps, .step = half##_step, .flow = half##_flow, .alone_sec = of##_alone_sec,                    \
	.period = psd_ring_period

const struct psd_collective psd_reduce_scatter = {
	.name = "reduce-scatter", ROW(reduce_scatter, reduce_scatter), .largest = psd_ring_largest};
const struct psd_collective psd_all_gather = {
	.name = "all-gather", ROW(all_gather, reduce_scatter), .largest = psd_ring_largest};
const struct psd_collective psd_node_reduce_scatter = {.name = "reduce-scatter in nodes",
						       ROW(node_reduce_scatter, node_reduce_scatter)};
const struct psd_collective psd_node_all_gather = {.name = "all-gather in nodes",
						   ROW(node_all_gather, node_reduce_scatter)};

/* ---- between nodes ---- */

static unsigned across_steps(uint64_t elements, struct psd_members members)
{
	(void)elements;
	return 2 * (psd_members_nodes(members) - 1);
}

/* A ring of the workers that have this part, one in each node, as psd_ring. */
static struct psd_step across_step(uint64_t elements, struct psd_members members, unsigned rank, unsigned step)
{
	const unsigned g = members.per_node, n = psd_members_nodes(members), node = rank / g;
	const struct psd_range part = psd_range_part(elements, g, rank % g);
	const bool adds = step < n - 1;
	const unsigned start = adds ? node : node + 1, back = adds ? step : step - (n - 1);
	const struct psd_range chunk = psd_range_part(part.elements, n, (start + n - back) % n);

	return (struct psd_step){
		.to = (node + 1) % n * g + rank % g,
		.from = (node + n - 1) % n * g + rank % g,
		.sent = {part.first + chunk.first, chunk.elements},
		.adds = adds,
	};
}

/* Elements that a worker of this node sends: each chunk twice, but those of the two following nodes once. */
static uint64_t sent_across(uint64_t part_elements, unsigned n, unsigned node)
{
	return 2 * part_elements - psd_range_part(part_elements, n, (node + 1) % n).elements -
	       psd_range_part(part_elements, n, (node + 2) % n).elements;
}

static bool across_flow(uint64_t elements, struct psd_members members, unsigned rank, unsigned i, struct psd_flow *flow)
{
	const unsigned g = members.per_node, n = psd_members_nodes(members), node = rank / g;
	const uint64_t part_elements = psd_range_part(elements, g, rank % g).elements;

	*flow = (struct psd_flow){
		.to = (node + 1) % n * g + rank % g,
		.elements = sent_across(part_elements, n, node),
		.n_messages = across_steps(elements, members),
		.from = (node + n - 1) % n * g + rank % g,
		.received_elements = sent_across(part_elements, n, (node + n - 1) % n),
	};
	return i == 0 && n > 1;
}

/* The rings of a node's workers share its link: all chunks of a step together take as long as one chunk of a ring of
 * whole payloads. */
static double across_alone_sec(const struct psd_payload *payload, struct psd_members members, double transfer_sec,
			       const struct psd_links *links)
{
	struct psd_links between = *links;

	between.per_rack = links->per_rack / members.per_node;
	return psd_ring_steps_sec(payload, psd_members_leaders(members), across_steps(payload->elements, members),
				  transfer_sec, &between);
}

const struct psd_collective psd_across_nodes = {
	.name = "all-reduce across nodes",
	.steps = across_steps,
	.step = across_step,
	.flow = across_flow,
	.alone_sec = across_alone_sec,
	.period = psd_ring_period,
};
