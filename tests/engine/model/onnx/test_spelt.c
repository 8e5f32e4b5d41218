/* Functions, normalisation and attention that files spell out in many nodes are one layer each. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/engine/model/onnx/onnx_file.h"
#include "tests/test_with.h"

#define FLAT "input x f32[1,12]\n"
#define ROWS "input x f32[1,4,6]\n"

/* ---- functions ---- */

#define ERF_GELU                                                                                                       \
	"root: f32[] = 1.4142135381698608\none: f32[] = 1\nhalf: f32[] = 0.5\n"                                        \
	"a = Div(x, root)\nb = Erf(a)\nc = Add(b, one)\n"
#define TANH_GELU                                                                                                      \
	"three: f32[] = 3\ncube: f32[] = 0.044714998453855515\nscale: f32[] = 0.7978845834732056\none: f32[] = 1\n"    \
	"half: f32[] = 0.5\n"                                                                                          \
	"a = Pow(x, three)\nb = Mul(a, cube)\nc = Add(x, b)\nd = Mul(c, scale)\ne = Tanh(d)\nf = Add(e, one)\n"

Test(onnx_spelt, gelu_by_the_error_function_and_by_tanh)
{
	static const char *const exact[] = {
		FLAT ERF_GELU "d = Mul(x, c)\ny = Mul(d, half)",
		FLAT ERF_GELU "d = Mul(c, x)\ny = Mul(half, d)",
		FLAT ERF_GELU "d = Mul(x, half)\ny = Mul(d, c)",
		FLAT
		"less: f32[] = 0.7071067690849304\none: f32[] = 1\nhalf: f32[] = 0.5\na = Mul(x, less)\nb = Erf(a)\n"
		"c = Add(one, b)\nd = Mul(c, half)\ny = Mul(x, d)",
	};
	static const char *const by_tanh[] = {
		FLAT TANH_GELU "g = Mul(x, half)\ny = Mul(g, f)",
		FLAT TANH_GELU "g = Mul(f, half)\ny = Mul(x, g)",
	};

	for (size_t i = 0; i < 4; i++) {
		struct psd_graph graph = onnx_file_load(exact[i]);

		onnx_file_becomes(exact[i], "input 12, gelu 12, softmax-loss 12");
		cr_assert_eq(graph.layers[1].settings.gelu.approximation, PSD_GELU_EXACT);
		psd_graph_release(&graph);
	}
	for (size_t i = 0; i < 2; i++) {
		struct psd_graph graph = onnx_file_load(by_tanh[i]);

		onnx_file_becomes(by_tanh[i], "input 12, gelu 12, softmax-loss 12");
		cr_assert_eq(graph.layers[1].settings.gelu.approximation, PSD_GELU_TANH);
		psd_graph_release(&graph);
	}
	/* another factor within is no GELU */
	onnx_file_refuses(FLAT "root: f32[] = 1.5\none: f32[] = 1\na = Div(x, root)\nb = Erf(a)\nc = Add(b, one)\n"
			       "y = Mul(x, c)",
			  "node '' (Erf) needs the error function, which psd has only within GELU");
}

Test(onnx_spelt, silu_hardswish_and_mish)
{
	onnx_file_becomes(FLAT "s = Sigmoid(x)\ny = Mul(x, s)", "input 12, silu 12, softmax-loss 12");
	onnx_file_becomes(FLAT "s = Sigmoid(x)\ny = Mul(s, x)", "input 12, silu 12, softmax-loss 12");
	onnx_file_becomes(FLAT "n = Neg(x)\ne = Exp(n)\none: f32[] = 1\nd = Add(e, one)\ny = Div(x, d)",
			  "input 12, silu 12, softmax-loss 12");
	/* a product with another layer's values is a multiply layer */
	onnx_file_becomes(FLAT "w: f32[12,12]\np = MatMul(x, w)\ns = Sigmoid(p)\ny = Mul(x, s)",
			  "input 12, inner-product 12, sigmoid 12, multiply 12, softmax-loss 12");
	onnx_file_becomes(FLAT "h = HardSigmoid(x) alpha=0.16666667 beta=0.5\ny = Mul(x, h)",
			  "input 12, affine 12, clip 12, multiply 12, softmax-loss 12");
	onnx_file_becomes(FLAT "three: f32[] = 3\nlow: f32[] = 0\nsix: f32[] = 6\na = Add(x, three)\n"
			       "c = Clip(a, low, six)\nd = Div(c, six)\ny = Mul(x, d)",
			  "input 12, affine 12, clip 12, affine 12, multiply 12, softmax-loss 12");
	onnx_file_becomes(FLAT "s = Softplus(x)\nt = Tanh(s)\ny = Mul(x, t)",
			  "input 12, softplus 12, tanh 12, multiply 12, softmax-loss 12");
}

