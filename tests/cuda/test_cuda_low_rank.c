/* Gradients as products of narrow matrices on the CUDA device against low_rank.c. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/cuda_net.h"

/* Sums of up to some 700 products of floats, in another order; a basis magnifies them by how much its columns have in
 * common, which for drawn values is little. */
#define TOLERANCE_RATIO 1e-5

enum { MOST_TENSORS = 4, FIRST_NUMBER = 3, GUARD = 8, STEPS = 3 };
#define GUARD_VALUE 12345.0f

struct shape {
	uint32_t rows, columns; /* columns 0: travels as it is */
};

/* The same in the host's memory and in the device's; each block has some values behind it. */
struct block {
	float *here, *there;
	uint64_t count;
};

struct sides {
	struct psd_device *device;
	struct psd_low_rank_tensor tensors_here[MOST_TENSORS], tensors_there[MOST_TENSORS];
	struct block gradients[MOST_TENSORS], residual, left, right;
	struct psd_low_rank_work here, there;
};

static struct block take(struct psd_device *device, uint64_t count)
{
	struct block block = {.here = calloc(count + GUARD, sizeof(float)), .count = count};

	cr_assert(block.here);
	for (unsigned i = 0; i < GUARD; i++)
		block.here[count + i] = GUARD_VALUE;
	block.there = cuda_net_take(device, block.here, count + GUARD);
	return block;
}

static void put(const struct sides *sides, const struct block *block)
{
	cuda_net_put(sides->device, block->there, block->here, block->count * sizeof(float));
}

static float *get(const struct sides *sides, const struct block *block)
{
	float *values = malloc((block->count + GUARD) * sizeof(*values));

	cr_assert(values);
	cuda_net_wait(sides->device, PSD_STREAM_COMPUTE);
	cuda_net_get(sides->device, values, block->there, (block->count + GUARD) * sizeof(*values));
	for (unsigned i = 0; i < GUARD; i++)
		cr_expect_eq(values[block->count + i], GUARD_VALUE, "something is written behind a block");
	return values;
}

static struct sides *open_sides(unsigned rank, const struct shape shapes[], unsigned n)
{
	const struct psd_device_options options = {.n_threads = 1, .arithmetic = PSD_LAYERS_TF32};
	struct sides *sides = calloc(1, sizeof(*sides));
	uint64_t elements = 0, lefts = 0, rights = 0;
	struct psd_error err = {0};

	cr_assert(sides);
	cr_assert_eq(psd_device_cuda.open(&sides->device, &options, &err), PSD_OK, "%s", err.text);
	for (unsigned t = 0; t < n; t++) {
		const bool is_matrix = shapes[t].columns > 0;
		const uint64_t own = (uint64_t)shapes[t].rows * (is_matrix ? shapes[t].columns : 1);
		const struct psd_low_rank_shape shape = {is_matrix ? shapes[t].rows : 0, shapes[t].columns};

		sides->gradients[t] = take(sides->device, own);
		sides->tensors_here[t] =
			(struct psd_low_rank_tensor){sides->gradients[t].here, own, shape, FIRST_NUMBER + t};
		sides->tensors_there[t] =
			(struct psd_low_rank_tensor){sides->gradients[t].there, own, shape, FIRST_NUMBER + t};
		elements += own;
		lefts += is_matrix ? (uint64_t)shape.rows * rank : own;
		rights += (uint64_t)shape.columns * rank;
	}
	sides->residual = take(sides->device, elements);
	sides->left = take(sides->device, lefts);
	sides->right = take(sides->device, rights);
	sides->here = (struct psd_low_rank_work){
		sides->tensors_here, n, 1, rank, sides->residual.here, sides->left.here, sides->right.here};
	sides->there = (struct psd_low_rank_work){
		sides->tensors_there, n, 1, rank, sides->residual.there, sides->left.there, sides->right.there};
	return sides;
}

static void close_block(struct block *block)
{
	free(block->here);
}

static void close_sides(struct sides *sides)
{
	for (unsigned t = 0; t < sides->here.n_tensors; t++)
		close_block(&sides->gradients[t]);
	close_block(&sides->residual);
	close_block(&sides->left);
	close_block(&sides->right);
	psd_device_cuda.close(sides->device);
	free(sides);
}

static void draw(const struct block *block, uint32_t *state)
{
	for (uint64_t e = 0; e < block->count; e++) {
		*state = *state * 1664525u + 1013904223u;
		block->here[e] = (float)(*state >> 8) * 0x1p-23f - 1.0f;
	}
}

static double norm_of(const struct block *block)
{
	double squares = 0;

	for (uint64_t e = 0; e < block->count; e++)
		squares += (double)block->here[e] * (double)block->here[e];
	return sqrt(squares);
}

/* Off by a share of that norm. */
static void expect_near(const struct sides *sides, const struct block *block, double norm, const char *what)
{
	float *there = get(sides, block);
	double squares = 0;

	for (uint64_t e = 0; e < block->count; e++)
		squares += pow((double)there[e] - (double)block->here[e], 2);
	cr_expect(sqrt(squares) <= TOLERANCE_RATIO * norm, "%s is off by %g of %g", what, sqrt(squares), norm);
	free(there);
}

