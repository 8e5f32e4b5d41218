/* See stand_in_product.h. */
#include "tests/cuda/stand_in_product.h"

#include <stdlib.h>

#include "tests/cuda/stand_in_parts.h"

static bool may_touch(const struct psd_stand_in_matrix *matrix)
{
	const size_t values = matrix->columns == 0 ? 0 : matrix->stride * (matrix->columns - 1) + matrix->rows;

	return values == 0 ||
	       psd_stand_in_may_touch(matrix->values, values * psd_stand_in_number_bytes(matrix->number));
}

/* op(matrix), column by column without gaps. */
static double *unpack(const struct psd_stand_in_matrix *matrix, bool is_tf32)
{
	const size_t rows = matrix->is_transposed ? matrix->columns : matrix->rows;
	double *const values = psd_stand_in_doubles(matrix->rows * matrix->columns);

	for (size_t column = 0; column < matrix->columns; column++)
		for (size_t row = 0; row < matrix->rows; row++) {
			const double value =
				psd_stand_in_read(matrix->number, matrix->values, column * matrix->stride + row);

			values[matrix->is_transposed ? row * rows + column : column * rows + row] =
				is_tf32 ? psd_stand_in_tf32(value) : value;
		}
	return values;
}

/* The value to store for one element. */
static double finish(const struct psd_stand_in_product *product, double sum, size_t row, size_t at)
{
	const enum psd_stand_in_number number = product->c.number;
	/* Without beta the old value is not read: it may be NaN. */
	const double before = product->beta == 0 ? 0 : psd_stand_in_read(number, product->c.values, at);
	double value = product->alpha * sum + product->beta * before;

	if (product->adds_vector)
		value += psd_stand_in_read(number, product->vector, row);
	return product->rectifies && !(value > 0) ? 0 : value;
}

static void store(const struct psd_stand_in_product *product, const double *sums)
{
	const struct psd_stand_in_matrix *const c = &product->c;

	for (size_t column = 0; column < c->columns; column++)
		for (size_t row = 0; row < c->rows; row++) {
			const size_t at = column * c->stride + row;

			psd_stand_in_write(c->number, c->values, at,
					   finish(product, sums[column * c->rows + row], row, at));
		}
}

static void sum_columns(const struct psd_stand_in_product *product, const double *b)
{
	for (size_t j = 0; j < product->n; j++) {
		double sum = 0;

		for (size_t l = 0; l < product->k; l++)
			sum += b[j * product->k + l];
		psd_stand_in_write(product->c.number, product->vector, j, sum);
	}
}

static bool may_touch_vector(const struct psd_stand_in_product *product)
{
	const size_t values = product->sums_b ? product->n : product->adds_vector ? product->m : 0;

	return values == 0 ||
	       psd_stand_in_may_touch(product->vector, values * psd_stand_in_number_bytes(product->c.number));
}

/* As where two parts of the depth are added in C's type. */
static void round_sums(const struct psd_stand_in_product *product, double *sums)
{
	float stored;

	for (size_t i = 0; i < product->m * product->n; i++) {
		psd_stand_in_write(product->c.number, &stored, 0, sums[i]);
		sums[i] = psd_stand_in_read(product->c.number, &stored, 0);
	}
}

static void add_products(const struct psd_stand_in_product *product, const double *a, const double *b, size_t first,
			 size_t end, double *sums)
{
	for (size_t j = 0; j < product->n; j++)
		for (size_t l = first; l < end; l++)
			for (size_t i = 0; i < product->m; i++)
				sums[j * product->m + i] += a[l * product->m + i] * b[j * product->k + l];
}

void psd_stand_in_run_product(void *arguments)
{
	const struct psd_stand_in_product *const product = arguments;
	double *a, *b, *sums;

	if (!may_touch(&product->a) || !may_touch(&product->b) || !may_touch(&product->c) || !may_touch_vector(product))
		return;
	psd_stand_in_scribble(product->workspace, product->workspace_bytes);
	a = unpack(&product->a, product->is_tf32);
	b = unpack(&product->b, product->is_tf32);
	sums = psd_stand_in_doubles(product->m * product->n);
	add_products(product, a, b, 0, product->k / 2, sums);
	if (product->rounds_parts)
		round_sums(product, sums);
	add_products(product, a, b, product->k / 2, product->k, sums);
	store(product, sums);
	if (product->sums_b)
		sum_columns(product, b);
	free(sums);
	free(b);
	free(a);
}

static struct psd_stand_in_matrix later(struct psd_stand_in_matrix matrix, long long elements)
{
	matrix.values = (char *)matrix.values + elements * (long long)psd_stand_in_number_bytes(matrix.number);
	return matrix;
}

void psd_stand_in_run_products(void *arguments)
{
	const struct psd_stand_in_products *const products = arguments;

	for (size_t i = 0; i < products->count; i++) {
		struct psd_stand_in_product one = products->first;

		one.a = later(one.a, (long long)i * products->a_next);
		one.b = later(one.b, (long long)i * products->b_next);
		one.c = later(one.c, (long long)i * products->c_next);
		psd_stand_in_run_product(&one);
	}
}

/* Each behind the last column of the one before, or all within the gaps between columns. */
bool psd_stand_in_lie_apart(const struct psd_stand_in_products *products)
{
	const struct psd_stand_in_matrix *const c = &products->first.c;
	const size_t next = (size_t)(products->c_next < 0 ? -products->c_next : products->c_next);

	if (products->count < 2 || c->rows == 0 || c->columns == 0)
		return true;
	if (next >= c->stride * (c->columns - 1) + c->rows)
		return true;
	return next >= c->rows && next * (products->count - 1) + c->rows <= c->stride;
}

bool psd_stand_in_blas_number(cudaDataType type, enum psd_stand_in_number *number)
{
	switch ((int)type) {
	case CUDA_R_32F: *number = PSD_STAND_IN_FLOAT; return true;
	case CUDA_R_16F: *number = PSD_STAND_IN_HALF; return true;
	case CUDA_R_16BF: *number = PSD_STAND_IN_BFLOAT; return true;
	default: return false;
	}
}

struct psd_stand_in_matrix psd_stand_in_matrix_of(const void *values, enum psd_stand_in_number number,
						  cublasOperation_t operation, int rows, int columns, int stride)
{
	const bool is_transposed = operation != CUBLAS_OP_N;

	return (struct psd_stand_in_matrix){.values = (void *)(uintptr_t)values,
					    .number = number,
					    .rows = (size_t)(is_transposed ? columns : rows),
					    .columns = (size_t)(is_transposed ? rows : columns),
					    .stride = (size_t)stride,
					    .is_transposed = is_transposed};
}

bool psd_stand_in_is_stored(const struct psd_stand_in_matrix *matrix)
{
	return matrix->values && matrix->stride >= (matrix->rows > 0 ? matrix->rows : 1);
}

bool psd_stand_in_go_together(const struct psd_stand_in_product *product)
{
	return product->a.number == product->b.number &&
	       (product->c.number == PSD_STAND_IN_FLOAT || product->c.number == product->a.number);
}
