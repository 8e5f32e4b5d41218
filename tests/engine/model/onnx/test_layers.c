/* Which layers the operators become, with what settings, shapes and parameters. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/engine/model/onnx/onnx_file.h"
#include "tests/test_with.h"

#define FLAT   "input x f32[1,12]\n"
#define ROWS   "input x f32[1,4,6]\n" /* 4 positions of 6 values, or 4 channels of 6 positions */
#define MAPS   "input x f32[1,3,8,8]\n"
#define TOKENS "input x i64[1,4]\n"

struct becoming {
	const char *text, *description;
	uint64_t parameters;
};

static void check(const struct becoming *cases, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct psd_graph graph = onnx_file_load(cases[i].text);

		onnx_file_becomes(cases[i].text, cases[i].description);
		cr_assert_eq(graph.parameters, cases[i].parameters, "%llu of\n%s", (unsigned long long)graph.parameters,
			     cases[i].text);
		psd_graph_release(&graph);
	}
}

#define CHECK(cases) check(cases, sizeof(cases) / sizeof((cases)[0]))

Test(onnx_layers, products_have_their_parameters)
{
	static const struct becoming cases[] = {
		{MAPS "w: f32[4,3,3,3]\ny = Conv(x, w)", "input 3x8x8, conv 4x6x6, softmax-loss 4x6x6", 4 * 27},
		{MAPS "w: f32[4,3,3,3]\nb: f32[4]\ny = Conv(x, w, b)", "input 3x8x8, conv 4x6x6, softmax-loss 4x6x6",
		 4 * 27 + 4},
		/* zeros that some exporters compute where there is no bias */
		{MAPS "w: f32[4,3,3,3]\ns: i64[1] = 4\nb = ConstantOfShape(s)\ny = Conv(x, w, b)",
		 "input 3x8x8, conv 4x6x6, softmax-loss 4x6x6", 4 * 27},
		/* 8 + 2 * 2 - (2 * 2 + 1), by 2, + 1 */
		{MAPS "w: f32[6,1,3,3]\ny = Conv(x, w) group=3 pads=[2,2,2,2] dilations=[2,2] strides=[2,2]",
		 "input 3x8x8, conv 6x4x4, softmax-loss 6x4x4", 6 * 9},
		{MAPS "w: f32[6,3,3,3]\ny = Conv(x, w) auto_pad=\"SAME_UPPER\"",
		 "input 3x8x8, conv 6x8x8, softmax-loss 6x8x8", 6 * 27},
		{MAPS "w: f32[6,3,3,3]\ny = Conv(x, w) auto_pad=\"VALID\"",
		 "input 3x8x8, conv 6x6x6, softmax-loss 6x6x6", 6 * 27},
		/* one side: 4 channels of 6 positions, 6 - 3 + 1 outputs */
		{ROWS "w: f32[5,4,3]\nc = Conv(x, w)\ny = Flatten(c)",
		 "input 4x6, conv 5x4, reshape 20, softmax-loss 20", 5 * 12},
		{MAPS "w: f32[3,2,2,2]\ny = ConvTranspose(x, w) strides=[2,2]",
		 "input 3x8x8, deconv 2x16x16, softmax-loss 2x16x16", 24},
		{FLAT "w: f32[12,5]\ny = Gemm(x, w)", "input 12, inner-product 5, softmax-loss 5", 60},
		{FLAT "w: f32[5,12]\nb: f32[5]\ny = Gemm(x, w, b) transB=1",
		 "input 12, inner-product 5, softmax-loss 5", 65},
		{FLAT "w: f32[12,5]\ny = MatMul(x, w)", "input 12, inner-product 5, softmax-loss 5", 60},
		/* a bias that follows, on either side */
		{FLAT "w: f32[12,5]\nb: f32[5]\np = MatMul(x, w)\ny = Add(p, b)",
		 "input 12, inner-product 5, softmax-loss 5", 65},
		{FLAT "w: f32[12,5]\nb: f32[1,5]\np = MatMul(x, w)\ny = Add(b, p)",
		 "input 12, inner-product 5, softmax-loss 5", 65},
		/* at each of 4 places */
		{ROWS "w: f32[6,5]\nb: f32[5]\np = MatMul(x, w)\ny = Add(p, b)",
		 "input 4x6, permute 6x4, conv 5x4, softmax-loss 5x4", 35},
		{MAPS "w: f32[192,5]\nf = Flatten(x)\ny = Gemm(f, w)", "input 3x8x8, inner-product 5, softmax-loss 5",
		 192 * 5},
		{TOKENS "t: f32[9,5]\ny = Gather(t, x)", "input 1x4, embedding 5x4, softmax-loss 5x4", 45},
	};

	CHECK(cases);
}

