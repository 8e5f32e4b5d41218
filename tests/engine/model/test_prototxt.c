/* Caffe networks: both syntaxes, the choice of the phase, input sizes, and every error with its line and column. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "engine/model/graph.h"
#include "engine/model/prototxt.h"
#include "tests/test_with.h"

static struct psd_graph load(const char *path)
{
	struct psd_graph graph;
	struct psd_error err = {0};

	cr_assert_eq(psd_graph_load(&graph, path, &err), PSD_OK, "%s", err.text);
	return graph;
}

static struct psd_graph parse(const char *text)
{
	struct psd_graph graph;
	struct psd_error err = {0};

	cr_assert_eq(psd_prototxt_parse(&graph, "n.prototxt", text, strlen(text), NULL, &err), PSD_OK, "%s", err.text);
	return graph;
}

static void refuses(const char *text, const char *message)
{
	struct psd_graph graph;
	struct psd_error err = {0};

	cr_assert_eq(psd_prototxt_parse(&graph, "n.prototxt", text, strlen(text), NULL, &err), PSD_EINVAL);
	cr_assert_str_eq(err.text, message);
}

static const struct psd_layer *layer_named(const struct psd_graph *graph, const char *name)
{
	for (unsigned i = 0; i < graph->n_layers; i++)
		if (!strcmp(graph->layers[i].name, name))
			return &graph->layers[i];
	cr_assert_fail("no layer '%s'", name);
	return NULL;
}

static bool has_shape(const struct psd_layer *layer, uint32_t channels, uint32_t height, uint32_t width)
{
	return layer->shape.channels == channels && layer->shape.height == height && layer->shape.width == width;
}

/* ---- whole files ---- */

GRAPH_TEST(prototxt, older_syntax_takes_the_training_phase, load("tests/data/v1.prototxt"))
{
	cr_assert_str_eq(graph.name, "v1");
	cr_assert_eq(graph.n_layers, 9); /* 11 layers without the test phase's data and accuracy */
	cr_assert(has_shape(layer_named(&graph, "data"), 3, 28, 28));
	cr_assert(has_shape(layer_named(&graph, "conv1"), 20, 24, 24));
	cr_assert(
		has_shape(layer_named(&graph, "pool1"), 20, 12, 12)); /* (24 - 3) / 2, rounded up as Caffe does, + 1 */
	cr_assert_eq(layer_named(&graph, "norm1")->settings.lrn.size, 3);
	cr_assert_eq(layer_named(&graph, "drop1")->settings.dropout.ratio, 0.25);
	/* conv1, ip1, ip2 without a bias */
	cr_assert_eq(graph.parameters, (20 * 3 * 25 + 20) + (20 * 144 * 50 + 50) + 50 * 10);
}

GRAPH_TEST(prototxt, newer_syntax_follows_blobs_in_place, load("tests/data/v2.prototxt"))
{
	const struct psd_layer *sum = layer_named(&graph, "sum");

	cr_assert(has_shape(layer_named(&graph, "data"), 4, 16, 12));
	cr_assert(has_shape(layer_named(&graph, "wide"), 8, 16, 12));
	cr_assert(has_shape(layer_named(&graph, "dilated"), 8, 16, 12)); /* 16 + 2 * 2 - (2 * 2 + 1) + 1 */
	cr_assert_str_eq(graph.layers[sum->inputs[0]].name, "relu");	 /* the last to write "wide" */
	cr_assert_eq(layer_named(&graph, "bn")->n_tensors, 0);		 /* its blobs are statistics */
	cr_assert_eq(layer_named(&graph, "scale")->n_tensors, 2);
	cr_assert(has_shape(layer_named(&graph, "both"), 16, 16, 12));
	cr_assert_eq(layer_named(&graph, "mean")->kind, &psd_layer_global_pool);
	cr_assert_eq(layer_named(&graph, "loss")->n_inputs, 1);
	/* wide in 2 groups without bias, scale, dilated, classes */
	cr_assert_eq(graph.parameters, 8 * (4 / 2) * 7 + 2 * 8 + (8 * 8 * 9 + 8) + (16 * 10 + 10));
}

/* As Caffe's upgrade_proto.cpp has it. A padding is part of what reads it, and of that alone. */
Test(prototxt, oldest_syntax_is_the_older_one)
{
	struct psd_graph graph = load("tests/data/v0.prototxt");
	const struct psd_layer *conv2 = layer_named(&graph, "conv2");

	cr_assert_eq(graph.n_layers, 8);
	cr_assert(has_shape(layer_named(&graph, "data"), 3, 28, 28));
	cr_assert(has_shape(layer_named(&graph, "conv1"), 20, 24, 24));
	cr_assert_eq(layer_named(&graph, "norm1")->settings.lrn.size, 3);
	cr_assert_eq(layer_named(&graph, "drop1")->settings.dropout.ratio, 0.25);
	cr_assert(has_shape(conv2, 6, 12, 12)); /* 12 + 2 * 1 - 3 + 1 */
	cr_assert_str_eq(graph.layers[conv2->inputs[0]].name, "norm1");
	/* conv1, conv2 in 2 groups without bias, ip1 */
	cr_assert_eq(graph.parameters, (20 * 3 * 25 + 20) + 6 * 10 * 9 + (6 * 144 * 50 + 50));
	cr_assert(graph.tensors[1].rate_ratio == 2 && graph.tensors[1].decay_ratio == 0);
	cr_assert_eq(graph.tensors[0].start_deviation, 0.01f);
	psd_graph_release(&graph);
	refuses("input: 'd' input_dim: 1 input_dim: 3 input_dim: 9 input_dim: 9\n"
		"layers { layer { name: 'c' type: 'conv' bias_term: false } bottom: 'd' top: 'c' }",
		"n.prototxt:2:41: a layer of type 'conv' has the unknown field 'bias_term'");
	refuses("layers { layer { name: 'c' type: 'im2col' } bottom: 'd' top: 'c' }",
		"n.prototxt:1:34: a layer has the unknown type 'im2col'");
	refuses("layers { layer { name: 'c' } }", "n.prototxt:1:16: a layer has the unknown type ''");
	refuses("input: 'd' input_dim: 1 input_dim: 3 input_dim: 9 input_dim: 9\n"
		"layers { layer { name: 'p' type: 'padding' pad: 1 } bottom: 'd' top: 'p' }\n"
		"layers { layer { name: 'r' type: 'relu' } bottom: 'p' top: 'r' }",
		"n.prototxt:3:51: layer 'r' reads 'p', which does not exist");
}

GRAPH_TEST(prototxt, sigmoid_has_both_its_names,
	   parse("input: 'data' input_shape { dim: [1, 4] }\n"
		 "layer { name: 'a' type: 'Sigmoid' bottom: 'data' top: 'a' }\n"
		 "layers { name: 'b' type: SIGMOID bottom: 'a' top: 'b' }\n"))
{
	cr_assert_eq(layer_named(&graph, "a")->kind, &psd_layer_sigmoid);
	cr_assert_eq(layer_named(&graph, "b")->kind, &psd_layer_sigmoid);
}

Test(prototxt, alexnet_is_the_same_in_both_forms)
{
	struct psd_graph caffe = load("tests/data/alexnet_train_val.prototxt");
	struct psd_graph native = load("scenarios/models/alexnet.yaml");

	cr_assert_eq(caffe.n_layers, native.n_layers);
	for (unsigned i = 1; i < caffe.n_layers; i++) { /* layer 0, the input, has another name */
		const struct psd_layer *a = &caffe.layers[i], *b = &native.layers[i];

		cr_assert_str_eq(a->name, b->name);
		cr_assert_eq(a->kind, b->kind);
		cr_assert(has_shape(a, b->shape.channels, b->shape.height, b->shape.width));
		cr_assert_eq(a->forward_flops, b->forward_flops);
		cr_assert_eq(a->backward_flops, b->backward_flops);
	}
	cr_assert_eq(caffe.n_tensors, native.n_tensors);
	for (unsigned i = 0; i < caffe.n_tensors; i++)
		cr_assert_eq(caffe.tensors[i].elements, native.tensors[i].elements);
	cr_assert_eq(caffe.parameters, 60965224);
	psd_graph_release(&caffe);
	psd_graph_release(&native);
}

