/* Double binary tree: each of two trees sums up one half of the payload at its root and hands it back, chunk by chunk.
 * Who has children in one tree is a leaf of the other, so that all links are in use. Source: Sanders, Speck and Traeff
 * 2009, as NCCL has it (trees over all ranks). Legend: n members; positions in a tree are numbered in order, so that
 * the lowest bit of an inner one is its height, and the root is position 0; D levels below it, C chunks. */
#include <math.h>

#include "engine/schedules/pattern.h"

/* From a position to its parent's. */
struct edge {
	unsigned tree; /* 0 or 1 */
	unsigned position;
};

enum {
	SMALLEST_CHUNK = 32768, /* elements: 0.1 ms at 10 Gbit/s, which is more than a message's latency */
	MOST_CHUNKS = 64,	/* of which D are in the pipe at a time */
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

/* ---- turns: of the two edges to children, and of the two to parents, one takes even steps and one odd ones ---- */

static bool is_same(struct edge a, struct edge b)
{
	return a.tree == b.tree && a.position == b.position;
}

/* The other edge to a child of the same rank, or to a parent of it; false when there is none. */
static bool to_mate(unsigned n, struct edge *edge, bool of_parent)
{
	const unsigned rank = of_parent ? parent_rank(n, *edge) : rank_of(n, *edge);
	struct edge children[2], mate = edge_of(n, 1 - edge->tree, rank);

	if (!of_parent) {
		*edge = mate.position > 0 ? mate : *edge;
		return mate.position > 0;
	}
	if (children_of(n, rank, children) < 2)
		return false;
	*edge = is_same(children[0], *edge) ? children[1] : children[0];
	return true;
}

/* Mates form chains and rings, whose links alternate, so that a ring is even. Its first edge, by number, is even. */
static unsigned parity_of(unsigned n, struct edge edge)
{
	struct edge first = edge;
	unsigned parity = 0;

	for (unsigned way = 0; way < 2; way++) {
		struct edge at = edge;

		for (unsigned far = 1; to_mate(n, &at, (far + way) % 2 == 0) && !is_same(at, edge); far++)
			if (at.tree < first.tree || (at.tree == first.tree && at.position < first.position)) {
				first = at;
				parity = far % 2;
			}
	}
	return parity;
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

/* Upwards a level takes the messages of both children after each other, downwards the second follows the first at once;
 * where trees are cut off the longest way has a message less. Further chunks come every fourth message. Of several
 * workers on a node all use its link at a time, and the lower levels are near. Counts are those of carrying the steps
 * out, for 2 to 64 workers. */
static double alone_sec(const struct psd_payload *payload, struct psd_members members, double transfer_sec,
			const struct psd_ways *ways)
{
	const unsigned n = members.n, C = n_chunks(payload->elements, n);
	const unsigned n_far = n_levels(psd_members_nodes(members)), n_near = n_levels(n) - n_far;
	const double chunk_bits = 4.0 * (double)payload->elements * payload->value_bytes / C;
	const double near_sec = chunk_bits / ways->near_bps, far_sec = chunk_bits / ways->far_bps;
	const double next_sec = fmax(n_far > 0 ? far_sec : near_sec, transfer_sec / (4.0 * C));
	const bool is_cut_off = C == 1 && n % 4 != 0;
	const double n_lowest = 2 + (is_cut_off && n > 2);
	const double n_waits = n_far > 0 ? 4.0 * (C - 1) + 3 * n_far + (n_near > 0) - (is_cut_off && n < 8) : 0.0;

	return fmax(transfer_sec, 4.0 * (C - 1) * next_sec + 4.0 * (n_near * near_sec + n_far * far_sec) -
					  n_lowest * (n_near > 0 ? near_sec : far_sec) + n_waits * ways->latency_sec);
}

const struct psd_pattern psd_double_tree = {
	.name = "double-tree",
	.is_rough = true,
	.steps = steps,
	.step = step_of,
	.flow = flow_of,
	.node_elements = node_elements,
	.is_uneven = true,
	.local_elements = local_elements,
	.alone_sec = alone_sec,
};
