/* cuBLASLt's functions of the stand-in: products with the epilogues that psd-run uses. An algorithm knows what it was
 * chosen for, and refuses all else, as cuBLASLt may. Refuses types and epilogues that psd-run does not use. */
#include <cublasLt.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/stand_in_parts.h"
#include "tests/cuda/stand_in_product.h"

enum { WORKSPACE_BYTES = 4096, TILE = 20, OTHER_TILE = 18 };

struct cublasLtContext {
	int device;
};

struct operation {
	cublasComputeType_t compute;
	int32_t operations[2]; /* for A and B */
	uint32_t epilogue;
	void *vector;
};

struct layout {
	cudaDataType type;
	int rows, columns, stride; /* as stored */
};

struct preference {
	uint64_t workspace_bytes;
	uint32_t reductions;	/* schemes by which parts of the depth may be added */
	uint32_t alignments[4]; /* for A, B, C and D */
};

/* In place of cuBLASLt's own words. */
struct algorithm {
	uint64_t product; /* the product that it was chosen for */
	uint32_t alignments[4], vector_alignment;
	uint32_t tile;
	bool rounds_parts;
};

_Static_assert(sizeof(struct algorithm) <= sizeof(cublasLtMatmulAlgo_t), "an algorithm fits into cuBLASLt's");

static enum psd_stand_in_epilogues epilogues = PSD_STAND_IN_EPILOGUES_FREE;

void psd_stand_in_set_epilogues(enum psd_stand_in_epilogues how)
{
	psd_stand_in_lock();
	epilogues = how;
	psd_stand_in_unlock();
}

static cublasStatus_t end(cudaError_t error)
{
	psd_stand_in_unlock();
	return psd_stand_in_blas_status(error);
}

/* ---- handles and descriptors ---- */

static cublasStatus_t create(const char *function, void **made, const void *content, size_t bytes)
{
	cudaError_t error = psd_stand_in_begin(function);

	if (error == cudaSuccess) {
		*made = malloc(bytes);
		error = *made ? cudaSuccess : cudaErrorMemoryAllocation;
	}
	if (error == cudaSuccess) {
		memcpy(*made, content, bytes);
		psd_stand_in_count.handles++;
	}
	return end(error);
}

static cublasStatus_t destroy(const char *function, void *made)
{
	const cudaError_t error = psd_stand_in_begin(function);

	if (made && psd_stand_in_may_release(error)) {
		free(made);
		psd_stand_in_count.handles--;
	}
	return end(error);
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
	const struct cublasLtContext context = {.device = psd_stand_in_device()};

	return create(__func__, (void **)handle, &context, sizeof(context));
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
	return destroy(__func__, handle);
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *operation, cublasComputeType_t compute,
					cudaDataType_t scale)
{
	const struct operation content = {
		.compute = compute, .operations = {CUBLAS_OP_N, CUBLAS_OP_N}, .epilogue = CUBLASLT_EPILOGUE_DEFAULT};

	if (scale != CUDA_R_32F)
		return CUBLAS_STATUS_NOT_SUPPORTED;
	return create(__func__, (void **)operation, &content, sizeof(content));
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t operation)
{
	return destroy(__func__, operation);
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type, uint64_t rows,
					  uint64_t columns, int64_t stride)
{
	const struct layout content = {type, (int)rows, (int)columns, (int)stride};

	return create(__func__, (void **)layout, &content, sizeof(content));
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
	return destroy(__func__, layout);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference)
{
	const struct preference content = {.reductions = CUBLASLT_REDUCTION_SCHEME_MASK,
					   .alignments = {256, 256, 256, 256}};

	return create(__func__, (void **)preference, &content, sizeof(content));
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference)
{
	return destroy(__func__, preference);
}