/* ---- input sizes ---- */

#define RELU "layer { name: \"r\" type: \"ReLU\" bottom: \"data\" top: \"r\" }\n"

static void assert_input(const char *head, uint32_t channels, uint32_t height, uint32_t width)
{
	char text[1024];
	struct psd_graph graph;

	snprintf(text, sizeof(text), "%s%s", head, RELU);
	graph = parse(text);
	cr_assert(has_shape(&graph.layers[0], channels, height, width), "%s", head);
	psd_graph_release(&graph);
}

Test(prototxt, every_way_to_give_the_input_size)
{
	assert_input("input: 'data' input_dim: 1 input_dim: 3 input_dim: 5 input_dim: 7\n", 3, 5, 7);
	assert_input("input: 'data' input_shape { dim: 1 dim: 9 }\n", 9, 1, 1);
	assert_input("layer { name: 'd' type: 'Data' top: 'data' transform_param { crop_size: 5 } }\n", 3, 5, 5);
	assert_input("layer { name: 'd' type: 'Data' top: 'data' transform_param { crop_size: 5 force_gray: true } }\n",
		     1, 5, 5);
	assert_input("layer { name: 'd' type: 'ImageData' top: 'data' image_data_param { new_height: 5 new_width: 7 "
		     "is_color: false } }\n",
		     1, 5, 7);
	assert_input("layer { name: 'd' type: 'DummyData' top: 'data' dummy_data_param { num: 1 channels: 2 height: 5 "
		     "width: 7 } }\n",
		     2, 5, 7);
	assert_input(
		"layer { name: 'd' type: 'DummyData' top: 'data' dummy_data_param { shape { dim: [1, 2, 5, 7] } } }\n",
		2, 5, 7);
	assert_input("layer { name: 'd' type: 'MemoryData' top: 'data' memory_data_param { batch_size: 1 channels: 2 "
		     "height: 5 width: 7 } }\n",
		     2, 5, 7);
}

Test(prototxt, a_model_without_an_input_size_says_what_to_give)
{
	refuses("name: 'x'\nlayer { name: 'cifar' type: 'Data' top: 'data' data_param { source: 'x' } }\n" RELU,
		"n.prototxt:2:7: layer 'cifar' (Data) has no image size, needs transform_param { crop_size }, or the "
		"key model.input: {data: 3x224x224}");
	refuses("input: 'data'\n" RELU,
		"n.prototxt:1:8: input 'data' has no size, needs input_dim four times, input_shape { dim }, or the key "
		"model.input");
	refuses("input: 'data' input_shape { dim: [1, 2, 3] }\n" RELU,
		"n.prototxt:1:27: the shape has 3 dimensions, must have 2 (batch, channels) or 4 (batch, channels, "
		"height, width)");
	refuses(RELU, "n.prototxt:1:40: layer 'r' reads 'data', which does not exist");
	refuses("name: 'x'\n", "n.prototxt: the model has no input");
}

/* ---- sizes from outside, and the phase that has data ---- */

#define DATA(param) "layer { name: 'in' type: 'Data' top: 'data' top: 'label' " param " }\n" RELU

static struct psd_shape input_shape(const char *text, const struct psd_model_choices *choices)
{
	struct psd_graph graph;
	struct psd_error err = {0};
	struct psd_shape shape;

	cr_assert_eq(psd_prototxt_parse(&graph, "n.prototxt", text, strlen(text), choices, &err), PSD_OK, "%s",
		     err.text);
	shape = graph.layers[0].shape;
	psd_graph_release(&graph);
	return shape;
}

static bool is(struct psd_shape shape, uint32_t channels, uint32_t height, uint32_t width)
{
	return shape.channels == channels && shape.height == height && shape.width == width;
}

Test(prototxt, sizes_come_from_outside)
{
	const struct psd_model_choices top = {.inputs = {"data=1x28x20"}, .n_inputs = 1};
	const struct psd_model_choices layer = {.inputs = {"in=8x1x28x20"}, .n_inputs = 1};
	const struct psd_model_choices sample = {.sample = {1, 28, 20}};
	const struct psd_model_choices other = {.inputs = {"dada=1x28x20"}, .n_inputs = 1};
	const char *const open = DATA("data_param { source: 'x' }"), *const cropped =
									     DATA("transform_param { crop_size: 20 }");
	struct psd_graph graph;
	struct psd_error err = {0};

	cr_expect(is(input_shape(open, &top), 1, 28, 20));
	cr_expect(is(input_shape(open, &layer), 1, 28, 20));
	cr_expect(is(input_shape(open, &sample), 1, 28, 20));
	cr_expect(is(input_shape(cropped, &top), 1, 28, 20));	 /* the user's size counts */
	cr_expect(is(input_shape(cropped, &sample), 1, 20, 20)); /* the data's channels, cropped */
	cr_expect(is(input_shape(cropped, NULL), 3, 20, 20));
	cr_expect(is(input_shape("input: 'data'\n" RELU, &top), 1, 28, 20));
	cr_assert_eq(psd_prototxt_parse(&graph, "n.prototxt", open, strlen(open), &other, &err), PSD_EINVAL);
	cr_expect_str_eq(err.text, "model.input: 'dada=1x28x20' is not in n.prototxt, which has the inputs and open "
				   "sides 'data', 'in'");
}

Test(prototxt, digits_are_never_taken_for_colours)
{
	cr_expect(is(input_shape(DATA("data_param { source: 'examples/mnist/mnist_train_lmdb' } transform_param { "
				      "crop_size: 28 }"),
				 NULL),
		     1, 28, 28));
}

Test(prototxt, the_phase_that_has_data_is_the_network)
{
	struct psd_graph graph =
		parse("layer { name: 'd' type: 'Data' top: 'data' top: 'label' include { phase: TEST } "
		      "transform_param { crop_size: 5 } }\n" RELU
		      "layer { name: 'm' type: 'ReLU' bottom: 'data' top: 'm' include { phase: TRAIN } }\n");

	cr_expect_eq(graph.n_layers, 2);
	cr_expect(strstr(graph.remarks, "phase: the layers are those of TEST, because TRAIN has no data\n"));
	psd_graph_release(&graph);
}

/* ---- layers that only a prediction needs ---- */

static const struct psd_model_choices predicts = {.allows_other = true};

#define INPUT "input: 'data' input_dim: [1, 3, 32, 32]\n"

/* The last layer's shape in the graph of a prediction; training refuses the network. */
static struct psd_shape predicted_shape(const char *text)
{
	struct psd_graph graph;
	struct psd_error err = {0};
	struct psd_shape shape;

	cr_assert_eq(psd_prototxt_parse(&graph, "n.prototxt", text, strlen(text), &predicts, &err), PSD_OK, "%s\n%s",
		     err.text, text);
	shape = graph.layers[graph.n_layers - 1].shape;
	cr_expect(graph.layers[graph.n_layers - 1].kind->is_predicted_only, "%s", text);
	psd_graph_release(&graph);
	cr_expect_eq(psd_prototxt_parse(&graph, "n.prototxt", text, strlen(text), NULL, &err), PSD_EINVAL, "%s", text);
	return shape;
}

