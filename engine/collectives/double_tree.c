/* Double binary tree: each of two trees sums one half of the payload at its root and sends the sum back, chunk by
 * chunk. Inner nodes of one tree are leaves of the other, so that all links are in use. Source: Sanders, Speck and
 * Traeff 2009, in NCCL's form (trees over all ranks). Legend: n members. Positions in a tree are numbered in order: the
 * lowest bit of an inner position is its height, and the root is position 0. C chunks. */
#include <math.h>

#include "engine/collectives/step_times.h"

/* Edge of a tree from a position to its parent. */
struct edge {
	unsigned tree; /* 0 or 1 */
	unsigned position;
};

enum {
	SMALLEST_CHUNK = 32768, /* elements: 0.1 ms at 10 Gbit/s, which is more than a message's latency */
	MOST_CHUNKS = 64,
	TIMED_NODES = 64,
	TIMED_MEMBERS = 256, /* the limit on more nodes than TIMED_NODES */
	TIMED_CHUNKS = 8,
	TIMED_MORE = 16, /* chunks that are timed where edges differ, to find the time of one more */
};

/* ---- the trees ---- */

static unsigned low_bit(unsigned number)
{
	return number & ~(number - 1);
}

/* The second tree mirrors the first, or, if n is odd, is shifted by one: position 2i + 1, a leaf, is an inner one
 * there.
 */
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

static unsigned level_of(unsigned n, unsigned position)
{
	unsigned level = 0;

	for (; position > 0; position = parent_of(n, position))
		level++;
	return level;
}

/* The children in one tree: the tops of the subtrees before and behind a position. The latter is lower at the tree's
 * end. */
static unsigned children_in_tree(unsigned n, unsigned tree, unsigned position, struct edge children[])
{
	const unsigned height = position == 0 ? 1u << psd_tree_levels(n) : low_bit(position);
	unsigned n_children = 0, behind = height / 2;

	if (position > 0 && height > 1)
		children[n_children++] = (struct edge){tree, position - height / 2};
	while (behind > 0 && position + behind >= n)
		behind /= 2;
	if (behind > 0)
		children[n_children++] = (struct edge){tree, position + behind};
	return n_children;
}

/* Sets `children` to the edges to a rank's children in both trees, at most two. */
static unsigned children_of(unsigned n, unsigned rank, struct edge children[2])
{
	const unsigned n_first = children_in_tree(n, 0, rank, children);

	return n_first + children_in_tree(n, 1, edge_of(n, 1, rank).position, children + n_first);
}

/* ---- turns: one of the two edges to children, and one of the two to parents, uses even steps, the other odd ones.
 *
 * Siblings must differ, and so must the edges from one rank to its parents in both trees. An odd position is a leaf,
 * and an even one of the other tree, which determines its turn. The conditions of leaves then make even positions
 * differ in pairs, which together with siblings is the same problem for half as many positions, and so on. Where pairs
 * are a multiple of 4 and the next position, the solution is the parity of the bits that are set. ---- */

static unsigned odd_bits(unsigned number)
{
	unsigned odd = 0;

	for (; number > 0; number &= number - 1)
		odd ^= 1;
	return odd;
}

/* The turn of a position from 1 to `last`. Odd positions are paired with the next one; a last one without partner
 * differs from its sibling. */
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

/* n even: turns mirror each other like trees. The last position, whose mirror is a root, has only a sibling. */
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

/* n odd: position p of the first tree is p - 1 of the second. Rank 0 is the first tree's root and an inner position of
 * the second, with a child in both; an even child there decides the others of the first tree. */
