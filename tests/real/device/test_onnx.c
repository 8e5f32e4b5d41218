/* What psd makes of ONNX files computes what their makers compute: the networks of tests/onnx/, with the values of
 * their initializers, against PyTorch's outputs, gradients and statistics in double, which lie beside them. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/file.h"
#include "engine/model/onnx/onnx.pb-c.h"
#include "real/device/cpu/cpu.h"
#include "tests/real/net.h"

/* Of the largest expected value: a dozen layers in float, each of sums of up to some hundred products. */
#define OUTPUT_TOLERANCE_RATIO 5e-6
/* Of a tensor's norm, as for networks that are written for psd. */
#define GRADIENT_TOLERANCE_RATIO 5e-5
#define LOSS_TOLERANCE_RATIO	 2e-6
#define STATE_TOLERANCE_RATIO	 2e-6

enum { PATH_BYTES = 128, NAME_BYTES = 128 };

/* psd names a tensor after the module that has it where the file tells it; elsewhere this says which initializer it is
 * and, for an initializer that has another name than PyTorch's parameter, which parameter that is. */
struct renamed {
	const char *tensor, *initializer, *parameter;
};

/* ---- expected values ---- */

struct expected {
	double *values;
	uint64_t count;
};

/* The rows "name,element,value" of the file. */
static struct expected read_expected(const char *network, const char *name)
{
	char path[PATH_BYTES], line[256];
	struct expected expected = {0};
	const size_t length = strlen(name);
	FILE *in;

	snprintf(path, sizeof(path), "tests/onnx/%s.csv", network);
	in = fopen(path, "r");
	cr_assert(in, "%s", path);
	while (fgets(line, sizeof(line), in)) {
		const char *comma = line + length;

		if (strncmp(line, name, length) != 0 || *comma != ',')
			continue;
		expected.values = realloc(expected.values, (expected.count + 1) * sizeof(*expected.values));
		cr_assert(expected.values);
		cr_assert_eq(strtoull(comma + 1, NULL, 10), expected.count);
		expected.values[expected.count++] = strtod(strchr(comma + 1, ',') + 1, NULL);
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

static const struct renamed *find_renamed(const struct renamed renamed[], const char *tensor)
{
	for (; renamed && renamed->tensor; renamed++)
		if (!strcmp(renamed->tensor, tensor))
			return renamed;
	return NULL;
}

static const Onnx__Tensor *find_initializer(const Onnx__Graph *graph, const char *name)
{
	for (size_t i = 0; i < graph->n_initializer; i++)
		if (!strcmp(graph->initializer[i]->name, name))
			return graph->initializer[i];
	cr_assert(false, "no initializer is called '%s'", name);
	return NULL;
}

/* "head-2.weight" is "head.weight" of a layer whose name another has taken. */
static void undo_number(char *name)
{
	char *dot = strrchr(name, '.'), *dash = strrchr(name, '-');

	if (dot && dash && dash < dot && dash + 1 + strspn(dash + 1, "0123456789") == dot)
		memmove(dash, dot, strlen(dot) + 1);
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

/* The initializer's name, and the name of PyTorch's parameter. */
static const char *name_of(const struct psd_tensor *tensor, const struct renamed renamed[], bool is_parameter,
			   char name[NAME_BYTES])
{
	const struct renamed *other = find_renamed(renamed, tensor->name);

	snprintf(name, NAME_BYTES, "%s", other ? other->initializer : tensor->name);
	if (other && other->parameter && is_parameter)
		snprintf(name, NAME_BYTES, "%s", other->parameter);
	if (!other)
		undo_number(name);
	return name;
}

static void copy_values(const Onnx__Graph *graph, const struct psd_graph *psd, const struct psd_tensor *tensor,
			const struct renamed renamed[], float *to)
{
	char name[NAME_BYTES];
	const Onnx__Tensor *from = find_initializer(graph, name_of(tensor, renamed, false, name));
	const uint64_t columns = from->n_dims ? (uint64_t)from->dims[from->n_dims - 1] : 1;
	const uint64_t rows = tensor->elements / columns;
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
	const size_t length = strlen(state->name), rest = length - strlen(ending);

	snprintf(name, NAME_BYTES, "%.*s", (int)(strcmp(state->name + rest, ending) ? length : rest), state->name);
	undo_number(name);
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
	onnx__model__free_unpacked(model, NULL);
	free(input.values);
	free(labels.values);
	return net;
}

/* What the loss is of: (batch, places, classes), the way files have it too. Owned by the caller. */
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

/* PyTorch writes matrices as psd does, but for places before channels and, where a model says so itself, inputs before
 * outputs: these are not here. */
static void compare_gradients(const struct net *net, const char *network, const struct renamed renamed[])
{
	double worst = 0;

	for (unsigned t = 0; t < net->graph->n_tensors; t++) {
		const struct psd_tensor *tensor = &net->graph->tensors[t];
		char name[NAME_BYTES], row[NAME_BYTES + 16];
		struct expected expected;
		double distance;

		snprintf(row, sizeof(row), "gradient %s", name_of(tensor, renamed, true, name));
		expected = read_expected(network, row);
		cr_assert_eq(expected.count, tensor->elements, "%s", tensor->name);
		distance = net_distance(net->gradients[t], expected.values, expected.count);
		worst = fmax(worst, distance);
		cr_expect_lt(distance, GRADIENT_TOLERANCE_RATIO, "%s: gradient of %s is off by %g of its norm", network,
			     tensor->name, distance);
		free(expected.values);
	}
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

static void check_step(const char *network, const struct renamed renamed[])
{
	struct net net = make_net(network, renamed);

	compare_output(&net, network);
	compare_loss(network, net_run(&net));
	compare_gradients(&net, network, renamed);
	compare_states(&net, network);
	net_release(&net);
}

static void check_output(const char *network, const struct renamed renamed[])
{
	struct net net = make_net(network, renamed);

	compare_output(&net, network);
	net_release(&net);
}

Test(onnx, maps_step_as_torchscript_wrote)
{
	check_step("maps-torchscript", NULL);
}

/* It has folded the normalisations into convolutions, which have biases by that. */
Test(onnx, maps_compute_what_dynamo_wrote)
{
	static const struct renamed biases[] = {
		{"stem.bias", "stem.weight_bias", NULL},
		{"grouped.bias", "grouped.weight_bias", NULL},
		{0},
	};

	check_output("maps-dynamo", biases);
}
