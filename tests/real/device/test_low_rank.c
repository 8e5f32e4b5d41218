/* Low-rank factors of several tensors side by side. Each step of two workers is compared with plain double precision,
 * from the values at the step's beginning, so that the bound covers that step's rounding alone. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "tests/real/device/low_rank_helper.h"
#include "tests/real/plain_low_rank.h"

enum { ROUNDS = 3, WORKERS = 2 };

/* Sizes around 16 and 512, the smallest and narrowest matrices that are compressed, and some tensors that are not. */
static const struct low_rank_layout layouts[] = {
	{1, 7, 5, {PLAIN(7), MATRIX(2, 3), MATRIX(3, 2), MATRIX(2, 2), MATRIX(5, 517), MATRIX(2, 511), MATRIX(900, 2)}},
	{1, 1, 1, {MATRIX(33, 16)}},
	{2, 4, 3, {MATRIX(40, 1025), PLAIN(1), KERNEL(8, 3), MATRIX(3, 7)}},
	{3,
	 8,
	 4,
	 {PLAIN(100), MATRIX(7, 9), MATRIX(1, 1000), MATRIX(20, 500), PLAIN(3), MATRIX(9, 513), MATRIX(600, 7),
	  PLAIN(5)}},
	{16, 3, 2, {MATRIX(48, 48), PLAIN(31), MATRIX(17, 1537)}},
	{64, 4, 2, {MATRIX(130, 140), PLAIN(64), MATRIX(128, 127), MATRIX(200, 600)}},
};
enum { N_LAYOUTS = sizeof(layouts) / sizeof(layouts[0]) };

/* ---- steps ---- */

/* One tensor of a worker: before a step, and behind it. */
struct view {
	struct plain_shape shape; /* rows 0: not compressed */
	uint64_t elements;
	unsigned number;
	float *residual, *left, *right, *new_gradient, *new_residual, *new_left, *new_right;
	const float *gradient;
};

typedef void view_fn(const struct view *view);

static void for_views(const struct low_rank_worker *of, view_fn *look)
{
	uint64_t at = 0, left = 0, right = 0;

	for (unsigned t = 0; t < of->work.n_tensors; t++) {
		const struct psd_low_rank_tensor *tensor = &of->tensors[t];
		const struct plain_shape shape = {tensor->shape.rows, tensor->shape.columns, of->work.rank};

		look(&(struct view){.shape = shape,
				    .elements = tensor->elements,
				    .number = tensor->number,
				    .gradient = of->gradient + at,
				    .residual = of->residual + at,
				    .left = of->left + left,
				    .right = of->right + right,
				    .new_gradient = tensor->gradient,
				    .new_residual = of->work.residual + at,
				    .new_left = of->work.left + left,
				    .new_right = of->work.right + right});
		at += tensor->elements;
		left += shape.rows ? (uint64_t)shape.rows * shape.rank : tensor->elements;
		right += (uint64_t)shape.columns * shape.rank;
	}
}

static double *in_double(const float *values, uint64_t n, bool in_size)
{
	double *copy = calloc(n, sizeof(*copy));

	cr_assert(copy);
	for (uint64_t e = 0; e < n && values; e++)
		copy[e] = in_size ? fabs((double)values[e]) : (double)values[e];
	return copy;
}

static void expect_same(const float *actual, const float *expected, uint64_t n, const char *what)
{
	cr_assert_eq(memcmp(actual, expected, n * sizeof(*actual)), 0, "%s: a step wrote over it", what);
}

static void expect_near(const float *actual, const double *expected, const double *sizes, double ratio, uint64_t n,
			const char *what)
{
	for (uint64_t e = 0; e < n; e++)
		cr_assert_leq(fabs((double)actual[e] - expected[e]), ratio * sizes[e], "%s %lu: %.9g, must be %.9g",
			      what, (unsigned long)e, (double)actual[e], expected[e]);
}

/* Expected product of a step and the sum of its terms' magnitudes; of floats. */
struct product {
	double *values, *sizes;
};

typedef void product_fn(struct plain_shape of, const double *left, const double *right, double *to);