/* ---- normalisation ---- */

#define MEAN   ROWS "m = ReduceMean(x) axes=[-1]\nd = Sub(x, m)\n"
#define ROOT   "eps: f32[] = 0.25\ne = Add(v, eps)\nr = Sqrt(e)\n"
#define SQUARE "two: f32[] = 2\nq = Pow(d, two)\nv = ReduceMean(q) axes=[-1]\n"

Test(onnx_spelt, layer_norm_of_opset_11)
{
	static const char *const texts[] = {
		MEAN SQUARE ROOT "n = Div(d, r)\ns: f32[6]\na = Mul(n, s)\ny = Add(a, s)",
		MEAN SQUARE ROOT "n = Div(d, r)\ns: f32[6]\na = Mul(s, n)\ny = Add(s, a)",
		MEAN "q = Mul(d, d)\nv = ReduceMean(q) axes=[2]\n" ROOT "n = Div(d, r)\ns: f32[6]\na = Mul(n, s)\n"
		     "y = Add(a, s)",
		MEAN SQUARE ROOT "i = Reciprocal(r)\nn = Mul(d, i)\ns: f32[6]\na = Mul(n, s)\ny = Add(a, s)",
		ROWS "axes: i64[1] = -1\nm = ReduceMean(x, axes)\nd = Sub(x, m)\ntwo: f32[] = 2\nq = Pow(d, two)\n"
		     "v = ReduceMean(q, axes)\n" ROOT "n = Div(d, r)\ns: f32[6]\na = Mul(n, s)\ny = Add(a, s)",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct psd_graph graph = onnx_file_load(texts[i]);

		onnx_file_becomes(texts[i], "input 4x6, permute 6x4, layer-norm 6x4, softmax-loss 6x4");
		cr_assert_eq(graph.parameters, 12);
		cr_assert_eq(graph.layers[2].settings.affine.epsilon, 0.25);
		psd_graph_release(&graph);
	}
}

Test(onnx_spelt, layer_norm_may_learn_less)
{
	struct psd_graph bare = onnx_file_load(MEAN SQUARE ROOT "y = Div(d, r)");
	struct psd_graph scaled = onnx_file_load(MEAN SQUARE ROOT "n = Div(d, r)\ns: f32[6]\ny = Mul(n, s)");

	cr_assert(bare.layers[2].kind == &psd_layer_layer_norm && bare.parameters == 0);
	cr_assert(scaled.layers[2].kind == &psd_layer_layer_norm && scaled.parameters == 6);
	psd_graph_release(&bare);
	psd_graph_release(&scaled);
}

/* A part that another node reads has to stay apart. */
TEST_ROW(onnx_spelt, layer_norm_whose_parts_are_read_is_none,
	 onnx_file_refuses(MEAN SQUARE ROOT "n = Div(d, r)\ny = Add(n, d)",
			   "node '' (Sub) has inputs of shapes [1,4,6] and [1,4,1], must be equal, or one must have a "
			   "factor for each map of the other"))

Test(onnx_spelt, rms_norm)
{
	static const char *const texts[] = {
		ROWS "two: f32[] = 2\nq = Pow(x, two)\nv = ReduceMean(q) axes=[-1]\n" ROOT
		     "n = Div(x, r)\ns: f32[6]\ny = Mul(s, n)",
		ROWS "q = Mul(x, x)\nv = ReduceMean(q) axes=[-1]\n" ROOT
		     "i = Reciprocal(r)\nn = Mul(x, i)\ns: f32[6]\ny = Mul(n, s)",
		ROWS
		"two: f32[] = 2\nq = Pow(x, two)\nv = ReduceMean(q) axes=[-1]\neps: f32[] = 0.25\ne = Add(v, eps)\n"
		"h: f32[] = -0.5\ni = Pow(e, h)\nn = Mul(x, i)\ns: f32[6]\ny = Mul(n, s)",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct psd_graph graph = onnx_file_load(texts[i]);

		onnx_file_becomes(texts[i], "input 4x6, permute 6x4, rms-norm 6x4, softmax-loss 6x4");
		cr_assert_eq(graph.parameters, 6);
		cr_assert_eq(graph.layers[2].settings.affine.epsilon, 0.25);
		psd_graph_release(&graph);
	}
}

