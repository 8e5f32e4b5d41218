/* Recorded graphs of the layers' work: the same bits as call by call, whatever differs between iterations, and fewer
 * calls. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/model/model.h"
#include "engine/program/program.h"
#include "real/device/gpu/gpu.h"
#include "tests/cuda/cuda_net.h"
#include "tests/cuda/stand_in.h"
#include "tests/real/transformer_helper.h"
#include "tests/test_with.h"

enum { BATCH = 2, ITERATIONS = 7, TESTED_AFTER = 3, ROWS = 3, SEEDS = 3 };

/* A layer with several readers, some in place, each way of batch norm and of dropout. */
static const char wide_text[] =
	"name: m\ninput: {channels: 3, height: 8, width: 8}\nlayers:\n"
	"  - {name: base, kind: conv, outputs: 8, kernel: 3, pad: 1}\n  - {name: r, kind: relu}\n"
	"  - {name: n, kind: batch-norm}\n  - {name: d, kind: dropout, ratio: 0.3}\n"
	"  - {name: left, kind: conv, outputs: 8, kernel: 3, pad: 1, groups: 2, input: n}\n"
	"  - {name: sum, kind: add, inputs: [d, left]}\n"
	"  - {name: all, kind: concat, inputs: [base, sum]}\n"
	"  - {name: p, kind: pool, method: average, kernel: 2, stride: 2}\n  - {name: l, kind: lrn, size: 5}\n"
	"  - {name: a, kind: inner-product, outputs: 40}\n  - {name: e, kind: dropout, ratio: 0.5}\n"
	"  - {name: top, kind: inner-product, outputs: 3}\n  - {name: loss, kind: softmax-loss}\n";

/* ---- an iteration ---- */

/* How many layers are begun together. */
enum cut { ONE, OPERATION, ALL, CUTS };

static unsigned end_after(const struct psd_graph *graph, unsigned first, enum cut cut)
{
	switch (cut) {
	case ONE: return first + 1;
	case OPERATION: return psd_program_layers(graph, first).end;
	case ALL:
	case CUTS: break;
	}
	return graph->n_layers;
}

static void pass(struct cuda_net *cuda, unsigned first, unsigned end, bool is_backward)
{
	struct psd_error err = {0};

	cr_assert_eq(psd_device_cuda.pass(cuda->device, &(struct psd_pass){first, end, is_backward}, &err), PSD_OK,
		     "%s", err.text);
}

static void forward(struct cuda_net *cuda, unsigned first, enum cut cut)
{
	const struct psd_graph *graph = cuda->net->graph;

	for (unsigned end; first < graph->n_layers; first = end) {
		end = end_after(graph, first, cut);
		pass(cuda, first, end, false);
	}
}

static void backward(struct cuda_net *cuda, unsigned first, enum cut cut)
{
	const struct psd_graph *graph = cuda->net->graph;
	const unsigned end = end_after(graph, first, cut);

	if (end < graph->n_layers)
		backward(cuda, end, cut);
	pass(cuda, first, end, true);
}

static void begin(struct cuda_net *cuda, const struct psd_batch *batch)
{
	struct psd_error err = {0};

	cr_assert_eq(psd_device_cuda.begin(cuda->device, batch, &err), PSD_OK, "%s", err.text);
}

/* ---- two ways beside each other ---- */

enum { MOST_TENSORS = 32 };

/* Where gradients go in turn, and last of all the update's history. */
static void take_rows(struct cuda_net *cuda, float *rows[ROWS + 1][MOST_TENSORS])
{
	const struct psd_graph *graph = cuda->net->graph;

	cr_assert_leq(graph->n_tensors, MOST_TENSORS);
	for (unsigned row = 0; row <= ROWS; row++)
		for (unsigned t = 0; t < graph->n_tensors; t++)
			rows[row][t] = cuda_net_take(cuda->device, cuda->net->gradients[t], graph->tensors[t].elements);
}

/* Another token, or an image of another brightness. */
static float change_value(const struct psd_graph *graph, float value, unsigned iteration)
{
	return graph->vocabulary ? (float)(((unsigned)value + iteration) % graph->vocabulary)
				 : value * (float)(iteration + 1) / ITERATIONS;
}

