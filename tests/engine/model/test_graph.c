/* The native model form and what a graph says about a network: shapes, tensors, FLOPs, and the published totals of
 * every model we ship. */
#define _GNU_SOURCE 1
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/file.h"
#include "engine/model/graph.h"
#include "engine/model/layer.h"
#include "engine/model/model.h"
#include "tests/test_with.h"

static struct psd_graph parse(const char *text)
{
	struct psd_graph graph;
	struct psd_error err = {0};

	cr_assert_eq(psd_model_parse(&graph, "m.yaml", text, strlen(text), &err), PSD_OK, "%s", err.text);
	return graph;
}

static struct psd_graph load(const char *path)
{
	struct psd_graph graph;
	struct psd_error err = {0};

	cr_assert_eq(psd_graph_load(&graph, path, &err), PSD_OK, "%s", err.text);
	return graph;
}

static void refuses(const char *text, const char *message)
{
	struct psd_graph graph;
	struct psd_error err = {0};

	cr_assert_eq(psd_model_parse(&graph, "m.yaml", text, strlen(text), &err), PSD_EINVAL);
	cr_assert_str_eq(err.text, message);
}

/* Three layers over an image: the third line of the file is "layers:", so the first layer stands in line 4. */
#define HEAD "name: m\ninput: {channels: 4, height: 10, width: 8}\nlayers:\n"

static void refuses_layer(const char *layer, const char *message)
{
	char text[1024];

	snprintf(text, sizeof(text), HEAD "  - {name: a, kind: relu}\n  - {%s}\n", layer);
	refuses(text, message);
}

static bool has_shape(const struct psd_layer *layer, uint32_t channels, uint32_t height, uint32_t width)
{
	return layer->shape.channels == channels && layer->shape.height == height && layer->shape.width == width;
}

/* ---- shapes ---- */

GRAPH_TEST(graph, conv_rounds_down_and_counts_pad_and_dilation,
	   parse(HEAD "  - {name: c, kind: conv, outputs: 6, kernel: [3, 2], stride: [2, 1], "
		      "pad: [1, 0], dilation: [2, 1]}\n"))
{
	/* height: a kernel of 3 dilated by 2 spans 5; (10 + 2 - 5) / 2 + 1 = 4; width: (8 - 2) / 1 + 1 = 7 */
	cr_assert(has_shape(&graph.layers[1], 6, 4, 7));
}

Test(graph, pool_rounds_down_unless_told_up)
{
	struct psd_graph down = parse(HEAD "  - {name: p, kind: pool, method: max, kernel: 3, stride: 2}\n");
	struct psd_graph up = parse(HEAD "  - {name: p, kind: pool, method: max, kernel: 3, stride: 2, round: up}\n");

	cr_assert(has_shape(&down.layers[1], 4, 4, 3)); /* 7 / 2 + 1, 5 / 2 + 1 */
	cr_assert(has_shape(&up.layers[1], 4, 5, 4));
	psd_graph_release(&down);
	psd_graph_release(&up);
}

GRAPH_TEST(graph, a_pool_window_never_begins_in_the_trailing_pad,
	   parse("name: m\ninput: {channels: 1, height: 4, width: 4}\nlayers:\n"
		 "  - {name: p, kind: pool, method: max, kernel: 2, stride: 2, pad: 1, round: up}\n"
		 "  - {name: q, kind: pool, method: max, kernel: 2, stride: 3, pad: 1, round: up, input: input}\n"))
{
	/* (4 + 2 - 2) / 2 + 1 = 3 windows at -1, 1, 3: all begin inside; by 3, rounded up: 3 at -1, 2, 5, the last is
	 * outside */
	cr_assert(has_shape(&graph.layers[1], 1, 3, 3));
	cr_assert(has_shape(&graph.layers[2], 1, 2, 2));
}

GRAPH_TEST(graph, branches_join_by_concat_and_add,
	   parse(HEAD "  - {name: a, kind: conv, outputs: 6, kernel: 1}\n"
		      "  - {name: b, kind: conv, outputs: 6, kernel: 3, pad: 1, input: input}\n"
		      "  - {name: sum, kind: add, inputs: [a, b]}\n"
		      "  - {name: all, kind: concat, inputs: [sum, input, b]}\n"
		      "  - {name: mean, kind: global-pool}\n"))
{
	cr_assert_eq(graph.layers[3].n_inputs, 2);
	cr_assert_eq(graph.layers[3].inputs[0], 1);
	cr_assert_eq(graph.layers[3].inputs[1], 2);
	cr_assert(has_shape(&graph.layers[3], 6, 10, 8));
	cr_assert(has_shape(&graph.layers[4], 6 + 4 + 6, 10, 8));
	cr_assert(has_shape(&graph.layers[5], 16, 1, 1));
}

/* ---- tensors ---- */

