/* 2-D torus: a ring's reduce-scatter in each row, a ring of each column over the chunk that its members then have, and
 * the row's all-gather. Rows are the nodes where they are all full; else the grid is as near to a square as the number
 * of workers has divisors. A prime number of workers has one column, which is a ring. Source: Mikami et al. 2018 (arXiv
 * 1811.05233). Legend: X places in a row, Y rows. */
#include <math.h>

#include "engine/schedules/ring.h"
#include "engine/schedules/walk.h"

static unsigned row_length(struct psd_members members)
{
	unsigned length = 1;

	if (members.per_node > 1 && members.per_node < members.n && members.n % members.per_node == 0)
		return members.per_node;
	for (unsigned d = 2; d <= members.n / d; d++)
		length = members.n % d == 0 ? d : length;
	return length;
}

static unsigned ring_steps(unsigned n)
{
	return 2 * (n - 1);
}

static unsigned steps(uint64_t elements, struct psd_members members)
{
	const unsigned X = row_length(members);

	(void)elements;
	return ring_steps(X) + ring_steps(members.n / X);
}

static struct psd_step along_row(uint64_t elements, unsigned X, unsigned rank, unsigned number)
{
	const unsigned first = rank - rank % X;
	struct psd_step step = psd_ring.step(elements, (struct psd_members){X, 1}, rank % X, number);

	step.to += first;
	step.from += first;
	return step;
}

/* The chunk that the row's reduce-scatter leaves with a rank, which is the first that its all-gather sends. */
static struct psd_range own_chunk(uint64_t elements, unsigned X, unsigned rank)
{
	return psd_range_part(elements, X, (rank % X + 1) % X);
}

static struct psd_step along_column(uint64_t elements, unsigned X, unsigned Y, unsigned rank, unsigned number)
{
	const struct psd_range own = own_chunk(elements, X, rank);
	struct psd_step step = psd_ring.step(own.elements, (struct psd_members){Y, 1}, rank / X, number);

	step.to = step.to * X + rank % X;
	step.from = step.from * X + rank % X;
	step.sent.first += own.first;
	return step;
}

static struct psd_step step_of(uint64_t elements, struct psd_members members, unsigned rank, unsigned number)
{
	const unsigned X = row_length(members), Y = members.n / X;

	if (number < X - 1)
		return along_row(elements, X, rank, number);
	if (number < X - 1 + ring_steps(Y))
		return along_column(elements, X, Y, rank, number - (X - 1));
	return along_row(elements, X, rank, number - ring_steps(Y));
}

/* ---- what the steps add up to ---- */

/* A member's two neighbours behind it, or before it: all its messages go to them. */
struct way {
	unsigned peer; /* own rank: nobody */
	uint64_t elements;
};

static struct way row_to(uint64_t elements, unsigned X, unsigned rank)
{
	const unsigned x = rank % X;

	return (struct way){rank - x + (x + 1) % X, psd_ring_sent_elements(elements, X, x)};
}

static struct way column_to(uint64_t elements, unsigned X, unsigned Y, unsigned rank)
{
	return (struct way){(rank + X) % (X * Y),
			    psd_ring_sent_elements(own_chunk(elements, X, rank).elements, Y, rank / X)};
}

static struct way row_from(uint64_t elements, unsigned X, unsigned rank)
{
	const unsigned before = rank - rank % X + (rank % X + X - 1) % X;

	return (struct way){before, row_to(elements, X, before).elements};
}

static struct way column_from(uint64_t elements, unsigned X, unsigned Y, unsigned rank)
{
	const unsigned before = (rank + X * Y - X) % (X * Y);

	return (struct way){before, column_to(elements, X, Y, before).elements};
}

static bool flow_of(uint64_t elements, struct psd_members members, unsigned rank, unsigned i, struct psd_flow *flow)
{
	const unsigned X = row_length(members), Y = members.n / X;
	const struct way way = i == 0 ? row_to(elements, X, rank) : column_to(elements, X, Y, rank);

	*flow = (struct psd_flow){way.peer, way.elements, ring_steps(i == 0 ? X : Y)};
	return i < 2;
}

static uint64_t if_far(struct way way, const struct psd_layout *layout, unsigned node)
{
	return psd_layout_node(layout, way.peer) == node ? 0 : way.elements;
}

static uint64_t if_near(struct way way, const struct psd_layout *layout, unsigned node)
{
	return way.elements - if_far(way, layout, node);
}

