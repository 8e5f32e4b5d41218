/* Shapes and work of operators by the standard's specification (github.com/onnx/onnx, Operators.md), a row each. A
 * multiplication and an addition count 2; what a value of an elementwise function costs is in families.c. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "tests/engine/model/onnx/onnx_file.h"

static const struct psd_model_choices predicts = {.allows_other = true};

struct row {
	const char *text;
	/* output of a sample, without sides of 1; for a sequence the values of a position are the channels */
	unsigned channels, height, width;
	unsigned long long flops, parameters;
};

/* The last layer that only a prediction has. */
static void check_row(const struct row *row)
{
	struct psd_graph graph;
	struct psd_error err = {0};
	const struct psd_layer *other = NULL;

	cr_assert_eq(onnx_file_parse_as(row->text, &predicts, &graph, &err), PSD_OK, "%s\n%s", err.text, row->text);
	for (unsigned l = 0; l < graph.n_layers; l++)
		if (graph.layers[l].kind->is_predicted_only)
			other = &graph.layers[l];
	cr_assert_not_null(other, "no such layer\n%s", row->text);
	cr_expect(other->shape.channels == row->channels && other->shape.height == row->height &&
			  other->shape.width == row->width,
		  "%ux%ux%u\n%s", other->shape.channels, other->shape.height, other->shape.width, row->text);
	cr_expect_eq(other->forward_flops, row->flops, "%llu FLOPs\n%s", (unsigned long long)other->forward_flops,
		     row->text);
	cr_expect_eq(other->parameters, row->parameters, "%llu parameters\n%s", (unsigned long long)other->parameters,
		     row->text);
	psd_graph_release(&graph);
}

#define CHECK_ROWS(...)                                                                                                \
	do {                                                                                                           \
		static const struct row rows[] = {__VA_ARGS__};                                                        \
                                                                                                                       \
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)                                            \
			check_row(&rows[i]);                                                                           \
	} while (0)

/* 4 x 6 x 5 is 120 values. */
#define MAPS "input x f32[b,4,6,5]\n"
/* 6 rows of 4 */
#define ROWS "input x i64[b,6]\nt: f32[9,4]\ne = Gather(t, x)\n"
/* products of each row with each */
#define SCORES ROWS "u = Transpose(e) perm=[0,2,1]\nq = MatMul(e, u)\n"
/* the rows, as recurrent operators read them: positions, samples, values */
#define STEPS ROWS "u = Transpose(e) perm=[1,0,2]\n"

Test(onnx_families, functions_of_each_value)
{
	CHECK_ROWS({MAPS "y = Asin(x)\n", 4, 6, 5, 120, 0}, {MAPS "y = Hardmax(x) axis=1\n", 4, 6, 5, 4 * 120, 0},
		   {MAPS "y = LpNormalization(x) axis=1\n", 4, 6, 5, 5 * 120, 0},
		   /* one of four factors for each channel */
		   {MAPS "s: f32[4,1,1]\ny = Mod(x, s)\n", 4, 6, 5, 120, 4},
		   {MAPS "r = Relu(x)\ny = Mean(x, r)\n", 4, 6, 5, 120, 0},
		   /* the values that a condition chooses from are no parameters */
		   {MAPS "z: f32[4,6,5]\nr = Relu(x)\nm = Greater(x, r)\ny = Where(m, x, z)\n", 4, 6, 5, 120, 0},
		   /* more positions than a layer has: two of 40,000 are channels */
		   {"input x f32[b,4]\nk: i64[3] = -1 1 4\nr = Reshape(x, k)\nn: i64[3] = 1 80000 4\nv = Expand(r, n)\n"
		    "y = Asin(v)\n",
		    2 * 4, 40000, 1, 80000 * 4, 0},
		   /* a map of means is broadcast, the smaller input is first */
		   {MAPS "g = ReduceL1(x) axes=[2,3]\ny = BitwiseAnd(g, x)\n", 4, 6, 5, 120, 0});
}

