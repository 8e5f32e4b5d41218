/* Low-rank factors of gradients on the processor. oneDNN multiplies. */
#include "real/device/low_rank.h"

#include <math.h>
#include <omp.h>
#include <oneapi/dnnl/dnnl.h>
#include <stdatomic.h>
#include <string.h>

#include "real/base/values.h"

/* libgomp's: calls body(data) on each of n_threads threads, 0: as many as omp_set_num_threads() said, and waits. */
void GOMP_parallel(void (*body)(void *data), void *data, unsigned n_threads, unsigned flags);

/* Gradient matrix of a tensor: its residual and its two factors. */
struct matrix {
	dnnl_dim_t rows, columns, rank;
	uint64_t elements;
	unsigned number; /* index of its tensor in the graph */
	float *gradient, *residual, *left, *right;
};

/* ---- project ---- */

static void start_row(const struct matrix *of, unsigned j)
{
	float *row = of->right + j * of->columns;

	for (uint32_t c = 0; c < of->columns; c++)
		if (row[c] != 0.0f)
			return;
	for (uint32_t c = 0; c < of->columns; c++)
		row[c] = psd_low_rank_start(of->number, j, c);
}

static dnnl_status_t project(const struct matrix *of)
{
	for (unsigned j = 0; j < of->rank; j++)
		start_row(of, j);
	psd_values_add_to_floats(&psd_encoding_fp32, of->residual, of->gradient, of->elements);
	return dnnl_sgemm('N', 'T', of->rows, of->rank, of->columns, 1.0f, of->residual, of->columns, of->right,
			  of->columns, 0.0f, of->left, of->rank);
}

/* ---- fit ---- */

typedef double square[PSD_MOST_RANK][PSD_MOST_RANK];

/* Computes the inner products of all pairs of columns j <= k of left. */
static void find_products(const struct matrix *of, square products)
{
	for (unsigned j = 0; j < of->rank; j++)
		for (unsigned k = j; k < of->rank; k++)
			products[j][k] = 0.0;
	for (dnnl_dim_t i = 0; i < of->rows; i++) {
		const float *row = of->left + i * of->rank;

		for (unsigned j = 0; j < of->rank; j++)
			for (unsigned k = j; k < of->rank; k++)
				products[j][k] += (double)row[j] * (double)row[k];
	}
}

/* Computes column k of the Cholesky factor: the inner products of left's column k with the unit vectors 0 to k - 1,
 * then the length of the rest of the column. With a length of 0 the column is dropped. */
static void factor_column(square factor, unsigned k)
{
	const double whole = factor[k][k];

	for (unsigned j = 0; j < k; j++) {
		for (unsigned i = 0; i < j; i++)
			factor[j][k] -= factor[i][j] * factor[i][k];
		factor[j][k] = factor[j][j] == 0.0 ? 0.0 : factor[j][k] / factor[j][j];
		factor[k][k] -= factor[j][k] * factor[j][k];
	}
	factor[k][k] = factor[k][k] <= PSD_LOW_RANK_LEAST * whole ? 0.0 : sqrt(factor[k][k]);
}

/* Computes column k of the inverse of the Cholesky factor: the coefficients of left's columns in unit vector k. */
static void invert_column(square factor, square inverse, unsigned k)
{
	const double length = factor[k][k];

	for (unsigned j = 0; j < k; j++) {
		inverse[j][k] = 0.0;
		for (unsigned i = j; i < k && length != 0.0; i++)
			inverse[j][k] -= inverse[j][i] * factor[i][k] / length;
	}
	inverse[k][k] = length == 0.0 ? 0.0 : 1.0 / length;
}

static void make_orthonormal(const struct matrix *of)
{
	square factor, inverse;

	find_products(of, factor);
	for (unsigned k = 0; k < of->rank; k++)
		factor_column(factor, k);
	for (unsigned k = 0; k < of->rank; k++)
		invert_column(factor, inverse, k);
	for (dnnl_dim_t i = 0; i < of->rows; i++) {
		float *row = of->left + i * of->rank;

		for (unsigned k = (unsigned)of->rank;
		     /* begins with the last column, since its value depends on the earlier columns' old values */
		     k-- > 0;) {
			double sum = 0.0;

			for (unsigned j = 0; j <= k; j++)
				sum += (double)row[j] * inverse[j][k];
			row[k] = (float)sum;
		}
	}
}

static dnnl_status_t fit(const struct matrix *of)
{
	make_orthonormal(of);
	const dnnl_status_t failure = dnnl_sgemm('T', 'N', of->rank, of->columns, of->rows, 1.0f, of->left, of->rank,
						 of->residual, of->columns, 0.0f, of->right, of->columns);

	return failure ? failure
		       : dnnl_sgemm('N', 'N', of->rows, of->columns, of->rank, -1.0f, of->left, of->rank, of->right,
				    of->columns, 1.0f, of->residual, of->columns);
}

