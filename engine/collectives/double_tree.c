/* Double binary tree: each of two trees sums up one half of the payload at its root and hands it back, chunk by chunk.
 * Who has children in one tree is a leaf of the other, so that all links are in use. Source: Sanders, Speck and Traeff
 * 2009, as NCCL has it (trees over all ranks). Legend: n members; positions in a tree are numbered in order, so that
 * the lowest bit of an inner one is its height, and the root is position 0; D levels below it, C chunks. */
#include <math.h>

#include "engine/collectives/step_times.h"

/* From a position to its parent's. */
struct edge {
	unsigned tree; /* 0 or 1 */
	unsigned position;
};

enum {
	SMALLEST_CHUNK = 32768, /* elements: 0.1 ms at 10 Gbit/s, which is more than a message's latency */
	MOST_CHUNKS = 64,	/* of which D are in the pipe at a time */
	WALKED_NODES = 64,
	WALKED_MEMBERS = 256, /* on more nodes than that, too */
	WALKED_CHUNKS = 8,
};

/* ---- the trees ---- */

static unsigned low_bit(unsigned number)
{
	return number & ~(number - 1);
}

/* Trees mirror each other, or where n is odd are a place apart: position 2i + 1, a leaf, is an inner one there. */
static unsigned rank_of(unsigned n, struct edge edge)
{
	if (edge.tree == 0)
		return edge.position;
	return n % 2 == 0 ? n - 1 - edge.position : (edge.position + 1) % n;
}

static struct edge edge_of(unsigned n, unsigned tree, unsigned rank)
{
	const unsigned moved = n % 2 == 0 ? n - 1 - rank : (rank + n - 1) % n;

	return (struct edge){tree, tree == 0 ? rank : moved};
}

static unsigned parent_of(unsigned n, unsigned position)
{
	const unsigned bit = low_bit(position), above = (position ^ bit) | bit << 1;

	return above < n ? above : position ^ bit;
}

static unsigned parent_rank(unsigned n, struct edge edge)
{
	return rank_of(n, (struct edge){edge.tree, parent_of(n, edge.position)});
}

static unsigned n_levels(unsigned n)
{
	unsigned levels = 0;

	while (1u << levels < n)
		levels++;
	return levels;
}

static unsigned level_of(unsigned n, unsigned position)
{
	unsigned level = 0;

	for (; position > 0; position = parent_of(n, position))
		level++;
	return level;
}

/* Of one tree: the subtree before a position and that behind it, whose top is lower where the tree is cut off. */
static unsigned children_in_tree(unsigned n, unsigned tree, unsigned position, struct edge children[])
{
	const unsigned height = position == 0 ? 1u << n_levels(n) : low_bit(position);
	unsigned n_children = 0, behind = height / 2;

	if (position > 0 && height > 1)
		children[n_children++] = (struct edge){tree, position - height / 2};
	while (behind > 0 && position + behind >= n)
		behind /= 2;
	if (behind > 0)
		children[n_children++] = (struct edge){tree, position + behind};
	return n_children;
}

/* The edges to a rank's children in both trees: two at most. */
static unsigned children_of(unsigned n, unsigned rank, struct edge children[2])
{
	const unsigned n_first = children_in_tree(n, 0, rank, children);

	return n_first + children_in_tree(n, 1, edge_of(n, 1, rank).position, children + n_first);
}

/* ---- turns: of the two edges to children, and of the two to parents, one takes even steps and one odd ones.
 *
 * What is asked: siblings differ, and so do the edges from one rank to its parents in both trees. An odd position is a
 * leaf, and an even one of the other tree: its turn follows from there. What leaves ask of each other then asks even
 * positions to differ in pairs, which with the siblings among them is the same question for half as many, and so on.
 * Where a pair is a multiple of 4 and what comes behind it, the answer is the parity of the bits that are set. ---- */

static unsigned odd_bits(unsigned number)
{
	unsigned odd = 0;

	for (; number > 0; number &= number - 1)
		odd ^= 1;
	return odd;
}

/* Of positions 1 to `last`, of which an odd one is paired with the next; a last one without differs from its sibling.
 */
static unsigned paired_with_next(unsigned position, unsigned last)
{
	unsigned turn = 0;

	while (position > 1 || last > 1) {
		if (position % 2 == 1 && position < last) {
			position++;
			turn ^= 1;
		}
		if (position % 2 == 0) {
			position /= 2;
			last /= 2;
		} else if (position > 1) {
			position -= 1 + low_bit(position - 1) / 2;
			turn ^= 1;
		}
	}
	return turn;
}

