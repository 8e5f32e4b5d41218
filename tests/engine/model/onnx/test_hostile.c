/* Files that no exporter writes: bytes cut off, fields left out, sizes that overflow, chains that double. Each becomes
 * a graph, or an error with a text, soon and in little memory. */
#define _POSIX_C_SOURCE 200809L
#define _XOPEN_SOURCE	700
#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/model/onnx/onnx.h"
#include "tests/engine/model/onnx/onnx_file.h"
#include "tests/scratch_folder.h"
#include "tests/test_with.h"

/* Maps, and attention with all that is spelt out around it. */
static const char network[] = "input x f32[b,3,8,8]\n"
			      "w: f32[8,3,3,3]\n"
			      "v: f32[8]\n"
			      "s: i64[3] = 0 8 -1\n"
			      "a = Conv(x, w, v) kernel_shape=[3,3] pads=[1,1,1,1]\n"
			      "n = BatchNormalization(a, v, v, v, v) epsilon=0.001\n"
			      "r = Reshape(n, s)\n"
			      "t = Transpose(r) perm=[0,2,1]\n"
			      "m = ReduceMean(t) axes=[-1]\n"
			      "d = Sub(t, m)\n"
			      "two: f32[] = 2\n"
			      "q = Pow(d, two)\n"
			      "e = ReduceMean(q) axes=[-1]\n"
			      "eps: f32[] = 0.00001\n"
			      "ee = Add(e, eps)\n"
			      "ro = Sqrt(ee)\n"
			      "l = Div(d, ro)\n"
			      "at = Attention(l, l, l) q_num_heads=2 kv_num_heads=2 is_causal=1\n"
			      "g = Gelu(at) approximate=\"tanh\"\n"
			      "sh = Shape(g)\n"
			      "zero: i64[] = 0\n"
			      "n0 = Gather(sh, zero)\n"
			      "un: i64[1] = 0\n"
			      "n1 = Unsqueeze(n0, un)\n"
			      "all: i64[1] = -1\n"
			      "to = Concat(n1, all) axis=0\n"
			      "f = Reshape(g, to)\n"
			      "wf: f32[512,10]\n"
			      "y = Gemm(f, wf)\n";

/* The file may be accepted or refused; an error has a text. */
static enum psd_status parse(const void *bytes, size_t length)
{
	struct psd_graph graph;
	struct psd_error err = {0};
	const enum psd_status status = psd_onnx_parse(&graph, "m.onnx", bytes, length, NULL, &err);

	if (!status)
		psd_graph_release(&graph);
	else
		cr_assert(err.status == status && !strncmp(err.text, "m.onnx: ", 8), "%s", err.text);
	return status;
}

static enum psd_status parse_model(const Onnx__Model *model)
{
	size_t length;
	uint8_t *bytes = onnx_file_pack(model, &length);
	const enum psd_status status = parse(bytes, length);

	free(bytes);
	return status;
}

static void refuses_bytes(const char *bytes, size_t length)
{
	struct psd_graph graph;
	struct psd_error err = {0};

	cr_assert_eq(psd_onnx_parse(&graph, "m.onnx", bytes, length, NULL, &err), PSD_EINVAL);
	cr_assert_str_eq(err.text, "m.onnx: the file is not an ONNX model");
}