#define CONV_8                                                                                                         \
	"layer { name: 'c' type: 'Convolution' bottom: 'data' top: 'c' "                                               \
	"convolution_param { num_output: 8 "
#define OTHER(type, param) "layer { name: 'o' type: '" type "' bottom: 'c' bottom: 'data' top: 'o' " param " }\n"

Test(prototxt, layers_for_predictions_have_the_shapes_of_caffe)
{
	/* 32 + 2 x 10 - 3 + 1 = 50 positions, cut to the data's 32 */
	cr_expect(is(predicted_shape(INPUT CONV_8
				     "kernel_size: 3 pad: 10 } }\n" OTHER("Crop", "crop_param { axis: 2 offset: 9 }")),
		     8, 32, 32));
	/* two ratios and their inverses, 1, and one for the largest size: 6 priors with 4 sides at 16 x 16 positions */
	cr_expect(is(predicted_shape(INPUT CONV_8 "kernel_size: 2 stride: 2 } }\n" OTHER(
			     "PriorBox", "prior_box_param { min_size: 30 max_size: 60 aspect_ratio: 2 "
					 "aspect_ratio: 3 flip: true clip: false }")),
		     16 * 16 * 6 * 4, 2, 1));
	cr_expect(is(predicted_shape(INPUT CONV_8 "kernel_size: 1 } }\n" OTHER(
			     "ROIPooling", "roi_pooling_param { pooled_w: 7 pooled_h: 6 spatial_scale: 0.0625 }")),
		     8, 6, 7));
	cr_expect(is(predicted_shape(INPUT "layer { name: 'p' type: 'Pooling' bottom: 'data' top: 'p' top: 'mask' "
					   "pooling_param { kernel_size: 2 stride: 2 } }\n"
					   "layer { name: 'u' type: 'Upsample' bottom: 'p' bottom: 'mask' top: 'u' "
					   "upsample_param { scale: 2 } }\n"),
		     3, 32, 32));
	cr_expect(
		is(predicted_shape(INPUT CONV_8 "kernel_size: 1 } }\n" OTHER("SigmoidCrossEntropyLoss", "")), 1, 1, 1));
	cr_expect(is(predicted_shape(INPUT CONV_8 "kernel_size: 1 } }\n" OTHER("EuclideanLoss", "")), 1, 1, 1));
}

Test(prototxt, layers_in_python_have_the_sizes_of_the_user)
{
	const struct psd_model_choices sizes = {
		.allows_other = true, .inputs = {"data=3x9x9", "out=5x2x2"}, .n_inputs = 2};
	const char *const text =
		"layer { name: 'in' type: 'Python' top: 'data' top: 'label' python_param { module: 'm' "
		"} }\n" RELU "layer { name: 'p' type: 'Python' bottom: 'r' top: 'out' }\n";
	struct psd_graph graph;
	struct psd_error err = {0};

	cr_assert_eq(psd_prototxt_parse(&graph, "n.prototxt", text, strlen(text), &sizes, &err), PSD_OK, "%s",
		     err.text);
	cr_expect(is(graph.layers[0].shape, 3, 9, 9));
	cr_expect(is(graph.layers[2].shape, 5, 2, 2));
	psd_graph_release(&graph);
	cr_assert_eq(psd_prototxt_parse(&graph, "n.prototxt", text, strlen(text), &predicts, &err), PSD_EINVAL);
	cr_expect_str_eq(err.text, "n.prototxt:1:40: layer 'in' is written in Python, its top 'data' needs the key "
				   "model.input: {data: 3x224x224}");
}

Test(prototxt, all_mistakes_are_said_at_once)
{
	const char *const text = INPUT "layer { name: 'a' type: 'Magic' bottom: 'data' top: 'a' }\n"
				       "layer { name: 'b' type: 'ReLU' bottom: 'a' top: 'b' }\n"
				       "layer { name: 'c' type: 'Wonder' bottom: 'data' top: 'c' }\n";
	struct psd_graph graph;
	struct psd_error err = {0};

	cr_assert_eq(psd_prototxt_parse(&graph, "n.prototxt", text, strlen(text), &predicts, &err), PSD_EINVAL);
	cr_expect_str_eq(err.text, "n.prototxt:2:25: layer 'a' has the unknown type 'Magic'; 4:25: layer 'c' has the "
				   "unknown type 'Wonder'");
}

Test(prototxt, fields_of_forks_are_ignored_with_a_remark)
{
	const char *const text = "default_forward_type: FLOAT16\n" INPUT
				 "layer { name: 'r' type: 'ReLU' bottom: 'data' top: 'r' forward_math: FLOAT }\n";
	struct psd_graph graph;
	struct psd_error err = {0};

	cr_assert_eq(psd_prototxt_parse(&graph, "n.prototxt", text, strlen(text), &predicts, &err), PSD_OK, "%s",
		     err.text);
	cr_expect_str_eq(graph.remarks, "ignored: 2 fields that change neither shapes nor work, first "
					"default_forward_type\n");
	psd_graph_release(&graph);
	cr_expect_eq(psd_prototxt_parse(&graph, "n.prototxt", text, strlen(text), NULL, &err), PSD_EINVAL);
}

/* ---- complaints about layers ---- */

/* The layer stands in line 2. */
static void refuses_layer(const char *layer, const char *message)
{
	char text[1024];

	snprintf(text, sizeof(text), "input: 'data' input_shape { dim: [1, 4, 9, 9] }\n%s\n", layer);
	refuses(text, message);
}

Test(prototxt, unknown_types_are_refused_with_their_line)
{
	refuses_layer("layer {\n  name: 'x'\n  type: 'Warp'\n}",
		      "n.prototxt:4:9: layer 'x' has the unknown type 'Warp'");
	refuses_layer("layers { name: 'x' type: WARP }", "n.prototxt:2:26: layer 'x' has the unknown type 'WARP'");
	refuses_layer("layer { name: 'x' }", "n.prototxt:2:7: a layer must have a 'type'");
	refuses_layer("layer { name: 'p' type: 'Pooling' bottom: 'data' top: 'p' pooling_param { pool: STOCHASTIC } }",
		      "n.prototxt:2:81: 'pool' is 'STOCHASTIC', must be one of: MAX, AVE, 0, 1");
	refuses_layer(
		"layer { name: 'e' type: 'Eltwise' bottom: 'data' bottom: 'data' eltwise_param { operation: MIN } }",
		"n.prototxt:2:92: 'operation' is 'MIN', must be one of: PROD, SUM, MAX, 0, 1, 2");
}

Test(prototxt, parameters_are_checked)
{
	refuses_layer("layer { name: 'c' type: 'Convolution' bottom: 'data' top: 'c' }",
		      "n.prototxt:2:7: layer 'c' has no 'convolution_param'");
	refuses_layer("layer { name: 'c' type: 'Convolution' bottom: 'data' convolution_param { kernel_size: 3 } }",
		      "n.prototxt:2:72: 'convolution_param' needs 'num_output'");
	refuses_layer("layer { name: 'c' type: 'Convolution' bottom: 'data' convolution_param { num_output: 3 } }",
		      "n.prototxt:2:72: layer 'c' has no 'kernel_size'");
	refuses_layer("layer { name: 'c' type: 'Convolution' convolution_param { num_output: 3 stide: 2 } }",
		      "n.prototxt:2:73: unknown key 'stide' in 'convolution_param', did you mean 'stride'?");
	refuses_layer("layer { name: 'c' type: 'Convolution' convolution_param { num_output: 3 num_output: 4 } }",
		      "n.prototxt:2:73: 'num_output' is already in line 2");
	refuses_layer("layer { name: 'c' type: 'Concat' bottom: 'data' concat_param { axis: 2 } }",
		      "n.prototxt:2:70: 'axis' is '2', must be a whole number from 1 to 1");
}

