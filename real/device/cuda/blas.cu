/* Matrix products on cuBLAS, whose matrices lie column by column: those that lie row by row are their transposes. */
#include <cublas_v2.h>

extern "C" {
#include "real/device/cuda/cuda.h"
}

static const struct psd_place nowhere = {NULL, 0, 0};

static enum psd_status check(cublasStatus_t status, const char *what, struct psd_error *err)
{
	if (status == CUBLAS_STATUS_SUCCESS)
		return PSD_OK;
	return psd_error_set(err, PSD_ERUN, nowhere, "cuBLAS failed %s (%s)", what, cublasGetStatusName(status));
}

/* Memory of its own makes equal products equal bits, whatever else runs, and nothing is allocated later. */
static enum psd_status start_one(struct psd_device *device, struct cublasContext **blas, struct psd_error *err)
{
	void *workspace;
	enum psd_status status =
		psd_cuda_take_workspace(device, PSD_CUDA_BLAS_WORKSPACE_BYTES, "matrix products", &workspace, err);

	if (!status)
		status = check(cublasCreate(blas), "to start", err);
	if (!status)
		status = check(cublasSetStream(*blas, device->streams[PSD_STREAM_COMPUTE]), "to take a stream", err);
	if (!status)
		status = check(cublasSetWorkspace(*blas, workspace, PSD_CUDA_BLAS_WORKSPACE_BYTES),
			       "to take a workspace", err);
	if (!status)
		status = check(cublasSetMathMode(*blas, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION),
			       "to take a mode", err);
	device->held_bytes += status ? 0 : PSD_CUDA_BLAS_WORKSPACE_BYTES;
	return status;
}

enum psd_status psd_cuda_start_blas(struct psd_device *device, struct psd_error *err)
{
	const enum psd_status status = start_one(device, &device->blas, err);

	return status ? status : start_one(device, &device->rebuild_blas, err);
}

void psd_cuda_stop_blas(struct psd_device *device)
{
	if (device->blas)
		(void)cublasDestroy(device->blas);
	if (device->rebuild_blas)
		(void)cublasDestroy(device->rebuild_blas);
}

static cudaDataType_t type_of(struct psd_cuda_values values)
{
	switch (values.type) {
	case PSD_CUDA_FLOAT: return CUDA_R_32F;
	case PSD_CUDA_HALF: return CUDA_R_16F;
	case PSD_CUDA_BFLOAT: return CUDA_R_16BF;
	}
	return CUDA_R_32F;
}

/* What 16 bits hold is exact in TF32: a rebuild from factors that were so loses nothing by it. */
static cublasComputeType_t arithmetic_of(const struct psd_device *device, const struct psd_cuda_product *product)
{
	if (product->left.type == PSD_CUDA_FLOAT && device->options.arithmetic != PSD_LAYERS_FP32)
		return CUBLAS_COMPUTE_32F_FAST_TF32;
	return CUBLAS_COMPUTE_32F;
}

enum psd_status psd_cuda_multiply_matrices(struct psd_device *device, const struct psd_cuda_product *product,
					   bool is_rebuild, struct psd_error *err)
{
	const int rows = (int)product->rows, columns = (int)product->columns, depth = (int)product->depth;
	const int left_length = product->is_left_transposed ? rows : depth; /* of a stored row */
	const int right_length = product->is_right_transposed ? depth : columns;
	const float alpha = product->alpha, beta = product->adds ? 1.0f : 0.0f;

	return check(cublasGemmEx(is_rebuild ? device->rebuild_blas : device->blas,
				  product->is_right_transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
				  product->is_left_transposed ? CUBLAS_OP_T : CUBLAS_OP_N, columns, rows, depth, &alpha,
				  product->right.data, type_of(product->right), right_length, product->left.data,
				  type_of(product->left), left_length, &beta, product->result.data,
				  type_of(product->result), columns, arithmetic_of(device, product),
				  CUBLAS_GEMM_DEFAULT),
		     "to multiply matrices", err);
}
