/* The steps of every all-reduce, executed on arrays of integers, against their closed forms. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/collectives/collective.h"
#include "engine/collectives/step_times.h"

enum { WORKERS_MAX = 17, ELEMENTS_MAX = 40, PER_NODE_MAX = 5 };

typedef void (*check_fn)(const struct psd_payload *payload, const struct psd_layout *layout);

/* Parts of an all-reduce: some claims are about whole ones. From OF_NODES on they are for full nodes. */
static const struct psd_collective *const parts[] = {&psd_reduce_scatter, &psd_all_gather, &psd_node_reduce_scatter,
						     &psd_across_nodes, &psd_node_all_gather};
enum { OF_NODES = 2, N_PARTS = sizeof(parts) / sizeof(parts[0]) };
enum { N_WHOLE = PSD_N_ALL_REDUCES + PSD_N_LIBRARIES, N_STEPWISE = N_WHOLE + N_PARTS };

/* This program's all-reduces, then those of libraries, then parts. */
static const struct psd_collective *stepwise(unsigned number)
{
	if (number >= N_WHOLE)
		return parts[number - N_WHOLE];
	return number < PSD_N_ALL_REDUCES ? psd_all_reduces[number] : psd_libraries[number - PSD_N_ALL_REDUCES];
}

/* The last three need full nodes, at least two. */
static bool fits(unsigned number, unsigned workers, unsigned per_node)
{
	return number < N_WHOLE + OF_NODES || (per_node > 1 && workers > per_node && workers % per_node == 0);
}

/* Nodes of two, three and one workers, and the other way round. */
static const struct psd_kind_of_nodes unequal[2][3] = {
	{{.end_node = 2, .end_worker = 4, .workers = 2, .link_ratio = 1.0},
	 {.end_node = 4, .end_worker = 10, .workers = 3, .link_ratio = 1.0},
	 {.end_node = 5, .end_worker = 11, .workers = 1, .link_ratio = 1.0}},
	{{.end_node = 3, .end_worker = 3, .workers = 1, .link_ratio = 1.0},
	 {.end_node = 4, .end_worker = 8, .workers = 5, .link_ratio = 1.0},
	 {.end_node = 6, .end_worker = 12, .workers = 2, .link_ratio = 1.0}},
};

static struct psd_layout unequal_layout(unsigned which)
{
	struct psd_layout layout = psd_layout_make(unequal[which][2].end_worker, PER_NODE_MAX, 0);

	psd_layout_set_kinds(&layout, unequal[which], 3);
	return layout;
}

/* Every one of them, 2 workers and more, one and several of them a node, the last node not full, nodes of unequal
 * numbers, sizes from none on. */
static void for_each_case(check_fn check)
{
	for (unsigned p = 0; p < N_STEPWISE; p++)
		for (unsigned workers = 2; workers <= WORKERS_MAX; workers++)
			for (unsigned per_node = 1; per_node <= PER_NODE_MAX; per_node++)
				for (uint64_t elements = 0; fits(p, workers, per_node) && elements <= ELEMENTS_MAX;
				     elements += 1 + elements / 5) {
					const struct psd_layout layout = psd_layout_make(workers, per_node, 0);
					const struct psd_payload payload = {
						.collective = stepwise(p), .elements = elements, .value_bytes = 4};

					check(&payload, &layout);
				}
	for (unsigned p = 0; p < N_WHOLE + OF_NODES; p++)
		for (unsigned which = 0; which < 2; which++)
			for (uint64_t elements = 0; elements <= ELEMENTS_MAX; elements += 1 + elements / 5) {
				const struct psd_layout layout = unequal_layout(which);
				const struct psd_payload payload = {
					.collective = stepwise(p), .elements = elements, .value_bytes = 4};

				check(&payload, &layout);
			}
}