/* n even: trees mirror each other, and so do turns. The last position, whose mirror is a root, has a sibling alone. */
static unsigned mirrored_turn(unsigned n, unsigned position)
{
	unsigned turn = position % 2;

	if (position == n - 1)
		position = n - 2 - low_bit(n - 2) / 2;
	else if (position % 2 == 1)
		position = n - 1 - position;
	else
		turn = 0;
	if (position % 2 == 1)
		return turn ^ mirrored_turn(n, position);
	return turn ^ (n % 4 == 0 ? odd_bits(position) : paired_with_next(position / 2, n / 2 - 1));
}

/* n odd: position p of the first tree is p - 1 of the second. Rank 0 has a child in both trees, the first one's root
 * and an inner position of the second's: where that child is even, it decides about the others of the first tree. */
static unsigned moved_turn(unsigned n, struct edge edge)
{
	const unsigned last = (n - 1) / 2, top = 1u << (n_levels(n) - 1);
	const unsigned flip = (n - 1) % 4 == 0 ? paired_with_next(top / 2, last) ^ odd_bits(n - 1) ^ 1 : 0;
	const bool is_leaf = edge.position % 2 == 1;

	if (edge.tree == 0)
		return is_leaf ? odd_bits(edge.position - 1) ^ 1 : paired_with_next(edge.position / 2, last) ^ flip;
	return is_leaf ? paired_with_next((edge.position + 1) / 2, last) ^ flip ^ 1 : odd_bits(edge.position);
}

static unsigned parity_of(unsigned n, struct edge edge)
{
	return 1 ^ (n % 2 == 0 ? mirrored_turn(n, edge.position) : moved_turn(n, edge));
}

/* ---- steps ---- */

static struct psd_range half_of(uint64_t elements, unsigned tree)
{
	return psd_range_part(elements, 2, tree);
}

/* On two levels little overlaps. */
static unsigned n_chunks(uint64_t elements, unsigned n)
{
	const uint64_t chunks = elements / 2 / SMALLEST_CHUNK;

	if (n <= 3 || chunks < 1)
		return 1;
	return chunks < MOST_CHUNKS ? (unsigned)chunks : MOST_CHUNKS;
}

/* Upwards, or downwards. */
static unsigned n_one_way(uint64_t elements, unsigned n)
{
	return 2 * (n_chunks(elements, n) + n_levels(n) - 1);
}

static unsigned steps(uint64_t elements, struct psd_members members)
{
	return members.n > 1 ? 2 * n_one_way(elements, members.n) : 0;
}

/* Which chunk an edge carries in a step: a chunk moves by a level every two steps. False: none. */
static bool carries(uint64_t elements, unsigned n, struct edge edge, unsigned number, unsigned *chunk)
{
	const unsigned one_way = n_one_way(elements, n), level = level_of(n, edge.position);
	const unsigned before = number < one_way ? n_levels(n) - level : level - 1;
	const unsigned turn = number % one_way / 2;

	*chunk = turn - before;
	return turn >= before && *chunk < n_chunks(elements, n) && number % 2 == parity_of(n, edge);
}

static struct psd_range chunk_of(uint64_t elements, unsigned n, struct edge edge, unsigned chunk)
{
	const struct psd_range half = half_of(elements, edge.tree);
	struct psd_range part = psd_range_part(half.elements, n_chunks(elements, n), chunk);

	part.first += half.first;
	return part;
}

static struct psd_step step_of(uint64_t elements, struct psd_members members, unsigned rank, unsigned number)
{
	const unsigned n = members.n;
	const bool is_up = number < n_one_way(elements, n);
	struct psd_step step = {.to = rank, .from = rank, .adds = is_up};
	struct edge children[2];
	const unsigned n_children = children_of(n, rank, children);
	unsigned chunk;

	for (unsigned tree = 0; tree < 2; tree++) {
		const struct edge edge = edge_of(n, tree, rank);

		if (edge.position == 0 || !carries(elements, n, edge, number, &chunk))
			continue;
		*(is_up ? &step.to : &step.from) = parent_rank(n, edge);
		if (is_up)
			step.sent = chunk_of(elements, n, edge, chunk);
	}
	for (unsigned c = 0; c < n_children; c++) {
		if (!carries(elements, n, children[c], number, &chunk))
			continue;
		*(is_up ? &step.from : &step.to) = rank_of(n, children[c]);
		if (!is_up)
			step.sent = chunk_of(elements, n, children[c], chunk);
	}
	return step;
}

/* ---- sums over steps: every edge carries its tree's half upwards and downwards ---- */

static bool flow_of(uint64_t elements, struct psd_members members, unsigned rank, unsigned i, struct psd_flow *flow)
{
	const unsigned n = members.n, chunks = n_chunks(elements, n);
	struct edge children[2];
	const unsigned n_children = children_of(n, rank, children);

	*flow = (struct psd_flow){rank, 0, chunks};
	if (n == 1 || i >= 2 + n_children)
		return false;
	const struct edge edge = i < 2 ? edge_of(n, i, rank) : children[i - 2];
	if (edge.position > 0)
		*flow = (struct psd_flow){i < 2 ? parent_rank(n, edge) : rank_of(n, edge),
					  half_of(elements, edge.tree).elements, chunks};
	return true;
}

