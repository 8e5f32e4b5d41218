/* cuDNN's functions of the stand-in against the definitions, written out index by index, and hand algebra. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <cudnn.h>
#include <math.h>
#include <string.h>

#include "engine/encodings/encoding.h"
#include "tests/cuda/stand_in.h"

enum { MOST = 1024, ALGORITHMS = 8 };

static const double rounding = 1e-5; /* relative to sums of a few dozen products below 1 */

/* Sizes and ways of one convolution. */
struct shape {
	int n, c, h, w; /* data */
	int k, r, s;	/* filter: outputs, height, width */
	int groups, pad_h, pad_w, stride_h, stride_w, dilation_h, dilation_w;
	cudnnConvolutionMode_t mode;
	cudnnTensorFormat_t format;
};

static const struct shape shapes[] = {
	{1, 1, 3, 3, 1, 1, 1, 1, 0, 0, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_TENSOR_NCHW},
	{2, 3, 5, 6, 4, 3, 2, 1, 1, 0, 2, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_TENSOR_NCHW},
	{2, 4, 6, 5, 6, 3, 3, 2, 2, 2, 1, 3, 2, 1, CUDNN_CROSS_CORRELATION, CUDNN_TENSOR_NHWC},
	{1, 2, 4, 7, 2, 2, 3, 2, 0, 3, 1, 2, 1, 2, CUDNN_CONVOLUTION, CUDNN_TENSOR_NCHW},
};
enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

struct dnn {
	cudnnHandle_t handle;
	cudaStream_t stream;
	cudnnTensorDescriptor_t x, y;
	cudnnFilterDescriptor_t w;
	cudnnConvolutionDescriptor_t how;
	void *device_x, *device_w, *device_y, *device_dx, *workspace, *reserve; /* MOST floats each */
};

static void must(cudnnStatus_t status)
{
	cr_assert_eq(status, CUDNN_STATUS_SUCCESS, "%s", cudnnGetErrorString(status));
}

static void must_run(cudaError_t error)
{
	cr_assert_eq(error, cudaSuccess, "%s", cudaGetErrorString(error));
}

static void open_dnn(struct dnn *dnn)
{
	must_run(cudaStreamCreateWithFlags(&dnn->stream, cudaStreamNonBlocking));
	must(cudnnCreate(&dnn->handle));
	must(cudnnSetStream(dnn->handle, dnn->stream));
	must(cudnnCreateTensorDescriptor(&dnn->x));
	must(cudnnCreateTensorDescriptor(&dnn->y));
	must(cudnnCreateFilterDescriptor(&dnn->w));
	must(cudnnCreateConvolutionDescriptor(&dnn->how));
	must_run(cudaMalloc(&dnn->device_x, MOST * sizeof(float)));
	must_run(cudaMalloc(&dnn->device_w, MOST * sizeof(float)));
	must_run(cudaMalloc(&dnn->device_y, MOST * sizeof(float)));
	must_run(cudaMalloc(&dnn->device_dx, MOST * sizeof(float)));
	must_run(cudaMalloc(&dnn->workspace, MOST * sizeof(float)));
	must_run(cudaMalloc(&dnn->reserve, MOST * sizeof(float)));
}

static void close_dnn(const struct dnn *dnn)
{
	must_run(cudaStreamSynchronize(dnn->stream));
	must_run(cudaStreamDestroy(dnn->stream));
	must(cudnnDestroyConvolutionDescriptor(dnn->how));
	must(cudnnDestroyFilterDescriptor(dnn->w));
	must(cudnnDestroyTensorDescriptor(dnn->x));
	must(cudnnDestroyTensorDescriptor(dnn->y));
	must(cudnnDestroy(dnn->handle));
	must_run(cudaFree(dnn->device_x));
	must_run(cudaFree(dnn->device_w));
	must_run(cudaFree(dnn->device_y));
	must_run(cudaFree(dnn->device_dx));
	must_run(cudaFree(dnn->workspace));
	must_run(cudaFree(dnn->reserve));
	cr_assert_eq(psd_stand_in_held().handles, 0);
}