/* Without a word where the name or the size is not one of psd-run's. */
static cublasStatus_t set(const char *function, void *to, size_t bytes, const void *value, size_t value_bytes)
{
	cudaError_t error = psd_stand_in_begin(function);

	if (error == cudaSuccess && (!to || bytes != value_bytes))
		error = cudaErrorInvalidValue;
	if (error == cudaSuccess)
		memcpy(to, value, bytes);
	return end(error);
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t name,
					      const void *value, size_t bytes)
{
	struct operation *const operation = (void *)desc;

	switch ((int)name) {
	case CUBLASLT_MATMUL_DESC_TRANSA:
		return set(__func__, &operation->operations[0], sizeof(int32_t), value, bytes);
	case CUBLASLT_MATMUL_DESC_TRANSB:
		return set(__func__, &operation->operations[1], sizeof(int32_t), value, bytes);
	case CUBLASLT_MATMUL_DESC_EPILOGUE: return set(__func__, &operation->epilogue, sizeof(uint32_t), value, bytes);
	case CUBLASLT_MATMUL_DESC_BIAS_POINTER: return set(__func__, &operation->vector, sizeof(void *), value, bytes);
	default: return set(__func__, NULL, 0, value, bytes);
	}
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t desc,
						    cublasLtMatmulPreferenceAttributes_t name, const void *value,
						    size_t bytes)
{
	struct preference *const preference = (void *)desc;

	switch ((int)name) {
	case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
		return set(__func__, &preference->workspace_bytes, sizeof(uint64_t), value, bytes);
	case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
		return set(__func__, &preference->reductions, sizeof(uint32_t), value, bytes);
	case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
	case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
	case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
	case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
		return set(__func__, &preference->alignments[name - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES],
			   sizeof(uint32_t), value, bytes);
	default: return set(__func__, NULL, 0, value, bytes);
	}
}

/* ---- algorithms ---- */

static uint32_t alignment_of(const void *place)
{
	const uintptr_t bits = (uintptr_t)place | 256;

	return (uint32_t)(bits & (~bits + 1));
}

static void mix(uint64_t *hash, uint64_t value)
{
	*hash = (*hash ^ value) * UINT64_C(1099511628211);
}

/* By all that an algorithm may depend on: layouts of A, B, C. */
static uint64_t number_product(const struct operation *operation, const struct layout *layouts[3])
{
	uint64_t hash = operation->epilogue;

	mix(&hash, (uint64_t)operation->compute);
	for (unsigned i = 0; i < 2; i++)
		mix(&hash, (uint64_t)operation->operations[i]);
	for (unsigned i = 0; i < 3; i++) {
		mix(&hash, (uint64_t)layouts[i]->type);
		mix(&hash, (uint64_t)layouts[i]->rows);
		mix(&hash, (uint64_t)layouts[i]->columns);
		mix(&hash, (uint64_t)layouts[i]->stride);
	}
	return hash;
}

static bool is_known(uint32_t epilogue)
{
	return epilogue == CUBLASLT_EPILOGUE_DEFAULT || epilogue == CUBLASLT_EPILOGUE_BIAS ||
	       epilogue == CUBLASLT_EPILOGUE_RELU_BIAS || epilogue == CUBLASLT_EPILOGUE_BGRADB;
}

/* false: cuBLASLt has no such product, or is not to have it. */
static bool make_product(const struct operation *operation, const struct layout *layouts[3],
			 struct psd_stand_in_product *product)
{
	struct psd_stand_in_matrix *const matrices[3] = {&product->a, &product->b, &product->c};

