/* Matrix products on cuBLAS, whose matrices are column-major: to it psd's row-major matrices are their transposes.
 * Products with an epilogue run on cuBLASLt. */
#include <cublasLt.h>
#include <cublas_v2.h>
#include <stdlib.h>

extern "C" {
#include "real/device/gpu/gpu.h"
}

static const struct psd_place nowhere = {NULL, 0, 0};

static enum psd_status check(cublasStatus_t status, const char *what, struct psd_error *err)
{
	if (status == CUBLAS_STATUS_SUCCESS)
		return PSD_OK;
	return psd_error_set(err, PSD_ERUN, nowhere, "cuBLAS failed %s (%s)", what, cublasGetStatusName(status));
}

/* A workspace of its own keeps bits equal whatever else runs, and avoids later allocations. */
static enum psd_status start_one(struct psd_device *device, struct cublasContext **blas, void **workspace,
				 struct psd_error *err)
{
	PSD_TRY(psd_gpu_take_workspace(device, PSD_GPU_BLAS_WORKSPACE_BYTES, "matrix products", workspace, err));
	PSD_TRY(check(cublasCreate(blas), "to start", err));
	PSD_TRY(check(cublasSetStream(*blas, device->streams[PSD_STREAM_COMPUTE]), "to take a stream", err));
	PSD_TRY(check(cublasSetWorkspace(*blas, *workspace, PSD_GPU_BLAS_WORKSPACE_BYTES), "to take a workspace", err));
	PSD_TRY(check(cublasSetMathMode(*blas, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION), "to take a mode",
		      err));
	device->held_bytes += PSD_GPU_BLAS_WORKSPACE_BYTES;
	return PSD_OK;
}

enum psd_status psd_gpu_start_blas(struct psd_device *device, struct psd_error *err)
{
	void *rebuild_workspace;

	PSD_TRY(start_one(device, &device->blas, &device->blas_workspace, err));
	PSD_TRY(start_one(device, &device->rebuild_blas, &rebuild_workspace, err));
	return check(cublasLtCreate(&device->lt), "to start its products with epilogues", err);
}

void psd_gpu_stop_blas(struct psd_device *device)
{
	if (device->blas)
		(void)cublasDestroy(device->blas);
	if (device->rebuild_blas)
		(void)cublasDestroy(device->rebuild_blas);
	if (device->lt)
		(void)cublasLtDestroy(device->lt);
}

static cudaDataType_t type_of(struct psd_gpu_values values)
{
	switch (values.type) {
	case PSD_GPU_FLOAT: return CUDA_R_32F;
	case PSD_GPU_HALF: return CUDA_R_16F;
	case PSD_GPU_BFLOAT: return CUDA_R_16BF;
	}
	return CUDA_R_32F;
}

/* Values of 16 bits are exact in TF32: a rebuild from such factors loses nothing. */
static cublasComputeType_t arithmetic_of(const struct psd_device *device, const struct psd_gpu_product *product)
{
	if (product->left.type == PSD_GPU_FLOAT && !product->is_exact && device->options.arithmetic != PSD_LAYERS_FP32)
		return CUBLAS_COMPUTE_32F_FAST_TF32;
	return CUBLAS_COMPUTE_32F;
}

