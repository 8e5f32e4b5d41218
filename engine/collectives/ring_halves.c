/* The two halves of a ring all-reduce, over all workers or inside each node. After a reduce-scatter of n members,
 * member m has the sum of part m, as psd_layout_owned() divides elements; an all-gather begins with part m at member
 * m. Between them an all-reduce across nodes sums each part over the workers of all nodes that have it; nodes must
 * then have equal numbers of workers. Sources: Rajbhandari et al. 2020, ZeRO (arXiv 1910.02054), section 5; Zhao et
 * al. 2023, PyTorch FSDP (arXiv 2304.11277), section 3.2.2, hybrid sharding. */
#include "engine/collectives/ring.h"

/* Ranks first to first + n - 1 are a ring. In every step the part that was received in the step before moves on;
 * `begin` is the part that the ring's first member sends first. */
static struct psd_step step_of(uint64_t elements, unsigned n, unsigned rank, unsigned step, unsigned begin)
{
	const unsigned first = rank - rank % n, member = rank % n;

	return (struct psd_step){
		.to = first + (member + 1) % n,
		.from = first + (member + n - 1) % n,
		.sent = psd_range_part(elements, n, (begin + member + n - step) % n),
	};
}

static struct psd_step scatter(uint64_t elements, unsigned n, unsigned rank, unsigned step)
{
	struct psd_step made = step_of(elements, n, rank, step, n - 1);

	made.adds = true;
	return made;
}

/* ---- over all workers ---- */

static unsigned steps(uint64_t elements, struct psd_members members)
{
	(void)elements;
	return members.n - 1;
}

static struct psd_step scatter_step(uint64_t elements, struct psd_members members, unsigned rank, unsigned step)
{
	return scatter(elements, members.n, rank, step);
}

static struct psd_step gather_step(uint64_t elements, struct psd_members members, unsigned rank, unsigned step)
{
	return step_of(elements, members.n, rank, step, 0);
}

/* A rank sends all parts but one: `unsent` is the one that rank 0 does not send. */
static bool flow_of(uint64_t elements, struct psd_members members, unsigned rank, unsigned unsent,
		    struct psd_flow *flow)
{
	const unsigned n = members.n, before = (rank + n - 1) % n;

	*flow = (struct psd_flow){
		.to = (rank + 1) % n,
		.elements = elements - psd_range_part(elements, n, (rank + unsent) % n).elements,
		.n_messages = n - 1,
		.from = before,
		.received_elements = elements - psd_range_part(elements, n, (before + unsent) % n).elements,
	};
	return n > 1;
}

static bool scatter_flow(uint64_t elements, struct psd_members members, unsigned rank, unsigned i,
			 struct psd_flow *flow)
{
	return i == 0 && flow_of(elements, members, rank, 0, flow);
}

static bool gather_flow(uint64_t elements, struct psd_members members, unsigned rank, unsigned i, struct psd_flow *flow)
{
	return i == 0 && flow_of(elements, members, rank, 1, flow);
}

static double alone_sec(const struct psd_payload *payload, struct psd_members members, double transfer_sec,
			const struct psd_links *links)
{
	return psd_ring_steps_sec(payload, members, members.n - 1, transfer_sec, links);
}

#define HALF(half)                                                                                                     \
	.steps = steps, .step = half##_step, .flow = half##_flow, .alone_sec = alone_sec, .period = psd_ring_period,   \
	.largest = psd_ring_largest, .is_uneven = true

const struct psd_collective psd_reduce_scatter = {.name = "reduce-scatter", HALF(scatter)};
const struct psd_collective psd_all_gather = {.name = "all-gather", HALF(gather)};

/* ---- inside nodes ---- */

static unsigned node_steps(uint64_t elements, struct psd_members members)
{
	(void)elements;
	return members.per_node - 1;
}

static struct psd_step node_scatter_step(uint64_t elements, struct psd_members members, unsigned rank, unsigned step)
{
	return scatter(elements, members.per_node, rank, step);
}

static struct psd_step node_gather_step(uint64_t elements, struct psd_members members, unsigned rank, unsigned step)
{
	return step_of(elements, members.per_node, rank, step, 0);
}

static double node_alone_sec(const struct psd_payload *payload, struct psd_members members, double transfer_sec,
			     const struct psd_links *links)
{
	const struct psd_members node = {members.per_node, members.per_node};

	return psd_ring_steps_sec(payload, node, node.n - 1, transfer_sec, links);
}

#define HALF_IN_NODES(half)                                                                                            \
	.steps = node_steps, .step = node_##half##_step, .alone_sec = node_alone_sec, .period = psd_ring_period,       \
	.is_uneven = true

const struct psd_collective psd_node_reduce_scatter = {.name = "reduce-scatter in nodes", HALF_IN_NODES(scatter)};
const struct psd_collective psd_node_all_gather = {.name = "all-gather in nodes", HALF_IN_NODES(gather)};

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

/* The rings of a node's workers share its link: all chunks of a step together take as long as one chunk of a ring of
 * whole payloads. */
static double across_alone_sec(const struct psd_payload *payload, struct psd_members members, double transfer_sec,
			       const struct psd_links *links)
{
	const struct psd_members nodes = {psd_members_nodes(members), 1};

	return psd_ring_steps_sec(payload, nodes, across_steps(payload->elements, members), transfer_sec, links);
}

const struct psd_collective psd_across_nodes = {
	.name = "all-reduce across nodes",
	.steps = across_steps,
	.step = across_step,
	.alone_sec = across_alone_sec,
	.period = psd_ring_period,
	.is_uneven = true,
};
