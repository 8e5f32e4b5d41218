/* A computation that no layer does exactly is refused. Nodes that resemble a known pattern without being it become
 * other layers. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "tests/engine/model/onnx/onnx_file.h"
#include "tests/test_with.h"

#define SAMPLES "input x f32[b,6]\n"
#define MAPS	"input x f32[b,4,5,5]\n"
#define PLACES	"input x f32[b,5,4]\n"

/* ---- functions ---- */

/* Between -10 and 10 the clip does nothing: that alone is no reason to leave it out. */
TEST_ROW(onnx_exact, a_wide_clip_below_silu_stays,
	 onnx_file_becomes(SAMPLES "low: f32[] = -10\nhigh: f32[] = 10\nc = Clip(x, low, high)\ns = Sigmoid(c)\n"
				   "y = Mul(c, s)\n",
			   "input 6, affine 6, clip 6, affine 6, silu 6, softmax-loss 6"))

Test(onnx_exact, swish_is_silu_with_a_factor_of_one)
{
	onnx_file_becomes("opset 24\n" SAMPLES "y = Swish(x)\n", "input 6, silu 6, softmax-loss 6");
	onnx_file_becomes("opset 24\n" SAMPLES "y = Swish(x) alpha=1.5\n",
			  "input 6, affine 6, sigmoid 6, multiply 6, softmax-loss 6");
}

TEST_ROW(onnx_exact, limits_are_numbers,
	 onnx_file_refuses(SAMPLES "m = ReduceMean(x) axes=[1]\ny = Clip(x, m)\n",
			   "node '' (Clip) has a limit that must be a constant number"))

Test(onnx_exact, samples_are_not_rounded)
{
	onnx_file_refuses(SAMPLES "y = Cast(x) to=7\n",
			  "node '' (Cast) converts samples to integers or booleans, which no layer can do");
	onnx_file_becomes(SAMPLES "y = Cast(x) to=10\n", "input 6, softmax-loss 6");
	onnx_file_becomes("input x i32[b,6]\nw: f32[9,3]\nt = Cast(x) to=7\ny = Gather(w, t)\n",
			  "input 1x6, embedding 3x6, softmax-loss 3x6");
}

/* ---- learned values ---- */

#define TWO_PRODUCTS(first, second) "input x f32[b,5]\nw: f32[5,5]\na: f32[5]\nc: f32[5]\n" first second

Test(onnx_exact, a_matrix_is_shared_in_one_order)
{
	onnx_file_becomes(TWO_PRODUCTS("h = MatMul(x, w)\n", "y = MatMul(h, w)\n"),
			  "input 5, inner-product 5, inner-product 5, softmax-loss 5");
	onnx_file_refuses(TWO_PRODUCTS("h = MatMul(x, w)\n", "y = Gemm(h, w) transB=1\n"),
			  "node '' (Gemm) multiplies by 'w' in another order than 'MatMul' does");
}

Test(onnx_exact, a_shared_matrix_has_the_bias_of_each)
{
	onnx_file_becomes(TWO_PRODUCTS("h = Gemm(x, w, a)\n", "y = Gemm(h, w, a)\n"),
			  "input 5, inner-product 5, inner-product 5, softmax-loss 5");
	onnx_file_becomes(TWO_PRODUCTS("h = MatMul(x, w)\n", "y = Gemm(h, w, c)\n"),
			  "input 5, inner-product 5, inner-product 5, scale 5, softmax-loss 5");
	onnx_file_becomes(TWO_PRODUCTS("h = Gemm(x, w, a)\n", "y = Gemm(h, w, c)\n"),
			  "input 5, inner-product 5, inner-product 5, scale 5, softmax-loss 5");
}

#define NO_VECTOR(n) "has a computed scale or shift, must be " #n " values of the file"

Test(onnx_exact, added_values_are_in_the_file_or_zero)
{
	onnx_file_becomes(SAMPLES "w: f32[6,3]\nz: f32[3] = 0 0 0\nn = Neg(z)\ny = Gemm(x, w, n)\n",
			  "input 6, inner-product 3, softmax-loss 3");
	onnx_file_refuses(SAMPLES "w: f32[6,3]\nz: f32[3] = 1 0 0\nn = Neg(z)\ny = Gemm(x, w, n)\n",
			  "node '' (Gemm) " NO_VECTOR(3));
	onnx_file_refuses(SAMPLES "w: f32[6,3]\nc: f32[1]\ny = Gemm(x, w, c)\n", "node '' (Gemm) " NO_VECTOR(3));
	onnx_file_refuses(MAPS "w: f32[2,4,3,3]\nz: f32[2] = 1 2\nn = Neg(z)\ny = Conv(x, w, n)\n",
			  "node '' (Conv) " NO_VECTOR(2));
}

