/* Bytes, seconds and the choice between methods against the formulas of the papers. */
#include <criterion/criterion.h>
#include <math.h>

#include "engine/cost/cost.h"
#include "tests/engine/cost/cost_helper.h"

static const double relative_tolerance = 1e-12;

static void expect_near(double actual, double expected, const char *what)
{
	cr_expect_float_eq(actual, expected, relative_tolerance * fabs(expected), "%s is %.17g, expected %.17g", what,
			   actual, expected);
}

/* K samples, (M,N) floats, no bias. */
static struct psd_subject matrix(uint32_t K, uint64_t M, uint64_t N)
{
	return (struct psd_subject){.elements = M * N, .rows = M, .columns = N, .batch = K, .value_bytes = 4};
}

/* ---- the rules ---- */

/* With P = S factors win iff P <= 2 M N / (K (M+N)), equality included: both sides of the boundary. */
static void expect_threshold(const char *layer, uint32_t K, uint64_t M, uint64_t N, unsigned published)
{
	const struct psd_subject subject = matrix(K, M, N);
	const unsigned threshold = (unsigned)(2 * M * N / (K * (M + N)));

	cr_expect_eq(threshold, published, "%s: %u", layer, threshold);
	cr_expect(psd_cost_hybrid_takes_sfb(&subject, threshold, threshold), "%s at %u", layer, threshold);
	cr_expect_not(psd_cost_hybrid_takes_sfb(&subject, threshold + 1, threshold + 1), "%s at %u", layer,
		      threshold + 1);
}

Test(cost, hybrid_thresholds_of_known_layers)
{
	expect_threshold("VGG19 fc6", 32, 25088, 4096, 220);
	expect_threshold("VGG19 fc7", 32, 4096, 4096, 128);   /* exactly 128: a tie goes to the factors */
	expect_threshold("GoogLeNet fc", 128, 1024, 1000, 7); /* 7.9 */
}

Test(cost, hybrid_rule_is_the_inequality_for_any_number_of_shards)
{
	const uint64_t M = 300, N = 200, K = 4;
	const struct psd_subject subject = matrix((uint32_t)K, M, N);
	unsigned n_sfb = 0;

	for (uint64_t P = 1; P <= 80; P++)
		for (uint64_t S = 1; S <= 80; S++) {
			const bool takes_sfb = 2 * K * (P - 1) * (M + N) * S <= 2 * M * N * (P + S - 2);
			n_sfb += takes_sfb;
			cr_assert_eq(psd_cost_hybrid_takes_sfb(&subject, (unsigned)P, (unsigned)S), takes_sfb,
				     "P %lu, S %lu", P, S);
		}
	cr_assert(n_sfb > 0 && n_sfb < 80 * 80);
}

Test(cost, sacp_rule_is_the_inequality)
{
	const uint64_t M = 512, N = 256, K = 32;
	const struct psd_subject subject = matrix((uint32_t)K, M, N);
	const uint64_t factors = K * (M + N);
	unsigned last_sfb = 0;

	for (uint64_t P = 1; P <= 64; P++) {
		const bool takes_sfb = (P - 1) * (P - 1) * factors <= P * factors + P * M * N;
		last_sfb = takes_sfb ? (unsigned)P : last_sfb;
		cr_assert_eq(psd_cost_sacp_takes_sfb(&subject, (unsigned)P), takes_sfb, "P %lu", P);
	}
	/* P^2 - (3 + M N / factors) P + 1 <= 0 with M N / factors = 16/3: the larger root is 8.2 */
	cr_expect_eq(last_sfb, 8);
}

Test(cost, without_factors_both_rules_keep_full_matrices)
{
	const struct psd_subject conv = {.elements = 1 << 20, .batch = 1, .value_bytes = 4};

	for (unsigned P = 1; P <= 16; P++) {
		cr_expect_not(psd_cost_hybrid_takes_sfb(&conv, P, P));
		cr_expect_not(psd_cost_sacp_takes_sfb(&conv, P));
	}
}

/* ---- rates ---- */

static const struct psd_network network = {.bandwidth_bps = 10e9, .payload_ratio = 1, .latency_sec = 50e-6};
static const struct psd_host_costs free_host = {0};

static struct psd_rates free_rates(void)
{
	return psd_rates_make(&free_host, &network, 10e9, 1, 1e12);
}

