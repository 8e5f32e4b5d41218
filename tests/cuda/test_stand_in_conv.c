/* cuDNN's convolutions in the stand-in against the definitions, written out index by index, and hand algebra. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <cudnn.h>
#include <math.h>
#include <string.h>

#include "engine/encodings/encoding.h"
#include "tests/cuda/conv_helper.h"
#include "tests/cuda/stand_in.h"
#include "tests/test_with.h"

static const struct shape shapes[] = {
	{1, 1, 3, 3, 1, 1, 1, 1, 0, 0, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_TENSOR_NCHW},
	{2, 3, 5, 6, 4, 3, 2, 1, 1, 0, 2, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_TENSOR_NCHW},
	{2, 4, 6, 5, 6, 3, 3, 2, 2, 2, 1, 3, 2, 1, CUDNN_CROSS_CORRELATION, CUDNN_TENSOR_NHWC},
	{1, 2, 4, 7, 2, 2, 3, 2, 0, 3, 1, 2, 1, 2, CUDNN_CONVOLUTION, CUDNN_TENSOR_NCHW},
};
enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

/* One value, a filter of one: y = x w. */
static const struct shape one = {1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_TENSOR_NCHW};

/* The stand-in's engines, by their index. */
enum { PLAIN, IN_WORKSPACE, UNEQUAL, TENSOR_CORES = 4, WINOGRAD, SHORT_SUMS };

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
	int at[4]; /* two in the output, two in the filter */

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

/* ---- each direction ---- */

typedef void (*add_fn)(const struct product *product, const float *left, const float *right, double *sums);

static const add_fn adds[TENSORS] = {[X] = add_to_data, [W] = add_to_filter, [Y] = add_forward};

static void *device_of(const struct dnn *dnn, enum tensor which)
{
	return (void *[]){dnn->device_x, dnn->device_w, dnn->device_y}[which];
}

/* Compares only the values of the result: the others were never written where beta is 0. */
static void check_sums(const float *values, const float *before, const double *sums, const float ratios[2])
{
	for (unsigned i = 0; i < MOST; i++)
		if (sums[i] != 0)
			cr_assert_float_eq(values[i], ratios[0] * sums[i] + (ratios[1] == 0 ? 0 : before[i]),
					   rounding * 20, "%u", i);
}

static void check(const struct dnn *dnn, const struct shape *shape, enum tensor made, float beta, int64_t engine)
{
	const float ratios[2] = {made == Y ? 0.5F : 2, beta};
	const enum tensor left = made == X ? W : X, right = made == Y ? W : Y;
	const cudnnBackendDescriptor_t plan = plan_shape(dnn, shape, CUDNN_DATA_FLOAT, made, ratios, engine);
	float values[TENSORS][MOST], result[MOST];
	double sums[MOST] = {0};

	for (enum tensor i = X; i < TENSORS; i++) {
		fill(values[i], 1 + 2000 * i);
		if (i != made || beta != 0)
			to_device(dnn, device_of(dnn, i), values[i], sizeof(values[i]));
	}
	must(execute(dnn, plan));
	destroy(plan);
	to_host(dnn, result, device_of(dnn, made), sizeof(result));
	for_each_product(shape, adds[made], values[left], values[right], sums);
	check_sums(result, values[made], sums, ratios);
}

static void check_shapes(enum tensor made)
{
	for (size_t i = 0; i < SHAPES; i++) {
		struct dnn dnn;

		open_dnn(&dnn);
		check(&dnn, &shapes[i], made, 0, IN_WORKSPACE);
		check(&dnn, &shapes[i], made, 1, IN_WORKSPACE);
		check(&dnn, &shapes[i], made, 0, PLAIN);
		check(&dnn, &shapes[i], made, 1, PLAIN);
		close_dnn(&dnn);
	}
}

TEST_ROW(stand_in_conv, a_convolution_is_its_definition, check_shapes(Y))
TEST_ROW(stand_in_conv, a_gradient_of_data_is_its_definition, check_shapes(X))
TEST_ROW(stand_in_conv, a_gradient_of_a_filter_is_its_definition, check_shapes(W))

/* ---- numbers ---- */

static const float whole[2] = {1, 0};

static void convolve_one(const struct dnn *dnn, cudnnDataType_t type, int64_t engine, const void *x, const void *w,
			 void *y, size_t bytes)
{
	const cudnnBackendDescriptor_t plan = plan_shape(dnn, &one, type, Y, whole, engine);

	to_device(dnn, dnn->device_x, x, bytes);
	to_device(dnn, dnn->device_w, w, bytes);
	must(execute(dnn, plan));
	destroy(plan);
	to_host(dnn, y, dnn->device_y, bytes);
}