Test(onnx_layers, pooling_and_normalisation)
{
	static const struct becoming cases[] = {
		{MAPS "y = MaxPool(x) kernel_shape=[2,2] strides=[2,2]", "input 3x8x8, pool 3x4x4, softmax-loss 3x4x4",
		 0},
		/* (8 - 3) / 2 + 1 by 2, rounded up and down */
		{MAPS "y = MaxPool(x) kernel_shape=[3,3] strides=[2,2] ceil_mode=1",
		 "input 3x8x8, pool 3x4x4, softmax-loss 3x4x4", 0},
		{MAPS "y = AveragePool(x) kernel_shape=[3,3] strides=[2,2]",
		 "input 3x8x8, pool 3x3x3, softmax-loss 3x3x3", 0},
		{MAPS "y = AveragePool(x) kernel_shape=[3,3] pads=[1,1,1,1] count_include_pad=1",
		 "input 3x8x8, pool 3x8x8, softmax-loss 3x8x8", 0},
		{MAPS "y = GlobalAveragePool(x)", "input 3x8x8, global-pool 3, softmax-loss 3", 0},
		{MAPS "y = GlobalMaxPool(x)", "input 3x8x8, pool 3, softmax-loss 3", 0},
		{MAPS "y = ReduceMean(x) axes=[2,3] keepdims=0", "input 3x8x8, global-pool 3, softmax-loss 3", 0},
		{MAPS "a: i64[2] = -1 -2\ny = ReduceMean(x, a)", "input 3x8x8, global-pool 3, softmax-loss 3", 0},
		{ROWS "y = ReduceMean(x) axes=[1] keepdims=0", "input 4x6, permute 6x4, global-pool 6, softmax-loss 6",
		 0},
		{MAPS "s: f32[3]\ny = BatchNormalization(x, s, s, s, s)",
		 "input 3x8x8, batch-norm 3x8x8, softmax-loss 3x8x8", 6},
		{ROWS "s: f32[6]\ny = LayerNormalization(x, s, s)",
		 "input 4x6, permute 6x4, layer-norm 6x4, softmax-loss 6x4", 12},
		{ROWS "s: f32[6]\ny = LayerNormalization(x, s) axis=2",
		 "input 4x6, permute 6x4, layer-norm 6x4, softmax-loss 6x4", 6},
		{MAPS "y = LRN(x) size=3", "input 3x8x8, lrn 3x8x8, softmax-loss 3x8x8", 0},
		{MAPS "s: f32[3,1,1]\ny = PRelu(x, s)", "input 3x8x8, prelu 3x8x8, softmax-loss 3x8x8", 3},
		{MAPS "s: f32[1]\ny = PRelu(x, s)", "input 3x8x8, prelu 3x8x8, softmax-loss 3x8x8", 1},
	};

	CHECK(cases);
}

