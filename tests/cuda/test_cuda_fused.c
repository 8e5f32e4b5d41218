/* Products with an epilogue: what they compute, where they are taken, and that networks do not depend on it. */
#include <criterion/criterion.h>
#include <math.h>

#include "real/device/gpu/gpu.h"
#include "tests/cuda/cuda_net.h"
#include "tests/cuda/stand_in.h"

enum { ROWS = 2, COLUMNS = 3, DEPTH = 2 };

static struct psd_device *open_device(enum psd_layer_arithmetic arithmetic)
{
	const struct psd_device_options options = {.n_threads = 1, .arithmetic = arithmetic};
	struct psd_device *device;
	struct psd_error err = {0};

	cr_assert_eq(psd_device_cuda.open(&device, &options, &err), PSD_OK, "%s", err.text);
	return device;
}

/* ---- one product ---- */

struct fused_case {
	enum psd_gpu_epilogue epilogue;
	bool is_left_transposed, is_right_transposed;
	float vector[COLUMNS];
	float result[ROWS * COLUMNS];
};

/* left (2, 2) times the transpose of right (3, 2) is (1, 2, -1), (3, 4, -1). The transpose of left times right as a
 * matrix (2, 3) is (1 + 3, 3, -3), (2 + 4, 4, -4). */
static const float left[ROWS * DEPTH] = {1, 2, 3, 4};
static const float right[COLUMNS * DEPTH] = {1, 0, 0, 1, 1, -1};
static const float summands[COLUMNS] = {0.5f, -3.0f, 0.25f};

static const struct fused_case cases[] = {
	{PSD_GPU_ADD_VECTOR, false, true, {0.5f, -3.0f, 0.25f}, {1.5f, -1.0f, -0.75f, 3.5f, 1.0f, -0.75f}},
	{PSD_GPU_ADD_VECTOR_AND_RECTIFY, false, true, {0.5f, -3.0f, 0.25f}, {1.5f, 0.0f, 0.0f, 3.5f, 1.0f, 0.0f}},
	{PSD_GPU_SUM_LEFT_ROWS, true, false, {1 + 3, 2 + 4, 0.25f}, {4, 3, -3, 6, 4, -4}},
};

/* The matrices begin `offset` floats behind multiples of 256 bytes. */
static void check_case(struct psd_device *device, const struct fused_case *wanted, unsigned offset)
{
	float *memory = cuda_net_take(device, (const float[4 * 64]){0}, 4 * 64) + offset, found[ROWS * COLUMNS];
	float *vector = memory + 192;
	const struct psd_gpu_product product = {.left = psd_gpu_floats(memory),
						.right = psd_gpu_floats(memory + 64),
						.result = psd_gpu_floats(memory + 128),
						.rows = ROWS,
						.columns = COLUMNS,
						.depth = DEPTH,
						.is_left_transposed = wanted->is_left_transposed,
						.is_right_transposed = wanted->is_right_transposed,
						.alpha = 1.0f};
	struct psd_gpu_fused *fused = NULL;
	struct psd_error err = {0};

	cuda_net_put(device, memory, left, sizeof(left));
	cuda_net_put(device, memory + 64, right, sizeof(right));
	cuda_net_put(device, vector, summands, sizeof(summands));
	cr_assert_eq(psd_gpu_open_fused(device, &product, wanted->epilogue, vector, &fused, &err), PSD_OK, "%s",
		     err.text);
	cr_assert(fused, "epilogue %d", (int)wanted->epilogue);
	cr_assert_eq(psd_gpu_multiply_fused(device, fused, &product, vector, &err), PSD_OK, "%s", err.text);
	cuda_net_wait(device, PSD_STREAM_COMPUTE);
	cuda_net_get(device, found, product.result.data, sizeof(found));
	for (unsigned i = 0; i < ROWS * COLUMNS; i++)
		cr_expect_eq(found[i], wanted->result[i], "epilogue %d, %u: %g", (int)wanted->epilogue, i, found[i]);
	cuda_net_get(device, found, vector, sizeof(summands));
	for (unsigned i = 0; i < COLUMNS; i++)
		cr_expect_eq(found[i], wanted->vector[i], "epilogue %d, %u: %g", (int)wanted->epilogue, i, found[i]);
	psd_gpu_close_fused(fused);
}

