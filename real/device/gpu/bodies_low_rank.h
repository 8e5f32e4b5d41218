/* Kernel bodies of low-rank compression; kernels.h describes their arguments. They compute the same results as
 * real/device/low_rank.c, except that products are added in another order. */
#ifndef PSD_REAL_GPU_BODIES_LOW_RANK_H
#define PSD_REAL_GPU_BODIES_LOW_RANK_H

#include "real/device/gpu/values.h"
#include "real/device/low_rank.h"

PSD_BODY void psd_low_rank_move_at(uint64_t i, const struct psd_gpu_low_rank_move *of)
{
	const uint32_t unit = (uint32_t)(i / PSD_GPU_PARTS);
	const struct psd_gpu_move_span *span = of->spans;
	uint32_t first = 0;

	for (; unit >= span->end; span++)
		first = span->end;
	const uint64_t begin = (uint64_t)(unit - first) * PSD_GPU_MOVE_UNIT, whole_end = begin + PSD_GPU_MOVE_UNIT;
	const uint64_t end = whole_end < span->elements ? whole_end : span->elements;

	for (uint64_t e = begin + i % PSD_GPU_PARTS; e < end; e += PSD_GPU_PARTS)
		span->to[e] = span->adds ? span->to[e] + span->from[e] : span->from[e];
}

/* ---- rows of zeros ---- */

struct psd_right_row {
	float *values;
	uint32_t columns, number; /* number of columns of the row, and number of its tensor in the graph */
	uint32_t row;
};

/* Finds one row of the right matrices. row: number of the row, from 0, counted over all right matrices that this kernel
 * launch handles. */
PSD_BODY struct psd_right_row psd_right_row_of(const struct psd_gpu_matrices *all, uint32_t row)
{
	const struct psd_gpu_matrix *matrix = &all->matrices[row / all->rank];
	struct psd_right_row one;

	one.row = row % all->rank;
	one.columns = matrix->columns;
	one.number = matrix->number;
	one.values = matrix->right + (uint64_t)one.row * matrix->columns;
	return one;
}

/* Sets `found` of one part of a row of `right` to 1 if the part has a value that is not zero (NaN counts), otherwise to
 * 0. Part p has the columns p, p + PSD_GPU_PARTS, ... and stops at the first such value. Kernel indices: (rows of all
 * right matrices) * PSD_GPU_PARTS. */
PSD_BODY void psd_low_rank_look_at(uint64_t i, const struct psd_gpu_matrices *of)
{
	const struct psd_right_row row = psd_right_row_of(of, (uint32_t)(i / PSD_GPU_PARTS));
	uint32_t found = 0;

	for (uint32_t c = (uint32_t)(i % PSD_GPU_PARTS); c < row.columns && !found; c += PSD_GPU_PARTS)
		found = row.values[c] != 0.0f;
	of->found[i] = found;
}