Test(onnx_layers, sums_products_and_what_is_learned)
{
	static const struct becoming cases[] = {
		{ROWS "a = Relu(x)\ny = Add(x, a)", "input 4x6, relu 4x6, add 4x6, permute 6x4, softmax-loss 6x4", 0},
		{ROWS "w: f32[6,6]\na = MatMul(x, w)\ny = Sub(a, x)",
		 "input 4x6, permute 6x4, conv 6x4, affine 6x4, add 6x4, softmax-loss 6x4", 36},
		{MAPS "y = Mul(x, x)", "input 3x8x8, multiply 3x8x8, softmax-loss 3x8x8", 0},
		/* squeeze and excitation, on either side */
		{MAPS "g = GlobalAveragePool(x)\ns = Sigmoid(g)\ny = Mul(x, s)",
		 "input 3x8x8, global-pool 3, sigmoid 3, multiply 3x8x8, softmax-loss 3x8x8", 0},
		{MAPS "g = GlobalAveragePool(x)\ns = Sigmoid(g)\ny = Mul(s, x)",
		 "input 3x8x8, global-pool 3, sigmoid 3, multiply 3x8x8, softmax-loss 3x8x8", 0},
		{MAPS "w: f32[3,1,1]\ny = Mul(x, w)", "input 3x8x8, scale 3x8x8, softmax-loss 3x8x8", 3},
		{MAPS "w: f32[1,3,1,1]\ny = Add(w, x)", "input 3x8x8, scale 3x8x8, softmax-loss 3x8x8", 3},
		{ROWS "w: f32[1,4,6]\ny = Add(x, w)", "input 4x6, position 4x6, permute 6x4, softmax-loss 6x4", 24},
		{MAPS "y = Concat(x, x) axis=1", "input 3x8x8, concat 6x8x8, softmax-loss 6x8x8", 0},
		{MAPS "y, z = Split(x) axis=1 num_outputs=2\n", "input 3x8x8, slice 2x8x8, softmax-loss 2x8x8", 0},
		{MAPS "z, y = Split(x) axis=1 num_outputs=2\noutput y", "input 3x8x8, slice 1x8x8", 0},
		{MAPS "y = Softmax(x) axis=1\nz = Relu(y)",
		 "input 3x8x8, softmax 3x8x8, relu 3x8x8, softmax-loss 3x8x8", 0},
		{FLAT "l = LogSoftmax(x)\ny = Neg(l)", "input 12, softmax 12, log 12, affine 12, softmax-loss 12", 0},
		/* in channel shuffles five axes come together again */
		{"input x f32[1,6,5,5]\ns: i64[5] = 1 2 3 5 5\nr = Reshape(x, s)\nt = Transpose(r) perm=[0,2,1,3,4]\n"
		 "f: i64[4] = 0 -1 5 5\ny = Reshape(t, f)",
		 "input 6x5x5, reshape 2x3x25, permute 3x2x25, reshape 6x5x5, softmax-loss 6x5x5", 0},
	};

	CHECK(cases);
}

Test(onnx_layers, functions_of_elements)
{
	static const struct becoming cases[] = {
		{FLAT "y = Relu(x)", "input 12, relu 12, softmax-loss 12", 0},
		{FLAT "y = LeakyRelu(x) alpha=0.1", "input 12, relu 12, softmax-loss 12", 0},
		{FLAT "y = Sigmoid(x)", "input 12, sigmoid 12, softmax-loss 12", 0},
		{FLAT "y = Tanh(x)", "input 12, tanh 12, softmax-loss 12", 0},
		{FLAT "y = Exp(x)", "input 12, exp 12, softmax-loss 12", 0},
		{FLAT "y = Log(x)", "input 12, log 12, softmax-loss 12", 0},
		{FLAT "y = Abs(x)", "input 12, abs 12, softmax-loss 12", 0},
		{FLAT "y = Elu(x)", "input 12, elu 12, softmax-loss 12", 0},
		{FLAT "y = Softplus(x)", "input 12, softplus 12, softmax-loss 12", 0},
		{FLAT "y = Gelu(x)", "input 12, gelu 12, softmax-loss 12", 0},
		{FLAT "y = Swish(x)", "input 12, silu 12, softmax-loss 12", 0},
		{FLAT "y = Sqrt(x)", "input 12, power 12, softmax-loss 12", 0},
		{FLAT "y = Reciprocal(x)", "input 12, power 12, softmax-loss 12", 0},
		{FLAT "y = Neg(x)", "input 12, affine 12, softmax-loss 12", 0},
		{FLAT "y = HardSigmoid(x)", "input 12, affine 12, clip 12, softmax-loss 12", 0},
		{FLAT "y = HardSwish(x)", "input 12, affine 12, clip 12, multiply 12, softmax-loss 12", 0},
		{FLAT "y = Mish(x)", "input 12, softplus 12, tanh 12, multiply 12, softmax-loss 12", 0},
		{FLAT "y = Celu(x) alpha=2.0", "input 12, affine 12, elu 12, affine 12, softmax-loss 12", 0},
		{FLAT "y = Selu(x)", "input 12, elu 12, affine 12, softmax-loss 12", 0},
		{FLAT "a: f32[] = 0\nb: f32[] = 6\ny = Clip(x, a, b)", "input 12, clip 12, softmax-loss 12", 0},
		{FLAT "b: f32[] = 6\ny = Clip(x, , b)", "input 12, affine 12, relu 12, affine 12, softmax-loss 12", 0},
		{"opset 9\n" FLAT "y = Clip(x) min=0.0 max=6.0", "input 12, clip 12, softmax-loss 12", 0},
		{FLAT "y = Clip(x)", "input 12, softmax-loss 12", 0},
		/* neighbouring numbers are one layer, and 1 and 0 none */
		{FLAT "a: f32[] = 2\nb: f32[] = 3\nm = Mul(x, a)\np = Add(b, m)\nq = Div(p, a)\ny = Sub(q, b)",
		 "input 12, affine 12, softmax-loss 12", 0},
		{FLAT "a: f32[] = 1\ny = Mul(x, a)", "input 12, softmax-loss 12", 0},
		{FLAT "y = Identity(x)", "input 12, softmax-loss 12", 0},
		{FLAT "y = Cast(x) to=10", "input 12, softmax-loss 12", 0},
	};

	CHECK(cases);
}