Test(cost, incast_slows_receivers_for_each_sender)
{
	const struct psd_host_costs host = {.transport_bps = 8e9, .incast_ratio = 0.25};

	for (unsigned fan_in = 0; fan_in <= 9; fan_in++) {
		const struct psd_rates rates = psd_rates_make(&host, &network, 10e9, fan_in, 1e12);
		expect_near(rates.send_bps, 8e9, "send_bps");
		expect_near(rates.receive_bps, 8e9 / (1 + 0.25 * fan_in), "receive_bps");
	}
}

Test(cost, the_link_bounds_a_fast_transport)
{
	const struct psd_host_costs host = {.transport_bps = 30e9, .incast_ratio = 1};

	expect_near(psd_rates_make(&host, &network, 10e9, 1, 1e12).send_bps, 10e9, "send_bps");
	expect_near(psd_rates_make(&host, &network, 10e9, 1, 1e12).receive_bps, 10e9, "receive_bps of one sender");
	expect_near(psd_rates_make(&host, &network, 10e9, 5, 1e12).receive_bps, 30e9 / 6,
		    "receive_bps of five senders");
	expect_near(free_rates().receive_bps, 10e9, "receive_bps of a stack without a rate");
}

Test(cost, the_slower_of_node_and_stack_bounds_what_stays_inside)
{
	const struct psd_network with_local = {.bandwidth_bps = 10e9, .payload_ratio = 1, .local_bps = 80e9};
	const struct psd_host_costs slow = {.local_bps = 20e9}, fast = {.local_bps = 90e9};

	expect_near(psd_rates_make(&free_host, &with_local, 10e9, 1, 1e12).local_bps, 80e9, "local_bps of the node");
	expect_near(psd_rates_make(&slow, &with_local, 10e9, 1, 1e12).local_bps, 20e9, "local_bps of a slow stack");
	expect_near(psd_rates_make(&fast, &with_local, 10e9, 1, 1e12).local_bps, 80e9, "local_bps of a fast one");
	expect_near(psd_rates_make(&slow, &network, 10e9, 1, 1e12).local_bps, 20e9, "local_bps of the stack alone");
	cr_expect(isinf(free_rates().local_bps), "with neither it is free");
}

/* Headers take their share of the link, not of what the stack manages to move. */
Test(cost, headers_leave_a_share_of_the_link)
{
	const struct psd_network with_headers = {.bandwidth_bps = 10e9, .payload_ratio = 0.9, .latency_sec = 50e-6};
	const struct psd_host_costs slow = {.transport_bps = 8e9}, fast = {.transport_bps = 9.5e9};

	expect_near(psd_rates_make(&free_host, &with_headers, 10e9, 1, 1e12).send_bps, 9e9, "send_bps of the link");
	expect_near(psd_rates_make(&free_host, &with_headers, 10e9, 1, 1e12).receive_bps, 9e9,
		    "receive_bps of the link");
	expect_near(psd_rates_make(&fast, &with_headers, 10e9, 1, 1e12).send_bps, 9e9, "send_bps");
	expect_near(psd_rates_make(&slow, &with_headers, 10e9, 1, 1e12).send_bps, 8e9, "send_bps of a slow stack");
}

Test(cost, ends_of_messages_take_time_for_their_bytes_and_for_each)
{
	const struct psd_machine machine = {.cores = 1, .bytes_bps = 4e9, .message_sec = 10e-6};
	const struct psd_rates rates = psd_rates_make(&free_host, &network, 10e9, 1, 1e12);
	const struct psd_machine quick = {.cores = 1, .bytes_bps = 40e9}, at_once = {.cores = 1};

	expect_near(psd_cost_socket_work(&machine, &rates, 1e6, 3, false).sec, 8e6 / 4e9 + 3 * 10e-6,
		    "seconds of a core");
	expect_near(psd_cost_socket_work(&machine, &rates, 1e6, 3, false).most_cores, 1,
		    "share of a core slower than the link");
	/* moves in a quarter of the time what the link carries */
	expect_near(psd_cost_socket_work(&quick, &rates, 1e6, 3, false).most_cores, 0.25,
		    "share of a core quicker than the link");
	/* inside a node nothing is slower than the core */
	expect_near(psd_cost_socket_work(&quick, &rates, 1e6, 3, true).most_cores, 1, "share of a core inside a node");
	cr_expect_eq(psd_cost_socket_work(&at_once, &rates, 1e6, 3, false).sec, 0);
	cr_expect_eq(psd_cost_socket_work(&at_once, &rates, 1e6, 3, false).most_cores, 0);
}

