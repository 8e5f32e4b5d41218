/* Partial broadcast of factors: its peers, bytes and memory by formulas; every operation of one item; keys that are
 * refused. */
#define _DEFAULT_SOURCE
#include <criterion/criterion.h>
#include <string.h>

#include "engine/program/footprint.h"
#include "tests/engine/methods/item_helper.h"

/* ---- peers ---- */

enum { MOST_WORKERS = 12, ELEMENTS = 100 };

static uint64_t elements_of(const struct psd_layout *layout, unsigned peers, uint64_t round, unsigned from, unsigned to)
{
	const struct psd_payload payload = {.collective = &psd_partial_broadcast,
					    .elements = ELEMENTS * (layout->workers - 1),
					    .value_bytes = 4,
					    .peers = peers,
					    .round = round};

	return psd_payload_range(&payload, layout, from, to).elements;
}

/* Rank r sends to ranks r + 1 + (t Q + k) mod (P - 1), k < Q. */
Test(partial, peers_take_turns)
{
	static const unsigned expected[4][2] = {{1, 2}, {3, 4}, {1, 2}, {3, 4}}; /* offsets of P = 5, Q = 2 */
	const struct psd_layout layout = psd_layout_make(5, 1, 0);

	for (unsigned t = 0; t < 4; t++)
		for (unsigned from = 0; from < 5; from++)
			for (unsigned offset = 1; offset < 5; offset++)
				cr_expect_eq(elements_of(&layout, 2, t + 1, from, (from + offset) % 5) > 0,
					     offset == expected[t][0] || offset == expected[t][1],
					     "iteration %u, %u to %u", t, from, (from + offset) % 5);
}

static void expect_turns(const struct psd_layout *layout, unsigned peers, unsigned from)
{
	const unsigned others = layout->workers - 1;

	for (unsigned to = 0; to < layout->workers; to++) {
		uint64_t met = 0;

		for (uint64_t round = 1; round <= others; round++)
			met += elements_of(layout, peers, round, from, to);
		/* Q (P - 1) messages of this worker in P - 1 iterations, equally many to each other */
		cr_expect_eq(met, from == to ? 0 : peers * ELEMENTS * others, "%u of %u, %u to %u", peers, others, from,
			     to);
		cr_expect_eq(met, others * elements_of(layout, peers, 0, from, to), "mean of %u of %u", peers, others);
	}
}

Test(partial, each_pair_meets_equally_often_and_the_mean_is_that)
{
	for (unsigned workers = 3; workers <= MOST_WORKERS; workers++) {
		const struct psd_layout layout = psd_layout_make(workers, 1, 0);

		for (unsigned peers = 1; peers + 1 < workers; peers++)
			for (unsigned from = 0; from < workers; from++)
				expect_turns(&layout, peers, from);
	}
}

static void expect_counts(const struct psd_layout *layout, unsigned peers, uint64_t round)
{
	const struct psd_payload payload = {.collective = &psd_partial_broadcast,
					    .elements = ELEMENTS * (layout->workers - 1),
					    .value_bytes = 1,
					    .peers = peers,
					    .round = round};

	for (unsigned host = 0; host < layout->workers; host++) {
		const struct psd_traffic all = psd_partial_broadcast.host_elements(&payload, layout, host);
		unsigned n_to = 0, n_from = 0;
		uint64_t sent = 0, received = 0;

		for (unsigned peer = 0; peer < layout->workers; peer++) {
			const uint64_t there = elements_of(layout, peers, round, host, peer),
				       back = elements_of(layout, peers, round, peer, host);

			n_to += there > 0;
			n_from += back > 0;
			sent += there;
			received += back;
		}
		cr_expect_eq(psd_payload_receivers(&payload, layout, host), n_to);
		cr_expect_eq(psd_payload_senders(&payload, layout, host), n_from);
		cr_expect_eq(all.sent_bytes, sent);
		cr_expect_eq(all.received_bytes, received);
	}
}

