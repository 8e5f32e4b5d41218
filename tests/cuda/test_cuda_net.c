/* Networks on the CUDA device against the CPU, which is tested against a reference in double: every kind of layer
 * stands above one with parameters, whose gradient is right only if the kind's data gradient is. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/model/model.h"
#include "real/device/gpu/gpu.h"
#include "tests/cuda/compare_helper.h"
#include "tests/real/transformer_helper.h"
#include "tests/test_with.h"

static void check(const char *text, uint32_t batch)
{
	for (unsigned a = 0; a < sizeof(arithmetics) / sizeof(arithmetics[0]); a++)
		check_net_in(text, batch, &arithmetics[a]);
}

/* Where 16 bits say little: which one of nearly equal numbers is the largest. */
static void check_floats(const char *text, uint32_t batch)
{
	check_net_in(text, batch, &arithmetics[0]);
}

/* Below a batch norm a bias changes nothing: its gradient is rounding and says nothing. */
#define UNBIASED                                                                                                       \
	"name: m\ninput: {channels: 3, height: 7, width: 6}\nlayers:\n"                                                \
	"  - {name: base, kind: conv, outputs: 4, kernel: 3, pad: 1, bias: false}\n"

Test(cuda_net, every_kind_has_a_row)
{
	for (unsigned i = 0; psd_layer_kinds[i]; i++)
		cr_expect(!psd_gpu_find_kind(psd_layer_kinds[i]) == psd_layer_kinds[i]->is_predicted_only, "%s",
			  psd_layer_kinds[i]->name);
}

Test(cuda_net, convolutions_are_as_on_the_cpu)
{
	check(HEAD "  - {name: c, kind: conv, outputs: 5, kernel: 3}\n" TAIL, 3);
	check(HEAD "  - {name: c, kind: conv, outputs: 3, kernel: [3, 2], stride: [2, 3], pad: [0, 1]}\n" TAIL, 2);
	check(HEAD "  - {name: c, kind: conv, outputs: 6, kernel: 3, pad: 1, groups: 2}\n" TAIL, 2);
	check(WIDE "  - {name: c, kind: conv, outputs: 16, kernel: 3, pad: 1, groups: 16, bias: false}\n" TAIL, 1);
	check(HEAD "  - {name: c, kind: conv, outputs: 3, kernel: [3, 2], dilation: [2, 3], pad: 1}\n" TAIL, 2);
	check(WIDE "  - {name: r, kind: relu}\n  - {name: c, kind: conv, outputs: 16, kernel: 1}\n"
		   "  - {name: s, kind: relu, slope: 0.2}\n" TAIL,
	      2);
}

/* A bias has a gradient of 2 * 48 * 48 terms: 576 partial sums, which are summed to fewer before the last step. */
TEST_ROW(cuda_net, long_sums_are_as_on_the_cpu,
	 check("name: m\ninput: {channels: 2, height: 48, width: 48}\nlayers:\n"
	       "  - {name: c, kind: conv, outputs: 3, kernel: 1}\n  - {name: r, kind: relu}\n"
	       "  - {name: g, kind: global-pool}\n" TAIL,
	       2))

Test(cuda_net, convolutions_that_are_timed_are_as_on_the_cpu)
{
	for (unsigned a = 0; a < sizeof(arithmetics) / sizeof(arithmetics[0]); a++)
		check_timed(CONVOLUTIONS, 2, &arithmetics[a]);
}

/* One that is read twice, above one that is read twice: each adds to a gradient that is there. */
Test(cuda_net, transposed_convolutions_are_as_on_the_cpu)
{
	check(HEAD "  - {name: c, kind: deconv, outputs: 5, kernel: 4, stride: 2, pad: 1}\n" TAIL, 2);
	check(HEAD "  - {name: c, kind: deconv, outputs: 3, kernel: [3, 2], stride: [1, 3], dilation: [2, 1], "
		   "pad: [1, 0]}\n" TAIL,
	      2);
	check(HEAD "  - {name: c, kind: deconv, outputs: 4, kernel: 3, groups: 4, bias: false}\n" TAIL, 2);
	check(WIDE "  - {name: c, kind: deconv, outputs: 16, kernel: 3, pad: 1, groups: 2}\n"
		   "  - {name: r, kind: relu}\n  - {name: s, kind: add, inputs: [r, base]}\n"
		   "  - {name: d, kind: deconv, outputs: 16, kernel: 1}\n"
		   "  - {name: t, kind: add, inputs: [s, d]}\n" TAIL,
	      1);
	check("name: m\ninput: {channels: 3, height: 4, width: 3}\nlayers:\n"
	      "  - {name: c, kind: deconv, outputs: 4, kernel: 2, stride: 2}\n" TAIL,
	      2);
}