GRAPH_TEST(graph, tensors_follow_layers_weight_before_bias,
	   parse(HEAD "  - {name: c, kind: conv, outputs: 6, kernel: 3, groups: 2}\n"
		      "  - {name: n, kind: batch-norm}\n"
		      "  - {name: s, kind: batch-norm, scale: false}\n"
		      "  - {name: t, kind: batch-norm, scale: false, bias: false}\n"
		      "  - {name: u, kind: scale, bias: false}\n"
		      "  - {name: f, kind: inner-product, outputs: 5}\n"))
{
	static const char *const names[] = {"c.weight", "c.bias",   "n.weight", "n.bias",
					    "s.bias",	"u.weight", "f.weight", "f.bias"};
	const uint64_t inputs = 6 * 8 * 6; /* 8 x 6 outputs of a 3x3 kernel on 10 x 8 inputs, times 6 channels */
	const uint64_t elements[] = {6 * (4 / 2) * 9, 6, 6, 6, 6, 6, inputs * 5, 5};

	cr_assert_eq(graph.n_tensors, 8);
	for (unsigned i = 0; i < 8; i++) {
		cr_assert_str_eq(graph.tensors[i].name, names[i]);
		cr_assert_eq(graph.tensors[i].elements, elements[i]);
	}
	cr_assert_eq(graph.tensors[6].rows, inputs);
	cr_assert_eq(graph.tensors[6].columns, 5);
	cr_assert_eq(graph.tensors[0].rows, 0);
	cr_assert_eq(graph.tensors[7].rows, 0);
	cr_assert_eq(graph.layers[6].first_tensor, 6);
	cr_assert_eq(graph.layers[6].n_tensors, 2);
}

GRAPH_TEST(graph, tensors_have_shapes_and_starting_values,
	   parse(HEAD "  - {name: c, kind: conv, outputs: 6, kernel: [3, 5], groups: 2}\n"
		      "  - {name: n, kind: batch-norm}\n"
		      "  - {name: f, kind: inner-product, outputs: 5}\n"))
{
	const struct psd_tensor *weight = &graph.tensors[0], *bias = &graph.tensors[1], *matrix = &graph.tensors[4];
	const uint32_t dims[] = {6, 4 / 2, 3, 5};

	cr_assert_eq(weight->n_dims, 4);
	cr_assert_arr_eq(weight->dims, dims, sizeof(dims));
	cr_assert_eq(bias->n_dims, 1);
	cr_assert_eq(bias->dims[0], 6);
	cr_assert_eq(matrix->n_dims, 2);
	cr_assert_eq(matrix->dims[0], 5);
	cr_assert_eq(matrix->dims[1], 6 * 8 * 4);
	/* uniform: variance bound^2 / 3 = 1 / inputs */
	cr_assert_float_eq(weight->start_bound, sqrt(3.0 / (2 * 3 * 5)), 1e-7);
	cr_assert_float_eq(bias->start_bound, sqrt(1.0 / (2 * 3 * 5)), 1e-7);
	cr_assert(graph.tensors[2].start_value == 1 && graph.tensors[2].start_bound == 0); /* n.weight: unchanged */
	cr_assert(graph.tensors[3].start_value == 0 && graph.tensors[3].start_bound == 0);
}

/* Values that a layer keeps without a gradient have a name and count as no parameter. */
GRAPH_TEST(graph, states_are_named_and_no_parameters,
	   parse(HEAD "  - {name: s, kind: scale}\n  - {name: n, kind: batch-norm, scale: false}\n"
		      "  - {name: r, kind: relu}\n"))
{
	const struct psd_layer *norm = &graph.layers[2];

	cr_assert_eq(graph.n_states, 2);
	cr_assert(norm->first_state == 0 && norm->n_states == 2);
	cr_assert_str_eq(graph.states[0].name, "n.running_mean");
	cr_assert_str_eq(graph.states[1].name, "n.running_variance");
	for (unsigned i = 0; i < 2; i++) {
		cr_assert_eq(graph.states[i].layer, 2);
		cr_assert_eq(graph.states[i].elements, 4);
		cr_assert_eq(graph.states[i].start_value, (float)i); /* mean 0, variance 1 */
	}
	cr_assert_eq(graph.n_tensors, 3);
	cr_assert_eq(graph.parameters, 4 + 4 + 4);
}

/* A row of the list without a name, with a name of another row or without a way to its shape is a mistake. */
Test(graph, kinds_are_complete)
{
	for (unsigned i = 0; psd_layer_kinds[i]; i++) {
		const struct psd_layer_kind *kind = psd_layer_kinds[i];

		cr_assert(kind->name && *kind->name);
		for (unsigned j = 0; j < i; j++)
			cr_assert_str_neq(kind->name, psd_layer_kinds[j]->name);
		cr_assert(kind->infer || kind->least_inputs > 0, "%s", kind->name);
	}
}

