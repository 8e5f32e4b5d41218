/* Layers that only a prediction needs: shapes by the operators' specification, FLOPs and parameters by hand. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tests/engine/model/onnx/onnx_file.h"

static const struct psd_model_choices predicts = {.allows_other = true};

/* The graph's last layer of the kind other, as "shape flops parameters" in text. */
static void becomes(const char *text, const char *expected)
{
	struct psd_graph graph;
	struct psd_error err = {0};
	const struct psd_layer *other = NULL;
	char found[96] = "none";

	cr_assert_eq(onnx_file_parse_as(text, &predicts, &graph, &err), PSD_OK, "%s\n%s", err.text, text);
	for (unsigned l = 0; l < graph.n_layers; l++)
		if (graph.layers[l].kind->is_predicted_only)
			other = &graph.layers[l];
	if (other)
		snprintf(found, sizeof(found), "%ux%ux%u %llu %llu", other->shape.channels, other->shape.height,
			 other->shape.width, (unsigned long long)other->forward_flops,
			 (unsigned long long)other->parameters);
	cr_expect_str_eq(found, expected, "%s\n%s", found, text);
	psd_graph_release(&graph);
	/* psd-run refuses it, since it would have to compute */
	cr_expect_eq(onnx_file_parse(text, &graph, &err), PSD_EINVAL, "%s", text);
}

#define MAPS   "input x f32[b,4,6,5]\n"
#define TOKENS "input x i64[b,6]\nt: f32[9,4]\ne = Gather(t, x)\n"

Test(onnx_other, windows_of_any_number_of_sides)
{
	/* 8 of 2 channels, 3 x 3 x 3 windows, pads of 1: as many positions; 2 FLOPs for each weight of an output */
	becomes("input x f32[b,2,4,5,6]\nw: f32[8,2,3,3,3]\ny = Conv(x, w) pads=[1,1,1,1,1,1]\n", "8x20x6 103680 432");
	/* pads of 1 before and 0 after: 6 - 2 + 1 = 5 and 5 - 2 + 1 = 4 positions */
	becomes(MAPS "w: f32[3,4,3,3]\nv: f32[3]\ny = Conv(x, w, v) pads=[1,1,0,0]\n", "3x5x4 4320 111");
	becomes(MAPS "y = MaxPool(x) kernel_shape=[2,2] strides=[2,2] pads=[0,0,1,1]\n", "4x3x3 144 0");
	becomes(MAPS "w: f32[4,2,2,2]\ny = ConvTranspose(x, w) strides=[2,2] output_padding=[1,1]\n",
		"2x13x11 1920 32");
	becomes("input x f32[b,2,4,5,6]\ny = GlobalMaxPool(x)\nz = Relu(y)\nw = AveragePool(x) kernel_shape=[4,5,6]\n"
		"u = Add(z, w)\n",
		"2x1x1 240 0");
}

Test(onnx_other, norms_and_maps)
{
	becomes(MAPS "s: f32[4]\nh: f32[4]\ny = GroupNormalization(x, s, h) num_groups=2\n", "4x6x5 960 8");
	becomes(MAPS "s: f32[4]\nh: f32[4]\ny = InstanceNormalization(x, s, h)\n", "4x6x5 960 8");
	/* a norm of two groups, as exporters spell it: no parameters but those behind it */
	becomes(MAPS "g: i64[3] = 0 2 -1\ns: f32[2] = 1 1\nh: f32[2] = 0 0\nr = Reshape(x, g)\n"
		     "y = InstanceNormalization(r, s, h)\n",
		"60x2x1 960 0");
	becomes(MAPS "e: f32[0]\nk: f32[4] = 1 1 2 3\ny = Resize(x, e, k) mode=\"nearest\"\n", "4x12x15 0 0");
	becomes(MAPS "k: i64[4] = 1 4 3 10\ny = Resize(x, , , k) mode=\"linear\"\n", "4x3x10 960 0");
	becomes(MAPS "k: i64[8] = 0 0 1 2 0 0 0 0\ny = Pad(x, k) mode=\"reflect\"\n", "4x7x7 0 0");
	becomes("input x f32[b,8,6,4]\ny = DepthToSpace(x) blocksize=2 mode=\"DCR\"\nz = Relu(y)\n"
		"k: i64[1] = 3\nw, i = TopK(z, k)\n",
		"2x12x3 0 0");
}

