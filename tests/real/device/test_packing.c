/* Compression of several tensors side by side against compression of each block alone. Blocks begin anew in each
 * tensor, residuals lie without gaps, and memory around both stays unchanged. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "real/device/packing.h"

enum { ROUNDS = 3, GUARD = 64, GUARD_BYTE = 0x5a };

/* For values about 1, which are split into the sent value and the residual, each rounded once. */
#define SPLIT_TOLERANCE 1e-6f

/* Around the ends of blocks of 1024 and 3072, and of the lanes and words in a block. */
static const uint64_t sizes[] = {1, 1023, 1024, 1025, 31, 3071, 3072, 3073, 33, 2048, 7000, 1};
enum { N_TENSORS = sizeof(sizes) / sizeof(sizes[0]) };

static const struct psd_block blocks[] = {{1024, 1}, {1024, 11}, {3072, 307}, {3072, 3072}, {32768, 9}};
enum { N_BLOCKS = sizeof(blocks) / sizeof(blocks[0]) };

/* Tensors in memories of their own, and what psd_packing_pack() should leave of them. */
struct packed {
	struct psd_packing packing;
	struct psd_packing_tensor tensors[N_TENSORS];
	uint64_t elements, packed_bytes;
	float *gradient; /* without gaps, as are the next */
	float *residual, *expected_sum;
	char *packed;
};

static void *take(uint64_t n_bytes)
{
	char *taken = malloc(n_bytes + GUARD);

	cr_assert_not_null(taken);
	memset(taken, 0, n_bytes);
	memset(taken + n_bytes, GUARD_BYTE, GUARD);
	return taken;
}

static void expect_guard(const void *taken, uint64_t n_bytes, const char *what)
{
	for (unsigned i = 0; i < GUARD; i++)
		cr_assert_eq(((const char *)taken)[n_bytes + i], GUARD_BYTE, "byte %u behind the %s is written", i,
			     what);
}

static struct packed open_packed(const struct psd_compression *compression, struct psd_block block)
{
	struct packed of = {.packing = {.compression = compression, .block = block, .n_tensors = N_TENSORS}};

	for (unsigned t = 0; t < N_TENSORS; t++) {
		of.tensors[t] = (struct psd_packing_tensor){
			.gradient = take(sizes[t] * sizeof(float)),
			.elements = sizes[t],
		};
		of.elements += sizes[t];
		of.packed_bytes += psd_block_count(&block, sizes[t]) * compression->bytes(&block);
	}
	of.gradient = take(of.elements * sizeof(float));
	of.residual = take(of.elements * sizeof(float));
	of.expected_sum = take(of.elements * sizeof(float));
	of.packed = take(of.packed_bytes);
	of.packing.residual = take(of.elements * sizeof(float));
	of.packing.packed = take(of.packed_bytes);
	return of;
}

static void close_packed(struct packed *of)
{
	for (unsigned t = 0; t < N_TENSORS; t++)
		free(of->tensors[t].gradient);
	free(of->gradient);
	free(of->residual);
	free(of->expected_sum);
	free(of->packed);
	free(of->packing.residual);
	free(of->packing.packed);
}

/* Values with every size and sign, no two alike. */
static void fill(struct packed *of, unsigned round)
{
	uint64_t at = 0;

	for (unsigned t = 0; t < N_TENSORS; t++)
		for (uint64_t e = 0; e < sizes[t]; e++, at++) {
			of->gradient[at] = sinf(0.7f * (float)(at + 1) + (float)(round * 100)) *
					   (0.1f + 0.9f * (float)(e % 97) / 97.0f);
			of->tensors[t].gradient[e] = of->gradient[at];
		}
}

/* By hand: the same with each block alone. */
static void compress_blocks(struct packed *of)
{
	const struct psd_compression *compression = of->packing.compression;
	const struct psd_block *block = &of->packing.block;
	char *packed = of->packed;
	uint64_t at = 0;

	for (unsigned t = 0; t < N_TENSORS; t++)
		for (uint64_t first = 0; first < sizes[t]; first += block->elements) {
			const uint64_t left = sizes[t] - first;
			const uint32_t n = left < block->elements ? (uint32_t)left : block->elements;

			for (uint32_t i = 0; i < n; i++) {
				of->residual[at + i] += of->gradient[at + i];
				of->expected_sum[at + i] = 0.0f;
			}
			compression->pack(block, of->residual + at, n, packed);
			compression->add(block, packed, n, of->expected_sum + at);
			at += n;
			packed += compression->bytes(block);
		}
}

static void expect_bytes(const void *actual, const void *expected, uint64_t n_bytes, const char *what)
{
	cr_assert_eq(memcmp(actual, expected, n_bytes), 0, "%s differ from those of blocks alone", what);
	expect_guard(actual, n_bytes, what);
}

