/* 2-D torus: a ring's reduce-scatter in each row, a ring of each column over the chunk that its members then have, and
 * the row's all-gather. Rows are the nodes where they are all full; else the grid is as near to a square as the number
 * of workers has divisors. A prime number of workers has one column, which is a ring. Source: Mikami et al. 2018 (arXiv
 * 1811.05233). Legend: X places in a row, Y rows. */
#include <math.h>
#include <stdlib.h>

#include "engine/collectives/ring.h"
#include "engine/collectives/step_times.h"

enum { WALKED_MEMBERS = 256 }; /* where hops differ: 0.1 s at most, growing with more than their square */

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

/* ---- seconds where nodes are filled alike: all ranks send alike, and each step takes equally long ---- */

static bool are_nodes_alike(struct psd_members members)
{
	return members.n <= members.per_node || members.n % members.per_node == 0;
}

/* Of a node that sends so many messages at a time to others; 0: each goes to a member beside. */
static double step_sec(unsigned n_far, double chunk_bits, const struct psd_ways *ways)
{
	return n_far > 0 ? n_far * chunk_bits / ways->far_bps + ways->latency_sec : chunk_bits / ways->near_bps;
}

/* Rows are nodes, or nodes hold one member, or one holds all. */
static double alike_sec(const struct psd_payload *payload, struct psd_members members, const struct psd_ways *ways)
{
	const unsigned X = row_length(members), Y = members.n / X, g = members.per_node;
	const double row_bits = 8.0 * payload->value_bytes * ceil((double)payload->elements / X);
	const double column_bits = 8.0 * payload->value_bytes * ceil(ceil((double)payload->elements / X) / Y);

	return ring_steps(X) * step_sec(g == 1, row_bits, ways) +
	       ring_steps(Y) * step_sec(members.n <= g ? 0 : g, column_bits, ways);
}

/* ---- seconds where hops differ, and the next ones overlap with the slowest: the steps are carried out ---- */

/* A member in one phase, in all steps of which it sends equally much to the same one. */
struct place {
	unsigned to;
	double busy_sec, latency_sec;
	double sent_sec, has_sec; /* its last message has left; what it waits for is there */
	unsigned n_out, n_in;	  /* of the node of this number: messages at a time to others, and from others */
};

/* A receiver does not hear the phase's sender before all of the one before. Whoever sends from a node in a phase shares
 * its link with all others who do, though some may be done or wait: beside walks of 300 to 700 members within 2 % as a
 * rule, and 13 % too long at most. */
static void begin_phase(struct place places[], struct psd_members members, unsigned distance, unsigned ring_ranks,
			double chunk_bits, const struct psd_ways *ways)
{
	const unsigned g = members.per_node;

	for (unsigned rank = 0; rank < members.n; rank++)
		places[rank].n_out = places[rank].n_in = 0;
	for (unsigned rank = 0; rank < members.n; rank++) {
		const unsigned to = rank - rank % ring_ranks + (rank % ring_ranks + distance) % ring_ranks;

		places[rank].to = to;
		places[rank / g].n_out += to / g != rank / g;
		places[to / g].n_in += to / g != rank / g;
	}
	for (unsigned rank = 0; rank < members.n; rank++) {
		struct place *place = &places[rank];
		const enum psd_reach reach = psd_members_reach(members, ways, rank, place->to);
		const unsigned n_out = places[rank / g].n_out, n_in = places[place->to / g].n_in;
		const unsigned n_beside = reach != PSD_REACH_FAR ? 1 : n_out > n_in ? n_out : n_in;

		place->busy_sec = psd_ways_busy_sec(ways, reach, n_beside * chunk_bits);
		place->latency_sec = psd_ways_latency_sec(ways, reach);
		place->sent_sec = fmax(place->sent_sec, places[place->to].has_sec);
	}
}

static void carry_out(struct place places[], unsigned n, unsigned n_steps)
{
	for (unsigned s = 0; s < n_steps; s++) {
		for (unsigned rank = 0; rank < n; rank++)
			places[rank].sent_sec =
				fmax(places[rank].sent_sec, places[rank].has_sec) + places[rank].busy_sec;
		for (unsigned rank = 0; rank < n; rank++) {
			struct place *to = &places[places[rank].to];

			to->has_sec = fmax(to->has_sec, places[rank].sent_sec + places[rank].latency_sec);
		}
	}
}

static double carried_out_sec(const struct psd_payload *payload, struct psd_members members,
			      const struct psd_ways *ways)
{
	const unsigned X = row_length(members), n = members.n, Y = n / X;
	const double payload_bits = 8.0 * payload->value_bytes * (double)payload->elements;
	struct place *places = calloc(n, sizeof(*places));
	double sec = 0.0;

	if (!places)
		return NAN;
	begin_phase(places, members, 1, X, payload_bits / X, ways);
	carry_out(places, n, X - 1);
	begin_phase(places, members, X, n, payload_bits / n, ways);
	carry_out(places, n, ring_steps(Y));
	begin_phase(places, members, 1, X, payload_bits / X, ways);
	carry_out(places, n, X - 1);
	for (unsigned rank = 0; rank < n; rank++)
		sec = fmax(sec, places[rank].has_sec);
	free(places);
	return sec;
}

/* Where rows are nodes, all columns go from node to node. Of more members than is worth a walk, without its order of
 * messages; uplinks are left to walks. */
static double mixed_sec(const struct psd_payload *payload, struct psd_members members, const struct psd_ways *ways)
{
	const double element_bits = 8.0 * payload->value_bytes;

	if (row_length(members) == members.per_node)
		return psd_step_times_node_sec(payload, members, element_bits, ways);
	if (members.n > WALKED_MEMBERS && ways->per_switch == 0)
		return carried_out_sec(payload, members, ways);
	return psd_step_times_sec(payload, members, element_bits, ways);
}

static double alone_sec(const struct psd_payload *payload, struct psd_members members, double transfer_sec,
			const struct psd_ways *ways)
{
	if (row_length(members) == 1)
		return psd_ring.alone_sec(payload, members, transfer_sec, ways);
	const double sec = psd_ways_are_plain(ways) && are_nodes_alike(members) ? alike_sec(payload, members, ways)
										: mixed_sec(payload, members, ways);

	return sec < transfer_sec ? transfer_sec : sec;
}

const struct psd_collective psd_torus = {
	.name = "torus",
	.steps = steps,
	.step = step_of,
	.flow = flow_of,
	.node_elements = node_elements,
	.is_uneven = true,
	.local_elements = local_elements,
	.alone_sec = alone_sec,
};