Test(onnx_other, sequences)
{
	/* matrices of four gates: 6 positions x 2 x 4 x 5 x (4 + 5); W 20 x 4, R 20 x 5, biases 40 */
	becomes(TOKENS
		"w: f32[1,20,4]\nr: f32[1,20,5]\nv: f32[1,40]\nu = Transpose(e) perm=[1,0,2]\n"
		"y = LSTM(u, w, r, v) hidden_size=5\na: i64[1] = 1\ns = Squeeze(y, a)\nz = Transpose(s) perm=[1,0,2]\n",
		"6x5x1 2160 220");
	/* attention of 6 places to 3: 2 x 6 x 3 x 4 for the scores, and as many for the sum */
	becomes(TOKENS
		"k: i64[3] = 0 3 8\nw: f32[8,4]\nr = Reshape(e, k)\nv = MatMul(r, w)\nt2 = Transpose(v) perm=[0,2,1]\n"
		"s = MatMul(e, t2)\nc: f32[] = 0.5\nq = Mul(s, c)\np = Softmax(q)\ny = MatMul(p, v)\n",
		"4x6x1 144 0");
	/* rows of a table by what is counted from the tokens */
	becomes(TOKENS "p: f32[7,4]\na: i64[] = 1\nc = CumSum(x, a)\ng = Gather(p, c)\ny = Add(e, g)\n", "4x6x1 0 28");
	becomes(TOKENS "a: i64[1] = 1\ny = ReduceMax(e, a) keepdims=0\n", "4x1x1 24 0");
}

Test(onnx_other, a_second_input_is_predicted)
{
	struct psd_graph graph;
	struct psd_error err = {0};
	const char *const text = MAPS "input t f32[b,3]\nw: f32[4,3]\nv = Gemm(t, w) transB=1\na: i64[2] = 2 3\n"
				      "u = Unsqueeze(v, a)\ny = Add(x, u)\n";

	cr_assert_eq(onnx_file_parse_as(text, &predicts, &graph, &err), PSD_OK, "%s", err.text);
	cr_expect_eq(graph.parameters, 12);
	cr_expect_eq(psd_graph_predicted_only(&graph).n_layers, 2); /* the input t, and the sum over positions */
	cr_expect_str_eq(psd_graph_predicted_only(&graph).first, "t");
	psd_graph_release(&graph);
}

Test(onnx_other, computed_weights_count)
{
	struct psd_graph graph;
	struct psd_error err = {0};
	const char *const text = MAPS "s: i64[4] = 3 4 1 1\nw = ConstantOfShape(s) value=f32[1]{0.5}\nq: i8[2,3,1,1]\n"
				      "f: f32[] = 0.1\nv = DequantizeLinear(q, f)\nc = Conv(x, w)\ny = Conv(c, v)\n";

	cr_assert_eq(onnx_file_parse_as(text, &predicts, &graph, &err), PSD_OK, "%s", err.text);
	cr_expect_eq(graph.parameters, 12 + 6);
	psd_graph_release(&graph);
}

Test(onnx_other, operators_of_other_domains_count_as_bytes_with_a_doubt)
{
	struct psd_graph graph;
	struct psd_error err = {0};

	cr_assert_eq(onnx_file_parse_as(MAPS "y = FastGelu(x) @domain=com.microsoft\n", &predicts, &graph, &err),
		     PSD_OK, "%s", err.text);
	cr_expect_str_eq(graph.doubts,
			 "1 operators of other domains than ONNX's count as bytes alone, first 'FastGelu' "
			 "in 'com.microsoft'\n");
	psd_graph_release(&graph);
}

