/* cuBLAS's functions of the stand-in against oneDNN's product and hand algebra. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <cublas_v2.h>
#include <dnnl.h>
#include <math.h>
#include <string.h>

#include "engine/encodings/encoding.h"
#include "tests/cuda/apart_helper.h"
#include "tests/cuda/stand_in.h"
#include "tests/test_with.h"

enum { MOST = 64 };

static const double rounding = 1e-5; /* relative to sums of less than ten factors below 2 */

struct blas {
	cublasHandle_t handle;
	cudaStream_t stream;
	void *a, *b, *c; /* device memory, MOST floats each */
};

static void open_blas(struct blas *blas)
{
	cr_assert_eq(cudaStreamCreateWithFlags(&blas->stream, cudaStreamNonBlocking), cudaSuccess);
	cr_assert_eq(cublasCreate(&blas->handle), CUBLAS_STATUS_SUCCESS);
	cr_assert_eq(cublasSetStream(blas->handle, blas->stream), CUBLAS_STATUS_SUCCESS);
	cr_assert_eq(cudaMalloc(&blas->a, MOST * sizeof(float)), cudaSuccess);
	cr_assert_eq(cudaMalloc(&blas->b, MOST * sizeof(float)), cudaSuccess);
	cr_assert_eq(cudaMalloc(&blas->c, MOST * sizeof(float)), cudaSuccess);
}

static void close_blas(const struct blas *blas)
{
	cr_assert_eq(cudaStreamDestroy(blas->stream), cudaSuccess);
	cr_assert_eq(cublasDestroy(blas->handle), CUBLAS_STATUS_SUCCESS);
	cr_assert_eq(cudaFree(blas->a), cudaSuccess);
	cr_assert_eq(cudaFree(blas->b), cudaSuccess);
	cr_assert_eq(cudaFree(blas->c), cudaSuccess);
}

#define BLAS_TEST(suite, claim) TEST_OPENED(suite, claim, struct blas, blas, open_blas, close_blas)

static void to_device(const struct blas *blas, void *to, const void *from, size_t bytes)
{
	cr_assert_eq(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, blas->stream), cudaSuccess);
}

static void to_host(const struct blas *blas, void *to, const void *from, size_t bytes)
{
	cr_assert_eq(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, blas->stream), cudaSuccess);
	cr_assert_eq(cudaStreamSynchronize(blas->stream), cudaSuccess);
}

static void fill(float *values, unsigned n, unsigned seed)
{
	for (unsigned i = 0; i < n; i++)
		values[i] = (float)sin((double)(seed + i)) * 2;
}

/* oneDNN's matrices lie row by row: there C' = op(B)' op(A)', with the same letters for whether one is transposed. */
static void check_product(const struct blas *blas, bool is_a_transposed, bool is_b_transposed, float beta)
{
	enum { M = 4, N = 3, K = 5, A_STRIDE = 6, B_STRIDE = 7, C_STRIDE = 5 };
	const float alpha = 0.5F;
	float a[MOST], b[MOST], c[MOST], expected[MOST];

	fill(a, MOST, 1);
	fill(b, MOST, 100);
	fill(expected, MOST, 200);
	to_device(blas, blas->a, a, sizeof(a));
	to_device(blas, blas->b, b, sizeof(b));
	to_device(blas, blas->c, expected, sizeof(expected));
	cr_assert_eq(cublasSgemm(blas->handle, is_a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
				 is_b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N, M, N, K, &alpha, blas->a, A_STRIDE,
				 blas->b, B_STRIDE, &beta, blas->c, C_STRIDE),
		     CUBLAS_STATUS_SUCCESS);
	to_host(blas, c, blas->c, sizeof(c));
	cr_assert_eq(dnnl_sgemm(is_b_transposed ? 'T' : 'N', is_a_transposed ? 'T' : 'N', N, M, K, alpha, b, B_STRIDE,
				a, A_STRIDE, beta, expected, C_STRIDE),
		     dnnl_success);
	for (unsigned i = 0; i < MOST; i++)
		cr_assert_float_eq(c[i], expected[i], rounding * 20, "%u", i);
}