static int out_h(const struct shape *shape)
{
	return (shape->h + 2 * shape->pad_h - (shape->r - 1) * shape->dilation_h - 1) / shape->stride_h + 1;
}

static int out_w(const struct shape *shape)
{
	return (shape->w + 2 * shape->pad_w - (shape->s - 1) * shape->dilation_w - 1) / shape->stride_w + 1;
}

static void set_shape(const struct dnn *dnn, const struct shape *shape, cudnnDataType_t type)
{
	must(cudnnSetTensor4dDescriptor(dnn->x, shape->format, type, shape->n, shape->c, shape->h, shape->w));
	must(cudnnSetTensor4dDescriptor(dnn->y, shape->format, type, shape->n, shape->k, out_h(shape), out_w(shape)));
	must(cudnnSetFilter4dDescriptor(dnn->w, type, shape->format, shape->k, shape->c / shape->groups, shape->r,
					shape->s));
	must(cudnnSetConvolution2dDescriptor(dnn->how, shape->pad_h, shape->pad_w, shape->stride_h, shape->stride_w,
					     shape->dilation_h, shape->dilation_w, shape->mode, CUDNN_DATA_FLOAT));
	must(cudnnSetConvolutionGroupCount(dnn->how, shape->groups));
	must(cudnnSetConvolutionMathType(dnn->how, CUDNN_FMA_MATH));
}

static void to_device(const struct dnn *dnn, void *to, const void *from, size_t bytes)
{
	must_run(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, dnn->stream));
}

static void to_host(const struct dnn *dnn, void *to, const void *from, size_t bytes)
{
	must_run(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, dnn->stream));
	must_run(cudaStreamSynchronize(dnn->stream));
}

static void fill(float *values, unsigned seed)
{
	for (unsigned i = 0; i < MOST; i++)
		values[i] = (float)sin((double)(seed + i));
}

/* ---- the definition ---- */

static int index_of(cudnnTensorFormat_t format, const int sizes[4], int n, int c, int h, int w)
{
	return format == CUDNN_TENSOR_NCHW ? ((n * sizes[1] + c) * sizes[2] + h) * sizes[3] + w
					   : ((n * sizes[2] + h) * sizes[3] + w) * sizes[1] + c;
}

/* One product of the sums: x, w and y are where its factors and its sum lie. false: x lies in the padding. */
struct product {
	int x, w, y;
};

static bool product_at(const struct shape *shape, int n, int k, int c, const int at[4], struct product *product)
{
	const int inputs = shape->c / shape->groups, outputs = shape->k / shape->groups;
	const int r = at[2], s = at[3];
	const int h = at[0] * shape->stride_h - shape->pad_h + r * shape->dilation_h;
	const int w = at[1] * shape->stride_w - shape->pad_w + s * shape->dilation_w;
	const bool is_flipped = shape->mode == CUDNN_CONVOLUTION;

	product->x = index_of(shape->format, (const int[]){shape->n, shape->c, shape->h, shape->w}, n,
			      k / outputs * inputs + c, h, w);
	product->w = index_of(shape->format, (const int[]){shape->k, inputs, shape->r, shape->s}, k, c,
			      is_flipped ? shape->r - 1 - r : r, is_flipped ? shape->s - 1 - s : s);
	product->y = index_of(shape->format, (const int[]){shape->n, shape->k, out_h(shape), out_w(shape)}, n, k, at[0],
			      at[1]);
	return h >= 0 && h < shape->h && w >= 0 && w < shape->w;
}