/* Each end copies 1 MB into or out of memory that both have mapped, while the other does the same. */
Test(cost, inside_a_node_ends_are_busy_for_no_longer_than_the_way)
{
	const struct psd_machine machine = {.cores = 1, .bytes_bps = 4e9, .message_sec = 10e-6};
	struct psd_network memory = network;
	struct psd_rates rates;

	memory.local_bps = 16e9; /* four times as fast as sockets */
	rates = psd_rates_make(&free_host, &memory, 10e9, 1, 1e12);
	expect_near(psd_cost_socket_work(&machine, &rates, 1e6, 3, true).sec, 8e6 / 16e9 + 3 * 10e-6,
		    "seconds of a core");
	expect_near(psd_cost_socket_work(&machine, &rates, 1e6, 3, true).most_cores, 1, "share of a core");
	expect_near(psd_cost_socket_work(&machine, &rates, 1e6, 3, false).sec, 8e6 / 4e9 + 3 * 10e-6,
		    "seconds of a core between nodes");
	memory.local_bps = 1e9; /* four times slower: ends that sockets would not keep busy wait for it */
	rates = psd_rates_make(&free_host, &memory, 10e9, 1, 1e12);
	expect_near(psd_cost_socket_work(&machine, &rates, 1e6, 0, true).sec, 8e6 / 4e9, "seconds on a slow way");
	expect_near(psd_cost_socket_work(&machine, &rates, 1e6, 0, true).most_cores, 0.25,
		    "share of a core on a slow link");
}

/* ---- seconds of transfers; alpha latency, B bytes per second ---- */

static const double alpha = 50e-6;
static const double B = 10e9 / 8;

/* ---- transfers against the busiest port of the layout ---- */

static double most(double a, double b)
{
	return a > b ? a : b;
}

/* All nodes begin together: the time of the node that sends or receives most, or of the worker that does inside a node.
 */
static double busiest_port_sec(const struct psd_payload *payload, const struct psd_layout *layout,
			       const struct psd_rates *rates)
{
	const unsigned n_hosts = psd_layout_hosts(layout);
	double busiest_sec = 0.0;

	for (unsigned node = 0; node < psd_layout_nodes(layout); node++) {
		const struct psd_traffic traffic = psd_payload_node_traffic(payload, layout, node);
		busiest_sec = most(busiest_sec, 8.0 * (double)traffic.sent_bytes / rates->send_bps);
		busiest_sec = most(busiest_sec, 8.0 * (double)traffic.received_bytes / rates->receive_bps);
	}
	for (unsigned host = 0; host < n_hosts; host++) {
		double out_bytes = 0.0, in_bytes = 0.0;
		for (unsigned peer = 0; peer < n_hosts; peer++) {
			if (peer == host || psd_layout_node(layout, peer) != psd_layout_node(layout, host))
				continue;
			out_bytes += (double)psd_payload_bytes_between(payload, layout, host, peer);
			in_bytes += (double)psd_payload_bytes_between(payload, layout, peer, host);
		}
		busiest_sec = most(busiest_sec, 8.0 * most(out_bytes, in_bytes) / rates->local_bps);
	}
	return busiest_sec;
}

/* 27720 elements: every number of workers and shards here divides them. */
static void expect_busiest_port(unsigned workers, unsigned workers_per_node, unsigned servers, double local_bps)
{
	static const struct psd_collective *const patterns[] = {
		&psd_push, &psd_pull,	   &psd_broadcast,   &psd_to_root,     &psd_from_root,
		&psd_ring, &psd_to_leader, &psd_from_leader, &psd_leader_push, &psd_leader_pull};
	const struct psd_network with_local = {.bandwidth_bps = 10e9, .payload_ratio = 1, .local_bps = local_bps};
	const struct psd_host_costs host = {.transport_bps = 10e9,
					    .incast_ratio = 0.1}; /* receiving is slower than sending */
	const struct psd_rates rates = psd_rates_make(&host, &with_local, 10e9, 6, 1e12);
	const struct psd_layout layout = psd_layout_make(workers, workers_per_node, servers);

	for (unsigned p = 0; p < sizeof(patterns) / sizeof(*patterns); p++)
		for (unsigned last = 0; last < 2; last++) {
			const unsigned root = psd_layout_shard_host(&layout, last ? layout.shards - 1 : 0);
			const struct psd_payload payload = {
				.collective = patterns[p], .elements = 27720, .value_bytes = 4, .root = root};
			const double actual_sec = cost_of_transfer_sec(&payload, &layout, &rates);
			const double expected_sec = busiest_port_sec(&payload, &layout, &rates);
			cr_expect_float_eq(actual_sec, expected_sec, 1e-9 * expected_sec,
					   "%s, %u workers, %u a node, %u servers, root %u, %g b/s inside: "
					   "%.9g s, expected %.9g s",
					   patterns[p]->name, workers, workers_per_node, servers, root, local_bps,
					   actual_sec, expected_sec);
		}
}