/* Floats have more than the 10 bits behind the point that tensor cores take. */
DNN_TEST(stand_in_conv, tensor_cores_shorten_floats)
{
	const float x = 1 + 0x1p-12F, w = 3;
	float y = 0;

	convolve_one(dnn, CUDNN_DATA_FLOAT, IN_WORKSPACE, &x, &w, &y, sizeof(x));
	cr_assert_eq(y, x * w);
	convolve_one(dnn, CUDNN_DATA_FLOAT, PLAIN, &x, &w, &y, sizeof(x));
	cr_assert_eq(y, x * w);
	convolve_one(dnn, CUDNN_DATA_FLOAT, TENSOR_CORES, &x, &w, &y, sizeof(x));
	cr_assert_eq(y, w);
}

static float convolve_narrow(const struct dnn *dnn, cudnnDataType_t type, int64_t engine, float x, float w)
{
	const struct psd_encoding *const encoding = type == CUDNN_DATA_HALF ? &psd_encoding_fp16 : &psd_encoding_bf16;
	const uint16_t narrow_x = encoding->encode(x), narrow_w = encoding->encode(w);
	uint16_t y = 0;

	convolve_one(dnn, type, engine, &narrow_x, &narrow_w, &y, sizeof(y));
	return encoding->decode(y);
}

DNN_TEST(stand_in_conv, narrow_values_are_converted)
{
	const cudnnDataType_t types[] = {CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16};

	for (int i = 0; i < 2; i++) {
		cr_assert_eq(convolve_narrow(dnn, types[i], IN_WORKSPACE, 1.5F, -0.25F), -0.375F);
		cr_assert_eq(convolve_narrow(dnn, types[i], PLAIN, 1.5F, -0.25F), -0.375F);
	}
}

/* By one part in 64, which 16 bits have room for. */
DNN_TEST(stand_in_conv, coarse_engines_are_off)
{
	const float x = 1 + 0x1p-12F, w = 64;
	float y = 0;

	cr_assert_eq(convolve_narrow(dnn, CUDNN_DATA_BFLOAT16, SHORT_SUMS, 1, 64), 65);
	cr_assert_eq(convolve_narrow(dnn, CUDNN_DATA_BFLOAT16, WINOGRAD, 1, 64), 65);
	convolve_one(dnn, CUDNN_DATA_FLOAT, WINOGRAD, &x, &w, &y, sizeof(x));
	cr_assert_eq(y, 65 * x);
}

DNN_TEST(stand_in_conv, only_deterministic_engines_repeat_their_bits)
{
	static const int64_t engines[] = {UNEQUAL, IN_WORKSPACE, PLAIN, TENSOR_CORES};
	const float x = 1.25F, dy = 3;

	to_device(dnn, dnn->device_x, &x, sizeof(x));
	to_device(dnn, dnn->device_y, &dy, sizeof(dy));
	for (size_t i = 0; i < sizeof(engines) / sizeof(engines[0]); i++) {
		const cudnnBackendDescriptor_t plan = plan_shape(dnn, &one, CUDNN_DATA_FLOAT, W, whole, engines[i]);
		float dw[2];

		for (int run = 0; run < 2; run++) {
			must(execute(dnn, plan));
			to_host(dnn, &dw[run], dnn->device_w, sizeof(dw[run]));
		}
		destroy(plan);
		cr_assert_float_eq(dw[0], dw[1], rounding);
		cr_assert_eq(dw[0] == dw[1], engines[i] != UNEQUAL);
		cr_assert(engines[i] == UNEQUAL || dw[0] == 3.75F);
	}
}

/* ---- execution ---- */

/* The old contents of the workspace are lost, up to the size in the plan. */
DNN_TEST(stand_in_conv, a_workspace_is_used_as_far_as_the_plan_says)
{
	const size_t bytes = sizeof(float) * (1 * 1 * 1 + 1 * 1); /* a filter's outputs and a map: one value each */
	const float values[MOST] = {1, 1, 1, 1};
	float left[MOST];

	const cudnnBackendDescriptor_t plan = plan_shape(dnn, &one, CUDNN_DATA_FLOAT, Y, whole, IN_WORKSPACE);

	cr_assert_eq(workspace_bytes(plan), bytes);
	to_device(dnn, dnn->device_x, values, sizeof(values));
	to_device(dnn, dnn->device_w, values, sizeof(values));
	to_device(dnn, dnn->workspace, values, sizeof(values));
	must(execute(dnn, plan));
	to_host(dnn, left, dnn->workspace, sizeof(left));
	cr_assert(isnan(left[0]) && isnan(left[1]) && left[2] == 1 && left[3] == 1);
	destroy(plan);
}

