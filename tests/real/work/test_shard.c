/* A shard's sums of the workers' gradients: in fp32 whatever their encoding, in order of rank. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "real/work/shard.h"

enum { N = 10007, PARTS = 3 }; /* more than two blocks, and a rest */

static const struct psd_update plain = {.rate = 1.0f}; /* weight -= sum */

/* Each value of a part (N,). */
static uint16_t *make_part(const struct psd_encoding *encoding, float value)
{
	uint16_t *part = calloc(N, sizeof(*part));

	cr_assert(part);
	for (unsigned i = 0; i < N; i++)
		part[i] = encoding->encode(value);
	return part;
}

/* 2048 + 1 + 1 is 2048 where fp16 holds each sum, 256 + 1 + 1 is 256 in bf16. */
static void check_sum(const struct psd_encoding *encoding, float large, float ratio)
{
	uint16_t *const values[PARTS] = {make_part(encoding, large), make_part(encoding, 1.0f),
					 make_part(encoding, 1.0f)};
	const struct psd_shard_part parts[PARTS] = {
		{values[0], encoding}, {values[1], encoding}, {values[2], encoding}};
	float *weight = calloc(N, sizeof(*weight)), *history = calloc(N, sizeof(*history));

	cr_assert(weight && history);
	psd_shard_reduce(&plain, parts, PARTS, ratio, weight, (struct psd_moments){.history = history}, N);
	for (unsigned i = 0; i < N; i++)
		cr_assert_eq(weight[i], -ratio * (large + 2.0f), "%s: %g", encoding->name, (double)weight[i]);
	for (unsigned p = 0; p < PARTS; p++)
		free(values[p]);
	free(weight);
	free(history);
}

Test(shard, sums_in_fp32_what_came_as_2_bytes)
{
	check_sum(&psd_encoding_fp16, 2048.0f, 1.0f);
	check_sum(&psd_encoding_bf16, 256.0f, 1.0f);
	check_sum(&psd_encoding_fp16, 2048.0f, 0x1p-15f);
}

/* 2^24 + 1 + 1 is 2^24 in fp32, 1 + 1 + 2^24 is 2^24 + 2. */
Test(shard, sums_in_order_of_rank)
{
	const float large = 0x1p24f, one = 1.0f;
	const struct psd_shard_part falling[PARTS] = {
		{&large, &psd_encoding_fp32}, {&one, &psd_encoding_fp32}, {&one, &psd_encoding_fp32}};
	const struct psd_shard_part rising[PARTS] = {
		{&one, &psd_encoding_fp32}, {&one, &psd_encoding_fp32}, {&large, &psd_encoding_fp32}};
	float weight = 0.0f, history = 0.0f;

	psd_shard_reduce(&plain, falling, PARTS, 1.0f, &weight, (struct psd_moments){.history = &history}, 1);
	cr_expect_eq(weight, -0x1p24f);
	weight = history = 0.0f;
	psd_shard_reduce(&plain, rising, PARTS, 1.0f, &weight, (struct psd_moments){.history = &history}, 1);
	cr_expect_eq(weight, -(0x1p24f + 2.0f));
}

Test(shard, a_part_of_nothing_is_found)
{
	const float values[] = {1.0f, NAN};
	const uint16_t encoded[] = {psd_encoding_fp16.encode(NAN), psd_encoding_fp16.encode(INFINITY)};
	const struct psd_shard_part one = {values, &psd_encoding_fp32}, nothing = {encoded, &psd_encoding_fp16};
	const struct psd_shard_part none = {psd_shard_part_at(&one, 1), &psd_encoding_fp32};
	const struct psd_shard_part infinite = {psd_shard_part_at(&nothing, 1), &psd_encoding_fp16};

	cr_expect_not(psd_shard_part_is_nan(&one));
	cr_expect(psd_shard_part_is_nan(&none));
	cr_expect(psd_shard_part_is_nan(&nothing));
	cr_expect_not(psd_shard_part_is_nan(&infinite));
}

struct remembered {
	float weight[N], history[N], squares[N];
};

/* A sum of one part is the part: bit for bit the update of the whole. */
static void check_blocks(const struct psd_update *update)
{
	struct remembered *whole = calloc(1, sizeof(*whole)), *blocks = calloc(1, sizeof(*blocks));
	float *gradient = calloc(N, sizeof(*gradient));
	const struct psd_shard_part part = {gradient, &psd_encoding_fp32};

	cr_assert(whole && blocks && gradient);
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < N; i++)
			gradient[i] = (float)((i * 2654435761u + round) % 1021) * 0x1p-9f - 1.0f;
		psd_update_apply(update, whole->weight, gradient, (struct psd_moments){whole->history, whole->squares},
				 N);
		psd_shard_reduce(update, &part, 1, 1.0f, blocks->weight,
				 (struct psd_moments){blocks->history, blocks->squares}, N);
	}
	cr_expect_eq(memcmp(whole->weight, blocks->weight, sizeof(whole->weight)), 0);
	cr_expect_eq(memcmp(whole->history, blocks->history, sizeof(whole->history)), 0);
	cr_expect_eq(memcmp(whole->squares, blocks->squares, sizeof(whole->squares)), 0);
	free(whole);
	free(blocks);
	free(gradient);
}

Test(shard, each_block_has_its_own_moments)
{
	const struct psd_update momentum = {.rate = 0.1f, .momentum = 0.9f};
	const struct psd_update adaptive = {
		.rate = 0.1f,
		.adaptive = {.beta1 = 0.5f, .beta2 = 0.75f, .epsilon = 0.01f, .mean_ratio = 1, .root_ratio = 1}};

	check_blocks(&momentum);
	check_blocks(&adaptive);
}

/* 8 - (1 + 2 + 5) / 4 beyond a block, from a start elsewhere and in place. */
Test(shard, a_mean_is_taken_off_the_start)
{
	float *const values[PARTS] = {calloc(N, sizeof(float)), calloc(N, sizeof(float)), calloc(N, sizeof(float))};
	float *start = calloc(N, sizeof(*start)), *weight = calloc(N, sizeof(*weight));
	struct psd_shard_part parts[PARTS];

	cr_assert(values[0] && values[1] && values[2] && start && weight);
	for (unsigned p = 0; p < PARTS; p++)
		parts[p] = (struct psd_shard_part){values[p], &psd_encoding_fp32};
	for (unsigned i = 0; i < N; i++) {
		values[0][i] = 1.0f;
		values[1][i] = 2.0f;
		values[2][i] = 5.0f;
		start[i] = 8.0f + (float)i;
		weight[i] = -99.0f;
	}
	psd_shard_join(parts, PARTS, 0.25f, start, weight, N);
	psd_shard_join(parts, PARTS, 0.25f, start, start, N);
	for (unsigned i = 0; i < N; i++) {
		cr_assert_eq(weight[i], 6.0f + (float)i, "%u: %g", i, (double)weight[i]);
		cr_assert_eq(start[i], weight[i], "%u: %g", i, (double)start[i]);
	}
	for (unsigned p = 0; p < PARTS; p++)
		free(values[p]);
	free(start);
	free(weight);
}