static struct product product_of(struct plain_shape shape, product_fn *multiply, const float *one, uint64_t n_one,
				 const float *other, uint64_t n_other, uint64_t n)
{
	struct product product = {in_double(NULL, n, false), in_double(NULL, n, false)};

	for (unsigned in_size = 0; in_size < 2; in_size++) {
		double *left = in_double(one, n_one, in_size), *right = in_double(other, n_other, in_size);

		multiply(shape, left, right, in_size ? product.sizes : product.values);
		free(left);
		free(right);
	}
	return product;
}

static void release(struct product *product)
{
	free(product->values);
	free(product->sizes);
}

static uint64_t n_left_of(const struct view *view)
{
	return (uint64_t)view->shape.rows * view->shape.rank;
}

static uint64_t n_right_of(const struct view *view)
{
	return (uint64_t)view->shape.columns * view->shape.rank;
}

/* ---- project ---- */

static void expect_starts(const struct view *view)
{
	for (unsigned j = 0; j < view->shape.rank; j++) {
		const uint64_t first = (uint64_t)j * view->shape.columns;
		bool is_zero = true;

		for (unsigned c = 0; c < view->shape.columns; c++)
			is_zero = is_zero && view->right[first + c] == 0.0f;
		for (unsigned c = 0; c < view->shape.columns; c++)
			cr_assert_eq(view->new_right[first + c],
				     is_zero ? psd_low_rank_start(view->number, j, c) : view->right[first + c],
				     "row %u of right", j);
	}
}

/* A sum of two floats is rounded once. */
static void expect_projected(const struct view *view)
{
	expect_same(view->new_gradient, view->gradient, view->elements, "gradient");
	if (view->shape.rows == 0) {
		expect_same(view->new_left, view->gradient, view->elements, "an uncompressed tensor");
		expect_same(view->new_residual, view->residual, view->elements, "residual");
		return;
	}
	for (uint64_t e = 0; e < view->elements; e++)
		cr_assert_eq(view->new_residual[e], (float)((double)view->residual[e] + (double)view->gradient[e]));
	expect_starts(view);
	struct product left = product_of(view->shape, plain_project, view->new_residual, view->elements,
					 view->new_right, n_right_of(view), n_left_of(view));

	expect_near(view->new_left, left.values, left.sizes, view->shape.columns * ROUNDING, n_left_of(view), "left");
	release(&left);
}

/* ---- fit ---- */

static void expect_orthonormal(struct plain_shape shape, const float *basis)
{
	double *left = in_double(basis, (uint64_t)shape.rows * shape.rank, false);

	/* each vector is off by a rounding of its length, which is 1 */
	for (unsigned j = 0; j < shape.rank; j++)
		for (unsigned k = 0; k < shape.rank; k++)
			cr_assert_float_eq(plain_column_product(shape, left, j, k), j == k ? 1.0 : 0.0,
					   2.0 * ROUNDING + DOUBLE_NOISE, "columns %u and %u", j, k);
	free(left);
}

static void expect_basis(const struct view *view)
{
	double *basis = in_double(view->left, n_left_of(view), false);

	plain_make_orthonormal(view->shape, basis);
	for (uint64_t e = 0; e < n_left_of(view); e++)
		cr_assert_float_eq((double)view->new_left[e], basis[e], ROUNDING * fabs(basis[e]) + DOUBLE_NOISE,
				   "value %lu of left", (unsigned long)e);
	expect_orthonormal(view->shape, view->new_left);
	free(basis);
}

static void subtract(struct plain_shape of, const double *left, const double *right, double *wide)
{
	plain_expand(of, left, right, -1.0, wide);
}

static void add(struct plain_shape of, const double *left, const double *right, double *wide)
{
	plain_expand(of, left, right, 1.0, wide);
}

