/* Numbers that follow from constants and shapes are computed, however they are stored. Each is a factor of the
 * network's input, or a shape of it, so that a layer tells it. */
#define _POSIX_C_SOURCE 200809L
#define _XOPEN_SOURCE	700
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/model/onnx/onnx.h"
#include "tests/engine/model/onnx/onnx_file.h"
#include "tests/scratch_folder.h"

/* `text` computes c, a number. */
static double number_of(const char *text)
{
	char whole[2048];
	struct psd_graph graph;
	double number;

	snprintf(whole, sizeof(whole), "input x f32[1,4,6]\n%s\ny = Mul(x, c)\n", text);
	graph = onnx_file_load(whole);
	cr_assert(graph.n_layers == 4 && graph.layers[1].kind == &psd_layer_affine, "%s", text);
	number = graph.layers[1].settings.linear.factor;
	psd_graph_release(&graph);
	return number;
}

struct number {
	const char *text;
	double number;
};

static void check(const struct number *numbers, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const double found = number_of(numbers[i].text);

		cr_assert_float_eq(found, numbers[i].number, 1e-6 * fabs(numbers[i].number), "%g of %s", found,
				   numbers[i].text);
	}
}

#define CHECK(numbers) check(numbers, sizeof(numbers) / sizeof((numbers)[0]))

Test(onnx_constants, all_types_and_fields_are_read)
{
	static const struct number numbers[] = {
		{"c: f32[] = 2.5", 2.5},
		{"c: f64[1] = 2.5", 2.5},
		{"c: i64[] = -7", -7},
		{"c: i32[] = -7", -7},
		{"c: i8[] = -7", -7},
		{"c: u8[] = 200", 200},
		{"c: u64[] = 9", 9},
		{"b: b8[] = 1\nm: i64[] = 3\nc = Mul(b, m)", 3}, /* a factor of 1 would be no layer */
		{"c: f32[] = raw 1075838976", 2.5},		 /* 0x40200000 */
		{"c: f64[] = raw 4612811918334230528", 2.5},
		{"c: i64[] = raw -7", -7},
		{"c: i32[] = raw -7", -7},
		{"c: i16[] = raw -7", -7},
		{"c: u16[] = raw 65529", 65529},
		{"c: i8[] = raw -7", -7},
		{"c: u8[] = raw 200", 200},
		{"c: u32[] = raw 4294967289", 4294967289.0},
		{"c: f16[] = raw 16640", 2.5}, /* 0x4100: 1.25 * 2 */
		{"c: f16[] = 16640", 2.5},     /* its bits as an int32 */
		{"c: f16[] = raw 49408", -2.5},
		{"c: f16[] = raw 1", 5.9604644775390625e-08}, /* the least there is */
		{"c: bf16[] = raw 16416", 2.5},		      /* 0x4020 */
		{"c: bf16[] = 16416", 2.5},
	};

	CHECK(numbers);
}

