/* Compressions of blocks, by their algebra and against a plain sort and sums in double. Whatever a compression touches
 * ends where memory does. */
#define _DEFAULT_SOURCE
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/encodings/compression.h"
#include "tests/test_with.h"

enum { CANARY = 0xa5, KEY_BITS = 15 };

/* ---- memory ---- */

/* Bytes whose end is the end of a page, with none behind it; what is in front of them in their pages is CANARY. */
struct guarded {
	char *pages;
	size_t rw_bytes, guard_bytes;
	void *at;
};

static struct guarded guarded_open(size_t bytes)
{
	const size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	struct guarded made = {.rw_bytes = (bytes / page_bytes + 2) * page_bytes, .guard_bytes = page_bytes};

	made.pages = mmap(NULL, made.rw_bytes + page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(made.pages, MAP_FAILED);
	cr_assert_eq(mprotect(made.pages + made.rw_bytes, page_bytes, PROT_NONE), 0);
	memset(made.pages, CANARY, made.rw_bytes);
	made.at = made.pages + made.rw_bytes - bytes;
	return made;
}

static void guarded_close(const struct guarded *guarded, const char *name)
{
	size_t n_touched = 0;

	for (const char *byte = guarded->pages; byte < (char *)guarded->at; byte++)
		n_touched += (unsigned char)*byte != CANARY;
	cr_expect_eq(n_touched, 0, "%s: %zu bytes in front of it are written", name, n_touched);
	munmap(guarded->pages, guarded->rw_bytes + guarded->guard_bytes);
}

/* ---- values ---- */

static uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

/* From -1 to 1. */
static float next_value(uint32_t *state)
{
	return (float)next_random(state) / (1 << 23) - 1.0f;
}

static float of_all_sizes(uint32_t *state, uint32_t e)
{
	(void)e;
	return ldexpf(next_value(state), (int)(next_random(state) % 40) - 30);
}

static float around_zero(uint32_t *state, uint32_t e)
{
	(void)e;
	return next_value(state);
}

static float all_positive(uint32_t *state, uint32_t e)
{
	(void)e;
	return fabsf(next_value(state)) + FLT_MIN;
}

static float all_negative(uint32_t *state, uint32_t e)
{
	return -all_positive(state, e);
}

static float zeros_of_both_signs(uint32_t *state, uint32_t e)
{
	(void)e;
	return next_random(state) & 1 ? 0.0f : -0.0f;
}

static float equal_magnitudes(uint32_t *state, uint32_t e)
{
	(void)e;
	return next_random(state) & 1 ? 0.5f : -0.5f;
}

static float few_values(uint32_t *state, uint32_t e)
{
	(void)e;
	return (float)(next_random(state) % 5) - 2.0f;
}

static float denormals(uint32_t *state, uint32_t e)
{
	(void)e;
	return next_value(state) * FLT_MIN;
}

static float ascending(uint32_t *state, uint32_t e)
{
	(void)state;
	return (float)(e + 1) / 3.0f;
}

struct kind_of_values {
	const char *name;
	float (*next)(uint32_t *state, uint32_t e);
};

static const struct kind_of_values kinds[] = {
	{"all sizes", of_all_sizes}, {"around zero", around_zero},   {"positive", all_positive},
	{"negative", all_negative},  {"zeros", zeros_of_both_signs}, {"equal magnitudes", equal_magnitudes},
	{"few", few_values},	     {"denormal", denormals},	     {"ascending", ascending},
};
enum { N_KINDS = sizeof(kinds) / sizeof(kinds[0]) };

/* ---- every block ---- */

/* A block that is compressed: `lost` and `packed` are what pack() makes of `values`, `travelled` what add() makes of
 * zeros. */
struct packed {
	const struct psd_compression *by;
	struct psd_block block;
	uint32_t n;
	char name[160];
	float *values;
	struct guarded lost, packed, travelled;
};

static float *lost_of(const struct packed *packed)
{
	return packed->lost.at;
}

static float *travelled_of(const struct packed *packed)
{
	return packed->travelled.at;
}

/* Packs n values in the caller's memory. */
static void packed_open(struct packed *made, const struct psd_compression *by, struct psd_block block, float *values,
			uint32_t n)
{
	*made = (struct packed){.by = by, .block = block, .n = n, .values = values};
	made->lost = guarded_open(n * sizeof(float));
	made->packed = guarded_open(by->bytes(&block));
	made->travelled = guarded_open(n * sizeof(float));
	snprintf(made->name, sizeof(made->name), "%s of %u in %u, %u kept", by->name, n, block.elements, block.kept);
	memcpy(made->lost.at, values, n * sizeof(float));
	by->pack(&block, made->lost.at, n, made->packed.at);
	for (uint32_t e = 0; e < n; e++)
		travelled_of(made)[e] = 0.0f;
	by->add(&block, made->packed.at, n, made->travelled.at);
}

static void packed_close(const struct packed *packed)
{
	guarded_close(&packed->lost, packed->name);
	guarded_close(&packed->packed, packed->name);
	guarded_close(&packed->travelled, packed->name);
}

static const uint32_t lengths[] = {1, 2, 31, 32, 33, 1023, 1024, 1025, 2047, 2048, 2049, 32767, 32768};
static const uint32_t block_lengths[] = {1024, 2048, 32768};
enum { N_LENGTHS = sizeof(lengths) / sizeof(*lengths), N_BLOCKS = sizeof(block_lengths) / sizeof(*block_lengths) };

static float values[PSD_BLOCK_MAX];

static void check_kinds(const struct psd_compression *by, struct psd_block block, uint32_t n,
			void (*check)(const struct packed *packed))
{
	for (unsigned k = 0; k < N_KINDS; k++) {
		struct packed packed;
		uint32_t state = 1 + k;

		for (uint32_t e = 0; e < n; e++)
			values[e] = kinds[k].next(&state, e);
		packed_open(&packed, by, block, values, n);
		snprintf(packed.name, sizeof(packed.name), "%s of %u %s values in %u, %u kept", by->name, n,
			 kinds[k].name, block.elements, block.kept);
		check(&packed);
		packed_close(&packed);
	}
}

/* Blocks full, nearly full and of a few values; of top-k with few kept, an odd number, more than there are, and all. */
static void for_each_packed(const struct psd_compression *by, void (*check)(const struct packed *packed))
{
	for (unsigned b = 0; b < N_BLOCKS; b++)
		for (unsigned l = 0; l < N_LENGTHS && lengths[l] <= block_lengths[b]; l++) {
			const uint32_t whole = block_lengths[b], kept[] = {1, 2, 11, whole / 2 + 1, whole - 1, whole};

			for (unsigned k = 0; k < sizeof(kept) / sizeof(*kept); k++)
				if (by == &psd_compression_top_k || k == 0)
					check_kinds(by, (struct psd_block){whole, kept[k]}, lengths[l], check);
		}
}

/* ---- the table ---- */

Test(compression, names_are_those_of_the_rows)
{
	unsigned n = 0;

	for (; psd_compression_names[n]; n++)
		cr_expect_str_eq(psd_compressions[n]->name, psd_compression_names[n]);
	cr_expect_eq(n, 3);
	cr_expect_eq(psd_compressions[0], &psd_compression_one_bit);
	cr_expect_eq(psd_compressions[1], &psd_compression_top_k);
	cr_expect_eq(psd_compressions[2], &psd_compression_int8);
	cr_expect(psd_compression_one_bit.adds_all);
	cr_expect(psd_compression_int8.adds_all);
	cr_expect_not(psd_compression_top_k.adds_all);
}

Test(compression, a_tensor_has_blocks_for_all_of_its_values)
{
	const struct psd_block small = {.elements = 1024}, large = {.elements = 32768};

	cr_expect_eq(psd_block_count(&small, 0), 0);
	cr_expect_eq(psd_block_count(&small, 1), 1);
	cr_expect_eq(psd_block_count(&small, 1023), 1);
	cr_expect_eq(psd_block_count(&small, 1024), 1);
	cr_expect_eq(psd_block_count(&small, 1025), 2);
	cr_expect_eq(psd_block_count(&small, 10 * 1024), 10);
	cr_expect_eq(psd_block_count(&large, 32769), 2);
	cr_expect_eq(psd_block_count(&small, UINT64_MAX), UINT64_C(1) << 54); /* 2^64 - 1 values */
}

/* One-bit: two means and a bit for each value. Int8: a step and a byte for each value. Top-k: 4 bytes and a position of
 * 2 for each kept value, rounded up to a multiple of 4. */
Test(compression, bytes_are_those_of_what_travels)
{
	for (unsigned b = 0; b < N_BLOCKS; b++)
		cr_expect_eq(psd_compression_one_bit.bytes(&(struct psd_block){block_lengths[b], 1}),
			     2 * 4 + block_lengths[b] / 8);
	for (unsigned b = 0; b < N_BLOCKS; b++)
		cr_expect_eq(psd_compression_int8.bytes(&(struct psd_block){block_lengths[b], 1}),
			     4 + block_lengths[b]);
	cr_expect_eq(psd_compression_top_k.bytes(&(struct psd_block){1024, 1}), 4 + 2 + 2);
	cr_expect_eq(psd_compression_top_k.bytes(&(struct psd_block){1024, 2}), 2 * 4 + 2 * 2);
	cr_expect_eq(psd_compression_top_k.bytes(&(struct psd_block){1024, 11}), 11 * 4 + 11 * 2 + 2);
	cr_expect_eq(psd_compression_top_k.bytes(&(struct psd_block){32768, 328}), 328 * 6);
	cr_expect_eq(psd_compression_top_k.bytes(&(struct psd_block){32768, 32768}), 32768 * 6);
}

/* ---- one bit ---- */

/* The rounding of a mean of n values with one sign in 32 lanes. */
static double rounding_of_mean(uint32_t n)
{
	return (n / 32 + 32 + 2) * (double)FLT_EPSILON;
}

struct means {
	double low, high;
	uint32_t n_low, n_high;
};

static struct means means_of(const float *of, uint32_t n)
{
	struct means means = {.low = 0.0};