/* A claim about a payload, and the test that checks it in each case. */
#define EACH_CASE(claim)                                                                                               \
	static void check_##claim(const struct psd_payload *payload, const struct psd_layout *layout);                 \
	Test(steps, claim)                                                                                             \
	{                                                                                                              \
		for_each_case(check_##claim);                                                                          \
	}                                                                                                              \
	static void check_##claim(const struct psd_payload *payload, const struct psd_layout *layout)

static int start_value(unsigned rank, uint64_t element)
{
	return (int)(rank + 1) * 100 + (int)element;
}

/* Sums on every rank at the end: sum over r of 100 (r + 1) + element. */
static int sum_of_start_values(unsigned workers, uint64_t element)
{
	return 100 * (int)(workers * (workers + 1) / 2) + (int)(workers * element);
}

struct cluster {
	int values[WORKERS_MAX][ELEMENTS_MAX];
	int before[WORKERS_MAX][ELEMENTS_MAX]; /* values at the begin of a step, which leave in it */
};

static void carry_out(struct cluster *cluster, const struct psd_payload *payload, const struct psd_layout *layout,
		      unsigned number)
{
	memcpy(cluster->before, cluster->values, sizeof(cluster->before));
	for (unsigned rank = 0; rank < layout->workers; rank++) {
		const struct psd_step step = psd_payload_step(payload, layout, rank, number);

		if (step.to == rank)
			continue;
		cr_assert_eq(psd_payload_step(payload, layout, step.to, number).from, rank,
			     "%s: step %u of %u workers: who hears rank %u listens to another",
			     payload->collective->name, number, layout->workers, rank);
		cr_assert_leq(step.sent.first + step.sent.elements, payload->elements);
		for (uint64_t e = step.sent.first; e < step.sent.first + step.sent.elements; e++)
			cluster->values[step.to][e] =
				(step.adds ? cluster->before[step.to][e] : 0) + cluster->before[rank][e];
	}
}

static bool is_of_nodes(const struct psd_collective *collective)
{
	bool is = false;

	for (unsigned p = OF_NODES; p < N_PARTS; p++)
		is = is || parts[p] == collective;
	return is;
}

/* After a reduce-scatter a rank has the sums of its part; an all-gather begins with the values of each rank's part. */
static bool ends_with_sum(const struct psd_payload *payload, const struct psd_layout *layout, unsigned rank, uint64_t e)
{
	const struct psd_range own = psd_layout_owned(layout, PSD_OWNER_WORKERS, 0, payload->elements, rank);

	if (is_of_nodes(payload->collective)) /* all three together, below */
		return false;
	return payload->collective != &psd_reduce_scatter || (e >= own.first && e < own.first + own.elements);
}

static int begins_with(const struct psd_payload *payload, const struct psd_layout *layout, unsigned rank, uint64_t e)
{
	const struct psd_range own = psd_layout_owned(layout, PSD_OWNER_WORKERS, 0, payload->elements, rank);

	if (payload->collective != &psd_all_gather)
		return start_value(rank, e);
	return e >= own.first && e < own.first + own.elements ? sum_of_start_values(layout->workers, e) : 0;
}

EACH_CASE(leave_the_sum_on_every_rank)
{
	struct cluster *cluster = calloc(1, sizeof(*cluster));

	cr_assert_not_null(cluster);
	for (unsigned rank = 0; rank < layout->workers; rank++)
		for (uint64_t e = 0; e < payload->elements; e++)
			cluster->values[rank][e] = begins_with(payload, layout, rank, e);
	for (unsigned step = 0; step < psd_payload_steps(payload, layout); step++)
		carry_out(cluster, payload, layout, step);
	for (unsigned rank = 0; rank < layout->workers; rank++)
		for (uint64_t e = 0; e < payload->elements; e++)
			cr_assert(!ends_with_sum(payload, layout, rank, e) ||
					  cluster->values[rank][e] == sum_of_start_values(layout->workers, e),
				  "%s, %u workers, %u a node, %lu elements: element %lu of rank %u is %d, expected %d",
				  payload->collective->name, layout->workers, layout->workers_per_node,
				  payload->elements, e, rank, cluster->values[rank][e],
				  sum_of_start_values(layout->workers, e));
	free(cluster);
}

/* In nodes, across nodes and in nodes again; every node is full. */
Test(steps, three_collectives_leave_the_sum_on_every_rank)
{
	struct cluster *cluster = calloc(1, sizeof(*cluster));

	cr_assert_not_null(cluster);
	for (unsigned per_node = 2; per_node <= PER_NODE_MAX; per_node++)
		for (unsigned workers = 2 * per_node; workers <= WORKERS_MAX; workers += per_node) {
			const struct psd_layout layout = psd_layout_make(workers, per_node, 0);
			struct psd_payload payload = {.elements = ELEMENTS_MAX - 3, .value_bytes = 4};

			for (unsigned rank = 0; rank < workers; rank++)
				for (uint64_t e = 0; e < payload.elements; e++)
					cluster->values[rank][e] = start_value(rank, e);
			for (unsigned p = OF_NODES; p < N_PARTS; p++) {
				payload.collective = parts[p];
				for (unsigned step = 0; step < psd_payload_steps(&payload, &layout); step++)
					carry_out(cluster, &payload, &layout, step);
			}
			for (unsigned rank = 0; rank < workers; rank++)
				for (uint64_t e = 0; e < payload.elements; e++)
					cr_assert_eq(cluster->values[rank][e], sum_of_start_values(workers, e),
						     "%u workers, %u a node: element %lu of rank %u", workers, per_node,
						     e, rank);
		}
	free(cluster);
}

/* Values that a rank sends in a step must not change during the step. Arrivals at the same positions are staged until
 * it ends, and must be sums. */
EACH_CASE(keep_what_is_added_to_what_they_send)
{
	for (unsigned number = 0; number < psd_payload_steps(payload, layout); number++)
		for (unsigned rank = 0; rank < layout->workers; rank++) {
			const struct psd_step step = psd_payload_step(payload, layout, rank, number);
			struct psd_step came;
			bool meets = false;

			if (step.to == rank || step.from == rank)
				continue;
			came = psd_payload_step(payload, layout, step.from, number);
			for (uint64_t e = came.sent.first; e < came.sent.first + came.sent.elements; e++)
				meets = meets || (e >= step.sent.first && e < step.sent.first + step.sent.elements);
			cr_assert(!meets || came.adds, "%s, %u workers: step %u of rank %u replaces what it sends",
				  payload->collective->name, layout->workers, number, rank);
			cr_assert(!meets || psd_payload_is_staged(payload, layout, rank, number),
				  "%s, %u workers: step %u of rank %u sends what it receives",
				  payload->collective->name, layout->workers, number, rank);
		}
}

/* Between every two hosts, flows carry the same bytes as the steps, in as many messages. */
EACH_CASE(flows_carry_what_the_steps_do)
{
	for (unsigned rank = 0; rank < layout->workers; rank++) {
		uint64_t by_steps[WORKERS_MAX] = {0}, by_flows[WORKERS_MAX] = {0};
		uint64_t received_by_steps[WORKERS_MAX] = {0}, received_by_flows[WORKERS_MAX] = {0};
		unsigned n_messages = 0, n_flow_messages = 0;
		struct psd_flow flow;

		for (unsigned s = 0; s < psd_payload_steps(payload, layout); s++) {
			const struct psd_step step = psd_payload_step(payload, layout, rank, s);

			by_steps[step.to] += step.to == rank ? 0 : step.sent.elements;
			n_messages += step.to != rank;
			if (step.from != rank)
				received_by_steps[step.from] +=
					psd_payload_step(payload, layout, step.from, s).sent.elements;
		}
		for (unsigned i = 0; psd_payload_flow(payload, layout, rank, i, &flow); i++) {
			by_flows[flow.to] += flow.elements;
			received_by_flows[flow.from] += flow.received_elements;
			n_flow_messages += flow.to != rank ? flow.n_messages : 0;
		}
		received_by_flows[rank] = 0;
		cr_assert_arr_eq(received_by_steps, received_by_flows, sizeof(received_by_steps),
				 "%s, %u workers, %u a node, rank %u receives", payload->collective->name,
				 layout->workers, layout->workers_per_node, rank);
		cr_assert_arr_eq(by_steps, by_flows, sizeof(by_steps), "%s, %u workers, %u a node, rank %u",
				 payload->collective->name, layout->workers, layout->workers_per_node, rank);
		cr_assert_eq(n_flow_messages, n_messages,
			     "%s, %u workers, %u a node, rank %u: %u messages, %u in flows", payload->collective->name,
			     layout->workers, layout->workers_per_node, rank, n_messages, n_flow_messages);
	}
}

/* No worker moves more inside its node than the closed form says, in either direction, and one moves exactly that much.
 * */
EACH_CASE(the_busiest_worker_inside_a_node_is_known)
{
	const double said = psd_payload_local_elements(payload, layout);
	uint64_t sent[WORKERS_MAX] = {0}, received[WORKERS_MAX] = {0};
	double most = 0.0;

	for (unsigned from = 0; from < layout->workers; from++)
		for (unsigned to = 0; to < layout->workers; to++) {
			if (from == to || psd_layout_node(layout, from) != psd_layout_node(layout, to))
				continue;
			const uint64_t elements = psd_payload_bytes_between(payload, layout, from, to) / 4;
			sent[from] += elements;
			received[to] += elements;
		}
	for (unsigned rank = 0; rank < layout->workers; rank++)
		most = fmax(most, (double)(sent[rank] > received[rank] ? sent[rank] : received[rank]));
	/* chunks differ by an element, and closed forms count their mean */
	cr_assert(fabs(said - most) <= 2.0 * WORKERS_MAX, "%s, %u workers, %u a node, %lu elements: %g, expected %g",
		  payload->collective->name, layout->workers, layout->workers_per_node, payload->elements, said, most);
}

/* The same behind switches, where what leaves a node counts as well; and what passes an uplink. */
static void check_switches(const struct psd_payload *payload, const struct psd_layout *without)
{
	struct psd_layout layout = *without;

	for (layout.workers_per_switch = 1; layout.workers_per_switch < PER_NODE_MAX; layout.workers_per_switch++) {
		double ways[2][WORKERS_MAX] = {{0}}, uplinks[2][2 * WORKERS_MAX] = {{0}};
		struct psd_inside most = {0.0, 0.0};
		const struct psd_inside said = psd_payload_inside(payload, &layout);

		for (unsigned from = 0; from < layout.workers; from++)
			for (unsigned to = 0; to < layout.workers; to++) {
				const double elements =
					from == to
						? 0.0
						: (double)psd_payload_bytes_between(payload, &layout, from, to) / 4.0;
				const bool crosses = psd_layout_reach(&layout, from, to) != PSD_REACH_NEAR;

				ways[0][from] += elements;
				ways[1][to] += elements;
				uplinks[0][psd_layout_switch(&layout, from)] += crosses ? elements : 0.0;
				uplinks[1][psd_layout_switch(&layout, to)] += crosses ? elements : 0.0;
			}
		for (unsigned i = 0; i < 2 * WORKERS_MAX; i++) {
			most.switch_elements = fmax(most.switch_elements, fmax(uplinks[0][i], uplinks[1][i]));
			if (i < WORKERS_MAX)
				most.worker_elements = fmax(most.worker_elements, fmax(ways[0][i], ways[1][i]));
		}
		/* parts differ by an element, and what comes back may be the smaller ones */
		cr_assert(fabs(said.worker_elements - most.worker_elements) <= WORKERS_MAX &&
				  fabs(said.switch_elements - most.switch_elements) <= WORKERS_MAX,
			  "%s, %u workers, %u a node, %u a switch, %lu elements: %g and %g, expected %g and %g",
			  payload->collective->name, layout.workers, layout.workers_per_node, layout.workers_per_switch,
			  payload->elements, said.worker_elements, said.switch_elements, most.worker_elements,
			  most.switch_elements);
	}
}

Test(steps, the_busiest_links_behind_switches_are_known)
{
	static const struct psd_collective *const at_once[] = {&psd_push,	 &psd_pull,	   &psd_broadcast,
							       &psd_to_root,	 &psd_from_root,   &psd_to_leader,
							       &psd_from_leader, &psd_leader_push, &psd_leader_pull};

	for_each_case(check_switches);
	for (unsigned i = 0; i < sizeof(at_once) / sizeof(at_once[0]); i++)
		for (unsigned workers = 2; workers <= WORKERS_MAX; workers++)
			for (unsigned per_node = 1; per_node <= PER_NODE_MAX; per_node++) {
				const struct psd_layout layout = psd_layout_make(workers, per_node, 0);
				const struct psd_payload payload = {
					.collective = at_once[i], .elements = 1000 * layout.shards, .value_bytes = 4};

				check_switches(&payload, &layout);
			}
}

/* A node's bytes are those of all pairs of hosts of which one is on it. */
EACH_CASE(the_bytes_of_each_node_are_known)
{
	for (unsigned node = 0; node < layout->nodes; node++) {
		const struct psd_traffic said = psd_payload_node_traffic(payload, layout, node);
		struct psd_traffic sum = {0, 0};

		for (unsigned from = 0; from < layout->workers; from++)
			for (unsigned to = 0; to < layout->workers; to++) {
				const bool is_out = psd_layout_node(layout, from) == node;
				const bool is_in = psd_layout_node(layout, to) == node;

				if (is_out != is_in)
					*(is_out ? &sum.sent_bytes : &sum.received_bytes) +=
						psd_payload_bytes_between(payload, layout, from, to);
			}
		cr_assert(said.sent_bytes == sum.sent_bytes && said.received_bytes == sum.received_bytes,
			  "%s, %u workers, %u a node, %lu elements: node %u sends %lu, expected %lu, receives %lu, "
			  "expected %lu",
			  payload->collective->name, layout->workers, layout->workers_per_node, payload->elements, node,
			  said.sent_bytes, sum.sent_bytes, said.received_bytes, sum.received_bytes);
	}
}

/* A rack's bytes are those of all pairs of hosts of which one is in it; separate servers included. */
static void check_racks(const struct psd_payload *payload, const struct psd_layout *layout)
{
	for (unsigned rack = 0; rack < psd_layout_racks(layout); rack++) {
		const struct psd_traffic said = psd_payload_rack_traffic(payload, layout, rack);
		struct psd_traffic sum = {0, 0};

		for (unsigned from = 0; from < psd_layout_hosts(layout); from++)
			for (unsigned to = 0; to < psd_layout_hosts(layout); to++) {
				const bool is_out = psd_layout_rack(layout, psd_layout_node(layout, from)) == rack;
				const bool is_in = psd_layout_rack(layout, psd_layout_node(layout, to)) == rack;

				if (is_out != is_in)
					*(is_out ? &sum.sent_bytes : &sum.received_bytes) +=
						psd_payload_bytes_between(payload, layout, from, to);
			}
		cr_assert(said.sent_bytes == sum.sent_bytes && said.received_bytes == sum.received_bytes,
			  "%s, %u workers, %u a node, %u nodes a rack: rack %u sends %lu, expected %lu, receives %lu, "
			  "expected %lu",
			  payload->collective->name, layout->workers, layout->workers_per_node, layout->nodes_per_rack,
			  rack, said.sent_bytes, sum.sent_bytes, said.received_bytes, sum.received_bytes);
	}
}

Test(steps, the_bytes_of_each_rack_are_known)
{
	static const struct psd_collective *const at_once[] = {&psd_push,	 &psd_pull,	   &psd_broadcast,
							       &psd_to_root,	 &psd_from_root,   &psd_to_leader,
							       &psd_from_leader, &psd_leader_push, &psd_leader_pull};
	static const uint64_t servers_in[] = {1, 0, 3};

	for (unsigned i = 0; i < 36 * sizeof(at_once) / sizeof(at_once[0]); i++) {
		struct psd_layout layout = psd_layout_make(7, 1 + i / 9 % 2, i / 18 % 2 * 5);
		const struct psd_payload payload = {.collective = at_once[i % 9], .elements = 1001, .value_bytes = 4};

		layout.nodes_per_rack = 1 + i / 36 % 4;
		layout.servers_in = servers_in;
		layout.n_servers_in = i / 144 % 2 * 3;
		check_racks(&payload, &layout);
	}
}

/* ---- the ring ---- */

Test(steps, a_ring_sends_two_shares_of_all_but_its_own)
{
	for (unsigned workers = 2; workers <= WORKERS_MAX; workers++) {
		const uint64_t elements = UINT64_C(1000) * workers;
		const struct psd_layout layout = psd_layout_make(workers, 1, 0);
		const struct psd_payload payload = {.collective = &psd_ring, .elements = elements, .value_bytes = 4};
		const uint64_t expected = 2 * (workers - 1) * elements / workers;

		for (unsigned rank = 0; rank < workers; rank++)
			cr_assert_eq(psd_payload_bytes_between(&payload, &layout, rank, (rank + 1) % workers),
				     4 * expected, "%u workers, rank %u", workers, rank);
	}
}

/* ---- runs of hosts ---- */

/* Bytes to consecutive hosts are the sum of those to each. */
Test(steps, bytes_to_a_run_of_hosts_are_those_to_each)
{
	static const struct psd_collective *const patterns[] = {&psd_push, &psd_pull, &psd_broadcast};
	const struct psd_layout layout = psd_layout_make(WORKERS_MAX, 1, 0);

	for (unsigned i = 0; i < 3 * ELEMENTS_MAX; i++) {
		const struct psd_payload payload = {.collective = patterns[i % 3], .elements = i / 3, .value_bytes = 4};

		for (unsigned from = 0; from < WORKERS_MAX; from++)
			for (unsigned to = 0; to < WORKERS_MAX; to++) {
				uint64_t sum = 0;

				for (unsigned n = 1; to + n <= WORKERS_MAX && (from < to || from >= to + n); n++) {
					sum += psd_payload_bytes_between(&payload, &layout, from, to + n - 1);
					cr_assert_eq(psd_payload_bytes_to_run(&payload, &layout, from, to, n), sum,
						     "%s of %lu elements: %u to %u hosts from %u on",
						     payload.collective->name, payload.elements, from, n, to);
				}
			}
	}
}

/* The elements of a host are the sum over all others, on its node or not. */
Test(steps, elements_of_a_host_are_those_between_it_and_each)
{
	static const struct psd_collective *const patterns[] = {&psd_push,	  &psd_pull,	    &psd_broadcast,
								&psd_to_root,	  &psd_from_root,   &psd_to_leader,
								&psd_from_leader, &psd_leader_push, &psd_leader_pull};

	for (unsigned i = 0; i < 9 * 3 * 4 * 5 * ELEMENTS_MAX; i++) {
		const unsigned l = i / 9;
		const struct psd_layout layout = psd_layout_make(5 + l % 3, 1 + l / 3 % 4, l / 12 % 5);
		const struct psd_payload payload = {.collective = patterns[i % 9],
						    .elements = l / 60,
						    .value_bytes = 1,
						    .root = psd_layout_shard_host(&layout, l % layout.shards)};

		for (unsigned host = 0; host < psd_layout_hosts(&layout); host++) {
			const struct psd_collective *reverse = payload.collective->reverse_of;
			const struct psd_traffic said =
				(reverse ? reverse : payload.collective)->host_elements(&payload, &layout, host);
			struct psd_traffic sum = {0, 0};

			for (unsigned peer = 0; peer < psd_layout_hosts(&layout); peer++) {
				if (peer == host)
					continue;
				*(reverse ? &sum.received_bytes : &sum.sent_bytes) +=
					psd_payload_bytes_between(&payload, &layout, host, peer);
				*(reverse ? &sum.sent_bytes : &sum.received_bytes) +=
					psd_payload_bytes_between(&payload, &layout, peer, host);
			}
			cr_assert(said.sent_bytes == sum.sent_bytes && said.received_bytes == sum.received_bytes,
				  "%s of %lu elements, %u workers, %u servers: host %u", payload.collective->name,
				  payload.elements, layout.workers, layout.has_separate_servers ? layout.shards : 0,
				  host);
		}
	}
}

/* Receivers of a root's pattern are counted without looking at every pair. */
Test(steps, receivers_are_ranks_that_get_bytes)
{
	static const struct psd_collective *const patterns[] = {&psd_to_root,	  &psd_from_root,  &psd_push,
								&psd_pull,	  &psd_to_leader,  &psd_from_leader,
								&psd_leader_push, &psd_leader_pull};

	for (unsigned i = 0; i < 8 * 30; i++) {
		const struct psd_layout layout = psd_layout_make(4 + i / 8 % 3, 1 + i / 8 % 2, i / 8 % 5);
		const struct psd_payload payload = {.collective = patterns[i % 8],
						    .elements = i / 8,
						    .value_bytes = 4,
						    .root = psd_layout_shard_host(&layout, i % layout.shards)};

		for (unsigned from = 0; from < psd_layout_hosts(&layout); from++) {
			unsigned n = 0;

			for (unsigned to = 0; to < psd_layout_hosts(&layout); to++)
				n += to != from && psd_payload_bytes_between(&payload, &layout, from, to) > 0;
			cr_assert_eq(psd_payload_receivers(&payload, &layout, from), n, "%s: host %u",
				     payload.collective->name, from);
		}
	}
}

/* ---- flows that begin together and share uplinks of racks ---- */

static double flows_sec(const struct psd_collective *collective, uint64_t elements, unsigned workers, double uplink_bps)
{
	const struct psd_payload payload = {.collective = collective, .elements = elements, .value_bytes = 4};
	const struct psd_links links = {
		.far_bps = 1e9, .near_bps = INFINITY, .per_rack = 2, .spines = 1, .uplink_bps = uplink_bps};

	return psd_step_times_flows_sec(&payload, (struct psd_members){.n = workers, .per_node = 1}, &links);
}

/* 8 workers on racks of 2. A ring's worker sends 14/8 of 8000 values of 32 bits to the next one; of each rack one
 * worker sends to another rack. */
Test(steps, a_slow_uplink_bounds_a_rings_flows)
{
	const double bits = 14.0 / 8 * 8000 * 32;

	cr_expect_float_eq(flows_sec(&psd_ring, 8000, 8, 1e9), bits / 1e9, 1e-12);
	cr_expect_float_eq(flows_sec(&psd_ring, 8000, 8, 0.25e9), bits / 0.25e9, 1e-12);
}

/* 4 workers exchange all 1000 values with the neighbour in their rack, and with the worker two ranks away. Both workers
 * of a rack share its uplink. */
Test(steps, flows_to_another_rack_share_an_uplink)
{
	const double bits = 1000 * 32;

	/* each of a worker's two flows has half of its link, or a quarter if the uplink is half as fast as a link */
	cr_expect_float_eq(flows_sec(&psd_recursive_doubling, 1000, 4, 1e9), bits / 0.5e9, 1e-12);
	cr_expect_float_eq(flows_sec(&psd_recursive_doubling, 1000, 4, 0.5e9), bits / 0.25e9, 1e-12);
}

/* 2048 workers have 11 partners, 10 of them in other racks: 20 messages of a rack pass its uplink. */
Test(steps, the_busiest_uplink_of_many_workers_counts)
{
	cr_expect_float_eq(flows_sec(&psd_recursive_doubling, 100, 2048, 1e9), 20 * 100 * 32 / 1e9, 1e-12);
	cr_expect_float_eq(flows_sec(&psd_recursive_doubling, 100, 2048, 8e9), 11 * 100 * 32 / 1e9, 1e-12);
}