Test(cost, a_transfer_takes_as_long_as_its_busiest_port)
{
	const double local_bps[] = {0, 2e9, 100e9};

	for (unsigned l = 0; l < 3; l++)
		for (unsigned workers_per_node = 1; workers_per_node <= 4; workers_per_node++)
			for (unsigned nodes = 1; nodes <= 3; nodes++)
				for (unsigned servers = 0; servers <= 3; servers++)
					expect_busiest_port(nodes * workers_per_node, workers_per_node, servers,
							    local_bps[l]);
}

Test(cost, a_last_node_with_fewer_workers_counts_as_it_is)
{
	const double local_bps[] = {0, 2e9, 100e9};

	for (unsigned l = 0; l < 3; l++)
		for (unsigned servers = 0; servers <= 3; servers++) {
			expect_busiest_port(5, 4, servers, local_bps[l]);
			expect_busiest_port(7, 4, servers, local_bps[l]);
			expect_busiest_port(7, 3, servers, local_bps[l]);
			expect_busiest_port(9, 2, servers, local_bps[l]);
		}
}

/* ---- the delay of a ring beyond its bytes ---- */

static double all_sec(const struct psd_payload *payload, const struct psd_layout *layout, const struct psd_rates *rates)
{
	double transfer_sec, delay_sec;

	cost_of_collective(payload, layout, rates, &transfer_sec, &delay_sec);
	return transfer_sec + delay_sec;
}

Test(cost, size_classes_add_calls_steps_and_slowdown)
{
	const struct psd_host_costs host = {
		.collective = {{.up_to_bytes = 16384, .call_sec = 27e-6, .step_sec = 1.1e-6, .slowdown_ratio = 4},
			       {.call_sec = 90e-6, .step_sec = 5.6e-6, .slowdown_ratio = 1}},
		.n_collective_classes = 2,
	};
	const struct psd_rates rates = psd_rates_make(&host, &network, 10e9, 1, 1e12);
	const struct psd_layout layout = psd_layout_make(4, 1, 0);
	const double n = 2 * (4 - 1);
	const struct psd_payload largest_small = {.collective = &psd_ring, .elements = 16384 / 4, .value_bytes = 4};
	const struct psd_payload smallest_large = {
		.collective = &psd_ring, .elements = 16384 / 4 + 4, .value_bytes = 4};
	/* call + n step + (n/P) bytes slowdown / B, and the network's latency of each step; the bytes at full speed are
	 * the transfer */
	const double small_sec = 27e-6 + n * 1.1e-6 + n / 4 * 16384 * 4 / B + n * alpha;
	const double large_sec = 90e-6 + n * 5.6e-6 + n / 4 * 16400 / B + n * alpha;

	expect_near(all_sec(&largest_small, &layout, &rates), small_sec, "a message as large as its class");
	expect_near(all_sec(&smallest_large, &layout, &rates), large_sec, "a message just above");
}

/* A collective that reaches two thirds of the link is not slowed where the stack moves half of it; one that reaches a
 * quarter is, to that quarter. */
Test(cost, a_stack_and_a_collective_do_not_slow_each_other)
{
	const struct psd_layout layout = psd_layout_make(4, 1, 0);
	const struct psd_payload payload = {.collective = &psd_ring, .elements = 1000000, .value_bytes = 4};
	const double bits = 8.0 * 2.0 * 3.0 / 4.0 * 4e6, slowdowns[] = {1.5, 4.0}, expected_bps[] = {5e9, 10e9 / 4};

	for (unsigned i = 0; i < 2; i++) {
		const struct psd_host_costs host = {.transport_bps = 5e9,
						    .collective = {{.slowdown_ratio = slowdowns[i]}},
						    .n_collective_classes = 1};
		const struct psd_rates rates = psd_rates_make(&host, &network, 10e9, 1, 1e12);

		expect_near(cost_of_transfer_sec(&payload, &layout, &rates) +
				    psd_cost_class_sec(&payload, &layout, &rates),
			    bits / expected_bps[i], "seconds of the bytes");
	}
}

