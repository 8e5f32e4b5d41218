/* cuBLAS's functions of the stand-in: sums in double, rounded once, the matrices' numbers as they are stored. Refuses
 * what cuBLAS refuses, and types that psd-run does not use. */
#include <cublas_v2.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/cuda/stand_in_numbers.h"
#include "tests/cuda/stand_in_parts.h"

struct cublasContext {
	int device;
	cudaStream_t stream;
	cublasMath_t math;
	void *workspace;
	size_t workspace_bytes;
};

struct matrix {
	void *values;
	enum psd_stand_in_number number;
	size_t rows, columns, stride; /* as stored: column by column */
	bool is_transposed;
};

/* C (m, n) = alpha op(A) (m, k) op(B) (k, n) + beta C */
struct product {
	size_t m, n, k;
	struct matrix a, b, c;
	double alpha, beta;
	bool is_tf32;
	void *workspace;
	size_t workspace_bytes;
};

static cublasStatus_t status_of(cudaError_t error)
{
	switch ((int)error) {
	case cudaSuccess: return CUBLAS_STATUS_SUCCESS;
	case cudaErrorMemoryAllocation: return CUBLAS_STATUS_ALLOC_FAILED;
	case cudaErrorInvalidValue:
	case cudaErrorInvalidResourceHandle: return CUBLAS_STATUS_INVALID_VALUE;
	case cudaErrorNoDevice:
	case cudaErrorInsufficientDriver:
	case cudaErrorInitializationError: return CUBLAS_STATUS_NOT_INITIALIZED;
	default: return CUBLAS_STATUS_EXECUTION_FAILED;
	}
}

static cublasStatus_t end(cudaError_t error)
{
	psd_stand_in_unlock();
	return status_of(error);
}

cublasStatus_t cublasCreate(cublasHandle_t *handle)
{
	cudaError_t error = psd_stand_in_begin("cublasCreate");

	if (error == cudaSuccess) {
		*handle = calloc(1, sizeof(**handle));
		error = *handle ? cudaSuccess : cudaErrorMemoryAllocation;
	}
	if (error == cudaSuccess) {
		(*handle)->device = psd_stand_in_device();
		psd_stand_in_count.handles++;
	}
	return end(error);
}

cublasStatus_t cublasDestroy(cublasHandle_t handle)
{
	const cudaError_t error = psd_stand_in_begin("cublasDestroy");

	if (handle && psd_stand_in_may_release(error)) {
		free(handle);
		psd_stand_in_count.handles--;
	}
	return end(error);
}

/* Forgets the workspace, as cuBLAS does. */
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream)
{
	const cudaError_t error = psd_stand_in_begin("cublasSetStream");

	if (error == cudaSuccess) {
		handle->stream = stream;
		handle->workspace = NULL;
		handle->workspace_bytes = 0;
	}
	return end(error);
}

cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void *workspace, size_t bytes)
{
	cudaError_t error = psd_stand_in_begin("cublasSetWorkspace");

	if (error == cudaSuccess && bytes > 0 &&
	    ((uintptr_t)workspace % 256 != 0 || psd_stand_in_place_of(workspace, bytes) != PSD_STAND_IN_ON_DEVICE))
		error = cudaErrorInvalidValue;
	if (error == cudaSuccess) {
		handle->workspace = workspace;
		handle->workspace_bytes = bytes;
	}
	return end(error);
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t math)
{
	const cudaError_t error = psd_stand_in_begin("cublasSetMathMode");

	if (error == cudaSuccess)
		handle->math = math;
	return end(error);
}

