/* Networks of ONNX files give the results of the programs that wrote them: the networks of tests/onnx/, with the values
 * of their initializers, against PyTorch's outputs, gradients and statistics in double, which lie beside them. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/file.h"
#include "engine/model/onnx/onnx.h"
#include "engine/model/onnx/onnx.pb-c.h"
#include "real/device/cpu/cpu.h"
#include "tests/real/net.h"
#include "tests/test_with.h"

/* Ratio to the largest expected value: a dozen layers in float, each with sums of up to some hundred products. */
#define OUTPUT_TOLERANCE_RATIO 5e-6
/* Ratio to a tensor's norm, as for networks written for psd. */
#define GRADIENT_TOLERANCE_RATIO 5e-5
#define LOSS_TOLERANCE_RATIO	 2e-6
#define STATE_TOLERANCE_RATIO	 2e-6

enum { PATH_BYTES = 128, NAME_BYTES = 128 };

/* psd names a tensor after the module that has it where the file tells it. Its initializer may have another name, such
 * as "val_7" where the exporter has transposed it. */
struct renamed {
	const char *tensor, *initializer;
};

/* ---- expected values ---- */

struct expected {
	double *values;
	uint64_t count;
};

/* Values of the rows "name,first element,values" of the file. */
static struct expected read_expected(const char *network, const char *name)
{
	char path[PATH_BYTES], line[256], *end;
	struct expected expected = {0};
	const size_t length = strlen(name);
	FILE *in;

	snprintf(path, sizeof(path), "tests/onnx/%s.csv", network);
	in = fopen(path, "r");
	cr_assert(in, "%s", path);
	while (fgets(line, sizeof(line), in)) {
		if (strncmp(line, name, length) != 0 || line[length] != ',')
			continue;
		cr_assert_eq(strtoull(line + length + 1, &end, 10), expected.count);
		while (*end == ',') {
			expected.values = realloc(expected.values, (expected.count + 1) * sizeof(*expected.values));
			cr_assert(expected.values);
			expected.values[expected.count++] = strtod(end + 1, &end);
		}
		cr_assert_eq(*end, '\n', "%s: '%s'", path, line);
	}
	fclose(in);
	return expected;
}

/* ---- the file's values ---- */

static Onnx__Model *unpack(const char *path)
{
	char *bytes;
	size_t length;
	struct psd_error err = {0};
	Onnx__Model *model;

	cr_assert_eq(psd_file_read_bytes(&bytes, &length, (size_t)1 << 20, path, &err), PSD_OK, "%s", err.text);
	model = onnx__model__unpack(NULL, length, (const uint8_t *)bytes);
	free(bytes);
	cr_assert(model && model->graph);
	return model;
}

static const Onnx__Tensor *find_initializer(const Onnx__Graph *graph, const char *name)
{
	for (size_t i = 0; i < graph->n_initializer; i++)
		if (!strcmp(graph->initializer[i]->name, name))
			return graph->initializer[i];
	cr_assert(false, "no initializer is called '%s'", name);
	return NULL;
}

/* "head.weight" of "head-2.weight": another layer has the name. */
static void drop_number(char *name)
{
	char *dot = strrchr(name, '.'), *dash = strrchr(name, '-');

	if (dot && dash && dash < dot && dash + 1 + strspn(dash + 1, "0123456789") == dot)
		memmove(dash, dot, strlen(dot) + 1);
}

static void choose_name(const struct psd_tensor *tensor, const struct renamed renamed[], char name[NAME_BYTES])
{
	snprintf(name, NAME_BYTES, "%s", tensor->name);
	drop_number(name);
	for (; renamed && renamed->tensor; renamed++)
		if (!strcmp(renamed->tensor, tensor->name) || !strcmp(renamed->tensor, name)) {
			snprintf(name, NAME_BYTES, "%s", renamed->initializer);
			return;
		}
}

static bool is_set(const Onnx__Node *node, const char *name)
{
	for (size_t i = 0; i < node->n_attribute; i++)
		if (!strcmp(node->attribute[i]->name, name))
			return node->attribute[i]->i != 0;
	return false;
}

