/* What a ring takes where its hops differ. */
#include <criterion/criterion.h>
#include <math.h>

#include "engine/schedules/pattern.h"

/* The longest of all chains, hop by hop. */
static double by_every_hop_sec(struct psd_members members, double chunk_bits, const struct psd_ways *ways)
{
	const unsigned n = members.n, n_messages = 2 * (n - 1);
	double longest_sec = 0.0;

	for (unsigned start = 0; start < n; start++) {
		double chain_sec = 0.0, slowest_sec = 0.0;

		for (unsigned i = 0; i < n_messages; i++) {
			const unsigned from = (start + i) % n;
			const enum psd_reach reach = psd_members_reach(members, ways, from, (from + 1) % n);
			const double busy_sec = psd_ways_busy_sec(ways, reach, chunk_bits);

			slowest_sec = fmax(slowest_sec, busy_sec);
			chain_sec += busy_sec + psd_ways_latency_sec(ways, reach);
			longest_sec = fmax(longest_sec, chain_sec + (n_messages - 1 - i) * slowest_sec);
		}
	}
	return longest_sec;
}

/* Nodes that are passed over change nothing: with a last one that is not full, and whichever hop is the slowest. */
Test(ring, passes_over_nodes_that_are_alike)
{
	struct psd_ways ways = {.far_bps = 1e9, .latency_sec = 2e-5, .near_latency_sec = 3e-6};

	for (unsigned n = 2; n <= 61; n++)
		for (unsigned per_node = 1; per_node <= 8; per_node++)
			for (unsigned kind = 0; kind < 8; kind++) {
				const struct psd_members members = {n, per_node};
				const struct psd_payload payload = {
					.pattern = &psd_ring, .elements = 1000 * n, .value_bytes = 4};

				ways.near_bps = kind & 1 ? 3e8 : 8e9;
				ways.between_bps = kind & 2 ? 2e8 : 9e9;
				ways.per_switch = kind & 4 ? 2 : 0;
				const double expected = by_every_hop_sec(members, 32000.0, &ways);
				const double sec = psd_ring.alone_sec(&payload, members, 0.0, &ways);
				cr_assert(fabs(sec - expected) <= 1e-9 * expected,
					  "%u workers, %u a node, kind %u: %.9g s, expected %.9g", n, per_node, kind,
					  sec, expected);
			}
}