	for (uint32_t e = 0; e < n; e++) {
		means.low += of[e] < 0.0f ? (double)of[e] : 0.0;
		means.high += of[e] < 0.0f ? 0.0 : (double)of[e];
		means.n_low += of[e] < 0.0f;
	}
	means.n_high = n - means.n_low;
	means.low /= means.n_low ? means.n_low : 1;
	means.high /= means.n_high ? means.n_high : 1;
	return means;
}

/* Each value travels as the mean of its sign, the same for all, and what is lost is what is left of it. */
static void check_means(const struct packed *packed)
{
	const struct means means = means_of(packed->values, packed->n);
	const double ratio = rounding_of_mean(packed->n);
	const float *travelled = travelled_of(packed), *lost = lost_of(packed);
	float low = 0.0f, high = 0.0f;

	for (uint32_t e = 0; e < packed->n; e++)
		*(packed->values[e] < 0.0f ? &low : &high) = travelled[e];
	cr_assert(fabs((double)low - means.low) <= ratio * -means.low + (double)FLT_TRUE_MIN, "%s: low is %.9g, not %g",
		  packed->name, (double)low, means.low);
	cr_assert(fabs((double)high - means.high) <= ratio * means.high + (double)FLT_TRUE_MIN,
		  "%s: high is %.9g, not %g", packed->name, (double)high, means.high);
	for (uint32_t e = 0; e < packed->n; e++) {
		const float value = packed->values[e], mean = value < 0.0f ? low : high;

		cr_assert_eq(travelled[e], mean, "%s: value %u", packed->name, e);
		cr_assert_eq(lost[e], value - mean, "%s: value %u", packed->name, e);
	}
}

TEST_ROW(compression, one_bit_sends_the_mean_of_each_sign_and_keeps_the_rest,
	 for_each_packed(&psd_compression_one_bit, check_means))

/* The means of -1 and -3, and of 2, 4, 6 and 0. */
Test(compression, one_bit_of_six_values)
{
	float six[] = {-1, 2, -3, 4, 6, 0};
	static const float expected[] = {-2, 3, -2, 3, 3, 3}, lost[] = {1, -1, -1, 1, 3, -3};
	struct packed packed;

	packed_open(&packed, &psd_compression_one_bit, (struct psd_block){1024, 1}, six, 6);
	cr_expect_arr_eq(travelled_of(&packed), expected, sizeof(expected));
	cr_expect_arr_eq(lost_of(&packed), lost, sizeof(lost));
	packed_close(&packed);
}

/* Value 37 is the second of lane 5, which has a word of its own in the second unit of 1024. Values that a block lacks
 * are not negative. */
Test(compression, one_bit_has_a_word_for_each_lane)
{
	const struct psd_block block = {2048, 1};
	uint32_t words[2 + 2048 / 32], expected[2 + 2048 / 32] = {0};
	const uint32_t low[] = {0, 37, 1023, 1024 + 37, 1024 + 64 + 1};

	for (uint32_t e = 0; e < 1200; e++)
		values[e] = 1.0f;
	for (unsigned i = 0; i < sizeof(low) / sizeof(*low); i++)
		values[low[i]] = -1.0f;
	memset(words, CANARY, sizeof(words));
	psd_compression_one_bit.pack(&block, values, 1200, words);
	memcpy(expected, (const float[]){-1.0f, 1.0f}, 2 * sizeof(float));
	expected[2 + 0] = 1u << 0;
	expected[2 + 5] = 1u << 1;
	expected[2 + 31] = 1u << 31;
	expected[2 + 32 + 5] = 1u << 1;
	expected[2 + 32 + 1] = 1u << 2;
	cr_expect_arr_eq(words, expected, sizeof(words));
}

/* The mean of a sign that no value has is 0, so that equal blocks are equal bytes. */
Test(compression, one_bit_of_one_sign_alone_has_no_other_mean)
{
	for (int sign = -1; sign <= 1; sign += 2) {
		float two[] = {(float)sign, 3.0f * (float)sign}, means[(8 + 1024 / 8) / sizeof(float)];

		psd_compression_one_bit.pack(&(struct psd_block){1024, 1}, two, 2, means);
		cr_expect_eq(means[0], sign < 0 ? -2.0f : 0.0f);
		cr_expect_eq(means[1], sign < 0 ? 0.0f : 2.0f);
	}
}

/* A block that is not finite does not become so, and those of the other sign are as without it: a run that diverges is
 * seen to. */
Test(compression, one_bit_hides_nothing_that_is_not_finite)
{
	static const float strange[] = {INFINITY, -INFINITY, NAN};

	for (unsigned i = 0; i < 3; i++) {
		float four[] = {-1, -3, 2, strange[i]};
		const bool is_low = strange[i] < 0.0f;
		struct packed packed;

		packed_open(&packed, &psd_compression_one_bit, (struct psd_block){1024, 1}, four, 4);
		const float *travelled = travelled_of(&packed), *lost = lost_of(&packed);
		cr_expect_not(isfinite(travelled[3]));
		cr_expect_not(isfinite(lost[3]));
		cr_expect_eq(isfinite(travelled[0]), !is_low);
		cr_expect_eq(isfinite(travelled[2]), is_low);
		if (is_low)
			cr_expect_eq(travelled[2], 2.0f);
		else
			cr_expect_eq(travelled[0], -2.0f);
		packed_close(&packed);
	}
}

/* ---- int8 ---- */

/* The step is the largest magnitude over 127, and 0 where it would be subnormal. An error is at most half a step, but
 * for the rounding of the step and of its multiples: 127 steps may be one last bit off. Value and its multiple of the
 * step are within a factor of two, so that their difference is exact. */
static void check_steps(const struct packed *packed)
{
	float most = 0.0f;

	for (uint32_t e = 0; e < packed->n; e++)
		most = fmaxf(most, fabsf(packed->values[e]));
	const float step = most / 127 < FLT_MIN ? 0.0f : most / 127;
	const double bound = step > 0.0f ? 0.5 * (double)step + 2.0 * (double)FLT_EPSILON * (double)most : (double)most;

	for (uint32_t e = 0; e < packed->n; e++) {
		const double lost = (double)lost_of(packed)[e], travelled = (double)travelled_of(packed)[e];

		cr_assert_eq(lost + travelled, (double)packed->values[e], "%s: value %u", packed->name, e);
		cr_assert(fabs(lost) <= bound, "%s: value %u loses %g of %g", packed->name, e, lost, bound);
		cr_assert(step > 0.0f || travelled == 0.0, "%s: value %u", packed->name, e);
	}
}

TEST_ROW(compression, int8_loses_at_most_half_a_step, for_each_packed(&psd_compression_int8, check_steps))

/* With 254 as the largest magnitude the step is 2. Halves go to the even neighbour. */
Test(compression, int8_of_seven_values)
{
	float seven[] = {254, -254, 126.5f, 1, 3, -0.75f, -5};
	static const float expected[] = {254, -254, 126, 0, 4, 0, -4}, lost[] = {0, 0, 0.5f, 1, -1, -0.75f, -1};
	static const int8_t wholes[] = {127, -127, 63, 0, 2, 0, -2, 0};
	struct packed packed;

	packed_open(&packed, &psd_compression_int8, (struct psd_block){1024, 1}, seven, 7);
	cr_expect_arr_eq(travelled_of(&packed), expected, sizeof(expected));
	cr_expect_arr_eq(lost_of(&packed), lost, sizeof(lost));
	cr_expect_eq(*(const float *)packed.packed.at, 2.0f);
	cr_expect_arr_eq((const char *)packed.packed.at + sizeof(float), wholes, sizeof(wholes));
	packed_close(&packed);
}

/* No value of the block is finite afterwards. */
Test(compression, int8_hides_nothing_that_is_not_finite)
{
	static const float strange[] = {INFINITY, -INFINITY, NAN};

	for (unsigned i = 0; i < 3; i++) {
		float four[] = {-1, -3, 2, strange[i]};
		struct packed packed;

		packed_open(&packed, &psd_compression_int8, (struct psd_block){1024, 1}, four, 4);
		for (unsigned e = 0; e < 4; e++)
			cr_expect(!isfinite(travelled_of(&packed)[e]) && !isfinite(lost_of(&packed)[e]), "%u", e);
		packed_close(&packed);
	}
}

/* ---- top-k ---- */

static uint32_t key_of(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return (bits & 0x7fffffff) >> (31 - KEY_BITS);
}

static int larger_or_first(const void *left, const void *right)
{
	const uint32_t l = *(const uint32_t *)left, r = *(const uint32_t *)right;
	const uint32_t key_l = key_of(values[l]), key_r = key_of(values[r]);

	return key_l != key_r ? (key_l < key_r) - (key_l > key_r) : (l > r) - (l < r);
}

static uint32_t lesser(uint32_t left, uint32_t right)
{
	return left < right ? left : right;
}

/* is_kept[e]: value e is among the k first by a sort. */
static void choose_by_sort(const struct packed *packed, bool is_kept[])
{
	static uint32_t order[PSD_BLOCK_MAX];

	for (uint32_t e = 0; e < packed->n; e++)
		order[e] = e;
	qsort(order, packed->n, sizeof(*order), larger_or_first);
	for (uint32_t e = 0; e < packed->n; e++)
		is_kept[order[e]] = e < packed->block.kept;
}

/* Kept ones travel as they are and leave zeros; the others stay, to the bit. As they travel they are in order. */
static void check_top_k(const struct packed *packed)
{
	static bool is_kept[PSD_BLOCK_MAX];
	const float *kept = packed->packed.at;
	const uint16_t *places = (const uint16_t *)(kept + packed->block.kept);
	uint32_t n_kept = 0;

	choose_by_sort(packed, is_kept);
	for (uint32_t e = 0; e < packed->n; e++) {
		cr_assert_eq(travelled_of(packed)[e], is_kept[e] ? packed->values[e] : 0.0f, "%s: value %u",
			     packed->name, e);
		if (is_kept[e]) {
			cr_assert_eq(lost_of(packed)[e], 0.0f, "%s: value %u", packed->name, e);
			cr_assert_eq(places[n_kept], e, "%s: value %u", packed->name, e);
			cr_assert_eq(memcmp(&kept[n_kept++], &packed->values[e], sizeof(float)), 0, "%s: value %u",
				     packed->name, e);
		} else {
			cr_assert_eq(memcmp(&lost_of(packed)[e], &packed->values[e], sizeof(float)), 0, "%s: value %u",
				     packed->name, e);
		}
	}
	cr_assert_eq(n_kept, lesser(packed->block.kept, packed->n), "%s", packed->name);
	for (; n_kept < packed->block.kept; n_kept++)
		cr_assert(kept[n_kept] == 0.0f && places[n_kept] == UINT16_MAX, "%s: %u", packed->name, n_kept);
	if (packed->block.kept % 2)
		cr_assert_eq(places[packed->block.kept], 0, "%s: bytes between blocks are no accident", packed->name);
}

TEST_ROW(compression, top_k_sends_the_largest_and_keeps_the_rest, for_each_packed(&psd_compression_top_k, check_top_k))

/* Whatever they are compared by: nothing that stays is larger than what travels but for the eighth bit behind the
 * leading one. */
static void check_sizes(const struct packed *packed)
{
	float least_kept = INFINITY, most_lost = 0.0f;

	for (uint32_t e = 0; e < packed->n; e++) {
		const float travelled = fabsf(travelled_of(packed)[e]), lost = fabsf(lost_of(packed)[e]);

		least_kept = travelled > 0.0f && travelled < least_kept ? travelled : least_kept;
		most_lost = lost > most_lost ? lost : most_lost;
	}
	cr_assert(most_lost < (1.0f + 1.0f / 128.0f) * least_kept || most_lost < FLT_MIN, "%s: %g stays, %g travels",
		  packed->name, (double)most_lost, (double)least_kept);
}

TEST_ROW(compression, nothing_that_stays_is_larger_than_what_travels,
	 for_each_packed(&psd_compression_top_k, check_sizes))

/* 1 + 2^-7 is larger than 1 in the bits that count; 1 + 2^-8 is not, and then the first goes. */
Test(compression, top_k_sends_the_first_of_equals)
{
	float equal[] = {1.0f, -1.0f, 1.0f + 0x1p-8f, 1.0f}, larger[] = {1.0f, -1.0f, -1.0f - 0x1p-7f, 1.0f};
	static const float first_two[] = {1.0f, -1.0f, 0, 0}, one_and_largest[] = {1.0f, 0, -1.0f - 0x1p-7f, 0};
	struct packed packed;

	packed_open(&packed, &psd_compression_top_k, (struct psd_block){1024, 2}, equal, 4);
	cr_expect_arr_eq(travelled_of(&packed), first_two, sizeof(first_two));
	packed_close(&packed);
	packed_open(&packed, &psd_compression_top_k, (struct psd_block){1024, 2}, larger, 4);
	cr_expect_arr_eq(travelled_of(&packed), one_and_largest, sizeof(one_and_largest));
	packed_close(&packed);
}

static void check_lossless(const struct packed *packed)
{
	if (packed->block.kept < packed->n)
		return;
	for (uint32_t e = 0; e < packed->n; e++) {
		cr_assert_eq(travelled_of(packed)[e], packed->values[e], "%s: value %u", packed->name, e);
		cr_assert_eq(lost_of(packed)[e], 0.0f, "%s: value %u", packed->name, e);
	}
}

TEST_ROW(compression, top_k_of_all_loses_nothing, for_each_packed(&psd_compression_top_k, check_lossless))

/* They are larger than any number, so that they travel at once and do not stay behind. */
Test(compression, top_k_sends_what_is_not_finite_first)
{
	float six[] = {1e30f, NAN, -FLT_MAX, -INFINITY, INFINITY, 2.0f};
	static const float lost[] = {1e30f, 0, -FLT_MAX, 0, 0, 2.0f};
	struct packed packed;

	packed_open(&packed, &psd_compression_top_k, (struct psd_block){1024, 3}, six, 6);
	cr_expect_arr_eq(lost_of(&packed), lost, sizeof(lost));
	cr_expect(isnan(travelled_of(&packed)[1]));
	cr_expect_eq(travelled_of(&packed)[3], -INFINITY);
	cr_expect_eq(travelled_of(&packed)[4], INFINITY);
	packed_close(&packed);
}

/* ---- sums ---- */

/* Earlier sums stay; two blocks are added in their order. */
static void check_sum(const struct packed *packed)
{
	struct guarded sum = guarded_open(packed->n * sizeof(float));
	float *of = sum.at;
	uint32_t state = 77;

	for (uint32_t e = 0; e < packed->n; e++)
		of[e] = next_value(&state);
	packed->by->add(&packed->block, packed->packed.at, packed->n, of);
	packed->by->add(&packed->block, packed->packed.at, packed->n, of);
	state = 77;
	for (uint32_t e = 0; e < packed->n; e++) {
		const float once = next_value(&state) + travelled_of(packed)[e];

		cr_assert_eq(of[e], once + travelled_of(packed)[e], "%s: value %u", packed->name, e);
	}
	guarded_close(&sum, packed->name);
}

Test(compression, blocks_add_up)
{
	for (unsigned c = 0; psd_compression_names[c]; c++)
		for_each_packed(psd_compressions[c], check_sum);
}

/* Whole numbers, whose sums are exact in top-k: what has travelled in all rounds and what is still lost are all
 * gradients. One value in 8 travels each round, and none is kept back for half of all rounds. */
Test(compression, the_residual_travels_later)
{
	enum { N = 1000, ROUNDS = 64 };
	const struct psd_block block = {1024, N / 8};
	static uint32_t packed[PSD_BLOCK_MAX];
	float lost[N] = {0}, sum[N] = {0};

	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned e = 0; e < N; e++)
			lost[e] += (float)(e % 7) - 3.0f;
		psd_compression_top_k.pack(&block, lost, N, packed);
		psd_compression_top_k.add(&block, packed, N, sum);
	}
	for (unsigned e = 0; e < N; e++) {
		cr_assert_eq(sum[e] + lost[e], ROUNDS * ((float)(e % 7) - 3.0f), "value %u", e);
		cr_assert(fabsf(lost[e]) < ROUNDS / 2 * 3, "%g of value %u are left", (double)lost[e], e);
	}
}

