/* Which tensors travel as products of two narrow matrices, and how many values these have. */
#include <criterion/criterion.h>

#include "engine/encodings/low_rank.h"

/* A row: dimensions, 0 behind the last, and the rank; then rows and columns of the matrix, 0 where it has none. */
struct shape_row {
	uint32_t dims[4], rank, rows, columns;
};

static struct psd_tensor tensor_of(const uint32_t dims[4])
{
	struct psd_tensor tensor = {.elements = 1};

	for (unsigned d = 0; d < 4 && dims[d]; d++) {
		tensor.dims[tensor.n_dims++] = dims[d];
		tensor.elements *= dims[d];
	}
	return tensor;
}

static void expect_shape(const struct shape_row *row)
{
	const struct psd_tensor tensor = tensor_of(row->dims);
	const struct psd_low_rank_shape shape = psd_low_rank_shape_of(&tensor, row->rank);
	const uint64_t left = row->rows ? (uint64_t)row->rows * row->rank : tensor.elements;

	cr_expect_eq(shape.rows, row->rows, "%u x %u, rank %u: %u rows", row->dims[0], row->dims[1], row->rank,
		     shape.rows);
	cr_expect_eq(shape.columns, row->columns, "%u x %u, rank %u: %u columns", row->dims[0], row->dims[1], row->rank,
		     shape.columns);
	cr_expect_eq(psd_low_rank_left(&tensor, row->rank), left, "%u x %u, rank %u", row->dims[0], row->dims[1],
		     row->rank);
	cr_expect_eq(psd_low_rank_right(&tensor, row->rank), (uint64_t)row->columns * row->rank, "%u x %u, rank %u",
		     row->dims[0], row->dims[1], row->rank);
}

static void expect_shapes(const struct shape_row *rows, unsigned n)
{
	for (unsigned r = 0; r < n; r++)
		expect_shape(&rows[r]);
}

/* (32 + 96) * 24 are 32 * 96 values: rank 24 saves nothing. A square of n rows has the same limit at n / 2. */
Test(low_rank_shape, narrow_matrices_have_fewer_values)
{
	static const struct shape_row rows[] = {
		{{32, 96}, 1, 32, 96},	    {{32, 96}, 23, 32, 96}, {{32, 96}, 24, 0, 0}, {{32, 96}, 25, 0, 0},
		{{96, 32}, 23, 96, 32},	    {{96, 32}, 24, 0, 0},   {{4, 4}, 1, 4, 4},	  {{4, 4}, 2, 0, 0},
		{{128, 128}, 63, 128, 128}, {{128, 128}, 64, 0, 0},
	};

	expect_shapes(rows, sizeof(rows) / sizeof(*rows));
}

/* Outputs by all that each has: (64 + 3 * 3 * 3) * 18 are 1638 of 1728 values, with 19 they are 1729. */
Test(low_rank_shape, weights_of_convolutions_are_outputs_by_the_rest)
{
	static const struct shape_row rows[] = {
		{{64, 3, 3, 3}, 2, 64, 27},   {{64, 3, 3, 3}, 18, 64, 27}, {{64, 3, 3, 3}, 19, 0, 0},
		{{32, 32, 5, 5}, 4, 32, 800}, {{8, 6, 5}, 6, 8, 30},	   {{8, 6, 5}, 7, 0, 0},
	};

	expect_shapes(rows, sizeof(rows) / sizeof(*rows));
}

/* A vector has no columns; n by 1, n + 1 values of rank 1. */
Test(low_rank_shape, vectors_travel_as_they_are)
{
	static const struct shape_row rows[] = {
		{{1000}, 1, 0, 0},	   {{1}, 1, 0, 0},    {{1000, 1}, 1, 0, 0},
		{{1, 1000}, 1, 0, 0},	   {{1, 1}, 1, 0, 0}, {{1, 8, 8, 8}, 1, 0, 0},
		{{512, 1, 1, 1}, 1, 0, 0}, {{2, 2}, 1, 0, 0}, {{2, 3}, 1, 2, 3}, /* 5 of 6 */
	};

	expect_shapes(rows, sizeof(rows) / sizeof(*rows));
}

/* Sums beyond 32 bits: (2^31 + 2^31) * 64 values are 2^38, of 2^62. */
Test(low_rank_shape, large_matrices_are_counted_in_64_bits)
{
	static const struct shape_row large = {{1u << 31, 1u << 31}, PSD_MOST_RANK, 1u << 31, 1u << 31};

	expect_shape(&large);
}

/* Columns are numbered in 32 bits: 2^16 times 2^16 - 1 are, 2^16 times 2^16 are not. */
Test(low_rank_shape, rows_too_long_to_number_travel_as_they_are)
{
	static const struct shape_row rows[] = {{{8, 1u << 16, (1u << 16) - 1}, 1, 8, 0xffff0000},
						{{8, 1u << 16, 1u << 16}, 1, 0, 0},
						{{8, 1u << 16, (1u << 16) + 1}, 1, 0, 0}};

	expect_shapes(rows, sizeof(rows) / sizeof(*rows));
}