/* 2 (10 - 1) + 4 - 2 = 20 and 1 (8 - 1) + 2 (3 - 1) + 1 = 12 positions. Inputs first, half of them see an output. Each
 * of 4 x 10 x 8 values is multiplied by 3 x 4 x 3 weights. */
GRAPH_TEST(graph, deconv_is_a_convolution_turned_around,
	   parse(HEAD "  - {name: c, kind: deconv, outputs: 6, kernel: [4, 3], stride: [2, 1], "
		      "pad: [1, 0], dilation: [1, 2], groups: 2}\n"))
{
	const uint32_t dims[] = {4, 6 / 2, 4, 3};
	const uint64_t products = 4 * 10 * 8 * 3 * 4 * 3;

	cr_assert(has_shape(&graph.layers[1], 6, 20, 12));
	cr_assert_arr_eq(graph.tensors[0].dims, dims, sizeof(dims));
	cr_assert_eq(graph.tensors[1].elements, 6);
	cr_assert_float_eq(graph.tensors[0].start_bound, sqrt(3.0 / (2 * 4 / 2 * 3)), 1e-7);
	cr_assert_float_eq(graph.tensors[1].start_bound, sqrt(1.0 / (2 * 4 / 2 * 3)), 1e-7);
	cr_assert_eq(graph.layers[1].forward_flops, 2 * products + 6 * 20 * 12);
}

Test(graph, deconv_and_resize_have_limits)
{
	refuses(HEAD "  - {name: c, kind: deconv, outputs: 6, kernel: 1, stride: 60000}\n",
		"m.yaml:4:5: layer 'c' is 540001 high and 420001 wide, must be 1 to 65536");
	refuses(HEAD "  - {name: c, kind: deconv, outputs: 6, kernel: 1, pad: 4}\n",
		"m.yaml:4:5: layer 'c' is 2 high and 0 wide, must be 1 to 65536");
	refuses(HEAD "  - {name: c, kind: deconv, outputs: 6, kernel: 1, groups: 4}\n",
		"m.yaml:4:5: layer 'c' has 4 groups, must divide its 4 input and 6 output channels");
	refuses(HEAD "  - {name: c, kind: resize, height: 0, width: 3}\n",
		"m.yaml:4:37: 'height' is '0', must be a whole number from 1 to 65536");
}

/* ---- work ---- */

GRAPH_TEST(graph, a_product_counts_two_and_a_bias_one,
	   parse(HEAD "  - {name: f, kind: inner-product, outputs: 5}\n"
		      "  - {name: g, kind: inner-product, outputs: 7, bias: false}\n"))
{
	const uint64_t m = 4 * 10 * 8;
	const struct psd_layer *f = &graph.layers[1], *g = &graph.layers[2];

	cr_assert_eq(f->forward_flops, 2 * m * 5 + 5);
	cr_assert_eq(f->backward_flops, 2 * m * 5 + 5); /* no gradient of the image */
	cr_assert_eq(g->forward_flops, 2 * 5 * 7);
	cr_assert_eq(g->backward_flops, 2 * 2 * 5 * 7); /* gradients of the weights and of the data */
	cr_assert_eq(f->read_bytes, 4 * (m + m * 5 + 5));
	cr_assert_eq(f->write_bytes, 4 * 5);
}

GRAPH_TEST(graph, conv_uses_each_weight_at_each_position,
	   parse(HEAD "  - {name: c, kind: conv, outputs: 6, kernel: 3, groups: 2, bias: false}\n"))
{
	const uint64_t weights = 6 * (4 / 2) * 3 * 3, positions = 8 * 6;

	cr_assert_eq(graph.layers[1].forward_flops, 2 * weights * positions);
	cr_assert_eq(graph.forward_flops, 2 * weights * positions);
}

GRAPH_TEST(graph, no_gradient_is_counted_below_the_first_parameters,
	   parse(HEAD "  - {name: n, kind: lrn, size: 5}\n"
		      "  - {name: c, kind: conv, outputs: 6, kernel: 1}\n"
		      "  - {name: m, kind: lrn, size: 5}\n"))
{
	cr_assert_eq(graph.layers[1].backward_flops, 0);
	cr_assert_eq(graph.layers[2].backward_flops, graph.layers[2].forward_flops);
	cr_assert_gt(graph.layers[3].backward_flops, 0);
}

GRAPH_TEST(graph, no_gradient_passes_through_the_output_of_a_loss,
	   parse(HEAD "  - {name: c, kind: conv, outputs: 6, kernel: 1}\n"
		      "  - {name: loss, kind: softmax-loss}\n"
		      "  - {name: e, kind: exp}\n"))
{
	cr_expect(graph.layers[2].is_trained);
	cr_expect_not(graph.layers[3].is_trained);
	cr_expect_eq(graph.layers[3].backward_flops, 0);
}

