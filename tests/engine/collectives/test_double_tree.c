/* Bytes of the trees, the order of chunks, and their seconds; test_steps.c tests the sums. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "engine/collectives/collective.h"
#include "engine/collectives/step_times.h"

enum { FOUR_CHUNKS = 2 * 4 * 32768 + 3 }; /* in each half, of at least 32768 elements */

static struct psd_payload payload_of(uint64_t elements)
{
	return (struct psd_payload){.collective = &psd_double_tree, .elements = elements, .value_bytes = 4};
}

/* The first and the last rank are each one tree's root and the other's leaf: half of the payload up and half of it
 * down. All others are leaves of one tree, one edge, and have three edges in the other: each carries a half up and a
 * half down, of which two leave here and two come in. */
Test(double_tree, sends_twice_the_payload_from_all_but_the_roots)
{
	const struct psd_layout layout = psd_layout_make(8, 1, 0);
	const struct psd_payload payload = payload_of(1024);

	for (unsigned node = 0; node < 8; node++)
		cr_expect_eq(psd_payload_node_traffic(&payload, &layout, node).sent_bytes, (node % 7 ? 2 : 1) * 4096,
			     "rank %u", node);
}

/* Every edge except the roots', 2 (n - 1) in all, carries one half of the payload up and back. */
Test(double_tree, has_two_trees_of_any_number)
{
	for (unsigned n = 2; n <= 70; n++) {
		const struct psd_layout layout = psd_layout_make(n, 1, 0);
		const struct psd_payload payload = payload_of(1000);
		uint64_t sum = 0;

		for (unsigned node = 0; node < n; node++) {
			const uint64_t sent = psd_payload_node_traffic(&payload, &layout, node).sent_bytes;

			cr_expect_leq(sent, 2 * 4000, "%u of %u", node, n);
			sum += sent;
		}
		cr_expect_eq(sum, UINT64_C(2) * (n - 1) * 2 * 2000, "%u workers", n);
	}
}

/* A chunk moves by one of D levels every two steps, and the next one follows it: 2 (C + D - 1) steps up, and as many
 * down. */
Test(double_tree, has_more_chunks_for_larger_payloads)
{
	const struct psd_members eight = {.n = 8, .per_node = 1};

	cr_expect_eq(psd_double_tree.steps(1000, eight), 2 * 2 * (1 + 3 - 1));
	cr_expect_eq(psd_double_tree.steps(FOUR_CHUNKS, eight), 2 * 2 * (4 + 3 - 1));
	cr_expect_eq(psd_double_tree.steps(UINT64_C(1) << 40, eight), 2 * 2 * (64 + 3 - 1));
}

/* A rank sends one message and receives one in a step. If edges of one rank took the same steps, one message would be
 * lost once chunks are under way on all of them. */
Test(double_tree, edges_that_meet_take_turns)
{
	for (unsigned n = 4; n <= 70; n++) {
		const struct psd_layout layout = psd_layout_make(n, 1, 0);
		const struct psd_payload payload = payload_of(UINT64_C(1) << 30);

		for (unsigned rank = 0; rank < n; rank++) {
			unsigned n_sent = 0, n_expected = 0;
			struct psd_flow flow;

			for (unsigned s = 0; s < psd_payload_steps(&payload, &layout); s++)
				n_sent += psd_payload_step(&payload, &layout, rank, s).to != rank;
			for (unsigned i = 0; psd_payload_flow(&payload, &layout, rank, i, &flow); i++)
				n_expected += flow.to != rank ? flow.n_messages : 0;
			cr_assert_eq(n_sent, n_expected, "rank %u of %u sends %u, expected %u", rank, n, n_sent,
				     n_expected);
		}
	}
}

/* Every rank's values are its number + 1 all over: sums are n (n + 1) / 2. */
static void check_sum(unsigned n)
{
	const struct psd_members members = {.n = n, .per_node = 1};
	const struct psd_payload payload = payload_of(FOUR_CHUNKS);
	const struct psd_layout layout = psd_layout_make(n, 1, 0);
	int *values = calloc((size_t)n * FOUR_CHUNKS, sizeof(*values));

	cr_assert_not_null(values);
	for (size_t i = 0; i < (size_t)n * FOUR_CHUNKS; i++)
		values[i] = (int)(i / FOUR_CHUNKS) + 1;
	for (unsigned s = 0; s < psd_double_tree.steps(FOUR_CHUNKS, members); s++)
		for (unsigned rank = 0; rank < n; rank++) {
			const struct psd_step step = psd_double_tree.step(FOUR_CHUNKS, members, rank, s);
			const uint64_t end = step.sent.first + step.sent.elements;

			cr_assert(step.to == rank || !psd_payload_is_staged(&payload, &layout, rank, s));
			for (uint64_t e = step.sent.first; step.to != rank && e < end; e++) {
				int *there = &values[(size_t)step.to * FOUR_CHUNKS + e];

				*there = (step.adds ? *there : 0) + values[(size_t)rank * FOUR_CHUNKS + e];
			}
		}
	for (size_t i = 0; i < (size_t)n * FOUR_CHUNKS; i++)
		cr_assert_eq(values[i], (int)(n * (n + 1) / 2), "element %zu of %u workers", i, n);
	free(values);
}