Test(onnx_layers, settings_are_the_attributes)
{
	struct psd_graph graph = onnx_file_load(
		MAPS "w: f32[6,1,3,5]\n"
		     "c = Conv(x, w) group=3 pads=[2,4,2,4] dilations=[2,2] strides=[2,1] @name=c\n"
		     "s: f32[6]\nb = BatchNormalization(c, s, s, s, s) epsilon=0.25 momentum=0.75 @name=b\n"
		     "r = LRN(b) size=3 alpha=0.5 beta=0.25 bias=2.0 @name=r\n"
		     "l = LeakyRelu(r) alpha=0.125 @name=l\n"
		     "e = Elu(l) alpha=0.5 @name=e\n"
		     "two: f32[] = 2\nthree: f32[] = 3\nm = Mul(e, two)\na = Add(m, three) @name=a\n"
		     "p = Pow(a, three) @name=p\n"
		     "g = Gelu(p) approximate=\"tanh\" @name=g\n"
		     "q = MaxPool(g) kernel_shape=[2,1] strides=[1,2] ceil_mode=1 @name=q\n"
		     "v = AveragePool(q) kernel_shape=[2,2] @name=v\n"
		     "d = Dropout(v) ratio=0.25 @name=d\n"
		     "f = Clip(d, , ) @name=f");
	const struct psd_conv_settings *conv = &onnx_file_layer(&graph, "c")->settings.conv;
	const struct psd_affine_settings *norm = &onnx_file_layer(&graph, "b")->settings.affine;
	const struct psd_lrn_settings *lrn = &onnx_file_layer(&graph, "r")->settings.lrn;
	const struct psd_pool_settings *max = &onnx_file_layer(&graph, "q")->settings.pool;
	const struct psd_pool_settings *average = &onnx_file_layer(&graph, "v")->settings.pool;

	cr_assert(conv->outputs == 6 && conv->groups == 3 && !conv->has_bias);
	cr_assert(conv->window.kernel.height == 3 && conv->window.kernel.width == 5);
	cr_assert(conv->window.stride.height == 2 && conv->window.stride.width == 1);
	cr_assert(conv->window.pad.height == 2 && conv->window.pad.width == 4);
	cr_assert(conv->window.dilation.height == 2 && conv->window.dilation.width == 2);
	cr_assert(norm->epsilon == 0.25 && norm->kept_ratio == 0.75 && norm->has_scale && norm->has_shift);
	cr_assert(lrn->size == 3 && lrn->alpha == 0.5 && lrn->beta == 0.25 && lrn->k == 2);
	cr_assert_eq(onnx_file_layer(&graph, "l")->settings.slope.slope, 0.125);
	cr_assert_eq(onnx_file_layer(&graph, "e")->settings.slope.slope, 0.5);
	cr_assert_eq(onnx_file_layer(&graph, "a")->settings.linear.factor, 2);
	cr_assert_eq(onnx_file_layer(&graph, "a")->settings.linear.summand, 3);
	cr_assert_eq(onnx_file_layer(&graph, "p")->settings.power.exponent, 3);
	cr_assert_eq(onnx_file_layer(&graph, "g")->settings.gelu.approximation, PSD_GELU_TANH);
	cr_assert(max->method == PSD_POOL_MAX && max->rounding == PSD_POOL_UP);
	cr_assert(max->window.kernel.height == 2 && max->window.kernel.width == 1);
	cr_assert(max->window.stride.height == 1 && max->window.stride.width == 2);
	cr_assert(average->method == PSD_POOL_AVERAGE && average->rounding == PSD_POOL_DOWN);
	cr_assert_eq(average->window.stride.height, 1); /* ONNX's default, not the kernel */
	cr_assert_eq(onnx_file_layer(&graph, "d")->settings.dropout.ratio, 0.25);
	psd_graph_release(&graph);
}