#define CONV(keys)                                                                                                     \
	"layer { name: 'c' type: 'Convolution' bottom: 'data' top: 'c' " keys                                          \
	" convolution_param { num_output: 2 kernel_size: 1 } }"

Test(prototxt, unsupported_keys_are_refused)
{
	refuses_layer(CONV("lr_mult: 0"), "n.prototxt:2:63: unknown key 'lr_mult' in 'layer', known are name, type, "
					  "bottom, top, include, exclude, phase, param, blobs_lr, weight_decay, "
					  "engine, loss_weight, propagate_down, convolution_param");
	refuses_layer(CONV("param { lr_mult: 0 decay: 1 }"),
		      "n.prototxt:2:82: unknown key 'decay' in 'param', did you mean 'decay_mult'?");
	refuses_layer(CONV("param { lr_mult: -1 }"),
		      "n.prototxt:2:80: 'lr_mult' is '-1', must be a number from 0 to 1000000");
	refuses_layer(CONV("param { name: 'w' }") "\nlayer { name: 'd' type: 'PReLU' bottom: 'c' param { name: 'w' } }",
		      "n.prototxt:3:51: layer 'd' must share all parameters of 'c' in their order, or none");
	refuses_layer(CONV("param: 'w'") "\nlayer { name: 'd' type: 'PReLU' bottom: 'c' param: 'w' }",
		      "n.prototxt:3:52: layer 'd' must share all parameters of 'c' in their order, or none");
	refuses_layer(CONV("propagate_down: false"),
		      "n.prototxt:2:79: 'propagate_down' is 'false', must be one of: true");
	refuses_layer(CONV("loss_weight: 1"), "n.prototxt:2:76: 'loss_weight' is '1', must be a number from 0 to 0");
	refuses_layer("layer { name: 'l' type: 'SoftmaxWithLoss' bottom: 'data' top: 'l' top: 'p' loss_weight: 1 "
		      "loss_weight: 1 }",
		      "n.prototxt:2:104: 'loss_weight' is '1', must be a number from 0 to 0");
	refuses_layer("layer { name: 'd' type: 'Dropout' bottom: 'data' top: 'd' phase: TEST }",
		      "n.prototxt:2:66: 'phase' is 'TEST', must be one of: TRAIN, 0");
	refuses_layer("layer { name: 'p' type: 'Pooling' bottom: 'data' top: 'p' pooling_param { kernel_size: 2 "
		      "ceil_mode: true\nround_mode: FLOOR } }",
		      "n.prototxt:2:90: 'ceil_mode' and 'round_mode' (line 3) both set the rounding, must be only one "
		      "of them");
	refuses_layer("state { phase: TEST }", "n.prototxt:2:16: 'phase' is 'TEST', must be one of: TRAIN, 0");
	refuses_layer("state { level: 1 }", "n.prototxt:2:16: 'level' is '1', must be a number from 0 to 0");
	refuses_layer("state { stage: 'deploy' }",
		      "n.prototxt:2:9: unknown key 'stage' in 'state', known are phase, level");
	refuses_layer("layer { name: 'b' type: 'BatchNorm' bottom: 'data' top: 'b' param { lr_mult: 1 } }",
		      "n.prototxt:2:67: 'lr_mult' of a statistic must be 0, since statistics do not learn");
	refuses_layer("layer { name: 'l' type: 'SoftmaxWithLoss' bottom: 'data' loss_param { ignore_label: 3 } }",
		      "n.prototxt:2:85: 'ignore_label' is 3, must not be one of the 4 classes of layer 'l' (from 0): "
		      "all count");
	refuses_layer("layer { name: 'l' type: 'SoftmaxWithLoss' bottom: 'data' loss_param { normalization: NONE } }",
		      "n.prototxt:2:86: 'normalization' is 'NONE', must be one of: VALID, FULL, BATCH_SIZE, 0, 1, 2");
	refuses_layer("layer { name: 'p' type: 'Power' bottom: 'data' top: 'p' power_param { power: 1001 } }",
		      "n.prototxt:2:78: 'power' is 1001, must be from -1000 to 1000");
	refuses_layer("layer { name: 'e' type: 'Exp' bottom: 'data' top: 'e' exp_param { base: 0 } }",
		      "n.prototxt:2:73: 'base' is 0, must be -1 for e, or more than 0 and not 1");
	refuses_layer("layer { name: 'd' type: 'Dropout' bottom: 'data' dropout_param { scale_train: false } }",
		      "n.prototxt:2:79: 'scale_train' is 'false', must be one of: true");
	refuses("layer { name: 'd' type: 'Data' top: 'd' transform_param { crop_size: 5 rotate: 3 } }",
		"n.prototxt:1:72: unknown key 'rotate' in 'transform_param', known are scale, mirror, crop_size, "
		"mean_file, mean_value, force_color, force_gray, resize_param, noise_param, distort_param, "
		"expand_param, emit_constraint, random_resize_param, random_aspect_ratio_param, img_rand_resize_lower, "
		"img_rand_resize_upper, rand_resize_ratio_lower, rand_resize_ratio_upper, vertical_stretch_lower, "
		"vertical_stretch_upper, horizontal_stretch_lower, horizontal_stretch_upper, allow_upscale, "
		"use_gpu_transform, random_seed, display");
}

Test(prototxt, layers_that_do_not_fit_are_refused)
{
	refuses_layer("layer { name: 'e' type: 'Eltwise' bottom: 'data' bottom: 'data' eltwise_param { coeff: 1 } }",
		      "n.prototxt:2:7: layer 'e' has 1 'coeff' for 2 bottoms, must be a SUM with one for each bottom");
	refuses_layer(
		"layer { name: 's' type: 'Slice' bottom: 'data' top: 'a' top: 'b' slice_param { slice_point: 4 } }",
		"n.prototxt:2:7: layer 's/1' takes 0 channels from 4 on, its input has 4");
	refuses_layer(
		"layer { name: 's' type: 'Slice' bottom: 'data' top: 'a' top: 'b' slice_param { slice_point: 1.5 } }",
		"n.prototxt:2:93: 'slice_point' is '1.5', must be a whole number");
	refuses_layer("layer { name: 's' type: 'Slice' bottom: 'data' top: 'a' top: 'b' top: 'c' }",
		      "n.prototxt:2:7: layer 's' has 0 'slice_point' for 3 tops and 4 channels, must have one point "
		      "less than tops, or none where tops divide the channels");
	refuses_layer("layer { name: 'p' type: 'Pooling' bottom: 'data' top: 'p' top: 'mask' pooling_param { "
		      "kernel_size: 2 } }",
		      "n.prototxt:2:7: layer 'p' (Pooling) has 2 tops, must be 1");
	refuses_layer("layer { name: 'a' type: 'Axpy' bottom: 'data' bottom: 'data' top: 'a' }",
		      "n.prototxt:2:7: layer 'a' has 2 bottoms, must be 3");
	refuses_layer("layer { name: 'x' type: 'Scale' bottom: 'data' top: 'x' scale_param { axis: 0 } }",
		      "n.prototxt:2:69: layer 'x' has 'axis' 0 with 1 bottoms, must be 1 with one and 0 with two");
	refuses_layer("layer { name: 'r' type: 'Reshape' bottom: 'data' top: 'r' reshape_param { shape { dim: [0, 5, "
		      "-1] } } }",
		      "n.prototxt:2:7: layer 'r' cannot reshape 4x9x9 (324 values) to 5x64x1 (320)");
	refuses_layer(
		"layer { name: 'p' type: 'Permute' bottom: 'data' top: 'p' permute_param { order: [1, 0, 2, 3] } }",
		"n.prototxt:2:73: layer 'p' must name each of 4 axes once and leave axis 0, the batch, where it is");
	refuses_layer("layer { name: 's' type: 'ShuffleChannel' bottom: 'data' shuffle_channel_param { group: 3 } }",
		      "n.prototxt:2:7: layer 's' has 3 groups, must divide its 4 channels");
	refuses_layer("layer { name: 'c' type: 'Clip' bottom: 'data' top: 'c' clip_param { min: 1 max: 1 } }",
		      "n.prototxt:2:67: layer 'c' clips to 1 to 1, needs a 'max' above its 'min'");
	refuses_layer("layer { name: 'i' type: 'Interp' bottom: 'data' top: 'i' interp_param { zoom_factor: 65536 } }",
		      "n.prototxt:2:7: layer 'i' is 524289 high and 524289 wide, must be 1 to 65536");
	refuses_layer(
		"layer { name: 'i' type: 'Interp' bottom: 'data' top: 'i' interp_param { height: 3 pad_beg: -1 } }",
		"n.prototxt:2:92: 'pad_beg' is '-1', must be a number from 0 to 0");
	refuses_layer("layer { name: 'i' type: 'InnerProduct' bottom: 'data' top: 'i' inner_product_param { "
		      "num_output: 3 weight_filler { type: 'bilinear' } } }",
		      "n.prototxt:2:7: tensor 'i.weight' has a bilinear filler, which needs four dimensions and square "
		      "windows");
	refuses_layer("layer { name: 's' type: 'SoftmaxWithLoss' bottom: 'data' top: 's' }\nlayer { name: 'r' type: "
		      "'ReLU' bottom: 's' }",
		      "n.prototxt:3:40: layer 'r' reads 's', which is a loss, must be the end of the network");
}