/* All that may differ between iterations does. */
static struct psd_batch change(struct net *net, unsigned iteration, float *images[ITERATIONS])
{
	const uint64_t count = BATCH * net_image_elements(net);
	struct psd_batch batch = net->batch;

	for (uint64_t i = 0; i < count; i++)
		images[iteration][i] = change_value(net->graph, net->images[i], iteration);
	batch.images = images[iteration];
	batch.iteration = iteration;
	batch.first_sample = 4 * iteration;
	for (uint64_t i = 0; i < BATCH * net->graph->labels; i++)
		net->labels[i] = (int32_t)((i + iteration) % net->graph->classes);
	return batch;
}

static void take_images(struct cuda_net *cuda, float *images[ITERATIONS])
{
	struct psd_error err = {0};
	void *block;

	for (unsigned i = 0; i < ITERATIONS; i++) {
		cr_assert_eq(psd_device_cuda.take_host(
				     cuda->device, BATCH * net_image_elements(cuda->net) * sizeof(float), &block, &err),
			     PSD_OK);
		images[i] = block;
	}
}

/* The values of every iteration in turn: loss, all gradients, all states. Owned by the caller. */
struct outcome {
	float *values;
	uint64_t count;
};

static void keep(struct outcome *outcome, struct cuda_net *cuda, float *const gradients[])
{
	const struct psd_graph *graph = cuda->net->graph;
	float *next = outcome->values + outcome->count;
	struct psd_error err = {0};

	*next++ = (float)psd_device_cuda.loss(cuda->device);
	for (unsigned t = 0; t < graph->n_tensors; t++) {
		cuda_net_get(cuda->device, next, gradients[t], graph->tensors[t].elements * sizeof(float));
		next += graph->tensors[t].elements;
	}
	for (unsigned s = 0; s < graph->n_states; s++) {
		cr_assert_eq(psd_device_cuda.read_state(cuda->device, s, next, &err), PSD_OK);
		next += graph->states[s].elements;
	}
	outcome->count = (uint64_t)(next - outcome->values);
}

/* Parameters follow the gradients, so that what is read of them differs as well. */
static void learn(struct cuda_net *cuda, float *const gradients[], float *const histories[])
{
	const struct psd_graph *graph = cuda->net->graph;
	const struct psd_update update = {.rate = 0.01f};
	struct psd_error err = {0};

	for (unsigned t = 0; t < graph->n_tensors; t++)
		cr_assert_eq(psd_device_cuda.kernels->apply(cuda->device,
							    &(struct psd_apply){update,
										cuda->parameters[t],
										gradients[t],
										{.history = histories[t]},
										graph->tensors[t].elements,
										NULL,
										NULL},
							    &err),
			     PSD_OK, "%s", err.text);
}

static void test(struct cuda_net *cuda, struct psd_batch batch, enum cut cut)
{
	batch.is_training = false;
	begin(cuda, &batch);
	forward(cuda, 0, cut);
	cuda_net_wait(cuda->device, PSD_STREAM_COMPUTE);
}

static struct outcome train(struct net *net, enum psd_layer_arithmetic arithmetic, enum cut cut, bool has_graphs)
{
	const struct psd_device_options options = {
		.n_threads = 1, .arithmetic = arithmetic, .is_without_graphs = !has_graphs};
	struct cuda_net cuda = cuda_net_open_with(net, &options);
	struct outcome outcome = {.values = calloc(1 << 20, sizeof(float))};
	float *rows[ROWS + 1][MOST_TENSORS], *images[ITERATIONS];

	cr_assert(outcome.values);
	take_rows(&cuda, rows);
	take_images(&cuda, images);
	for (unsigned i = 0; i < ITERATIONS; i++) {
		struct psd_batch batch = change(net, i, images);

		batch.gradients = rows[i % ROWS];
		begin(&cuda, &batch);
		forward(&cuda, 0, cut);
		backward(&cuda, 0, cut);
		learn(&cuda, batch.gradients, rows[ROWS]);
		cuda_net_wait(cuda.device, PSD_STREAM_COMPUTE);
		keep(&outcome, &cuda, batch.gradients);
		if (i == TESTED_AFTER)
			test(&cuda, batch, cut);
	}
	cr_expect_eq(cuda.device->recorded.left_out, 0);
	cr_expect_eq(cuda.device->recorded.graphs > 0, has_graphs);
	cuda_net_close(&cuda);
	return outcome;
}

