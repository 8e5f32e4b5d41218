/* Seconds of a ring. */
#include <criterion/criterion.h>
#include <math.h>

#include "engine/collectives/collective.h"

/* The longest of all chains, hop by hop. */
static double by_every_hop_sec(struct psd_members members, double chunk_bits, const struct psd_links *links)
{
	const unsigned n = members.n, n_messages = 2 * (n - 1);
	double longest_sec = 0.0;

	for (unsigned start = 0; start < n; start++) {
		double chain_sec = 0.0, slowest_sec = 0.0;

		for (unsigned i = 0; i < n_messages; i++) {
			const unsigned from = (start + i) % n;
			const double busy_sec = psd_members_busy_sec(members, links, from, (from + 1) % n, chunk_bits);

			slowest_sec = fmax(slowest_sec, busy_sec);
			chain_sec += busy_sec + psd_members_latency_sec(members, links, from, (from + 1) % n);
			longest_sec = fmax(longest_sec, chain_sec + (n_messages - 1 - i) * slowest_sec);
		}
	}
	return longest_sec;
}

/* Nodes and racks that are passed over change nothing: with a last one that is not full, and whichever hop is the
 * slowest. */
Test(ring, passes_over_nodes_and_racks_that_are_alike)
{
	struct psd_links links = {.far_bps = 1e9, .latency_sec = 2e-5, .near_latency_sec = 3e-6};

	for (unsigned n = 2; n <= 61; n++)
		for (unsigned per_node = 1; per_node <= 8; per_node++)
			for (unsigned kind = 0; kind < 32; kind++) {
				const struct psd_members members = {.n = n, .per_node = per_node};
				const struct psd_payload payload = {
					.collective = &psd_ring, .elements = 1000 * n, .value_bytes = 4};

				links.near_bps = kind & 1 ? 3e8 : 8e9;
				links.between_bps = kind & 2 ? 2e8 : 9e9;
				links.per_switch = kind & 4 ? 2 : 0;
				links.per_rack = kind & 8 ? 3 * per_node : 0;
				links.uplink_bps = kind & 16 ? 1e8 : 5e9;
				const double expected = by_every_hop_sec(members, 32000.0, &links);
				const double sec = psd_ring.alone_sec(&payload, members, 0.0, &links);
				cr_assert(fabs(sec - expected) <= 1e-9 * expected,
					  "%u workers, %u a node, kind %u: %.9g s, expected %.9g", n, per_node, kind,
					  sec, expected);
			}
}

/* Kinds with other numbers of workers or other latencies, as long as they may be skipped in part. */
Test(ring, passes_over_kinds_of_nodes)
{
	const struct psd_links links = {.far_bps = 1e9, .near_bps = 8e9, .latency_sec = 2e-5};

	for (unsigned nodes = 1; nodes <= 12; nodes++)
		for (unsigned i = 0; i < 3 * 3 * 3; i++) {
			const unsigned first = 1 + i % 3, second = 1 + i / 3 % 3, end = nodes * first;
			const struct psd_kind_of_nodes kinds[] = {
				{.end_node = nodes, .end_worker = end, .workers = first, .link_ratio = 1.0},
				{.end_node = nodes + 4,
				 .end_worker = end + 4 * second,
				 .workers = second,
				 .link_ratio = i % 2 ? 0.5 : 1.0,
				 .more_latency_sec = (i / 9) * 1e-5},
			};
			struct psd_layout layout = psd_layout_make(end + 4 * second, first, 0);

			psd_layout_set_kinds(&layout, kinds, 2);
			const struct psd_payload payload = {
				.collective = &psd_ring, .elements = 1000 * layout.workers, .value_bytes = 4};
			const struct psd_members members = psd_payload_members(&payload, &layout);
			const double expected = by_every_hop_sec(members, 32000.0, &links);
			const double sec = psd_payload_alone_sec(&payload, &layout, 0.0, &links);

			cr_assert(fabs(sec - expected) <= 1e-9 * expected, "%u nodes, %u: %.9g s, expected %.9g", nodes,
				  i, sec, expected);
		}
}

/* Seven workers, six of them on one node: two hops go from node to node, one after the other. Latency is short, so that
 * what the last of a worker's 12 messages waits for goes around but once: some over the first of these hops and the
 * rest over the second, 12 times a seventh of the payload on a link, and either hop's latency. By bytes alone no hop
 * carries more than 12 messages and the last one's latency. */
Test(ring, waits_for_both_hops_between_an_uneven_pair_of_nodes)
{
	const struct psd_links links = {.far_bps = 1e9, .near_bps = INFINITY, .latency_sec = 1e-3};
	const struct psd_payload payload = {.collective = &psd_ring, .elements = 7 * 100000, .value_bytes = 4};
	const double transfer_sec = 12 * 32.0 * 100000 / 1e9, expected = transfer_sec + 2 * links.latency_sec;
	const double sec =
		psd_ring.alone_sec(&payload, (struct psd_members){.n = 7, .per_node = 6}, transfer_sec, &links);

	cr_assert_float_eq(sec, expected, 1e-9 * expected, "%.9g s, expected %.9g", sec, expected);
}