/* Groups of channels are mixed as ShuffleNet does it without a layer of its own, in three spellings. */
Test(prototxt, blobs_of_five_dimensions_are_reshaped_and_permuted)
{
	static const char *const ways[][2] = {
		{"shape { dim: [0, 2, 6, 5, 3] }", "type: 'Reshape' reshape_param { shape { dim: [0, 12, 5, 3] } }"},
		{"shape { dim: [2, -1] } axis: 1 num_axes: 1",
		 "type: 'Reshape' reshape_param { shape { dim: 12 } axis: 1 num_axes: 2 }"},
		{"shape { dim: [-1, 2, 6] } num_axes: 2", "type: 'Flatten' flatten_param { axis: 1 end_axis: 2 }"},
	};

	for (unsigned i = 0; i < 3; i++) {
		char text[1024];
		struct psd_graph graph;

		snprintf(text, sizeof(text),
			 "input: 'data' input_shape { dim: [1, 12, 5, 3] }\n"
			 "layer { name: 'a' type: 'Reshape' bottom: 'data' top: 'a' reshape_param { %s } }\n"
			 "layer { name: 'b' type: 'Permute' bottom: 'a' top: 'b' permute_param { order: [0, 2, 1, 3, "
			 "4] } }\n"
			 "layer { name: 'c' bottom: 'b' top: 'c' %s }\n",
			 ways[i][0], ways[i][1]);
		graph = parse(text);
		cr_assert_eq(graph.n_layers, 4);
		cr_assert(has_shape(layer_named(&graph, "a"), 2, 6, 5 * 3));
		cr_assert(has_shape(layer_named(&graph, "b"), 6, 2, 5 * 3));
		cr_assert(has_shape(layer_named(&graph, "c"), 12, 5, 3));
		psd_graph_release(&graph);
	}
}

#define FIVE                                                                                                           \
	"layer { name: 'a' type: 'Reshape' bottom: 'data' top: 'a' reshape_param { shape { dim: [0, 2, 2, 9, 9] } } "  \
	"}\n"

Test(prototxt, blobs_of_five_dimensions_are_read_by_no_others)
{
	refuses_layer(FIVE "layer { name: 'r' type: 'ReLU' bottom: 'a' top: 'a' }",
		      "n.prototxt:3:7: layer 'r' (ReLU) reads a blob of 5 dimensions, which only Reshape, Permute, "
		      "Flatten and Split can");
	refuses_layer(
		FIVE "layer { name: 'r' type: 'Permute' bottom: 'a' permute_param { order: [0, 2, 1, 3] } }",
		"n.prototxt:3:61: layer 'r' must name each of 5 axes once and leave axis 0, the batch, where it is");
	refuses_layer(FIVE "layer { name: 'r' type: 'Permute' bottom: 'a' permute_param { order: [0, 2, 4, 1, 3] } }",
		      "n.prototxt:3:61: layer 'r' separates all four axes, at most three can move apart");
	refuses_layer(FIVE "layer { name: 'r' type: 'Reshape' bottom: 'a' reshape_param { shape { dim: [2, 2] } axis: "
			   "2 } }\nlayer { name: 's' type: 'Reshape' bottom: 'a' reshape_param { shape { dim: [2, 2] } "
			   "axis: 2 num_axes: 4 } }",
		      "n.prototxt:3:7: layer 'r' cannot reshape 2x2x81 (324 values) to 2x2x2 (8)");
	refuses_layer("layer { name: 's' type: 'Reshape' bottom: 'data' reshape_param { shape { dim: [2, 2] } axis: 2 "
		      "num_axes: 4 } }",
		      "n.prototxt:2:64: layer 's' makes a shape of 4 dimensions from one of 4, must make 2 to 5 and "
		      "replace existing axes");
	refuses_layer("layer { name: 'f' type: 'Flatten' bottom: 'data' flatten_param { axis: 3 end_axis: 2 } }",
		      "n.prototxt:2:7: layer 'f' flattens axes 3 to 2 of a blob that has 3 beside the batch");
}

Test(prototxt, tiles_and_reductions_have_their_limits)
{
	refuses_layer("layer { name: 't' type: 'Tile' bottom: 'data' top: 't' tile_param { axis: 2 tiles: 3 } }",
		      "n.prototxt:2:67: layer 't' tiles axis 2, which must have one position, its input is 4x9x9");
	refuses_layer("layer { name: 't' type: 'Tile' bottom: 'data' top: 't' tile_param { axis: 1 } }",
		      "n.prototxt:2:67: layer 't' has no 'tiles'");
	refuses_layer("layer { name: 'r' type: 'Reduction' bottom: 'data' top: 'r' reduction_param { axis: 0 } }",
		      "n.prototxt:2:85: 'axis' is '0', must be a number from 1 to 3");
	refuses_layer(
		"layer { name: 'r' type: 'Reduction' bottom: 'data' top: 'r' reduction_param { operation: MEAN } }",
		"n.prototxt:2:77: layer 'r' has no 'axis'");
}

/* lr_mult and decay_mult in both syntaxes; a filler's bounds are those of caffe.proto. The weight is 6x4x3x3: 36 inputs
 * and 54 outputs of a sum: sqrt(3/36), sqrt(3/54), sqrt(2/45). */
