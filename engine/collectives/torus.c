/* 2-D torus: a ring's reduce-scatter in each row, a ring's all-reduce of the resulting chunk in each column, a ring's
 * all-gather in each row. Rows are nodes if all of these are full; otherwise the grid is as near to a square as the
 * divisors of the number of workers allow. A prime number of workers has one column, which is a ring. Source: Mikami et
 * al. 2018 (arXiv 1811.05233). Legend: X members in a row, Y rows. */
#include <math.h>
#include <stdlib.h>

#include "engine/collectives/ring.h"
#include "engine/collectives/step_times.h"

enum {
	/* largest number of members whose steps are all timed: it takes at most 0.1 s, and the time grows faster than
	 * the square of their number */
	TIMED_MEMBERS = 256,
	MOST_TIMED = 1 << 12 /* on racks: largest number of messages of the members that represent all members */
};

static unsigned row_length(struct psd_members members)
{
	unsigned length = (unsigned)sqrt(members.n);

	if (psd_members_are_even(members) && members.per_node > 1 && members.per_node < members.n &&
	    members.n % members.per_node == 0)
		return members.per_node;
	while (members.n % length != 0)
		length--;
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
	struct psd_step step = psd_ring.step(elements, (struct psd_members){.n = X, .per_node = 1}, rank % X, number);

	step.to += first;
	step.from += first;
	return step;
}

/* Returns the chunk that a rank has after its row's reduce-scatter, and sends first in the row's all-gather. */
static struct psd_range own_chunk(uint64_t elements, unsigned X, unsigned rank)
{
	return psd_range_part(elements, X, (rank % X + 1) % X);
}