/* All products in turn: calls add() for each. */
static void for_each_product(const struct shape *shape,
			     void (*add)(const struct product *product, const float *left, const float *right,
					 double *sums),
			     const float *left, const float *right, double *sums)
{
	struct product product;
	int at[4]; /* of the output, of the filter */

	for (int n = 0; n < shape->n; n++)
		for (int k = 0; k < shape->k; k++)
			for (int c = 0; c < shape->c / shape->groups; c++)
				for (at[0] = 0; at[0] < out_h(shape); at[0]++)
					for (at[1] = 0; at[1] < out_w(shape); at[1]++)
						for (at[2] = 0; at[2] < shape->r; at[2]++)
							for (at[3] = 0; at[3] < shape->s; at[3]++)
								if (product_at(shape, n, k, c, at, &product))
									add(&product, left, right, sums);
}

static void add_forward(const struct product *product, const float *x, const float *w, double *y)
{
	y[product->y] += (double)x[product->x] * w[product->w];
}

static void add_to_data(const struct product *product, const float *w, const float *dy, double *dx)
{
	dx[product->x] += (double)w[product->w] * dy[product->y];
}

static void add_to_filter(const struct product *product, const float *x, const float *dy, double *dw)
{
	dw[product->w] += (double)x[product->x] * dy[product->y];
}

/* What was there, times beta, and the sums. */
static void check_sums(const float *values, const float *before, const double *sums, float alpha, float beta)
{
	for (unsigned i = 0; i < MOST; i++)
		if (sums[i] != 0)
			cr_assert_float_eq(values[i], alpha * sums[i] + (beta == 0 ? 0 : beta * before[i]),
					   rounding * 20, "%u", i);
}

/* ---- convolutions ---- */

static void check_forward(const struct dnn *dnn, const struct shape *shape, float beta)
{
	const float alpha = 0.5F;
	float x[MOST], w[MOST], before[MOST], y[MOST];
	double sums[MOST] = {0};

	fill(x, 1);
	fill(w, 2000);
	fill(before, 4000);
	to_device(dnn, dnn->device_x, x, sizeof(x));
	to_device(dnn, dnn->device_w, w, sizeof(w));
	if (beta != 0)
		to_device(dnn, dnn->device_y, before, sizeof(before));
	must(cudnnConvolutionForward(dnn->handle, &alpha, dnn->x, dnn->device_x, dnn->w, dnn->device_w, dnn->how,
				     CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, dnn->workspace,
				     MOST * sizeof(float), &beta, dnn->y, dnn->device_y));
	to_host(dnn, y, dnn->device_y, sizeof(y));
	for_each_product(shape, add_forward, x, w, sums);
	check_sums(y, before, sums, alpha, beta);
}

static void check_data(const struct dnn *dnn, const struct shape *shape, float beta)
{
	const float alpha = 2;
	float w[MOST], dy[MOST], before[MOST], dx[MOST];
	double sums[MOST] = {0};

	fill(w, 1);
	fill(dy, 2000);
	fill(before, 4000);
	to_device(dnn, dnn->device_w, w, sizeof(w));
	to_device(dnn, dnn->device_y, dy, sizeof(dy));
	to_device(dnn, dnn->device_x, before, sizeof(before));
	must(cudnnConvolutionBackwardData(dnn->handle, &alpha, dnn->w, dnn->device_w, dnn->y, dnn->device_y, dnn->how,
					  CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, dnn->workspace, MOST * sizeof(float),
					  &beta, dnn->x, dnn->device_x));
	to_host(dnn, dx, dnn->device_x, sizeof(dx));
	for_each_product(shape, add_to_data, w, dy, sums);
	check_sums(dx, before, sums, alpha, beta);
}

