/* What the kernels of narrow matrices do for one index; what each struct means is in kernels.h. As in
 * real/device/low_rank.c, but for the order of sums. */
#ifndef PSD_REAL_CUDA_BODIES_LOW_RANK_H
#define PSD_REAL_CUDA_BODIES_LOW_RANK_H

#include "real/device/cuda/values.h"
#include "real/device/low_rank.h"

/* psd_random_mix() */
PSD_BODY uint64_t psd_mixed(uint64_t x)
{
	x += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* Most rows are told from zeros by their first value. */
PSD_BODY void psd_right_start_at(uint64_t i, const struct psd_cuda_right_start *of)
{
	float *row = of->right + i * of->columns;

	for (uint32_t c = 0; c < of->columns; c++)
		if (row[c] != 0.0f)
			return;
	for (uint32_t c = 0; c < of->columns; c++) {
		const uint64_t bits = psd_mixed((uint64_t)of->number << 40 | i << 32 | c);

		row[c] = (float)(int32_t)(bits >> 32) * 4.656612873077392578125e-10f; /* 2^-31 */
	}
}

struct psd_columns {
	uint32_t j, k; /* j <= k */
};

/* Row by row of a triangle. */
PSD_BODY struct psd_columns psd_pair_of(uint32_t pair, uint32_t rank)
{
	struct psd_columns columns = {0, pair};

	while (columns.k >= rank) {
		columns.k -= rank - ++columns.j;
	}
	return columns;
}

PSD_BODY void psd_left_products_at(uint64_t i, const struct psd_cuda_left_products *of)
{
	const struct psd_columns columns = psd_pair_of((uint32_t)(i / PSD_CUDA_PRODUCT_LANES), of->rank);
	const uint32_t lane = (uint32_t)(i % PSD_CUDA_PRODUCT_LANES);
	const uint64_t step = (uint64_t)PSD_CUDA_PRODUCT_LANES * of->rank;
	const float *row = of->left + (uint64_t)lane * of->rank;
	double sum = 0.0;

	for (uint32_t r = lane; r < of->rows; r += PSD_CUDA_PRODUCT_LANES) {
		sum += (double)row[columns.j] * (double)row[columns.k];
		row += step;
	}
	of->partial[i] = sum;
}

PSD_BODY void psd_left_fold_at(uint64_t i, const struct psd_cuda_left_fold *of)
{
	const struct psd_columns columns = psd_pair_of((uint32_t)i, of->rank);
	double sum = 0.0;

	for (uint32_t lane = 0; lane < PSD_CUDA_PRODUCT_LANES; lane++)
		sum += of->partial[i * PSD_CUDA_PRODUCT_LANES + lane];
	of->factor[columns.j * of->rank + columns.k] = sum;
}

/* What column k has in common with the unit vectors of those before, and the length of the rest; 0: nothing. */
PSD_BODY void psd_factor_column(double *factor, uint32_t rank, uint32_t k)
{
	const double whole = factor[k * rank + k];
	double rest = whole;

	for (uint32_t j = 0; j < k; j++) {
		const double length = factor[j * rank + j];
		double common = factor[j * rank + k];

		for (uint32_t before = 0; before < j; before++)
			common -= factor[before * rank + j] * factor[before * rank + k];
		common = length == 0.0 ? 0.0 : common / length;
		factor[j * rank + k] = common;
		rest -= common * common;
	}
	factor[k * rank + k] = rest <= PSD_LOW_RANK_LEAST * whole ? 0.0 : sqrt(rest);
}

PSD_BODY void psd_left_factor_at(uint64_t i, const struct psd_cuda_left_factor *of)
{
	for (uint32_t k = 0; i == 0 && k < of->rank; k++)
		psd_factor_column(of->factor, of->rank, k);
}

/* From the last row of the column up; rows of columns that have become zeros are zeros. */
PSD_BODY void psd_left_inverse_at(uint64_t i, const struct psd_cuda_left_inverse *of)
{
	const uint32_t rank = of->rank, k = (uint32_t)i;

	for (uint32_t j = k + 1; j-- > 0;) {
		const double length = of->factor[j * rank + j];
		double rest = j == k ? 1.0 : 0.0;

		for (uint32_t behind = j + 1; behind <= k; behind++)
			rest -= of->factor[j * rank + behind] * of->inverse[behind * rank + k];
		of->inverse[j * rank + k] = length == 0.0 ? 0.0 : rest / length;
	}
}

/* From the last column, which needs all before as they were. */
PSD_BODY void psd_left_basis_at(uint64_t i, const struct psd_cuda_left_basis *of)
{
	float *row = of->left + i * of->rank;

	for (uint32_t k = of->rank; k-- > 0;) {
		double sum = 0.0;

		for (uint32_t j = 0; j <= k; j++)
			sum += (double)row[j] * of->inverse[j * of->rank + k];
		row[k] = (float)sum;
	}
}

#endif