const char *cublasGetStatusName(cublasStatus_t status)
{
	switch (status) {
	case CUBLAS_STATUS_SUCCESS: return "CUBLAS_STATUS_SUCCESS";
	case CUBLAS_STATUS_NOT_INITIALIZED: return "CUBLAS_STATUS_NOT_INITIALIZED";
	case CUBLAS_STATUS_ALLOC_FAILED: return "CUBLAS_STATUS_ALLOC_FAILED";
	case CUBLAS_STATUS_INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
	case CUBLAS_STATUS_ARCH_MISMATCH: return "CUBLAS_STATUS_ARCH_MISMATCH";
	case CUBLAS_STATUS_MAPPING_ERROR: return "CUBLAS_STATUS_MAPPING_ERROR";
	case CUBLAS_STATUS_EXECUTION_FAILED: return "CUBLAS_STATUS_EXECUTION_FAILED";
	case CUBLAS_STATUS_INTERNAL_ERROR: return "CUBLAS_STATUS_INTERNAL_ERROR";
	case CUBLAS_STATUS_NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
	case CUBLAS_STATUS_LICENSE_ERROR: return "CUBLAS_STATUS_LICENSE_ERROR";
	}
	return "unknown";
}

const char *cublasGetStatusString(cublasStatus_t status)
{
	return cublasGetStatusName(status);
}

/* ---- products ---- */

static bool may_touch(const struct matrix *matrix)
{
	const size_t values = matrix->columns == 0 ? 0 : matrix->stride * (matrix->columns - 1) + matrix->rows;

	return values == 0 ||
	       psd_stand_in_may_touch(matrix->values, values * psd_stand_in_number_bytes(matrix->number));
}

/* op(matrix), column by column without gaps. */
static double *unpack(const struct matrix *matrix, bool is_tf32)
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

static void store(const struct product *product, const double *sums)
{
	const struct matrix *const c = &product->c;

	for (size_t column = 0; column < c->columns; column++)
		for (size_t row = 0; row < c->rows; row++) {
			const size_t at = column * c->stride + row;
			/* What is not asked for is not read: it may be no number. */
			const double before = product->beta == 0 ? 0 : psd_stand_in_read(c->number, c->values, at);

			psd_stand_in_write(c->number, c->values, at,
					   product->alpha * sums[column * c->rows + row] + product->beta * before);
		}
}

static void run_product(void *arguments)
{
	const struct product *const product = arguments;
	double *a, *b, *sums;

	if (!may_touch(&product->a) || !may_touch(&product->b) || !may_touch(&product->c))
		return;
	psd_stand_in_scribble(product->workspace, product->workspace_bytes);
	a = unpack(&product->a, product->is_tf32);
	b = unpack(&product->b, product->is_tf32);
	sums = psd_stand_in_doubles(product->m * product->n);
	for (size_t j = 0; j < product->n; j++)
		for (size_t l = 0; l < product->k; l++)
			for (size_t i = 0; i < product->m; i++)
				sums[j * product->m + i] += a[l * product->m + i] * b[j * product->k + l];
	store(product, sums);
	free(sums);
	free(b);
	free(a);
}

/* false: not one of those that psd-run uses. */
static bool number_of(cudaDataType type, enum psd_stand_in_number *number)
{
	switch ((int)type) {
	case CUDA_R_32F: *number = PSD_STAND_IN_FLOAT; return true;
	case CUDA_R_16F: *number = PSD_STAND_IN_HALF; return true;
	case CUDA_R_16BF: *number = PSD_STAND_IN_BFLOAT; return true;
	default: return false;
	}
}

/* rows, columns: of op(matrix). */
static struct matrix matrix_of(const void *values, enum psd_stand_in_number number, cublasOperation_t operation,
			       int rows, int columns, int stride)
{
	const bool is_transposed = operation != CUBLAS_OP_N;

	return (struct matrix){.values = (void *)(uintptr_t)values,
			       .number = number,
			       .rows = (size_t)(is_transposed ? columns : rows),
			       .columns = (size_t)(is_transposed ? rows : columns),
			       .stride = (size_t)stride,
			       .is_transposed = is_transposed};
}

static bool is_stored(const struct matrix *matrix)
{
	return matrix->values && matrix->stride >= (matrix->rows > 0 ? matrix->rows : 1);
}