Test(onnx_hostile, no_bytes_and_other_bytes_are_no_model)
{
	refuses_bytes("", 0); /* a message without fields: no graph */
	refuses_bytes("name: AlexNet", 13);
	refuses_bytes("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 11);
	refuses_bytes("\x3a\x7f", 2); /* a graph of 127 bytes, none of which follows */
}

Test(onnx_hostile, network_cut_off_anywhere_is_refused_or_a_graph)
{
	Onnx__Model *model = onnx_file_of(network);
	size_t length;
	uint8_t *bytes = onnx_file_pack(model, &length);

	cr_assert_eq(parse(bytes, length), PSD_OK);
	for (size_t n = 0; n < length; n++) {
		uint8_t *cut = malloc(n + 1); /* its own block, so that a sanitizer sees the end */

		cr_assert_not_null(cut);
		memcpy(cut, bytes, n);
		(void)parse(cut, n);
		free(cut);
	}
	free(bytes);
	onnx__model__free_unpacked(model, NULL);
}

/* Each byte as 0, as 255, and with each bit changed. */
Test(onnx_hostile, network_with_any_byte_changed_is_refused_or_a_graph)
{
	Onnx__Model *model = onnx_file_of(network);
	size_t length;
	uint8_t *bytes = onnx_file_pack(model, &length);

	for (size_t i = 0; i < length; i++) {
		const uint8_t right = bytes[i];

		for (unsigned bit = 0; bit < 10; bit++) {
			bytes[i] = bit < 8 ? (uint8_t)(right ^ 1u << bit) : bit == 8 ? 0 : 255;
			(void)parse(bytes, length);
		}
		bytes[i] = right;
	}
	free(bytes);
	onnx__model__free_unpacked(model, NULL);
}

/* One field after the other of one message after the other; what is left is freed as before. */
#define WITHOUT(pointer)                                                                                               \
	do {                                                                                                           \
		void *const kept_ = (pointer);                                                                         \
		(pointer) = NULL;                                                                                      \
		(void)parse_model(model);                                                                              \
		(pointer) = kept_;                                                                                     \
	} while (0)
#define WITH(field, value)                                                                                             \
	do {                                                                                                           \
		const size_t kept_ = (size_t)(field);                                                                  \
		(field) = (value);                                                                                     \
		(void)parse_model(model);                                                                              \
		(field) = kept_;                                                                                       \
	} while (0)

static void leave_out_attributes(const Onnx__Model *model, Onnx__Node *node)
{
	for (size_t k = 0; k < node->n_attribute; k++) {
		Onnx__Attribute *attribute = node->attribute[k];
		const Onnx__Attribute kept = *attribute;

		WITHOUT(attribute->name);
		WITH(attribute->n_ints, 0);
		attribute->has_i = !kept.has_i;
		attribute->i = INT64_MIN;
		(void)parse_model(model);
		attribute->i = INT64_MAX;
		(void)parse_model(model);
		attribute->has_f = !kept.has_f;
		attribute->f = -1e30f;
		(void)parse_model(model);
		attribute->has_s = false;
		(void)parse_model(model);
		*attribute = kept;
	}
}

Test(onnx_hostile, network_without_any_field_is_refused_or_a_graph)
{
	Onnx__Model *model = onnx_file_of(network);
	Onnx__Graph *graph = model->graph;

	for (size_t i = 0; i < graph->n_node; i++) {
		Onnx__Node *node = graph->node[i];

		WITHOUT(node->op_type);
		WITHOUT(node->name);
		for (size_t n = 0; n < node->n_input; n++)
			WITH(node->n_input, n);
		WITH(node->n_output, 0);
		leave_out_attributes(model, node);
	}
	for (size_t i = 0; i < graph->n_initializer; i++) {
		Onnx__Tensor *tensor = graph->initializer[i];

		WITHOUT(tensor->name);
		WITH(tensor->n_dims, 0);
		tensor->data_location = 1;
		tensor->has_data_location = true;
		(void)parse_model(model);
		tensor->has_data_location = false;
	}
	WITHOUT(graph->input[0]->name);
	WITHOUT(graph->input[0]->type->tensor_type->shape);
	WITHOUT(graph->input[0]->type->tensor_type);
	WITHOUT(graph->input[0]->type);
	WITHOUT(graph->output[0]->name);
	WITH(graph->n_output, 0);
	WITH(graph->n_input, 0);
	WITH(model->n_opset_import, 0);
	cr_assert_eq(parse_model(model), PSD_OK); /* all of it is back */
	onnx__model__free_unpacked(model, NULL);
}

/* Any operator upon any kind of value: of no inputs up to four, each of them data, numbers, a parameter, noise,
 * scores, labels or left out. */
Test(onnx_hostile, any_operator_takes_any_inputs_or_says_why_not)
{
	static const char *const ops[] = {"Conv",
					  "ConvTranspose",
					  "Gemm",
					  "MatMul",
					  "Gather",
					  "MaxPool",
					  "AveragePool",
					  "GlobalAveragePool",
					  "ReduceMean",
					  "BatchNormalization",
					  "LayerNormalization",
					  "LRN",
					  "Softmax",
					  "LogSoftmax",
					  "PRelu",
					  "Add",
					  "Sub",
					  "Mul",
					  "Div",
					  "Pow",
					  "Floor",
					  "Less",
					  "GreaterOrEqual",
					  "IsNaN",
					  "Where",
					  "Concat",
					  "Dropout",
					  "RandomUniform",
					  "RandomUniformLike",
					  "Bernoulli",
					  "Attention",
					  "Reshape",
					  "Flatten",
					  "Squeeze",
					  "Unsqueeze",
					  "Expand",
					  "Slice",
					  "Split",
					  "Transpose",
					  "Shape",
					  "Size",
					  "Identity",
					  "Cast",
					  "CastLike",
					  "Constant",
					  "ConstantOfShape",
					  "Range",
					  "Trilu",
					  "ReduceProd",
					  "GatherElements",
					  "Clip",
					  "Elu",
					  "Max",
					  "Erf",
					  "Not",
					  "And",
					  "Mod",
					  "SoftmaxCrossEntropyLoss"};
	static const char *const values[] = {"", "x", "s", "n", "p", "c", "i", "z", "l", "never"};
	enum { VALUES = sizeof(values) / sizeof(values[0]) };
	char text[1024], inputs[64];

	for (size_t o = 0; o < sizeof(ops) / sizeof(ops[0]); o++)
		for (unsigned i = 0; i < VALUES * VALUES * VALUES; i++) {
			struct psd_graph graph;
			struct psd_error err = {0};

			snprintf(inputs, sizeof(inputs), "%s, %s, %s", values[i % VALUES], values[i / VALUES % VALUES],
				 values[i / VALUES / VALUES]);
			while (strlen(inputs) > 1 && !strcmp(inputs + strlen(inputs) - 2, ", "))
				inputs[strlen(inputs) - 2] = '\0'; /* two, one, none */
			snprintf(text, sizeof(text),
				 "input x f32[1,2,4,4]\ninput l i64[1]\np: f32[4,4]\nc: f32[2] = 1 2\ni: i64[] = 1\n"
				 "z: f32[0] =\nk = Transpose(x) perm=[0,1,3,2]\ns = MatMul(x, k)\n"
				 "n = RandomUniformLike(x)\nnever = IsNaN(x)\nr, q = %s(%s)\nf = Flatten(r)\n"
				 "j = Add(f, r)\ny = SoftmaxCrossEntropyLoss(j, l)\n",
				 ops[o], inputs);
			if (!onnx_file_parse(text, &graph, &err))
				psd_graph_release(&graph);
			else
				cr_assert(err.text[0]);
		}
}

Test(onnx_hostile, node_without_operator_or_output_is_refused)
{
	Onnx__Model *model = onnx_file_of("input x f32[1,8]\na = Relu(x)\ny = Tanh(a)");
	Onnx__Node *node = model->graph->node[1];
	char *const op = node->op_type;
	struct psd_graph graph;
	struct psd_error err = {0};

	for (unsigned i = 0; i < 2; i++) {
		size_t length;
		uint8_t *bytes;

		node->op_type = i ? op : NULL;
		node->n_output = !i;
		bytes = onnx_file_pack(model, &length);
		cr_assert_eq(psd_onnx_parse(&graph, "m.onnx", bytes, length, NULL, &err), PSD_EINVAL);
		cr_assert_str_eq(err.text, "m.onnx: node 1 has no operator or no output");
		free(bytes);
	}
	node->n_output = 1;
	onnx__model__free_unpacked(model, NULL);
}

/* The two halves of a rotation, made of nothing. */
Test(onnx_hostile, halves_of_nothing_are_no_rotation)
{
	onnx_file_refuses("input q f32[1,1,2,4]\nc: f32[2,4] = 1 1 1 1 1 1 1 1\nm = Mul(q, c)\nl, h = Split() axis=-1\n"
			  "n = Neg(h)\nt = Concat(n, l) axis=-1\ns = Mul(t, c)\ny = Add(m, s)",
			  "node '' (Mul) has learned values for some axes of its input, must have them for one axis, "
			  "or summands for all values");
}

TEST_ROW(onnx_hostile, initializers_without_names_count_for_nothing,
	 onnx_file_becomes(": f32[3]\n: f32[2]\nw: f32[8,5]\ninput x f32[1,8]\ny = MatMul(x, w)",
			   "input 8, inner-product 5, softmax-loss 5"))

/* ---- long chains ---- */

static char *chain_of(const char *head, unsigned n, const char *format, const char *tail)
{
	const size_t room = strlen(head) + strlen(tail) + (size_t)n * 64 + 64;
	char *text = malloc(room);
	size_t length;

	cr_assert_not_null(text);
	length = (size_t)snprintf(text, room, "%sv0 = Relu(x)\n", head);
	for (unsigned i = 1; i <= n; i++) {
		char number[16], *hole;

		length += (size_t)snprintf(text + length, room - length, "%s", format);
		for (hole = strchr(text + length - strlen(format), '#'); hole; hole = strchr(hole, '#')) {
			const bool is_new = hole[1] == '+'; /* #+ is this one, #- the one before */

			snprintf(number, sizeof(number), "%05u", is_new ? i : i - 1);
			memmove(hole + 5, hole + 2, strlen(hole + 2) + 1);
			memcpy(hole, number, 5);
			length += 3;
		}
	}
	snprintf(text + length, room - length, "%s", tail);
	return text;
}

static void load_chain(unsigned n, const char *format, unsigned n_layers)
{
	char *text = chain_of("input x f32[1,8]\nv00000 = Identity(x)\n", n, format, "");
	struct psd_graph graph = onnx_file_load(text);

	cr_assert_eq(graph.n_layers, n_layers, "%u", graph.n_layers);
	psd_graph_release(&graph);
	free(text);
}

Test(onnx_hostile, chains_that_double_are_as_long_as_they_are_written)
{
	/* input, as many layers, loss */
	load_chain(60, "v#+ = Mul(v#-, v#-)\n", 62);
	load_chain(60, "v#+ = Add(v#-, v#-)\n", 62);
	load_chain(5000, "v#+ = Mul(v#-, v#-)\n", 5002);
	/* a number and a sum of it with the one before */
	load_chain(2000, "u#+ = Neg(v#-)\nv#+ = Mul(u#+, v#-)\n", 4002);
	load_chain(2000, "v#+ = HardSwish(v#-)\n", 2 + 3 * 2000);
}

Test(onnx_hostile, ten_thousand_nodes_without_names_have_names_of_their_own)
{
	char *text = chain_of("input x f32[1,8]\nv00000 = Identity(x)\n", 10000, "v#+ = Tanh(v#-)\n", "");
	struct psd_graph graph = onnx_file_load(text);

	cr_assert_eq(graph.n_layers, 10002);
	cr_assert_str_eq(graph.layers[1].name, "Tanh");
	cr_assert_str_eq(graph.layers[10000].name, "Tanh-10000");
	psd_graph_release(&graph);
	free(text);
}

Test(onnx_hostile, masks_without_end_are_refused_before_they_are_made)
{
	char *text = chain_of("input x f32[1,8]\ns: i64[2] = 4096 4096\nw00000 = ConstantOfShape(s)\n", 100,
			      "w#+ = Neg(w#-)\n", "y = Where(w00100, x, x)\n");
	struct psd_graph graph;
	struct psd_error err = {0};

	cr_assert_eq(onnx_file_parse(text, &graph, &err), PSD_EINVAL);
	cr_assert_not_null(strstr(err.text, " allowed for a file of this length"), "%s", err.text);
	free(text);
}

/* ---- sizes ---- */

/* None of these is refused for one reason alone; all are refused. */
Test(onnx_hostile, huge_and_empty_tensors_are_refused)
{
	static const char *const texts[] = {
		"input x f32[1,8]\nw: f32[8,4294967295]\ny = MatMul(x, w)",
		"input x f32[1,8]\nw: f32[4294967295,4294967295]\ny = Gemm(x, w)",
		"input x f32[1,8]\nw: f32[0,8]\ny = MatMul(x, w)",
		"input x f32[1,8]\nw: f32[8,8,0]\ny = Conv(x, w)",
		"input x f32[1,8,8]\nw: f32[4294967295,8,65536]\ny = Conv(x, w)",
		"input x f32[1,8,8]\nw: f32[8,4294967295,65536]\ny = ConvTranspose(x, w) group=16777216",
		"input x f32[1,8,8]\nw: f32[8,8,65536]\ny = Conv(x, w) dilations=[65536]",
		"input x i64[1,8]\nw: f32[4294967295,4294967295]\ny = Gather(w, x)",
		"input x f32[1,8]\nw: f32[0]\ny = Mul(x, w)",
		"input x f32[1,8]\nw: f32[4294967295,4294967295,4294967295]\nz = Neg(w)\ny = Mul(x, z)",
		"input x f32[1,8]\nw: f32[]\ns: i64[8] = 4294967295 4294967295 4294967295 4294967295 4294967295 1 1 8\n"
		"e = Expand(x, s)\ny = Flatten(e)",
		"input x f32[1,8]\nw: f32[1,1] = 1\ns: i64[3] = 65536 65536 65536\ne = Expand(w, s)\nz = Neg(e)\n"
		"y = Mul(x, z)",
		"input x f32[1,8]\na: i64[] = 0\nb: f64[] = 1e300\nc: i64[] = 1\nr = Range(a, b, c)\ny = Mul(x, r)",
		"input x f32[1,8]\ns: f32[1] = nan\ny = Reshape(x, s)",
		"input x f32[1,8]\ns: f32[1] = 1e30\ny = Reshape(x, s)",
		"input x f32[1,8]\nw: f32[4,4,4,4]\ns: i64[] = 4294967295\nz = Gather(w, s)\ny = Mul(x, z)",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct psd_graph graph;
		struct psd_error err = {0};

		cr_assert_eq(onnx_file_parse(texts[i], &graph, &err), PSD_EINVAL, "%s", texts[i]);
	}
}

/* ---- numbers ---- */

/* Two fields of one number each are no tensor of two. */
Test(onnx_hostile, numbers_stand_in_one_field)
{
	Onnx__Model *model = onnx_file_of("input x f32[1,8]\nc: f32[2] = 1 2\nz = Neg(c)\ny = Mul(x, z)");
	Onnx__Tensor *tensor = model->graph->initializer[0];

	tensor->n_float_data = 1;
	tensor->int64_data = calloc(1, sizeof(*tensor->int64_data));
	tensor->n_int64_data = 1;
	cr_assert_eq(parse_model(model), PSD_EINVAL);
	onnx__model__free_unpacked(model, NULL);
}

/* A field of another number of values does not count, and is not read: the sides are (4, 2). */
Test(onnx_hostile, numbers_are_those_of_the_field_that_has_all)
{
	Onnx__Model *model = onnx_file_of("input x f32[1,8]\ns: i64[2] = 4 2\ny = Reshape(x, s)");
	Onnx__Tensor *tensor = model->graph->initializer[0];

	tensor->float_data = calloc(1, sizeof(*tensor->float_data));
	tensor->float_data[0] = 8;
	tensor->n_float_data = 1;
	cr_assert_eq(parse_model(model), PSD_OK);
	onnx__model__free_unpacked(model, NULL);
}

static void refuses_external(const struct scratch_folder *folder, const char *where, const char *message)
{
	char text[4400];
	struct psd_graph graph;
	struct psd_error err = {0};
	Onnx__Model *model;
	size_t length;
	uint8_t *bytes;

	snprintf(text, sizeof(text), "input x f32[1,8]\ns: i64[2] = external %s\ny = Reshape(x, s)", where);
	model = onnx_file_of(text);
	bytes = onnx_file_pack(model, &length);
	scratch_folder_write(folder, "m.onnx", bytes, length);
	free(bytes);
	onnx__model__free_unpacked(model, NULL);
	cr_assert_neq(psd_graph_load(&graph, scratch_folder_path(folder, "m.onnx").text, &err), PSD_OK, "%s", where);
	cr_assert_not_null(strstr(err.text, message), "%s: %s", where, err.text);
}

FOLDER_TEST(onnx_hostile, external_data_lies_beside_the_model_and_is_all_there, scratch_folder_make())
{
	const int64_t numbers[2] = {1, 8};
	char name[4200];

	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	scratch_folder_write(&folder, "w.bin", numbers, sizeof(numbers));
	refuses_external(&folder, name, "nnn' is too long");
	scratch_folder_add(&folder, "sub");
	refuses_external(&folder, "absent.bin 0", "absent.bin: cannot be opened: ");
	refuses_external(&folder, "w.bin 1", "w.bin: ends before byte 17");
	refuses_external(&folder, "w.bin 99999999", "w.bin: ends before byte 100000015");
	refuses_external(&folder, "w.bin -8", "w.bin: ends before byte ");
	refuses_external(&folder, "w.bin 99999999999999999999999", "w.bin: ends before byte ");
	refuses_external(&folder, "sub/../w.bin 0", "must lie in a file beside the model");
	refuses_external(&folder, "../w.bin 0", "must lie in a file beside the model");
	refuses_external(&folder, "/dev/zero 0", "must lie in a file beside the model");
	refuses_external(&folder, "sub 0", "sub: ");
}