/* Returns the starting value of an element of a right factor, with the same bits as psd_low_rank_start(). */
PSD_BODY float psd_start_of(uint32_t number, uint32_t row, uint32_t column)
{
	uint64_t bits = ((uint64_t)number << 40 | (uint64_t)row << 32 | column) + UINT64_C(0x9e3779b97f4a7c15);

	bits = (bits ^ bits >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	bits = (bits ^ bits >> 27) * UINT64_C(0x94d049bb133111eb);
	bits ^= bits >> 31;
	return (float)(int32_t)(bits >> 32) * 4.656612873077392578125e-10f; /* 2^-31 */
}

/* Overwrites each row of `right` in which all values are zero by starting values. Kernel indices: (rows of all right
 * matrices) * PSD_GPU_PARTS. */
PSD_BODY void psd_low_rank_start_at(uint64_t i, const struct psd_gpu_matrices *of)
{
	const struct psd_right_row row = psd_right_row_of(of, (uint32_t)(i / PSD_GPU_PARTS));
	const uint32_t *found = of->found + i / PSD_GPU_PARTS * PSD_GPU_PARTS;

	for (uint32_t p = 0; p < PSD_GPU_PARTS; p++)
		if (found[p])
			return;
	for (uint32_t c = (uint32_t)(i % PSD_GPU_PARTS); c < row.columns; c += PSD_GPU_PARTS)
		row.values[c] = psd_start_of(row.number, row.row, c);
}

/* ---- products of columns ---- */

struct psd_pair {
	uint32_t j, k;
};

/* Returns pair number `number` of the pairs of columns (j, k) with j <= k. They are numbered by j, then by k. */
PSD_BODY struct psd_pair psd_pair_of(uint32_t rank, uint32_t number)
{
	struct psd_pair pair;

	for (pair.j = 0; number >= rank - pair.j; pair.j++)
		number -= rank - pair.j;
	pair.k = pair.j + number;
	return pair;
}

PSD_BODY uint64_t psd_first_part(const struct psd_gpu_matrices *all, uint32_t matrix)
{
	return matrix ? all->matrices[matrix - 1].parts_end : 0;
}

/* Computes one partial sum of the inner product of two columns of a left matrix. Kernel indices: partial sums of all
 * matrices. Adjacent indices read the same rows. */
PSD_BODY void psd_low_rank_products_at(uint64_t i, const struct psd_gpu_matrices *all)
{
	uint32_t m = 0;
	double sum = 0.0;

	while (i >= all->matrices[m].parts_end)
		m++;
	const struct psd_gpu_matrix *matrix = &all->matrices[m];
	const uint32_t part = (uint32_t)(i - psd_first_part(all, m));
	const struct psd_pair pair = psd_pair_of(all->rank, part % all->n_pairs);

	for (uint64_t r = part / all->n_pairs; r < matrix->rows; r += matrix->n_lanes) {
		const float *row = matrix->left + r * all->rank;

		sum += (double)row[pair.j] * (double)row[pair.k];
	}
	all->parts[i] = sum;
}

/* Returns the address of the rank x rank values of matrix number `matrix`, in an array with such values for all
 * matrices of the launch. */
PSD_BODY double *psd_square_of(const struct psd_gpu_matrices *all, double *squares, uint32_t matrix)
{
	return squares + (uint64_t)matrix * all->rank * all->rank;
}

/* Adds the partial sums of the inner product of one pair of columns. Kernel indices: n * n_pairs. */
PSD_BODY void psd_low_rank_reduce_at(uint64_t i, const struct psd_gpu_matrices *all)
{
	const uint32_t m = (uint32_t)(i / all->n_pairs), number = (uint32_t)(i % all->n_pairs);
	const struct psd_pair pair = psd_pair_of(all->rank, number);
	const double *parts = all->parts + psd_first_part(all, m) + number;
	double sum = 0.0;

	for (uint32_t lane = 0; lane < all->matrices[m].n_lanes; lane++)
		sum += parts[(uint64_t)lane * all->n_pairs];
	psd_square_of(all, all->products, m)[pair.j * all->rank + pair.k] = sum;
}

/* ---- unit vectors ---- */

/* Returns the inner product of the columns `row` and `column`, minus its part in the directions of unit vectors 0 to
 * row - 1. */
PSD_BODY double psd_rest_of(double product, const double *factor, uint32_t rank, uint32_t row, uint32_t column)
{
	for (uint32_t r = 0; r < row; r++)
		product -= factor[r * rank + row] * factor[r * rank + column];
	return product;
}

/* Computes one element of a Cholesky factor. Each index also computes the diagonal element of its row, so that no index
 * waits for another index. */
PSD_BODY void psd_low_rank_factor_at(uint64_t i, const struct psd_gpu_low_rank_factor *of)
{
	const struct psd_gpu_matrices *all = &of->of;
	const uint32_t rank = all->rank, row = of->row, n = rank - row;
	const uint32_t m = (uint32_t)(i / n), column = row + (uint32_t)(i % n);
	const double *products = psd_square_of(all, all->products, m) + row * rank;
	double *factor = psd_square_of(all, all->factor, m);
	const double whole = products[row], rest = psd_rest_of(whole, factor, rank, row, row);
	const double length = rest <= PSD_LOW_RANK_LEAST * whole ? 0.0 : sqrt(rest);
	double value = length;

	if (column > row)
		value = length == 0.0 ? 0.0 : psd_rest_of(products[column], factor, rank, row, column) / length;
	factor[row * rank + column] = value;
}

/* Computes row j of the inverse of a Cholesky factor. It has the coefficients with which column j of the left matrix
 * enters the unit vectors j, j + 1, ... A row does not depend on other rows. Kernel indices: n * rank. */
PSD_BODY void psd_low_rank_inverse_at(uint64_t i, const struct psd_gpu_matrices *all)
{
	const uint32_t rank = all->rank, m = (uint32_t)(i / rank), j = (uint32_t)(i % rank);
	const double *factor = psd_square_of(all, all->factor, m);
	double *inverse = psd_square_of(all, all->inverse, m) + j * rank;

	for (uint32_t k = j; k < rank; k++) {
		const double length = factor[k * rank + k];
		double sum = k == j ? 1.0 : 0.0;

		for (uint32_t c = j; c < k; c++)
			sum -= inverse[c] * factor[c * rank + k];
		inverse[k] = length == 0.0 ? 0.0 : sum / length;
	}
}

/* Multiplies one row of a left matrix by the inverse of the Cholesky factor, in place. When all rows are multiplied,
 * the columns are orthonormal. Kernel indices: rows of all left matrices. */
PSD_BODY void psd_low_rank_basis_at(uint64_t i, const struct psd_gpu_matrices *all)
{
	uint32_t m = 0;

	while (i >= all->matrices[m].rows_end)
		m++;
	const uint64_t first = m ? all->matrices[m - 1].rows_end : 0;
	const double *inverse = psd_square_of(all, all->inverse, m);
	float *row = all->matrices[m].left + (i - first) * all->rank;

	/* the row's last column is computed first, since it depends on the old values of the columns before it */
	for (uint32_t k = all->rank; k-- > 0;) {
		double sum = 0.0;

		for (uint32_t j = 0; j <= k; j++)
			sum += (double)row[j] * inverse[j * all->rank + k];
		row[k] = (float)sum;
	}
}

#endif
