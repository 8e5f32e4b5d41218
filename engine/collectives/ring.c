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

/* Returns the number of elements that a rank sends. It sends each chunk twice, except the chunks of the two following
 * ranks, which it sends once. */
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

/* Number of members after which hops repeat: those of a node or, where an uplink is slower than a node's link, those of
 * a rack. Nodes that differ do not repeat. */
static unsigned period_of(struct psd_members members, const struct psd_links *links)
{
	const bool has_slow_uplinks = links->per_rack > 0 && psd_links_busy_sec(links, PSD_REACH_BEYOND, 1.0) >
								     psd_links_busy_sec(links, PSD_REACH_FAR, 1.0);

	if (members.layout)
		return members.n;
	return has_slow_uplinks ? links->per_rack : members.per_node;
}

/* Number of periods, from the first member of one on, that may be skipped: all but two of those that are full. */
static unsigned periods_alike(unsigned n, unsigned period, unsigned from, unsigned n_messages_left)
{
	const unsigned n_full = n / period - from / period, n_left = n_messages_left / period;
	const unsigned n_alike = n_full < n_left ? n_full : n_left;

	return n_alike > 2 ? n_alike - 2 : 0;
}

/* The last message waits for a chain of messages: each follows the one before on the same hop, or the one that brought
 * its chunk over the hop before. The longest chain that begins on a hop and takes a number of hops waits on the slowest
 * of them. Over periods that are alike the sum grows by the same amount from each to the next, so that the longest
 * chain ends in the first or the last of them. */
static double longest_from_sec(unsigned n_messages, struct psd_members members, unsigned start, double chunk_bits,
			       const struct psd_links *links)
{
	const unsigned n = members.n, period = period_of(members, links);
	double chain_sec = 0.0, slowest_sec = 0.0, longest_sec = 0.0;
	double period_chain_sec =
		-1.0; /* chain_sec at the begin of the whole period before; negative: there was none */

	for (unsigned i = 0; i < n_messages; i++) {
		unsigned from = (start + i) % n;

		if (from % period == 0) {
			const unsigned n_passed =
				period_chain_sec < 0.0 ? 0 : periods_alike(n, period, from, n_messages - i);

			chain_sec += n_passed * (chain_sec - period_chain_sec);
			i += n_passed * period;
			from += n_passed * period;
			period_chain_sec = from / period < n / period ? chain_sec : -1.0;
		}
		const double busy_sec = psd_members_busy_sec(members, links, from, (from + 1) % n, chunk_bits);

		slowest_sec = fmax(slowest_sec, busy_sec);
		chain_sec += busy_sec + psd_members_latency_sec(members, links, from, (from + 1) % n);
		longest_sec = fmax(longest_sec, chain_sec + (n_messages - 1 - i) * slowest_sec);
	}
	return longest_sec;
}

/* False if chains from earlier or later members of the same kind of nodes are as long as any that begins here. */
static bool is_near_other_kind(struct psd_members members, unsigned rank)
{
	const unsigned node = psd_members_node(members, rank), kind = psd_layout_kind(members.layout, node);
	const unsigned first = kind > 0 ? members.layout->kinds[kind - 1].end_node : 0;

	return node < first + 2 || node + 2 >= members.layout->kinds[kind].end_node;
}

static double longest_chain_sec(unsigned n_messages, struct psd_members members, double chunk_bits,
				const struct psd_links *links)
{
	const unsigned n = members.n, period = period_of(members, links), n_first = 2 * period < n ? 2 * period : n;
	double longest_sec = 0.0;

	for (unsigned start = 0; start < n_first; start++)
		if (!members.layout || is_near_other_kind(members, start))
			longest_sec =
				fmax(longest_sec, longest_from_sec(n_messages, members, start, chunk_bits, links));
	for (unsigned start = n > 2 * period ? n - 2 * period : n_first; start < n; start++)
		longest_sec = fmax(longest_sec, longest_from_sec(n_messages, members, start, chunk_bits, links));
	return longest_sec;
}

double psd_ring_steps_sec(const struct psd_payload *payload, struct psd_members members, unsigned n_steps,
			  double transfer_sec, const struct psd_links *links)
{
	const double chunk_bits = 8.0 * (double)payload->elements * payload->value_bytes / members.n;

	return fmax(transfer_sec, longest_chain_sec(n_steps, members, chunk_bits, links));
}

double psd_ring_alone_sec(const struct psd_payload *payload, struct psd_members members, double transfer_sec,
			  const struct psd_links *links)
{
	return psd_ring_steps_sec(payload, members, 2 * (members.n - 1), transfer_sec, links);
}

unsigned psd_ring_period(struct psd_members members, unsigned per_rack)
{
	(void)members;
	return per_rack;
}

uint64_t psd_ring_largest(uint64_t elements, struct psd_members members)
{
	return elements / members.n + (elements % members.n > 0);
}

#define AS_RING                                                                                                        \
	.steps = steps, .step = step_of, .flow = flow_of, .alone_sec = psd_ring_alone_sec, .period = psd_ring_period,  \
	.largest = psd_ring_largest

const struct psd_collective psd_ring = {.name = "ring", AS_RING};

/* MPI takes a ring for large payloads; for small ones it has trees and recursive doubling. */
const struct psd_collective psd_mpi = {.name = "mpi", .assumed = "ring", .predicted = "a ring's", AS_RING};
