/* Narrow matrices written plainly in double precision, for the suites that follow a whole algorithm. Wide ones are
 * (rows, columns), left ones (rows, rank), right ones (rank, columns). */
#ifndef PSD_TESTS_REAL_PLAIN_LOW_RANK_H
#define PSD_TESTS_REAL_PLAIN_LOW_RANK_H

#include <math.h>

struct plain_shape {
	unsigned rows, columns, rank;
};

/* left += wide times the transposed of right */
static inline void plain_project(struct plain_shape of, const double *wide, const double *right, double *left)
{
	for (unsigned i = 0; i < of.rows; i++)
		for (unsigned j = 0; j < of.rank; j++)
			for (unsigned c = 0; c < of.columns; c++)
				left[i * of.rank + j] += wide[i * of.columns + c] * right[j * of.columns + c];
}

/* Product of two columns of left. */
static inline double plain_column_product(struct plain_shape of, const double *left, unsigned j, unsigned k)
{
	double sum = 0.0;

	for (unsigned i = 0; i < of.rows; i++)
		sum += left[i * of.rank + j] * left[i * of.rank + k];
	return sum;
}

/* By Gram and Schmidt, each column twice, so that nothing is left of those before. Columns are independent. */
static inline void plain_make_orthonormal(struct plain_shape of, double *left)
{
	for (unsigned k = 0; k < of.rank; k++) {
		for (unsigned j = 0; j < 2 * k; j++) {
			const double common = plain_column_product(of, left, j % k, k);

			for (unsigned i = 0; i < of.rows; i++)
				left[i * of.rank + k] -= common * left[i * of.rank + j % k];
		}
		const double length = sqrt(plain_column_product(of, left, k, k));

		for (unsigned i = 0; i < of.rows; i++)
			left[i * of.rank + k] /= length;
	}
}

/* right += the transposed of left times wide */
static inline void plain_fit(struct plain_shape of, const double *left, const double *wide, double *right)
{
	for (unsigned i = 0; i < of.rows; i++)
		for (unsigned j = 0; j < of.rank; j++)
			for (unsigned c = 0; c < of.columns; c++)
				right[j * of.columns + c] += left[i * of.rank + j] * wide[i * of.columns + c];
}

/* wide += ratio * left times right */
static inline void plain_expand(struct plain_shape of, const double *left, const double *right, double ratio,
				double *wide)
{
	for (unsigned i = 0; i < of.rows; i++)
		for (unsigned j = 0; j < of.rank; j++)
			for (unsigned c = 0; c < of.columns; c++)
				wide[i * of.columns + c] += ratio * left[i * of.rank + j] * right[j * of.columns + c];
}

#endif