Test(onnx_exact, normalisations_have_factors_of_the_file_or_none)
{
	onnx_file_refuses(PLACES "z: f32[4] = 0 1 2 3\no: f32[] = 1\nf = Add(z, o)\ny = LayerNormalization(x, f)\n",
			  "node '' (LayerNormalization) " NO_VECTOR(4));
	onnx_file_refuses(MAPS "z: f32[4] = 1 1 1 2\nf = Neg(z)\nb: f32[4]\nm: f32[4]\nv: f32[4]\n"
			       "y = BatchNormalization(x, f, b, m, v)\n",
			  "node '' (BatchNormalization) " NO_VECTOR(4));
	onnx_file_refuses(
		"opset 8\n" MAPS "f: f32[4]\nb: f32[4]\nm: f32[4]\nv: f32[4]\n"
		"y = BatchNormalization(x, f, b, m, v) spatial=0\n",
		"node '' (BatchNormalization) has statistics for each position, must have them for each channel");
}

Test(onnx_exact, slopes_broadcast_from_behind)
{
	onnx_file_becomes("input x f32[b,5,5]\ns: f32[5,1]\ny = PRelu(x, s)\n",
			  "input 5x5, prelu 5x5, permute 5x5, softmax-loss 5x5");
	onnx_file_refuses("input x f32[b,5,5]\ns: f32[5]\ny = PRelu(x, s)\n",
			  "node '' (PRelu) must have a slope for each channel, or one");
}

Test(onnx_exact, rows_that_are_taken_twice_are_no_parameters_of_their_own)
{
	onnx_file_becomes(PLACES "t: f32[7,4]\ni: i64[5] = 4 3 2 1 0\np = Gather(t, i)\ny = Add(x, p)\n",
			  "input 5x4, position 5x4, permute 4x5, softmax-loss 4x5");
	onnx_file_refuses(PLACES "t: f32[3,4] = 1 2 3 4 5 6 7 8 9 10 11 12\ni: i64[5] = 2 1 0 1 2\n"
				 "p = Gather(t, i)\ny = Add(x, p)\n",
			  "node '' (Gather) takes a learned row several times, which no layer can do");
	onnx_file_refuses("input x f32[b,3]\nt: f32[3,4] = 1 2 3 4 5 6 7 8 9 10 11 12\nw = Neg(t)\ny = MatMul(x, w)\n",
			  "node '' (MatMul) has a weight that is computed, must have one of the file");
}

/* ---- normalisation that is spelt out ---- */

#define SPELT(difference)                                                                                              \
	PLACES "two: f32[] = 2\ne: f32[] = 0.001\nm = ReduceMean(x) axes=[-1]\nd = " difference "\np = Pow(d, two)\n"  \
	       "v = ReduceMean(p) axes=[-1]\ns = Add(v, e)\nr = Sqrt(s)\ny = Div(d, r)\n"

Test(onnx_exact, a_mean_is_subtracted)
{
	onnx_file_becomes("opset 17\n" SPELT("Sub(x, m)"), "input 5x4, permute 4x5, layer-norm 4x5, softmax-loss 4x5");
	onnx_file_refuses("opset 17\n" SPELT("Sub(m, x)"),
			  "node '' (Sub) has inputs of shapes [1,5,1] and [1,5,4], must be equal, or one must have a "
			  "factor for each map of the other");
}

/* ---- the end ---- */

Test(onnx_exact, a_softmax_at_the_end_is_over_the_classes)
{
	onnx_file_becomes(PLACES "y = Softmax(x) axis=2\n", "input 5x4, permute 4x5, softmax-loss 4x5");
	onnx_file_refuses(PLACES "y = Softmax(x) axis=1\n",
			  "node '' (Softmax) is over axis 1 of the network's output, must be over its classes, axis 2");
}

Test(onnx_exact, a_loss_is_the_mean_of_all)
{
	const char message[] =
		"node '' (SoftmaxCrossEntropyLoss) must be the mean over all samples, with equal weights of classes";

	onnx_file_becomes(SAMPLES "input t i64[b]\ny = SoftmaxCrossEntropyLoss(x, t) reduction=\"mean\"\n",
			  "input 6, softmax-loss 6");
	onnx_file_refuses(SAMPLES "input t i64[b]\ny = SoftmaxCrossEntropyLoss(x, t) reduction=\"sum\"\n", message);
	/* no class has the number -100, or 6 */
	onnx_file_becomes(SAMPLES "input t i64[b]\ny = SoftmaxCrossEntropyLoss(x, t) ignore_index=-100\n",
			  "input 6, softmax-loss 6");
	onnx_file_becomes(SAMPLES "input t i64[b]\ny = SoftmaxCrossEntropyLoss(x, t) ignore_index=6\n",
			  "input 6, softmax-loss 6");
	onnx_file_refuses(SAMPLES "input t i64[b]\ny = SoftmaxCrossEntropyLoss(x, t) ignore_index=0\n", message);
	onnx_file_refuses(SAMPLES "input t i64[b]\ny = SoftmaxCrossEntropyLoss(x, t) ignore_index=5\n", message);
	onnx_file_refuses(SAMPLES "input t i64[b]\nw: f32[6]\ny = SoftmaxCrossEntropyLoss(x, t, w)\n", message);
}