Test(onnx_layers, clipped_values_are_moved_to_0_and_back)
{
	struct psd_graph graph = onnx_file_load(FLAT "a: f32[] = -1\nb: f32[] = 3\ny = Clip(x, a, b)");

	onnx_file_becomes(FLAT "a: f32[] = -1\nb: f32[] = 3\ny = Clip(x, a, b)",
			  "input 12, affine 12, clip 12, affine 12, softmax-loss 12");
	cr_assert_eq(graph.layers[1].settings.linear.summand, 1);
	cr_assert_eq(graph.layers[2].settings.linear.factor, 4); /* from -1 to 3 */
	cr_assert_eq(graph.layers[3].settings.linear.summand, -1);
	psd_graph_release(&graph);
}

Test(onnx_layers, input_is_recognised_by_type_and_sides)
{
	onnx_file_becomes("input x f32[batch,12]\ny = Relu(x)", "input 12, relu 12, softmax-loss 12");
	onnx_file_becomes("input x f32[0,12]\ny = Relu(x)", "input 12, relu 12, softmax-loss 12");
	onnx_file_becomes("input x f32[32,12]\ny = Relu(x)", "input 12, relu 12, softmax-loss 12");
	onnx_file_becomes("input x i64[b,7]\nt: f32[5,3]\ny = Gather(t, x)",
			  "input 1x7, embedding 3x7, softmax-loss 3x7");
	/* channels last, which a transpose brings to the front, as it is in psd */
	onnx_file_becomes("input x f32[1,8,6,3]\nt = Transpose(x) perm=[0,3,1,2]\nw: f32[4,3,1,1]\ny = Conv(t, w)",
			  "input 3x8x6, conv 4x8x6, softmax-loss 4x8x6");
	/* many channels of small maps are none that come last */
	onnx_file_becomes("input x f32[1,8,4,3]\ny = Relu(x)", "input 8x4x3, relu 8x4x3, softmax-loss 8x4x3");
	/* an initializer that is listed as an input, as of old */
	onnx_file_becomes("input x f32[1,12]\ninput w f32[12,5]\nw: f32[12,5]\ny = MatMul(x, w)",
			  "input 12, inner-product 5, softmax-loss 5");
	/* an input that nobody reads does not count */
	onnx_file_becomes("input unused f32[1,2,3,4,5,6]\ninput x f32[1,12]\ny = Relu(x)",
			  "input 12, relu 12, softmax-loss 12");
}

Test(onnx_layers, classes_are_channels_of_what_a_window_slides_over)
{
	/* one side: channels are axis 1; a sequence: channels are the last axis */
	onnx_file_becomes("input x f32[1,3,8]\nw: f32[5,3,1]\ny = Conv(x, w)", "input 3x8, conv 5x8, softmax-loss 5x8");
	onnx_file_becomes("input x f32[1,8,3]\nw: f32[3,5]\ny = MatMul(x, w)",
			  "input 8x3, permute 3x8, conv 5x8, softmax-loss 5x8");
}

TEST_ROW(onnx_layers, one_value_is_no_choice_of_classes,
	 onnx_file_becomes("input x f32[1,12]\nw: f32[12,1]\ny = MatMul(x, w)", "input 12, inner-product 1"))

