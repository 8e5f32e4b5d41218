/* Each kind of layer on the CUDA device against the reference in double: the loss tells of its forward, the gradients
 * of what stands below it of its backward. Inputs and parameters are random, by PSD_CHECK_SEED if that is set, and
 * numbers that 16 bits hold, so that all arithmetics begin with the same. Prints "layer,KIND,ARITHMETIC,ERROR,BAR"
 * for tests/gpu-check.sh, which runs these cases on a GPU without the cpu's libraries. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/cuda_net.h"
#include "tests/real/device/reference.h"
#include "tests/real/transformer_helper.h"
#include "tests/test_with.h"

/* Tolerance relative to a tensor's norm and to the loss. */
static const struct arithmetic {
	const char *name;
	enum psd_layer_arithmetic arithmetic;
	double most_ratio;
} arithmetics[] = {
	{"fp32", PSD_LAYERS_FP32, 1e-4},
	{"tf32", PSD_LAYERS_TF32, 3e-3},
	{"fp16", PSD_LAYERS_FP16, 1e-2},
	{"bf16", PSD_LAYERS_BF16, 1e-2},
};

#define ALL (sizeof(arithmetics) / sizeof(arithmetics[0]))

#define FIRST                                                                                                          \
	"name: m\ninput: {channels: 2, height: 6, width: 5}\nlayers:\n"                                                \
	"  - {name: base, kind: conv, outputs: 8, kernel: 3, pad: 1, bias: false}\n"
/* Without a bias: its gradient is a sum over samples that now and then is nearly 0, and says nothing then. */
#define LAST                                                                                                           \
	"  - {name: top, kind: inner-product, outputs: 3, bias: false}\n"                                              \
	"  - {name: loss, kind: softmax-loss}\n"

/* ---- random numbers that 8 bits of significand hold ---- */

static float draw(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return (float)((int)(*state >> 24) - 127) / 128.0f;
}

static float draw_token(uint32_t *state, uint32_t vocabulary)
{
	return floorf((float)vocabulary * (draw(state) + 127.0f / 128.0f) / 2.0f);
}

static uint32_t first_state(void)
{
	const char *seed = getenv("PSD_CHECK_SEED");

	return seed ? (uint32_t)strtoul(seed, NULL, 10) : NET_SEED;
}

/* Weights about as training begins: their products neither grow nor vanish. */
static void fill(struct net *net)
{
	uint32_t state = first_state();

	for (unsigned t = 0; t < net->graph->n_tensors; t++) {
		const struct psd_tensor *tensor = &net->graph->tensors[t];

		for (uint64_t i = 0; i < tensor->elements; i++)
			net->parameters[t][i] = 0.25f * draw(&state);
	}
	for (uint64_t i = 0; i < net->options.batch * net_image_elements(net); i++)
		net->images[i] = net->graph->vocabulary ? draw_token(&state, net->graph->vocabulary) : draw(&state);
	/* All samples are of one class: terms of a sum over them have one sign, so that its error is not that of a
	 * difference. */
	for (uint64_t n = 0; n < net->options.batch * net->graph->labels; n++)
		net->labels[n] = 0;
}

/* ---- a kind ---- */

struct truth {
	double loss;
	double **gradients;
};

static struct truth find_truth(const struct net *net)
{
	double **wide = net_widen_parameters(net);
	struct truth truth = {
		.loss = reference_loss(net->graph, &net->options, &net->batch, wide),
		.gradients = calloc(net->graph->n_tensors, sizeof(*truth.gradients)),
	};

	cr_assert(truth.gradients);
	for (unsigned t = 0; t < net->graph->n_tensors; t++)
		truth.gradients[t] = reference_gradient(net->graph, &net->options, &net->batch, wide, t);
	net_free_wide(net, wide);
	return truth;
}

/* The second iteration finds memory as the first one left it. */
static double error_of(struct net *net, const struct truth *truth, enum psd_layer_arithmetic arithmetic)
{
	struct cuda_net cuda = cuda_net_open(net, arithmetic);
	double error_ratio;

	(void)cuda_net_run(&cuda);
	error_ratio = fabs(cuda_net_run(&cuda) / truth->loss - 1);
	for (unsigned t = 0; t < net->graph->n_tensors; t++)
		error_ratio = fmax(error_ratio, net_distance(cuda.host_gradients[t], truth->gradients[t],
							     net->graph->tensors[t].elements));
	cuda_net_close(&cuda);
	return error_ratio;
}

