/* What a torus sends; that its steps add up is in test_steps.c, its seconds in tests/sim/executor/test_schedules.c. */
#include <criterion/criterion.h>

#include "engine/schedules/pattern.h"

static struct psd_traffic traffic(unsigned workers, unsigned per_node, unsigned node)
{
	const struct psd_layout layout = psd_layout_make(workers, per_node, 0);
	const struct psd_payload payload = {.pattern = &psd_torus, .elements = 960, .value_bytes = 4};

	return psd_payload_node_traffic(&payload, &layout, node);
}

/* 12 = 3 x 4 workers: 2 (X-1)/X of the payload along the row, 2 (Y-1)/Y of an X-th along the column. */
Test(torus, of_twelve_is_three_by_four)
{
	const struct psd_members members = {12, 1};
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

Test(torus, of_a_prime_number_is_a_ring)
{
	const struct psd_members members = {7, 1};

	cr_expect_eq(psd_torus.steps(960, members), psd_ring.steps(960, members));
}