/* The same where sums round: each of two per round, of what is no larger than the sum of all magnitudes. */
Test(compression, the_residual_of_one_bit_travels_later)
{
	enum { N = 1000, ROUNDS = 64 };
	const double rounding_ratio = 4 * ROUNDS * (double)FLT_EPSILON;
	const struct psd_block block = {1024, 1};
	static uint32_t packed[PSD_BLOCK_MAX];
	float lost[N] = {0}, sum[N] = {0};

	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned e = 0; e < N; e++)
			lost[e] += (float)(e % 7) - 3.0f;
		psd_compression_one_bit.pack(&block, lost, N, packed);
		psd_compression_one_bit.add(&block, packed, N, sum);
	}
	for (unsigned e = 0; e < N; e++) {
		const double expected = ROUNDS * ((double)(e % 7) - 3.0);

		cr_assert_float_eq((double)sum[e] + (double)lost[e], expected, rounding_ratio * ROUNDS * 3, "value %u",
				   e);
		cr_assert(fabsf(lost[e]) < ROUNDS / 2 * 3, "%g of value %u are left", (double)lost[e], e);
	}
}

/* ---- arbitrary bytes ---- */

static void add_arbitrary(const struct psd_compression *by, struct psd_block block, uint32_t n, uint32_t *state)
{
	struct guarded packed = guarded_open(by->bytes(&block)), sum = guarded_open(n * sizeof(float));
	char *bytes = packed.at;
	char name[128];

	snprintf(name, sizeof(name), "%s of %u in %u, %u kept", by->name, n, block.elements, block.kept);
	for (uint32_t b = 0; b < by->bytes(&block); b++)
		bytes[b] = (char)next_random(state);
	by->add(&block, packed.at, n, sum.at);
	guarded_close(&packed, name);
	guarded_close(&sum, name);
}

/* Positions have 16 bits, so that some are in the block and others are behind it. */
Test(compression, arbitrary_bytes_are_added_in_bounds)
{
	uint32_t state = 4711;

	for (unsigned c = 0; psd_compression_names[c]; c++)
		for (unsigned b = 0; b < N_BLOCKS; b++)
			for (unsigned l = 0; l < N_LENGTHS && lengths[l] <= block_lengths[b]; l++)
				for (unsigned draw = 0; draw < 30; draw++) {
					const uint32_t kept = 1 + next_random(&state) % block_lengths[b];

					add_arbitrary(psd_compressions[c], (struct psd_block){block_lengths[b], kept},
						      lengths[l], &state);
				}
}