/* Which types of A, B and C go together where sums are float: both inputs alike, C float or like them. */
static bool go_together(const struct product *product)
{
	return product->a.number == product->b.number &&
	       (product->c.number == PSD_STAND_IN_FLOAT || product->c.number == product->a.number);
}

static cudaError_t queue_product(cublasHandle_t handle, struct product *product)
{
	if (!is_stored(&product->a) || !is_stored(&product->b) || !is_stored(&product->c))
		return cudaErrorInvalidValue;
	if (handle->device != psd_stand_in_device())
		return cudaErrorInvalidResourceHandle;
	product->workspace = handle->workspace;
	product->workspace_bytes = handle->workspace_bytes;
	return psd_stand_in_queue_work(handle->stream, run_product, product, sizeof(*product));
}

static cublasStatus_t multiply(const char *function, cublasHandle_t handle, struct product *product,
			       bool is_tf32_asked_for)
{
	cudaError_t error = psd_stand_in_begin(function);

	product->is_tf32 = product->a.number == PSD_STAND_IN_FLOAT &&
			   (is_tf32_asked_for || handle->math == CUBLAS_TF32_TENSOR_OP_MATH);
	if (error == cudaSuccess)
		error = queue_product(handle, product);
	return end(error);
}

cublasStatus_t cublasSgemm(cublasHandle_t handle, cublasOperation_t a_operation, cublasOperation_t b_operation, int m,
			   int n, int k, const float *alpha, const float *a, int a_stride, const float *b, int b_stride,
			   const float *beta, float *c, int c_stride)
{
	struct product product = {.m = (size_t)m, .n = (size_t)n, .k = (size_t)k, .alpha = *alpha, .beta = *beta};

	if (m < 0 || n < 0 || k < 0)
		return CUBLAS_STATUS_INVALID_VALUE;
	product.a = matrix_of(a, PSD_STAND_IN_FLOAT, a_operation, m, k, a_stride);
	product.b = matrix_of(b, PSD_STAND_IN_FLOAT, b_operation, k, n, b_stride);
	product.c = matrix_of(c, PSD_STAND_IN_FLOAT, CUBLAS_OP_N, m, n, c_stride);
	return multiply("cublasSgemm", handle, &product, false);
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t a_operation, cublasOperation_t b_operation, int m,
			    int n, int k, const void *alpha, const void *a, cudaDataType a_type, int a_stride,
			    const void *b, cudaDataType b_type, int b_stride, const void *beta, void *c,
			    cudaDataType c_type, int c_stride, cublasComputeType_t compute, cublasGemmAlgo_t algorithm)
{
	struct product product = {.m = (size_t)m, .n = (size_t)n, .k = (size_t)k};
	enum psd_stand_in_number numbers[3];

	(void)algorithm;
	if (m < 0 || n < 0 || k < 0)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (!number_of(a_type, &numbers[0]) || !number_of(b_type, &numbers[1]) || !number_of(c_type, &numbers[2]) ||
	    (compute != CUBLAS_COMPUTE_32F && compute != CUBLAS_COMPUTE_32F_PEDANTIC &&
	     compute != CUBLAS_COMPUTE_32F_FAST_TF32))
		return CUBLAS_STATUS_NOT_SUPPORTED;
	product.alpha = *(const float *)alpha; /* sums are float, and so are their factors */
	product.beta = *(const float *)beta;
	product.a = matrix_of(a, numbers[0], a_operation, m, k, a_stride);
	product.b = matrix_of(b, numbers[1], b_operation, k, n, b_stride);
	product.c = matrix_of(c, numbers[2], CUBLAS_OP_N, m, n, c_stride);
	if (!go_together(&product))
		return CUBLAS_STATUS_NOT_SUPPORTED;
	return multiply("cublasGemmEx", handle, &product, compute == CUBLAS_COMPUTE_32F_FAST_TF32);
}