/* Larger, smaller, as large, to one place and from one place. */
Test(cuda_net, resizing_is_as_on_the_cpu)
{
	check(HEAD "  - {name: s, kind: resize, height: 12, width: 11}\n" TAIL, 2);
	check(HEAD "  - {name: s, kind: resize, height: 4, width: 3}\n" TAIL, 2);
	check(WIDE "  - {name: s, kind: resize, height: 6, width: 5}\n" TAIL, 2);
	check(WIDE "  - {name: s, kind: resize, input: base, height: 1, width: 1}\n"
		   "  - {name: t, kind: resize, height: 6, width: 5}\n"
		   "  - {name: sum, kind: add, inputs: [t, base]}\n" TAIL,
	      2);
}

Test(cuda_net, pooling_is_as_on_the_cpu)
{
	check_floats(HEAD "  - {name: p, kind: pool, method: max, kernel: 3, stride: 2}\n" TAIL, 2);
	check_floats(HEAD "  - {name: p, kind: pool, method: max, kernel: 3, stride: 2, pad: 1}\n" TAIL, 2);
	check_floats(HEAD "  - {name: p, kind: pool, method: max, kernel: 3, stride: 2, round: up}\n" TAIL, 2);
	check_floats(HEAD "  - {name: p, kind: pool, method: max, kernel: 3, stride: 3, pad: 1, round: up}\n" TAIL, 2);
	check(HEAD "  - {name: p, kind: pool, method: average, kernel: [2, 3], stride: [2, 1]}\n" TAIL, 2);
	check(HEAD "  - {name: p, kind: pool, method: average, kernel: 3, pad: 1}\n" TAIL, 2);
	check(HEAD "  - {name: p, kind: pool, method: average, kernel: 3, stride: 2, round: up}\n" TAIL, 2);
	check(HEAD "  - {name: p, kind: pool, method: average, kernel: 2, stride: 4, round: up}\n" TAIL, 2);
	check(HEAD "  - {name: p, kind: global-pool}\n" TAIL, 3);
	check(WIDE "  - {name: p, kind: global-pool}\n  - {name: loss, kind: softmax-loss}\n", 2);
}

/* Tensors that travel together lie without gaps, so that a gradient may begin at any float. */
static void check_apart(const char *text, uint32_t batch, const struct arithmetic *arithmetic)
{
	struct net net = net_make(text, batch);
	struct cuda_net cuda;
	struct psd_error err = {0};
	double loss;

	calm(&net);
	cuda = cuda_net_open(&net, arithmetic->arithmetic);
	for (unsigned t = 0; t < net.graph->n_tensors; t++) {
		void *block;

		cr_assert_eq(psd_device_cuda.take(cuda.device, (net.graph->tensors[t].elements + 1) * sizeof(float),
						  &block, &err),
			     PSD_OK, "%s", err.text);
		cuda.gradients[t] = (float *)block + 1;
	}
	net.batch.gradients = cuda.gradients;
	loss = cuda_net_run(&cuda);
	net.batch.gradients = NULL;
	compare(&cuda, loss, net_run(&net), arithmetic, text);
	cuda_net_close(&cuda);
	net_release(&net);
}

Test(cuda_net, gradients_may_begin_at_any_float)
{
	for (unsigned a = 0; a < sizeof(arithmetics) / sizeof(arithmetics[0]); a++)
		check_apart(UNBIASED "  - {name: n, kind: batch-norm}\n"
				     "  - {name: c, kind: conv, outputs: 5, kernel: 1}\n"
				     "  - {name: d, kind: deconv, outputs: 3, kernel: 2, stride: 2}\n" TAIL,
			    2, &arithmetics[a]);
}