Test(onnx_layers, maps_are_resized_between_their_corners)
{
	/* 8 x 6 positions become 2.5 times and half as many, rounded down */
	onnx_file_becomes("input x f32[1,3,8,6]\ns: f32[4] = 1 1 2.5 0.5\n"
			  "y = Resize(x, , s) mode=\"linear\" coordinate_transformation_mode=\"align_corners\"",
			  "input 3x8x6, resize 3x20x3, softmax-loss 3x20x3");
	onnx_file_becomes("input x f32[1,3,8,6]\ns: i64[4] = 1 3 5 7\n"
			  "y = Resize(x, , , s) mode=\"linear\" coordinate_transformation_mode=\"align_corners\"",
			  "input 3x8x6, resize 3x5x7, softmax-loss 3x5x7");
	onnx_file_refuses("input x f32[1,3,8,6]\ns: f32[4] = 1 1 2 2\ny = Resize(x, , s) mode=\"nearest\"",
			  "node '' (Resize) must be of maps, with 'mode' linear and 'align_corners'");
	onnx_file_refuses("input x f32[1,3,8,6]\ns: f32[4] = 1 2 2 2\n"
			  "y = Resize(x, , s) mode=\"linear\" coordinate_transformation_mode=\"align_corners\"",
			  "node '' (Resize) resizes axis 1 from 3 to 6, must keep axes 0 and 1");
	onnx_file_refuses("input x f32[1,3,8,6]\ns: f32[4] = 1 1 0.1 2\n"
			  "y = Resize(x, , s) mode=\"linear\" coordinate_transformation_mode=\"align_corners\"",
			  "node '' (Resize) resizes axis 2 from 8 to 0, must be 1 to 65536");
}

/* 12 positions in pieces of 5, 5 and 2, or of 3 and 9. */
Test(onnx_layers, pieces_of_a_sequence_are_slices)
{
	static const struct {
		const char *text;
		uint32_t first, channels;
	} cases[] = {
		{"n: i64[] = 5\nq = SplitToSequence(x, n) axis=1\ni: i64[] = 0\n", 0, 5},
		{"n: i64[] = 5\nq = SplitToSequence(x, n) axis=1\ni: i64[] = 2\n", 10, 2},
		{"n: i64[] = 5\nq = SplitToSequence(x, n) axis=1\ni: i64[] = -2\n", 5, 5},
		{"n: i64[2] = 3 9\nq = SplitToSequence(x, n) axis=-1\ni: i64[] = 1\n", 3, 9},
	};

	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		char text[512];
		struct psd_graph graph;

		snprintf(text, sizeof(text), "input x f32[1,12]\n%sy = SequenceAt(q, i)", cases[c].text);
		graph = onnx_file_load(text);
		cr_assert_eq(graph.layers[1].kind, &psd_layer_slice);
		cr_expect_eq(graph.layers[1].settings.slice.first, cases[c].first);
		cr_expect_eq(graph.layers[1].settings.slice.channels, cases[c].channels);
		psd_graph_release(&graph);
	}
	/* one piece for each position: 12 of 1; the last is used */
	onnx_file_becomes("input x f32[1,12,5]\nq = SplitToSequence(x) axis=1 keepdims=0\ni: i64[] = 11\n"
			  "y = SequenceAt(q, i)",
			  "input 12x5, slice 1x5, reshape 5, softmax-loss 5");
	onnx_file_refuses("input x f32[1,12]\nn: i64[] = 5\nq = SplitToSequence(x, n) axis=1\ni: i64[] = 3\n"
			  "y = SequenceAt(q, i)",
			  "node '' (SplitToSequence) takes piece number 3, there are 3");
	onnx_file_refuses("input x f32[1,12]\nn: i64[] = 5\nq = SplitToSequence(x, n) axis=1\ny = Relu(q)",
			  "node '' (Relu) reads a sequence, which only SequenceAt can");
	onnx_file_refuses("input x f32[1,12]\nn: i64[] = 5\nc: f32[1,12] = 1\nq = SplitToSequence(c, n) axis=1\n"
			  "z = Neg(q)\ny = Mul(x, z)",
			  "node '' (Neg) reads a sequence, which only SequenceAt can");
	onnx_file_refuses("input x f32[1,12]\ni: i64[] = 3\ny = SequenceAt(x, i)",
			  "node '' (SequenceAt) must take a piece of a SplitToSequence by a constant number");
}