/* y = 1 / (1 + exp(-x)): a sign, an exponential, a sum, a quotient; dx = dy y (1 - y): a difference, two products. */
GRAPH_TEST(graph, a_sigmoid_counts_four_and_three,
	   parse(HEAD "  - {name: c, kind: conv, outputs: 6, kernel: 1}\n"
		      "  - {name: s, kind: sigmoid}\n"))
{
	const uint64_t elements = 6 * 10 * 8;

	cr_assert(has_shape(&graph.layers[2], 6, 10, 8));
	cr_assert_eq(graph.layers[2].forward_flops, 4 * elements);
	cr_assert_eq(graph.layers[2].backward_flops, 3 * elements);
	cr_assert_eq(graph.layers[2].n_tensors, 0);
}

GRAPH_TEST(graph, in_place_layers_keep_no_activations,
	   parse(HEAD "  - {name: c, kind: conv, outputs: 6, kernel: 1}\n  - {name: r, kind: relu}\n"
		      "  - {name: d, kind: dropout, ratio: 0.5}\n"))
{
	cr_assert_eq(graph.activation_bytes, 4 * (4 + 6) * 10 * 8);
}

/* ---- the models we ship ---- */

struct published {
	const char *path;
	uint64_t parameters;
	double lowest_gmacs, highest_gmacs; /* as authors and frameworks report them: a product and its sum count 1 */
};

static const struct published models[] = {
	{"scenarios/models/cifar10-quick.yaml", 145578, 0.012, 0.013},
	{"scenarios/models/alexnet.yaml", 60965224, 0.71, 0.74},
	{"scenarios/models/alexnet-bn.yaml", 60967976, 0.71, 0.74},
	{"scenarios/models/alexnet-owt.yaml", 61838248, 0.82, 0.86}, /* arXiv 1404.5997, its sizes of layers */
	{"scenarios/models/vgg11.yaml", 132863336, 7.5, 7.7},	     /* VGG, table 2: configuration A; 7.6 GMAC */
	{"scenarios/models/vgg13.yaml", 133047848, 11.2, 11.4},	     /* configuration B; 11.3 GMAC */
	{"scenarios/models/vgg16.yaml", 138357544, 15.4, 15.6},	     /* configuration D; torchvision: 15.47 GMAC */
	{"scenarios/models/vgg19.yaml", 143667240, 19.5, 19.7},
	{"scenarios/models/vgg19-22k.yaml", 229052817, 19.5, 19.8},
	{"scenarios/models/googlenet.yaml", 6998552, 1.5, 1.6},
	{"scenarios/models/googlenet-aux.yaml", 13378280, 1.5, 1.65},
	{"scenarios/models/inception-v3.yaml", 27161264, 5.7, 5.8},
	{"scenarios/models/resnet50.yaml", 25549352, 3.8, 4.1},
	/* torchvision: 1.81, 3.66, 4.09 and 7.80 GMAC, without norms and sums */
	{"scenarios/models/resnet18.yaml", 11689512, 1.81, 1.84},
	{"scenarios/models/resnet34.yaml", 21797672, 3.66, 3.70},
	{"scenarios/models/resnet50-v1.5.yaml", 25557032, 4.09, 4.16},
	{"scenarios/models/resnet101.yaml", 44549160, 7.80, 7.90},
	{"scenarios/models/resnet152.yaml", 60192808, 11.3, 11.6},
	/* Hugging Face's BertForPreTraining, less the second of two vectors of segments; a token takes as many products
	 * as parameters of its blocks, and 2 L d in attention */
	{"scenarios/models/bert-base.yaml", 110106428 - 768, 49.0, 51.0},
	{"scenarios/models/bert-large.yaml", 336226108 - 1024, 169, 172},
	{"scenarios/models/gpt2.yaml", 124439808, 145, 147},
	/* OpenAI's checkpoints; L (N - L d) + blocks 2 L L d for N parameters, all but those of positions */
	{"scenarios/models/gpt2-medium.yaml", 354823168, 412, 416},
	{"scenarios/models/gpt2-large.yaml", 774030080, 886, 893},
	{"scenarios/models/gpt2-xl.yaml", UINT64_C(1557611200), 1750, 1762},
	/* parameters in LLM Foundry's table of throughput; L N + blocks 2 L L d by its formula of MFU */
	{"scenarios/models/mpt-125m.yaml", 125311488, 330, 335},
	{"scenarios/models/mpt-350m.yaml", 355985408, 930, 940},
	{"scenarios/models/mpt-760m.yaml", 760470528, 1860, 1870},
	{"scenarios/models/mpt-1b.yaml", 1315950592, 3100, 3112},
	{"scenarios/models/mpt-3b.yaml", UINT64_C(2651837440), 6110, 6130},
	{"scenarios/models/mpt-7b.yaml", UINT64_C(6658859008), 14720, 14750},
	{"scenarios/models/mpt-13b.yaml", UINT64_C(12853954560), 28000, 28100},
	{"scenarios/models/mpt-30b.yaml", UINT64_C(29975214080), 64200, 64350},
	{"scenarios/models/tinyllama.yaml", 1100048384, 2495, 2510},
	{"scenarios/models/llama2-7b.yaml", UINT64_C(6738415616), 31450, 31550},
	{"scenarios/models/vit-b16.yaml", 86566120, 17.3, 17.6}, /* torchvision: 17.6 GMAC with the class token */
	{"scenarios/models/mlp.yaml", 3 * (4096 * 4096 + 4096), 0.050, 0.051},
};