static unsigned moved_turn(unsigned n, struct edge edge)
{
	const unsigned last = (n - 1) / 2, top = 1u << (psd_tree_levels(n) - 1);
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

/* Returns the number of chunks; one for trees of two levels, in which little overlaps. */
static unsigned n_chunks(uint64_t elements, unsigned n)
{
	const uint64_t chunks = elements / 2 / SMALLEST_CHUNK;

	if (n <= 3 || chunks < 1)
		return 1;
	return chunks < MOST_CHUNKS ? (unsigned)chunks : MOST_CHUNKS;
}

/* Returns the number of steps in one direction, upwards or downwards. */
static unsigned n_one_way(uint64_t elements, unsigned n)
{
	return 2 * (n_chunks(elements, n) + psd_tree_levels(n) - 1);
}

static unsigned steps(uint64_t elements, struct psd_members members)
{
	return members.n > 1 ? 2 * n_one_way(elements, members.n) : 0;
}

/* Numbers that all edges of a step share. */
struct times {
	unsigned n, levels, chunks, number;
	bool is_up;
	unsigned turn; /* pair of steps since the first of the direction */
};

static struct times times_of(uint64_t elements, unsigned n, unsigned number)
{
	struct times times = {.n = n, .levels = psd_tree_levels(n), .chunks = n_chunks(elements, n), .number = number};
	const unsigned one_way = 2 * (times.chunks + times.levels - 1);

	times.is_up = number < one_way;
	times.turn = number % one_way / 2;
	return times;
}

/* The chunk that an edge carries in a step: a chunk moves by one level every two steps. False: none. */
static bool carries(const struct times *times, struct edge edge, unsigned *chunk)
{
	const unsigned level = level_of(times->n, edge.position);
	const unsigned before = times->is_up ? times->levels - level : level - 1;

	*chunk = times->turn - before;
	return times->turn >= before && *chunk < times->chunks && times->number % 2 == parity_of(times->n, edge);
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
	const struct times times = times_of(elements, n, number);
	const bool is_up = times.is_up;
	struct psd_step step = {.to = rank, .from = rank, .adds = is_up};
	struct edge children[2];
	const unsigned n_children = children_of(n, rank, children);
	unsigned chunk;

	for (unsigned tree = 0; tree < 2; tree++) {
		const struct edge edge = edge_of(n, tree, rank);

		if (edge.position == 0 || !carries(&times, edge, &chunk))
			continue;
		*(is_up ? &step.to : &step.from) = parent_rank(n, edge);
		if (is_up)
			step.sent = chunk_of(elements, n, edge, chunk);
	}
	for (unsigned c = 0; c < n_children; c++) {
		if (!carries(&times, children[c], &chunk))
			continue;
		*(is_up ? &step.from : &step.to) = rank_of(n, children[c]);
		if (!is_up)
			step.sent = chunk_of(elements, n, children[c], chunk);
	}
	return step;
}

/* Every edge carries its tree's half upwards and downwards. */
static bool flow_of(uint64_t elements, struct psd_members members, unsigned rank, unsigned i, struct psd_flow *flow)
{
	const unsigned n = members.n, chunks = n_chunks(elements, n);
	struct edge children[2];
	const unsigned n_children = children_of(n, rank, children);

	*flow = (struct psd_flow){rank, 0, chunks, rank, 0};
	if (n == 1 || i >= 2 + n_children)
		return false;
	const struct edge edge = i < 2 ? edge_of(n, i, rank) : children[i - 2];
	const uint64_t half = half_of(elements, edge.tree).elements;
	const unsigned peer = i < 2 ? parent_rank(n, edge) : rank_of(n, edge);

	if (edge.position > 0)
		*flow = (struct psd_flow){peer, half, chunks, peer, half};
	return true;
}

/* ---- seconds ---- */

/* Seconds of one more level where all edges are alike: upwards the messages of both children come one by one, each
 * after a wait, downwards the second follows the first at once. */
static double level_sec(double busy_sec, double latency_sec)
{
	return 4.0 * busy_sec + 3.0 * latency_sec;
}

/* Waits differ from rank to rank, so that all steps are timed. Where nodes are too many for that, the levels above
 * count as alike. */
static double timed_sec(const struct psd_payload *payload, struct psd_members members, double element_bits,
			double chunk_bits, const struct psd_links *links)
{
	const enum psd_reach reach = links->per_rack > 0 ? PSD_REACH_BEYOND : PSD_REACH_FAR;
	const double busy_sec = psd_links_busy_sec(links, reach, chunk_bits);
	struct psd_members timed = members;
	unsigned n_levels_above = 0;

	for (; timed.n > TIMED_MEMBERS && psd_members_nodes(timed) > TIMED_NODES; n_levels_above++)
		timed.n = psd_members_first(timed, (psd_members_nodes(timed) + 1) / 2);
	return psd_step_times_sec(payload, timed, element_bits, links) +
	       n_levels_above * level_sec(busy_sec, psd_members_most_latency_sec(members, links));
}

/* More chunks than TIMED_CHUNKS, which fill the pipe, where all edges are alike: one more arrives every fourth message.
 * Checked by timing 8 and 64 chunks for 4 to 70 workers and any latency. */
static double alike_sec(const struct psd_payload *payload, struct psd_members members, double chunk_bits,
			const struct psd_links *links)
{
	const enum psd_reach reach = members.per_node == 1 ? PSD_REACH_FAR : PSD_REACH_NEAR;
	const double busy_sec = psd_links_busy_sec(links, reach, chunk_bits);
	const unsigned n_more = n_chunks(payload->elements, members.n) - TIMED_CHUNKS;
	struct psd_payload few = *payload;

	few.elements = 2 * TIMED_CHUNKS * SMALLEST_CHUNK;
	return timed_sec(&few, members, chunk_bits / SMALLEST_CHUNK, chunk_bits, links) +
	       4.0 * n_more * (busy_sec + psd_links_latency_sec(links, reach));
}

/* Racks: the time of one more chunk is that between TIMED_CHUNKS and TIMED_MORE chunks. */
static double racks_sec(const struct psd_payload *payload, struct psd_members members, double chunk_bits,
			const struct psd_links *links)
{
	const double element_bits = chunk_bits / SMALLEST_CHUNK;
	const unsigned n_more = n_chunks(payload->elements, members.n) - TIMED_MORE;
	struct psd_payload few = *payload;

	few.elements = 2 * TIMED_CHUNKS * SMALLEST_CHUNK;
	const double few_sec = timed_sec(&few, members, element_bits, chunk_bits, links);
	few.elements = 2 * TIMED_MORE * SMALLEST_CHUNK;
	const double more_sec = timed_sec(&few, members, element_bits, chunk_bits, links);
	return more_sec + n_more * (more_sec - few_sec) / (TIMED_MORE - TIMED_CHUNKS);
}

static double alone_sec(const struct psd_payload *payload, struct psd_members members, double transfer_sec,
			const struct psd_links *links)
{
	const unsigned C = n_chunks(payload->elements, members.n);
	const double payload_bits = 8.0 * (double)payload->elements * payload->value_bytes;
	const double chunk_bits = payload_bits / 2.0 / C;
	const bool are_racks = links->per_rack > 0 && members.n > links->per_rack;
	const bool are_alike = !are_racks && !members.layout && links->per_switch == 0 &&
			       (members.per_node == 1 || members.n <= members.per_node);
	const double sec = are_alike && C > TIMED_CHUNKS ? alike_sec(payload, members, chunk_bits, links)
			   : are_racks && C > TIMED_MORE
				   ? racks_sec(payload, members, chunk_bits, links)
				   : timed_sec(payload, members, 8.0 * payload->value_bytes, chunk_bits, links);

	return sec < transfer_sec ? transfer_sec : sec;
}

const struct psd_collective psd_double_tree = {
	.name = "double-tree",
	.steps = steps,
	.step = step_of,
	.flow = flow_of,
	.is_uneven = true,
	.is_timed_by_steps = true,
	.alone_sec = alone_sec,
};