Test(onnx_other, parts_and_named_axes)
{
	/* 6 x 5 x 4 x 3 products; the matrix of 3 x 4 counts */
	becomes(MAPS "w: f32[3,4]\ny = Einsum(x, w) equation=\"bchw,kc->bkhw\"\n", "3x6x5 720 12");
	/* positions 3 to the end, then those before: a part of what lies in two pieces */
	becomes(MAPS "a: i64[1] = 3\nm: i64[1] = 9\nz: i64[1] = 0\nd: i64[1] = 2\nu = Slice(x, a, m, d)\n"
		     "v = Slice(x, z, a, d)\nc = Concat(u, v) axis=2\nt = Transpose(c) perm=[0,2,3,1]\n"
		     "k: i64[3] = 1 30 4\nr = Reshape(t, k)\nl: i64[1] = 1\nn: i64[1] = 7\nq = Slice(r, l, n, l)\n"
		     "y = ReduceMax(q) keepdims=0 axes=[1]\n",
		"4x1x1 24 0");
	becomes(MAPS "i: i64[2,2] = 0 1 0 3\ny = GatherND(x, i)\n", "2x5x6 0 0");
	/* a factor of each map, which is repeated before the product */
	becomes(MAPS "g = GlobalAveragePool(x)\ns = Sigmoid(g)\nk: i64[4] = 1 4 6 5\nu = Expand(s, k)\ny = Mul(x, u)\n",
		"4x6x5 120 0");
}

/* The first states of 0 are no parameters. */
Test(onnx_other, first_states_of_recurrent_layers)
{
	becomes(TOKENS "w: f32[1,20,4]\nr: f32[1,20,5]\nv: f32[1,40]\nh: f32[1,1,5] = 0 0 0 0 0\n"
		       "u = Transpose(e) perm=[1,0,2]\ny = LSTM(u, w, r, v, , h, h) hidden_size=5\n",
		"6x5x1 2160 220");
}

/* Shapes that contradict each other, and shapes that depend on values, stay refused with psd-run's words. */
Test(onnx_other, wrong_files_stay_refused)
{
	static const char *const texts[] = {
		MAPS "w: f32[3,5,1,1]\ny = Conv(x, w)\n",
		MAPS "y = TfIdfVectorizer(x)\n",
		"input x f32[b,4]\nw: f32[5,3]\ny = Gemm(x, w)\n",
		MAPS "w: f32[7]\ny = Add(x, w)\n",
		TOKENS
		"w: f32[1,20,3]\nr: f32[1,20,5]\nu = Transpose(e) perm=[1,0,2]\ny = LSTM(u, w, r) hidden_size=5\n",
		MAPS "k: i64[4] = 1 4 0 3\ny = Resize(x, , , k) mode=\"nearest\"\n",
	};

	for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct psd_graph graph;
		struct psd_error err = {0}, strict = {0};

		cr_expect_eq(onnx_file_parse_as(texts[i], &predicts, &graph, &err), PSD_EINVAL, "%s", texts[i]);
		cr_expect_eq(onnx_file_parse(texts[i], &graph, &strict), PSD_EINVAL);
		cr_expect_str_eq(err.text, strict.text);
	}
}

Test(onnx_other, all_mistakes_are_said_at_once)
{
	struct psd_graph graph;
	struct psd_error err = {0};
	const char *const text = MAPS
		"a = TfIdfVectorizer(x) @name=first\nb = Relu(a)\nc = StringSplit(x) @name=second\nd = Add(b, c)\n";

	cr_assert_eq(onnx_file_parse_as(text, &predicts, &graph, &err), PSD_EINVAL);
	cr_expect_str_eq(err.text,
			 "m.onnx: node 'first' (TfIdfVectorizer) is an operator that has no layer in psd; node "
			 "'second' (StringSplit) is an operator that has no layer in psd");
}

/* Large weights of networks without values are one number, which needs no memory. */
Test(onnx_other, filled_weights_of_any_size_are_parameters)
{
	struct psd_graph graph;
	struct psd_error err = {0};
	const char *const text = "input x f32[b,4096,7,7]\ns: i64[4] = 8192 4096 7 7\nw = ConstantOfShape(s)\n"
				 "k: i64[1] = 8192\ng = ConstantOfShape(k) value=f32[1]{1}\nh = ConstantOfShape(k)\n"
				 "c = Conv(x, w)\ny = BatchNormalization(c, g, h, h, g)\n";

	cr_assert_eq(onnx_file_parse_as(text, &predicts, &graph, &err), PSD_OK, "%s", err.text);
	cr_expect_eq(graph.parameters, UINT64_C(8192) * 4096 * 49 + 2 * 8192);
	psd_graph_release(&graph);
}
