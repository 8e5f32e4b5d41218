/* Bytes and seconds of a torus; test_steps.c tests the sums. */
#include <criterion/criterion.h>
#include <math.h>

#include "engine/collectives/step_times.h"

static struct psd_traffic traffic(unsigned workers, unsigned per_node, unsigned node)
{
	const struct psd_layout layout = psd_layout_make(workers, per_node, 0);
	const struct psd_payload payload = {.collective = &psd_torus, .elements = 960, .value_bytes = 4};

	return psd_payload_node_traffic(&payload, &layout, node);
}

/* 12 = 3 x 4 workers: 2 (X-1)/X of the payload along the row, 2 (Y-1)/Y of an X-th along the column. */
Test(torus, twelve_are_three_by_four)
{
	const struct psd_members members = {.n = 12, .per_node = 1};
	const uint64_t along_row = 2 * 2 * 3840 / 3, along_column = 2 * 3 * (3840 / 3) / 4;

	cr_expect_eq(psd_torus.steps(960, members), 2 * (3 - 1) + 2 * (4 - 1));
	for (unsigned rank = 0; rank < 12; rank++) {
		cr_expect_eq(traffic(12, 1, rank).sent_bytes, along_row + along_column, "rank %u", rank);
		cr_expect_eq(traffic(12, 1, rank).received_bytes, along_row + along_column, "rank %u", rank);
	}
}

/* Rows stay inside the nodes: what leaves one is four columns' fourth of the payload, 2 (Y-1)/Y of it in all. */
Test(torus, has_full_nodes_for_rows)
{
	for (unsigned node = 0; node < 6; node++)
		cr_expect_eq(traffic(24, 4, node).sent_bytes, 2 * 5 * 3840 / 6, "node %u", node);
}

Test(torus, a_prime_number_is_a_ring)
{
	const struct psd_members members = {.n = 7, .per_node = 1};

	cr_expect_eq(psd_torus.steps(960, members), psd_ring.steps(960, members));
}

/* Every step takes as long as the busiest node or, inside a node, the busiest worker. */
static double seconds_by_steps(const struct psd_payload *payload, const struct psd_layout *layout,
			       const struct psd_links *links)
{
	double sum_sec = 0.0;

	for (unsigned number = 0; number < psd_payload_steps(payload, layout); number++) {
		double far_bits[64] = {0}, step_sec = 0.0;

		for (unsigned rank = 0; rank < layout->workers; rank++) {
			const struct psd_step step = psd_payload_step(payload, layout, rank, number);
			const double bits = 8.0 * payload->value_bytes * (double)step.sent.elements;

			if (psd_layout_node(layout, step.to) == psd_layout_node(layout, rank))
				step_sec = fmax(step_sec, bits / links->near_bps);
			else
				far_bits[psd_layout_node(layout, rank)] += bits;
		}
		for (unsigned node = 0; node < layout->nodes; node++)
			if (far_bits[node] > 0.0)
				step_sec = fmax(step_sec, far_bits[node] / links->far_bps + links->latency_sec);
		sum_sec += step_sec;
	}
	return sum_sec;
}

/* Where all chunks are of one size and nodes are full, to the last digits. */
Test(torus, takes_the_seconds_of_its_steps)
{
	const struct psd_links links = {.far_bps = 1e9, .near_bps = 3e9, .latency_sec = 2e-5};

	for (unsigned workers = 2; workers <= 60; workers++)
		for (unsigned per_node = 1; per_node <= 9; per_node++) {
			const struct psd_layout layout = psd_layout_make(workers, per_node, 0);
			const struct psd_payload payload = {
				.collective = &psd_torus, .elements = 1000 * workers, .value_bytes = 4};
			const double expected = seconds_by_steps(&payload, &layout, &links);

			if (workers > per_node && workers % per_node > 0)
				continue;
			const double sec = psd_payload_alone_sec(&payload, &layout, 0.0, &links);

			cr_assert(fabs(sec - expected) <= 1e-9 * expected, "%u workers, %u a node: %g s, expected %g",
				  workers, per_node, sec, expected);
		}
}