Test(onnx_constants, operators_compute_as_ONNX_says)
{
	static const struct number numbers[] = {
		{"a: f32[] = 7\nb: f32[] = 2\nc = Div(a, b)", 3.5},
		{"a: i64[] = -7\nb: i64[] = 2\nc = Div(a, b)", -3},
		{"a: i64[] = 7\nb: i64[] = 0\nd = Div(a, b)\ne: i64[] = 5\nc = Add(d, e)", 5},
		{"a: i64[] = -7\nb: i64[] = 3\nc = Mod(a, b)", 2},
		{"a: f32[] = 3\nb: f32[] = 2\nc = Pow(a, b)", 9},
		{"a: f32[] = 3\nb: f32[] = 5\nc = Sub(a, b)", -2},
		{"a: f32[] = 3\nb: f32[] = 2\nc = Max(a, b)", 3},
		{"a: f32[] = 3\nb: f32[] = 2\nc = Min(a, b)", 2},
		{"a: f32[] = 9\nc = Sqrt(a)", 3},
		{"a: f32[] = 4\nc = Reciprocal(a)", 0.25},
		{"a: f32[] = -4\nc = Abs(a)", 4},
		{"a: f32[] = 2.5\nc = Floor(a)", 2},
		{"a: f32[] = 2.5\nc = Ceil(a)", 3},
		{"a: f32[] = 2.5\nc = Round(a)", 2}, /* to even */
		{"a: f32[] = 2.75\nc = Cast(a) to=7", 2},
		{"a: f32[] = -2.75\nc = Cast(a) to=6", -2},
		{"a: f32[] = 2.75\nb: i64[] = 3\nd = CastLike(a, b)\nc = Identity(d)", 2},
		{"a: b8[] = 0\nb: f32[] = 5\nd: f32[] = 6\nc = Where(a, b, d)", 6},
		{"a: b8[] = 1\nb: f32[] = 5\nd: f32[] = 6\nc = Where(a, b, d)", 5},
		{"a: i64[3] = 2 3 4\nc = ReduceProd(a) keepdims=0", 24},
		{"c = Constant() value=f32[]{2.5}", 2.5},
		{"c = Constant() value_float=2.5", 2.5},
		{"c = Constant() value_int=7", 7},
		{"c = Constant() value_ints=[7]", 7},
		{"c = Constant() value_floats=[2.5]", 2.5},
		{"s: i64[1] = 1\nc = ConstantOfShape(s) value=f32[1]{2.5}", 2.5},
		/* 10, 7, 4: the last of them */
		{"a: i64[] = 10\nb: i64[] = 2\nd: i64[] = -3\nr = Range(a, b, d)\ni: i64[] = -1\nc = Gather(r, i)", 4},
		/* backwards, from the last: 4, 3, 2; of 5, 2, 3, 4 from the third in steps of 2: 3, 5 */
		{"r: i64[4] = 1 2 3 4\na: i64[1] = -1\nb: i64[1] = -9223372036854775807\nz: i64[1] = 0\n"
		 "s = Slice(r, a, b, z, a)\nj: i64[] = 1\nc = Gather(s, j)",
		 3},
		{"r: i64[4] = 5 2 3 4\na: i64[1] = 2\nb: i64[1] = -9\nz: i64[1] = 0\nd: i64[1] = -2\n"
		 "s = Slice(r, a, b, z, d)\nj: i64[] = 1\nc = Gather(s, j)",
		 5},
		/* means of rows, 2 and 5, largest of columns, 4 5 6; between 3 and 5 */
		{"m: i64[2,3] = 1 2 3 4 5 6\na: i64[1] = 1\nr = ReduceMean(m, a) keepdims=0\nj: i64[] = 1\n"
		 "c = Gather(r, j)",
		 5},
		{"m: i64[2,3] = 1 2 3 4 5 6\na: i64[1] = 0\nr = ReduceMax(m, a) keepdims=0\nl: f32[] = 3\nh: f32[] = "
		 "5\n"
		 "k = Clip(r, l, h)\nj: i64[] = 2\nc = Gather(k, j)",
		 5},
		{"m: f32[2,3] = 1 2 3 4 5 6\ni: i64[2,2] = 0 1 1 -1\ng = GatherND(m, i)\nj: i64[] = 1\nc = Gather(g, "
		 "j)",
		 6},
		{"m: i64[2,2] = 1 2 3 4\ni: i64[1,1] = -1\nu: i64[1,2] = 7 8\ns = ScatterND(m, i, u)\nf: i64[1] = -1\n"
		 "g = Reshape(s, f)\nj: i64[] = 3\nc = Gather(g, j)",
		 8},
		/* [[1, 2], [3, 4]] without what is above: row 1 is 3 4, column 1 is 0 4 */
		{"m: f32[2,2] = 1 2 3 4\nt = Trilu(m) upper=0\ni: i64[] = 0\nr = Gather(t, i) axis=1\nj: i64[] = 1\n"
		 "c = Gather(r, j)",
		 3},
		{"m: f32[2,2] = 1 2 3 4\nk: i64[] = -1\nt = Trilu(m, k) upper=1\ni: i64[2] = 1 0\nr = Gather(t, i)\n"
		 "f: i64[1] = -1\ng = Reshape(r, f)\nj: i64[] = 0\nc = Gather(g, j)",
		 3},
		/* rows and columns: 10 * 2 + 3 */
		{"a: f32[2,1] = 1 20\nb: f32[3] = 1 2 3\ns = Add(a, b)\nf: i64[1] = -1\ng = Reshape(s, f)\nj: i64[] = "
		 "5\n"
		 "c = Gather(g, j)",
		 23},
		/* [[1, 2], [3, 4]] for each of 10 and 20: 20 + 3 */
		{"a: i64[2,2] = 1 2 3 4\nb: i64[2,1,1] = 10 20\ns = Add(a, b)\nf: i64[1] = -1\ng = Reshape(s, f)\n"
		 "j: i64[] = 6\nc = Gather(g, j)",
		 23},
		{"m: i64[2,3] = 1 2 3 4 5 6\nt = Transpose(m)\nf: i64[1] = -1\ng = Reshape(t, f)\nj: i64[] = 3\n"
		 "c = Gather(g, j)",
		 5},
		{"m: i64[2,3] = 1 2 3 4 5 6\nb: i64[1] = 1\ne: i64[1] = 3\nn: i64[1] = 1\nt = Slice(m, b, e, n)\n"
		 "f: i64[1] = -1\ng = Reshape(t, f)\nj: i64[] = 2\nc = Gather(g, j)",
		 5},
		{"a: f32[2] = 1 2\nb: f32[1] = 3\nd = Concat(a, b) axis=0\nj: i64[] = 2\nc = Gather(d, j)", 3},
		{"m: f32[2,2] = 1 2 3 4\ni: i64[1,2] = 1 0\ng = GatherElements(m, i)\nf: i64[1] = -1\nh = Reshape(g, "
		 "f)\n"
		 "j: i64[] = 0\nc = Gather(h, j)",
		 3},
		/* 1 2 1 2 1 2, twice: the last but one */
		{"a: i64[1,2] = 1 2\nr: i64[2] = 2 3\nt = Tile(a, r)\nf: i64[1] = -1\nh = Reshape(t, f)\nj: i64[] = 9\n"
		 "c = Gather(h, j)",
		 2},
		/* the row at 1 */
		{"m: f32[2,2] = 1 2 3 4\ni: i64[1,1] = 1\ng = GatherND(m, i)\nf: i64[1] = -1\nh = Reshape(g, f)\n"
		 "j: i64[] = 0\nc = Gather(h, j)",
		 3},
		{"a: f32[1] = 4\ne: i64[2] = 2 2\nb = Expand(a, e)\nf: i64[1] = -1\nh = Reshape(b, f)\nj: i64[] = 3\n"
		 "c = Gather(h, j)",
		 4},
	};

	CHECK(numbers);
}