/* ---- attention ---- */

/* Two heads of 4 values at 3 positions. */
#define HEADS                                                                                                          \
	"input x f32[b,3,8]\ns: i64[4] = 0 0 2 4\nr = Reshape(x, s)\nq = Transpose(r) perm=[0,2,1,3]\n"                \
	"k = Transpose(r) perm=[0,2,3,1]\n"
#define END                                                                                                            \
	"p = Softmax(c) axis=-1\no = MatMul(p, q)\nt = Transpose(o) perm=[0,2,1,3]\nback: i64[3] = 0 0 -1\n"           \
	"y = Reshape(t, back)\n"

Test(onnx_exact, scores_are_divided_by_the_root_of_the_depth)
{
	onnx_file_becomes(HEADS "f: f32[] = 0.5\nd = MatMul(q, k)\nc = Mul(d, f)\n" END,
			  "input 3x8, permute 8x3, permute 8x3, concat 24x3, attention 8x3, softmax-loss 8x3");
	onnx_file_refuses(HEADS "f: f32[] = 0.5003\nd = MatMul(q, k)\nc = Mul(d, f)\n" END,
			  "node '' (Softmax) scales scores by 0.5003, must be 1 / sqrt(4), the depth of a head");
}

/* Rotated by the angles in `angles` for each of two pairs, at three positions, with the base 100. */
static void rotated(char text[2048], const double angles[2], double size)
{
	size_t n = (size_t)snprintf(text, 2048, "%s", HEADS "f: f32[] = 0.5\ntwo: i64[2] = 2 2\n");

	for (unsigned is_sine = 0; is_sine < 2; is_sine++) {
		n += (size_t)snprintf(text + n, 2048 - n, "%s: f32[1,1,3,4] =", is_sine ? "sine" : "cosine");
		for (unsigned e = 0; e < 12; e++) {
			const double angle = e / 4 * angles[e % 2];

			n += (size_t)snprintf(text + n, 2048 - n, " %.9g", size * (is_sine ? sin(angle) : cos(angle)));
		}
		n += (size_t)snprintf(text + n, 2048 - n, "\n");
	}
	snprintf(text + n, 2048 - n, "%s",
		 "g = Mul(q, cosine)\na, b = Split(q, two) axis=3\nm = Neg(b)\nh = Concat(m, a) axis=3\n"
		 "w = Mul(h, sine)\nz = Add(g, w)\nzt = Transpose(z) perm=[0,1,3,2]\nd = MatMul(z, zt)\n"
		 "c = Mul(d, f)\n" END);
}

#define TURNED "node '' (Mul) rotates by angles that must be powers of one base"

/* Longer periods that are stretched, as Llama 3.1's are, or larger cosines, as YaRN's, are other angles. */
Test(onnx_exact, angles_are_powers_of_a_base)
{
	char text[2048];

	rotated(text, (const double[]){1, 0.1}, 1);
	onnx_file_becomes(text, "input 3x8, permute 8x3, permute 8x3, concat 24x3, attention 8x3, softmax-loss 8x3");
	rotated(text, (const double[]){1, 0.1}, 1.001);
	onnx_file_refuses(text, TURNED);
	rotated(text, (const double[]){0.999, 0.1}, 1);
	onnx_file_refuses(text, TURNED);
}

/* ---- randomness ---- */

Test(onnx_exact, masks_are_for_values_or_samples)
{
#define MASKED(like)                                                                                                   \
	MAPS "half: f32[] = 0.5\nl: f32" like "\nu = RandomUniformLike(l)\nm = Less(u, half)\nn = Cast(m) to=1\n"      \
	     "y = Mul(x, n)\n"
	onnx_file_becomes(MASKED("[1,1,1,1]"), "input 4x5x5, softmax-loss 4x5x5");
	onnx_file_becomes(MASKED("[1,4,5,5]"), "input 4x5x5, dropout 4x5x5, softmax-loss 4x5x5");
	onnx_file_refuses(MASKED("[1,4,1,1]"),
			  "node '' (Mul) drops groups of values, must drop single values or whole samples");
}

TEST_ROW(onnx_exact, operators_of_others_are_not_computed,
	 onnx_file_refuses(SAMPLES "a: f32[] = 1\nb = Neg(a) @domain=com.example\ny = Add(x, b)\n",
			   "node '' (Neg) is an operator of 'com.example', must be one of ONNX itself"))

/* ---- randomness ---- */

TEST_ROW(onnx_exact, random_numbers_that_are_no_mask_are_refused,
	 onnx_file_refuses(SAMPLES "r = RandomUniformLike(x)\ny = Mul(x, r)\n",
			   "node '' (Mul) multiplies by random numbers, must be the mask of dropout"))
