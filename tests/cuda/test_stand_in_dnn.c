/* cuDNN's batch normalisation in the stand-in against hand algebra: device_w holds the vectors of one channel. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <cudnn.h>
#include <math.h>

#include "tests/cuda/dnn_helper.h"
#include "tests/cuda/stand_in.h"

/* Offsets in floats; each vector begins at a multiple of 16 bytes. */
enum {
	GAMMA = 0,
	BETA = 4,
	MEAN = 8,
	VARIANCE = 12,
	SAVED = 16,
	SAVED_INVERSE = 20,
	DGAMMA = 24,
	DBETA = 28,
	VECTORS = 32
};

#define ROOM MOST * sizeof(float)

static float *vector(const struct dnn *dnn, int which)
{
	return (float *)dnn->device_w + which;
}

/* Three samples 0, 0, 3: mean 1, variance 2, of all but one 3. */
static void normalise(const struct dnn *dnn, cudnnTensorDescriptor_t vectors, float *y, float *kept)
{
	const float alpha = 1, beta = 0, x[3] = {0, 0, 3};
	const float start[VECTORS] = {[GAMMA] = 2, [BETA] = 5, [MEAN] = 10, [VARIANCE] = 20};

	must(cudnnSetTensor4dDescriptor(dnn->x, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 3, 1, 1, 1));
	must(cudnnSetTensor4dDescriptor(dnn->y, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 3, 1, 1, 1));
	must(cudnnSetTensor4dDescriptor(vectors, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1, 1, 1));
	to_device(dnn, dnn->device_x, x, sizeof(x));
	to_device(dnn, dnn->device_w, start, sizeof(start));
	must(cudnnBatchNormalizationForwardTrainingEx(
		dnn->handle, CUDNN_BATCHNORM_SPATIAL, CUDNN_BATCHNORM_OPS_BN, &alpha, &beta, dnn->x, dnn->device_x,
		NULL, NULL, dnn->y, dnn->device_y, vectors, vector(dnn, GAMMA), vector(dnn, BETA), 0.25,
		vector(dnn, MEAN), vector(dnn, VARIANCE), CUDNN_BN_MIN_EPSILON, vector(dnn, SAVED),
		vector(dnn, SAVED_INVERSE), NULL, dnn->workspace, ROOM, dnn->reserve, ROOM));
	to_host(dnn, y, dnn->device_y, 3 * sizeof(*y));
	to_host(dnn, kept, dnn->device_w, VECTORS * sizeof(*kept));
}

DNN_TEST(stand_in_dnn, batches_are_normalised)
{
	cudnnTensorDescriptor_t vectors;
	float y[3], kept[VECTORS];

	must(cudnnCreateTensorDescriptor(&vectors));
	normalise(dnn, vectors, y, kept);
	/* 5 + 2 (x - 1) / sqrt(2) */
	cr_assert_float_eq(y[0], 5 - M_SQRT2, rounding);
	cr_assert_float_eq(y[1], 5 - M_SQRT2, rounding);
	cr_assert_float_eq(y[2], 5 + 2 * M_SQRT2, rounding);
	/* Three quarters of what was, one of the batch's. */
	cr_assert_float_eq(kept[MEAN], 0.75 * 10 + 0.25 * 1, rounding);
	cr_assert_float_eq(kept[VARIANCE], 0.75 * 20 + 0.25 * 3, rounding);
	cr_assert_float_eq(kept[SAVED], 1, rounding);
	cr_assert_float_eq(kept[SAVED_INVERSE], M_SQRT1_2, rounding);
	must(cudnnDestroyTensorDescriptor(vectors));
}

static cudnnStatus_t differentiate(const struct dnn *dnn, cudnnTensorDescriptor_t vectors, cudnnBatchNormMode_t mode,
				   bool has_saved, float beta, size_t reserve_bytes)
{
	const float alpha = 1;

	return cudnnBatchNormalizationBackwardEx(
		dnn->handle, mode, CUDNN_BATCHNORM_OPS_BN, &alpha, &beta, &alpha, &beta, dnn->x, dnn->device_x, NULL,
		NULL, dnn->y, dnn->device_y, NULL, NULL, dnn->x, dnn->device_dx, vectors, vector(dnn, GAMMA), NULL,
		vector(dnn, DGAMMA), vector(dnn, DBETA), CUDNN_BN_MIN_EPSILON, has_saved ? vector(dnn, SAVED) : NULL,
		has_saved ? vector(dnn, SAVED_INVERSE) : NULL, NULL, dnn->workspace, ROOM, dnn->reserve, reserve_bytes);
}