/* The former residual equals the product plus the new residual. */
static void expect_rest(const struct view *view)
{
	struct product rest = product_of(view->shape, subtract, view->new_left, n_left_of(view), view->new_right,
					 n_right_of(view), view->elements);

	for (uint64_t e = 0; e < view->elements; e++) {
		rest.values[e] += (double)view->residual[e];
		rest.sizes[e] = fabs(rest.sizes[e]) + fabs((double)view->residual[e]);
	}
	expect_near(view->new_residual, rest.values, rest.sizes, (view->shape.rank + 1) * ROUNDING, view->elements,
		    "residual");
	release(&rest);
}

static void expect_fitted(const struct view *view)
{
	expect_same(view->new_gradient, view->gradient, view->elements, "gradient");
	if (view->shape.rows == 0) {
		expect_same(view->new_left, view->left, view->elements, "an uncompressed tensor");
		expect_same(view->new_residual, view->residual, view->elements, "residual");
		return;
	}
	expect_basis(view);
	struct product right = product_of(view->shape, plain_fit, view->new_left, n_left_of(view), view->residual,
					  view->elements, n_right_of(view));

	expect_near(view->new_right, right.values, right.sizes, view->shape.rows * ROUNDING, n_right_of(view), "right");
	expect_rest(view);
	release(&right);
}

/* ---- expand ---- */

static void expect_expanded(const struct view *view)
{
	expect_same(view->new_residual, view->residual, view->elements, "residual");
	if (view->shape.rows == 0) {
		expect_same(view->new_gradient, view->new_left, view->elements, "an uncompressed tensor");
		return;
	}
	expect_same(view->new_left, view->left, n_left_of(view), "left");
	expect_same(view->new_right, view->right, n_right_of(view), "right");
	struct product gradient = product_of(view->shape, add, view->left, n_left_of(view), view->right,
					     n_right_of(view), view->elements);

	expect_near(view->new_gradient, gradient.values, gradient.sizes, view->shape.rank * ROUNDING, view->elements,
		    "gradient");
	release(&gradient);
}

/* ---- iterations ---- */

/* Values with every size and sign, no two alike. */
static void fill(struct low_rank_worker *of, unsigned worker, unsigned round)
{
	uint64_t at = 1;

	for (unsigned t = 0; t < of->work.n_tensors; t++)
		for (uint64_t e = 0; e < of->tensors[t].elements; e++, at++) {
			const uint64_t bits = psd_random_mix(at << 8 | worker << 4 | round);

			of->tensors[t].gradient[e] =
				(float)(int32_t)(bits >> 32) * 0x1p-31f * (0.1f + 0.9f * (float)(at % 97) / 97.0f);
		}
}

/* As an all-reduce: each worker has the sum. */
static void sum(float *one, float *other, uint64_t n)
{
	for (uint64_t e = 0; e < n; e++)
		one[e] = other[e] = one[e] + other[e];
}

static void go(struct low_rank_worker workers[WORKERS], unsigned round)
{
	for (unsigned w = 0; w < WORKERS; w++) {
		fill(&workers[w], w, round);
		low_rank_step(&workers[w], psd_low_rank_project);
		for_views(&workers[w], expect_projected);
	}
	sum(workers[0].work.left, workers[1].work.left, workers[0].n_left);
	for (unsigned w = 0; w < WORKERS; w++) {
		low_rank_step(&workers[w], psd_low_rank_fit);
		for_views(&workers[w], expect_fitted);
	}
	sum(workers[0].work.right, workers[1].work.right, workers[0].n_right);
	for (unsigned w = 0; w < WORKERS; w++) {
		low_rank_step(&workers[w], psd_low_rank_expand);
		for_views(&workers[w], expect_expanded);
	}
}

static void check(const struct low_rank_layout *layout, unsigned n_threads)
{
	struct low_rank_worker workers[WORKERS];
	unsigned n_matrices = 0;

	for (unsigned w = 0; w < WORKERS; w++)
		low_rank_open(&workers[w], layout, n_threads);
	for (unsigned t = 0; t < layout->n_tensors; t++)
		n_matrices += workers[0].tensors[t].shape.rows > 0;
	cr_assert_eq(n_matrices, layout->n_matrices);
	for (unsigned round = 0; round < ROUNDS; round++)
		go(workers, round);
	for (unsigned w = 0; w < WORKERS; w++)
		low_rank_close(&workers[w]);
}

