/* The closed forms of traffic against sums over every pair of hosts. */
#include <criterion/criterion.h>

#include "engine/collectives/collective.h"

enum { N_LAYOUTS = 14, N_SIZES = 7 };

struct shape {
	unsigned workers, workers_per_node, separate_servers;
};

/* One and many workers, a last node that is not full, more servers than workers and fewer. */
static const struct shape shapes[N_LAYOUTS] = {
	{1, 1, 0}, {2, 1, 0}, {3, 1, 0}, {8, 1, 0},  {6, 3, 0}, {9, 3, 0}, {7, 3, 0},
	{1, 1, 1}, {1, 1, 3}, {8, 1, 1}, {8, 1, 11}, {6, 3, 2}, {7, 3, 4}, {2, 3, 1},
};
/* None, fewer than any number of shards above, and sizes that they do not divide. */
static const uint64_t sizes[N_SIZES] = {0, 1, 2, 5, 13, 1000, UINT64_C(123456789012)};

/* Two nodes of two workers, one of three, two of one. */
static const struct psd_kind_of_nodes unequal[] = {
	{.end_node = 2, .end_worker = 4, .workers = 2, .link_ratio = 1.0},
	{.end_node = 3, .end_worker = 7, .workers = 3, .link_ratio = 1.0},
	{.end_node = 5, .end_worker = 9, .workers = 1, .link_ratio = 1.0},
};

static struct psd_layout unequal_layout(unsigned separate_servers)
{
	struct psd_layout layout = psd_layout_make(9, 3, separate_servers);

	psd_layout_set_kinds(&layout, unequal, 3);
	return layout;
}

static struct psd_layout layout_of(const struct shape *shape)
{
	return psd_layout_make(shape->workers, shape->workers_per_node, shape->separate_servers);
}

enum { N_PATTERNS = 13 };
static const struct psd_collective *const patterns[N_PATTERNS] = {
	&psd_push,	  &psd_pull,	    &psd_broadcast,	 &psd_to_root,
	&psd_from_root,	  &psd_ring,	    &psd_to_leader,	 &psd_from_leader,
	&psd_leader_push, &psd_leader_pull, &psd_node_broadcast, &psd_leader_broadcast,
	&psd_hand_over};

typedef void (*check_fn)(const struct psd_payload *payload, const struct psd_layout *layout);

/* Every layout, size and pattern; roots are the first shard's host and the last one's. */
static void for_each_case(check_fn check)
{
	for (unsigned l = 0; l < N_LAYOUTS + 3; l++) {
		const struct psd_layout layout =
			l < N_LAYOUTS ? layout_of(&shapes[l]) : unequal_layout(3 * (l - N_LAYOUTS));
		for (unsigned e = 0; e < N_SIZES; e++)
			for (unsigned p = 0; p < N_PATTERNS; p++)
				for (unsigned last = 0; last < 2; last++) {
					const unsigned root =
						psd_layout_shard_host(&layout, last ? layout.shards - 1 : 0);
					const struct psd_payload payload = {.collective = patterns[p],
									    .elements = sizes[e],
									    .value_bytes = 4,
									    .root = root};
					check(&payload, &layout);
				}
	}
}