/* The first class that holds: for 8 workers by the share of each, of larger shares by how many workers there are. */
Test(cost, classes_hold_by_share_and_by_workers)
{
	const struct psd_host_costs host = {
		.collective = {{.chunk_bytes = 1024, .call_sec = 1, .slowdown_ratio = 1},
			       {.workers = 8, .call_sec = 2, .slowdown_ratio = 1},
			       {.call_sec = 3, .slowdown_ratio = 1}},
		.n_collective_classes = 3,
	};
	const struct psd_rates rates = psd_rates_make(&host, &network, 10e9, 1, 1e12);
	const struct psd_layout eight = psd_layout_make(8, 1, 0), nine = psd_layout_make(9, 1, 0);
	struct psd_payload payload = {.collective = &psd_ring, .elements = 8 * 256, .value_bytes = 4};

	expect_near(psd_cost_class_sec(&payload, &eight, &rates), 1, "a share of 1 KiB");
	payload.elements++;
	expect_near(psd_cost_class_sec(&payload, &eight, &rates), 2, "a larger share");
	payload.elements = 9 * 256 + 1;
	expect_near(psd_cost_class_sec(&payload, &nine, &rates), 3, "and more workers");
}

/* Two racks of two nodes, 10 Gbit/s each, below uplinks of 2 x 10 / 4 = 5 Gbit/s, without latency. */
static double of_two_racks_sec(const struct psd_collective *collective, enum psd_topology topology, bool is_at_once)
{
	const struct psd_host_costs host = {.copy_bps = 0};
	const struct psd_network racks = {
		.topology = topology, .payload_ratio = 1.0, .nodes_per_rack = 2, .oversubscription_ratio = 4.0};
	const struct psd_rates rates = psd_rates_make(&host, &racks, 10e9, 1, 1e12);
	const struct psd_payload payload = {.collective = collective, .elements = 4000000, .value_bytes = 4};
	struct psd_layout layout = psd_layout_make(4, 1, 0);
	double transfer_sec, delay_sec = 0.0;

	layout.nodes_per_rack = 2;
	if (is_at_once)
		transfer_sec = cost_of_transfer_sec(&payload, &layout, &rates);
	else
		cost_of_collective(&payload, &layout, &rates, &transfer_sec, &delay_sec);
	return transfer_sec + delay_sec;
}

Test(cost, uplinks_of_racks_bound_what_leaves_them)
{
	const double bits = 8.0 * 4.0 * 4000000;

	/* each of a rack's two nodes pushes a quarter to each of two nodes of the other one */
	expect_near(of_two_racks_sec(&psd_push, PSD_TOPOLOGY_RACKS, true), 4 * bits / 4 / 5e9, "push");
	/* and factors to each of these two */
	expect_near(of_two_racks_sec(&psd_broadcast, PSD_TOPOLOGY_RACKS, true), 4 * bits / 5e9, "broadcast");
	/* a half inside the rack at 10 Gbit/s, then a quarter from both nodes to the other one, and both again */
	expect_near(of_two_racks_sec(&psd_halving_doubling, PSD_TOPOLOGY_RACKS, false),
		    2 * (bits / 2 / 10e9 + 2 * bits / 4 / 5e9), "halving-doubling");
	expect_near(of_two_racks_sec(&psd_halving_doubling, PSD_TOPOLOGY_FAT_TREE, false),
		    2 * (bits / 2 / 10e9 + 2 * bits / 4 / 5e9), "a fat tree of one spine");
	/* all of it, inside the rack and between them */
	expect_near(of_two_racks_sec(&psd_recursive_doubling, PSD_TOPOLOGY_RACKS, false), bits / 10e9 + 2 * bits / 5e9,
		    "recursive doubling");
	/* rows are racks: a half twice; both columns share the uplink, in two steps of a quarter */
	expect_near(of_two_racks_sec(&psd_torus, PSD_TOPOLOGY_RACKS, false),
		    2 * bits / 2 / 10e9 + 2 * 2 * bits / 4 / 5e9, "torus");
	/* one hop of the ring leaves each rack, at half the rate: six quarters pass it */
	expect_near(of_two_racks_sec(&psd_ring, PSD_TOPOLOGY_RACKS, false), 6 * bits / 4 / 5e9, "ring");
	expect_near(of_two_racks_sec(&psd_ring, PSD_TOPOLOGY_STAR, false), 6 * bits / 4 / 10e9, "a ring on a star");
}