Test(low_rank, every_step_is_that_of_matrices_alone)
{
	for (unsigned l = 0; l < N_LAYOUTS; l++)
		for (unsigned n_threads = 1; n_threads <= 2; n_threads++)
			check(&layouts[l], n_threads);
}

/* Compares sums of left and right factors with those of `one`. */
static void check_threads(struct low_rank_worker *one, const struct low_rank_layout *layout, const float *sums,
			  unsigned n_threads)
{
	struct low_rank_worker other;

	low_rank_open(&other, layout, n_threads);
	memcpy(other.work.left, sums, one->n_left * sizeof(float));
	low_rank_step(&other, psd_low_rank_fit);
	expect_same(other.work.left, one->work.left, one->n_left, "basis");
	memcpy(other.work.right, one->work.right, one->n_right * sizeof(float));
	low_rank_step(&other, psd_low_rank_expand);
	expect_same(other.tensors[0].gradient, one->tensors[0].gradient, one->elements, "product");
	low_rank_close(&other);
}

/* Hosts may have different numbers of threads: shared results have the same bits. */
Test(low_rank, threads_change_no_bit_of_what_all_have)
{
	static const struct low_rank_layout of[] = {{4, 1, 1, {MATRIX(512, 4608)}}, {64, 1, 1, {MATRIX(700, 3000)}}};

	for (unsigned l = 0; l < 2; l++) {
		struct low_rank_worker one;
		float *sums;

		low_rank_open(&one, &of[l], 1);
		fill(&one, 0, 0);
		low_rank_step(&one, psd_low_rank_project);
		sums = low_rank_take(one.n_left);
		memcpy(sums, one.work.left, one.n_left * sizeof(float));
		low_rank_step(&one, psd_low_rank_fit);
		low_rank_step(&one, psd_low_rank_expand);
		for (unsigned n_threads = 2; n_threads <= 4; n_threads++)
			check_threads(&one, &of[l], sums, n_threads);
		free(sums);
		low_rank_close(&one);
	}
}

/* Other rows go on from where they are. */
Test(low_rank, a_row_of_zeros_starts_anew)
{
	static const struct low_rank_layout of = {3, 2, 2, {MATRIX(20, 37), MATRIX(11, 20)}};
	struct low_rank_worker workers[WORKERS];

	for (unsigned w = 0; w < WORKERS; w++)
		low_rank_open(&workers[w], &of, 1);
	go(workers, 0);
	for (unsigned w = 0; w < WORKERS; w++) {
		memset(workers[w].work.right + 37, 0, 37 * sizeof(float));		/* the second of the first */
		memset(workers[w].work.right + 3 * 37 + 2 * 20, 0, 20 * sizeof(float)); /* the last of the second */
		workers[w].work.right[3 * 37 + 5] = 0.0f;				/* not a whole row */
	}
	go(workers, 1);
	for (unsigned w = 0; w < WORKERS; w++)
		low_rank_close(&workers[w]);
}

/* Tensors, rows and columns start differently, about 0: of 4096 values that are even between -1 and 1 the mean is off
 * by 0.009 at random, and their square's by 0.005 from a third. */
Test(low_rank, starts_are_spread)
{
	enum { COLUMNS = 4096 };
	double sum = 0.0, squares = 0.0;

	for (unsigned c = 0; c < COLUMNS; c++) {
		const double start = (double)psd_low_rank_start(5, 1, c);

		sum += start;
		squares += start * start;
		cr_assert(start >= -1.0 && start <= 1.0);
		cr_assert_neq(psd_low_rank_start(5, 1, c), psd_low_rank_start(5, 2, c));
		cr_assert_neq(psd_low_rank_start(5, 1, c), psd_low_rank_start(6, 1, c));
		cr_assert_neq(psd_low_rank_start(5, 1, c), psd_low_rank_start(5, 1, c + 1));
	}
	cr_expect_float_eq(sum / COLUMNS, 0.0, 5 * 0.009);
	cr_expect_float_eq(squares / COLUMNS, 1.0 / 3.0, 5 * 0.005);
}