static void check_filter(const struct dnn *dnn, const struct shape *shape, float beta)
{
	const float alpha = 1;
	float x[MOST], dy[MOST], before[MOST], dw[MOST];
	double sums[MOST] = {0};

	fill(x, 1);
	fill(dy, 2000);
	fill(before, 4000);
	to_device(dnn, dnn->device_x, x, sizeof(x));
	to_device(dnn, dnn->device_y, dy, sizeof(dy));
	to_device(dnn, dnn->device_w, before, sizeof(before));
	must(cudnnConvolutionBackwardFilter(dnn->handle, &alpha, dnn->x, dnn->device_x, dnn->y, dnn->device_y, dnn->how,
					    CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, dnn->workspace, MOST * sizeof(float),
					    &beta, dnn->w, dnn->device_w));
	to_host(dnn, dw, dnn->device_w, sizeof(dw));
	for_each_product(shape, add_to_filter, x, dy, sums);
	check_sums(dw, before, sums, alpha, beta);
}

static void check_shapes(void (*check)(const struct dnn *, const struct shape *, float beta))
{
	for (size_t i = 0; i < SHAPES; i++) {
		struct dnn dnn;

		open_dnn(&dnn);
		set_shape(&dnn, &shapes[i], CUDNN_DATA_FLOAT);
		check(&dnn, &shapes[i], 0);
		check(&dnn, &shapes[i], 1);
		close_dnn(&dnn);
	}
}

Test(stand_in_dnn, a_convolution_is_its_definition)
{
	check_shapes(check_forward);
}

Test(stand_in_dnn, a_gradient_of_data_is_its_definition)
{
	check_shapes(check_data);
}

Test(stand_in_dnn, a_gradient_of_a_filter_is_its_definition)
{
	check_shapes(check_filter);
}

/* One value, a filter of one: y = x w. */
static const struct shape one = {1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_TENSOR_NCHW};

static cudnnStatus_t convolve_one(const struct dnn *dnn, const void *x, const void *w, void *y, size_t bytes)
{
	const float alpha = 1, beta = 0;
	cudnnStatus_t status;

	to_device(dnn, dnn->device_x, x, bytes);
	to_device(dnn, dnn->device_w, w, bytes);
	status = cudnnConvolutionForward(dnn->handle, &alpha, dnn->x, dnn->device_x, dnn->w, dnn->device_w, dnn->how,
					 CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, NULL, 0, &beta, dnn->y,
					 dnn->device_y);
	to_host(dnn, y, dnn->device_y, bytes);
	return status;
}

/* Floats have more than the 10 bits behind the point that tensor cores take; default math allows those. */
Test(stand_in_dnn, default_math_shortens_floats)
{
	const float x = 1 + 0x1p-12F, w = 3;
	struct dnn dnn;
	float y = 0;

	open_dnn(&dnn);
	set_shape(&dnn, &one, CUDNN_DATA_FLOAT);
	must(convolve_one(&dnn, &x, &w, &y, sizeof(x)));
	cr_assert_eq(y, x * w);
	must(cudnnSetConvolutionMathType(dnn.how, CUDNN_DEFAULT_MATH));
	must(convolve_one(&dnn, &x, &w, &y, sizeof(x)));
	cr_assert_eq(y, w);
	close_dnn(&dnn);
}

Test(stand_in_dnn, narrow_values_are_converted)
{
	const struct {
		cudnnDataType_t type;
		const struct psd_encoding *encoding;
	} cases[] = {{CUDNN_DATA_HALF, &psd_encoding_fp16}, {CUDNN_DATA_BFLOAT16, &psd_encoding_bf16}};
	struct dnn dnn;

	open_dnn(&dnn);
	for (size_t i = 0; i < 2; i++) {
		const uint16_t x = cases[i].encoding->encode(1.5F), w = cases[i].encoding->encode(-0.25F);
		uint16_t y = 0;

		set_shape(&dnn, &one, cases[i].type);
		must(convolve_one(&dnn, &x, &w, &y, sizeof(x)));
		cr_assert_eq(cases[i].encoding->decode(y), -0.375F);
	}
	close_dnn(&dnn);
}