Test(double_tree, chunks_leave_the_sum_on_every_rank)
{
	for (unsigned n = 4; n <= 11; n++)
		check_sum(n);
}

/* One worker a node, so that messages share no link: each leaves when the one before has left, those of earlier steps
 * have arrived, and its receiver has an earlier one from another sender. */
static double by_every_message_sec(const struct psd_payload *payload, unsigned n, double bps, double latency_sec)
{
	enum { MOST = 64 };
	const struct psd_members members = {.n = n, .per_node = 1};
	const unsigned n_steps = psd_double_tree.steps(payload->elements, members);
	double left_sec[MOST] = {0}, there_sec[MOST] = {0}, before_sec[MOST] = {0}, last_sec = 0.0;
	unsigned heard[MOST] = {0};

	for (unsigned s = 0; s < n_steps; s++) {
		double arrival_sec[MOST] = {0};

		for (unsigned rank = 0; rank < n; rank++) {
			const unsigned from = psd_double_tree.step(payload->elements, members, rank, s).from;

			if (from != rank && from != heard[rank])
				before_sec[rank] = there_sec[rank];
			heard[rank] = from != rank ? from : heard[rank];
		}
		for (unsigned rank = 0; rank < n; rank++) {
			const struct psd_step step = psd_double_tree.step(payload->elements, members, rank, s);

			if (step.to == rank)
				continue;
			left_sec[rank] = fmax(fmax(left_sec[rank], there_sec[rank]), before_sec[step.to]) +
					 8.0 * payload->value_bytes * (double)step.sent.elements / bps;
			arrival_sec[step.to] = left_sec[rank] + latency_sec;
		}
		for (unsigned rank = 0; rank < n; rank++) {
			there_sec[rank] = fmax(there_sec[rank], arrival_sec[rank]);
			last_sec = fmax(last_sec, there_sec[rank]);
		}
	}
	return last_sec;
}

/* Few chunks and more than are timed, latencies from none to much longer than a chunk's 0.1 ms. */
Test(double_tree, takes_the_seconds_of_its_messages)
{
	static const double latencies_sec[] = {0.0, 2e-5, 1e-3, 1e-2};
	static const unsigned chunks[] = {1, 2, 4, 9, 30, 64};
	const double parts_differ_ratio = 1e-4; /* by an element of 32768 */

	for (unsigned n = 2; n <= 64; n++)
		for (unsigned c = 0; c < 6; c++)
			for (unsigned l = 0; l < 4; l++) {
				const struct psd_payload payload = payload_of(2 * 32768 * chunks[c] + 4);
				const struct psd_links links = {
					.far_bps = 1e10, .near_bps = 1e11, .latency_sec = latencies_sec[l]};
				const double expected = by_every_message_sec(&payload, n, 1e10, latencies_sec[l]);
				const double sec = psd_double_tree.alone_sec(
					&payload, (struct psd_members){.n = n, .per_node = 1}, 0.0, &links);

				cr_assert(fabs(sec - expected) <= parts_differ_ratio * expected,
					  "%u workers, %u chunks, latency %g s: %.9g s, expected %.9g", n, chunks[c],
					  latencies_sec[l], sec, expected);
			}
}

/* Where racks share uplinks, the time of a chunk more is found from 8 and 16 chunks. */
Test(double_tree, takes_the_seconds_of_its_messages_between_racks)
{
	const double more_chunks_ratio = 0.03;

	for (unsigned n = 8; n <= 24; n += 16)
		for (unsigned per_rack = 3; per_rack <= 8; per_rack += 5)
			for (unsigned ratio = 4; ratio <= 16; ratio *= 4) {
				const struct psd_payload payload = payload_of(2 * 32768 * 30);
				const struct psd_links links = {.far_bps = 1e10,
								.near_bps = 1e11,
								.latency_sec = 2e-5,
								.per_rack = per_rack,
								.spines = 1,
								.uplink_bps = per_rack * 1e10 / ratio};
				const struct psd_members members = {.n = n, .per_node = 1};
				const double expected = psd_step_times_sec(&payload, members, 32.0, &links);
				const double sec = psd_double_tree.alone_sec(&payload, members, 0.0, &links);

				cr_assert(fabs(sec - expected) <= more_chunks_ratio * expected,
					  "%u workers, %u in a rack, %u:1: %.9g s, expected %.9g", n, per_rack, ratio,
					  sec, expected);
			}
}
