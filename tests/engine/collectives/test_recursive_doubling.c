/* Bytes of recursive doubling; test_steps.c tests the sums, tests/sim/executor/test_schedules.c the seconds. */
#include <criterion/criterion.h>

#include "engine/collectives/collective.h"

static uint64_t sent_bytes(unsigned workers, unsigned rank)
{
	const struct psd_layout layout = psd_layout_make(workers, 1, 0);
	const struct psd_payload payload = {.collective = &psd_recursive_doubling, .elements = 1024, .value_bytes = 4};

	return psd_payload_node_traffic(&payload, &layout, rank).sent_bytes;
}

/* All of the payload in each of log2 steps. */
Test(recursive_doubling, a_power_of_two_sends_all_at_each_distance)
{
	const struct psd_members members = {.n = 8, .per_node = 1};

	cr_expect_eq(psd_recursive_doubling.steps(1024, members), 3);
	for (unsigned rank = 0; rank < 8; rank++)
		cr_expect_eq(sent_bytes(8, rank), 3 * 4096, "rank %u", rank);
}

/* 7 = 4 + 3: ranks 0, 2 and 4 send all of it to 1, 3 and 5 and get it back; 6 has no partner. */
Test(recursive_doubling, any_number_combines_the_rest_in_pairs)
{
	const struct psd_members members = {.n = 7, .per_node = 1};

	cr_expect_eq(psd_recursive_doubling.steps(1024, members), 1 + 2 + 1);
	cr_expect_eq(sent_bytes(7, 0), 4096);
	cr_expect_eq(sent_bytes(7, 5), 2 * 4096 + 4096);
	cr_expect_eq(sent_bytes(7, 6), 2 * 4096);
}