Test(partial, closed_forms_are_sums_over_pairs)
{
	for (unsigned workers = 3; workers <= MOST_WORKERS; workers++) {
		const struct psd_layout layout = psd_layout_make(workers, 3, 0);

		for (unsigned peers = 1; peers + 1 < workers; peers++)
			for (uint64_t round = 0; round <= workers; round++)
				expect_counts(&layout, peers, round);
	}
}

/* ---- operations and edges ---- */

static const char one_layer[] = "tests/data/one_layer.yaml", three_layers[] = "tests/data/maskless.yaml";
#define ONE_OF_THREE "sync: sfb, peers: 1, local_sgd: {steps: 4}"

Test(partial, a_step_by_the_mean_comes_before_the_exchange_of_drifts)
{
	expect_operations(one_layer, 4, ONE_OF_THREE, false,
			  "0 forward on device of workers after 12-1, 14-1\n"
			  "1 backward on device of workers after 0\n"
			  "2 send on network of workers, factors to factors after 1\n"
			  "3 receive on nothing of workers, factors to factors\n"
			  "4 rebuild on device of workers after 3, 1\n"
			  "5 step on device of workers after 4\n"
			  "6 send on network of workers, gradient to received after 5, of exchanges\n"
			  "7 receive on nothing of shards, gradient to received, of exchanges\n"
			  "8 reduce on processor of shards after 7, 5, of exchanges\n"
			  "9 send on network of shards, part to parameter after 8, of exchanges\n"
			  "10 receive on nothing of workers, part to parameter, of exchanges\n"
			  "11 gate on nothing of workers after 10, 8, of exchanges\n"
			  "12 barrier on device of workers after 1, 2, 5, 11\n"
			  "13 next on nothing of workers after 12\n"
			  "14 gate on nothing of workers after 0\n");
}

Test(partial, with_all_peers_the_program_is_that_of_a_broadcast)
{
	struct psd_text texts[2] = {{.bytes = NULL}, {.bytes = NULL}};
	static const char *const systems[2] = {"sync: sfb", "sync: sfb, peers: 3, local_sgd: {steps: 4}"};

	for (unsigned s = 0; s < 2; s++) {
		struct one_item item;

		open_item(&item, three_layers, 4, systems[s], true);
		for (uint32_t i = 0; i < item.made.program.n_ops; i++)
			add_operation(&texts[s], &item.made.program, i);
		close_item(&item);
	}
	cr_expect_str_eq(texts[1].bytes, texts[0].bytes);
	psd_text_release(&texts[0]);
	psd_text_release(&texts[1]);
}

/* ---- bytes and memory ---- */

/* Items of maskless.yaml: conv 3 x 3 x 3 x 8 and 8; ip1 128 x 24 and 24, ip2 24 x 10 and 10, for 64 samples each. */
enum { CONV = 224, IP1 = 3096, IP2 = 250, FACTORS = 64 * (128 + 24 + 24 + 10), WORKERS = 5 };

static struct psd_traffic traffic_of(const char *system)
{
	struct psd_traffic traffic;
	struct one_item item;

	open_item(&item, three_layers, WORKERS, system, false);
	traffic = psd_program_mean_traffic(&item.made.program, 0);
	close_item(&item);
	return traffic;
}

/* Q K (M + N) in each iteration; conv goes by a parameter server: a part of 44 elements stays, 4 go out to others. The
 * drift of both matrices does so every 4 iterations. The first node has the smaller parts: 44, 619 and 50. */