/* ---- attention: 4 positions, 2 heads of depth 4 ---- */

#define IN	"input x f32[1,4,8]\nhalf: f32[] = 0.5\n"
#define SIDES	"s: i64[4] = 0 0 2 4\n"
#define WEIGHTS "wq: f32[8,8]\nwk: f32[8,8]\nwv: f32[8,8]\nq = MatMul(x, wq)\nk = MatMul(x, wk)\nv = MatMul(x, wv)\n"
#define HEADS                                                                                                          \
	"qr = Reshape(q, s)\nqh = Transpose(qr) perm=[0,2,1,3]\nkr = Reshape(k, s)\n"                                  \
	"kh = Transpose(kr) perm=[0,2,3,1]\nvr = Reshape(v, s)\nvh = Transpose(vr) perm=[0,2,1,3]\n"
#define APART	 IN SIDES WEIGHTS HEADS
#define SCORES	 "sc = MatMul(qh, kh)\nsf = Mul(sc, half)\n"
#define TOGETHER "o = MatMul(p, vh)\not = Transpose(o) perm=[0,2,1,3]\nf: i64[3] = 0 0 8\ny = Reshape(ot, f)\n"
#define LAYERS	 "input 4x8, permute 8x4, conv 8x4, conv 8x4, conv 8x4, concat 24x4, attention 8x4, softmax-loss 8x4"

static void check_attention(const char *text, bool is_causal, unsigned kv_heads)
{
	struct psd_graph graph = onnx_file_load(text);
	const struct psd_attention_settings *attention = &graph.layers[graph.n_layers - 2].settings.attention;

	cr_assert_eq(graph.layers[graph.n_layers - 2].kind, &psd_layer_attention, "%s", text);
	cr_assert(attention->heads == 2 && attention->kv_heads == kv_heads, "%s", text);
	cr_assert_eq(attention->is_causal, is_causal, "%s", text);
	cr_assert_eq(attention->rotary_base, 0);
	psd_graph_release(&graph);
}

Test(onnx_spelt, attention_with_its_factor_anywhere)
{
	static const char *const texts[] = {
		APART SCORES "p = Softmax(sf)\n" TOGETHER,
		APART "sc = MatMul(qh, kh)\ntwo: f32[] = 2\nsf = Div(sc, two)\np = Softmax(sf)\n" TOGETHER,
		/* the root of it on queries and keys */
		APART "r: f32[] = 0.70710678\nqs = Mul(qh, r)\nks = Mul(kh, r)\nsf = MatMul(qs, ks)\n"
		      "p = Softmax(sf)\n" TOGETHER,
		APART "qs = Mul(qh, half)\nsf = MatMul(qs, kh)\np = Softmax(sf) axis=3\n" TOGETHER,
		/* which drops probabilities */
		APART SCORES "pp = Softmax(sf)\np = Dropout(pp) ratio=0.1\n" TOGETHER,
		/* scores that might be no number are 0 */
		APART SCORES "pp = Softmax(sf)\nis = IsNaN(pp)\nzero: f32[] = 0\np = Where(is, zero, pp)\n" TOGETHER,
		/* a mask that lets all see all */
		APART SCORES "m: f32[1,1,1,4] = 0 0 0 0\nsm = Add(sf, m)\np = Softmax(sm)\n" TOGETHER,
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		onnx_file_becomes(texts[i], LAYERS);
		check_attention(texts[i], false, 2);
	}
}

