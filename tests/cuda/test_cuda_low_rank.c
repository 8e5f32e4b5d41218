/* Gradients as products of narrow matrices on the CUDA device against low_rank.c. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "real/base/libraries.h"
#include "tests/cuda/cuda_net.h"

/* Relative to norms. A sum of n products of floats has an error of about sqrt(n) 2^-24 of it on either side: 1e-5 with
 * the 5000 of the longest here. A basis magnifies that by how much its columns have in common, which for drawn values
 * is little. Values rounded to TF32 have an error of 2^-11. */
#define TOLERANCE_RATIO 1e-5

enum { MOST_TENSORS = 128, FIRST_NUMBER = 3, GUARD = 8, STEPS = 3 };
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

/* For values that are no result of a product. */
static void expect_equal(const struct sides *sides, const struct block *block, const char *what)
{
	float *there = get(sides, block);

	cr_expect_arr_eq(there, block->here, block->count * sizeof(float), "%s has other bits", what);
	free(there);
}

static void expect_same(const struct sides *sides, const struct block *block, const char *what)
{
	expect_near(sides, block, norm_of(block), what);
}

/* Takes over the device's values, so that differences do not add up from one operation to the next. */
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
	cr_assert_eq(psd_device_cuda.kernels->project(sides->device, &sides->there, &err), PSD_OK, "%s", err.text);
	expect_equal(sides, &sides->residual, "the residual");
	expect_equal(sides, &sides->right, "the start of a right matrix");
	expect_same(sides, &sides->left, "a left matrix");
	follow(sides, &sides->left);
}

static void fit(struct sides *sides)
{
	const double whole = norm_of(&sides->residual); /* next to nothing of it may be left */
	struct psd_error err = {0};

	cr_assert_eq(psd_low_rank_fit(&sides->here, &err), PSD_OK);
	cr_assert_eq(psd_device_cuda.kernels->fit(sides->device, &sides->there, &err), PSD_OK, "%s", err.text);
	expect_same(sides, &sides->left, "a basis");
	expect_same(sides, &sides->right, "a right matrix");
	expect_near(sides, &sides->residual, whole, "the residual");
	follow(sides, &sides->left);
	follow(sides, &sides->right);
	follow(sides, &sides->residual);
}

/* Gradients are overwritten, whatever they were. */
static void forget_gradients(struct sides *sides)
{
	for (unsigned t = 0; t < sides->here.n_tensors; t++) {
		for (uint64_t e = 0; e < sides->gradients[t].count; e++)
			sides->gradients[t].here[e] = GUARD_VALUE;
		put(sides, &sides->gradients[t]);
	}
}

static void expand(struct sides *sides)
{
	struct psd_error err = {0};

	forget_gradients(sides);
	cr_assert_eq(psd_low_rank_expand(&sides->here, &err), PSD_OK);
	cr_assert_eq(psd_device_cuda.kernels->expand(sides->device, &sides->there, &err), PSD_OK, "%s", err.text);
	for (unsigned t = 0; t < sides->here.n_tensors; t++)
		if (sides->tensors_here[t].shape.rows)
			expect_same(sides, &sides->gradients[t], "a gradient");
		else
			expect_equal(sides, &sides->gradients[t], "an uncompressed gradient");
}

/* Its products are oneDNN's. */
static void need_processor(void)
{
	struct psd_error err = {0};

	if (psd_libraries_need(PSD_LIBRARY_ONEDNN, &err))
		cr_skip_test("%s", err.text);
}

static void draw_gradients(struct sides *sides, uint32_t *state)
{
	for (unsigned t = 0; t < sides->here.n_tensors; t++) {
		draw(&sides->gradients[t], state);
		put(sides, &sides->gradients[t]);
	}
}

static void check_steps(unsigned rank, const struct shape shapes[], unsigned n, unsigned steps)
{
	struct sides *sides = open_sides(rank, shapes, n);
	uint32_t state = rank;

	for (unsigned s = 0; s < steps; s++) {
		draw_gradients(sides, &state);
		project(sides);
		fit(sides);
		expand(sides);
	}
	close_sides(sides);
}

static void check(unsigned rank, const struct shape shapes[], unsigned n)
{
	check_steps(rank, shapes, n, STEPS);
}

Test(cuda_low_rank, matrices_are_as_on_the_processor)
{
	static const struct shape shapes[] = {{17, 29}, {700, 33}, {8, 650}};

	need_processor();
	check(1, shapes, 3);
	check(3, shapes, 3);
	check(7, shapes, 3);
}

Test(cuda_low_rank, the_highest_rank_is_as_on_the_processor)
{
	static const struct shape shapes[] = {{300, 280}};

	need_processor();
	check(PSD_MOST_RANK, shapes, 1);
}

/* Narrow matrices of these have just fewer values than they. */
Test(cuda_low_rank, the_smallest_matrices_are_as_on_the_processor)
{
	static const struct shape of_one[] = {{2, 3}, {3, 2}}, of_four[] = {{5, 21}, {21, 5}, {8, 9}, {5, 1000}};

	need_processor();
	check(1, of_one, 2);
	check(4, of_four, 4);
}