static double timed_sec(struct psd_members members, uint64_t elements, const struct psd_links *links)
{
	const struct psd_payload payload = {.collective = &psd_torus, .elements = elements, .value_bytes = 4};

	return psd_step_times_sec(&payload, members, 32.0, links);
}

/* Where nodes are rows one node's members represent all: the result equals the timing of every member. For a size that
 * has no equal chunks it lies between the results of the next sizes that have. */
Test(torus, one_node_stands_for_all)
{
	const struct psd_links links = {.far_bps = 1e9,
					.near_bps = 3e9,
					.between_bps = 2e9,
					.latency_sec = 2e-5,
					.near_latency_sec = 1e-6,
					.per_switch = 2};

	for (unsigned nodes = 2; nodes <= 9; nodes++)
		for (unsigned per_node = 2; per_node <= 6; per_node += 2) {
			const struct psd_members members = {.n = nodes * per_node, .per_node = per_node};
			const double less_sec = timed_sec(members, 1000 * members.n, &links);
			const double more_sec = timed_sec(members, 1001 * members.n, &links);
			struct psd_payload payload = {
				.collective = &psd_torus, .elements = 1000 * members.n, .value_bytes = 4};
			const double sec = psd_torus.alone_sec(&payload, members, 0.0, &links);

			payload.elements += members.n / 2;
			const double between_sec = psd_torus.alone_sec(&payload, members, 0.0, &links);
			cr_assert(fabs(sec - less_sec) <= 1e-9 * sec, "%u nodes of %u: %.9g s, expected %.9g", nodes,
				  per_node, sec, less_sec);
			cr_assert(less_sec * (1.0 - 1e-9) <= between_sec && between_sec <= more_sec * (1.0 + 1e-9),
				  "%u nodes of %u: %.9g s, expected %.9g to %.9g", nodes, per_node, between_sec,
				  less_sec, more_sec);
		}
}

static double uneven_sec(unsigned workers, unsigned per_node, uint64_t elements, double latency_sec)
{
	const struct psd_links links = {.far_bps = 1e9, .near_bps = INFINITY, .latency_sec = latency_sec};
	const struct psd_payload payload = {.collective = &psd_torus, .elements = elements, .value_bytes = 4};

	return psd_torus.alone_sec(&payload, (struct psd_members){.n = workers, .per_node = per_node}, 0.0, &links);
}

/* Six workers on a node and two on the next are four rows of two, inside nodes. Two of a column's four hops are between
 * nodes, and both columns use them at the same time. Latency is short: a worker's last of 2 (4-1) messages waits for
 * messages over one hop and then over the other, two eighths of the payload each, and takes either hop's latency. */
Test(torus, unevenly_filled_nodes_wait_for_the_hops_between_them)
{
	const double eighth_sec = 32.0 * 100000 / 1e9, expected = 6 * 2 * eighth_sec + 2 * 1e-3;
	const double sec = uneven_sec(8, 6, 8 * 100000, 1e-3);

	cr_assert_float_eq(sec, expected, 1e-9 * expected, "%.9g s, expected %.9g", sec, expected);
}

Test(torus, a_prime_number_on_unevenly_filled_nodes_is_a_ring)
{
	const struct psd_links links = {.far_bps = 1e9, .near_bps = INFINITY, .latency_sec = 1e-2};
	const struct psd_payload payload = {.collective = &psd_ring, .elements = 700000, .value_bytes = 4};

	cr_assert_eq(uneven_sec(7, 6, 700000, 1e-2),
		     psd_ring.alone_sec(&payload, (struct psd_members){.n = 7, .per_node = 6}, 0.0, &links));
}

/* 262 workers, more than are timed: 131 rows of two, three rows a node and two on the last of 44. Bytes take next to
 * nothing. A column's 2 (131-1) messages go twice around but for two hops, which may lie inside a node: over 2 x 44
 * hops between nodes. */