Test(onnx_spelt, causal_attention_by_any_mask)
{
	static const char *const texts[] = {
		APART SCORES "m: f32[4,4] = 0 -inf -inf -inf 0 0 -inf -inf 0 0 0 -inf 0 0 0 0\nsm = Add(sf, m)\n"
			     "p = Softmax(sm)\n" TOGETHER,
		APART SCORES "m: b8[1,1,4,4] = 1 0 0 0 1 1 0 0 1 1 1 0 1 1 1 1\nlow: f32[] = -3e38\n"
			     "sm = Where(m, sf, low)\np = Softmax(sm)\n" TOGETHER,
		/* positions that each position does not see */
		APART SCORES
		"sq: i64[2] = 4 4\nones = ConstantOfShape(sq) value=b8[1]{1}\none: i64[] = 1\n"
		"m = Trilu(ones, one) upper=1\nlow: f32[] = -1e9\nsm = Where(m, low, sf)\np = Softmax(sm)\n" TOGETHER,
		APART SCORES "sq: i64[2] = 4 4\nones = ConstantOfShape(sq) value=f32[1]{1}\nm = Trilu(ones) upper=0\n"
			     "b = Cast(m) to=9\nzero: f32[] = 0\nlow: f32[] = -1e9\nadd = Where(b, zero, low)\n"
			     "sm = Add(sf, add)\np = Softmax(sm)\n" TOGETHER,
		/* positions by their numbers */
		APART SCORES
		"a: i64[] = 0\nb: i64[] = 4\nc: i64[] = 1\nr = Range(a, b, c)\nu0: i64[1] = 0\nu1: i64[1] = 1\n"
		"rc = Unsqueeze(r, u0)\nrr = Unsqueeze(r, u1)\nm = LessOrEqual(rc, rr)\nlow: f32[] = -1e9\n"
		"sm = Where(m, sf, low)\np = Softmax(sm)\n" TOGETHER,
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		onnx_file_becomes(texts[i], LAYERS);
		check_attention(texts[i], true, 2);
	}
}

Test(onnx_spelt, attention_of_one_product_joins_nothing)
{
	static const char *const texts[] = {
		IN SIDES "w: f32[8,24]\na = MatMul(x, w)\nq, k, v = Split(a) axis=2 num_outputs=3\n" HEADS SCORES
			 "p = Softmax(sf)\n" TOGETHER,
		/* three of heads of depth, apart by an index */
		IN
		"w: f32[8,24]\na = MatMul(x, w)\nr5: i64[5] = 0 0 3 2 4\nb = Reshape(a, r5)\n"
		"t = Transpose(b) perm=[2,0,3,1,4]\ni0: i64[] = 0\ni1: i64[] = 1\ni2: i64[] = 2\nqh = Gather(t, i0)\n"
		"kk = Gather(t, i1)\nkh = Transpose(kk) perm=[0,1,3,2]\nvh = Gather(t, i2)\n" SCORES
		"p = Softmax(sf)\n" TOGETHER,
	};

	for (size_t i = 0; i < 2; i++) {
		onnx_file_becomes(texts[i], "input 4x8, permute 8x4, conv 24x4, attention 8x4, softmax-loss 8x4");
		check_attention(texts[i], false, 2);
	}
}

Test(onnx_spelt, heads_that_share_keys_and_values)
{
	static const char text[] = IN SIDES
		"wq: f32[8,8]\nwk: f32[8,4]\nwv: f32[8,4]\nq = MatMul(x, wq)\nk = MatMul(x, wk)\n"
		"v = MatMul(x, wv)\nqr = Reshape(q, s)\nqh = Transpose(qr) perm=[0,2,1,3]\n"
		"s1: i64[4] = 0 0 1 4\nkr = Reshape(k, s1)\nkt = Transpose(kr) perm=[0,2,1,3]\n"
		"vr = Reshape(v, s1)\nvt = Transpose(vr) perm=[0,2,1,3]\nu: i64[1] = 2\nku = Unsqueeze(kt, u)\n"
		"vu = Unsqueeze(vt, u)\ne: i64[5] = 1 1 2 4 4\nke = Expand(ku, e)\nve = Expand(vu, e)\n"
		"b: i64[4] = 1 2 4 4\nkf = Reshape(ke, b)\nvh = Reshape(ve, b)\n"
		"kh = Transpose(kf) perm=[0,1,3,2]\n" SCORES "p = Softmax(sf)\n" TOGETHER;

	onnx_file_becomes(text, "input 4x8, permute 8x4, conv 8x4, conv 4x4, conv 4x4, concat 16x4, attention 8x4, "
				"softmax-loss 8x4");
	check_attention(text, false, 1);
}

Test(onnx_spelt, attention_as_one_operator)
{
	static const char three[] = IN WEIGHTS "y = Attention(q, k, v) q_num_heads=2 kv_num_heads=2";
	static const char four[] =
		"opset 23\n" IN SIDES WEIGHTS "qr = Reshape(q, s)\nqh = Transpose(qr) perm=[0,2,1,3]\n"
		"kr = Reshape(k, s)\nkh = Transpose(kr) perm=[0,2,1,3]\nvr = Reshape(v, s)\n"
		"vh = Transpose(vr) perm=[0,2,1,3]\no = Attention(qh, kh, vh) is_causal=1 scale=0.5\n"
		"ot = Transpose(o) perm=[0,2,1,3]\nf: i64[3] = 0 0 8\ny = Reshape(ot, f)";
	static const char masked[] = IN WEIGHTS "m: f32[4,4] = 0 -inf -inf -inf 0 0 -inf -inf 0 0 0 -inf 0 0 0 0\n"
						"y = Attention(q, k, v, m) q_num_heads=2 kv_num_heads=2";

	onnx_file_becomes(three, LAYERS);
	check_attention(three, false, 2);
	onnx_file_becomes(four, LAYERS);
	check_attention(four, true, 2);
	check_attention(masked, true, 2);
}

