/* Which chunks of gradients travel. */
#include <criterion/criterion.h>
#include <math.h>

#include "engine/program/chunks.h"

static const struct psd_sparse published = {.sparsity = 0.85, .chunk_elements = 32000, .warmup_iterations = 100};

Test(chunks, cover_an_exchange_without_gaps)
{
	static const uint64_t sizes[] = {1, 31999, 32000, 32001, 64000, 60967976};

	for (unsigned s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
		const uint64_t n = psd_chunks_in(&published, sizes[s]);
		uint64_t covered = 0;

		for (uint64_t i = 0; i < n; i++) {
			const struct psd_range range = psd_chunks_range(&published, sizes[s], i);

			cr_expect_eq(range.first, covered);
			cr_expect(range.elements == 32000 || i == n - 1);
			cr_expect_gt(range.elements, 0);
			covered += range.elements;
		}
		cr_expect_eq(covered, sizes[s]);
	}
	cr_expect_eq(psd_chunks_in(&published, 0), 0);
}

/* 200 chunks: in iteration i of 100 the sparsity is 0.85 i / 100, and n - floor(200 * 0.85 i / 100) are left. */
Test(chunks, fewer_travel_while_the_sparsity_rises)
{
	const struct psd_sparse at_once = {.sparsity = 0.85, .chunk_elements = 1};

	cr_expect_eq(psd_chunks_kept(&published, 200, 0), 200);
	cr_expect_eq(psd_chunks_kept(&published, 200, 1), 200 - 1);   /* floor(1.7) */
	cr_expect_eq(psd_chunks_kept(&published, 200, 50), 200 - 85); /* 200 * 0.425 */
	cr_expect_eq(psd_chunks_kept(&published, 200, 100), 200 - 170);
	cr_expect_eq(psd_chunks_kept(&published, 200, 1000000), 200 - 170);
	cr_expect_eq(psd_chunks_kept(&at_once, 200, 0), 200); /* nothing is known of them */
	cr_expect_eq(psd_chunks_kept(&at_once, 200, 1), 200 - 170);
	cr_expect_eq(psd_chunks_kept(&at_once, 1, 1), 1);
}

Test(chunks, at_least_one_travels)
{
	const struct psd_sparse most = {.sparsity = 0.9999, .chunk_elements = 10};

	cr_expect_eq(psd_chunks_kept(&most, 3, 5), 3 - 2); /* floor(2.9997) */
	cr_expect_eq(psd_chunks_expected(&most, 7, psd_chunks_evenly(&most)), 1);
	cr_expect_eq(psd_chunks_expected(&most, 1000000, psd_chunks_evenly(&most)), 100);
}

/* 13 - floor(13 * 0.85) = 2 of 13 chunks travel, half of the 4 whole ones: 2 * 10 / 2 = 10 of 25 elements. With 4 whole
 * and 26 smaller ones 30 - floor(30 * 0.85) = 5 travel, one of them a smaller one: 2 * 10 + 5 / 26 = 20.19. */
Test(chunks, whole_ones_are_expected_to_travel_before_smaller_ones)
{
	const struct psd_sparse sparse = {.sparsity = 0.85, .chunk_elements = 10};
	const struct psd_chunks_share few = psd_chunks_whole_first(&sparse, 4, 9);
	const struct psd_chunks_share more = psd_chunks_whole_first(&sparse, 4, 26);

	cr_expect_eq(psd_chunks_expected(&sparse, 25, few), 10);
	cr_expect_eq(psd_chunks_expected(&sparse, 9, few), 1);
	cr_expect_eq(psd_chunks_expected(&sparse, 25, more), 20);
	cr_expect_eq(psd_chunks_expected(&sparse, 900, psd_chunks_whole_first(&sparse, 90, 0)), 140); /* 90 - 76 */
	cr_expect_eq(psd_chunks_expected(&sparse, 9, psd_chunks_whole_first(&sparse, 0, 1)), 9);
}

Test(chunks, the_largest_norms_are_chosen_and_of_equal_ones_the_first)
{
	const float norms[] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3};
	const bool expected[] = {0, 0, 0, 0, 1, 1, 0, 1, 0, 0}; /* 9, 6, and the first 5 */
	bool is_chosen[10];
	uint32_t order[10];

	psd_chunks_choose(is_chosen, order, norms, 10, 3);
	for (unsigned i = 0; i < 10; i++)
		cr_expect_eq(is_chosen[i], expected[i], "chunk %u", i);
}

Test(chunks, nan_is_chosen_like_the_largest)
{
	const float norms[] = {1, NAN, 2, INFINITY, NAN};
	const bool expected[] = {0, 1, 0, 1, 0};
	bool is_chosen[5];
	uint32_t order[5];

	psd_chunks_choose(is_chosen, order, norms, 5, 2);
	for (unsigned i = 0; i < 5; i++)
		cr_expect_eq(is_chosen[i], expected[i], "chunk %u", i);
}