Test(partial, bytes_are_linear_in_the_number_of_peers)
{
	const uint64_t conv = CONV - 44 + 4 * 44, drifts = IP1 - 619 + 4 * 619 + IP2 - 50 + 4 * 50;
	char system[128];

	for (unsigned peers = 1; peers <= 3; peers++) {
		snprintf(system, sizeof(system), "sync: sfb, peers: %u, local_sgd: {steps: 4}", peers);
		cr_expect_eq(traffic_of(system).sent_bytes, 4 * (peers * FACTORS + conv) + 4 * drifts / 4, "%u peers",
			     peers);
	}
	cr_expect_eq(traffic_of("sync: sfb, peers: 4, local_sgd: {steps: 4}").sent_bytes,
		     traffic_of("sync: sfb").sent_bytes);
	cr_expect_eq(traffic_of("sync: sfb").sent_bytes, 4 * (4 * FACTORS + conv));
}

static struct psd_footprint footprint_of(const char *system)
{
	struct psd_footprint footprint;
	struct one_item item;

	open_item(&item, three_layers, WORKERS, system, true);
	footprint = psd_footprint_make(&item.made.program, 64);
	close_item(&item);
	return footprint;
}

/* Factors of Q + 1 workers, twice, and the parameters after the last exchange; momentum of matrices on each worker. */
Test(partial, memory_is_for_the_factors_that_come)
{
	const struct psd_footprint partial = footprint_of(ONE_OF_THREE), all = footprint_of("sync: sfb");

	cr_expect_eq(all.buffers_bytes, 4 * (2 * WORKERS * FACTORS));
	cr_expect_eq(partial.buffers_bytes, 4 * (2 * 2 * FACTORS + IP1 + IP2), "%lu", partial.buffers_bytes);
	cr_expect_eq(partial.optimiser_bytes, 4 * (IP1 + IP2), "%lu", partial.optimiser_bytes);
}

/* ---- keys ---- */

static void expect_refused(const char *keys, const char *words)
{
	static const char *const no_settings[] = {NULL};
	struct psd_scenario scenario;
	struct psd_error err = {.text = ""};
	char text[1024];

	snprintf(text, sizeof(text),
		 "model: {graph: a.yaml, batch_per_worker: 8}\ncompute: {device: v100}\ncluster: {nodes: 4, network: "
		 "{bandwidth: 1Gbps, latency: 50us}}\n"
		 "systems: [{name: A, %s}]\n",
		 keys);
	cr_expect_eq(psd_scenario_parse(&scenario, "a.yaml", text, strlen(text), no_settings, &err), PSD_EINVAL, "%s",
		     keys);
	cr_expect(strstr(err.text, words), "%s: %s", keys, err.text);
}

Test(partial, keys_that_do_not_go_together_are_refused)
{
	expect_refused("sync: sfb, peers: 1", "'peers' of system 'A' needs 'local_sgd'");
	expect_refused("sync: sfb, local_sgd: {steps: 4}", "'local_sgd' of system 'A' needs 'peers'");
	expect_refused("sync: sfb, peers: 0, local_sgd: {steps: 4}", "'peers' is '0'");
	expect_refused("sync: ps, peers: 1, local_sgd: {steps: 4}", "'peers' has no effect");
	expect_refused("sync: sfb, schedule: clocked, peers: 1, local_sgd: {steps: 4}",
		       "'schedule' is 'clocked', must be 'wait-free' with 'peers'");
	expect_refused("sync: hybrid, rule: seconds, peers: 1, local_sgd: {steps: 4}",
		       "'rule' is 'seconds', must be 'bytes' with 'peers'");
	expect_refused("sync: sfb, peers: 1, local_sgd: {steps: 4, window: 16}", "'window' of system 'A'");
	expect_refused("sync: sfb, peers: 1, local_sgd: {steps: 4, delay: 1}", "'delay' of system 'A'");
	expect_refused("sync: sfb, peers: 1, local_sgd: {steps: 4, fragments: 2}", "'fragments' of system 'A'");
	expect_refused("sync: sfb, peers: 1, local_sgd: {steps: 4, outer: {}}", "'outer' of system 'A'");
	expect_refused("sync: sfb, peers: 1, staleness: 1, local_sgd: {steps: 4}", "cannot be used together");
}
