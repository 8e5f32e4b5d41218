/* cuBLAS's functions of the stand-in. Refuses what cuBLAS refuses, and types that psd-run does not use. */
#include <cublas_v2.h>
#include <stdlib.h>

#include "tests/cuda/stand_in_parts.h"
#include "tests/cuda/stand_in_product.h"

struct cublasContext {
	int device;
	cudaStream_t stream;
	cublasMath_t math;
	void *workspace;
	size_t workspace_bytes;
};

cublasStatus_t psd_stand_in_blas_status(cudaError_t error)
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
	return psd_stand_in_blas_status(error);
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

static cudaError_t prepare(cublasHandle_t handle, struct psd_stand_in_product *product)
{
	if (!psd_stand_in_is_stored(&product->a) || !psd_stand_in_is_stored(&product->b) ||
	    !psd_stand_in_is_stored(&product->c))
		return cudaErrorInvalidValue;
	if (handle->device != psd_stand_in_device())
		return cudaErrorInvalidResourceHandle;
	product->workspace = handle->workspace;
	product->workspace_bytes = handle->workspace_bytes;
	return cudaSuccess;
}

static void choose_tf32(cublasHandle_t handle, struct psd_stand_in_product *product, bool is_asked_for)
{
	product->is_tf32 =
		product->a.number == PSD_STAND_IN_FLOAT && (is_asked_for || handle->math == CUBLAS_TF32_TENSOR_OP_MATH);
}

static cublasStatus_t multiply(const char *function, cublasHandle_t handle, struct psd_stand_in_product *product,
			       bool is_tf32_asked_for)
{
	cudaError_t error = psd_stand_in_begin(function);

	choose_tf32(handle, product, is_tf32_asked_for);
	if (error == cudaSuccess)
		error = prepare(handle, product);
	if (error == cudaSuccess)
		error = psd_stand_in_queue_work(handle->stream, psd_stand_in_run_product, product, sizeof(*product));
	return end(error);
}

cublasStatus_t cublasSgemm(cublasHandle_t handle, cublasOperation_t a_operation, cublasOperation_t b_operation, int m,
			   int n, int k, const float *alpha, const float *a, int a_stride, const float *b, int b_stride,
			   const float *beta, float *c, int c_stride)
{
	struct psd_stand_in_product product = {
		.m = (size_t)m, .n = (size_t)n, .k = (size_t)k, .alpha = *alpha, .beta = *beta};

	if (m < 0 || n < 0 || k < 0)
		return CUBLAS_STATUS_INVALID_VALUE;
	product.a = psd_stand_in_matrix_of(a, PSD_STAND_IN_FLOAT, a_operation, m, k, a_stride);
	product.b = psd_stand_in_matrix_of(b, PSD_STAND_IN_FLOAT, b_operation, k, n, b_stride);
	product.c = psd_stand_in_matrix_of(c, PSD_STAND_IN_FLOAT, CUBLAS_OP_N, m, n, c_stride);
	return multiply("cublasSgemm", handle, &product, false);
}

/* Fills the matrices if their types go together; otherwise returns the status to refuse with. */
static cublasStatus_t describe(struct psd_stand_in_product *product, cublasOperation_t a_operation,
			       cublasOperation_t b_operation, const cudaDataType types[3], const int strides[3],
			       const void *const values[3], cublasComputeType_t compute)
{
	const int m = (int)product->m, n = (int)product->n, k = (int)product->k;
	enum psd_stand_in_number numbers[3];

	for (unsigned i = 0; i < 3; i++)
		if (!psd_stand_in_blas_number(types[i], &numbers[i]))
			return CUBLAS_STATUS_NOT_SUPPORTED;
	if (compute != CUBLAS_COMPUTE_32F && compute != CUBLAS_COMPUTE_32F_PEDANTIC &&
	    compute != CUBLAS_COMPUTE_32F_FAST_TF32)
		return CUBLAS_STATUS_NOT_SUPPORTED;
	product->a = psd_stand_in_matrix_of(values[0], numbers[0], a_operation, m, k, strides[0]);
	product->b = psd_stand_in_matrix_of(values[1], numbers[1], b_operation, k, n, strides[1]);
	product->c = psd_stand_in_matrix_of(values[2], numbers[2], CUBLAS_OP_N, m, n, strides[2]);
	return psd_stand_in_go_together(product) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

/* Sums are float, and so are their factors. */
cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t a_operation, cublasOperation_t b_operation, int m,
			    int n, int k, const void *alpha, const void *a, cudaDataType a_type, int a_stride,
			    const void *b, cudaDataType b_type, int b_stride, const void *beta, void *c,
			    cudaDataType c_type, int c_stride, cublasComputeType_t compute, cublasGemmAlgo_t algorithm)
{
	struct psd_stand_in_product product = {.m = (size_t)m,
					       .n = (size_t)n,
					       .k = (size_t)k,
					       .alpha = *(const float *)alpha,
					       .beta = *(const float *)beta};
	cublasStatus_t status;

	(void)algorithm;
	if (m < 0 || n < 0 || k < 0)
		return CUBLAS_STATUS_INVALID_VALUE;
	status = describe(&product, a_operation, b_operation, (const cudaDataType[]){a_type, b_type, c_type},
			  (const int[]){a_stride, b_stride, c_stride}, (const void *const[]){a, b, c}, compute);
	return status != CUBLAS_STATUS_SUCCESS
		       ? status
		       : multiply("cublasGemmEx", handle, &product, compute == CUBLAS_COMPUTE_32F_FAST_TF32);
}

/* Results that have elements in common are undefined in cuBLAS, and refused here. */
cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t a_operation,
					  cublasOperation_t b_operation, int m, int n, int k, const void *alpha,
					  const void *a, cudaDataType a_type, int a_stride, long long a_next,
					  const void *b, cudaDataType b_type, int b_stride, long long b_next,
					  const void *beta, void *c, cudaDataType c_type, int c_stride,
					  long long c_next, int count, cublasComputeType_t compute,
					  cublasGemmAlgo_t algorithm)
{
	struct psd_stand_in_products products = {
		.first = {.m = (size_t)m,
			  .n = (size_t)n,
			  .k = (size_t)k,
			  .alpha = *(const float *)alpha,
			  .beta = *(const float *)beta},
		.a_next = a_next,
		.b_next = b_next,
		.c_next = c_next,
		.count = (size_t)count,
	};
	cudaError_t error;
	cublasStatus_t status;

	(void)algorithm;
	if (m < 0 || n < 0 || k < 0 || count < 0)
		return CUBLAS_STATUS_INVALID_VALUE;
	status = describe(&products.first, a_operation, b_operation, (const cudaDataType[]){a_type, b_type, c_type},
			  (const int[]){a_stride, b_stride, c_stride}, (const void *const[]){a, b, c}, compute);
	if (status != CUBLAS_STATUS_SUCCESS)
		return status;
	error = psd_stand_in_begin("cublasGemmStridedBatchedEx");
	choose_tf32(handle, &products.first, compute == CUBLAS_COMPUTE_32F_FAST_TF32);
	if (error == cudaSuccess && !psd_stand_in_lie_apart(&products))
		error = cudaErrorInvalidValue;
	if (error == cudaSuccess)
		error = prepare(handle, &products.first);
	if (error == cudaSuccess)
		error = psd_stand_in_queue_work(handle->stream, psd_stand_in_run_products, &products, sizeof(products));
	return end(error);
}