/* n_arithmetics: how many of the list. */
static void check_net(const char *kind, struct net *net, unsigned n_arithmetics)
{
	const struct truth truth = find_truth(net);

	for (unsigned a = 0; a < n_arithmetics; a++) {
		const double error_ratio = error_of(net, &truth, arithmetics[a].arithmetic);

		printf("layer,%s,%s,%.3g,%g\n", kind, arithmetics[a].name, error_ratio, arithmetics[a].most_ratio);
		cr_expect_leq(error_ratio, arithmetics[a].most_ratio, "%s in %s: off by %g", kind, arithmetics[a].name,
			      error_ratio);
	}
	for (unsigned t = 0; t < net->graph->n_tensors; t++)
		free(truth.gradients[t]);
	free(truth.gradients);
}

static void check(const char *kind, const char *text, unsigned n_arithmetics)
{
	struct net net = net_make_apart(text, 4);

	fill(&net);
	check_net(kind, &net, n_arithmetics);
	net_release(&net);
}

#define KIND_IN(n_arithmetics, suffix, layers)                                                                         \
	Test(cuda_layers, suffix)                                                                                      \
	{                                                                                                              \
		check(#suffix, FIRST layers LAST, n_arithmetics);                                                      \
	}
#define KIND(suffix, layers) KIND_IN(ALL, suffix, layers)
#define BRANCH		     "  - {name: other, kind: conv, outputs: 8, kernel: 1, input: base}\n"

KIND(conv, "  - {name: x, kind: conv, outputs: 6, kernel: 3, stride: 2, pad: 1}\n")
KIND(grouped_conv, "  - {name: x, kind: conv, outputs: 8, kernel: 3, pad: 1, groups: 2}\n")
KIND(convs_of_one_input, "  - {name: a, kind: conv, outputs: 6, kernel: 1, stride: 2, input: base}\n"
			 "  - {name: b, kind: conv, outputs: 6, kernel: 3, stride: 2, pad: 1, input: base}\n"
			 "  - {name: x, kind: add, inputs: [a, b]}\n")
KIND(deconv, "  - {name: x, kind: deconv, outputs: 4, kernel: 4, stride: 2, pad: 1}\n")
KIND(inner_product, "  - {name: x, kind: inner-product, outputs: 9}\n")
KIND(inner_product_relu, "  - {name: x, kind: inner-product, outputs: 9}\n  - {name: y, kind: relu}\n")
KIND(relu, "  - {name: x, kind: relu, slope: 0.1}\n")
KIND(prelu, "  - {name: x, kind: prelu}\n")
KIND(sigmoid, "  - {name: x, kind: sigmoid}\n")
KIND(tanh, "  - {name: x, kind: tanh}\n")
KIND(elu, "  - {name: x, kind: elu, alpha: 0.7}\n")
KIND(clip, "  - {name: x, kind: clip, most: 1.5}\n")
KIND(affine, "  - {name: x, kind: affine, factor: -1.5, summand: 0.25}\n")
/* In 16 bits another one of nearly equal numbers is the largest: that is no error of the pool. */
KIND_IN(2, max_pool, "  - {name: x, kind: pool, method: max, kernel: 3, stride: 2}\n")
KIND(average_pool, "  - {name: x, kind: pool, method: average, kernel: 3, stride: 2, pad: 1}\n")
KIND(global_pool, "  - {name: x, kind: global-pool}\n")
KIND(lrn, "  - {name: x, kind: lrn, size: 3, alpha: 0.5, beta: 0.6, k: 1.5}\n")
KIND(batch_norm, "  - {name: x, kind: batch-norm}\n")
KIND(shared_batch_norm,
     "  - {name: x, kind: batch-norm}\n  - {name: y, kind: add, inputs: [base, x]}\n") /* adds its part */
KIND(scale, "  - {name: x, kind: scale}\n")
KIND(dropout, "  - {name: x, kind: dropout, ratio: 0.4}\n")
KIND(add, BRANCH "  - {name: x, kind: add, inputs: [base, other]}\n")
KIND(multiply, BRANCH "  - {name: x, kind: multiply, inputs: [base, other]}\n")
KIND(concat, BRANCH "  - {name: x, kind: concat, inputs: [base, other]}\n")
KIND(slice, "  - {name: x, kind: slice, input: base, first: 3, channels: 4}\n")
KIND(reshape, "  - {name: x, kind: reshape, channels: 16, height: 3, width: 5}\n")
KIND(permute, "  - {name: x, kind: permute, channels: 3, rows: 1, columns: 2}\n")
KIND(shuffle, "  - {name: x, kind: shuffle, groups: 4}\n")
KIND(resize, "  - {name: x, kind: resize, height: 9, width: 4}\n")
KIND(softmax_loss, "")
KIND(gelu, "  - {name: x, kind: gelu}\n")
KIND(gelu_by_tanh, "  - {name: x, kind: gelu, approximate: tanh}\n")
KIND(silu, "  - {name: x, kind: silu}\n")
KIND(position, "  - {name: x, kind: position}\n")
KIND(shared_position, "  - {name: x, kind: position}\n  - {name: y, kind: add, inputs: [base, x]}\n")
KIND(prefix, "  - {name: x, kind: prefix, places: 3}\n")
KIND(shared_prefix, "  - {name: x, kind: prefix}\n  - {name: y, kind: prefix, input: base}\n"
		    "  - {name: z, kind: add, inputs: [x, y]}\n")
KIND(layer_norm, "  - {name: x, kind: layer-norm}\n")
KIND(rms_norm, "  - {name: x, kind: rms-norm}\n")
KIND(plain_rms_norm, "  - {name: x, kind: rms-norm, scale: false, epsilon: 0.1}\n")
KIND(shared_rms_norm, "  - {name: x, kind: rms-norm}\n  - {name: y, kind: add, inputs: [base, x]}\n")
KIND(plain_layer_norm, "  - {name: x, kind: layer-norm, scale: false, bias: false, epsilon: 0.1}\n")
KIND(shared_layer_norm, "  - {name: x, kind: layer-norm}\n  - {name: y, kind: add, inputs: [base, x]}\n")

/* ---- sequences ---- */

/* Large enough for probabilities that differ: equal ones would all be rounded to the same side. */
#define QKV_OF(sides)                                                                                                  \
	"name: m\ninput: {channels: 2, " sides "}\nlayers:\n"                                                          \
	"  - {name: base, kind: conv, outputs: 24, kernel: 3, pad: 1, bias: false}\n"                                  \
	"  - {name: q, kind: affine, factor: 2}\n"
#define QKV QKV_OF("height: 6, width: 5")

/* With fewer heads than samples, and with more of them. */
TEST_ROW(cuda_layers, attention, check("attention", QKV "  - {name: x, kind: attention, heads: 2}\n" LAST, ALL))
TEST_ROW(cuda_layers, causal_attention,
	 check("causal_attention", QKV "  - {name: x, kind: attention, heads: 8, causal: true}\n" LAST, ALL))
TEST_ROW(cuda_layers, shared_attention,
	 check("shared_attention",
	       QKV "  - {name: x, kind: attention, heads: 2, causal: true}\n"
		   "  - {name: s, kind: slice, input: q, first: 4, channels: 8}\n"
		   "  - {name: y, kind: add, inputs: [s, x]}\n" LAST,
	       ALL))

/* Heads of keys that are fewer than samples, and more. */
TEST_ROW(cuda_layers, grouped_attention,
	 check("grouped_attention", QKV "  - {name: x, kind: attention, heads: 4, kv_heads: 1, causal: true}\n" LAST,
	       ALL))
TEST_ROW(cuda_layers, grouped_attention_of_many_heads,
	 check("grouped_attention_of_many_heads", QKV "  - {name: x, kind: attention, heads: 12, kv_heads: 6}\n" LAST,
	       ALL))

/* Masks are those of a sample, which has other values than a head. */
TEST_ROW(cuda_layers, attention_with_dropout,
	 check("attention_with_dropout",
	       QKV "  - {name: x, kind: attention, heads: 6, kv_heads: 3, dropout: 0.4}\n" LAST, ALL))

/* The reference finds each angle anew. */
#define FEW QKV_OF("height: 2, width: 4")

TEST_ROW(cuda_layers, rotary_attention,
	 check("rotary_attention", FEW "  - {name: x, kind: attention, heads: 2, rotary: 10, causal: true}\n" LAST,
	       ALL))
TEST_ROW(cuda_layers, shared_rotary_attention,
	 check("shared_rotary_attention",
	       FEW "  - {name: x, kind: attention, heads: 2, kv_heads: 1, rotary: 10000}\n"
		   "  - {name: s, kind: slice, input: q, first: 4, channels: 12}\n"
		   "  - {name: y, kind: add, inputs: [s, x]}\n" LAST,
	       ALL))

#define TOKENS(vocabulary)                                                                                             \
	"name: m\ninput: {channels: 1, height: 9}\nlayers:\n"                                                          \
	"  - {name: base, kind: embedding, vocabulary: " #vocabulary ", outputs: 8}\n"

/* Some tokens several times. */
TEST_ROW(cuda_layers, embedding, check("embedding", TOKENS(7) LAST, ALL))

/* Numbers of tokens that 16 bits would round. */
TEST_ROW(cuda_layers, embedding_of_many, check("embedding_of_many", TOKENS(3000) LAST, ALL))

#define SCORES                                                                                                         \
	"  - {name: top, kind: conv, outputs: 35, kernel: 1, bias: false}\n  - {name: loss, kind: softmax-loss}\n"

/* The loss has more classes than a position has indices. */
TEST_ROW(cuda_layers, loss_of_places, check("loss_of_places", FIRST SCORES, ALL))
TEST_ROW(cuda_layers, transformer, check("transformer", TRANSFORMER, ALL))
TEST_ROW(cuda_layers, llama, check("llama", LLAMA, ALL))

/* A convolution's weight has a gradient of 4 * 64 * 64 terms of one sign. Added up in 16 bits, those of bf16 would stop
 * to count at 2^8 times one of them, and those of fp16 at 2^11: both are far below the sum. */
Test(cuda_layers, weight_gradients_of_long_sums)
{
	struct net net = net_make_apart("name: m\ninput: {channels: 1, height: 64, width: 64}\nlayers:\n"
					"  - {name: base, kind: conv, outputs: 2, kernel: 1, bias: false}\n"
					"  - {name: x, kind: global-pool}\n" LAST,
					4);

	fill(&net);
	for (uint64_t i = 0; i < net.options.batch * net_image_elements(&net); i++)
		net.images[i] = fabsf(net.images[i]);
	check_net("weight_gradients_of_long_sums", &net, ALL);
	net_release(&net);
}

/* ---- running statistics ---- */

/* kept: share of the running statistics that an iteration keeps; they begin with mean 0 and variance 1. The variance is
 * that of a population: sum (x - mean)^2 / (n - 1). */
static void expect_statistics(const struct net *net, double kept, double mean[], double variance[])
{
	const uint64_t places = 6 * 5, channels = 2, count = net->options.batch * places;
	const double n = (double)count;

	for (uint64_t c = 0; c < channels; c++) {
		double sum = 0, squares = 0;

		for (uint64_t i = 0; i < count; i++)
			sum += net->images[(i / places * channels + c) * places + i % places];
		for (uint64_t i = 0; i < count; i++)
			squares += pow(net->images[(i / places * channels + c) * places + i % places] - sum / n, 2);
		mean[c] = (1 - kept) * sum / n;
		variance[c] = kept + (1 - kept) * squares / (n - 1);
	}
}

static void check_statistics(struct net *net, const struct arithmetic *arithmetic)
{
	struct cuda_net cuda = cuda_net_open(net, arithmetic->arithmetic);
	double expected[2][2], error_ratio = 0;
	struct psd_error err = {0};
	float found[2];

	expect_statistics(net, 0.25, expected[0], expected[1]);
	(void)cuda_net_run(&cuda);
	for (unsigned s = 0; s < net->graph->n_states; s++) {
		cr_assert_eq(psd_device_cuda.read_state(cuda.device, s, found, &err), PSD_OK, "%s", err.text);
		error_ratio = fmax(error_ratio, net_distance(found, expected[s], 2));
	}
	printf("layer,running_statistics,%s,%.3g,%g\n", arithmetic->name, error_ratio, arithmetic->most_ratio);
	cr_expect_leq(error_ratio, arithmetic->most_ratio, "running statistics in %s: off by %g", arithmetic->name,
		      error_ratio);
	cuda_net_close(&cuda);
}

Test(cuda_layers, running_statistics)
{
	struct net net = net_make_apart("name: m\ninput: {channels: 2, height: 6, width: 5}\nlayers:\n"
					"  - {name: x, kind: batch-norm, kept: 0.25}\n" LAST,
					4);

	fill(&net);
	for (uint64_t i = 0; i < net.options.batch * net_image_elements(&net); i++)
		net.images[i] += 1.0f; /* exact in 8 bits; else a mean may be nearly 0 */
	for (unsigned a = 0; a < ALL; a++)
		check_statistics(&net, &arithmetics[a]);
	net_release(&net);
}