Test(cuda_net, normalisation_is_as_on_the_cpu)
{
	check(HEAD "  - {name: f, kind: lrn, size: 3, alpha: 0.5, beta: 0.6, k: 1.5}\n" TAIL, 2);
	check(WIDE "  - {name: f, kind: lrn, size: 5}\n" TAIL, 2);
	check(HEAD "  - {name: f, kind: lrn, size: 3, within: true, alpha: 0.5}\n" TAIL, 2);
	check(UNBIASED "  - {name: n, kind: batch-norm}\n" TAIL, 3);
	check(UNBIASED "  - {name: n, kind: batch-norm, scale: false, bias: false}\n" TAIL, 2);
	check(UNBIASED "  - {name: n, kind: batch-norm, scale: false, kept: 0.7}\n" TAIL, 2);
	check(UNBIASED "  - {name: r, kind: relu}\n  - {name: n, kind: batch-norm, input: r}\n"
		       "  - {name: c, kind: conv, outputs: 4, kernel: 1, input: r}\n"
		       "  - {name: s, kind: add, inputs: [c, n]}\n" TAIL,
	      2);
	check("name: m\ninput: {channels: 3, height: 4, width: 3}\nlayers:\n  - {name: n, kind: batch-norm}\n" TAIL, 2);
	check(UNBIASED "  - {name: n, kind: batch-norm, fixed: true, epsilon: 0.5}\n" TAIL, 2);
	check(HEAD "  - {name: s, kind: scale}\n" TAIL, 2);
	check(WIDE "  - {name: s, kind: scale, bias: false}\n" TAIL, 2);
	check(UNBIASED "  - {name: n, kind: batch-norm, scale: false, bias: false}\n  - {name: s, kind: scale}\n"
		       "  - {name: r, kind: relu}\n" TAIL,
	      2);
}

Test(cuda_net, inner_products_are_as_on_the_cpu)
{
	check("name: m\ninput: {channels: 5}\nlayers:\n  - {name: a, kind: inner-product, outputs: 4}\n"
	      "  - {name: r, kind: relu}\n  - {name: b, kind: inner-product, outputs: 6, bias: false}\n" TAIL,
	      4);
	check(WIDE "  - {name: a, kind: inner-product, outputs: 4}\n" TAIL, 1);
}

/* In place above a convolution, and beside it where another layer reads the same. */
static void check_function(const char *keys)
{
	char text[1024];

	snprintf(text, sizeof(text), HEAD "  - {name: f, %s}\n" TAIL, keys);
	check(text, 2);
	snprintf(text, sizeof(text),
		 WIDE "  - {name: f, input: base, %s}\n  - {name: sum, kind: add, inputs: [f, base]}\n" TAIL, keys);
	check(text, 2);
}

Test(cuda_net, functions_of_an_element_are_as_on_the_cpu)
{
	check_function("kind: relu");
	check_function("kind: relu, slope: 0.1");
	check_function("kind: prelu");
	check_function("kind: prelu, shared: true");
	check_function("kind: sigmoid");
	check_function("kind: tanh");
	check_function("kind: elu, alpha: 0.7");
	check_function("kind: clip, most: 1.5");
	check_function("kind: affine, factor: -1.5, summand: 0.25");
	check_function("kind: exp");
	check_function("kind: abs");
	check_function("kind: softplus");
	check_function("kind: power, exponent: 3");
	check_function("kind: sigmoid}\n  - {name: g, kind: log");
	check_function("kind: softplus}\n  - {name: g, kind: power, exponent: -0.5");
}

/* The masks are those of the cpu, bit for bit: another one would change half of the gradient. */
Test(cuda_net, dropout_is_as_on_the_cpu)
{
	check(HEAD "  - {name: a, kind: inner-product, outputs: 9}\n  - {name: r, kind: relu}\n"
		   "  - {name: d, kind: dropout, ratio: 0.4}\n" TAIL,
	      3);
	check(WIDE "  - {name: d, kind: dropout, ratio: 0.25}\n" TAIL, 2);
	check(WIDE "  - {name: d, kind: dropout, ratio: 0.5, input: base}\n"
		   "  - {name: s, kind: add, inputs: [base, d]}\n  - {name: t, kind: add, inputs: [d, s]}\n" TAIL,
	      2);
	check(HEAD "  - {name: q, kind: conv, outputs: 12, kernel: 1}\n"
		   "  - {name: a, kind: attention, heads: 2, rotary: 10, dropout: 0.3}\n" TAIL,
	      3);
}

Test(cuda_net, layers_that_move_values_are_as_on_the_cpu)
{
	check(HEAD "  - {name: f, kind: reshape, channels: 14, height: 3, width: 4}\n"
		   "  - {name: c, kind: conv, outputs: 2, kernel: 3}\n" TAIL,
	      2);
	check(WIDE "  - {name: f, kind: reshape, channels: 480}\n" TAIL, 2);
	check(WIDE "  - {name: f, kind: permute, channels: 3, rows: 1, columns: 2}\n"
		   "  - {name: c, kind: conv, outputs: 2, kernel: 3}\n" TAIL,
	      2);
	check(WIDE "  - {name: f, kind: shuffle, groups: 4}\n  - {name: c, kind: conv, outputs: 2, kernel: 3}\n" TAIL,
	      2);
	check(WIDE "  - {name: a, kind: slice, input: base, channels: 8}\n"
		   "  - {name: b, kind: slice, input: base, first: 5, channels: 8}\n"
		   "  - {name: s, kind: add, inputs: [a, b]}\n" TAIL,
	      2);
}