TEST_ROW(onnx_layers, first_output_counts_and_what_it_needs,
	 onnx_file_becomes("input x f32[1,12]\nw: f32[12,5]\nv: f32[3]\ny = MatMul(x, w)\nz = Einsum(y)\n"
			   "q = Add(v, v)\noutput y\noutput z",
			   "input 12, inner-product 5, softmax-loss 5"))

Test(onnx_layers, loss_replaces_a_softmax_at_the_end)
{
	static const struct becoming cases[] = {
		{FLAT "y = Softmax(x)", "input 12, softmax-loss 12", 0},
		{FLAT "y = LogSoftmax(x) axis=1", "input 12, softmax-loss 12", 0},
		{FLAT "input l i64[1]\ny = SoftmaxCrossEntropyLoss(x, l)", "input 12, softmax-loss 12", 0},
		{FLAT "input l i64[1]\ny, p = SoftmaxCrossEntropyLoss(x, l)", "input 12, softmax-loss 12", 0},
		/* a loss in the file has classes on axis 1; an output of sequences has them last */
		{"input x f32[1,5,7]\ninput l i64[1,7]\ny = SoftmaxCrossEntropyLoss(x, l)",
		 "input 5x7, softmax-loss 5x7", 0},
		{"input x f32[1,7,5]\ny = Identity(x)", "input 7x5, permute 5x7, softmax-loss 5x7", 0},
		{MAPS "input l i64[1,8,8]\ny = SoftmaxCrossEntropyLoss(x, l)", "input 3x8x8, softmax-loss 3x8x8", 0},
	};
	struct psd_graph graph = onnx_file_load(FLAT "l = Relu(x) @name=loss");

	CHECK(cases);
	cr_assert_str_eq(graph.layers[2].name, "loss of the output"); /* 'loss' is taken */
	psd_graph_release(&graph);
}

Test(onnx_layers, dropout_in_all_its_forms)
{
	static const char *const texts[] = {
		FLAT "y = Dropout(x) ratio=0.25",
		FLAT "r: f32[] = 0.25\ny, mask = Dropout(x, r)",
		FLAT "n = RandomUniformLike(x)\nk: f32[] = 0.75\nm = Less(n, k)\nf = Cast(m) to=1\ny = Mul(x, f)",
		FLAT "n = RandomUniform() shape=[1,12]\nk: f32[] = 0.25\nm = Greater(n, k)\nf = Cast(m) to=1\n"
		     "y = Mul(f, x)",
		FLAT "n = RandomUniformLike(x)\nk: f32[] = 0.75\ns = Add(n, k)\nm = Floor(s)\ny = Mul(x, m)",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct psd_graph graph = onnx_file_load(texts[i]);

		onnx_file_becomes(texts[i], "input 12, dropout 12, softmax-loss 12");
		cr_assert_eq(graph.layers[1].settings.dropout.ratio, 0.25, "%s", texts[i]);
		psd_graph_release(&graph);
	}
	onnx_file_becomes(FLAT "y = Dropout(x) ratio=0.0", "input 12, softmax-loss 12");
	/* stochastic depth drops a whole sample */
	onnx_file_becomes(FLAT "n = RandomUniform() shape=[1,1]\nk: f32[] = 0.75\nm = Less(n, k)\nf = Cast(m) to=1\n"
			       "y = Mul(x, f)",
			  "input 12, softmax-loss 12");
}