enum psd_status psd_gpu_multiply_matrices(struct psd_device *device, const struct psd_gpu_product *product,
					  bool is_rebuild, struct psd_error *err)
{
	const int rows = (int)product->rows, columns = (int)product->columns, depth = (int)product->depth;
	/* lengths of the rows of left and right as they are stored */
	const int left_length = product->is_left_transposed ? rows : depth;
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

enum psd_status psd_gpu_multiply_several(struct psd_device *device, const struct psd_gpu_products *products,
					 struct psd_error *err)
{
	const struct psd_gpu_product *first = &products->first;
	const float alpha = first->alpha, beta = first->adds ? 1.0f : 0.0f;

	return check(cublasGemmStridedBatchedEx(
			     device->blas, first->is_right_transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
			     first->is_left_transposed ? CUBLAS_OP_T : CUBLAS_OP_N, (int)first->columns,
			     (int)first->rows, (int)first->depth, &alpha, first->right.data, type_of(first->right),
			     (int)products->right_apart, (long long)products->right_stride, first->left.data,
			     type_of(first->left), (int)products->left_apart, (long long)products->left_stride, &beta,
			     first->result.data, type_of(first->result), (int)products->result_apart,
			     (long long)products->result_stride, (int)products->n, arithmetic_of(device, first),
			     CUBLAS_GEMM_DEFAULT),
		     "to multiply matrices", err);
}

/* ---- products with an epilogue ---- */

/* Left and right are exchanged for cuBLASLt, whose columns are the result's rows. */
struct psd_gpu_fused {
	cublasLtMatmulDesc_t operation;
	cublasLtMatrixLayout_t right, left, result;
	cublasLtMatmulPreference_t preference; /* for the choice of an algorithm */
	cublasLtMatmulAlgo_t algorithm;
	uint64_t workspace_bytes;
	/* alignments of result and vector that the algorithm needs, bytes */
	uint32_t result_alignment, vector_alignment;
};

static cublasLtEpilogue_t name_of(enum psd_gpu_epilogue epilogue)
{
	switch (epilogue) {
	case PSD_GPU_ADD_VECTOR: return CUBLASLT_EPILOGUE_BIAS;
	case PSD_GPU_ADD_VECTOR_AND_RECTIFY: return CUBLASLT_EPILOGUE_RELU_BIAS;
	case PSD_GPU_SUM_LEFT_ROWS: return CUBLASLT_EPILOGUE_BGRADB;
	}
	return CUBLASLT_EPILOGUE_DEFAULT;
}

/* Alignment of memory; if it has no address yet, the alignment that psd_gpu_want() promises. */
static uint32_t alignment_of(const void *data)
{
	const uintptr_t position = (uintptr_t)data | 256;

	return (uint32_t)(position & (~position + 1));
}

template <typename Value>
static cublasStatus_t tell(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t name, Value value)
{
	return cublasLtMatmulDescSetAttribute(operation, name, &value, sizeof(value));
}

template <typename Value>
static cublasStatus_t prefer(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t name,
			     Value value)
{
	return cublasLtMatmulPreferenceSetAttribute(preference, name, &value, sizeof(value));
}

/* Describes a row-major matrix of rows x columns. */
static cublasStatus_t describe_matrix(cublasLtMatrixLayout_t *layout, struct psd_gpu_values values, uint32_t rows,
				      uint32_t columns)
{
	return cublasLtMatrixLayoutCreate(layout, type_of(values), columns, rows, columns);
}

static cublasStatus_t describe_matrices(struct psd_gpu_fused *fused, const struct psd_gpu_product *product)
{
	const bool is_left_turned = product->is_left_transposed, is_right_turned = product->is_right_transposed;
	cublasStatus_t status =
		describe_matrix(&fused->left, product->left, is_left_turned ? product->depth : product->rows,
				is_left_turned ? product->rows : product->depth);

	if (status == CUBLAS_STATUS_SUCCESS)
		status = describe_matrix(&fused->right, product->right,
					 is_right_turned ? product->columns : product->depth,
					 is_right_turned ? product->depth : product->columns);
	if (status == CUBLAS_STATUS_SUCCESS)
		status = describe_matrix(&fused->result, product->result, product->rows, product->columns);
	return status;
}

/* cuBLASLt derives the vector's alignment from its pointer. */
static cublasStatus_t describe_operation(const struct psd_device *device, struct psd_gpu_fused *fused,
					 const struct psd_gpu_product *product, const void *vector)
{
	const int32_t turned = CUBLAS_OP_T, as_stored = CUBLAS_OP_N;
	const void *aligned_alike = (const void *)(uintptr_t)alignment_of(vector);
	cublasStatus_t status = cublasLtMatmulDescCreate(&fused->operation, arithmetic_of(device, product), CUDA_R_32F);

	if (status == CUBLAS_STATUS_SUCCESS)
		status = tell(fused->operation, CUBLASLT_MATMUL_DESC_TRANSA,
			      product->is_right_transposed ? turned : as_stored);
	if (status == CUBLAS_STATUS_SUCCESS)
		status = tell(fused->operation, CUBLASLT_MATMUL_DESC_TRANSB,
			      product->is_left_transposed ? turned : as_stored);
	if (status == CUBLAS_STATUS_SUCCESS)
		status = tell(fused->operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, aligned_alike);
	return status == CUBLAS_STATUS_SUCCESS ? describe_matrices(fused, product) : status;
}

/* Split-k sums stay floats, like those of cuBLAS in the mode set here. */
static cublasStatus_t describe_preference(cublasLtMatmulPreference_t *preference, const struct psd_gpu_product *product)
{
	cublasStatus_t status = cublasLtMatmulPreferenceCreate(preference);

	if (status == CUBLAS_STATUS_SUCCESS)
		status = prefer(*preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
				(uint64_t)PSD_GPU_BLAS_WORKSPACE_BYTES);
	if (status == CUBLAS_STATUS_SUCCESS)
		status = prefer(*preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
				(uint32_t)CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
	if (status == CUBLAS_STATUS_SUCCESS)
		status = prefer(*preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
				alignment_of(product->right.data));
	if (status == CUBLAS_STATUS_SUCCESS)
		status = prefer(*preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
				alignment_of(product->left.data));
	if (status == CUBLAS_STATUS_SUCCESS)
		status = prefer(*preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
				alignment_of(product->result.data));
	if (status == CUBLAS_STATUS_SUCCESS)
		status = prefer(*preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES,
				alignment_of(product->result.data));
	return status;
}

/* Whether cuBLASLt lacks such a product with such an epilogue; no error of the machine. */
static bool refuses(cublasStatus_t status)
{
	return status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE ||
	       status == CUBLAS_STATUS_ARCH_MISMATCH;
}

/* The fastest algorithm by cuBLASLt's heuristic. *is_there: there is one. */
static cublasStatus_t estimate(const struct psd_device *device, const struct psd_gpu_fused *fused,
			       cublasLtEpilogue_t epilogue, cublasLtMatmulHeuristicResult_t *best, bool *is_there)
{
	int n = 0;
	cublasStatus_t status = tell(fused->operation, CUBLASLT_MATMUL_DESC_EPILOGUE, (uint32_t)epilogue);

	if (status == CUBLAS_STATUS_SUCCESS)
		status = cublasLtMatmulAlgoGetHeuristic(device->lt, fused->operation, fused->right, fused->left,
							fused->result, fused->result, fused->preference, 1, best, &n);
	*is_there = status == CUBLAS_STATUS_SUCCESS && n == 1 && best->state == CUBLAS_STATUS_SUCCESS;
	return refuses(status) ? CUBLAS_STATUS_SUCCESS : status;
}

/* Whether both use one kernel: then the epilogue is nearly free, else it may cost more than a separate kernel. */
static bool multiply_alike(const cublasLtMatmulAlgo_t *left, const cublasLtMatmulAlgo_t *right)
{
	static const cublasLtMatmulAlgoConfigAttributes_t names[] = {
		CUBLASLT_ALGO_CONFIG_ID, CUBLASLT_ALGO_CONFIG_TILE_ID, CUBLASLT_ALGO_CONFIG_STAGES_ID,
		CUBLASLT_ALGO_CONFIG_SPLITK_NUM, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		uint32_t of_left = 0, of_right = 0;
		size_t bytes;

		if (cublasLtMatmulAlgoConfigGetAttribute(left, names[i], &of_left, sizeof(of_left), &bytes) !=
			    CUBLAS_STATUS_SUCCESS ||
		    cublasLtMatmulAlgoConfigGetAttribute(right, names[i], &of_right, sizeof(of_right), &bytes) !=
			    CUBLAS_STATUS_SUCCESS ||
		    of_left != of_right)
			return false;
	}
	return true;
}

static cublasStatus_t choose(const struct psd_device *device, struct psd_gpu_fused *fused,
			     enum psd_gpu_epilogue epilogue, bool *is_chosen)
{
	cublasLtMatmulHeuristicResult_t alone, both;
	bool has_alone = false, has_both = false;
	cublasStatus_t status = estimate(device, fused, CUBLASLT_EPILOGUE_DEFAULT, &alone, &has_alone);

	if (status == CUBLAS_STATUS_SUCCESS)
		status = estimate(device, fused, name_of(epilogue), &both, &has_both);
	*is_chosen =
		status == CUBLAS_STATUS_SUCCESS && has_alone && has_both && multiply_alike(&alone.algo, &both.algo);
	if (*is_chosen) {
		fused->algorithm = both.algo;
		fused->workspace_bytes = both.workspaceSize;
	}
	return status;
}

enum psd_status psd_gpu_open_fused(struct psd_device *device, const struct psd_gpu_product *product,
				   enum psd_gpu_epilogue epilogue, const void *vector, struct psd_gpu_fused **fused,
				   struct psd_error *err)
{
	struct psd_gpu_fused *opened = (struct psd_gpu_fused *)calloc(1, sizeof(*opened));
	bool is_chosen = false;

	if (!opened)
		return psd_gpu_no_memory(err);
	cublasStatus_t status = describe_operation(device, opened, product, vector);
	if (status == CUBLAS_STATUS_SUCCESS)
		status = describe_preference(&opened->preference, product);
	if (status == CUBLAS_STATUS_SUCCESS)
		status = choose(device, opened, epilogue, &is_chosen);
	opened->result_alignment = alignment_of(product->result.data);
	opened->vector_alignment = alignment_of(vector);
	if (is_chosen)
		*fused = opened;
	else
		psd_gpu_close_fused(opened);
	return check(status, "to choose a product's algorithm", err);
}

static void end_matrix(cublasLtMatrixLayout_t layout)
{
	if (layout)
		(void)cublasLtMatrixLayoutDestroy(layout);
}

void psd_gpu_close_fused(struct psd_gpu_fused *fused)
{
	if (!fused)
		return;
	end_matrix(fused->right);
	end_matrix(fused->left);
	end_matrix(fused->result);
	if (fused->preference)
		(void)cublasLtMatmulPreferenceDestroy(fused->preference);
	if (fused->operation)
		(void)cublasLtMatmulDescDestroy(fused->operation);
	free(fused);
}

bool psd_gpu_fits_fused(const struct psd_gpu_fused *fused, const struct psd_gpu_product *product, const void *vector)
{
	return product->result.data && vector && (uintptr_t)product->result.data % fused->result_alignment == 0 &&
	       (uintptr_t)vector % fused->vector_alignment == 0;
}

enum psd_status psd_gpu_multiply_fused(struct psd_device *device, struct psd_gpu_fused *fused,
				       const struct psd_gpu_product *product, void *vector, struct psd_error *err)
{
	const float alpha = product->alpha, beta = 0.0f;
	cublasStatus_t status = tell(fused->operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, (const void *)vector);

	if (status == CUBLAS_STATUS_SUCCESS)
		status = cublasLtMatmul(device->lt, fused->operation, &alpha, product->right.data, fused->right,
					product->left.data, fused->left, &beta, product->result.data, fused->result,
					product->result.data, fused->result, &fused->algorithm, device->blas_workspace,
					fused->workspace_bytes, device->streams[PSD_STREAM_COMPUTE]);
	return check(status, "to multiply matrices", err);
}
