/* Algebra of one worker's low-rank factors: gradients with few ranks, with none, or with NaNs. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "tests/real/device/low_rank_helper.h"

/* Tolerance, relative to the largest value, of a matrix with at most the compressed rank. A left column of 600 products
 * may be off by 600 roundings, 4e-5, relative to its terms' magnitudes, and more relative to its sum. */
#define WHOLE_RATIO 1e-4

static void go_alone(struct low_rank_worker *of)
{
	low_rank_step(of, psd_low_rank_project);
	low_rank_step(of, psd_low_rank_fit);
	low_rank_step(of, psd_low_rank_expand);
}

/* Whole numbers, products of two small matrices of so many ranks: floats hold them. */
static void fill_ranks(struct low_rank_worker *of, unsigned ranks, unsigned seed)
{
	const struct psd_low_rank_tensor *tensor = &of->tensors[0];

	for (uint32_t i = 0; i < tensor->shape.rows; i++)
		for (uint32_t c = 0; c < tensor->shape.columns; c++) {
			int sum = 0;

			for (unsigned k = 0; k < ranks; k++)
				sum += ((int)(psd_random_mix(seed << 24 | i << 8 | k) % 7) - 3) *
				       ((int)(psd_random_mix(seed << 24 | 1u << 23 | c << 8 | k) % 7) - 3);
			tensor->gradient[(uint64_t)i * tensor->shape.columns + c] = (float)sum;
		}
}

static double largest(const float *values, uint64_t n)
{
	double most = 0.0;

	for (uint64_t e = 0; e < n; e++)
		most = fmax(most, fabs((double)values[e]));
	return most;
}

/* No NaN is. */
static void expect_values(const float *actual, const float *expected, uint64_t n, double tolerance, const char *what)
{
	for (uint64_t e = 0; e < n; e++)
		cr_assert(fabs((double)actual[e] - (expected ? (double)expected[e] : 0.0)) <= tolerance,
			  "%s %lu: %g, must be %g", what, (unsigned long)e, (double)actual[e],
			  expected ? (double)expected[e] : 0.0);
}

static void expect_whole(const struct low_rank_worker *of, const float *gradient)
{
	const double tolerance = WHOLE_RATIO * largest(gradient, of->elements);

	cr_assert_gt(tolerance, 0.0);
	expect_values(of->tensors[0].gradient, gradient, of->elements, tolerance, "gradient");
	expect_values(of->work.residual, NULL, of->elements, tolerance, "residual");
}

/* Its columns are all in so many directions: what is over is nothing, and starts anew. */
static void expect_directions(const struct low_rank_worker *of, unsigned ranks)
{
	const struct psd_low_rank_shape shape = of->tensors[0].shape;
	unsigned n_left = 0, n_right = 0;

	for (unsigned j = 0; j < of->work.rank; j++) {
		bool is_left = false;

		for (uint32_t i = 0; i < shape.rows; i++)
			is_left = is_left || of->work.left[i * of->work.rank + j] != 0.0f;
		n_left += is_left;
		n_right += largest(of->work.right + (uint64_t)j * shape.columns, shape.columns) > 0.0;
	}
	cr_expect_eq(n_left, ranks, "%u columns", n_left);
	cr_expect_eq(n_right, ranks, "%u rows", n_right);
}

/* Also the second time, and what came of another matrix before. */
static void check_ranks(const struct low_rank_layout *layout, unsigned ranks)
{
	struct low_rank_worker of;
	float *once;

	low_rank_open(&of, layout, 1);
	once = low_rank_take(of.elements);
	for (unsigned round = 0; round < 3; round++) {
		fill_ranks(&of, ranks, round == 2);
		memcpy(once, of.tensors[0].gradient, of.elements * sizeof(float));
		go_alone(&of);
		expect_whole(&of, once);
		if (round < 2) /* else roundings of what is left of the other matrix may be one more */
			expect_directions(&of, ranks);
	}
	free(once);
	low_rank_close(&of);
}

Test(low_rank_ranks, a_matrix_of_few_ranks_travels_whole)
{
	static const struct low_rank_layout of[] = {
		{1, 1, 1, {MATRIX(30, 600)}}, {4, 1, 1, {MATRIX(21, 45)}}, {16, 1, 1, {MATRIX(60, 513)}}};

	check_ranks(&of[0], 1);
	for (unsigned ranks = 1; ranks <= 4; ranks++)
		check_ranks(&of[1], ranks);
	check_ranks(&of[2], 3);
	check_ranks(&of[2], 16);
}

/* The left matrix is then of zeros, too; what comes behind starts as the first did. */
Test(low_rank_ranks, without_a_gradient_nothing_travels)
{
	static const struct low_rank_layout layout = {2, 1, 1, {MATRIX(19, 70)}};
	struct low_rank_worker of;
	float *once;

	low_rank_open(&of, &layout, 1);
	once = low_rank_take(of.elements);
	for (unsigned round = 0; round < 2; round++) {
		go_alone(&of);
		expect_values(of.tensors[0].gradient, NULL, of.elements, 0.0, "gradient");
		expect_values(of.work.residual, NULL, of.elements, 0.0, "residual");
		expect_values(of.work.left, NULL, of.n_left, 0.0, "left");
		expect_values(of.work.right, NULL, of.n_right, 0.0, "right");
	}
	fill_ranks(&of, 2, 0);
	memcpy(once, of.tensors[0].gradient, of.elements * sizeof(float));
	go_alone(&of);
	expect_whole(&of, once);
	free(once);
	low_rank_close(&of);
}