Test(onnx_families, windows)
{
	CHECK_ROWS(/* (5 - 2) / 2 rounded up is 2, so 3 columns; 6 / 2 rows; 4 values each */
		   {MAPS "y = LpPool(x) kernel_shape=[2,2] strides=[2,2] ceil_mode=1\n", 4, 3, 3, 36 * 4, 0},
		   /* 6 / 2 and 5 / 2 rounded up, whatever the window */
		   {MAPS "y = LpPool(x) kernel_shape=[3,3] strides=[2,2] auto_pad=\"SAME_UPPER\"\n", 4, 3, 3, 36 * 9,
		    0},
		   {MAPS "y = GlobalLpPool(x)\n", 4, 1, 1, 0, 0},
		   /* two values with one between them span three: 6 - 2 and 5 - 2 */
		   {MAPS "y = MaxPool(x) kernel_shape=[2,2] dilations=[2,2]\n", 4, 4, 3, 48 * 4, 0},
		   /* two groups: an output of 54 reads 2 channels of 3 x 3 */
		   {MAPS "w: f32[6,2,3,3]\ny = Conv(x, w) group=2 strides=[2,2] auto_pad=\"SAME_LOWER\"\n", 6, 3, 3,
		    2 * 54 * 2 * 9, 6 * 2 * 9},
		   /* each of 120 values goes into 3 channels of 3 x 3 outputs */
		   {MAPS "w: f32[4,3,3,3]\ny = ConvTranspose(x, w) group=2 strides=[2,2] auto_pad=\"SAME_UPPER\"\n", 6,
		    12, 10, 2 * 120 * 3 * 9, 4 * 3 * 9},
		   /* 2 (3 - 1) + 2 is 6 a side; two sides are one here */
		   {"input x f32[b,2,3,3,3]\nw: f32[2,3,2,2,2]\ny = ConvTranspose(x, w) strides=[2,2,2]\n", 3, 36, 6,
		    2 * 54 * 3 * 8, 2 * 3 * 8});
}

Test(onnx_families, larger_maps)
{
	CHECK_ROWS(/* between two values in each of two axes */
		   {"opset 9\n" MAPS "k: f32[4] = 1 1 2 2\ny = Upsample(x, k) mode=\"linear\"\n", 4, 12, 10, 8 * 480,
		    0},
		   {"opset 10\n" MAPS "k: f32[4] = 1 1 2 3\ny = Resize(x, k) mode=\"nearest\"\n", 4, 12, 15, 0, 0},
		   {MAPS "r: i64[4] = 1 1 2 3\ny = Tile(x, r)\n", 4, 12, 15, 0, 0},
		   {MAPS "p: i64[8] = 0 1 0 2 0 0 1 0\ny = Pad(x, p) mode=\"edge\"\n", 5, 7, 7, 0, 0});
}

Test(onnx_families, products)
{
	CHECK_ROWS({"input x f32[b,4]\nw: f32[4,3]\ny = Gemm(x, w) alpha=0.5\n", 3, 1, 1, 2 * 3 * 4, 3 * 4},
		   {"input x f32[b,4]\nr = Relu(x)\ny = Gemm(x, r) transB=1\n", 1, 1, 1, 2 * 4, 0},
		   /* scores of 6 rows with 3 from 4 values, and as many for the sums */
		   {"opset 23\n" ROWS "k: i64[3] = 0 3 8\nw: f32[8,4]\nr = Reshape(e, k)\nv = MatMul(r, w)\n"
		    "y = Attention(e, v, v) q_num_heads=2 kv_num_heads=2\n",
		    4, 6, 1, 2 * 6 * 3 * 4 + 2 * 6 * 3 * 4, 0},
		   {ROWS "y = Einsum(e, e) equation=\"bik,bjk->bij\"\n", 6, 6, 1, 2 * 6 * 6 * 4, 0},
		   /* the trace of each product: a name that the result lacks is summed over */
		   {ROWS "y = Einsum(e, e) equation=\"bik,bjk->bk\"\n", 4, 1, 1, 2 * 6 * 6 * 4, 0});
}