	*product = (struct psd_stand_in_product){
		.adds_vector = operation->epilogue == CUBLASLT_EPILOGUE_BIAS ||
			       operation->epilogue == CUBLASLT_EPILOGUE_RELU_BIAS,
		.rectifies = operation->epilogue == CUBLASLT_EPILOGUE_RELU_BIAS,
		.sums_b = operation->epilogue == CUBLASLT_EPILOGUE_BGRADB,
		.vector = operation->vector,
	};
	for (unsigned i = 0; i < 3; i++) {
		enum psd_stand_in_number number;
		const bool is_turned = i < 2 && operation->operations[i] == CUBLAS_OP_T;

		if (!psd_stand_in_blas_number(layouts[i]->type, &number))
			return false;
		*matrices[i] =
			psd_stand_in_matrix_of(NULL, number, is_turned ? CUBLAS_OP_T : CUBLAS_OP_N,
					       is_turned ? layouts[i]->columns : layouts[i]->rows,
					       is_turned ? layouts[i]->rows : layouts[i]->columns, layouts[i]->stride);
	}
	product->m = product->c.rows;
	product->n = product->c.columns;
	product->k = product->a.is_transposed ? product->a.rows : product->a.columns;
	product->is_tf32 =
		product->a.number == PSD_STAND_IN_FLOAT && operation->compute == CUBLAS_COMPUTE_32F_FAST_TF32;
	return is_known(operation->epilogue) && psd_stand_in_go_together(product) &&
	       (epilogues != PSD_STAND_IN_EPILOGUES_NONE || operation->epilogue == CUBLASLT_EPILOGUE_DEFAULT);
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
					      cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
					      cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
					      cublasLtMatmulPreference_t wanted, int most,
					      cublasLtMatmulHeuristicResult_t results[], int *n)
{
	const cudaError_t error = psd_stand_in_begin(__func__);
	const struct operation *const operation = (const void *)desc;
	const struct preference *const preference = (const void *)wanted;
	const struct layout *layouts[3] = {(const void *)a, (const void *)b, (const void *)c};
	struct psd_stand_in_product product;
	struct algorithm algorithm = {.vector_alignment = alignment_of(operation->vector), .tile = TILE};
	bool has_one;

	(void)handle, (void)d;
	if (error != cudaSuccess)
		return end(error);
	has_one = most > 0 && make_product(operation, layouts, &product);
	if (operation->epilogue != CUBLASLT_EPILOGUE_DEFAULT && epilogues == PSD_STAND_IN_EPILOGUES_DEAR)
		algorithm.tile = OTHER_TILE;
	algorithm.rounds_parts =
		preference->reductions & (CUBLASLT_REDUCTION_SCHEME_INPLACE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE);
	algorithm.product = number_product(operation, layouts);
	memcpy(algorithm.alignments, preference->alignments, sizeof(algorithm.alignments));
	*n = has_one;
	if (has_one) {
		results[0] = (cublasLtMatmulHeuristicResult_t){.state = CUBLAS_STATUS_SUCCESS};
		results[0].workspaceSize = preference->workspace_bytes < WORKSPACE_BYTES ? 0 : WORKSPACE_BYTES;
		memcpy(&results[0].algo, &algorithm, sizeof(algorithm));
	}
	psd_stand_in_unlock();
	return has_one ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

/* Asks no device, and does not fail. */
cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *algo,
						    cublasLtMatmulAlgoConfigAttributes_t name, void *value,
						    size_t bytes, size_t *written)
{
	const struct algorithm *const algorithm = (const void *)algo;
	const uint32_t found = name == CUBLASLT_ALGO_CONFIG_TILE_ID ? algorithm->tile : 1;

	if (bytes != sizeof(found))
		return CUBLAS_STATUS_INVALID_VALUE;
	memcpy(value, &found, sizeof(found));
	*written = sizeof(found);
	return CUBLAS_STATUS_SUCCESS;
}

/* ---- products ---- */

/* Whether memory lies as was promised when the algorithm was chosen. alpha is not known to scale sums of B. */
static bool may_take(const struct algorithm *algorithm, const struct operation *operation,
		     const struct psd_stand_in_product *product)
{
	const struct psd_stand_in_matrix *const matrices[4] = {&product->a, &product->b, &product->c, &product->c};

	for (unsigned i = 0; i < 4; i++)
		if (!psd_stand_in_is_stored(matrices[i]) ||
		    (uintptr_t)matrices[i]->values % algorithm->alignments[i] != 0)
			return false;
	return (operation->epilogue == CUBLASLT_EPILOGUE_DEFAULT ||
		(operation->vector && (uintptr_t)operation->vector % algorithm->vector_alignment == 0)) &&
	       (!product->sums_b || product->alpha == 1);
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha, const void *a,
			      cublasLtMatrixLayout_t a_layout, const void *b, cublasLtMatrixLayout_t b_layout,
			      const void *beta, const void *c, cublasLtMatrixLayout_t c_layout, void *d,
			      cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *algo, void *workspace,
			      size_t workspace_bytes, cudaStream_t stream)
{
	cudaError_t error = psd_stand_in_begin(__func__);
	const struct operation *const operation = (const void *)desc;
	const struct algorithm *const algorithm = (const void *)algo;
	const struct layout *layouts[3] = {(const void *)a_layout, (const void *)b_layout, (const void *)c_layout};
	struct psd_stand_in_product product;

	(void)d_layout;
	if (error == cudaSuccess && (c != d || !make_product(operation, layouts, &product) ||
				     number_product(operation, layouts) != algorithm->product))
		error = cudaErrorInvalidValue;
	if (error != cudaSuccess)
		return end(error);
	product.alpha = *(const float *)alpha;
	product.beta = *(const float *)beta;
	product.a.values = (void *)(uintptr_t)a;
	product.b.values = (void *)(uintptr_t)b;
	product.c.values = d;
	product.workspace = workspace;
	product.workspace_bytes = workspace_bytes;
	product.rounds_parts = algorithm->rounds_parts;
	if (!may_take(algorithm, operation, &product))
		error = cudaErrorInvalidValue;
	if (error == cudaSuccess && handle->device != psd_stand_in_device())
		error = cudaErrorInvalidResourceHandle;
	if (error == cudaSuccess)
		error = psd_stand_in_queue_work(stream, psd_stand_in_run_product, &product, sizeof(product));
	return end(error);
}