Test(prototxt, tensors_have_their_ratios_and_start_values)
{
	static const struct {
		const char *filler;
		double value, bound, deviation;
	} fillers[] = {
		{"type: 'constant' value: -0.5", -0.5, 0, 0},
		{"type: 'uniform' min: -1 max: 3", 1, 2, 0},
		{"type: 'gaussian' mean: .5 std: 2e-1", 0.5, 0, 0.2},
		{"type: 'xavier' std: 9", 0, 0.2886751, 0},
		{"type: 'xavier' variance_norm: FAN_OUT", 0, 0.2357023, 0},
		{"type: 'msra' variance_norm: 2", 0, 0, 0.2108185},
	};

	for (size_t i = 0; i < sizeof(fillers) / sizeof(fillers[0]); i++) {
		char text[1024];
		struct psd_graph graph;

		snprintf(text, sizeof(text),
			 "input: 'data' input_shape { dim: [1, 4, 9, 9] }\nlayer { name: 'c' type: 'Convolution' "
			 "bottom: 'data' top: 'c' param { lr_mult: 0 } param { decay_mult: 0.5 } convolution_param { "
			 "num_output: 6 kernel_size: 3 weight_filler { %s } } }\nlayers { name: 'p' type: "
			 "INNER_PRODUCT bottom: 'c' top: 'p' blobs_lr: 3 blobs_lr: 4 weight_decay: 0 "
			 "inner_product_param { num_output: 2 } }",
			 fillers[i].filler);
		graph = parse(text);
		cr_expect_float_eq(graph.tensors[0].start_value, fillers[i].value, 1e-6, "%s", fillers[i].filler);
		cr_expect_float_eq(graph.tensors[0].start_bound, fillers[i].bound, 1e-6, "%s", fillers[i].filler);
		cr_expect_float_eq(graph.tensors[0].start_deviation, fillers[i].deviation, 1e-6, "%s",
				   fillers[i].filler);
		cr_expect(graph.tensors[0].rate_ratio == 0 && graph.tensors[0].decay_ratio == 1);
		cr_expect(graph.tensors[1].rate_ratio == 1 && graph.tensors[1].decay_ratio == 0.5f);
		cr_expect(graph.tensors[2].rate_ratio == 3 && graph.tensors[2].decay_ratio == 0);
		cr_expect(graph.tensors[3].rate_ratio == 4 && graph.tensors[3].decay_ratio == 1);
		psd_graph_release(&graph);
	}
}

/* The second top is the probabilities. */
GRAPH_TEST(prototxt, the_first_weight_is_the_losss,
	   parse("input: 'data' input_shape { dim: [1, 4] } state { phase: TRAIN level: 0 }\n"
		 "layer { name: 'l' type: 'SoftmaxWithLoss' bottom: 'data' top: 'l' top: 'p' "
		 "loss_weight: 0.5 loss_weight: 0 }"))
{
	cr_assert_eq(layer_named(&graph, "l")->settings.loss.weight, 0.5);
}

Test(prototxt, a_label_that_is_no_class_may_be_ignored)
{
	static const char *const labels[] = {"255", "-1", "4"}; /* classes are 0 to 3 */

	for (unsigned i = 0; i < 3; i++) {
		char text[512];
		struct psd_graph graph;

		snprintf(text, sizeof(text),
			 "input: 'data' input_shape { dim: [1, 4] }\nlayer { name: 'l' type: 'SoftmaxWithLoss' "
			 "bottom: 'data' loss_param { ignore_label: %s normalization: VALID } }",
			 labels[i]);
		graph = parse(text);
		cr_assert_eq(layer_named(&graph, "l")->kind, &psd_layer_softmax_loss);
		psd_graph_release(&graph);
	}
}

/* PSPNet's: mean and variance are behind what is learned, and frozen stays as it is. */
Test(prototxt, forks_batch_norms_have_their_statistics_behind)
{
	struct psd_graph graph = parse(
		"input: 'data' input_shape { dim: [1, 4, 9, 9] }\n"
		"layer { name: 'a' type: 'BN' bottom: 'data' top: 'a' param { lr_mult: 2 } param { lr_mult: 3 } param "
		"{ lr_mult: 0 } param { lr_mult: 0 } bn_param { slope_filler { type: 'constant' value: 5 } frozen: "
		"false } }\n"
		"layer { name: 'b' type: 'BN' bottom: 'a' top: 'b' param { lr_mult: 2 } bn_param { frozen: true } }\n"
		"layer { name: 'c' type: 'BN' bottom: 'b' top: 'c' bn_param { scale_filler { value: 7 } } }\n");
	const struct psd_affine_settings *frozen = &layer_named(&graph, "b")->settings.affine;

	cr_assert_eq(graph.n_tensors, 6);
	cr_assert(graph.tensors[0].rate_ratio == 2 && graph.tensors[1].rate_ratio == 3);
	cr_assert(graph.tensors[2].rate_ratio == 0 && graph.tensors[3].rate_ratio == 0 && frozen->is_fixed);
	cr_assert(graph.tensors[4].rate_ratio == 1 && graph.tensors[5].rate_ratio == 1);
	cr_assert(graph.tensors[0].start_value == 5 && graph.tensors[4].start_value == 7);
	cr_assert(!layer_named(&graph, "a")->settings.affine.is_fixed);
	cr_assert(layer_named(&graph, "a")->settings.affine.epsilon == 1e-5 && frozen->epsilon == 1e-5);
	cr_assert(layer_named(&graph, "c")->settings.affine.epsilon == 1e-9);
	psd_graph_release(&graph);
	refuses_layer("layer { name: 'b' type: 'BN' bottom: 'data' top: 'b' param { } param { } param { lr_mult: 1 } }",
		      "n.prototxt:2:80: 'lr_mult' of a statistic must be 0, since statistics do not learn");
}

#define NAMED(name, bottom, outputs, param)                                                                            \
	"layer { name: '" name "' type: 'Convolution' bottom: '" bottom "' top: '" name "' " param                     \
	" convolution_param { num_output: " outputs " kernel_size: 3 pad: 1 } }\n"
#define FOUR "input: 'data' input_shape { dim: [1, 4, 9, 9] }\n"
#define BOTH "param { name: 'w' lr_mult: 2 } param { name: 'b' }"

/* Counted once, used twice: 4 x 4 x 3 x 3 weights and 4 biases; the third has its own. */
GRAPH_TEST(prototxt, layers_share_parameters_by_name,
	   parse(FOUR NAMED("one", "data", "4", BOTH) NAMED("two", "one", "4", BOTH) NAMED("own", "two", "4", "")))
{
	const struct psd_layer *one = layer_named(&graph, "one"), *two = layer_named(&graph, "two");

	cr_assert_eq(graph.n_tensors, 4);
	cr_assert_eq(graph.parameters, 2 * (4 * 4 * 9 + 4));
	cr_assert(one->n_tensors == 2 && one->n_shared == 0);
	cr_assert(two->n_tensors == 0 && two->n_shared == 2 && two->first_tensor == one->first_tensor);
	cr_assert_eq(two->forward_flops, one->forward_flops);
	cr_assert_eq(two->read_bytes, one->read_bytes);
	cr_assert(two->is_trained);
	cr_assert_str_eq(graph.tensors[2].name, "own.weight");
}

/* Matrices that layers share cannot go as factors. */
Test(prototxt, a_shared_matrix_has_no_factors)
{
	static const char text[] = "input: 'data' input_shape { dim: [1, 8] }\n"
				   "layer { name: 'a' type: 'InnerProduct' bottom: 'data' top: 'a' param: 'w' param: "
				   "'b' inner_product_param { num_output: 8 } }\n"
				   "layer { name: 'c' type: 'InnerProduct' bottom: 'a' top: 'c' param: 'w' param: 'b' "
				   "inner_product_param { num_output: 8 } }\n";
	struct psd_graph graph = parse(text);

	cr_assert_eq(graph.parameters, 8 * 8 + 8);
	cr_assert_eq(graph.tensors[0].rows, 0);
	psd_graph_release(&graph);
}