/* Row 1 of the first gradient has values in column 1 alone, the second gradient is a value in row 2, column 2. Right
 * then has a value in column 1 alone, which the second has nothing in: it stays. Right is of zeros, starts anew, and
 * the value travels. */
Test(low_rank_ranks, what_was_left_travels_later)
{
	enum { COLUMNS = 40, VALUE = 3 };
	static const struct low_rank_layout layout = {1, 1, 1, {MATRIX(10, COLUMNS)}};
	struct low_rank_worker of;
	float *expected;

	low_rank_open(&of, &layout, 1);
	expected = low_rank_take(of.elements);
	of.tensors[0].gradient[1 * COLUMNS + 1] = VALUE;
	go_alone(&of);
	expected[1 * COLUMNS + 1] = VALUE;
	expect_whole(&of, expected);
	memset(of.tensors[0].gradient, 0, of.elements * sizeof(float));
	memset(of.work.residual, 0, of.elements * sizeof(float)); /* roundings */
	of.tensors[0].gradient[2 * COLUMNS + 2] = VALUE;
	go_alone(&of);
	expect_values(of.tensors[0].gradient, NULL, of.elements, 0.0, "gradient");
	expected[1 * COLUMNS + 1] = 0.0f;
	expected[2 * COLUMNS + 2] = VALUE;
	expect_values(of.work.residual, expected, of.elements, 0.0, "residual");
	go_alone(&of);
	expect_whole(&of, expected);
	free(expected);
	low_rank_close(&of);
}

/* ---- columns that depend on others ---- */

/* Columns of left, and the unit vectors that they are to become; of 8 values, the others are zeros. */
static void check_columns(const float columns[3][3], const double units[3][3])
{
	static const struct low_rank_layout layout = {3, 1, 1, {MATRIX(8, 20)}};
	struct low_rank_worker of;

	low_rank_open(&of, &layout, 1);
	for (unsigned i = 0; i < 3; i++)
		for (unsigned j = 0; j < 3; j++)
			of.work.left[i * 3 + j] = columns[j][i];
	low_rank_step(&of, psd_low_rank_fit);
	for (unsigned i = 0; i < 8; i++)
		for (unsigned j = 0; j < 3; j++)
			cr_expect_float_eq((double)of.work.left[i * 3 + j], i < 3 ? units[j][i] : 0.0,
					   ROUNDING + DOUBLE_NOISE, "value %u of column %u is %g", i, j,
					   (double)of.work.left[i * 3 + j]);
	low_rank_close(&of);
}

/* 3, 4, 5 is a triangle. The rest of a column has this square: 2^-32 of the column's is more than 1e-10 of it, 2^-34 is
 * less. */
Test(low_rank_ranks, columns_without_a_direction_of_their_own_become_zeros)
{
	check_columns((const float[3][3]){{3, 4, 0}, {6, 8, 0}, {3, 4, 2}},
		      (const double[3][3]){{0.6, 0.8, 0}, {0, 0, 0}, {0, 0, 1}});
	check_columns((const float[3][3]){{0, 0, 0}, {0, -2, 0}, {1, 5, 0}},
		      (const double[3][3]){{0, 0, 0}, {0, -1, 0}, {1, 0, 0}});
	check_columns((const float[3][3]){{0, 0, 0}, {0, 0, 0}, {0, 0, 0}},
		      (const double[3][3]){{0, 0, 0}, {0, 0, 0}, {0, 0, 0}});
	check_columns((const float[3][3]){{1, 0, 0}, {1, 0x1p-16f, 0}, {1, 1, 1}},
		      (const double[3][3]){{1, 0, 0}, {0, 1, 0}, {0, 0, 1}});
	check_columns((const float[3][3]){{1, 0, 0}, {1, 0x1p-17f, 0}, {1, 1, 0}},
		      (const double[3][3]){{1, 0, 0}, {0, 0, 0}, {0, 1, 0}});
}

/* ---- NaNs ---- */

static void check_no_number(const struct low_rank_layout *layout, float value)
{
	struct low_rank_worker of;
	unsigned n_numbers = 0;

	low_rank_open(&of, layout, 1);
	for (unsigned round = 0; round < 2; round++) {
		fill_ranks(&of, 4, 0);
		if (round == 1)
			of.tensors[0].gradient[17] = value;
		go_alone(&of);
		for (uint64_t e = 0; e < of.elements; e++)
			n_numbers += round == 1 && !isnan(of.tensors[0].gradient[e]);
	}
	cr_expect_eq(n_numbers, 0, "rank %u, %g: %u values are numbers", layout->rank, (double)value, n_numbers);
	low_rank_close(&of);
}

/* NaNs must show in the loss. */
Test(low_rank_ranks, no_number_makes_a_gradient_of_none)
{
	static const struct low_rank_layout of[] = {{1, 1, 1, {MATRIX(20, 500)}}, {3, 1, 1, {MATRIX(20, 35)}}};

	for (unsigned l = 0; l < 2; l++) {
		check_no_number(&of[l], NAN);
		check_no_number(&of[l], INFINITY);
		check_no_number(&of[l], -INFINITY);
	}
}