/* Blocks that repeat can be computed again. Both models have 32. */
Test(graph, large_models_repeat_their_blocks)
{
	static const char *const paths[] = {"scenarios/models/mpt-7b.yaml", "scenarios/models/llama2-7b.yaml"};

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		struct psd_graph graph = load(paths[i]);

		cr_expect_eq(graph.n_blocks, 32, "%s: %u", paths[i], graph.n_blocks);
		psd_graph_release(&graph);
	}
}

Test(graph, shipped_models_have_the_published_totals)
{
	for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
		struct psd_graph graph = load(models[i].path);
		const double gmacs = (double)graph.forward_flops / 2e9;

		cr_expect_eq(graph.parameters, models[i].parameters, "%s", models[i].path);
		cr_expect(gmacs >= models[i].lowest_gmacs && gmacs <= models[i].highest_gmacs, "%s: %g", models[i].path,
			  gmacs);
		/* backward is twice forward, less the image's gradient */
		cr_expect(graph.backward_flops > 3 * graph.forward_flops / 2 &&
				  graph.backward_flops < 2 * graph.forward_flops,
			  "%s", models[i].path);
		psd_graph_release(&graph);
	}
}

/* Compares the tensors of one net in GradientFlow's list, in order. */
static void assert_tensors(const char *path, const char *net)
{
	struct psd_graph graph = load(path);
	FILE *in = fopen("tests/data/gradientflow_tensors.csv", "r");
	unsigned n_found = 0;
	char line[256];

	cr_assert_not_null(in);
	while (fgets(line, sizeof(line), in)) {
		char line_net[32], name[64];
		unsigned number;
		unsigned long long elements;

		if (sscanf(line, "%31[^,],%u,%63[^,],%llu", line_net, &number, name, &elements) != 4 ||
		    strcmp(line_net, net) != 0)
			continue;
		cr_assert_eq(number, n_found++);
		cr_assert_lt(number, graph.n_tensors);
		cr_assert_eq(graph.tensors[number].elements, elements, "%s", name);
	}
	fclose(in);
	cr_assert_eq(n_found, graph.n_tensors);
	psd_graph_release(&graph);
}

TEST_ROW(graph, alexnet_bn_has_gradientflows_26_tensors_in_order,
	 assert_tensors("scenarios/models/alexnet-bn.yaml", "alexnet"))
TEST_ROW(graph, resnet50_has_gradientflows_153_tensors_in_order,
	 assert_tensors("scenarios/models/resnet50.yaml", "resnet50"))

GRAPH_TEST(graph, residual_stages_halve_the_map, load("scenarios/models/resnet152.yaml"))
{
	/* 224 / 2 (conv1) / 2 (pool1) / 8 (three later stages) */
	cr_assert_str_eq(graph.layers[graph.n_layers - 4].name, "res5c_relu");
	cr_assert(has_shape(&graph.layers[graph.n_layers - 4], 2048, 224 / 32, 224 / 32));
}

/* ---- repeated blocks ---- */

#define BLOCK HEAD "  - {name: a, kind: relu}\n  - {repeat: 2, name: b, layers: ["

/* The gradient of c1, which is the relu's, is in use at the same time as c2's. The linear layer keeps its own. */
Test(graph, gradients_of_outputs_that_are_needed_together_are_counted)
{
	struct psd_graph graph = parse(HEAD "  - {name: c1, kind: conv, outputs: 8, kernel: 1}\n"
					    "  - {name: r1, kind: relu}\n"
					    "  - {name: c2, kind: conv, outputs: 16, kernel: 1}\n"
					    "  - {name: pool, kind: global-pool}\n"
					    "  - {name: fc, kind: inner-product, outputs: 5}\n"
					    "  - {name: loss, kind: softmax-loss}\n");

	/* fc at 0, the pool's 16 values behind it, c2 behind both, and c1 behind c2 */
	cr_expect_eq(graph.gradient_bytes, 4 * (5 + 16 + 16 * 80 + 8 * 80), "%u", (unsigned)graph.gradient_bytes);
	psd_graph_release(&graph);
}

