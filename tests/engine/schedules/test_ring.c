/* The steps of a ring, carried out on arrays of integers. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cost/layout.h"
#include "engine/schedules/ring.h"

enum { WORKERS_MAX = 9, ELEMENTS_MAX = 64 };

static int start_value(unsigned rank, uint64_t element)
{
	return (int)(rank + 1) * 100 + (int)element;
}

/* What every rank must hold in the end: sum over r of 100 (r + 1) + element. */
static int sum_of_start_values(unsigned workers, uint64_t element)
{
	return 100 * (int)(workers * (workers + 1) / 2) + (int)(workers * element);
}

struct cluster {
	int values[WORKERS_MAX][ELEMENTS_MAX];
	int before[WORKERS_MAX][ELEMENTS_MAX]; /* what leaves in a step is what was there when it began */
};

static void carry_out(struct cluster *cluster, unsigned workers, uint64_t elements, unsigned step)
{
	memcpy(cluster->before, cluster->values, sizeof(cluster->before));
	for (unsigned rank = 0; rank < workers; rank++) {
		const struct psd_ring_step move = psd_ring_step(elements, workers, rank, step);
		const unsigned next = (rank + 1) % workers;
		cr_assert_leq(move.first_element + move.elements, elements, "%u workers, step %u of rank %u", workers,
			      step, rank);
		cr_assert_eq(move.is_reducing, step < workers - 1);
		for (uint64_t e = move.first_element; e < move.first_element + move.elements; e++) {
			const int sent = cluster->before[rank][e];
			cluster->values[next][e] = move.is_reducing ? cluster->before[next][e] + sent : sent;
		}
	}
}

static void expect_sum_everywhere(unsigned workers, uint64_t elements)
{
	struct cluster *cluster = calloc(1, sizeof(*cluster));

	cr_assert_not_null(cluster);
	for (unsigned rank = 0; rank < workers; rank++)
		for (uint64_t e = 0; e < elements; e++)
			cluster->values[rank][e] = start_value(rank, e);
	for (unsigned step = 0; step < 2 * (workers - 1); step++)
		carry_out(cluster, workers, elements, step);
	for (unsigned rank = 0; rank < workers; rank++)
		for (uint64_t e = 0; e < elements; e++)
			cr_assert_eq(cluster->values[rank][e], sum_of_start_values(workers, e),
				     "%u workers, %lu elements: element %lu of rank %u is %d, expected %d", workers,
				     elements, e, rank, cluster->values[rank][e], sum_of_start_values(workers, e));
	free(cluster);
}

Test(ring, steps_leave_the_sum_on_every_rank)
{
	for (unsigned workers = 2; workers <= WORKERS_MAX; workers++)
		for (uint64_t elements = 0; elements <= ELEMENTS_MAX; elements++)
			expect_sum_everywhere(workers, elements);
}

/* In each half of the ring a rank sends every chunk but one. */
Test(ring, each_half_sends_all_chunks_but_one)
{
	for (unsigned workers = 2; workers <= WORKERS_MAX; workers++)
		for (unsigned rank = 0; rank < workers; rank++)
			for (unsigned half = 0; half < 2; half++) {
				bool is_sent[ELEMENTS_MAX] = {false};
				uint64_t n_sent = 0;
				for (unsigned s = 0; s < workers - 1; s++) {
					const struct psd_ring_step move =
						psd_ring_step(ELEMENTS_MAX, workers, rank, half * (workers - 1) + s);
					for (uint64_t e = move.first_element; e < move.first_element + move.elements;
					     e++) {
						cr_assert_not(is_sent[e], "%u workers: rank %u sends element %lu twice",
							      workers, rank, e);
						is_sent[e] = true;
						n_sent++;
					}
				}
				const uint64_t chunk = ELEMENTS_MAX / workers;
				const uint64_t kept = ELEMENTS_MAX - n_sent;
				cr_assert(kept == chunk || (kept == chunk + 1 && ELEMENTS_MAX % workers != 0),
					  "%u workers: rank %u keeps %lu of %d in half %u", workers, rank, kept,
					  ELEMENTS_MAX, half);
			}
}

static uint64_t sent_elements(uint64_t elements, unsigned workers, unsigned rank)
{
	uint64_t sum = 0;

	for (unsigned step = 0; step < 2 * (workers - 1); step++)
		sum += psd_ring_step(elements, workers, rank, step).elements;
	return sum;
}

Test(ring, a_rank_sends_two_shares_of_all_but_its_own)
{
	for (unsigned workers = 2; workers <= WORKERS_MAX; workers++) {
		const uint64_t elements = UINT64_C(1000) * workers;
		const struct psd_layout layout = psd_layout_make(workers, 1, 0);
		const struct psd_payload payload = {PSD_PATTERN_RING, elements, 4, 0};
		const uint64_t expected = 2 * (workers - 1) * elements / workers;
		for (unsigned rank = 0; rank < workers; rank++)
			cr_assert_eq(sent_elements(elements, workers, rank), expected, "%u workers, rank %u", workers,
				     rank);
		cr_assert_eq(psd_payload_bytes_between(&payload, &layout, 0, 1), 4 * expected, "%u workers", workers);
	}
}

Test(ring, all_ranks_together_send_two_shares_of_every_element)
{
	for (unsigned workers = 2; workers <= WORKERS_MAX; workers++)
		for (uint64_t elements = 0; elements <= 40; elements++) {
			uint64_t sum = 0;
			for (unsigned rank = 0; rank < workers; rank++)
				sum += sent_elements(elements, workers, rank);
			cr_assert_eq(sum, 2 * (workers - 1) * elements, "%u workers, %lu elements", workers, elements);
		}
}

Test(ring, what_a_rank_sends_is_the_sum_of_its_steps)
{
	for (unsigned workers = 2; workers <= WORKERS_MAX; workers++)
		for (uint64_t elements = 0; elements <= ELEMENTS_MAX; elements++)
			for (unsigned rank = 0; rank < workers; rank++) {
				uint64_t sum = 0;

				for (unsigned step = 0; step < 2 * (workers - 1); step++)
					sum += psd_ring_step(elements, workers, rank, step).elements;
				cr_expect_eq(psd_ring_sent_elements(elements, workers, rank), sum,
					     "%u workers, rank %u", workers, rank);
			}
}