static void check_same_bits(const char *text, enum psd_layer_arithmetic arithmetic)
{
	struct net net = net_make_apart(text, BATCH);

	for (unsigned seed = 0; seed < SEEDS; seed++) {
		struct outcome plain;

		psd_stand_in_set_seed(seed);
		plain = train(&net, arithmetic, ONE, false);
		for (enum cut cut = ONE; cut < CUTS; cut++) {
			struct outcome recorded = train(&net, arithmetic, cut, true);

			cr_assert_eq(recorded.count, plain.count);
			cr_expect_eq(memcmp(recorded.values, plain.values, plain.count * sizeof(float)), 0,
				     "arithmetic %d, cut %d, seed %u", (int)arithmetic, (int)cut, seed);
			free(recorded.values);
		}
		free(plain.values);
	}
	net_release(&net);
}

TEST_ROW(cuda_graphs, have_the_bits_of_calls_in_fp32, check_same_bits(wide_text, PSD_LAYERS_FP32))
TEST_ROW(cuda_graphs, have_the_bits_of_calls_in_tf32, check_same_bits(wide_text, PSD_LAYERS_TF32))

Test(cuda_graphs, have_the_bits_of_calls_in_16_bits)
{
	check_same_bits(wide_text, PSD_LAYERS_FP16);
	check_same_bits(wide_text, PSD_LAYERS_BF16);
}

Test(cuda_graphs, have_the_bits_of_calls_for_transformers)
{
	check_same_bits(TRANSFORMER, PSD_LAYERS_FP32);
	check_same_bits(TRANSFORMER, PSD_LAYERS_BF16);
	check_same_bits(LLAMA, PSD_LAYERS_FP32);
	check_same_bits(LLAMA, PSD_LAYERS_BF16);
}

/* ---- masks ---- */

#define MASKED                                                                                                         \
	"name: m\ninput: {channels: 6}\nlayers:\n"                                                                     \
	"  - {name: a, kind: inner-product, outputs: 40}\n  - {name: d, kind: dropout, ratio: 0.5}\n"                  \
	"  - {name: top, kind: inner-product, outputs: 3}\n  - {name: loss, kind: softmax-loss}\n"

/* Sums of 40 products, each rounded to 2^-24. */
#define TOLERANCE_RATIO	  1e-5
#define OTHER_MASKS_RATIO 0.1 /* apart at least, by which masks of another iteration would show */

/* Masks depend on the iteration and the first sample, which are no argument of a kernel that is recorded. */
Test(cuda_graphs, draw_the_masks_of_the_cpu_in_each_iteration)
{
	struct net net = net_make(MASKED, BATCH);
	struct cuda_net cuda = cuda_net_open(&net, PSD_LAYERS_FP32);
	const uint64_t count = net.graph->tensors[0].elements;
	float *before = malloc(count * sizeof(*before));

	cr_assert(before);
	for (unsigned i = 0; i < ITERATIONS; i++) {
		net.batch.iteration = i / 2;
		net.batch.first_sample = i % 2 ? 0 : 6;
		(void)net_run(&net);
		(void)cuda_net_run(&cuda);
		for (unsigned t = 0; t < net.graph->n_tensors; t++)
			cr_expect_lt(cuda_net_distance(cuda.host_gradients[t], net.gradients[t],
						       net.graph->tensors[t].elements),
				     TOLERANCE_RATIO, "iteration %u, tensor %u", i, t);
		if (i > 0)
			cr_expect_gt(cuda_net_distance(before, net.gradients[0], count), OTHER_MASKS_RATIO);
		memcpy(before, net.gradients[0], count * sizeof(*before));
	}
	cr_expect_eq(cuda.device->recorded.left_out, 0);
	free(before);
	cuda_net_close(&cuda);
	net_release(&net);
}

/* ---- calls ---- */