/* The quickest algorithms of gradients are not deterministic; those that are need memory. */
Test(stand_in_dnn, algorithms_are_listed_with_what_they_need)
{
	cudnnConvolutionBwdFilterAlgoPerf_t listed[ALGORITHMS];
	const float alpha = 1, beta = 0;
	struct dnn dnn;
	size_t bytes = 0;
	int n = 0;

	open_dnn(&dnn);
	set_shape(&dnn, &shapes[1], CUDNN_DATA_FLOAT);
	must(cudnnGetConvolutionBackwardFilterAlgorithm_v7(dnn.handle, dnn.x, dnn.y, dnn.how, dnn.w, ALGORITHMS, &n,
							   listed));
	cr_assert_eq(n, 3);
	cr_assert(listed[0].status == CUDNN_STATUS_SUCCESS && listed[0].determinism == CUDNN_NON_DETERMINISTIC);
	cr_assert(listed[1].status == CUDNN_STATUS_SUCCESS && listed[1].determinism == CUDNN_DETERMINISTIC);
	cr_assert_eq(listed[2].status, CUDNN_STATUS_NOT_SUPPORTED);
	must(cudnnGetConvolutionBackwardFilterWorkspaceSize(dnn.handle, dnn.x, dnn.y, dnn.how, dnn.w, listed[1].algo,
							    &bytes));
	cr_assert(bytes > 0 && bytes == listed[1].memory);
	cr_assert_eq(cudnnConvolutionBackwardFilter(dnn.handle, &alpha, dnn.x, dnn.device_x, dnn.y, dnn.device_y,
						    dnn.how, listed[1].algo, dnn.workspace, bytes - 1, &beta, dnn.w,
						    dnn.device_w),
		     CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT);
	cr_assert_eq(cudnnConvolutionBackwardFilter(dnn.handle, &alpha, dnn.x, dnn.device_x, dnn.y, dnn.device_y,
						    dnn.how, listed[2].algo, dnn.workspace, MOST, &beta, dnn.w,
						    dnn.device_w),
		     CUDNN_STATUS_NOT_SUPPORTED);
	close_dnn(&dnn);
}

static void filter_gradient(const struct dnn *dnn, cudnnConvolutionBwdFilterAlgo_t algo, float *dw)
{
	const float alpha = 1, beta = 0;

	must(cudnnConvolutionBackwardFilter(dnn->handle, &alpha, dnn->x, dnn->device_x, dnn->y, dnn->device_y, dnn->how,
					    algo, dnn->workspace, MOST * sizeof(float), &beta, dnn->w, dnn->device_w));
	to_host(dnn, dw, dnn->device_w, sizeof(*dw));
}

Test(stand_in_dnn, only_deterministic_algorithms_repeat_their_bits)
{
	const float x = 1.25F, dy = 3;
	float dw[4];
	struct dnn dnn;

	open_dnn(&dnn);
	set_shape(&dnn, &one, CUDNN_DATA_FLOAT);
	to_device(&dnn, dnn.device_x, &x, sizeof(x));
	to_device(&dnn, dnn.device_y, &dy, sizeof(dy));
	for (int i = 0; i < 2; i++) {
		filter_gradient(&dnn, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, &dw[i]);
		filter_gradient(&dnn, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, &dw[2 + i]);
	}
	cr_assert_neq(dw[0], dw[1]);
	cr_assert_float_eq(dw[0], dw[1], rounding);
	cr_assert(dw[2] == 3.75F && dw[3] == 3.75F);
	close_dnn(&dnn);
}