Test(prototxt, parameters_that_cannot_be_shared_are_refused)
{
	refuses(FOUR NAMED("one", "data", "4", BOTH) NAMED("two", "one", "4", "param { name: 'w' } param { }"),
		"n.prototxt:3:72: layer 'two' must share all parameters of 'one' in their order, or none");
	refuses(FOUR NAMED("one", "data", "4", BOTH) NAMED("two", "one", "4", "param: 'b' param: 'w'"),
		"n.prototxt:3:73: layer 'two' must share all parameters of 'one' in their order, or none");
	refuses(FOUR NAMED("one", "data", "4", BOTH) NAMED("two", "one", "8", BOTH),
		"n.prototxt:3:7: layer 'two' has the parameters weight 8x4x3x3, bias 8, must have those of 'one' to "
		"share them: weight 4x4x3x3, bias 4");
	refuses(FOUR NAMED("one", "data", "4", BOTH)
			NAMED("two", "one", "4", "param { name: 'w' lr_mult: 3 } param: 'b'"),
		"n.prototxt:3:7: layer 'two' has another learning rate or decay for 'one.weight' than 'one', with "
		"which it shares the tensor");
	refuses(FOUR "layer { name: 'n' type: 'BatchNorm' bottom: 'data' top: 'n' param { name: 'm' lr_mult: 0 } }\n"
		     "layer { name: 'o' type: 'BatchNorm' bottom: 'n' top: 'o' param { name: 'm' lr_mult: 0 } }\n",
		"n.prototxt:3:64: layer 'o' must share all parameters of 'n' in their order, or none");
	refuses(FOUR "layer { name: 's' type: 'Split' bottom: 'data' top: 's' param: 'w' }\n"
		     "layer { name: 't' type: 'Split' bottom: 's' top: 't' param: 'w' }\n",
		"n.prototxt:3:61: layer 't' must share all parameters of 'data' in their order, or none");
}

#define SOFTMAX "layer { name: 'p' type: 'Softmax' bottom: 'data' top: 'p' }\n"

static void assert_softmax(const char *others, unsigned n_layers, const struct psd_layer_kind *kind)
{
	char text[1024];
	struct psd_graph graph;

	snprintf(text, sizeof(text), FOUR SOFTMAX "%s", others);
	graph = parse(text);
	cr_assert_eq(graph.n_layers, n_layers, "%s", others);
	for (unsigned i = 0; i < n_layers; i++)
		if (!strcmp(graph.layers[i].name, "p"))
			cr_assert_eq(graph.layers[i].kind, kind, "%s", others);
	psd_graph_release(&graph);
}

/* Caffe trains by a layer that is named a loss alone. Layers that measure do not count, nor do readers of a later blob
 * of the same name. */
Test(prototxt, a_softmax_is_a_loss_only_at_the_end_of_a_net_without_one)
{
	static const char read[] = "layer { name: 'r' type: 'ReLU' bottom: 'p' top: 'r' }\n";
	static const char loss[] = "layer { name: 'l' type: 'SoftmaxWithLoss' bottom: 'data' top: 'l' }\n";
	char both[512];

	assert_softmax("", 2, &psd_layer_softmax_loss);
	assert_softmax(read, 3, &psd_layer_softmax);
	assert_softmax("layer { name: 'a' type: 'Accuracy' bottom: 'p' top: 'a' }", 2, &psd_layer_softmax_loss);
	assert_softmax("layer { name: 'r' type: 'ReLU' bottom: 'p' top: 'r' include { phase: TEST } }", 2,
		       &psd_layer_softmax_loss);
	assert_softmax("layer { name: 't' type: 'TanH' bottom: 'data' top: 'p' }\n"
		       "layer { name: 'r' type: 'ReLU' bottom: 'p' top: 'r' }",
		       4, &psd_layer_softmax_loss);
	assert_softmax(loss, 2, NULL);
	snprintf(both, sizeof(both), "%s%s", loss, read);
	assert_softmax(both, 4, &psd_layer_softmax);
}

/* As in Caffe names are no keys. Protocol buffers' flags may have a capital. */
GRAPH_TEST(prototxt, layers_may_have_the_same_name_or_none,
	   parse(FOUR "layer { name: 'r' type: 'ReLU' bottom: 'data' top: 'a' }\n"
		      "layer { name: 'r' type: 'TanH' bottom: 'a' top: 'b' }\n"
		      "layer { type: 'Sigmoid' bottom: 'b' top: 'c' }\n"
		      "layer { type: 'InnerProduct' bottom: 'c' top: 'd' inner_product_param { "
		      "num_output: 3 bias_term: False } }\n"))
{
	cr_assert_eq(layer_named(&graph, "r")->kind, &psd_layer_relu);
	cr_assert_eq(layer_named(&graph, "r#2")->kind, &psd_layer_tanh);
	cr_assert_eq(layer_named(&graph, "Sigmoid")->kind, &psd_layer_sigmoid);
	cr_assert_eq(graph.parameters, 3 * 4 * 9 * 9);
}

/* He et al. 2014: 1 + 4 + 16 windows of each channel. Along 9 positions, 2 windows have 5 positions and one of padding.
 * 4 windows have 3 positions and 3 of padding, 2 of them before. */
GRAPH_TEST(prototxt, a_pyramid_is_one_column,
	   parse(FOUR "layer { name: 's' type: 'SPP' bottom: 'data' top: 's' spp_param { "
		      "pyramid_height: 3 pool: MAX } }\n"))
{
	const struct psd_window *window = &layer_named(&graph, "s/level2")->settings.pool.window;

	cr_assert(has_shape(layer_named(&graph, "s"), 4 * (1 + 4 + 16), 1, 1));
	cr_assert(has_shape(layer_named(&graph, "s/level1"), 4, 2, 2));
	cr_assert(window->kernel.height == 3 && window->stride.width == 3 && window->pad.height == 2);
}

/* Sides of 9: every second position is 5 of them, and 2 new positions between each two make 5 + 4 * 2 of that. */
GRAPH_TEST(prototxt, maps_are_resized_as_said,
	   parse("input: 'data' input_shape { dim: [1, 4, 9, 9] }\n"
		 "layer { name: 'a' type: 'Interp' bottom: 'data' top: 'a' interp_param { shrink_factor: 2 "
		 "zoom_factor: 3 } }\n"
		 "layer { name: 'b' type: 'Interp' bottom: 'a' top: 'b' interp_param { height: 5 width: 20 } }\n"
		 "layer { name: 'c' type: 'Deconvolution' bottom: 'b' top: 'c' convolution_param { num_output: 4 "
		 "group: 4 kernel_size: 4 stride: 2 pad: 1 bias_term: false weight_filler { type: 'bilinear' } } }\n"))
{
	/* Caffe's BilinearFiller of a side of 4: 1/4, 3/4, 3/4, 1/4 */
	static const double side[] = {0.25, 0.75, 0.75, 0.25};

	cr_assert(has_shape(layer_named(&graph, "a"), 4, 13, 13));
	cr_assert(has_shape(layer_named(&graph, "b"), 4, 5, 20));
	cr_assert(has_shape(layer_named(&graph, "c"), 4, 10, 40));
	cr_assert_eq(graph.parameters, 4 * 4 * 4);
	for (unsigned e = 0; e < 4 * 4 * 4; e++)
		cr_assert_float_eq(psd_tensor_bilinear(&graph.tensors[0], e), side[e / 4 % 4] * side[e % 4], 1e-6);
}