/* With z = (-1, -1, 2) / sqrt(2) and dy = (1, 0, 0): dbeta = 1, dgamma = -1 / sqrt(2), and
 * dx = 2 / sqrt(2) (dy - 1/3 - z dgamma / 3) = sqrt(2) (1/2, -1/2, 0). */
static void check_back(const struct dnn *dnn, cudnnTensorDescriptor_t vectors, cudnnBatchNormMode_t mode,
		       bool has_saved, float beta)
{
	const float kept_ratio = mode == CUDNN_BATCHNORM_SPATIAL_PERSISTENT ? 0 : beta;
	const float dy[3] = {1, 0, 0}, before[3] = {7, 7, 7};
	float dx[3], kept[VECTORS];

	normalise(dnn, vectors, dx, kept);
	to_device(dnn, dnn->device_y, dy, sizeof(dy));
	to_device(dnn, dnn->device_dx, before, sizeof(before));
	must(differentiate(dnn, vectors, mode, has_saved, beta, ROOM));
	to_host(dnn, dx, dnn->device_dx, sizeof(dx));
	to_host(dnn, kept, dnn->device_w, sizeof(kept));
	cr_assert_float_eq(dx[0], M_SQRT1_2 + 7 * kept_ratio, rounding);
	cr_assert_float_eq(dx[1], -M_SQRT1_2 + 7 * kept_ratio, rounding);
	cr_assert_float_eq(dx[2], 7 * kept_ratio, rounding);
	cr_assert_float_eq(kept[DBETA], 1, rounding);
	cr_assert_float_eq(kept[DGAMMA], -M_SQRT1_2, rounding);
}

DNN_TEST(stand_in_dnn, gradients_of_normalised_batches_are_propagated)
{
	cudnnTensorDescriptor_t vectors;

	must(cudnnCreateTensorDescriptor(&vectors));
	check_back(dnn, vectors, CUDNN_BATCHNORM_SPATIAL_PERSISTENT, true, 0);
	check_back(dnn, vectors, CUDNN_BATCHNORM_SPATIAL, false, 0);
	check_back(dnn, vectors, CUDNN_BATCHNORM_SPATIAL, true, 1);
	check_back(dnn, vectors, CUDNN_BATCHNORM_SPATIAL_PERSISTENT, true, 1);
	must(cudnnDestroyTensorDescriptor(vectors));
}

DNN_TEST(stand_in_dnn, the_way_back_of_a_norm_needs_what_its_forward_reserved)
{
	cudnnTensorDescriptor_t vectors;
	float dx[3], kept[VECTORS];
	size_t bytes = 0;

	must(cudnnCreateTensorDescriptor(&vectors));
	normalise(dnn, vectors, dx, kept);
	must(cudnnGetBatchNormalizationTrainingExReserveSpaceSize(dnn->handle, CUDNN_BATCHNORM_SPATIAL,
								  CUDNN_BATCHNORM_OPS_BN, NULL, dnn->x, &bytes));
	cr_assert_eq(differentiate(dnn, vectors, CUDNN_BATCHNORM_SPATIAL, true, 0, bytes - 1),
		     CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT);
	must_run(cudaMemsetAsync(dnn->reserve, 0, bytes, dnn->stream));
	must(differentiate(dnn, vectors, CUDNN_BATCHNORM_SPATIAL, true, 0, bytes));
	to_host(dnn, dx, dnn->device_dx, sizeof(dx));
	cr_assert(isnan(dx[0]));
	must(cudnnDestroyTensorDescriptor(vectors));
}

DNN_TEST(stand_in_dnn, tensors_that_cannot_be_are_refused)
{
	cr_assert_eq(cudnnSetTensor4dDescriptor(dnn->x, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 0, 1, 1),
		     CUDNN_STATUS_BAD_PARAM);
	cr_assert_eq(cudnnSetTensor4dDescriptor(dnn->x, CUDNN_TENSOR_NCHW, CUDNN_DATA_DOUBLE, 1, 1, 1, 1),
		     CUDNN_STATUS_NOT_SUPPORTED);
}

DNN_TEST(stand_in_dnn, calls_fail_as_ordered)
{
	cudnnHandle_t handle;

	psd_stand_in_fail("cudnnCreate", 1, cudaErrorMemoryAllocation);
	cr_assert_eq(cudnnCreate(&handle), CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED);
	psd_stand_in_fail("cudnnSetTensor4dDescriptor", 1, cudaErrorNotSupported);
	cr_assert_eq(cudnnSetTensor4dDescriptor(dnn->x, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1, 1, 1),
		     CUDNN_STATUS_EXECUTION_FAILED);
}
