/* Ring all-reduce: reduce-scatter in P-1 steps, then all-gather in P-1, over the workers in order of rank. Source:
 * Patarasuk and Yuan 2009. */
#include <math.h>

#include "engine/collectives/ring.h"

static unsigned steps(uint64_t elements, struct psd_members members)
{
	(void)elements;
	return 2 * (members.n - 1);
}

static struct psd_step step_of(uint64_t elements, struct psd_members members, unsigned rank, unsigned step)
{
	const unsigned n = members.n;
	const bool adds = step < n - 1;
	/* rank r starts with its own chunk; in every step the chunk received in the step before moves on */
	const unsigned back = adds ? step : step - (n - 1);
	const unsigned start = adds ? rank : rank + 1;
	const unsigned chunk = (start + n - back) % n;

	return (struct psd_step){
		.to = (rank + 1) % n,
		.from = (rank + n - 1) % n,
		.sent = psd_range_part(elements, n, chunk),
		.adds = adds,
	};
}

/* Every chunk twice, but for the one after its own and the next, which it sends once. */
uint64_t psd_ring_sent_elements(uint64_t elements, unsigned workers, unsigned rank)
{
	if (workers == 1)
		return 0;
	return 2 * elements - psd_range_part(elements, workers, (rank + 1) % workers).elements -
	       psd_range_part(elements, workers, (rank + 2) % workers).elements;
}

static bool flow_of(uint64_t elements, struct psd_members members, unsigned rank, unsigned i, struct psd_flow *flow)
{
	*flow = (struct psd_flow){(rank + 1) % members.n, psd_ring_sent_elements(elements, members.n, rank),
				  steps(elements, members)};
	return i == 0 && members.n > 1;
}

static struct psd_traffic node_elements(const struct psd_payload *payload, const struct psd_layout *layout,
					unsigned node)
{
	const unsigned P = layout->workers, first = node * layout->workers_per_node;

	if (node >= layout->nodes || layout->nodes == 1)
		return (struct psd_traffic){0, 0};
	return (struct psd_traffic){
		psd_ring_sent_elements(payload->elements, P, first + psd_layout_workers_on(layout, node) - 1),
		psd_ring_sent_elements(payload->elements, P, (first + P - 1) % P)};
}

static unsigned fan_in(const struct psd_layout *layout)
{
	return layout->nodes > 1 ? 1 : 0;
}

static double local_elements(const struct psd_payload *payload, const struct psd_layout *layout)
{
	const double P = layout->workers;

	return psd_layout_workers_on(layout, 0) > 1 ? 2.0 * (P - 1.0) / P * (double)payload->elements : 0.0;
}

/* Messages from a node's first member on that may be passed over: of nodes that are all alike, as is the next one, as
 * many as leave two of them. */
static unsigned nodes_alike(unsigned n, unsigned per_node, unsigned from, unsigned n_messages_left)
{
	const unsigned n_full = n / per_node - from / per_node, n_left = n_messages_left / per_node;
	const unsigned n_alike = n_full < n_left ? n_full : n_left;

	return n_alike > 2 ? n_alike - 2 : 0;
}

/* The last message waits for a chain of messages, each after the one before on the same hop or after the one that
 * brought what it sends, over the hop before. Of the chains that begin on a hop and take so many hops, the longest does
 * its waiting on the slowest of these. Over nodes that are alike what that adds up to grows by the same from each to
 * the next, so that the longest chain ends on the first or the last of them. */
static double longest_from_sec(unsigned n, struct psd_members members, unsigned start, double chunk_bits,
			       const struct psd_ways *ways)
{
	const unsigned n_messages = 2 * (n - 1), g = members.per_node;
	double chain_sec = 0.0, slowest_sec = 0.0, longest_sec = 0.0;
	double node_chain_sec = -1.0; /* where the whole node before began; negative: there was none */

	for (unsigned i = 0; i < n_messages; i++) {
		unsigned from = (start + i) % n;

		if (from % g == 0) {
			const unsigned n_passed = node_chain_sec < 0.0 ? 0 : nodes_alike(n, g, from, n_messages - i);

			chain_sec += n_passed * (chain_sec - node_chain_sec);
			i += n_passed * g;
			from += n_passed * g;
			node_chain_sec = from / g < n / g ? chain_sec : -1.0;
		}
		const enum psd_reach reach = psd_members_reach(members, ways, from, (from + 1) % n);
		const double busy_sec = psd_ways_busy_sec(ways, reach, chunk_bits);

		slowest_sec = fmax(slowest_sec, busy_sec);
		chain_sec += busy_sec + psd_ways_latency_sec(ways, reach);
		longest_sec = fmax(longest_sec, chain_sec + (n_messages - 1 - i) * slowest_sec);
	}
	return longest_sec;
}

static double longest_chain_sec(unsigned n, struct psd_members members, double chunk_bits, const struct psd_ways *ways)
{
	const unsigned g = members.per_node, n_first = 2 * g < n ? 2 * g : n;
	double longest_sec = 0.0;

	for (unsigned start = 0; start < n_first; start++)
		longest_sec = fmax(longest_sec, longest_from_sec(n, members, start, chunk_bits, ways));
	for (unsigned start = n > 2 * g ? n - 2 * g : n_first; start < n; start++)
		longest_sec = fmax(longest_sec, longest_from_sec(n, members, start, chunk_bits, ways));
	return longest_sec;
}

static double alone_sec(const struct psd_payload *payload, struct psd_members members, double transfer_sec,
			const struct psd_ways *ways)
{
	const double chunk_bits = 8.0 * (double)payload->elements * payload->value_bytes / members.n;

	return fmax(transfer_sec, longest_chain_sec(members.n, members, chunk_bits, ways));
}

#define AS_RING                                                                                                        \
	.steps = steps, .step = step_of, .flow = flow_of, .node_elements = node_elements,                              \
	.local_elements = local_elements, .fan_in = fan_in, .alone_sec = alone_sec

const struct psd_collective psd_ring = {.name = "ring", AS_RING};

/* What both libraries take for what is large; for less they have trees and recursive doubling. */
const struct psd_collective psd_mpi = {.name = "mpi", .assumed = "ring", AS_RING};
const struct psd_collective psd_nccl = {.name = "nccl", .assumed = "ring", AS_RING};