Test(stand_in_dnn, shapes_that_do_not_fit_are_refused)
{
	const float alpha = 1, beta = 0;
	struct dnn dnn;

	open_dnn(&dnn);
	set_shape(&dnn, &shapes[1], CUDNN_DATA_FLOAT);
	must(cudnnSetConvolutionGroupCount(dnn.how, 3));
	cr_assert_eq(cudnnConvolutionForward(dnn.handle, &alpha, dnn.x, dnn.device_x, dnn.w, dnn.device_w, dnn.how,
					     CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, NULL, 0, &beta, dnn.y,
					     dnn.device_y),
		     CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH);
	cr_assert_eq(cudnnSetTensor4dDescriptor(dnn.x, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 0, 1, 1),
		     CUDNN_STATUS_BAD_PARAM);
	cr_assert_eq(cudnnSetTensor4dDescriptor(dnn.x, CUDNN_TENSOR_NCHW, CUDNN_DATA_DOUBLE, 1, 1, 1, 1),
		     CUDNN_STATUS_NOT_SUPPORTED);
	close_dnn(&dnn);
}

/* ---- batch normalisation: device_w holds the vectors of one channel ---- */

/* So many floats apart that each begins at 16 bytes. */
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

Test(stand_in_dnn, batches_are_normalised)
{
	cudnnTensorDescriptor_t vectors;
	float y[3], kept[VECTORS];
	struct dnn dnn;

	open_dnn(&dnn);
	must(cudnnCreateTensorDescriptor(&vectors));
	normalise(&dnn, vectors, y, kept);
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
	close_dnn(&dnn);
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

Test(stand_in_dnn, gradients_of_normalised_batches_are_propagated)
{
	cudnnTensorDescriptor_t vectors;
	struct dnn dnn;

	open_dnn(&dnn);
	must(cudnnCreateTensorDescriptor(&vectors));
	check_back(&dnn, vectors, CUDNN_BATCHNORM_SPATIAL_PERSISTENT, true, 0);
	check_back(&dnn, vectors, CUDNN_BATCHNORM_SPATIAL, false, 0);
	check_back(&dnn, vectors, CUDNN_BATCHNORM_SPATIAL, true, 1);
	check_back(&dnn, vectors, CUDNN_BATCHNORM_SPATIAL_PERSISTENT, true, 1);
	must(cudnnDestroyTensorDescriptor(vectors));
	close_dnn(&dnn);
}

Test(stand_in_dnn, the_way_back_of_a_norm_needs_what_its_forward_reserved)
{
	cudnnTensorDescriptor_t vectors;
	float dx[3], kept[VECTORS];
	size_t bytes = 0;
	struct dnn dnn;

	open_dnn(&dnn);
	must(cudnnCreateTensorDescriptor(&vectors));
	normalise(&dnn, vectors, dx, kept);
	must(cudnnGetBatchNormalizationTrainingExReserveSpaceSize(dnn.handle, CUDNN_BATCHNORM_SPATIAL,
								  CUDNN_BATCHNORM_OPS_BN, NULL, dnn.x, &bytes));
	cr_assert_eq(differentiate(&dnn, vectors, CUDNN_BATCHNORM_SPATIAL, true, 0, bytes - 1),
		     CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT);
	must_run(cudaMemsetAsync(dnn.reserve, 0, bytes, dnn.stream));
	must(differentiate(&dnn, vectors, CUDNN_BATCHNORM_SPATIAL, true, 0, bytes));
	to_host(&dnn, dx, dnn.device_dx, sizeof(dx));
	cr_assert(isnan(dx[0]));
	must(cudnnDestroyTensorDescriptor(vectors));
	close_dnn(&dnn);
}

Test(stand_in_dnn, calls_fail_as_ordered)
{
	cudnnHandle_t handle;
	struct dnn dnn;

	open_dnn(&dnn);
	psd_stand_in_fail("cudnnCreate", 1, cudaErrorMemoryAllocation);
	cr_assert_eq(cudnnCreate(&handle), CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED);
	psd_stand_in_fail("cudnnSetTensor4dDescriptor", 1, cudaErrorNotSupported);
	cr_assert_eq(cudnnSetTensor4dDescriptor(dnn.x, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1, 1, 1),
		     CUDNN_STATUS_EXECUTION_FAILED);
	close_dnn(&dnn);
}