Test(prototxt, cycles_and_misread_labels_are_refused)
{
	refuses_layer("layer { name: 'a' type: 'ReLU' bottom: 'b' top: 'a' }\nlayer { name: 'b' type: 'ReLU' bottom: "
		      "'a' top: 'b' }",
		      "n.prototxt:2:40: cyclic graph: layer 'a' reads 'b', which is a top of a layer below it");
	refuses_layer("layer { name: 'a' type: 'Accuracy' bottom: 'data' top: 'a' }\n"
		      "layer { name: 'r' type: 'ReLU' bottom: 'a' top: 'r' }",
		      "n.prototxt:3:40: layer 'r' reads 'a', which does not exist");
	refuses("layer { name: 'd' type: 'Data' top: 'data' top: 'label' transform_param { crop_size: 5 } }\n"
		"layer { name: 'r' type: 'ReLU' bottom: 'label' top: 'r' }\n",
		"n.prototxt:2:40: layer 'r' reads the label 'label', which only losses may read");
}

TEST_ROW(prototxt, a_solver_is_no_network,
	 refuses("net: \"train_val.prototxt\"\nbase_lr: 0.01\n",
		 "n.prototxt:1:1: unknown key 'net' in 'network', known are name, input, "
		 "input_dim, input_shape, layer, layers, state, force_backward, debug_info"))

/* ---- the text format ---- */

Test(prototxt, broken_text_is_refused_where_it_breaks)
{
	refuses("layer {", "n.prototxt:1:8: the file ends, must continue with the name of a field");
	refuses("name: \"x\nlayer {}", "n.prototxt:1:7: this string has no end on its line");
	refuses("name }", "n.prototxt:1:6: found '}', must be ':' or '{'");
	refuses("name: }", "n.prototxt:1:7: found '}', must be a value");
	refuses("name: [1 2]", "n.prototxt:1:10: found '2', must be ',' or ']'");
	refuses("}", "n.prototxt:1:1: found '}', must be the name of a field");
	refuses("layer < }", "n.prototxt:1:9: found '}', must be the name of a field");
	refuses("name: 'a' 'b'", "n.prototxt:1:11: a string in pieces is not accepted, write it in one");
	refuses("name: '\\101'", "n.prototxt:1:9: numeric escapes are not accepted");
}

Test(prototxt, nesting_is_bounded)
{
	char text[2 * 100 + 1] = {0};

	for (unsigned i = 0; i < 100; i++)
		memcpy(text + 2 * i, "a{", 2);
	refuses(text, "n.prototxt:1:66: the value is nested deeper than 32 levels"); /* the 33rd brace */
}

/* The last layer of a prediction, whose bottoms are a map of 8 x 32 x 32 and the data of 3 x 32 x 32. */
struct predicted {
	struct psd_shape shape;
	uint64_t flops, parameters;
};

static struct predicted predict(const char *text)
{
	struct psd_graph graph;
	struct psd_error err = {0};
	struct predicted found;

	cr_assert_eq(psd_prototxt_parse(&graph, "n.prototxt", text, strlen(text), &predicts, &err), PSD_OK, "%s\n%s",
		     err.text, text);
	found.shape = graph.layers[graph.n_layers - 1].shape;
	found.flops = graph.layers[graph.n_layers - 1].forward_flops;
	found.parameters = graph.layers[graph.n_layers - 1].parameters;
	psd_graph_release(&graph);
	return found;
}

#define OF_8(type, param)   INPUT CONV_8 "kernel_size: 1 } }\n" OTHER(type, param)
#define OF_MAP(type, param) INPUT "layer { name: 'o' type: '" type "' bottom: 'data' top: 'o' " param " }\n"

/* caffe.proto and the forks' files say what a field means; the FLOPs are 4 for each value of a loss or a norm, and 1
 * for each value that is pooled or sorted. */
Test(prototxt, work_of_layers_for_predictions)
{
	static const struct {
		const char *text;
		uint32_t channels, height, width;
		uint64_t flops, parameters;
	} rows[] = {
		/* three channels from the 8, as the second bottom has */
		{OF_8("Crop", "crop_param { axis: 1 }"), 3, 32, 32, 0, 0},
		{OF_8("Crop", "crop_param { axis: 3 }"), 8, 32, 32, 0, 0},
		/* one ratio without its inverse, and 1 */
		{OF_8("PriorBox", "prior_box_param { min_size: 30 aspect_ratio: 2 flip: false }"), 32 * 32 * 2 * 4, 2,
		 1, 0, 0},
		/* 8 positions a side from 2 x 2 groups of channels */
		{OF_8("PSROIPooling", "psroi_pooling_param { output_dim: 2 group_size: 2 spatial_scale: 0.5 }"), 2, 2,
		 2, 8 * 32 * 32, 0},
		{OF_MAP("Upsample", "upsample_param { upsample_h: 48 upsample_w: 64 }"), 3, 48, 64, 0, 0},
		{OF_MAP("Unpooling", "unpooling_param { unpool_size: 96 }"), 3, 96, 96, 0, 0},
		{OF_MAP("MVN", ""), 3, 32, 32, 4 * 3 * 32 * 32, 0},
		/* 3 x 32 x 32 numbers of rows; a row of 4 for each, and a shift */
		{OF_MAP("Embed", "embed_param { input_dim: 100 num_output: 4 }"), 4, 3 * 32 * 32, 1, 0, 100 * 4 + 4},
		{OF_MAP("Embed", "embed_param { input_dim: 100 num_output: 4 bias_term: false }"), 4, 3 * 32 * 32, 1, 0,
		 100 * 4},
		{OF_8("DetectionOutput", "detection_output_param { num_classes: 2 keep_top_k: 50 }"), 7, 50, 1,
		 8 * 32 * 32, 0},
		{OF_8("HingeLoss", ""), 1, 1, 1, 4 * 8 * 32 * 32, 0},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct predicted found = predict(rows[i].text);

		cr_expect(is(found.shape, rows[i].channels, rows[i].height, rows[i].width), "%ux%ux%u\n%s",
			  found.shape.channels, found.shape.height, found.shape.width, rows[i].text);
		cr_expect_eq(found.flops, rows[i].flops, "%llu FLOPs\n%s", (unsigned long long)found.flops,
			     rows[i].text);
		cr_expect_eq(found.parameters, rows[i].parameters, "%llu parameters\n%s",
			     (unsigned long long)found.parameters, rows[i].text);
	}
}

Test(prototxt, layers_for_predictions_say_what_they_need)
{
	static const struct {
		const char *text, *words;
	} rows[] = {
		{OF_MAP("Crop", ""), "layer 'o' needs two bottoms"},
		{INPUT CONV_8 "kernel_size: 3 } }\n" OTHER("Crop", ""),
		 "layer 'o' needs a first bottom that is as large as the second"},
		{OF_8("PriorBox", ""), "layer 'o' needs prior_box_param { min_size }"},
		{INPUT "layer { name: 'u' type: 'Upsample' bottom: 'data' top: 'u' upsample_param { scale: 60 } }\n"
		       "layer { name: 'o' type: 'PriorBox' bottom: 'u' bottom: 'data' top: 'o' "
		       "prior_box_param { min_size: 30 aspect_ratio: 2 } }\n",
		 "layer 'o' needs fewer priors"},
		{OF_8("ROIPooling", "roi_pooling_param { pooled_w: 7 }"),
		 "layer 'o' needs the sizes of what it pools to"},
		{OF_MAP("Upsample", "upsample_param { scale: 3000 }"), "layer 'o' needs a smaller scale"},
		{OF_MAP("Embed", "embed_param { num_output: 4 }"),
		 "layer 'o' needs embed_param { input_dim, num_output }"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct psd_graph graph;
		struct psd_error err = {0};

		cr_assert_eq(
			psd_prototxt_parse(&graph, "n.prototxt", rows[i].text, strlen(rows[i].text), &predicts, &err),
			PSD_EINVAL, "%s", rows[i].text);
		cr_expect_not_null(strstr(err.text, rows[i].words), "%s", err.text);
	}
}