Test(graph, copies_of_a_block_stand_above_each_other)
{
	struct psd_graph graph = parse(BLOCK "{name: c, kind: relu}, {name: d, kind: add, inputs: [above, c]}]}\n"
					     "  - {name: e, kind: add, inputs: [b1.d, b2.d]}\n");
	static const char *const names[] = {"input", "a", "b1.c", "b1.d", "b2.c", "b2.d", "e"};

	cr_assert_eq(graph.n_layers, 7);
	for (unsigned i = 0; i < 7; i++)
		cr_expect_str_eq(graph.layers[i].name, names[i]);
	cr_expect(graph.layers[2].inputs[0] == 1 && graph.layers[3].inputs[0] == 1 && graph.layers[3].inputs[1] == 2);
	cr_expect(graph.layers[4].inputs[0] == 3 && graph.layers[5].inputs[0] == 3 && graph.layers[5].inputs[1] == 4);
	cr_expect(graph.layers[6].inputs[0] == 3 && graph.layers[6].inputs[1] == 5);
	psd_graph_release(&graph);
}

Test(graph, copies_are_counted_from_first_and_see_layers_outside)
{
	struct psd_graph graph =
		parse(HEAD "  - {name: a, kind: relu}\n"
			   "  - {repeat: 2, first: 0, name: s., layers: [{name: c, kind: add, inputs: [a, above]}]}\n");

	cr_assert_eq(graph.n_layers, 4);
	cr_expect_str_eq(graph.layers[2].name, "s.0.c");
	cr_expect_str_eq(graph.layers[3].name, "s.1.c");
	cr_expect(graph.layers[3].inputs[0] == 1 && graph.layers[3].inputs[1] == 2);
	psd_graph_release(&graph);
}

Test(graph, mistakes_in_repeated_blocks_are_refused)
{
	refuses(BLOCK "{name: c, kind: relu, input: d}]}\n",
		"m.yaml:5:64: layer 'b1.c' takes its input from 'd', which does not exist");
	refuses(BLOCK "{name: c, kind: relu}, {name: c, kind: relu}]}\n",
		"m.yaml:5:65: a layer 'b1.c' exists already, layer names must differ");
	refuses(BLOCK "]}\n", "m.yaml:5:34: block 'b' needs 'layers', a list of layers");
	refuses_layer("repeat: 0, name: b, layers: [{name: c, kind: relu}]",
		      "m.yaml:5:14: 'repeat' is '0', must be a whole number from 1 to 100000");
	refuses_layer("repeat: 2, layers: [{name: c, kind: relu}]", "m.yaml:5:5: 'a repeated block' needs 'name'");
	refuses_layer("repeat: 2, name: b, layer: [{name: c, kind: relu}]",
		      "m.yaml:5:26: unknown key 'layer' in 'a repeated block', did you mean 'layers'?");
}

/* ---- another length of sequence ---- */

Test(graph, a_sequence_replaces_the_files_length)
{
	static const char text[] = "name: m\ninput: {channels: 1, height: 10}\nlayers:\n  - {name: a, kind: relu}\n";
	static const char image[] = HEAD "  - {name: a, kind: relu}\n";
	struct psd_graph graph;
	struct psd_error err;

	cr_assert_eq(psd_model_parse_sequence(&graph, "m.yaml", text, strlen(text), 7, &err), PSD_OK);
	cr_expect(has_shape(&graph.layers[1], 1, 7, 1));
	psd_graph_release(&graph);
	cr_assert_eq(psd_model_parse_sequence(&graph, "m.yaml", image, strlen(image), 7, &err), PSD_EINVAL);
	cr_expect_str_eq(err.text, "m.yaml:2:8: the input is 4x10x8, 'sequence' in the scenario needs a model whose "
				   "input has 1 channel and width 1");
}

/* The head of the next sentence takes one position of any number, two classes of a sample. */
Test(graph, berts_first_position_is_one_of_any_number)
{
	const struct psd_model_choices choices[] = {{.sequence = 128}, {.sequence = 1024}, {.sequence = 65536}};

	for (unsigned i = 0, k = 0; i < 3; i++, k = 0) {
		struct psd_graph graph;
		struct psd_error err;

		cr_assert_eq(psd_graph_load_as(&graph, "scenarios/models/bert-base.yaml", &choices[i], &err), PSD_OK);
		while (strcmp(graph.layers[k].name, "first_place") != 0)
			k++;
		cr_expect(has_shape(&graph.layers[k], 768, 1, 1), "%u", choices[i].sequence);
		psd_graph_release(&graph);
	}
}

/* ---- errors ---- */