Test(onnx_families, recurrent_operators)
{
	CHECK_ROWS(/* three gates of 5: 6 steps multiply 15 x (4 + 5); weights of inputs and outputs, two biases */
		   {STEPS "w: f32[1,15,4]\nr: f32[1,15,5]\nv: f32[1,30]\ny = GRU(u, w, r, v) hidden_size=5\n", 6, 5, 1,
		    2 * 6 * 15 * 9, 15 * 9 + 30},
		   {STEPS "w: f32[1,5,4]\nr: f32[1,5,5]\ny = RNN(u, w, r) hidden_size=5\n", 6, 5, 1, 2 * 6 * 5 * 9,
		    5 * 9},
		   /* the state after the last step */
		   {STEPS "w: f32[1,15,4]\nr: f32[1,15,5]\nv, h = GRU(u, w, r) hidden_size=5\ny = Asin(h)\n", 5, 1, 1,
		    5, 0},
		   /* both directions, and first states that are learned */
		   {STEPS "w: f32[2,20,4]\nr: f32[2,20,5]\nh: f32[2,1,5]\n"
			  "y = LSTM(u, w, r, , , h) hidden_size=5 direction=\"bidirectional\"\n",
		    6, 2, 5, 2 * 2 * 6 * 20 * 9, 2 * 20 * 9 + 10});
}

Test(onnx_families, parts_of_values)
{
	CHECK_ROWS({MAPS "y = ReduceL2(x) axes=[2,3]\n", 4, 1, 1, 120, 0},
		   {MAPS "y = ArgMax(x) axis=1 keepdims=0\n", 5, 6, 1, 120, 0},
		   {MAPS "y = ArgMin(x) axis=1\n", 6, 5, 1, 120, 0},
		   {"opset 9\n" MAPS "y = Slice(x) starts=[1] ends=[9] axes=[1]\nz = Asin(y)\n", 3, 6, 5, 90, 0},
		   {ROWS "a = ArgMax(e) axis=2\ny = GatherElements(e, a) axis=2\n", 6, 1, 1, 0, 0},
		   {MAPS "k: i64[1] = 2\nv, i = TopK(x, k) axis=1\n", 2, 6, 5, 0, 0},
		   /* channels 0 and 3, from a list that is not in order */
		   {MAPS "i: i64[2] = 3 0\ny = Gather(x, i) axis=1\n", 2, 6, 5, 0, 0});
}

/* Values of which no view has the wanted order, and scores, are copied; the copy is viewed. */
Test(onnx_families, copies)
{
	CHECK_ROWS(
		{SCORES "y = Transpose(q) perm=[0,2,1]\n", 6, 6, 1, 0, 0},
		{SCORES "k: i64[2] = 0 36\nr = Reshape(q, k)\ny = Asin(r)\n", 36, 1, 1, 36, 0},
		{SCORES "k: i64[4] = 1 3 6 6\nr = Expand(q, k)\ny = Asin(r)\n", 3, 6, 6, 3 * 36, 0},
		{SCORES "y = Concat(q, q) axis=2\n", 12, 6, 1, 0, 0},
		/* with constants, which are learned */
		{MAPS "k: f32[1,2,6,5]\ny = Concat(x, k) axis=1\n", 6, 6, 5, 0, 2 * 6 * 5},
		/* 4 channels, which are last, do not end where 5 groups of 24 do */
		{MAPS "t = Transpose(x) perm=[0,2,3,1]\nk: i64[4] = 0 5 4 6\nr = Reshape(t, k)\ny = Asin(r)\n", 5, 4, 6,
		 120, 0},
		/* 6 rows are 2 of 3, not 3 of 2 */
		{"input x f32[b,8,2,4,3]\nt = Transpose(x) perm=[0,1,2,4,3]\nk: i64[4] = 0 8 6 4\nr = Reshape(t, k)\n"
		 "s = SpaceToDepth(r) blocksize=2\ny = Asin(s)\n",
		 32, 3, 2, 192, 0});
}