Test(onnx_constants, claims_are_0_or_1)
{
	static const struct {
		const char *op;
		double below, equal, above; /* results for 2 and 3, 3 and 3, 4 and 3 */
	} claims[] = {
		{"Less", 1, 0, 0},    {"LessOrEqual", 1, 1, 0},	   {"Equal", 0, 1, 0},
		{"Greater", 0, 0, 1}, {"GreaterOrEqual", 0, 1, 1},
	};
	char text[512];

	for (size_t i = 0; i < sizeof(claims) / sizeof(claims[0]); i++)
		for (unsigned a = 2; a <= 4; a++) {
			const double is = a == 2 ? claims[i].below : a == 3 ? claims[i].equal : claims[i].above;

			snprintf(text, sizeof(text),
				 "a: f32[] = %u\nb: f32[] = 3\nd = %s(a, b)\ne: i64[] = 5\nc = Add(d, e)", a,
				 claims[i].op);
			cr_assert_eq(number_of(text), 5 + is, "%s", text);
		}
	/* 5 + and, or, xor, not */
	cr_assert_eq(number_of("a: b8[] = 1\nb: b8[] = 0\nd = And(a, b)\ne: i64[] = 5\nc = Add(d, e)"), 5);
	cr_assert_eq(number_of("a: b8[] = 1\nb: b8[] = 0\nd = Or(a, b)\ne: i64[] = 5\nc = Add(d, e)"), 6);
	cr_assert_eq(number_of("a: b8[] = 1\nb: b8[] = 1\nd = Xor(a, b)\ne: i64[] = 5\nc = Add(d, e)"), 5);
	cr_assert_eq(number_of("a: b8[] = 0\nd = Not(a)\ne: i64[] = 5\nc = Add(d, e)"), 6);
}

/* ---- shapes ---- */