Test(cuda_fused, epilogues_are_those_of_algebra_wherever_memory_begins)
{
	struct psd_device *device = open_device(PSD_LAYERS_FP32);

	for (unsigned c = 0; c < sizeof(cases) / sizeof(cases[0]); c++)
		for (unsigned offset = 0; offset < 2; offset++)
			check_case(device, &cases[c], offset);
	psd_device_cuda.close(device);
	cr_expect_eq(psd_stand_in_held().handles, 0);
}

/* 300 * 300 + 300 * -299 + 0.5 is 300.5, and half of the depth alone is beyond fp16. */
Test(cuda_fused, parts_of_the_depth_are_added_as_floats)
{
	static const uint16_t lefts[2] = {0x5cb0, 0x5cb0}, rights[2] = {0x5cb0, 0xdcac}, summand = 0x3800; /* fp16 */
	struct psd_device *device = open_device(PSD_LAYERS_FP16);
	char *memory = (char *)cuda_net_take(device, (const float[4 * 64]){0}, 4 * 64);
	void *vector = memory + 768;
	const struct psd_gpu_product product = {.left = {memory, PSD_GPU_HALF},
						.right = {memory + 256, PSD_GPU_HALF},
						.result = {memory + 512, PSD_GPU_HALF},
						.rows = 1,
						.columns = 1,
						.depth = 2,
						.is_right_transposed = true,
						.alpha = 1.0f};
	struct psd_gpu_fused *fused = NULL;
	struct psd_error err = {0};
	uint16_t found;

	cuda_net_put(device, product.left.data, lefts, sizeof(lefts));
	cuda_net_put(device, product.right.data, rights, sizeof(rights));
	cuda_net_put(device, vector, &summand, sizeof(summand));
	cr_assert_eq(psd_gpu_open_fused(device, &product, PSD_GPU_ADD_VECTOR, vector, &fused, &err), PSD_OK, "%s",
		     err.text);
	cr_assert_eq(psd_gpu_multiply_fused(device, fused, &product, vector, &err), PSD_OK, "%s", err.text);
	cuda_net_wait(device, PSD_STREAM_COMPUTE);
	cuda_net_get(device, &found, product.result.data, sizeof(found));
	cr_expect_eq(found, 0x5cb2, "%04x", found);
	psd_gpu_close_fused(fused);
	psd_device_cuda.close(device);
}

/* ---- where they are taken ---- */

static bool is_taken(enum psd_gpu_epilogue epilogue)
{
	struct psd_device *device = open_device(PSD_LAYERS_FP32);
	const struct psd_gpu_product product = {.rows = ROWS, .columns = COLUMNS, .depth = DEPTH, .alpha = 1.0f};
	struct psd_gpu_fused *fused = NULL;
	struct psd_error err = {0};
	bool is_there;

	cr_assert_eq(psd_gpu_open_fused(device, &product, epilogue, NULL, &fused, &err), PSD_OK, "%s", err.text);
	is_there = fused != NULL;
	psd_gpu_close_fused(fused);
	psd_device_cuda.close(device);
	return is_there;
}

Test(cuda_fused, an_epilogue_is_taken_where_the_products_own_algorithm_does_it)
{
	cr_expect(is_taken(PSD_GPU_ADD_VECTOR));
	psd_stand_in_set_epilogues(PSD_STAND_IN_EPILOGUES_DEAR);
	cr_expect_not(is_taken(PSD_GPU_ADD_VECTOR));
	psd_stand_in_set_epilogues(PSD_STAND_IN_EPILOGUES_NONE);
	cr_expect_not(is_taken(PSD_GPU_SUM_LEFT_ROWS));
	cr_expect_eq(psd_stand_in_held().handles, 0);
}

/* ---- networks ---- */

