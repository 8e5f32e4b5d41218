/* Bytes of halving and doubling; test_steps.c tests the sums, tests/sim/executor/test_schedules.c the seconds. */
#include <criterion/criterion.h>
#include <math.h>

#include "engine/collectives/collective.h"

static uint64_t sent_bytes(unsigned workers, unsigned rank)
{
	const struct psd_layout layout = psd_layout_make(workers, 1, 0);
	const struct psd_payload payload = {.collective = &psd_halving_doubling, .elements = 1024, .value_bytes = 4};

	return psd_payload_node_traffic(&payload, &layout, rank).sent_bytes;
}

/* 2^k workers: (1/2 + 1/4 + ... + 1/2^k) of the payload in each direction, as much as in a ring, in 2 k steps instead
 * of 2 (2^k - 1). */
Test(halving_doubling, a_power_of_two_sends_as_much_as_a_ring)
{
	const struct psd_members members = {.n = 8, .per_node = 1};

	cr_expect_eq(psd_halving_doubling.steps(1024, members), 2 * 3);
	for (unsigned rank = 0; rank < 8; rank++)
		cr_expect_eq(sent_bytes(8, rank), 2 * (4096 / 2 + 4096 / 4 + 4096 / 8), "rank %u", rank);
}

/* 6 = 4 + 2: groups of three. The first two of each send the other a half, then a quarter to the other group and back,
 * at last the half that they have summed to both others of the group; the third sends each of them its half. */
Test(halving_doubling, any_number_brings_groups_of_three_to_two)
{
	const struct psd_members members = {.n = 6, .per_node = 1};

	cr_expect_eq(psd_halving_doubling.steps(1024, members), 2 + 2 * 1 + 2);
	for (unsigned group = 0; group < 2; group++) {
		cr_expect_eq(sent_bytes(6, 3 * group), 4096 / 2 + 2 * 4096 / 4 + 2 * 4096 / 2);
		cr_expect_eq(sent_bytes(6, 3 * group + 1), 4096 / 2 + 2 * 4096 / 4 + 2 * 4096 / 2);
		cr_expect_eq(sent_bytes(6, 3 * group + 2), 2 * 4096 / 2);
	}
}

/* With 2^k workers, none left over: 2 (1 - 1 / 2^k) of the payload's time on a link. Otherwise each group takes two
 * steps of a half instead of one, in both phases: 2 + 2 (1/4 + ... + 1 / 2^k) = 3 - 2 / 2^k, whatever the groups. */
Test(halving_doubling, any_number_takes_the_time_of_one_payload_more)
{
	const struct psd_links links = {.far_bps = 8e3, .near_bps = INFINITY, .between_bps = INFINITY};
	const struct psd_payload payload = {.collective = &psd_halving_doubling, .elements = 1000, .value_bytes = 4};
	const struct {
		unsigned workers;
		double payloads;
	} cases[] = {{2, 1.0},	{3, 2.0},  {4, 1.5},   {5, 2.5},   {6, 2.5},   {7, 2.5},
		     {8, 1.75}, {9, 2.75}, {11, 2.75}, {12, 2.75}, {15, 2.75}, {16, 1.875}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct psd_layout layout = psd_layout_make(cases[i].workers, 1, 0);
		const double sec = psd_payload_alone_sec(&payload, &layout, 0.0, &links);

		cr_expect_float_eq(sec, 4.0 * cases[i].payloads, 0.04, "%u workers: %g s", cases[i].workers, sec);
	}
}