Test(cuda_net, branches_are_as_on_the_cpu)
{
	check(HEAD "  - {name: l, kind: conv, outputs: 4, kernel: 1}\n  - {name: r, kind: relu, input: base}\n"
		   "  - {name: s, kind: add, inputs: [l, r, base, l]}\n  - {name: t, kind: relu, input: s}\n"
		   "  - {name: c, kind: concat, inputs: [s, t]}\n" TAIL,
	      2);
	check(WIDE "  - {name: r, kind: relu}\n  - {name: l, kind: conv, outputs: 16, kernel: 3, pad: 1, input: r}\n"
		   "  - {name: s, kind: add, inputs: [r, l]}\n  - {name: t, kind: relu}\n" TAIL,
	      2);
	check(WIDE "  - {name: r, kind: relu}\n  - {name: l, kind: conv, outputs: 16, kernel: 3, pad: 1, input: r}\n"
		   "  - {name: m, kind: conv, outputs: 16, kernel: 1, input: r}\n"
		   "  - {name: s, kind: add, inputs: [l, m]}\n"
		   "  - {name: n, kind: conv, outputs: 16, kernel: 1, input: r}\n"
		   "  - {name: t, kind: add, inputs: [n, s]}\n  - {name: u, kind: relu}\n"
		   "  - {name: o, kind: conv, outputs: 16, kernel: 1}\n  - {name: v, kind: sigmoid}\n"
		   "  - {name: w, kind: add, inputs: [u, v]}\n" TAIL,
	      2);
	check(WIDE "  - {name: l, kind: conv, outputs: 16, kernel: 3, pad: 1}\n"
		   "  - {name: s, kind: add, inputs: [base, l, base]}\n  - {name: t, kind: relu, slope: 0.3}\n" TAIL,
	      2);
	check(WIDE "  - {name: l, kind: conv, outputs: 8, kernel: 1}\n"
		   "  - {name: c, kind: concat, inputs: [l, base, l]}\n"
		   "  - {name: d, kind: conv, outputs: 8, kernel: 3}\n" TAIL,
	      2);
}

Test(cuda_net, products_are_as_on_the_cpu)
{
	check(WIDE "  - {name: a, kind: conv, input: base, outputs: 16, kernel: 1}\n"
		   "  - {name: m, kind: multiply, inputs: [base, a]}\n" TAIL,
	      2);
	check(WIDE "  - {name: g, kind: global-pool, input: base}\n  - {name: a, kind: conv, outputs: 16, kernel: 1}\n"
		   "  - {name: w, kind: sigmoid}\n  - {name: m, kind: multiply, inputs: [base, w]}\n" TAIL,
	      2);
	check(HEAD "  - {name: m, kind: multiply, inputs: [base, base]}\n" TAIL, 2);
}

Test(cuda_net, softmax_is_as_on_the_cpu)
{
	check(HEAD "  - {name: s, kind: softmax}\n" TAIL, 2);
	check(WIDE "  - {name: s, kind: softmax, input: base}\n  - {name: t, kind: add, inputs: [s, base, s]}\n"
		   "  - {name: u, kind: softmax}\n  - {name: d, kind: dropout, ratio: 0.4}\n" TAIL,
	      2);
	check(HEAD "  - {name: a, kind: inner-product, outputs: 9}\n  - {name: s, kind: softmax}\n" TAIL, 2);
}

TEST_ROW(cuda_net, losses_have_their_weights,
	 check(HEAD "  - {name: top, kind: inner-product, outputs: 3}\n"
		    "  - {name: aside, kind: softmax-loss, weight: 0.3}\n"
		    "  - {name: loss, kind: softmax-loss, input: top, weight: 2}\n",
	       2))

/* More classes than parts of a sample, and labels among the last. */
TEST_ROW(cuda_net, many_classes_are_as_on_the_cpu,
	 check("name: m\ninput: {channels: 5}\nlayers:\n  - {name: a, kind: inner-product, outputs: 77}\n"
	       "  - {name: loss, kind: softmax-loss}\n",
	       76))

