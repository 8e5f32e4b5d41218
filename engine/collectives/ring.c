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

/* A rank sends every chunk twice, except the one after its own and the next, which it sends once. */
static uint64_t sent_elements(uint64_t elements, unsigned n, unsigned rank)
{
	return 2 * elements - psd_range_part(elements, n, (rank + 1) % n).elements -
	       psd_range_part(elements, n, (rank + 2) % n).elements;
}

static bool flow_of(uint64_t elements, struct psd_members members, unsigned rank, unsigned i, struct psd_flow *flow)
{
	const unsigned n = members.n, before = (rank + n - 1) % n;

	if (i > 0)
		return false;
	*flow = (struct psd_flow){
		.to = (rank + 1) % n,
		.elements = sent_elements(elements, n, rank),
		.n_messages = steps(elements, members),
		.from = before,
		.received_elements = sent_elements(elements, n, before),
	};
	return n > 1;
}

/* Number of nodes, from a node's first member on, that may be skipped: all but two of those that are full and alike. */
static unsigned nodes_alike(unsigned n, unsigned per_node, unsigned from, unsigned n_messages_left)
{
	const unsigned n_full = n / per_node - from / per_node, n_left = n_messages_left / per_node;
	const unsigned n_alike = n_full < n_left ? n_full : n_left;

	return n_alike > 2 ? n_alike - 2 : 0;
}

/* The last message waits for a chain of messages: each follows the one before on the same hop, or the one that brought
 * its chunk over the hop before. The longest chain that begins on a hop and takes a number of hops waits on the slowest
 * of them. Over nodes that are alike the sum grows by the same amount from each to the next, so that the longest chain
 * ends on the first or the last of them. */
static double longest_from_sec(unsigned n, struct psd_members members, unsigned start, double chunk_bits,
			       const struct psd_links *links)
{
	const unsigned n_messages = 2 * (n - 1), g = members.per_node;
	double chain_sec = 0.0, slowest_sec = 0.0, longest_sec = 0.0;
	double node_chain_sec = -1.0; /* chain_sec at the begin of the whole node before; negative: there was none */

	for (unsigned i = 0; i < n_messages; i++) {
		unsigned from = (start + i) % n;

		if (from % g == 0) {
			const unsigned n_passed = node_chain_sec < 0.0 ? 0 : nodes_alike(n, g, from, n_messages - i);

			chain_sec += n_passed * (chain_sec - node_chain_sec);
			i += n_passed * g;
			from += n_passed * g;
			node_chain_sec = from / g < n / g ? chain_sec : -1.0;
		}
		const enum psd_reach reach = psd_members_reach(members, links, from, (from + 1) % n);
		const double busy_sec = psd_links_busy_sec(links, reach, chunk_bits);

		slowest_sec = fmax(slowest_sec, busy_sec);
		chain_sec += busy_sec + psd_links_latency_sec(links, reach);
		longest_sec = fmax(longest_sec, chain_sec + (n_messages - 1 - i) * slowest_sec);
	}
	return longest_sec;
}

static double longest_chain_sec(unsigned n, struct psd_members members, double chunk_bits,
				const struct psd_links *links)
{
	const unsigned g = members.per_node, n_first = 2 * g < n ? 2 * g : n;
	double longest_sec = 0.0;

	for (unsigned start = 0; start < n_first; start++)
		longest_sec = fmax(longest_sec, longest_from_sec(n, members, start, chunk_bits, links));
	for (unsigned start = n > 2 * g ? n - 2 * g : n_first; start < n; start++)
		longest_sec = fmax(longest_sec, longest_from_sec(n, members, start, chunk_bits, links));
	return longest_sec;
}

double psd_ring_alone_sec(const struct psd_payload *payload, struct psd_members members, double transfer_sec,
			  const struct psd_links *links)
{
	const double chunk_bits = 8.0 * (double)payload->elements * payload->value_bytes / members.n;

	return fmax(transfer_sec, longest_chain_sec(members.n, members, chunk_bits, links));
}

#define AS_RING .steps = steps, .step = step_of, .flow = flow_of, .alone_sec = psd_ring_alone_sec

const struct psd_collective psd_ring = {.name = "ring", AS_RING};

/* MPI takes a ring for large payloads; for small ones it has trees and recursive doubling. */
const struct psd_collective psd_mpi = {.name = "mpi", .assumed = "ring", .predicted = "a ring's", AS_RING};