Test(graph, cycles_and_unknown_inputs_are_refused)
{
	refuses_layer("name: b, kind: relu, input: c",
		      "m.yaml:5:34: layer 'b' takes its input from 'c', which does not exist");
	refuses_layer("name: b, kind: relu, input: b",
		      "m.yaml:5:34: cyclic graph: layer 'b' takes its input from itself");
	refuses(HEAD "  - {name: a, kind: add, inputs: [input, b]}\n  - {name: b, kind: relu}\n",
		"m.yaml:4:42: cyclic graph: layer 'a' takes its input from 'b' below it, must be a layer above it");
	refuses_layer("name: b, kind: relu, input: a, inputs: [a]",
		      "m.yaml:5:37: layer 'b' has both 'input' and 'inputs', must have one of them");
	refuses_layer("name: a, kind: relu", "m.yaml:5:12: a layer 'a' exists already, layer names must differ");
	refuses_layer("name: input, kind: relu",
		      "m.yaml:5:12: a layer 'input' exists already, layer names must differ");
}

Test(graph, keys_are_checked_kind_by_kind)
{
	refuses_layer("name: b, kind: conv, output: 3",
		      "m.yaml:5:27: unknown key 'output' in 'b', did you mean 'outputs'?");
	refuses_layer("name: b, kind: relu, kernel: 3",
		      "m.yaml:5:27: unknown key 'kernel' in 'b', known are name, kind, input, inputs, shares, slope");
	refuses_layer("name: b, kind: conv, outputs: 3", "m.yaml:5:5: 'b' needs 'kernel'");
	refuses_layer("name: b", "m.yaml:5:5: layer 'b' has no 'kind'");
	refuses_layer("kind: relu", "m.yaml:5:5: a layer must be a mapping with a 'name'");
	refuses_layer(
		"name: b, kind: pooling",
		"m.yaml:5:21: 'kind' is 'pooling', must be one of: input, conv, deconv, pool, global-pool, lrn, "
		"batch-norm, layer-norm, rms-norm, scale, relu, prelu, sigmoid, tanh, elu, clip, affine, abs, exp, "
		"log, softplus, gelu, silu, power, dropout, inner-product, embedding, position, prefix, attention, "
		"concat, slice, add, multiply, reshape, permute, shuffle, resize, softmax, softmax-loss, other; did "
		"you mean pool?");
	refuses_layer(
		"name: b, kind: input",
		"m.yaml:5:21: 'kind' is 'input': the network's input must be given by the key 'input' above 'layers'");
	refuses("name: m\nlayers: []\n", "m.yaml:1:1: 'model' needs 'input'");
	refuses(HEAD "  []\n", "m.yaml:1:1: the model has an input and no layers");
	refuses("name: m\ninput: {channels: 1}\nlayers: 3\n", "m.yaml:3:9: 'layers' must be a list of layers");
}

Test(graph, shapes_that_do_not_fit_are_refused)
{
	refuses_layer("name: b, kind: conv, outputs: 3, kernel: 11",
		      "m.yaml:5:5: layer 'b': a kernel of 11x11 with a pad of 0x0 does not fit its input of 10x8");
	refuses_layer("name: b, kind: conv, outputs: 3, kernel: 1, groups: 3",
		      "m.yaml:5:5: layer 'b' has 3 groups, must divide its 4 input and 3 output channels");
	refuses_layer("name: b, kind: pool, method: max, kernel: 2, pad: 2",
		      "m.yaml:5:5: layer 'b' has a pad of 2x2, must be smaller than its kernel of 2x2");
	refuses_layer("name: b, kind: add", "m.yaml:5:5: layer 'b' (add) has 1 inputs, must be 2 or more");
	refuses_layer("name: b, kind: relu, inputs: [a, input]",
		      "m.yaml:5:5: layer 'b' (relu) has 2 inputs, must be 1");
	refuses(HEAD "  - {name: g, kind: global-pool}\n  - {name: b, kind: concat, inputs: [input, g]}\n",
		"m.yaml:5:5: layer 'b': input 'g' is 1x1, must be 10x8 as the first input");
	refuses(HEAD "  - {name: g, kind: global-pool}\n  - {name: b, kind: add, inputs: [input, g]}\n",
		"m.yaml:5:5: layer 'b': input 'g' is 4x1x1, must be 4x10x8 as the first input");
}

Test(graph, more_inputs_than_a_layer_may_have_are_refused)
{
	char text[8192] = HEAD "  - {name: s, kind: add, inputs: [input";
	size_t length = strlen(text);

	for (unsigned i = 0; i < 1024; i++)
		length += (size_t)snprintf(text + length, sizeof(text) - length, ",input");
	snprintf(text + length, sizeof(text) - length, "]}\n");
	/* the first of 1,025 stands in column 35, each is 6 characters on */
	refuses(text, "m.yaml:4:6179: layer 's' has more than 1024 inputs");
}