Test(torus, many_on_unevenly_filled_nodes_wait_for_the_hops_between_them)
{
	const double sec = uneven_sec(262, 6, 262, 1e-2), expected = 2 * 44 * 1e-2;

	cr_assert_float_eq(sec, expected, 1e-3 * expected, "%.9g s, expected %.9g", sec, expected);
}

/* Where bytes count, too, those of a node share its link as if at a time, though they need not be at one step. */
Test(torus, many_on_unevenly_filled_nodes_are_near_the_time_of_their_steps)
{
	const double near_ratio = 0.1;
	const struct psd_links links = {.far_bps = 1e9, .near_bps = 3e9, .latency_sec = 2e-5};

	for (unsigned workers = 258; workers <= 300; workers += 14)
		for (unsigned per_node = 4; per_node <= 8; per_node += 4) {
			const struct psd_members members = {.n = workers, .per_node = per_node};
			const struct psd_payload payload = {
				.collective = &psd_torus, .elements = 1000 * workers, .value_bytes = 4};
			const double sec = psd_torus.alone_sec(&payload, members, 0.0, &links);
			const double expected = timed_sec(members, payload.elements, &links);

			cr_expect(fabs(sec - expected) <= near_ratio * expected,
				  "%u workers, %u a node: %g s, expected %g", workers, per_node, sec, expected);
		}
}

/* Racks hold whole rows, or rows whole racks, or neither: as all members timed one by one. More members than are timed
 * have a closed form, which leaves out that phases overlap. */
Test(torus, takes_the_seconds_of_its_steps_between_racks)
{
	const double closed_ratio = 0.06;
	struct psd_links links = {.far_bps = 1e9, .near_bps = 3e9, .latency_sec = 2e-5, .spines = 1};
	static const struct {
		unsigned n, per_node, nodes_per_rack;
		bool is_closed;
	} cases[] = {{16, 1, 4, false}, {16, 1, 8, false}, {16, 1, 2, false}, {24, 1, 6, false},  {36, 1, 4, false},
		     {32, 4, 2, false}, {30, 1, 7, false}, {20, 2, 4, false}, {289, 1, 34, true}, {289, 1, 9, true}};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (unsigned ratio = cases[i].is_closed ? 16 : 2; ratio <= 16; ratio *= 2) {
			const struct psd_members members = {.n = cases[i].n, .per_node = cases[i].per_node};
			const struct psd_payload payload = {
				.collective = &psd_torus, .elements = 1000 * members.n, .value_bytes = 4};

			links.per_rack = cases[i].nodes_per_rack * members.per_node;
			links.uplink_bps = cases[i].nodes_per_rack * links.far_bps / ratio;
			const double expected = timed_sec(members, payload.elements, &links);
			const double sec = psd_torus.alone_sec(&payload, members, 0.0, &links);
			cr_assert(fabs(sec - expected) <= (cases[i].is_closed ? closed_ratio : 1e-9) * expected,
				  "%u workers, %u nodes a rack, %u:1: %.9g s, expected %.9g (%+.2f %%)", members.n,
				  cases[i].nodes_per_rack, ratio, sec, expected, 100.0 * (sec / expected - 1.0));
		}
}

/* A rack that holds all nodes, or has room for more: no message crosses an uplink. */
Test(torus, takes_as_long_in_one_rack_as_without_racks)
{
	for (unsigned per_node = 1; per_node <= 8; per_node *= 2)
		for (unsigned n_racks = 1; n_racks <= 2; n_racks++) {
			const struct psd_members members = {.n = 32, .per_node = per_node};
			const struct psd_payload payload = {
				.collective = &psd_torus, .elements = 32000, .value_bytes = 4};
			struct psd_links links = {
				.far_bps = 1e9, .near_bps = 3e9, .latency_sec = 2e-5, .near_latency_sec = 5e-6};
			const double expected = psd_torus.alone_sec(&payload, members, 0.0, &links);

			links.spines = 1;
			links.uplink_bps = 2e8;
			links.per_rack = n_racks * members.n;
			cr_expect_eq(psd_torus.alone_sec(&payload, members, 0.0, &links), expected, "%u a node",
				     per_node);
		}
}
