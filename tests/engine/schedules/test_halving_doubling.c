/* What halving and doubling sends; that its steps add up is in test_steps.c, its seconds in
 * tests/sim/executor/test_schedules.c. */
#include <criterion/criterion.h>

#include "engine/schedules/pattern.h"

static uint64_t sent_bytes(unsigned workers, unsigned rank)
{
	const struct psd_layout layout = psd_layout_make(workers, 1, 0);
	const struct psd_payload payload = {.pattern = &psd_halving_doubling, .elements = 1024, .value_bytes = 4};

	return psd_payload_node_traffic(&payload, &layout, rank).sent_bytes;
}

/* 2^k workers: (1/2 + 1/4 + ... + 1/2^k) of the payload each way, as much as in a ring, in 2 k steps for 2 (2^k - 1).
 */
Test(halving_doubling, of_a_power_of_two_sends_what_a_ring_does)
{
	const struct psd_members members = {8, 1};

	cr_expect_eq(psd_halving_doubling.steps(1024, members), 2 * 3);
	for (unsigned rank = 0; rank < 8; rank++)
		cr_expect_eq(sent_bytes(8, rank), 2 * (4096 / 2 + 4096 / 4 + 4096 / 8), "rank %u", rank);
}

/* 6 = 4 + 2: ranks 0 and 2 send all of it to 1 and 3 and get it back from them; 4 and 5 have no partner. */
Test(halving_doubling, of_any_number_folds_the_rest_in_pairs)
{
	const struct psd_members members = {6, 1};
	const uint64_t among_four = 2 * (4096 / 2 + 4096 / 4);

	cr_expect_eq(psd_halving_doubling.steps(1024, members), 1 + 2 * 2 + 1);
	cr_expect_eq(sent_bytes(6, 0), 4096);
	cr_expect_eq(sent_bytes(6, 1), among_four + 4096);
	cr_expect_eq(sent_bytes(6, 4), among_four);
}
