/* Bytes of a two-level all-reduce between nodes and inside them; test_steps.c tests the sums,
 * tests/sim/executor/test_schedules.c the seconds. */
#include <criterion/criterion.h>

#include "engine/collectives/collective.h"

/* N nodes of g workers, b bytes: a node sends 2 (N-1)/N b to others, whatever g is; a flat ring as much, too, and a
 * worker that is no leader sends b to its leader and gets b. */
Test(two_level, a_node_sends_a_ring_of_leaders)
{
	const struct psd_layout layout = psd_layout_make(4 * 8, 8, 0);
	const struct psd_payload payload = {.collective = &psd_two_level, .elements = 1000 * 4, .value_bytes = 4};

	for (unsigned node = 0; node < 4; node++) {
		const struct psd_traffic traffic = psd_payload_node_traffic(&payload, &layout, node);

		cr_expect_eq(traffic.sent_bytes, 2 * 3 * 16000 / 4, "node %u", node);
		cr_expect_eq(traffic.received_bytes, 2 * 3 * 16000 / 4, "node %u", node);
	}
	cr_expect_eq(psd_payload_bytes_between(&payload, &layout, 9, 8), 16000);
	cr_expect_eq(psd_payload_bytes_between(&payload, &layout, 8, 9), 16000);
	cr_expect_eq(psd_payload_bytes_between(&payload, &layout, 9, 0), 0);
	cr_expect_eq(psd_payload_bytes_between(&payload, &layout, 8, 16), 2 * 3 * 16000 / 4);
}

/* With one worker a node it is the ring of all. */
Test(two_level, single_workers_are_a_ring)
{
	const struct psd_layout layout = psd_layout_make(5, 1, 0);
	const struct psd_payload two_level = {.collective = &psd_two_level, .elements = 13, .value_bytes = 4};
	const struct psd_payload ring = {.collective = &psd_ring, .elements = 13, .value_bytes = 4};

	cr_assert_eq(psd_payload_steps(&two_level, &layout), psd_payload_steps(&ring, &layout));
	for (unsigned rank = 0; rank < 5; rank++)
		for (unsigned s = 0; s < psd_payload_steps(&ring, &layout); s++) {
			const struct psd_step left = psd_payload_step(&two_level, &layout, rank, s);
			const struct psd_step right = psd_payload_step(&ring, &layout, rank, s);

			cr_expect(left.to == right.to && left.from == right.from && left.adds == right.adds &&
					  left.sent.first == right.sent.first &&
					  left.sent.elements == right.sent.elements,
				  "rank %u, step %u", rank, s);
		}
}