DNN_TEST(stand_in_conv, memory_that_does_not_suit_is_refused)
{
	const cudnnBackendDescriptor_t plan = plan_shape(dnn, &one, CUDNN_DATA_FLOAT, Y, whole, IN_WORKSPACE);
	void *const good[TENSORS] = {dnn->device_x, dnn->device_w, dnn->device_y};

	for (int i = 0; i < TENSORS; i++) {
		void *pointers[TENSORS] = {good[0], good[1], good[2]};

		pointers[i] = (char *)good[i] + 8;
		cr_expect_eq(execute_with(dnn, plan, TENSORS, pointers, dnn->workspace),
			     CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER);
		pointers[i] = NULL;
		cr_expect_eq(execute_with(dnn, plan, TENSORS, pointers, dnn->workspace),
			     CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
	}
	cr_expect_eq(execute_with(dnn, plan, W + 1, good, dnn->workspace), CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
	cr_expect_eq(execute_with(dnn, plan, TENSORS, good, (char *)dnn->workspace + 8),
		     CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER);
	cr_expect_eq(execute_with(dnn, plan, TENSORS, good, NULL), CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
	must(execute_with(dnn, plan, TENSORS, good, dnn->workspace));
	destroy(plan);
}

Test(stand_in_conv, a_workspace_that_is_too_small_loses_the_context)
{
	struct dnn dnn;

	psd_stand_in_set_workspaces((uint64_t)1 << 20);
	open_dnn(&dnn);
	const cudnnBackendDescriptor_t plan = plan_shape(&dnn, &one, CUDNN_DATA_FLOAT, Y, whole, IN_WORKSPACE);

	must(execute(&dnn, plan));
	cr_assert_eq(cudaStreamSynchronize(dnn.stream), cudaErrorIllegalAddress);
	(void)cudnnBackendDestroyDescriptor(plan);
	(void)cudnnDestroyTensorDescriptor(dnn.x);
	(void)cudnnDestroyTensorDescriptor(dnn.y);
	(void)cudnnDestroy(dnn.handle);
	cr_assert_eq(psd_stand_in_held().handles, 0);
}

Test(stand_in_conv, a_plan_is_of_one_device)
{
	struct dnn dnn, other;

	psd_stand_in_set_devices(2);
	open_dnn(&dnn);
	const cudnnBackendDescriptor_t plan = plan_shape(&dnn, &one, CUDNN_DATA_FLOAT, Y, whole, PLAIN);

	must_run(cudaSetDevice(1));
	must(cudnnCreate(&other.handle));
	other.device_x = dnn.device_x;
	other.device_w = dnn.device_w;
	other.device_y = dnn.device_y;
	cr_assert_eq(execute(&other, plan), CUDNN_STATUS_BAD_PARAM);
	must(cudnnDestroy(other.handle));
	must_run(cudaSetDevice(0));
	destroy(plan);
	close_dnn(&dnn);
}

/* A graph's launch needs nothing that described what it does. */
DNN_TEST(stand_in_conv, a_captured_convolution_needs_no_descriptors)
{
	const float x = 3, w = 5;
	cudaGraph_t graph;
	cudaGraphExec_t launched;
	float y = 0;

	const cudnnBackendDescriptor_t plan = plan_shape(dnn, &one, CUDNN_DATA_FLOAT, Y, whole, IN_WORKSPACE);

	must_run(cudaStreamBeginCapture(dnn->stream, cudaStreamCaptureModeThreadLocal));
	must(execute(dnn, plan));
	must_run(cudaStreamEndCapture(dnn->stream, &graph));
	destroy(plan);
	must_run(cudaGraphInstantiate(&launched, graph, 0));
	to_device(dnn, dnn->device_x, &x, sizeof(x));
	to_device(dnn, dnn->device_w, &w, sizeof(w));
	must_run(cudaGraphLaunch(launched, dnn->stream));
	to_host(dnn, &y, dnn->device_y, sizeof(y));
	cr_assert_eq(y, x * w);
	must_run(cudaGraphExecDestroy(launched));
	must_run(cudaGraphDestroy(graph));
}