static struct psd_traffic node_elements(const struct psd_payload *payload, const struct psd_layout *layout,
					unsigned node)
{
	const unsigned X = row_length(psd_payload_members(payload, layout)), Y = layout->workers / X;
	const unsigned first = node * layout->workers_per_node, end = first + psd_layout_workers_on(layout, node);
	struct psd_traffic sum = {0, 0};

	for (unsigned rank = first; rank < end; rank++) {
		sum.sent_bytes += if_far(row_to(payload->elements, X, rank), layout, node) +
				  if_far(column_to(payload->elements, X, Y, rank), layout, node);
		sum.received_bytes += if_far(row_from(payload->elements, X, rank), layout, node) +
				      if_far(column_from(payload->elements, X, Y, rank), layout, node);
	}
	return sum;
}

static double local_elements(const struct psd_payload *payload, const struct psd_layout *layout)
{
	const unsigned X = row_length(psd_payload_members(payload, layout)), Y = layout->workers / X;
	double most = 0.0;

	for (unsigned rank = 0; rank < layout->workers; rank++) {
		const unsigned node = psd_layout_node(layout, rank);
		const uint64_t sent = if_near(row_to(payload->elements, X, rank), layout, node) +
				      if_near(column_to(payload->elements, X, Y, rank), layout, node);
		const uint64_t received = if_near(row_from(payload->elements, X, rank), layout, node) +
					  if_near(column_from(payload->elements, X, Y, rank), layout, node);

		most = fmax(most, (double)(sent > received ? sent : received));
	}
	return most;
}

/* ---- seconds ---- */

/* The most members of one node whose neighbour at this distance, within rings of so many ranks that lie one after the
 * other, is on another node; has_near: some neighbour is not. */
static unsigned most_far_hops(struct psd_members members, unsigned distance, unsigned ring_ranks, bool *has_near)
{
	unsigned most = 0, on_node = 0;

	*has_near = false;
	for (unsigned rank = 0; rank < members.n && distance < ring_ranks; rank++) {
		const unsigned to = rank - rank % ring_ranks + (rank % ring_ranks + distance) % ring_ranks;
		const bool is_far = to / members.per_node != rank / members.per_node;

		on_node = (rank % members.per_node == 0 ? 0 : on_node) + is_far;
		most = on_node > most ? on_node : most;
		*has_near = *has_near || !is_far;
	}
	return most;
}

/* All ranks send alike, so that each step takes as long as that of the node with the most neighbours elsewhere. */
static double rings_sec(struct psd_members members, unsigned distance, unsigned ring_ranks, double chunk_bits,
			const struct psd_ways *ways)
{
	bool has_near;
	const unsigned n_far = most_far_hops(members, distance, ring_ranks, &has_near);
	const double near_sec = has_near ? chunk_bits / ways->near_bps : 0.0;
	const double far_sec = n_far > 0 ? n_far * chunk_bits / ways->far_bps + ways->latency_sec : 0.0;

	return ring_steps(ring_ranks / distance) * fmax(near_sec, far_sec);
}

/* Hops of a row differ, and the next ones overlap with the slowest. Where rows are nodes, all columns go from node to
 * node. */
static double walked_sec(const struct psd_payload *payload, struct psd_members members, const struct psd_ways *ways)
{
	const double element_bits = 8.0 * payload->value_bytes;

	if (row_length(members) == members.per_node)
		return psd_walk_node_sec(payload, members, element_bits, ways);
	return psd_walk_sec(payload, members, element_bits, ways);
}

static double alone_sec(const struct psd_payload *payload, struct psd_members members, double transfer_sec,
			const struct psd_ways *ways)
{
	const unsigned X = row_length(members), Y = members.n / X;
	const double row_bits = 8.0 * payload->value_bytes * ceil((double)payload->elements / X);
	const double column_bits = 8.0 * payload->value_bytes * ceil(ceil((double)payload->elements / X) / Y);

	if (!psd_ways_are_plain(ways)) {
		const double sec = walked_sec(payload, members, ways);

		return sec < transfer_sec ? transfer_sec : sec;
	}
	return fmax(transfer_sec,
		    rings_sec(members, 1, X, row_bits, ways) + rings_sec(members, X, X * Y, column_bits, ways));
}

const struct psd_pattern psd_torus = {
	.name = "torus",
	.steps = steps,
	.step = step_of,
	.flow = flow_of,
	.node_elements = node_elements,
	.is_uneven = true,
	.local_elements = local_elements,
	.alone_sec = alone_sec,
};