/* ---- expand ---- */

/* Blocks of a product that a thread computes alone. oneDNN divides a product among its threads and may add up in
 * another order at the edges of their parts: blocks have the same bits with any number of threads, and so have all
 * workers. */
enum { BLOCK_ROWS = 64, BLOCK_COLUMNS = 1024 };

static dnnl_dim_t at_most(dnnl_dim_t size, dnnl_dim_t most)
{
	return size < most ? size : most;
}

static dnnl_status_t expand_block(const struct matrix *of, dnnl_dim_t row, dnnl_dim_t column)
{
	return dnnl_sgemm('N', 'N', at_most(of->rows - row, BLOCK_ROWS), at_most(of->columns - column, BLOCK_COLUMNS),
			  of->rank, 1.0f, of->left + row * of->rank, of->rank, of->right + column, of->columns, 0.0f,
			  of->gradient + row * of->columns + column, of->columns);
}

struct expansion {
	const struct matrix *of;
	atomic_int failure; /* dnnl_status_t */
};

/* Computes each n-th block, for one of n threads. */
static void expand_share(void *data)
{
	struct expansion *expansion = data;
	const struct matrix *of = expansion->of;
	const int n_threads = omp_get_num_threads();
	int turn = omp_get_thread_num();

	for (dnnl_dim_t row = 0; row < of->rows; row += BLOCK_ROWS)
		for (dnnl_dim_t column = 0; column < of->columns; column += BLOCK_COLUMNS) {
			const dnnl_status_t failure = turn == 0 ? expand_block(of, row, column) : dnnl_success;

			turn = turn ? turn - 1 : n_threads - 1;
			if (failure)
				expansion->failure = (int)failure;
		}
}

static dnnl_status_t expand(const struct matrix *of)
{
	struct expansion expansion = {.of = of, .failure = dnnl_success};

	GOMP_parallel(expand_share, &expansion, 0, 0); /* inside, oneDNN takes the calling thread alone */
	return (dnnl_status_t)expansion.failure;
}

/* ---- all tensors ---- */

typedef dnnl_status_t matrix_fn(const struct matrix *of);
typedef void other_fn(float *gradient, float *left, uint64_t elements);

static void leave(float *gradient, float *left, uint64_t elements)
{
	memcpy(left, gradient, elements * sizeof(*left));
}

static void arrive(float *gradient, float *left, uint64_t elements)
{
	memcpy(gradient, left, elements * sizeof(*left));
}

static void stay(float *gradient, float *left, uint64_t elements)
{
	(void)gradient, (void)left, (void)elements;
}

/* Moves on to the next tensor, with its residual and factors. */
static void move_on(struct matrix *of, const struct psd_low_rank_tensor *tensor)
{
	of->residual += tensor->elements;
	of->left += psd_low_rank_left_values(tensor->shape, tensor->elements, (unsigned)of->rank);
	of->right += (uint64_t)tensor->shape.columns * (unsigned)of->rank;
}

static enum psd_status for_tensors(const struct psd_low_rank_work *work, matrix_fn *of_matrix, other_fn *of_other,
				   struct psd_error *err)
{
	struct matrix matrix = {
		.rank = work->rank, .residual = work->residual, .left = work->left, .right = work->right};
	dnnl_status_t failure = dnnl_success;

	omp_set_num_threads((int)work->n_threads);
	for (unsigned t = 0; t < work->n_tensors && !failure; t++) {
		const struct psd_low_rank_tensor *tensor = &work->tensors[t];

		matrix.rows = tensor->shape.rows;
		matrix.columns = tensor->shape.columns;
		matrix.elements = tensor->elements;
		matrix.number = tensor->number;
		matrix.gradient = tensor->gradient;
		if (tensor->shape.rows)
			failure = of_matrix(&matrix);
		else
			of_other(tensor->gradient, matrix.left, tensor->elements);
		move_on(&matrix, tensor);
	}
	return failure ? psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "a product of low-rank factors failed (oneDNN: %d)",
				       (int)failure)
		       : PSD_OK;
}

enum psd_status psd_low_rank_project(const struct psd_low_rank_work *work, struct psd_error *err)
{
	return for_tensors(work, project, leave, err);
}

enum psd_status psd_low_rank_fit(const struct psd_low_rank_work *work, struct psd_error *err)
{
	return for_tensors(work, fit, stay, err);
}

enum psd_status psd_low_rank_expand(const struct psd_low_rank_work *work, struct psd_error *err)
{
	return for_tensors(work, expand, arrive, err);
}
