/* NCCL's all-reduces: chains inside nodes, trees or a ring between them. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "engine/collectives/nccl.h"
#include "engine/cost/cost.h"
#include "tests/engine/cost/cost_helper.h"

#define NEAR_RATIO 0.02

/* 64 MiB on two nodes of eight, 100 Gbit/s between them, 40 GB/s inside. */
static double sec_of(const struct psd_collective *collective)
{
	const struct psd_host_costs host = {.copy_bps = 0};
	const struct psd_network network = {
		.payload_ratio = 1, .latency_sec = 5e-6, .local_bps = 320e9, .local_latency_sec = 2e-6};
	const struct psd_rates rates = psd_rates_make(&host, &network, 100e9, 1, 1e12);
	const struct psd_layout layout = psd_layout_make(16, 8, 0);
	const struct psd_payload payload = {.collective = collective, .elements = 1 << 24, .value_bytes = 4};
	double transfer_sec, delay_sec;

	cost_of_collective(&payload, &layout, &rates, &transfer_sec, &delay_sec);
	return transfer_sec + delay_sec;
}

/* Legend: 67.1 MB; a chunk is a 64th of them, 26 us inside a node and 84 us between nodes. */
Test(nccl, two_levels_follow_one_another)
{
	const double inside_sec = 67108864.0 / 40e9 + 6 * 26.2e-6 + 7 * 2e-6;
	const double between_sec = 67108864.0 / 12.5e9 + 2 * 5e-6;

	cr_expect_float_eq(sec_of(&psd_nccl_two_level), 2 * inside_sec + between_sec, NEAR_RATIO * 9e-3);
}

/* Each byte crosses the link once each way, while the chains work on other chunks. */
Test(nccl, trees_of_two_nodes_beat_a_ring)
{
	const double fill_sec = 2 * (7 * (26.2e-6 + 2e-6) + 83.9e-6 + 5e-6);

	cr_expect_float_eq(sec_of(&psd_nccl), 67108864.0 / 12.5e9 + fill_sec, NEAR_RATIO * 6e-3);
	cr_expect_lt(sec_of(&psd_nccl), sec_of(&psd_ring));
}

Test(nccl, takes_trees_for_small_messages_on_many_nodes)
{
	const struct psd_members one_node = {.n = 8, .per_node = 8}, two_nodes = {.n = 16, .per_node = 8},
				 eight_nodes = {.n = 64, .per_node = 8};

	cr_expect_not(psd_nccl_takes_trees(1000, one_node));
	cr_expect(psd_nccl_takes_trees(UINT64_C(1) << 30, two_nodes));
	cr_expect(psd_nccl_takes_trees(1 << 24, eight_nodes));
	cr_expect_not(psd_nccl_takes_trees((1 << 24) + 1, eight_nodes));
}

/* Sums on every rank, where chunks follow one another; the last node is not full. */
static void expect_sums(const struct psd_collective *collective, unsigned workers, unsigned per_node)
{
	const struct psd_layout layout = psd_layout_make(workers, per_node, 0);
	const struct psd_payload payload = {.collective = collective, .elements = 5 * 32768 + 1, .value_bytes = 4};
	const size_t n = payload.elements;
	int *values = malloc(workers * n * sizeof(*values)), *before = malloc(workers * n * sizeof(*before));

	cr_assert(values && before);
	for (unsigned r = 0; r < workers; r++)
		for (size_t e = 0; e < n; e++)
			values[r * n + e] = (int)(r + 1);
	for (unsigned s = 0; s < psd_payload_steps(&payload, &layout); s++) {
		memcpy(before, values, workers * n * sizeof(*values));
		for (unsigned r = 0; r < workers; r++) {
			const struct psd_step step = psd_payload_step(&payload, &layout, r, s);

			for (uint64_t e = step.sent.first; step.to != r && e < step.sent.first + step.sent.elements;
			     e++)
				values[step.to * n + e] = (step.adds ? before[step.to * n + e] : 0) + before[r * n + e];
		}
	}
	for (size_t i = 0; i < workers * n; i++)
		cr_assert_eq(values[i], (int)(workers * (workers + 1) / 2), "%s: %u workers, value %zu",
			     collective->name, workers, i);
	free(values);
	free(before);
}

Test(nccl, sums_chunk_by_chunk)
{
	expect_sums(&psd_nccl, 8, 4);
	expect_sums(&psd_nccl, 11, 4);
	expect_sums(&psd_nccl_two_level, 8, 4);
	expect_sums(&psd_nccl_two_level, 11, 4);
}

static unsigned hops_of(const struct psd_collective *collective, unsigned workers, unsigned per_node)
{
	const struct psd_payload payload = {.collective = collective, .elements = 1000, .value_bytes = 4};
	const struct psd_layout layout = psd_layout_make(workers, per_node, 0);

	return psd_payload_hops(&payload, &layout);
}

/* Up and down again: a chain of g workers has g - 1 hops, a tree over N nodes about log2 N levels. A ring has 2 (P - 1)
 * hops in all. */
Test(nccl, steps_that_wait_for_each_other)
{
	cr_expect_eq(hops_of(&psd_nccl, 8, 8), 2 * (8 - 1));
	cr_expect_eq(hops_of(&psd_nccl_two_level, 8, 4), 2 * (4 - 1) + 2 * (2 - 1));
	cr_expect_eq(hops_of(&psd_nccl_two_level, 12, 4), 2 * (4 - 1) + 2 * (3 - 1));
	/* four more workers in each of 4 nodes are as many hops more, up and down */
	cr_expect_eq(hops_of(&psd_nccl, 32, 8) - hops_of(&psd_nccl, 16, 4), 2 * 4);
}