/* Inputs come before outputs, or places before channels. */
static bool is_transposed(const Onnx__Graph *graph, const Onnx__Tensor *initializer, const struct psd_layer *layer)
{
	if (layer->kind == &psd_layer_position || layer->kind == &psd_layer_prefix)
		return true;
	for (size_t n = 0; n < graph->n_node; n++) {
		const Onnx__Node *node = graph->node[n];

		if (node->n_input < 2 || strcmp(node->input[1], initializer->name) != 0)
			continue;
		if (!strcmp(node->op_type, "MatMul") || (!strcmp(node->op_type, "Gemm") && !is_set(node, "transB")))
			return true;
	}
	return false;
}

static void copy_values(const Onnx__Graph *graph, const struct psd_graph *psd, const struct psd_tensor *tensor,
			const struct renamed renamed[], float *to)
{
	char name[NAME_BYTES];
	const Onnx__Tensor *from;
	uint64_t rows, columns;

	choose_name(tensor, renamed, name);
	from = find_initializer(graph, name);
	columns = from->n_dims ? (uint64_t)from->dims[from->n_dims - 1] : 1;
	rows = tensor->elements / columns;
	cr_assert_eq(from->data_type, 1);
	cr_assert_eq(from->raw_data.len, tensor->elements * sizeof(float), "%s", tensor->name);
	if (!is_transposed(graph, from, &psd->layers[tensor->layer])) {
		memcpy(to, from->raw_data.data, from->raw_data.len);
		return;
	}
	for (uint64_t row = 0; row < rows; row++)
		for (uint64_t column = 0; column < columns; column++)
			memcpy(&to[column * rows + row], from->raw_data.data + (row * columns + column) * sizeof(float),
			       sizeof(float));
}

/* Running statistics keep their names, but that psd has no abbreviations. */
static const char *name_of_state(const struct psd_tensor *state, char name[NAME_BYTES])
{
	static const char ending[] = "iance";
	size_t rest;

	choose_name(state, NULL, name);
	rest = strlen(name) - strlen(ending);
	if (!strcmp(name + rest, ending))
		name[rest] = '\0';
	return name;
}

static void copy_states(const Onnx__Graph *graph, struct net *net)
{
	for (unsigned s = 0; s < net->graph->n_states; s++) {
		const struct psd_tensor *state = &net->graph->states[s];
		char name[NAME_BYTES];
		const Onnx__Tensor *from = find_initializer(graph, name_of_state(state, name));
		struct psd_error err = {0};

		cr_assert_eq(from->raw_data.len, state->elements * sizeof(float));
		cr_assert_eq(psd_device_cpu.write_state(net->device, s,
							(const float *)(const void *)from->raw_data.data, &err),
			     PSD_OK, "%s", err.text);
	}
}

/* ---- the network ---- */

/* psd's reader gets the same values. */
static void compare_reading(const struct net *net, const char *path)
{
	struct psd_onnx_file *file;
	struct psd_error err = {0};

	cr_assert_eq(psd_onnx_open(&file, path, NULL, &err), PSD_OK, "%s", err.text);
	for (unsigned t = 0; t < net->graph->n_tensors; t++) {
		const struct psd_tensor *tensor = &net->graph->tensors[t];
		float *values = calloc(tensor->elements, sizeof(*values));
		bool is_there;

		cr_assert(values);
		cr_assert_eq(psd_onnx_values(file, tensor, values, &is_there, &err), PSD_OK, "%s", err.text);
		cr_expect(is_there, "%s: %s", path, tensor->name);
		cr_expect(!memcmp(values, net->parameters[t], tensor->elements * sizeof(*values)), "%s: %s", path,
			  tensor->name);
		free(values);
	}
	psd_onnx_close(file);
}

/* With the file's values, and the samples that the expected values are for. */
static struct net make_net(const char *network, const struct renamed renamed[])
{
	char path[PATH_BYTES];
	const struct expected input = read_expected(network, "input"), labels = read_expected(network, "label");
	struct psd_graph graph;
	struct psd_error err = {0};
	Onnx__Model *model;
	struct net net;

	snprintf(path, sizeof(path), "tests/onnx/%s.onnx", network);
	cr_assert_eq(psd_graph_load(&graph, path, &err), PSD_OK, "%s", err.text);
	net = net_make_graph(graph, (uint32_t)(labels.count / graph.labels));
	cr_assert_eq(labels.count, net.options.batch * net.graph->labels);
	cr_assert_eq(input.count, net.options.batch * net_image_elements(&net));
	for (uint64_t i = 0; i < input.count; i++)
		net.images[i] = (float)input.values[i];
	for (uint64_t i = 0; i < labels.count; i++)
		net.labels[i] = (int32_t)labels.values[i];
	model = unpack(path);
	for (unsigned t = 0; t < net.graph->n_tensors; t++)
		copy_values(model->graph, net.graph, &net.graph->tensors[t], renamed, net.parameters[t]);
	copy_states(model->graph, &net);
	compare_reading(&net, path);
	onnx__model__free_unpacked(model, NULL);
	free(input.values);
	free(labels.values);
	return net;
}