Test(cuda_net, functions_in_place_above_each_other_are_as_on_the_cpu)
{
	check(HEAD "  - {name: a, kind: relu}\n  - {name: b, kind: affine, factor: -1, summand: 2}\n" TAIL, 2);
	check(HEAD "  - {name: a, kind: relu, slope: 0.5}\n  - {name: d, kind: dropout, ratio: 0.3}\n"
		   "  - {name: b, kind: sigmoid}\n  - {name: c, kind: tanh}\n" TAIL,
	      2);
}

/* x and y are computed between the dead end and the loss: their gradients have been where the dead end's lies. */
TEST_ROW(cuda_net, gradients_of_a_dead_end_are_zero,
	 check(HEAD "  - {name: dead, kind: conv, outputs: 4, kernel: 1}\n  - {name: r, kind: relu}\n"
		    "  - {name: x, kind: conv, outputs: 4, kernel: 1, input: base}\n"
		    "  - {name: y, kind: conv, outputs: 4, kernel: 1}\n" TAIL,
	       2))
TEST_ROW(cuda_net, layers_above_the_images_are_as_on_the_cpu,
	 check_floats("name: m\ninput: {channels: 3, height: 7, width: 6}\nlayers:\n  - {name: r, kind: relu}\n"
		      "  - {name: p, kind: pool, method: max, kernel: 2}\n" TAIL,
		      2))

static void descend(float *parameter, const float *gradient, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		parameter[i] -= 0.01f * gradient[i];
}

/* Five steps of each by its own gradients; the cuda one's on its device. */
static void train(struct net *net, struct cuda_net *cuda)
{
	const struct psd_update update = {.rate = 0.01f};
	float **histories = calloc(net->graph->n_tensors, sizeof(*histories));
	struct psd_error err = {0};
	void *block;

	cr_assert(histories);
	for (unsigned t = 0; t < net->graph->n_tensors; t++) {
		cr_assert_eq(psd_device_cuda.take(cuda->device, net->graph->tensors[t].elements * sizeof(float), &block,
						  &err),
			     PSD_OK);
		histories[t] = block;
	}
	for (unsigned step = 0; step < 5; step++) {
		net->batch.iteration = step;
		(void)net_run(net);
		(void)cuda_net_run(cuda);
		for (unsigned t = 0; t < net->graph->n_tensors; t++) {
			descend(net->parameters[t], net->gradients[t], net->graph->tensors[t].elements);
			cr_assert_eq(psd_device_cuda.kernels->apply(cuda->device,
								    &(struct psd_apply){update,
											cuda->parameters[t],
											cuda->gradients[t],
											{.history = histories[t]},
											net->graph->tensors[t].elements,
											NULL,
											NULL},
								    &err),
				     PSD_OK, "%s", err.text);
		}
	}
	cuda_net_wait(cuda->device, PSD_STREAM_COMPUTE);
	free(histories);
}

static void check_training(struct net net)
{
	struct cuda_net cuda = cuda_net_open(&net, PSD_LAYERS_FP32);

	train(&net, &cuda);
	for (unsigned t = 0; t < net.graph->n_tensors; t++) {
		const uint64_t count = net.graph->tensors[t].elements;

		cuda_net_get(cuda.device, cuda.host_gradients[t], cuda.parameters[t], count * sizeof(float));
		cr_expect_lt(cuda_net_distance(cuda.host_gradients[t], net.parameters[t], count), 1e-4, "%s",
			     net.graph->tensors[t].name);
	}
	cuda_net_close(&cuda);
	net_release(&net);
}

Test(cuda_net, five_iterations_end_as_on_the_cpu)
{
	check_training(net_make(
		HEAD "  - {name: r, kind: relu}\n  - {name: n, kind: batch-norm}\n"
		     "  - {name: c, kind: conv, outputs: 16, kernel: 3, groups: 2}\n"
		     "  - {name: p, kind: pool, method: max, kernel: 2}\n  - {name: l, kind: lrn, size: 5}\n"
		     "  - {name: a, kind: inner-product, outputs: 40}\n  - {name: d, kind: dropout, ratio: 0.5}\n" TAIL,
		6));
}

static struct net make_model(const char *path, uint32_t batch)
{
	struct psd_graph graph;
	struct psd_error err = {0};

	cr_assert_eq(psd_graph_load(&graph, path, &err), PSD_OK, "%s", err.text);
	return net_make_graph(graph, batch);
}

Test(cuda_net, cifar10_quick_ends_as_on_the_cpu)
{
	struct net net = make_model("scenarios/models/cifar10-quick.yaml", 3);

	calm(&net);
	check_training(net);
}

TEST_ROW(cuda_net, a_transformer_ends_as_on_the_cpu, check_training(net_make(TRANSFORMER, 3)))