/* More rows than lanes of products have 16 of. */
Test(cuda_low_rank, many_rows_are_as_on_the_processor)
{
	static const struct shape shapes[] = {{5000, 3}, {4999, 6}};

	need_processor();
	check(1, shapes, 2);
	check(2, shapes, 2);
}

/* ---- more than one launch takes ---- */

/* 96 tensors to copy or to add, 40 matrices, 16 of the highest rank. */
Test(cuda_low_rank, many_tensors_are_as_on_the_processor)
{
	struct shape shapes[MOST_TENSORS];

	need_processor();
	for (unsigned t = 0; t < MOST_TENSORS; t++)
		shapes[t] = t % 3 ? (struct shape){1 + 40 * t, 0} : (struct shape){9 + t, 200 - t};
	check(3, shapes, MOST_TENSORS);
	check(3, shapes, 3 * 40); /* which launches of matrices just hold */
	check(3, shapes, 96);
}

Test(cuda_low_rank, many_matrices_of_the_highest_rank_are_as_on_the_processor)
{
	struct shape shapes[17];

	need_processor();
	for (unsigned t = 0; t < 17; t++)
		shapes[t] = (struct shape){150 - t, 125 + t};
	check_steps(PSD_MOST_RANK, shapes, 17, 1);
}

Test(cuda_low_rank, others_travel_as_they_are)
{
	static const struct shape before[] = {{13, 0}, {17, 29}, {5, 0}, {30, 20}}, alone[] = {{1, 0}};

	need_processor();
	check(2, before, 4);
	check(2, alone, 1);
}