/* To workers of its own node, or of others: as many come from there. */
static uint64_t sent_elements(const struct psd_payload *payload, const struct psd_layout *layout, unsigned worker,
			      bool is_near)
{
	const struct psd_members members = {layout->workers, layout->workers_per_node};
	const unsigned node = psd_layout_node(layout, worker);
	struct psd_flow flow;
	uint64_t sent = 0;

	for (unsigned i = 0; flow_of(payload->elements, members, worker, i, &flow); i++)
		sent += (psd_layout_node(layout, flow.to) == node) == is_near ? flow.elements : 0;
	return sent;
}

static struct psd_traffic node_elements(const struct psd_payload *payload, const struct psd_layout *layout,
					unsigned node)
{
	const unsigned first = node * layout->workers_per_node, end = first + psd_layout_workers_on(layout, node);
	uint64_t sent = 0;

	for (unsigned worker = first; worker < end; worker++)
		sent += sent_elements(payload, layout, worker, false);
	return (struct psd_traffic){sent, sent};
}

static double local_elements(const struct psd_payload *payload, const struct psd_layout *layout)
{
	double most = 0.0;

	for (unsigned worker = 0; worker < layout->workers && layout->workers_per_node > 1; worker++)
		most = fmax(most, (double)sent_elements(payload, layout, worker, true));
	return most;
}

/* Of a level more, where all edges are alike: upwards it takes the messages of both children after each other, each way
 * with a wait, downwards the second follows the first at once. */
static double level_sec(double busy_sec, double latency_sec)
{
	return 4.0 * busy_sec + 3.0 * latency_sec;
}

/* Who waits for whom differs from rank to rank, and the steps are carried out; of more nodes than is worth that, as if
 * the levels above were alike. */
static double walked_sec(const struct psd_payload *payload, struct psd_members members, double element_bits,
			 double chunk_bits, const struct psd_ways *ways)
{
	const double busy_sec = psd_ways_busy_sec(ways, PSD_REACH_FAR, chunk_bits);
	struct psd_members walked = members;
	unsigned n_levels_above = 0;

	for (; walked.n > WALKED_MEMBERS && psd_members_nodes(walked) > WALKED_NODES; n_levels_above++)
		walked.n = (psd_members_nodes(walked) + 1) / 2 * members.per_node;
	return psd_step_times_sec(payload, walked, element_bits, ways) +
	       n_levels_above * level_sec(busy_sec, ways->latency_sec);
}

/* Of more chunks than are walked, where all edges are alike: with those the pipe is full, and one more comes every
 * fourth message. So it is by walks of 8 and of 64 chunks, for 4 to 70 workers and any latency. */
static double alike_sec(const struct psd_payload *payload, struct psd_members members, double chunk_bits,
			const struct psd_ways *ways)
{
	const enum psd_reach reach = members.per_node == 1 ? PSD_REACH_FAR : PSD_REACH_NEAR;
	const double busy_sec = psd_ways_busy_sec(ways, reach, chunk_bits);
	const unsigned n_more = n_chunks(payload->elements, members.n) - WALKED_CHUNKS;
	struct psd_payload few = *payload;

	few.elements = 2 * WALKED_CHUNKS * SMALLEST_CHUNK;
	return walked_sec(&few, members, chunk_bits / SMALLEST_CHUNK, chunk_bits, ways) +
	       4.0 * n_more * (busy_sec + psd_ways_latency_sec(ways, reach));
}

static double alone_sec(const struct psd_payload *payload, struct psd_members members, double transfer_sec,
			const struct psd_ways *ways)
{
	const unsigned C = n_chunks(payload->elements, members.n);
	const double payload_bits = 8.0 * (double)payload->elements * payload->value_bytes;
	const bool are_alike = ways->per_switch == 0 && (members.per_node == 1 || members.n <= members.per_node);
	const double sec = are_alike && C > WALKED_CHUNKS ? alike_sec(payload, members, payload_bits / 2.0 / C, ways)
							  : walked_sec(payload, members, 8.0 * payload->value_bytes,
								       payload_bits / 2.0 / C, ways);

	return sec < transfer_sec ? transfer_sec : sec;
}

const struct psd_collective psd_double_tree = {
	.name = "double-tree",
	.steps = steps,
	.step = step_of,
	.flow = flow_of,
	.node_elements = node_elements,
	.is_uneven = true,
	.local_elements = local_elements,
	.is_timed_by_steps = true,
	.alone_sec = alone_sec,
};