BLAS_TEST(stand_in_blas, products_are_those_of_onednn)
{
	for (unsigned which = 0; which < 4; which++) {
		check_product(blas, which & 1, which & 2, 0);
		check_product(blas, which & 1, which & 2, 1);
	}
}

/* Three of them: A's lie behind each other, all have one B, C's columns lie between each other's. */
static void check_products(const struct blas *blas, bool is_a_transposed, bool is_b_transposed, float beta)
{
	enum { M = 2, N = 3, K = 4, COUNT = 3, A_STRIDE = 5, A_NEXT = 20, B_STRIDE = 6, C_STRIDE = 8, C_NEXT = 3 };
	const float alpha = 0.5F;
	float a[MOST], b[MOST], c[MOST], expected[MOST];

	fill(a, MOST, 1);
	fill(b, MOST, 100);
	fill(expected, MOST, 200);
	to_device(blas, blas->a, a, sizeof(a));
	to_device(blas, blas->b, b, sizeof(b));
	to_device(blas, blas->c, expected, sizeof(expected));
	cr_assert_eq(cublasGemmStridedBatchedEx(blas->handle, is_a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
						is_b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N, M, N, K, &alpha, blas->a,
						CUDA_R_32F, A_STRIDE, A_NEXT, blas->b, CUDA_R_32F, B_STRIDE, 0, &beta,
						blas->c, CUDA_R_32F, C_STRIDE, C_NEXT, COUNT, CUBLAS_COMPUTE_32F,
						CUBLAS_GEMM_DEFAULT),
		     CUBLAS_STATUS_SUCCESS);
	to_host(blas, c, blas->c, sizeof(c));
	for (size_t i = 0; i < COUNT; i++)
		cr_assert_eq(dnnl_sgemm(is_b_transposed ? 'T' : 'N', is_a_transposed ? 'T' : 'N', N, M, K, alpha, b,
					B_STRIDE, a + i * A_NEXT, A_STRIDE, beta, expected + i * C_NEXT, C_STRIDE),
			     dnnl_success);
	for (unsigned i = 0; i < MOST; i++)
		cr_assert_float_eq(c[i], expected[i], rounding * 20, "%u", i);
}

BLAS_TEST(stand_in_blas, several_products_are_those_of_onednn)
{
	for (unsigned which = 0; which < 4; which++) {
		check_products(blas, which & 1, which & 2, 0);
		check_products(blas, which & 1, which & 2, 1);
	}
}