#define NET                                                                                                            \
	"name: m\ninput: {channels: 3, height: 2, width: 2}\nlayers:\n"                                                \
	"  - {name: a, kind: inner-product, outputs: 7}\n  - {name: sharp, kind: relu}\n"                              \
	"  - {name: b, kind: inner-product, outputs: 6}\n  - {name: leaky, kind: relu, slope: 0.1}\n"                  \
	"  - {name: c, kind: inner-product, outputs: 5}\n  - {name: d, kind: inner-product, outputs: 3, bias: "        \
	"false}\n"                                                                                                     \
	"  - {name: loss, kind: softmax-loss}\n"

/* Tolerances relative to each tensor's norm, as in test_cuda_net.c. */
static const struct arithmetic {
	enum psd_layer_arithmetic arithmetic;
	double tolerance_ratio;
} arithmetics[] = {{PSD_LAYERS_FP32, 1e-5}, {PSD_LAYERS_TF32, 1e-2}, {PSD_LAYERS_FP16, 2e-2}, {PSD_LAYERS_BF16, 0.15}};

static void check_net(const struct arithmetic *arithmetic, enum psd_stand_in_epilogues how)
{
	struct net net = net_make(NET, 5);
	struct cuda_net cuda;
	double loss, expected;

	psd_stand_in_set_epilogues(how);
	cuda = cuda_net_open(&net, arithmetic->arithmetic);
	(void)cuda_net_run(&cuda);
	loss = cuda_net_run(&cuda);
	expected = net_run(&net);
	cr_expect_lt(fabs(loss / expected - 1), arithmetic->tolerance_ratio, "%d, %d: loss %g, must be %g",
		     (int)arithmetic->arithmetic, (int)how, loss, expected);
	for (unsigned t = 0; t < net.graph->n_tensors; t++)
		cr_expect_lt(
			cuda_net_distance(cuda.host_gradients[t], net.gradients[t], net.graph->tensors[t].elements),
			arithmetic->tolerance_ratio, "%d, %d: %s", (int)arithmetic->arithmetic, (int)how,
			net.graph->tensors[t].name);
	cuda_net_close(&cuda);
	net_release(&net);
}

Test(cuda_fused, networks_compute_the_same_with_epilogues_and_without)
{
	for (unsigned a = 0; a < sizeof(arithmetics) / sizeof(arithmetics[0]); a++) {
		check_net(&arithmetics[a], PSD_STAND_IN_EPILOGUES_FREE);
		check_net(&arithmetics[a], PSD_STAND_IN_EPILOGUES_DEAR);
		check_net(&arithmetics[a], PSD_STAND_IN_EPILOGUES_NONE);
	}
}

/* How many products with epilogues an iteration has: the next one after them does not fail. */
static unsigned count_fused(enum psd_layer_arithmetic arithmetic)
{
	const struct psd_device_options options = {.n_threads = 1, .arithmetic = arithmetic, .is_without_graphs = true};
	struct net net = net_make(NET, 5);
	struct cuda_net cuda = cuda_net_open_with(&net, &options);
	unsigned n = 0;

	for (bool has_failed = true; has_failed; n += has_failed) {
		struct psd_error err = {0};
		enum psd_status status = psd_device_cuda.begin(cuda.device, &net.batch, &err);

		psd_stand_in_fail("cublasLtMatmul", n + 1, cudaErrorNotSupported);
		for (unsigned l = 0; l < net.graph->n_layers && !status; l++)
			status = psd_device_cuda.forward(cuda.device, l, &err);
		for (unsigned l = net.graph->n_layers; l-- > 0 && !status;)
			status = psd_device_cuda.backward(cuda.device, l, &err);
		cuda_net_wait(cuda.device, PSD_STREAM_COMPUTE);
		has_failed = status == PSD_ERUN;
	}
	cuda_net_close(&cuda);
	net_release(&net);
	return n;
}

/* Layers a and c add their bias so, b has a slope; all three sum its gradient so, but in fp16, which scales it. */
Test(cuda_fused, inner_products_take_what_serves_them)
{
	cr_expect_eq(count_fused(PSD_LAYERS_FP32), 2 + 3);
	cr_expect_eq(count_fused(PSD_LAYERS_BF16), 2 + 3);
	cr_expect_eq(count_fused(PSD_LAYERS_FP16), 2);
}