static void expect_same(const struct sides *sides, const struct block *block, const char *what)
{
	expect_near(sides, block, norm_of(block), what);
}

/* What the device has, so that differences do not add up from one operation to the next. */
static void follow(const struct sides *sides, const struct block *block)
{
	float *there = get(sides, block);

	memcpy(block->here, there, block->count * sizeof(float));
	free(there);
}

static void project(struct sides *sides)
{
	struct psd_error err = {0};

	cr_assert_eq(psd_low_rank_project(&sides->here, &err), PSD_OK);
	cr_assert_eq(psd_device_cuda.project(sides->device, &sides->there, &err), PSD_OK, "%s", err.text);
	expect_same(sides, &sides->residual, "the residual");
	expect_same(sides, &sides->right, "what a right matrix starts from");
	expect_same(sides, &sides->left, "a left matrix");
	follow(sides, &sides->left);
}

static void fit(struct sides *sides)
{
	const double whole = norm_of(&sides->residual); /* of which next to nothing may be left */
	struct psd_error err = {0};

	cr_assert_eq(psd_low_rank_fit(&sides->here, &err), PSD_OK);
	cr_assert_eq(psd_device_cuda.fit(sides->device, &sides->there, &err), PSD_OK, "%s", err.text);
	expect_same(sides, &sides->left, "a basis");
	expect_same(sides, &sides->right, "a right matrix");
	expect_near(sides, &sides->residual, whole, "what is lost");
}

static void expand(struct sides *sides)
{
	struct psd_error err = {0};

	cr_assert_eq(psd_low_rank_expand(&sides->here, &err), PSD_OK);
	cr_assert_eq(psd_device_cuda.expand(sides->device, &sides->there, &err), PSD_OK, "%s", err.text);
	for (unsigned t = 0; t < sides->here.n_tensors; t++)
		expect_same(sides, &sides->gradients[t], "a gradient");
}

static void draw_gradients(struct sides *sides, uint32_t *state)
{
	for (unsigned t = 0; t < sides->here.n_tensors; t++) {
		draw(&sides->gradients[t], state);
		put(sides, &sides->gradients[t]);
	}
}

static void check(unsigned rank, const struct shape shapes[], unsigned n)
{
	struct sides *sides = open_sides(rank, shapes, n);
	uint32_t state = rank;

	for (unsigned s = 0; s < STEPS; s++) {
		draw_gradients(sides, &state);
		project(sides);
		fit(sides);
		expand(sides);
	}
	close_sides(sides);
}

Test(cuda_low_rank, matrices_are_as_on_the_processor)
{
	static const struct shape shapes[] = {{17, 29}, {700, 33}, {8, 650}};

	check(1, shapes, 3);
	check(3, shapes, 3);
	check(7, shapes, 3);
}

Test(cuda_low_rank, the_highest_rank_is_as_on_the_processor)
{
	static const struct shape shapes[] = {{300, 280}};

	check(PSD_MOST_RANK, shapes, 1);
}

Test(cuda_low_rank, others_travel_as_they_are)
{
	static const struct shape before[] = {{13, 0}, {17, 29}, {5, 0}, {30, 20}}, alone[] = {{1, 0}};

	check(2, before, 4);
	check(2, alone, 1);
}

/* Of a rank below that of the narrow matrices: columns without anything of their own become zeros, and start anew. */
Test(cuda_low_rank, columns_that_are_none_become_zeros)
{
	static const struct shape shapes[] = {{40, 50}};
	struct sides *sides = open_sides(4, shapes, 1);
	float *gradient = sides->gradients[0].here;

	for (unsigned s = 0; s < STEPS; s++) {
		for (unsigned e = 0; e < 40 * 50; e++)
			gradient[e] =
				(float)(e / 50 + 1) * (float)(e % 50 + 1) * 0x1p-9f; /* one row times one column */
		put(sides, &sides->gradients[0]);
		project(sides);
		fit(sides);
		expand(sides);
		for (unsigned e = 0; e < 40 * 4; e++)
			cr_expect(e % 4 == 0 || sides->left.here[e] == 0.0f);
	}
	close_sides(sides);
}

Test(cuda_low_rank, what_is_no_number_stays_none)
{
	static const struct shape shapes[] = {{40, 50}};
	static const float wrong[] = {INFINITY, -INFINITY, NAN};

	for (unsigned w = 0; w < 3; w++) {
		struct sides *sides = open_sides(2, shapes, 1);
		uint32_t state = 1;
		struct psd_error err = {0};

		draw(&sides->gradients[0], &state);
		sides->gradients[0].here[77] = wrong[w];
		put(sides, &sides->gradients[0]);
		cr_assert_eq(psd_device_cuda.project(sides->device, &sides->there, &err), PSD_OK);
		cr_assert_eq(psd_device_cuda.fit(sides->device, &sides->there, &err), PSD_OK);
		cr_assert_eq(psd_device_cuda.expand(sides->device, &sides->there, &err), PSD_OK);
		float *gradient = get(sides, &sides->gradients[0]);

		for (unsigned e = 0; e < 40 * 50; e++)
			cr_expect(isnan(gradient[e]), "%g ends as %g", (double)wrong[w], (double)gradient[e]);
		free(gradient);
		close_sides(sides);
	}
}