/* Sizes and scales that other nodes compute from constants. */
Test(onnx_families, numbers_are_computed)
{
	CHECK_ROWS(/* 1, 1 + 3, 4 + 1 and 5 + 1 */
		   {MAPS "a: i64[] = 0\nn: i64[4] = 1 3 1 1\nk = CumSum(n, a)\ny = Resize(x, , , k) mode=\"nearest\"\n",
		    4, 5, 6, 0, 0},
		   {MAPS "n: f32[4] = 1 1 2 3\nk = Relu(n)\ny = Resize(x, , k) mode=\"nearest\"\n", 4, 12, 15, 0, 0},
		   /* 0.5 + 0.5 in each axis */
		   {MAPS "n: f32[4] = 0 0 0 0\ns = Sigmoid(n)\nk = Add(s, s)\ny = Resize(x, , k) mode=\"nearest\"\n", 4,
		    6, 5, 0, 0},
		   /* neither a number nor infinite: 0 + 0, and 1 */
		   {MAPS "n: f32[4] = 0 0 0 0\no: f32[4] = 1 1 1 2\na = IsNaN(n)\nb = IsInf(n)\nc = Or(a, b)\nd = "
			 "Cast(c) to=1\n"
			 "k = Add(d, o)\ny = Resize(x, , k) mode=\"nearest\"\n",
		    4, 6, 10, 0, 0});
}