static struct psd_step along_column(uint64_t elements, unsigned X, unsigned Y, unsigned rank, unsigned number)
{
	const struct psd_range own = own_chunk(elements, X, rank);
	struct psd_step step =
		psd_ring.step(own.elements, (struct psd_members){.n = Y, .per_node = 1}, rank / X, number);

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

static bool flow_of(uint64_t elements, struct psd_members members, unsigned rank, unsigned i, struct psd_flow *flow)
{
	const unsigned X = row_length(members), Y = members.n / X, x = rank % X, first = rank - x;

	if (i >= 2)
		return false;
	if (i == 0) {
		psd_ring.flow(elements, (struct psd_members){.n = X, .per_node = 1}, x, 0, flow);
		flow->to += first;
		flow->from += first;
	} else {
		psd_ring.flow(own_chunk(elements, X, rank).elements, (struct psd_members){.n = Y, .per_node = 1},
			      rank / X, 0, flow);
		flow->to = flow->to * X + x;
		flow->from = flow->from * X + x;
	}
	return true;
}

/* ---- seconds where nodes are alike: all ranks send alike, and each step takes equally long ---- */

static bool are_nodes_alike(struct psd_members members)
{
	return members.n <= members.per_node || (!members.layout && members.n % members.per_node == 0);
}

/* Returns the seconds of a step in which a node sends n_far messages to other nodes; 0: all messages stay inside
 * nodes. */
static double step_sec(unsigned n_far, double chunk_bits, const struct psd_links *links)
{
	return n_far > 0 ? n_far * chunk_bits / links->far_bps + links->latency_sec : chunk_bits / links->near_bps;
}

/* Returns the seconds if all hops of a phase are equal: rows are nodes, or each node has one member, or one node has
 * all members. */
static double alike_sec(const struct psd_payload *payload, struct psd_members members, const struct psd_links *links)
{
	const unsigned X = row_length(members), Y = members.n / X, g = members.per_node;
	const double row_bits = 8.0 * payload->value_bytes * ceil((double)payload->elements / X);
	const double column_bits = 8.0 * payload->value_bytes * ceil(ceil((double)payload->elements / X) / Y);

	return ring_steps(X) * step_sec(g == 1, row_bits, links) +
	       ring_steps(Y) * step_sec(members.n <= g ? 0 : g, column_bits, links);
}

/* ---- seconds where hops differ, and the next ones overlap with the slowest ---- */

/* State of a member in one phase. In all steps of the phase it sends messages of one size to the same member. */
struct place {
	unsigned to;
	double busy_sec, latency_sec;
	/* times at which its last message has left, and at which the awaited message has arrived */
	double sent_sec, has_sec;
	/* entry i of the array: numbers of simultaneous messages that node i sends to other nodes and receives from
	 * them */
	unsigned n_out, n_in;
};

/* A receiver takes messages of a phase after all of the phase before. All senders of a node in a phase share its link,
 * though some may be done or wait: the result is within 2 % of exact timing as a rule, and 13 % too long at most, for
 * 300 to 700 members. */
static void begin_phase(struct place places[], struct psd_members members, unsigned distance, unsigned ring_ranks,
			double chunk_bits, const struct psd_links *links)
{
	for (unsigned rank = 0; rank < members.n; rank++)
		places[rank].n_out = places[rank].n_in = 0;
	for (unsigned rank = 0; rank < members.n; rank++) {
		const unsigned to = rank - rank % ring_ranks + (rank % ring_ranks + distance) % ring_ranks;

		const unsigned from_node = psd_members_node(members, rank), to_node = psd_members_node(members, to);

		places[rank].to = to;
		places[from_node].n_out += to_node != from_node;
		places[to_node].n_in += to_node != from_node;
	}
	for (unsigned rank = 0; rank < members.n; rank++) {
		struct place *place = &places[rank];
		const enum psd_reach reach = psd_members_reach(members, links, rank, place->to);
		const unsigned n_out = places[psd_members_node(members, rank)].n_out;
		const unsigned n_in = places[psd_members_node(members, place->to)].n_in;
		const unsigned n_beside = reach < PSD_REACH_FAR ? 1 : n_out > n_in ? n_out : n_in;

		place->busy_sec = psd_members_busy_sec(members, links, rank, place->to, n_beside * chunk_bits);
		place->latency_sec = psd_members_latency_sec(members, links, rank, place->to);
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
			      const struct psd_links *links)
{
	const unsigned X = row_length(members), n = members.n, Y = n / X;
	const double payload_bits = 8.0 * payload->value_bytes * (double)payload->elements;
	struct place *places = calloc(n, sizeof(*places));
	double sec = 0.0;

	if (!places)
		return NAN;
	begin_phase(places, members, 1, X, payload_bits / X, links);
	carry_out(places, n, X - 1);
	begin_phase(places, members, X, n, payload_bits / n, links);
	carry_out(places, n, ring_steps(Y));
	begin_phase(places, members, 1, X, payload_bits / X, links);
	carry_out(places, n, X - 1);
	for (unsigned rank = 0; rank < n; rank++)
		sec = fmax(sec, places[rank].has_sec);
	free(places);
	return sec;
}

/* Where rows are nodes, all columns go from node to node. For more members than TIMED_MEMBERS the order of messages is
 * neglected, unless there are uplinks. */
static double mixed_sec(const struct psd_payload *payload, struct psd_members members, const struct psd_links *links)
{
	const double element_bits = 8.0 * payload->value_bytes;

	if (!members.layout && row_length(members) == members.per_node)
		return psd_step_times_first_sec(payload, members, members.per_node, element_bits, links);
	if (members.n > TIMED_MEMBERS && links->per_switch == 0)
		return carried_out_sec(payload, members, links);
	return psd_step_times_sec(payload, members, element_bits, links);
}

/* ---- seconds where racks share uplinks ---- */

/* Number of members after which racks and rows begin together. */
static unsigned period_of(struct psd_members members, unsigned per_rack)
{
	unsigned period = per_rack;

	while (period % row_length(members) != 0)
		period += per_rack;
	return period;
}

static unsigned share_of(unsigned n, unsigned n_parts)
{
	return n > 1 ? (n - 1) / n_parts + 1 : 1;
}

/* Each ring as if it had the links alone, at the share of them that it has beside the equal rings. Rows inside racks
 * cross no uplink; a rack has the end of one row and the begin of another unless racks divide rows. A row's two halves
 * count as one ring, whose phases do not overlap with the columns'. */
static double rings_sec(const struct psd_payload *payload, struct psd_members members, const struct psd_links *links)
{
	const unsigned X = row_length(members), Y = members.n / X, g = members.per_node;
	const unsigned n_beside = X < links->per_rack ? X : links->per_rack; /* columns through the same uplinks */
	const unsigned n_through =
		share_of(n_beside, g) < links->spines ? g : g * share_of(n_beside / g, links->spines);
	struct psd_links row = *links, column = {.near_bps = INFINITY, .latency_sec = links->latency_sec};
	struct psd_payload chunk = *payload;

	if (links->per_rack % X == 0)
		row.per_rack = 0;
	else if (X % links->per_rack != 0)
		row.uplink_bps = links->uplink_bps / 2.0;
	chunk.elements = payload->elements / X;
	column.far_bps = links->far_bps / (g < X ? g : X);
	column.per_rack = X < links->per_rack ? links->per_rack / X : 1;
	column.spines = 1;
	column.uplink_bps = links->uplink_bps / (n_through < n_beside ? n_through : n_beside);
	return psd_ring_alone_sec(payload, (struct psd_members){.n = X, .per_node = g}, 0.0, &row) +
	       psd_ring_alone_sec(&chunk, (struct psd_members){.n = Y, .per_node = 1}, 0.0, &column);
}

static double racks_sec(const struct psd_payload *payload, struct psd_members members, const struct psd_links *links)
{
	const unsigned n_steps = steps(payload->elements, members);
	const unsigned period = period_of(members, links->per_rack);
	const double element_bits = 8.0 * payload->value_bytes;

	if (!members.layout && members.n % period == 0 && period <= MOST_TIMED / n_steps)
		return psd_step_times_first_sec(payload, members, period, element_bits, links);
	if (members.n <= TIMED_MEMBERS)
		return psd_step_times_sec(payload, members, element_bits, links);
	return rings_sec(payload, members, links);
}

static bool is_between_racks(struct psd_members members, const struct psd_links *links)
{
	return links->per_rack > 0 && members.n > links->per_rack;
}

static double alone_sec(const struct psd_payload *payload, struct psd_members members, double transfer_sec,
			const struct psd_links *links)
{
	if (row_length(members) == 1)
		return psd_ring_alone_sec(payload, members, transfer_sec, links);
	const bool are_hops_alike =
		links->per_switch == 0 && links->near_latency_sec == 0.0 && are_nodes_alike(members);
	struct psd_links in_rack = *links;

	in_rack.per_rack = 0; /* uplinks carry nothing */
	const double sec = is_between_racks(members, links) ? racks_sec(payload, members, links)
			   : are_hops_alike		    ? alike_sec(payload, members, &in_rack)
							    : mixed_sec(payload, members, &in_rack);

	return sec < transfer_sec ? transfer_sec : sec;
}

const struct psd_collective psd_torus = {
	.name = "torus",
	.steps = steps,
	.step = step_of,
	.flow = flow_of,
	.is_uneven = true,
	.alone_sec = alone_sec,
	.period = period_of,
};