Test(onnx_constants, shapes_are_put_together_from_shapes)
{
	/* [samples, 4 * 6], as older exporters flatten */
	onnx_file_becomes("input x f32[b,4,6]\ns = Shape(x)\ni: i64[] = 0\nn = Gather(s, i)\nu: i64[1] = 0\n"
			  "n1 = Unsqueeze(n, u)\nall: i64[1] = -1\nto = Concat(n1, all) axis=0\ny = Reshape(x, to)",
			  "input 4x6, reshape 24, softmax-loss 24");
	/* sides by arithmetic: 6 / 2 */
	onnx_file_becomes(
		"input x f32[b,4,6]\ns = Shape(x) start=2\ntwo: i64[1] = 2\nh = Div(s, two)\nz: i64[2] = 0 4\n"
		"to = Concat(z, two, h) axis=0\nr = Reshape(x, to)\nt = Transpose(r) perm=[0,2,1,3]\n"
		"f: i64[3] = 0 2 -1\ny = Reshape(t, f)",
		"input 4x6, reshape 4x2x3, permute 4x3x2, reshape 12x2, softmax-loss 12x2");
	onnx_file_becomes("input x f32[b,4,6]\nn = Size(x)\nu: i64[1] = 0\nn1 = Unsqueeze(n, u)\none: i64[1] = 1\n"
			  "to = Concat(one, n1) axis=0\ny = Reshape(x, to)",
			  "input 4x6, reshape 24, softmax-loss 24");
}

/* ---- beside the model ---- */

FOLDER_TEST(onnx_constants, external_data_is_read_from_its_offset, scratch_folder_make())
{
	const int64_t sides[3] = {77, 1, -1};
	Onnx__Model *model = onnx_file_of("input x f32[1,4,6]\ns: i64[2] = external part.bin 8\n"
					  "w: f32[24,5] = external absent.bin 0\nf = Reshape(x, s)\ny = MatMul(f, w)");
	struct psd_graph graph;
	struct psd_error err = {0};
	size_t length;
	uint8_t *bytes = onnx_file_pack(model, &length);

	scratch_folder_write(&folder, "net.onnx", bytes, length);
	scratch_folder_write(&folder, "part.bin", sides, sizeof(sides));
	cr_assert_eq(psd_graph_load(&graph, scratch_folder_path(&folder, "net.onnx").text, &err), PSD_OK, "%s",
		     err.text);
	cr_assert_str_eq(graph.name, "net");
	cr_assert_eq(graph.parameters, 120); /* nobody needs their values */
	psd_graph_release(&graph);
	free(bytes);
	onnx__model__free_unpacked(model, NULL);
}

/* ---- names ---- */

static void check_names(const char *text, const char *const names[], unsigned n)
{
	struct psd_graph graph = onnx_file_load(text);

	cr_assert_eq(graph.n_layers, n);
	for (unsigned i = 0; i < n; i++)
		cr_assert_str_eq(graph.layers[i].name, names[i]);
	psd_graph_release(&graph);
}

Test(onnx_names, layers_are_named_after_weights_modules_paths_and_nodes)
{
	check_names(
		"input data f32[1,3,8,8]\nlayer1.0.conv1.weight: f32[4,3,3,3]\n"
		"c = Conv(data, layer1.0.conv1.weight) @name=/layer1/other/Conv\n"
		"r = Relu(c) @name=/layer1/layer1.0/relu/Relu\n"
		"t = Tanh(r) @name=node_tanh @scopes=['', 'layer1', 'layer1.0', 'act', 'tanh']\n"
		"s = Sigmoid(t) @name=own\n"
		"e = Exp(s)\n"
		"a = Abs(e) @name=n @scopes=['tail']\n"
		"l = Elu(a) @name=m @scopes=\n",
		(const char *const[]){"data", "layer1.0.conv1", "layer1.0.relu", "act", "own", "Exp", "n", "m", "loss"},
		9);
}

Test(onnx_names, a_name_in_use_gets_a_number)
{
	check_names(
		"input Relu f32[1,8]\na = Relu(Relu)\nb = Relu(a) @name=Relu-3\nc = Relu(b)\nd = Relu(c) @name=Relu-2\n"
		"e = Relu(d)",
		(const char *const[]){"Relu", "Relu-2", "Relu-3", "Relu-4", "Relu-2-2", "Relu-5", "loss"}, 7);
}

Test(onnx_names, long_names_are_cut)
{
	char text[2048], name[600];
	struct psd_graph graph;

	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	snprintf(text, sizeof(text), "input x f32[1,8]\na = Relu(x) @name=%s\nb = Tanh(a) @name=%s", name, name);
	graph = onnx_file_load(text);
	cr_assert_eq(strlen(graph.layers[1].name), 255);
	cr_assert_str_eq(graph.layers[2].name + 247, "-2");
	psd_graph_release(&graph);
}