/* Files that contradict the specification. */
Test(onnx_families, wrong_shapes_and_numbers_are_refused)
{
	static const char *const texts[] = {
		MAPS "w: f32[3,4,3,3]\ny = Conv(x, w) pads=[1,1,1]\n",
		MAPS "w: f32[3,4,3,3]\ny = Conv(x, w) strides=[0,1]\n",
		MAPS "w: f32[3,4,7,7]\ny = Conv(x, w)\n",
		MAPS "w: f32[3,4,3]\ny = Conv(x, w)\n",
		MAPS "w: f32[5,4,3,3]\ny = ConvTranspose(x, w)\n",
		MAPS "w: f32[4,4,3,3]\ny = ConvTranspose(x, w) pads=[4,4,4,4] strides=[1,1]\n",
		MAPS "y = LpPool(x) kernel_shape=[2]\n",
		"input x f32[b,4]\ny = LpPool(x) kernel_shape=[2]\n",
		MAPS "y = ReduceL2(x) axes=[7]\n",
		MAPS "a: i64[1] = 3\nm: i64[1] = 3\nd: i64[1] = 2\ny = Slice(x, a, m, d)\n",
		MAPS "a: i64[1] = 3\nm: i64[2] = 4 5\nd: i64[1] = 2\ny = Slice(x, a, m, d)\n",
		ROWS "y = Einsum(e, e) equation=\"bik,bjk\"\n",
		ROWS "y = Einsum(e, e) equation=\"...k,bjk->bj\"\n",
		ROWS "y = Einsum(e, e) equation=\"bik,bkj->bij\"\n",
		ROWS "y = Einsum(e, e) equation=\"bik,bjk->bim\"\n",
		ROWS "y = Einsum(e, e) equation=\"bik,bjk->bi, \"\n",
		ROWS "y = Einsum(e, e)\n",
		MAPS "p: i64[3] = 1 1 1\ny = Pad(x, p)\n",
		MAPS "p: i64[8] = 0 0 0 -3 0 0 0 -2\ny = Pad(x, p) mode=\"edge\"\n",
		MAPS "a: i64[2] = 1 2\nr: i64[2] = 2 2\nk = Tile(a, r)\ny = Reshape(x, k)\n",
		MAPS "a: i64[2] = 1 2\nr: i64[1] = -2\nk = Tile(a, r)\ny = Reshape(x, k)\n",
		MAPS "a: i64[2] = 1 2\nr: i64[] = 0\nk = CumSum(a, r) reverse=1\ny = Reshape(x, k)\n",
		MAPS "a: i64[2] = 1 2\ni: i64[1,1] = 2\nk = GatherND(a, i)\ny = Reshape(x, k)\n",
		MAPS "a: i64[2] = 1 2\ni: i64[1,2] = 0 1\nk = GatherND(a, i)\ny = Reshape(x, k)\n",
		MAPS "a: i64[2] = 1 2\ni: i64[1,1] = 1\nu: i64[2] = 3 4\nk = ScatterND(a, i, u)\ny = Reshape(x, k)\n",
		MAPS "a: i64[2] = 1 2\ni: i64[1,2] = 0 1\nu: i64[1] = 3\nk = ScatterND(a, i, u)\ny = Reshape(x, k)\n",
		MAPS "r: i64[3] = 1 1 2\ny = Tile(x, r)\n",
		MAPS "k: i64[1] = 0\nv, i = TopK(x, k)\n",
		MAPS "y = SpaceToDepth(x) blocksize=0\n",
		"input x f32[b,4,6]\ny = SpaceToDepth(x) blocksize=2\n",
		MAPS "k: f32[3] = 1 1 2\ny = Resize(x, , k) mode=\"nearest\"\n",
		MAPS "k: i64[3] = 4 6 6\ny = Resize(x, , , k) mode=\"nearest\"\n",
		"opset 23\ninput x f32[b,4]\ny = Attention(x, x, x) q_num_heads=2 kv_num_heads=2\n",
		STEPS "w: f32[1,5,4]\nr: f32[1,5,5]\ny = RNN(u, w, r) hidden_size=5 layout=1\n",
		MAPS "i: i64[1,5] = 0 1 0 3 2\ny = GatherND(x, i)\n",
		MAPS "i: i64[2,2] = 0 1 0 3\ny = GatherND(x, i) batch_dims=1\n",
		MAPS "s: i64[2] = 2 -1\ny = Reshape(x, s)\nz = Erf(y)\n",
		MAPS "s: i64[4] = 0 0 2 2\ny = Reshape(x, s)\n",
		MAPS "k: f32[1,2,6,4]\ny = Concat(x, k) axis=1\n",
		MAPS "k: f32[2,6,5]\ny = Concat(x, k) axis=1\n",
		"input x f32[b,4]\nw: f32[3,3]\ny = Gemm(x, w) alpha=0.5\n",
		MAPS "s: f32[3,1,1]\ny = Mod(x, s)\n",
		MAPS "r: i64[4] = 1 0 1 1\ny = Tile(x, r)\n",
		MAPS "k: i64[5] = 2 1 4 6 5\nu = Expand(x, k)\ny = Erf(u)\n",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct psd_graph graph;
		struct psd_error err = {0};

		cr_expect_eq(onnx_file_parse_as(texts[i], &predicts, &graph, &err), PSD_EINVAL, "%s", texts[i]);
		cr_expect_neq(err.text[0], '\0', "%s", texts[i]);
		cr_expect_eq(onnx_file_parse(texts[i], &graph, &err), PSD_EINVAL, "%s", texts[i]);
	}
}

/* Two learned vectors in front of the six positions: a layer that psd-run computes. */
Test(onnx_families, learned_vectors_stand_in_front_of_positions)
{
	onnx_file_becomes(ROWS "c: f32[1,2,4]\ny = Concat(c, e) axis=1\n",
			  "input 1x6, embedding 4x6, prefix 4x8, softmax-loss 4x8");
}