/* Two of (2 x 1) (1 x 3), with such distances of columns and of matrices. */
static cublasStatus_t multiply_two(const struct blas *blas, int a_stride, int b_stride, int c_stride, long long c_next,
				   int count)
{
	const float one = 1;

	return cublasGemmStridedBatchedEx(blas->handle, CUBLAS_OP_N, CUBLAS_OP_N, 2, 3, 1, &one, blas->a, CUDA_R_32F,
					  a_stride, 2, blas->b, CUDA_R_32F, b_stride, 3, &one, blas->c, CUDA_R_32F,
					  c_stride, c_next, count, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
}

BLAS_TEST(stand_in_blas, several_products_are_refused_as_one_is)
{
	cr_expect_eq(multiply_two(blas, 2, 1, 2, 6, 2), CUBLAS_STATUS_SUCCESS);
	cr_expect_eq(multiply_two(blas, 1, 1, 2, 6, 2), CUBLAS_STATUS_INVALID_VALUE);
	cr_expect_eq(multiply_two(blas, 2, 0, 2, 6, 2), CUBLAS_STATUS_INVALID_VALUE);
	cr_expect_eq(multiply_two(blas, 2, 1, 1, 6, 2), CUBLAS_STATUS_INVALID_VALUE);
	cr_expect_eq(multiply_two(blas, 2, 1, 2, 6, -1), CUBLAS_STATUS_INVALID_VALUE);
	/* the second result begins in the first one; between its columns there is room for one more, not for two */
	cr_expect_eq(multiply_two(blas, 2, 1, 2, 5, 2), CUBLAS_STATUS_INVALID_VALUE);
	cr_expect_eq(multiply_two(blas, 2, 1, 4, 1, 2), CUBLAS_STATUS_INVALID_VALUE);
	cr_expect_eq(multiply_two(blas, 2, 1, 4, 2, 2), CUBLAS_STATUS_SUCCESS);
	cr_expect_eq(multiply_two(blas, 2, 1, 4, 2, 3), CUBLAS_STATUS_INVALID_VALUE);
	cr_expect_eq(multiply_two(blas, 2, 1, 2, 0, 1), CUBLAS_STATUS_SUCCESS);
	cr_expect_eq(cudaStreamSynchronize(blas->stream), cudaSuccess);
}

/* (2 x 1) (1 x 1): what is not asked for is not read, and no value beyond the matrix is written. */
BLAS_TEST(stand_in_blas, a_result_that_is_overwritten_may_be_no_number)
{
	const float alpha = 1, beta = 0, a[2] = {2, 3}, b = 5;
	float c[3];

	to_device(blas, blas->a, a, sizeof(a));
	to_device(blas, blas->b, &b, sizeof(b));
	cr_assert_eq(cublasSgemm(blas->handle, CUBLAS_OP_N, CUBLAS_OP_N, 2, 1, 1, &alpha, blas->a, 2, blas->b, 1, &beta,
				 blas->c, 2),
		     CUBLAS_STATUS_SUCCESS);
	to_host(blas, c, blas->c, sizeof(c));
	cr_assert(c[0] == 10 && c[1] == 15 && isnan(c[2]));
}

static cublasStatus_t multiply_one(const struct blas *blas, cudaDataType in, cudaDataType out,
				   cublasComputeType_t compute)
{
	const float alpha = 1, beta = 0;

	return cublasGemmEx(blas->handle, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 2, &alpha, blas->a, in, 1, blas->b, in, 2,
			    &beta, blas->c, out, 1, compute, CUBLAS_GEMM_DEFAULT);
}

/* 1 x 1 + 2^-8 x 2^-4: the sum 1 + 2^-12 is a float, and half the step at 1 is 2^-11 of a half, 2^-9 of a bfloat. */
BLAS_TEST(stand_in_blas, sums_are_floats_whatever_the_factors_are)
{
	const struct {
		cudaDataType type;
		const struct psd_encoding *encoding;
	} cases[] = {{CUDA_R_16F, &psd_encoding_fp16}, {CUDA_R_16BF, &psd_encoding_bf16}};

	for (size_t i = 0; i < 2; i++) {
		const struct psd_encoding *const encoding = cases[i].encoding;
		const uint16_t a[2] = {encoding->encode(1), encoding->encode(0x1p-8F)};
		const uint16_t b[2] = {encoding->encode(1), encoding->encode(0x1p-4F)};
		uint16_t narrow = 0;
		float wide = 0;

		to_device(blas, blas->a, a, sizeof(a));
		to_device(blas, blas->b, b, sizeof(b));
		cr_assert_eq(multiply_one(blas, cases[i].type, CUDA_R_32F, CUBLAS_COMPUTE_32F), CUBLAS_STATUS_SUCCESS);
		to_host(blas, &wide, blas->c, sizeof(wide));
		cr_assert_eq(wide, 1 + 0x1p-12F);
		cr_assert_eq(multiply_one(blas, cases[i].type, cases[i].type, CUBLAS_COMPUTE_32F),
			     CUBLAS_STATUS_SUCCESS);
		to_host(blas, &narrow, blas->c, sizeof(narrow));
		cr_assert_eq(encoding->decode(narrow), 1);
	}
	cr_assert_eq(multiply_one(blas, CUDA_R_32F, CUDA_R_16F, CUBLAS_COMPUTE_32F), CUBLAS_STATUS_NOT_SUPPORTED);
	cr_assert_eq(multiply_one(blas, CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_16F), CUBLAS_STATUS_NOT_SUPPORTED);
}

/* A factor 1 + 2^-12 has more than 10 bits behind the point, 1 + 2^-10 has not. */
BLAS_TEST(stand_in_blas, tf32_shortens_factors_where_it_is_asked_for)
{
	const float a[2] = {1 + 0x1p-12F, 1 + 0x1p-10F}, b[2] = {1, 1};
	const float exact = 2 + 0x1p-12F + 0x1p-10F, shortened = 2 + 0x1p-10F;
	float c = 0;

	to_device(blas, blas->a, a, sizeof(a));
	to_device(blas, blas->b, b, sizeof(b));
	multiply_one(blas, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F);
	to_host(blas, &c, blas->c, sizeof(c));
	cr_assert_eq(c, exact);
	multiply_one(blas, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32);
	to_host(blas, &c, blas->c, sizeof(c));
	cr_assert_eq(c, shortened);
	cr_assert_eq(cublasSetMathMode(blas->handle, CUBLAS_TF32_TENSOR_OP_MATH), CUBLAS_STATUS_SUCCESS);
	multiply_one(blas, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F);
	to_host(blas, &c, blas->c, sizeof(c));
	cr_assert_eq(c, shortened);
}

BLAS_TEST(stand_in_blas, a_workspace_is_written_and_forgotten_with_the_stream)
{
	const float a[2] = {1, 1}, seven = 7;
	void *workspace;
	float seen = 0;

	cr_assert_eq(cudaMalloc(&workspace, sizeof(float)), cudaSuccess);
	to_device(blas, blas->a, a, sizeof(a));
	to_device(blas, blas->b, a, sizeof(a));
	to_device(blas, workspace, &seven, sizeof(seven));
	cr_assert_eq(cublasSetWorkspace(blas->handle, workspace, sizeof(float)), CUBLAS_STATUS_SUCCESS);
	cr_assert_eq(cublasSetStream(blas->handle, blas->stream), CUBLAS_STATUS_SUCCESS);
	multiply_one(blas, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F);
	to_host(blas, &seen, workspace, sizeof(seen));
	cr_assert_eq(seen, 7);
	cr_assert_eq(cublasSetWorkspace(blas->handle, workspace, sizeof(float)), CUBLAS_STATUS_SUCCESS);
	multiply_one(blas, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F);
	to_host(blas, &seen, workspace, sizeof(seen));
	cr_assert(isnan(seen));
	cr_assert_eq(cublasSetWorkspace(blas->handle, &seen, sizeof(seen)), CUBLAS_STATUS_INVALID_VALUE);
	cr_assert_eq(cudaFree(workspace), cudaSuccess);
}

Test(stand_in_blas, calls_are_refused_and_fail_as_ordered)
{
	const float one = 1;
	cublasHandle_t handle;
	struct blas blas;

	open_blas(&blas);
	cr_assert_eq(cublasSgemm(blas.handle, CUBLAS_OP_N, CUBLAS_OP_N, 2, 1, 1, &one, blas.a, 1, blas.b, 1, &one,
				 blas.c, 2),
		     CUBLAS_STATUS_INVALID_VALUE); /* a column of two at a distance of one */
	psd_stand_in_fail("cublasCreate", 1, cudaErrorMemoryAllocation);
	cr_assert_eq(cublasCreate(&handle), CUBLAS_STATUS_ALLOC_FAILED);
	psd_stand_in_fail("cublasGemmEx", 1, cudaErrorNotSupported);
	cr_assert_eq(multiply_one(&blas, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F), CUBLAS_STATUS_EXECUTION_FAILED);
	cr_assert_eq(psd_stand_in_held().handles, 1);
	close_blas(&blas);
	cr_assert_eq(psd_stand_in_held().handles, 0);
}

/* A pointer to the host's memory is what a device would fault on. */
Test(stand_in_blas, memory_of_the_host_loses_the_device)
{
	const float one = 1;
	struct blas blas;
	float b[1] = {1};

	open_blas(&blas);
	cr_assert_eq(
		cublasSgemm(blas.handle, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, blas.a, 1, b, 1, &one, blas.c, 1),
		CUBLAS_STATUS_SUCCESS);
	cr_assert_eq(cudaStreamSynchronize(blas.stream), cudaErrorIllegalAddress);
	cr_assert_eq(cublasSetStream(blas.handle, blas.stream), CUBLAS_STATUS_EXECUTION_FAILED);
	cr_assert_eq(cublasDestroy(blas.handle), CUBLAS_STATUS_EXECUTION_FAILED);
	cr_assert_eq(psd_stand_in_held().handles, 0);
}