/* The loss's input: (batch, positions, classes), in the order of the files. Owned by the caller. */
static float *read_scores(const struct net *net)
{
	const unsigned loss = net->graph->n_layers - 1, below = net->graph->layers[loss].inputs[0];
	const struct psd_cpu_blob *blob = net->device->layers[below].blob;
	const dnnl_memory_desc_t format = psd_cpu_channels_last(&net->device->layers[below]);
	float *scores = calloc(dnnl_memory_desc_get_size(&format), 1);
	dnnl_primitive_desc_t desc;
	dnnl_primitive_t copy;
	dnnl_memory_t from, to;

	cr_assert(scores);
	cr_assert_eq(dnnl_memory_create(&from, &blob->desc, net->device->engine, blob->value), dnnl_success);
	cr_assert_eq(dnnl_memory_create(&to, &format, net->device->engine, scores), dnnl_success);
	cr_assert_eq(dnnl_reorder_primitive_desc_create(&desc, &blob->desc, net->device->engine, &format,
							net->device->engine, NULL),
		     dnnl_success);
	cr_assert_eq(dnnl_primitive_create(&copy, desc), dnnl_success);
	cr_assert_eq(dnnl_primitive_execute(copy, net->device->stream, 2,
					    (const dnnl_exec_arg_t[]){{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}),
		     dnnl_success);
	cr_assert_eq(dnnl_stream_wait(net->device->stream), dnnl_success);
	dnnl_primitive_destroy(copy);
	dnnl_primitive_desc_destroy(desc);
	dnnl_memory_destroy(from);
	dnnl_memory_destroy(to);
	return scores;
}

/* ---- comparisons ---- */

static void compare_output(struct net *net, const char *network)
{
	const struct expected output = read_expected(network, "output");
	double largest = 0, difference = 0;
	float *scores;

	net->batch.is_training = false;
	(void)net_run_forward(net);
	net->batch.is_training = true;
	scores = read_scores(net);
	cr_assert_eq(output.count, net->options.batch * net->graph->labels * net->graph->classes);
	for (uint64_t i = 0; i < output.count; i++) {
		largest = fmax(largest, fabs(output.values[i]));
		difference = fmax(difference, fabs((double)scores[i] - output.values[i]));
		cr_assert(isfinite(scores[i]));
	}
	cr_log_info("%s: output off by %.1e of its largest\n", network, difference / largest);
	cr_expect_leq(difference, OUTPUT_TOLERANCE_RATIO * largest, "%s: output off by %g of its largest, %g", network,
		      difference / largest, largest);
	free(scores);
	free(output.values);
}

static void compare_loss(const char *network, double loss)
{
	const struct expected expected = read_expected(network, "loss");

	cr_assert_eq(expected.count, 1);
	cr_log_info("%s: loss off by %.1e\n", network, fabs(loss / expected.values[0] - 1));
	cr_expect_lt(fabs(loss / expected.values[0] - 1), LOSS_TOLERANCE_RATIO, "%s: loss %.9g, must be %.9g", network,
		     loss, expected.values[0]);
	free(expected.values);
}

/* PyTorch's parameter has the module's name, or else the initializer's. */
static struct expected read_gradient(const char *network, const struct psd_tensor *tensor,
				     const struct renamed renamed[])
{
	char name[NAME_BYTES], row[NAME_BYTES + 16];
	struct expected expected;

	choose_name(tensor, NULL, name);
	snprintf(row, sizeof(row), "gradient %s", name);
	expected = read_expected(network, row);
	if (expected.count)
		return expected;
	choose_name(tensor, renamed, name);
	snprintf(row, sizeof(row), "gradient %s", name);
	return read_expected(network, row);
}

/* Those that the file has, which lie as psd's do. */
static void compare_gradients(const struct net *net, const char *network, const struct renamed renamed[],
			      unsigned n_expected)
{
	double worst = 0;
	unsigned n = 0;

	for (unsigned t = 0; t < net->graph->n_tensors; t++) {
		const struct psd_tensor *tensor = &net->graph->tensors[t];
		const struct expected expected = read_gradient(network, tensor, renamed);
		double distance;

		if (!expected.count)
			continue;
		n++;
		cr_assert_eq(expected.count, tensor->elements, "%s", tensor->name);
		distance = net_distance(net->gradients[t], expected.values, expected.count);
		worst = fmax(worst, distance);
		cr_expect_lt(distance, GRADIENT_TOLERANCE_RATIO, "%s: gradient of %s is off by %g of its norm", network,
			     tensor->name, distance);
		free(expected.values);
	}
	cr_expect_eq(n, n_expected, "%s: compared %u gradients, must be %u", network, n, n_expected);
	cr_log_info("%s: gradients off by up to %.1e\n", network, worst);
}

/* As a training pass leaves them. */
static void compare_states(const struct net *net, const char *network)
{
	for (unsigned s = 0; s < net->graph->n_states; s++) {
		const struct psd_tensor *state = &net->graph->states[s];
		char name[NAME_BYTES], row[NAME_BYTES + 16];
		float *values = calloc(state->elements, sizeof(*values));
		struct expected expected;
		struct psd_error err = {0};

		cr_assert(values);
		snprintf(row, sizeof(row), "state %s", name_of_state(state, name));
		expected = read_expected(network, row);
		cr_assert_eq(expected.count, state->elements, "%s", state->name);
		cr_assert_eq(psd_device_cpu.read_state(net->device, s, values, &err), PSD_OK, "%s", err.text);
		cr_expect_lt(net_distance(values, expected.values, expected.count), STATE_TOLERANCE_RATIO, "%s: %s",
			     network, state->name);
		free(values);
		free(expected.values);
	}
}

/* The output of a test, and a training pass without dropout, of which so many gradients are known. */
static void check(const char *network, const struct renamed renamed[], unsigned n_gradients)
{
	struct net net = make_net(network, renamed);

	compare_output(&net, network);
	compare_loss(network, net_run(&net));
	compare_gradients(&net, network, renamed, n_gradients);
	compare_states(&net, network);
	net_release(&net);
}

/* ---- the networks ---- */

TEST_ROW(onnx, maps_of_torchscript, check("maps-torchscript", NULL, 20))

/* The exporter has folded the normalisations into convolutions, which thereby have biases: its training differs. */
Test(onnx, maps_of_dynamo)
{
	static const struct renamed biases[] = {
		{"stem.bias", "stem.weight_bias"},
		{"grouped.bias", "grouped.weight_bias"},
		{0},
	};
	struct net net = make_net("maps-dynamo", biases);

	compare_output(&net, "maps-dynamo");
	net_release(&net);
}

static const struct renamed encoder_names[] = {
	{"/Add.weight", "places"},
	{"node_add.weight", "places"},
	{"blocks.0.self_attn.in_proj.weight", "blocks.0.self_attn.in_proj_weight"},
	{"blocks.0.self_attn.in_proj.bias", "blocks.0.self_attn.in_proj_bias"},
	{"blocks.1.self_attn.in_proj.weight", "blocks.1.self_attn.in_proj_weight"},
	{"blocks.1.self_attn.in_proj.bias", "blocks.1.self_attn.in_proj_bias"},
	{0},
};

TEST_ROW(onnx, an_encoder_of_torchscript, check("encoder-torchscript", encoder_names, 14))

static const struct renamed encoder_dynamo_names[] = {
	{"node_add.weight", "places"},
	{"blocks.0.self_attn.weight", "val_7"},
	{"blocks.0.self_attn.bias", "blocks.0.self_attn.in_proj_bias"},
	{"blocks.0.linear1.weight", "val_93"},
	{"blocks.0.linear2.weight", "val_95"},
	{"blocks.1.self_attn.weight", "val_97"},
	{"blocks.1.self_attn.bias", "blocks.1.self_attn.in_proj_bias"},
	{"blocks.1.linear1.weight", "val_177"},
	{"blocks.1.linear2.weight", "val_179"},
	{0},
};
TEST_ROW(onnx, an_encoder_of_dynamo, check("encoder-dynamo", encoder_dynamo_names, 0))

TEST_ROW(onnx, an_encoder_as_dynamo_has_it_at_first, check("encoder-plain", encoder_names, 0))

/* Built of operators from before normalisation over the last axis existed. */
TEST_ROW(onnx, an_encoder_of_old_operators, check("encoder-old", encoder_names, 0))

static const struct renamed gpt2_names[] = {
	{"model.transformer.weight", "embedding_1"},
	{0},
};
TEST_ROW(onnx, gpt2, check("gpt2", gpt2_names, 0))

static const struct renamed tied_torchscript_names[] = {{"/Add.weight", "places.weight"}, {0}};
TEST_ROW(onnx, a_tied_head_of_torchscript, check("tied-torchscript", tied_torchscript_names, 6))

static const struct renamed tied_dynamo_names[] = {{"node_add.weight", "places.weight"}, {0}};
TEST_ROW(onnx, a_tied_head_of_dynamo, check("tied-dynamo", tied_dynamo_names, 6))

#define LAYER(i, name) "model.model.layers." #i "." name ".weight"
static const struct renamed llama_names[] = {
	{LAYER(0, "self_attn.q_proj"), "val_105"}, {LAYER(0, "self_attn.k_proj"), "val_112"},
	{LAYER(0, "self_attn.v_proj"), "val_119"}, {LAYER(0, "self_attn.o_proj"), "val_232"},
	{LAYER(0, "mlp.gate_proj"), "val_237"},	   {LAYER(0, "mlp.up_proj"), "val_239"},
	{LAYER(0, "mlp.down_proj"), "val_240"},	   {LAYER(1, "self_attn.q_proj"), "val_245"},
	{LAYER(1, "self_attn.k_proj"), "val_252"}, {LAYER(1, "self_attn.v_proj"), "val_259"},
	{LAYER(1, "self_attn.o_proj"), "val_368"}, {LAYER(1, "mlp.gate_proj"), "val_373"},
	{LAYER(1, "mlp.up_proj"), "val_375"},	   {LAYER(1, "mlp.down_proj"), "val_376"},
	{"model.lm_head.weight", "val_381"},	   {0},
};
TEST_ROW(onnx, llama, check("llama", llama_names, 2))

static const struct renamed channels_last_torchscript_names[] = {{"/Mul.weight", "layer_scale"}, {0}};
TEST_ROW(onnx, channels_last_of_torchscript, check("channels-last-torchscript", channels_last_torchscript_names, 17))

static const struct renamed channels_last_dynamo_names[] = {
	{"node_mul.weight", "layer_scale"},
	{"wide.weight", "val_4"},
	{"narrow.weight", "val_6"},
	{0},
};
TEST_ROW(onnx, channels_last_of_dynamo, check("channels-last-dynamo", channels_last_dynamo_names, 0))

static const struct renamed moves_torchscript_names[] = {
	{"/Mul.weight", "factors"},
	{"/Add.bias", "summands"},
	{0},
};
TEST_ROW(onnx, moves_of_torchscript, check("moves-torchscript", moves_torchscript_names, 9))

static const struct renamed moves_dynamo_names[] = {
	{"node_mul.weight", "factors"},
	{"node_add.bias", "summands"},
	{"columns.weight", "val_75"},
	{"rows.weight", "val_77"},
	{0},
};
TEST_ROW(onnx, moves_of_dynamo, check("moves-dynamo", moves_dynamo_names, 0))

TEST_ROW(onnx, windows_of_torchscript, check("windows-torchscript", NULL, 10))

static const struct renamed windows_dynamo_names[] = {
	{"attend.weight", "val_15"},
	{"join.weight", "val_33"},
	{0},
};
TEST_ROW(onnx, windows_of_dynamo, check("windows-dynamo", windows_dynamo_names, 0))

TEST_ROW(onnx, functions_of_torchscript, check("functions-torchscript", NULL, 6))

static const struct renamed functions_dynamo_names[] = {
	{"slopes.weight", "val_41"},
	{"slope.weight", "val_47"},
	{0},
};
TEST_ROW(onnx, functions_of_dynamo, check("functions-dynamo", functions_dynamo_names, 0))

/* The file has the table twice, once transposed, as exporters fold it: both uses add to its gradient. */
TEST_ROW(onnx, a_tied_head_that_is_transposed, check("tied-transposed", NULL, 1))

/* A matrix of two layers, each with a bias of its own. */
TEST_ROW(onnx, a_shared_matrix_with_two_biases, check("own-biases", NULL, 3))