/* With a gradient of lower rank than its factors, columns without anything of their own become zeros and start anew. */
Test(cuda_low_rank, columns_that_are_none_become_zeros)
{
	static const struct shape shapes[] = {{40, 50}};

	need_processor();
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

/* A step, then one of drawn values, which start anew. */
Test(cuda_low_rank, a_gradient_of_zeros_stays_zeros)
{
	static const struct shape shapes[] = {{40, 50}, {3, 0}, {20, 30}};

	need_processor();
	struct sides *sides = open_sides(2, shapes, 3);
	uint32_t state = 1;

	project(sides);
	fit(sides);
	expand(sides);
	for (uint64_t e = 0; e < sides->right.count; e++)
		cr_expect_eq(sides->right.here[e], 0.0f);
	for (unsigned e = 0; e < 40 * 50; e++)
		cr_expect_eq(sides->gradients[0].here[e], 0.0f);
	draw_gradients(sides, &state);
	project(sides);
	fit(sides);
	expand(sides);
	close_sides(sides);
}

/* ---- rows of right ---- */

/* Zeros of either sign alone; a value behind all others; a NaN; a value in front. */
Test(cuda_low_rank, rows_of_zeros_alone_start_anew)
{
	enum { RANK = 6, COLUMNS = 70 };
	static const struct shape shapes[] = {{50, COLUMNS}};
	struct sides *sides = open_sides(RANK, shapes, 1);
	float *right = sides->right.here;
	struct psd_error err = {0};
	uint32_t state = 1;

	draw(&sides->right, &state);
	memset(right + COLUMNS, 0, (RANK - 2) * COLUMNS * sizeof(*right));
	right[2 * COLUMNS - 1] = 0x1p-149f;
	for (unsigned c = 0; c < COLUMNS; c++)
		right[2 * COLUMNS + c] = c % 2 ? -0.0f : 0.0f;
	right[3 * COLUMNS + 33] = NAN;
	right[4 * COLUMNS] = -1.0f;
	put(sides, &sides->right);
	for (unsigned c = 0; c < COLUMNS; c++)
		right[2 * COLUMNS + c] = psd_low_rank_start(FIRST_NUMBER, 2, c);
	cr_assert_eq(psd_device_cuda.kernels->project(sides->device, &sides->there, &err), PSD_OK, "%s", err.text);
	expect_equal(sides, &sides->right, "a right matrix");
	close_sides(sides);
}

/* ---- by definition, without the processor's products ---- */

/* The device's values, in double. */
static double *known(const struct sides *sides, const struct block *block)
{
	float *there = get(sides, block);
	double *values = malloc(block->count * sizeof(*values));

	cr_assert(values);
	for (uint64_t e = 0; e < block->count; e++)
		values[e] = (double)there[e];
	free(there);
	return values;
}

struct matrix {
	const double *values;
	unsigned down, right; /* from a value to the next one */
};

/* Product of a row of the left matrix and a column of the right one. */
static double dot(struct matrix left, unsigned row, struct matrix right, unsigned column, unsigned depth)
{
	double sum = 0;

	for (unsigned d = 0; d < depth; d++)
		sum += left.values[row * left.down + d * left.right] *
		       right.values[d * right.down + column * right.right];
	return sum;
}

/* result = plus + ratio left right. */
static void expect_product(const double *result, const double *plus, double ratio, struct matrix left,
			   struct matrix right, const unsigned sizes[3], const char *what)
{
	double whole = 0, off = 0;

	for (unsigned r = 0; r < sizes[0]; r++)
		for (unsigned c = 0; c < sizes[1]; c++) {
			const unsigned at = r * sizes[1] + c;
			const double product = ratio * dot(left, r, right, c, sizes[2]);

			off += pow(result[at] - product - (plus ? plus[at] : 0), 2);
			whole += pow(product, 2) + (plus ? pow(plus[at], 2) : 0);
		}
	cr_expect(sqrt(off) <= TOLERANCE_RATIO * sqrt(whole), "%s is off by %g of %g", what, sqrt(off), sqrt(whole));
}

enum { ROWS = 60, COLUMNS = 90, RANK = 5 };

/* Columns of the basis are unit vectors at right angles, and what each began as is made of those up to it. */
static void expect_basis(const double *basis, const double *before)
{
	const struct matrix turned = {basis, 1, RANK}, made = {basis, RANK, 1}, from = {before, RANK, 1};

	for (unsigned j = 0; j < RANK; j++)
		for (unsigned k = 0; k < RANK; k++) {
			const double made_of = dot(turned, j, from, k, ROWS);

			cr_expect_float_eq(dot(turned, j, made, k, ROWS), j == k, TOLERANCE_RATIO, "%u with %u", j, k);
			cr_expect(j == k ? made_of > 0.1 : j < k || fabs(made_of) < 100 * TOLERANCE_RATIO,
				  "%u is made of %g %u", k, made_of, j);
		}
}

Test(cuda_low_rank, steps_are_what_they_are_defined_as)
{
	static const struct shape shapes[] = {{ROWS, COLUMNS}};
	struct sides *sides = open_sides(RANK, shapes, 1);
	struct psd_error err = {0};
	uint32_t state = 1;

	draw_gradients(sides, &state);
	cr_assert_eq(psd_device_cuda.kernels->project(sides->device, &sides->there, &err), PSD_OK, "%s", err.text);
	double *start = known(sides, &sides->right), *sum = known(sides, &sides->residual);
	double *before = known(sides, &sides->left);

	cr_assert_eq(psd_device_cuda.kernels->fit(sides->device, &sides->there, &err), PSD_OK, "%s", err.text);
	double *left = known(sides, &sides->left), *right = known(sides, &sides->right);
	double *lost = known(sides, &sides->residual);
	const struct matrix left_one = {left, RANK, 1}, right_one = {right, COLUMNS, 1}, whole = {sum, COLUMNS, 1};

	cr_assert_eq(psd_device_cuda.kernels->expand(sides->device, &sides->there, &err), PSD_OK, "%s", err.text);
	double *gradient = known(sides, &sides->gradients[0]);

	expect_product(before, NULL, 1, whole, (struct matrix){start, 1, COLUMNS},
		       (const unsigned[]){ROWS, RANK, COLUMNS}, "a left matrix");
	expect_basis(left, before);
	expect_product(right, NULL, 1, (struct matrix){left, 1, RANK}, whole, (const unsigned[]){RANK, COLUMNS, ROWS},
		       "a right matrix");
	expect_product(lost, sum, -1, left_one, right_one, (const unsigned[]){ROWS, COLUMNS, RANK}, "the residual");
	expect_product(gradient, NULL, 1, left_one, right_one, (const unsigned[]){ROWS, COLUMNS, RANK}, "a gradient");
	free(start), free(sum), free(before), free(left), free(right), free(lost), free(gradient);
	close_sides(sides);
}

/* ---- no numbers ---- */

Test(cuda_low_rank, nonfinite_values_become_nan)
{
	static const struct shape shapes[] = {{40, 50}, {3, 0}, {20, 30}};
	static const float wrong[] = {INFINITY, -INFINITY, NAN};

	for (unsigned w = 0; w < 3; w++) {
		struct sides *sides = open_sides(2, shapes, 3);
		uint32_t state = 1;
		struct psd_error err = {0};

		draw_gradients(sides, &state);
		sides->gradients[0].here[77] = wrong[w];
		put(sides, &sides->gradients[0]);
		cr_assert_eq(psd_device_cuda.kernels->project(sides->device, &sides->there, &err), PSD_OK);
		cr_assert_eq(psd_device_cuda.kernels->fit(sides->device, &sides->there, &err), PSD_OK);
		cr_assert_eq(psd_device_cuda.kernels->expand(sides->device, &sides->there, &err), PSD_OK);
		float *gradient = get(sides, &sides->gradients[0]);

		for (unsigned e = 0; e < 40 * 50; e++)
			cr_expect(isnan(gradient[e]), "%g ends as %g", (double)wrong[w], (double)gradient[e]);
		free(gradient);
		gradient = get(sides, &sides->gradients[2]);
		for (unsigned e = 0; e < 20 * 30; e++)
			cr_expect(isfinite(gradient[e]), "beside %g: %g", (double)wrong[w], (double)gradient[e]);
		free(gradient);
		close_sides(sides);
	}
}