Test(onnx_layers, shared_matrices_are_one_and_vectors_are_not)
{
	/* a tied head: 9 words of 5 values, transposed */
	struct psd_graph tied = onnx_file_load(TOKENS "t: f32[9,5]\ne = Gather(t, x)\nh = Transpose(t)\n"
						      "y = MatMul(e, h) @name=head");
	struct psd_graph biased = onnx_file_load(TOKENS "t: f32[9,5]\nb: f32[9]\ne = Gather(t, x)\nh = Transpose(t)\n"
							"p = MatMul(e, h)\ny = Add(p, b)");
	struct psd_graph vectors = onnx_file_load(
		"input x f32[1,6]\nw: f32[6,6]\nv: f32[6,6]\nb: f32[6]\np = MatMul(x, w)\nq = Add(p, b)\n"
		"r = MatMul(q, v)\ny = Add(r, b)");
	struct psd_graph again =
		onnx_file_load("input x f32[1,6]\nw: f32[6,6]\np = MatMul(x, w)\nq = Relu(p)\ny = MatMul(q, w)");

	struct psd_graph whole = onnx_file_load(
		"input x f32[1,6]\nw: f32[6,6]\nb: f32[6]\np = Gemm(x, w, b)\nq = Relu(p)\ny = Gemm(q, w, b)");

	cr_assert_eq(whole.parameters, 36 + 6);
	cr_assert_eq(whole.n_layers, 5); /* the bias is shared, too, and not added again */
	psd_graph_release(&whole);
	cr_assert_eq(tied.parameters, 45);
	cr_assert_eq(tied.layers[2].n_shared, 1);
	cr_assert_eq(tied.layers[2].first_tensor, tied.layers[1].first_tensor);
	cr_assert_eq(biased.parameters, 45 + 9);
	cr_assert_eq(biased.layers[2].n_shared, 1);
	cr_assert_eq(biased.layers[3].kind, &psd_layer_scale); /* the bias, which the table has not */
	cr_assert_eq(vectors.parameters, 36 + 6 + 36 + 6);
	cr_assert_eq(again.parameters, 36);
	psd_graph_release(&tied);
	psd_graph_release(&biased);
	psd_graph_release(&vectors);
	psd_graph_release(&again);
}

Test(onnx_layers, parts_of_a_matrix_are_matrices_of_their_own)
{
	struct psd_graph graph = onnx_file_load(
		"input x f32[1,6]\nw: f32[6,12]\nu, v = Split(w) axis=1\np = MatMul(x, u)\nq = MatMul(x, v)\n"
		"y = Add(p, q)");

	cr_assert_eq(graph.parameters, 72);
	cr_assert_eq(graph.layers[2].n_shared, 0);
	psd_graph_release(&graph);
	/* and not what all of it is */
	graph = onnx_file_load("input x f32[1,6]\nw: f32[6,6]\nu, v = Split(w) axis=1\np = MatMul(x, w)\n"
			       "y = MatMul(p, u)");
	cr_assert_eq(graph.parameters, 36 + 18);
	psd_graph_release(&graph);
}

/* Constants without numbers: an exporter leaves them where a model joins nothing. */
Test(onnx_layers, constants_without_numbers_keep_none)
{
	static const struct psd_model_choices predicts = {.allows_other = true};
	static const char *const texts[] = {
		"z: f32[0]\nk: i64[2] = 0 5\nr = Reshape(z, k)\n",
		"z: f32[0,5]\na: i64[1] = 0\nb: i64[1] = 3\nc: i64[1] = 1\nr = Slice(z, a, b, c)\n",
	};

	for (unsigned t = 0; t < sizeof(texts) / sizeof(*texts); t++) {
		struct psd_graph graph;
		struct psd_error err = {0};
		char text[256], layers[256];

		snprintf(text, sizeof(text), "input x f32[b,5]\n%sy = Relu(x)\noutput y\n", texts[t]);
		cr_assert_eq(onnx_file_parse_as(text, &predicts, &graph, &err), PSD_OK, "%s\n%s", err.text, text);
		onnx_file_describe(&graph, layers, sizeof(layers));
		cr_expect_str_eq(layers, "input 5, relu 5, softmax-loss 5");
		psd_graph_release(&graph);
	}
}

/* A list of two values: number 2 - 1 is the second one. */
Test(onnx_layers, values_of_a_list_are_counted)
{
	onnx_file_becomes("input x f32[1,12]\nh = Tanh(x)\nq = SequenceConstruct(x, h)\nl = SequenceLength(q)\n"
			  "o: i64[] = 1\ni = Sub(l, o)\np = SequenceAt(q, i)\ny = Relu(p)\n",
			  "input 12, tanh 12, relu 12, softmax-loss 12");
	onnx_file_refuses("input x f32[1,12]\nl = SequenceLength(x)\n",
			  "node '' (SequenceLength) must count a list of values");
	onnx_file_refuses("input x f32[1,12]\nl = SequenceInsert(x, x)\n",
			  "node '' (SequenceInsert) must insert into a list of values");
}