/* A claim about a payload, and the test that checks it in each case. */
#define EACH_CASE(claim)                                                                                               \
	static void check_##claim(const struct psd_payload *payload, const struct psd_layout *layout);                 \
	Test(layout, claim)                                                                                            \
	{                                                                                                              \
		for_each_case(check_##claim);                                                                          \
	}                                                                                                              \
	static void check_##claim(const struct psd_payload *payload, const struct psd_layout *layout)

static const char *name(const struct psd_payload *payload)
{
	return payload->collective->name;
}

/* ---- hosts and nodes ---- */

Test(layout, shards_share_the_first_worker_of_each_node)
{
	const struct psd_layout layout = psd_layout_make(6, 3, 0);

	cr_expect_eq(layout.nodes, 2);
	cr_expect_eq(layout.shards, 2);
	cr_expect_eq(psd_layout_hosts(&layout), 6);
	cr_expect_eq(psd_layout_nodes(&layout), 2);
	for (unsigned host = 0; host < 6; host++) {
		cr_expect(psd_layout_is_worker(&layout, host));
		cr_expect_eq(psd_layout_node(&layout, host), host / 3);
		cr_expect_eq(psd_layout_is_shard(&layout, host), host == 0 || host == 3, "host %u", host);
	}
	cr_expect_eq(psd_layout_shard_host(&layout, 1), 3);
}

Test(layout, separate_servers_follow_the_workers_on_nodes_of_their_own)
{
	const struct psd_layout layout = psd_layout_make(6, 3, 2);

	cr_expect_eq(psd_layout_hosts(&layout), 6 + 2);
	cr_expect_eq(psd_layout_nodes(&layout), 2 + 2);
	for (unsigned host = 0; host < 8; host++) {
		cr_expect_eq(psd_layout_is_worker(&layout, host), host < 6, "host %u", host);
		cr_expect_eq(psd_layout_is_shard(&layout, host), host >= 6, "host %u", host);
	}
	for (unsigned shard = 0; shard < 2; shard++) {
		cr_expect_eq(psd_layout_shard_host(&layout, shard), 6 + shard);
		cr_expect_eq(psd_layout_node(&layout, 6 + shard), 2 + shard);
	}
}

Test(layout, last_node_holds_the_workers_that_are_left)
{
	const struct psd_layout layout = psd_layout_make(7, 3, 0);

	cr_expect_eq(layout.nodes, 3); /* 3 + 3 + 1 */
	cr_expect_eq(psd_layout_node(&layout, 6), 2);
	cr_expect(psd_layout_is_shard(&layout, 6));
}

/* ---- parts ---- */

Test(layout, parts_add_up_to_the_slice)
{
	for (unsigned shards = 1; shards <= 70; shards++) {
		const struct psd_layout layout = psd_layout_make(shards, 1, 0);
		for (uint64_t elements = 0; elements <= 300; elements++) {
			uint64_t sum_bytes = 0;
			for (unsigned shard = 0; shard < shards; shard++) {
				const uint64_t part_bytes = 2 * psd_layout_part(&layout, elements, shard).elements;
				const uint64_t smallest_bytes = 2 * (elements / shards);
				cr_assert(part_bytes == smallest_bytes || part_bytes == smallest_bytes + 2,
					  "shard %u of %u has %lu bytes of %lu elements", shard, shards, part_bytes,
					  elements);
				sum_bytes += part_bytes;
			}
			cr_assert_eq(sum_bytes, 2 * elements, "%u shards of %lu elements add up to %lu bytes", shards,
				     elements, sum_bytes);
		}
	}
}

Test(layout, parts_of_huge_slices_do_not_overflow)
{
	const uint64_t elements = UINT64_MAX / 4; /* times a shard number would not fit */
	const struct psd_layout layout = psd_layout_make(65536, 1, 0);
	uint64_t sum = 0;

	for (unsigned shard = 0; shard < layout.shards; shard++)
		sum += psd_layout_part(&layout, elements, shard).elements;
	cr_expect_eq(sum, elements);
}

/* ---- traffic ---- */

EACH_CASE(traffic_of_a_node_is_the_sum_over_its_hosts)
{
	const unsigned n_hosts = psd_layout_hosts(layout);

	for (unsigned node = 0; node < psd_layout_nodes(layout); node++) {
		uint64_t sent_bytes = 0, received_bytes = 0;
		for (unsigned from = 0; from < n_hosts; from++)
			for (unsigned to = 0; to < n_hosts; to++) {
				const unsigned from_node = psd_layout_node(layout, from);
				const unsigned to_node = psd_layout_node(layout, to);
				if (from_node == to_node)
					continue;
				const uint64_t bytes = psd_payload_bytes_between(payload, layout, from, to);
				sent_bytes += from_node == node ? bytes : 0;
				received_bytes += to_node == node ? bytes : 0;
			}
		const struct psd_traffic traffic = psd_payload_node_traffic(payload, layout, node);
		cr_assert(traffic.sent_bytes == sent_bytes && traffic.received_bytes == received_bytes,
			  "%s of %lu elements, %u workers, %u a node, %u shards%s, root %u: node %u sends %lu, "
			  "receives %lu, expected %lu, %lu",
			  name(payload), payload->elements, layout->workers, layout->workers_per_node, layout->shards,
			  layout->has_separate_servers ? " apart" : "", payload->root, node, traffic.sent_bytes,
			  traffic.received_bytes, sent_bytes, received_bytes);
	}
}

EACH_CASE(senders_are_the_hosts_with_bytes_to_send)
{
	const unsigned n_hosts = psd_layout_hosts(layout);

	for (unsigned to = 0; to < n_hosts && !payload->collective->steps; to++) {
		unsigned n_senders = 0;
		for (unsigned from = 0; from < n_hosts; from++)
			n_senders += from != to && psd_payload_bytes_between(payload, layout, from, to) > 0;
		const unsigned senders = psd_payload_senders(payload, layout, to);
		cr_assert_eq(senders, n_senders,
			     "%s of %lu elements, %u workers, %u a node, %u shards%s, root %u: %u send to host %u, "
			     "expected %u",
			     name(payload), payload->elements, layout->workers, layout->workers_per_node,
			     layout->shards, layout->has_separate_servers ? " apart" : "", payload->root, senders, to,
			     n_senders);
	}
}

static bool is_near(const struct psd_layout *layout, unsigned one, unsigned other)
{
	return psd_layout_node(layout, one) == psd_layout_node(layout, other);
}

/* Numbers of a host's senders and receivers, on its node and on others. */
EACH_CASE(ways_inside_a_node_are_counted_apart_from_those_between)
{
	const unsigned n_hosts = psd_layout_hosts(layout);

	for (unsigned host = 0; host < n_hosts && !payload->collective->steps; host++) {
		unsigned n_senders[2] = {0, 0}, n_receivers[2] = {0, 0};

		for (unsigned peer = 0; peer < n_hosts; peer++) {
			if (peer == host)
				continue;
			n_senders[is_near(layout, peer, host)] +=
				psd_payload_bytes_between(payload, layout, peer, host) > 0;
			n_receivers[is_near(layout, peer, host)] +=
				psd_payload_bytes_between(payload, layout, host, peer) > 0;
		}
		for (unsigned peer = 0; peer < n_hosts; peer++) {
			if (peer == host)
				continue;
			cr_assert_eq(psd_payload_senders_beside(payload, layout, peer, host),
				     n_senders[is_near(layout, peer, host)], "%s: from %u to %u", name(payload), peer,
				     host);
			cr_assert_eq(psd_payload_receivers_beside(payload, layout, host, peer),
				     n_receivers[is_near(layout, peer, host)], "%s: from %u to %u", name(payload), host,
				     peer);
		}
	}
}

/* Nodes that send to the node that most nodes send to. */
static unsigned counted_fan_in(const struct psd_payload *payload, const struct psd_layout *layout)
{
	const unsigned n_hosts = psd_layout_hosts(layout);
	unsigned most = 0;

	for (unsigned to_node = 0; to_node < psd_layout_nodes(layout); to_node++) {
		unsigned n_nodes = 0;
		for (unsigned from_node = 0; from_node < psd_layout_nodes(layout); from_node++) {
			bool sends = false;
			for (unsigned from = 0; from < n_hosts; from++)
				for (unsigned to = 0; to < n_hosts; to++)
					sends = sends ||
						(from_node != to_node && psd_layout_node(layout, from) == from_node &&
						 psd_layout_node(layout, to) == to_node &&
						 psd_payload_bytes_between(payload, layout, from, to) > 0);
			n_nodes += sends;
		}
		most = n_nodes > most ? n_nodes : most;
	}
	return most;
}

/* The fan-in is that of a payload with something for everybody. */
EACH_CASE(fan_in_counts_the_nodes_that_send_to_one)
{
	if (payload->elements != 1000)
		return;
	const unsigned fan_in = psd_payload_fan_in(payload, layout);
	const unsigned expected = counted_fan_in(payload, layout);
	cr_expect_eq(fan_in, expected, "%s, %u workers, %u a node, %u shards%s, root %u: fan-in %u, expected %u",
		     name(payload), layout->workers, layout->workers_per_node, layout->shards,
		     layout->has_separate_servers ? " apart" : "", payload->root, fan_in, expected);
}

/* Halving and doubling: a worker's partner differs from it in one bit of its number; the bits above a node's are
 * another node. No worker has two messages at a time: a lone worker receives from one node. */
Test(layout, fan_in_counts_the_steps_that_a_nodes_workers_may_be_at)
{
	static const struct {
		unsigned workers, workers_per_node;
		const struct psd_collective *collective;
		unsigned expected;
	} cases[] = {
		{8, 8, &psd_halving_doubling, 0},
		{16, 8, &psd_halving_doubling, 1},
		{32, 8, &psd_halving_doubling, 2},
		{64, 8, &psd_halving_doubling, 3},
		{64, 2, &psd_halving_doubling, 2},
		{64, 1, &psd_halving_doubling, 1},
		{64, 8, &psd_ring, 1},
		{64, 8, &psd_two_level, 1},
	};

	for (unsigned c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
		const struct psd_layout layout = psd_layout_make(cases[c].workers, cases[c].workers_per_node, 0);
		const struct psd_payload payload = {
			.collective = cases[c].collective, .elements = 1000, .value_bytes = 4};

		cr_expect_eq(psd_payload_fan_in(&payload, &layout), cases[c].expected, "case %u: %u", c,
			     psd_payload_fan_in(&payload, &layout));
	}
}

Test(layout, pairs_into_a_node_count_every_connection_that_is_used)
{
	static const struct {
		unsigned workers, workers_per_node, separate_servers;
		const struct psd_collective *collective;
		unsigned expected;
	} cases[] = {
		{8, 1, 0, &psd_push, 7}, /* all others to a shard */
		{2, 1, 0, &psd_pull, 1},	{2, 1, 4, &psd_push, 2},
		{2, 1, 4, &psd_pull, 4},      /* every server to a worker */
		{6, 3, 0, &psd_push, 3},      /* the other node's workers to one shard */
		{6, 3, 0, &psd_broadcast, 9}, /* three to three */
		{6, 3, 0, &psd_to_root, 3},	{6, 3, 0, &psd_from_root, 3}, /* the root to three on the other node */
		{6, 3, 0, &psd_ring, 1},	{3, 3, 0, &psd_broadcast, 0}, /* one node */
		{6, 3, 0, &psd_to_leader, 0},	{9, 3, 0, &psd_leader_push, 2}, /* both other leaders to one */
		{6, 3, 4, &psd_leader_pull, 4},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct psd_layout layout =
			psd_layout_make(cases[i].workers, cases[i].workers_per_node, cases[i].separate_servers);
		const struct psd_payload payload = {
			.collective = cases[i].collective, .elements = 1000, .value_bytes = 4};

		cr_expect_eq(psd_payload_pairs_in(&payload, &layout), cases[i].expected, "case %zu", i);
	}
}

Test(layout, sent_bytes_are_received)
{
	const struct psd_layout layout = psd_layout_make(7, 3, 4);
	const struct psd_payload payload = {.collective = &psd_push, .elements = 13, .value_bytes = 4};
	uint64_t sent_bytes = 0, received_bytes = 0;

	for (unsigned node = 0; node < psd_layout_nodes(&layout); node++) {
		const struct psd_traffic traffic = psd_payload_node_traffic(&payload, &layout, node);
		sent_bytes += traffic.sent_bytes;
		received_bytes += traffic.received_bytes;
	}
	cr_expect_eq(sent_bytes, UINT64_C(7) * 13 * 4); /* each worker sends all of it */
	cr_expect_eq(received_bytes, sent_bytes);
}

Test(layout, a_scaled_payload_keeps_all_its_parts)
{
	const struct psd_layout layout = psd_layout_make(8, 1, 0);
	const struct psd_payload large = {.collective = &psd_push, .elements = 1000, .value_bytes = 4},
				 small = {.collective = &psd_push, .elements = 5, .value_bytes = 4};

	cr_expect_eq(psd_payload_scaled(&large, &layout, 1.0).elements, 1000);
	cr_expect_eq(psd_payload_scaled(&large, &layout, 0.25).elements, 250);
	cr_expect_eq(psd_payload_scaled(&large, &layout, 0.0621).elements, 63); /* whole ones, upwards */
	cr_expect_eq(psd_payload_scaled(&large, &layout, 0.001).elements, 8);	/* one for each of 8 shards */
	cr_expect_eq(psd_payload_scaled(&small, &layout, 0.001).elements, 5);	/* three shards had none before */
	cr_expect_eq(psd_payload_scaled(&large, &layout, 0.25).value_bytes, 4);
}

/* Ten nodes of workers in racks of four, and six servers. */
Test(layout, servers_spread_evenly_over_racks_unless_they_have_places)
{
	static const uint64_t servers_in[] = {3, 1};
	static const unsigned spread[] = {0, 0, 1, 1, 2, 2}, placed[] = {3, 1, 3, 1, 3, 1};
	struct psd_layout layout = psd_layout_make(10, 1, 6);

	layout.nodes_per_rack = 4;
	cr_expect_eq(psd_layout_racks(&layout), 3);
	cr_expect_eq(psd_layout_rack(&layout, 3), 0);
	cr_expect_eq(psd_layout_rack(&layout, 9), 2);
	for (unsigned s = 0; s < 6; s++)
		cr_expect_eq(psd_layout_rack(&layout, 10 + s), spread[s], "server %u", s);
	layout.servers_in = servers_in;
	layout.n_servers_in = 2;
	cr_expect_eq(psd_layout_racks(&layout), 4); /* the last has servers alone */
	for (unsigned s = 0; s < 6; s++)
		cr_expect_eq(psd_layout_rack(&layout, 10 + s), placed[s], "server %u", s);
	cr_expect_eq(psd_layout_reach(&layout, 0, 3), PSD_REACH_FAR);
	cr_expect_eq(psd_layout_reach(&layout, 3, 4), PSD_REACH_BEYOND);
	cr_expect_eq(psd_layout_reach(&layout, 4, 11), PSD_REACH_FAR); /* the second server is in the second rack */
}

/* Listed by hand. */
Test(layout, nodes_of_kinds_have_their_own_numbers_of_workers)
{
	static const unsigned node_of[] = {0, 0, 1, 1, 2, 2, 2, 3, 4}, position_of[] = {0, 1, 0, 1, 0, 1, 2, 0, 0};
	static const unsigned first_of[] = {0, 2, 4, 7, 8}, workers_on[] = {2, 2, 3, 1, 1};

	for (unsigned servers = 0; servers < 3; servers++) {
		const struct psd_layout layout = unequal_layout(servers);

		cr_assert(layout.nodes == 5 && layout.workers == 9 && layout.workers_per_node == 3);
		cr_expect_eq(layout.shards, servers > 0 ? servers : 5);
		for (unsigned w = 0; w < 9; w++) {
			cr_expect_eq(psd_layout_node(&layout, w), node_of[w], "worker %u", w);
			cr_expect_eq(psd_layout_position(&layout, w), position_of[w], "worker %u", w);
			cr_expect_eq(psd_layout_is_leader(&layout, w), position_of[w] == 0);
			cr_expect_eq(psd_layout_n_led(&layout, w), position_of[w] ? 0 : workers_on[node_of[w]] - 1);
			cr_expect_eq(psd_layout_hosts_beside(&layout, w), workers_on[node_of[w]]);
		}
		for (unsigned node = 0; node < 5; node++) {
			cr_expect_eq(psd_layout_first(&layout, node), first_of[node]);
			cr_expect_eq(psd_layout_workers_on(&layout, node), workers_on[node]);
			cr_expect(servers > 0 || psd_layout_shard_host(&layout, node) == first_of[node]);
			cr_expect(servers > 0 || psd_layout_shard(&layout, first_of[node]) == node);
		}
		for (unsigned s = 0; s < servers; s++)
			cr_expect(psd_layout_node(&layout, 9 + s) == 5 + s &&
				  psd_layout_first(&layout, 5 + s) == 9 + s);
	}
}

/* A message between two nodes has half the latency of each. */
Test(layout, latencies_of_two_kinds_are_averaged)
{
	static const struct psd_kind_of_nodes kinds[] = {
		{.end_node = 1, .end_worker = 1, .workers = 1},
		{.end_node = 3, .end_worker = 3, .workers = 1, .more_latency_sec = 4e-6}};
	struct psd_layout layout = psd_layout_make(3, 1, 1);

	psd_layout_set_kinds(&layout, kinds, 2);
	cr_expect(layout.has_own_latencies && !layout.is_uneven);
	cr_expect_eq(psd_layout_more_latency_sec(&layout, 0, 1), 2e-6);
	cr_expect_eq(psd_layout_more_latency_sec(&layout, 1, 2), 4e-6);
	cr_expect_eq(psd_layout_more_latency_sec(&layout, 1, 3), 2e-6, "a server's node");
}

/* 5 elements to 2 of 3 others are 10 elements, of which the others get 3, 3 and 4 in their order behind the sender. */
Test(layout, means_of_a_partial_broadcast_add_up)
{
	const struct psd_payload payload = {
		.collective = &psd_partial_broadcast, .elements = 5, .value_bytes = 4, .peers = 2};
	const struct psd_layout one_node = psd_layout_make(4, 4, 0), two_nodes = psd_layout_make(4, 2, 0);

	cr_expect_eq(psd_payload_node_traffic(&payload, &one_node, 0).sent_bytes, 0);
	cr_expect_eq(psd_payload_node_traffic(&payload, &one_node, 0).received_bytes, 0);
	/* 3 and 4 of the first worker, 3 and 3 of the second; 3 and 4 from the third one, 3 and 3 from the fourth */
	cr_expect_eq(psd_payload_node_traffic(&payload, &two_nodes, 0).sent_bytes, 4 * 13);
	cr_expect_eq(psd_payload_node_traffic(&payload, &two_nodes, 0).received_bytes, 4 * 13);
}