/* Packing reads a gradient; what it has lost of it, what travels and the gradient are in balance. */
static void expect_packed(const struct packed *of, const float *before)
{
	uint64_t at = 0;

	expect_bytes(of->packing.packed, of->packed, of->packed_bytes, "packed bytes");
	expect_bytes(of->packing.residual, of->residual, of->elements * sizeof(float), "residuals");
	for (unsigned t = 0; t < N_TENSORS; t++) {
		cr_assert_eq(memcmp(of->tensors[t].gradient, of->gradient + at, sizes[t] * sizeof(float)), 0,
			     "gradient %u is written", t);
		at += sizes[t];
	}
	for (uint64_t e = 0; e < of->elements; e++)
		cr_assert_float_eq(of->residual[e] + of->expected_sum[e], before[e] + of->gradient[e], SPLIT_TOLERANCE,
				   "value %lu", (unsigned long)e);
}

static void expect_unpacked(const struct packed *of)
{
	uint64_t at = 0;

	for (unsigned t = 0; t < N_TENSORS; t++) {
		expect_bytes(of->tensors[t].gradient, of->expected_sum + at, sizes[t] * sizeof(float), "gradients");
		at += sizes[t];
	}
	expect_bytes(of->packing.residual, of->residual, of->elements * sizeof(float), "residuals");
}

static void check(const struct psd_compression *compression, struct psd_block block)
{
	struct packed of = open_packed(compression, block);
	float *before = take(of.elements * sizeof(*before));

	of.packing.tensors = of.tensors;
	for (unsigned round = 0; round < ROUNDS; round++) {
		fill(&of, round);
		memcpy(before, of.residual, of.elements * sizeof(*before));
		compress_blocks(&of);
		psd_packing_pack(&of.packing);
		expect_packed(&of, before);
		psd_packing_unpack(&of.packing); /* over what the gradients were */
		expect_unpacked(&of);
	}
	free(before);
	close_packed(&of);
}

Test(packing, tensors_are_blocks_of_their_own)
{
	for (unsigned c = 0; psd_compression_names[c]; c++)
		for (unsigned b = 0; b < N_BLOCKS; b++)
			check(psd_compressions[c], blocks[b]);
}

/* ---- velocities ---- */

enum { MOVED_ELEMENTS = 1024 + 37 };

struct moved {
	float gradient[MOVED_ELEMENTS], weight[MOVED_ELEMENTS], velocity[MOVED_ELEMENTS], residual[MOVED_ELEMENTS];
};

/* By the formula in double; with all kept, and nothing lost before, what travels is what was to travel. */
static void check_velocity(bool is_nesterov)
{
	static const struct psd_block block = {1024, 1024};
	static struct moved of;
	static double velocity[MOVED_ELEMENTS];
	static char packed[2 * 1024 * 6];
	const double momentum = 0.9, decay = 0.25;
	struct psd_packing_tensor tensor = {
		.gradient = of.gradient, .weight = of.weight, .elements = MOVED_ELEMENTS, .weight_decay = (float)decay};
	const struct psd_packing packing = {.compression = &psd_compression_top_k,
					    .block = block,
					    .tensors = &tensor,
					    .n_tensors = 1,
					    .residual = of.residual,
					    .velocity = of.velocity,
					    .momentum = (float)momentum,
					    .is_nesterov = is_nesterov,
					    .packed = packed};

	memset(&of, 0, sizeof(of));
	memset(velocity, 0, sizeof(velocity));
	for (unsigned round = 0; round < ROUNDS; round++) {
		double expected[MOVED_ELEMENTS];

		for (unsigned e = 0; e < MOVED_ELEMENTS; e++) {
			of.gradient[e] = sinf(0.7f * (float)(e + 1) + (float)(round * 100));
			of.weight[e] = cosf(0.3f * (float)e);
			const double slope = (double)of.gradient[e] + decay * (double)of.weight[e];

			velocity[e] = momentum * velocity[e] + slope;
			expected[e] = is_nesterov ? slope + momentum * velocity[e] : velocity[e];
		}
		psd_packing_pack(&packing);
		psd_packing_unpack(&packing);
		for (unsigned e = 0; e < MOVED_ELEMENTS; e++) {
			cr_assert_float_eq((double)of.gradient[e], expected[e], 1e-6, "round %u, value %u travels",
					   round, e);
			cr_assert_float_eq((double)of.velocity[e], velocity[e], 1e-6, "round %u, velocity %u", round,
					   e);
			cr_assert_eq(of.residual[e], 0.0f, "round %u, value %u is lost", round, e);
		}
	}
}

Test(packing, a_velocity_gathers_momentum_and_decay)
{
	check_velocity(false);
	check_velocity(true);
}