static unsigned count_calls(bool has_graphs)
{
	const struct psd_device_options options = {.n_threads = 1, .is_without_graphs = !has_graphs};
	struct net net = net_make_apart(
		"name: m\ninput: {channels: 3, height: 7, width: 6}\nlayers:\n"
		"  - {name: c, kind: conv, outputs: 8, kernel: 3, pad: 1}\n  - {name: r, kind: relu}\n"
		"  - {name: p, kind: pool, method: max, kernel: 2}\n"
		"  - {name: a, kind: inner-product, outputs: 10}\n  - {name: d, kind: dropout, ratio: 0.5}\n"
		"  - {name: top, kind: inner-product, outputs: 3}\n  - {name: loss, kind: softmax-loss}\n",
		BATCH);
	struct cuda_net cuda = cuda_net_open_with(&net, &options);
	unsigned before = 0;

	for (unsigned i = 0; i < 3; i++) { /* two slots of samples are recorded first */
		before = psd_stand_in_enqueued();
		begin(&cuda, &net.batch);
		forward(&cuda, 0, OPERATION);
		backward(&cuda, 0, OPERATION);
	}
	before = psd_stand_in_enqueued() - before;
	cuda_net_close(&cuda);
	net_release(&net);
	return before;
}

Test(cuda_graphs, take_one_call_for_each_operation)
{
	const unsigned to_begin = 2 + 1; /* images, labels; counters */
	/* Convolution and its bias with the rectifier; pool; product with bias; dropout; the same product; the loss in
	 * three steps, with two copies. */
	const unsigned forward_calls = 2 + 1 + 1 + 1 + 1 + (3 + 2);
	/* Loss; two products, one with the sums for the bias; dropout; such products; pool; rectifier; of the
	 * convolution the weight's gradient and the bias's. */
	const unsigned backward_calls = 1 + 2 + 1 + 2 + 1 + 1 + (1 + 2);
	const unsigned operations = 2 * 3; /* c, a and top each with what follows it, both ways */

	cr_expect_eq(count_calls(false), to_begin + forward_calls + backward_calls);
	cr_expect_eq(count_calls(true), to_begin + operations);
}

/* ---- layers without a graph ---- */

/* An average such as Caffe's: the batch's share in it is an argument that differs from iteration to iteration. */
Test(cuda_graphs, leave_out_what_varies)
{
	static const char text[] = "name: m\ninput: {channels: 3, height: 5, width: 5}\nlayers:\n"
				   "  - {name: c, kind: conv, outputs: 4, kernel: 3}\n  - {name: n, kind: batch-norm}\n"
				   "  - {name: top, kind: inner-product, outputs: 3}\n"
				   "  - {name: loss, kind: softmax-loss}\n";
	struct psd_graph graph;
	struct psd_error err = {0};
	struct cuda_net cuda;
	struct net net;

	cr_assert_eq(psd_model_parse(&graph, "m.yaml", text, strlen(text), &err), PSD_OK, "%s", err.text);
	graph.layers[2].settings.affine.is_average = true;
	graph.layers[2].settings.affine.kept_ratio = 0.5;
	net = net_make_graph(graph, BATCH);
	cuda = cuda_net_open(&net, PSD_LAYERS_FP32);
	for (unsigned i = 0; i < ITERATIONS; i++) {
		float here[4], there[4];

		net.batch.iteration = i;
		for (unsigned e = 0; e < BATCH * net_image_elements(&net); e++)
			net.images[e] += 0.5f;
		(void)net_run(&net);
		(void)cuda_net_run(&cuda);
		for (unsigned s = 0; s < net.graph->n_states; s++) {
			cr_assert_eq(psd_device_cpu.read_state(net.device, s, here, &err), PSD_OK);
			cr_assert_eq(psd_device_cuda.read_state(cuda.device, s, there, &err), PSD_OK);
			cr_expect_lt(cuda_net_distance(there, here, 4), TOLERANCE_RATIO, "iteration %u", i);
		}
	}
	cr_expect_eq(cuda.device->recorded.left_out, 1); /* forward of 'n' */
	cr_expect_not(psd_device_cuda.detour(cuda.device, &err));
	cuda_net_close(&cuda);
	net_release(&net);
}