Test(graph, sizes_beyond_the_limits_are_refused)
{
	refuses_layer("name: b, kind: conv, outputs: 16777217, kernel: 1",
		      "m.yaml:5:36: 'outputs' is '16777217', must be a whole number from 1 to 16777216");
	refuses_layer("name: b, kind: conv, outputs: 1, kernel: 65537",
		      "m.yaml:5:47: 'kernel' is '65537', must be a whole number from 1 to 65536");
	refuses_layer("name: b, kind: conv, outputs: 1, kernel: 1, pad: 65536",
		      "m.yaml:5:5: layer 'b' is 131082 high and 131080 wide, must be 1 to 65536");
	refuses_layer("name: b, kind: conv, outputs: 0, kernel: 1",
		      "m.yaml:5:36: 'outputs' is '0', must be a whole number from 1 to 16777216");
	refuses("name: m\ninput: {channels: 1, height: 65536, width: 65536}\nlayers:\n  - {name: f, kind: "
		"inner-product, outputs: 1}\n",
		"m.yaml:4:5: layer 'f' has more than 4294967295 inputs");
	/* 2^24 outputs of 2^24 channels at 2^14 x 2^14 positions: 2^77 FLOPs */
	refuses("name: m\ninput: {channels: 16777216, height: 16384, width: 16384}\nlayers:\n"
		"  - {name: c, kind: conv, outputs: 16777216, kernel: 1}\n",
		"m.yaml:4:5: layer 'c' makes the graph too large: its FLOPs or bytes must stay below 2^60");
}

/* ---- the reference ---- */

static void expect_key(const char *line, const char *kind, const char *key)
{
	const size_t length = strcspn(line, "\n");
	char quoted[64];

	snprintf(quoted, sizeof(quoted), "`%s`", key);
	cr_expect(memmem(line, length, quoted, strlen(quoted)), "scenarios/models/README.md has no %s of %s", quoted,
		  kind);
}

Test(graph, the_reference_has_every_key_of_every_kind)
{
	char *text, quoted[64];
	size_t length;
	struct psd_error err = {.text = ""};

	cr_assert_eq(psd_file_read(&text, &length, "scenarios/models/README.md", &err), PSD_OK, "%s", err.text);
	for (unsigned k = 0; psd_layer_kinds[k]; k++) {
		const struct psd_layer_kind *kind = psd_layer_kinds[k];
		const char *row;

		if (kind == &psd_layer_input)
			continue;
		snprintf(quoted, sizeof(quoted), "\n| `%s`", kind->name);
		row = strstr(text, quoted);
		row = row ? row + 1 : strstr(text, quoted + strlen("\n| "));
		cr_expect_not_null(row, "scenarios/models/README.md has no %s", quoted);
		for (const struct psd_key *key = kind->keys; row && key && key->name; key++)
			expect_key(row, kind->name, key->name);
	}
	free(text);
}

/* The input has no gradient, so backward has the parameters' FLOPs alone. */
Test(graph, layers_for_predictions_have_the_figures_of_the_file)
{
	struct psd_graph graph = load("scenarios/models/predicted-only.yaml");
	const struct psd_layer *lstm = &graph.layers[1], *last = &graph.layers[2];
	const struct psd_graph_share share = psd_graph_predicted_only(&graph);

	cr_expect_eq(lstm->forward_flops, 6291456);
	cr_expect_eq(lstm->backward_flops, 6291456);
	cr_expect_eq(lstm->parameters, 99328);
	cr_expect_eq(lstm->read_bytes, 4 * (64 * 32 + 99328));
	cr_expect_eq(lstm->write_bytes, 4 * 128 * 32);
	cr_expect_eq(last->read_bytes, 4 * 128);
	cr_expect_eq(share.n_layers, 2);
	cr_expect_str_eq(share.first, "lstm");
	cr_expect_float_eq(share.parameters_ratio, 99328.0 / (99328 + 1290), 1e-12);
	psd_graph_release(&graph);
}

/* A choice that a form of file has no use for is refused before the file is read. */
Test(graph, choices_need_their_form_of_file)
{
	static const struct {
		const char *path;
		struct psd_model_choices choices;
		const char *text;
	} rows[] = {
		{"m.onnx",
		 {.sequence = 8},
		 "m.onnx: 'sequence' in the scenario needs a model in YAML, this is '.onnx'"},
		{"m.yaml",
		 {.inputs = {"data=3x8x8"}, .n_inputs = 1},
		 "m.yaml: 'input' in the scenario needs a model in ONNX or Caffe's form, this is '.yaml'"},
		{"m.prototxt",
		 {.tied = {"none"}, .n_tied = 1},
		 "m.prototxt: 'tied' in the scenario needs a model in ONNX, this is '.prototxt'"},
		{"m.yaml",
		 {.outputs = {"y"}, .n_outputs = 1},
		 "m.yaml: 'outputs' in the scenario needs a model in ONNX, this is '.yaml'"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct psd_graph graph;
		struct psd_error err = {0};

		cr_expect_eq(psd_graph_load_as(&graph, rows[i].path, &rows[i].choices, &err), PSD_EINVAL);
		cr_expect_str_eq(err.text, rows[i].text);
	}
}