/* ---- rotation ---- */

/* Cosines and sines of 4 positions and depth 4; the angles of the two pairs are p base^0 and p base^(-1/2). */
static void write_tables(char *text, size_t room, double base)
{
	size_t n = 0;

	for (unsigned t = 0; t < 2; t++) {
		n += (size_t)snprintf(text + n, room - n, "%s: f32[1,1,4,4] =", t ? "sin" : "cos");
		for (unsigned i = 0; i < 16; i++) {
			const double angle = (double)(i / 4) * pow(base, -(double)(i % 2) / 2);

			n += (size_t)snprintf(text + n, room - n, " %.7f", t ? sin(angle) : cos(angle));
		}
		n += (size_t)snprintf(text + n, room - n, "\n");
	}
}

#define ROTATE(q)                                                                                                      \
	q "c = Mul(" q ", cos)\n" q "l, " q "h = Split(" q ") axis=-1 num_outputs=2\n" q "n = Neg(" q "h)\n" q         \
	  "t = Concat(" q "n, " q "l) axis=-1\n" q "s = Mul(" q "t, sin)\n" q "r = Add(" q "c, " q "s)\n"

Test(onnx_spelt, rotated_queries_and_keys_have_a_base)
{
	static const char nodes[] = IN SIDES WEIGHTS
		"qr0 = Reshape(q, s)\nqq = Transpose(qr0) perm=[0,2,1,3]\nkr0 = Reshape(k, s)\n"
		"kk = Transpose(kr0) perm=[0,2,1,3]\nvr = Reshape(v, s)\n"
		"vh = Transpose(vr) perm=[0,2,1,3]\n" ROTATE("qq")
			ROTATE("kk") "kh = Transpose(kkr) perm=[0,1,3,2]\nsc = MatMul(qqr, kh)\nsf = Mul(sc, half)\n"
				     "p = Softmax(sf)\n" TOGETHER;
	static const double bases[] = {10000, 500000, 100};
	char text[8192];

	for (unsigned i = 0; i < 3; i++) {
		struct psd_graph graph;

		write_tables(text, sizeof(text), bases[i]);
		strncat(text, nodes, sizeof(text) - strlen(text) - 1);
		onnx_file_becomes(text, LAYERS);
		graph = onnx_file_load(text);
		cr_assert_float_eq(graph.layers[6].settings.attention.rotary_base, bases[i], 1e-3 * bases[i]);
		psd_graph_release(&graph);
	}
}

Test(onnx_spelt, rotation_by_other_angles_or_of_other_data_is_refused)
{
	static const char alone[] = "input qq f32[1,2,4,4]\n" ROTATE("qq") "y = Relu(qqr)\n";
	static const char one[] = "input qq f32[1,2,4,4]\nhalf: f32[] = 0.5\n" ROTATE(
		"qq") "kh = Transpose(qq) perm=[0,1,3,2]\nsf = MatMul(qqr, kh)\nsc = Mul(sf, half)\np = Softmax(sc)\n"
		      "y = MatMul(p, qq)\n";
	char text[4096];
	char *angle;

	write_tables(text, sizeof(text), 100);
	strncat(text, alone, sizeof(text) - strlen(text) - 1);
	onnx_file_refuses(text, "node '' (Relu) has a rotated input, which only attention can read");
	write_tables(text, sizeof(text), 100);
	strncat(text, one, sizeof(text) - strlen(text) - 1);
	onnx_file_refuses(text, "node '' (MatMul) has queries rotated by base 100 and keys by 0, must be equal");
	write_tables(text, sizeof(text), 100);
	angle = strstr(text, "1.0000000");
	cr_assert_not_null(angle);
	angle[0] = '0'; /* the first cosine */
	strncat(text, alone, sizeof(text) - strlen(text) - 1);
	onnx_file_refuses(text, "node '' (Mul) rotates by angles that must be powers of one base");
}