/* After one failed recording, layers are begun call by call for good, with the same bits. Nothing is left behind. */
static void check_failing(const char *function, unsigned nth)
{
	struct net net = net_make_apart(wide_text, BATCH);
	struct cuda_net cuda = cuda_net_open(&net, PSD_LAYERS_FP32);
	const uint64_t count = net.graph->tensors[0].elements;
	float *first = malloc(count * sizeof(*first));
	struct psd_error how = {0};

	cr_assert(first);
	psd_stand_in_fail(function, nth, cudaErrorMemoryAllocation);
	for (unsigned i = 0; i < 4; i++) {
		(void)cuda_net_run(&cuda);
		if (i == 0)
			memcpy(first, cuda.host_gradients[0], count * sizeof(*first));
		cr_expect_eq(memcmp(first, cuda.host_gradients[0], count * sizeof(*first)), 0, "%s, iteration %u",
			     function, i);
	}
	cr_expect_eq(cuda.device->recorded.left_out, 1, "%s: %u", function, cuda.device->recorded.left_out);
	cr_expect(psd_device_cuda.detour(cuda.device, &how), "%s", function);
	cr_expect(strstr(how.text, "1 of ") == how.text && strstr(how.text, "out of memory"), "%s", how.text);
	free(first);
	cuda_net_close(&cuda);
	cr_expect_eq(psd_stand_in_held().graphs, 0, "%s", function);
	net_release(&net);
}

Test(cuda_graphs, leave_out_failed_recordings)
{
	check_failing("cudaStreamBeginCapture", 3);
	check_failing("cudaStreamEndCapture", 20);
	check_failing("cudaGraphInstantiate", 5);
	check_failing("cudaGraphGetNodes", 30);
}

/* Each new place of gradients has a graph, but not without end. */
Test(cuda_graphs, are_not_more_than_enough)
{
	const unsigned most = 16;
	struct net net = net_make(MASKED, BATCH);
	struct cuda_net cuda = cuda_net_open(&net, PSD_LAYERS_FP32);
	const uint64_t count = net.graph->tensors[0].elements;
	unsigned n_graphs = 0;

	for (unsigned i = 0; i < 2 * most; i++) {
		cuda.gradients[0] = cuda_net_take(cuda.device, net.gradients[0], count);
		net.batch.gradients = NULL;
		(void)net_run(&net);
		net.batch.gradients = cuda.gradients;
		(void)cuda_net_run(&cuda);
		cr_expect_lt(cuda_net_distance(cuda.host_gradients[0], net.gradients[0], count), TOLERANCE_RATIO);
		if (i == most)
			n_graphs = cuda.device->recorded.graphs;
	}
	cr_expect_eq(cuda.device->recorded.graphs, n_graphs);
	cuda_net_close(&cuda);
	net_release(&net);
}

/* The host checks images and labels in every iteration, also in one whose forward is recorded. */
static void check_refused(const char *text, float image, int32_t label, const char *why)
{
	struct net net = net_make_apart(text, BATCH);
	struct cuda_net cuda = cuda_net_open(&net, PSD_LAYERS_BF16);
	const struct psd_pass all = {.end = net.graph->n_layers};
	struct psd_error err = {0};

	for (unsigned i = 0; i < 3; i++) {
		begin(&cuda, &net.batch);
		cr_assert_eq(psd_device_cuda.pass(cuda.device, &all, &err), PSD_OK, "%s", err.text);
	}
	net.images[2 * net_image_elements(&net) - 1] = image;
	net.labels[2 * net.graph->labels - 1] = label;
	begin(&cuda, &net.batch);
	cr_assert_eq(psd_device_cuda.pass(cuda.device, &all, &err), PSD_EINVAL);
	cr_expect_str_eq(err.text, why);
	cuda_net_close(&cuda);
	net_release(&net);
}

Test(cuda_graphs, do_not_hide_a_label_beyond_the_classes)
{
	check_refused(MASKED, 0, 3, "sample 9 has label 3, must be 0 to 2");
	check_refused(TRANSFORMER, 0, -1, "sample 9 has label -1, must be 0 to 10");
}

/* 10.001 would be a token once it is rounded to 16 bits. */
Test(cuda_graphs, do_not_hide_a_token_beyond_the_vocabulary)
{
	static const char rest[] = "must be a whole number from 0 to 10";
	const struct {
		float token;
		const char *text;
	} cases[] = {{11, "11"}, {-1, "-1"}, {10.001f, "10.001"}, {NAN, "nan"}, {INFINITY, "inf"}};
	char why[128];

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(why, sizeof(why), "layer 'table': sample 9 has token %s, %s", cases[i].text, rest);
		check_refused(TRANSFORMER, cases[i].token, 0, why);
	}
}
