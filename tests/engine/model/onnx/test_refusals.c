/* Every complaint about a network in ONNX's form, with its node and what is accepted. */
#include <criterion/criterion.h>

#include "tests/engine/model/onnx/onnx_file.h"

struct refusal {
	const char *text, *message;
};

static void check(const struct refusal *refusals, size_t n)
{
	for (size_t i = 0; i < n; i++)
		onnx_file_refuses(refusals[i].text, refusals[i].message);
}

#define CHECK(refusals) check(refusals, sizeof(refusals) / sizeof((refusals)[0]))

#define FLAT   "input x f32[1,12]\n"
#define ROWS   "input x f32[1,4,6]\n"
#define MAPS   "input x f32[1,3,8,8]\n"
#define BATCH  "input x f32[3,4,6]\n"
#define HEADS  "input x f32[1,2,4,4]\n" /* 4 positions and depth 4 */
#define SCORES HEADS "k = Transpose(x) perm=[0,1,3,2]\ns = MatMul(x, k)\n"
#define HALF   "h: f32[] = 0.5\n" /* by the root of the depth */

Test(onnx_refusals, the_whole_file)
{
	static const struct refusal refusals[] = {
		{FLAT "w: f32[12,5]\nw: f32[2]\ny = MatMul(x, w)", "the value 'w' exists twice"},
		{FLAT "y = Relu(x)\ny = Tanh(x)", "the value 'y' exists twice"},
		{FLAT "x = Relu(x)", "the value 'x' exists twice"},
		{FLAT, "the network has no output"},
		{FLAT "output x", "the network reads no input"},
		{FLAT "y = Relu(x)\noutput z", "no node makes the output 'z'"},
		{FLAT "y = Relu(z) @name=n", "node 'n' (Relu) reads 'z', which does not exist"},
		{FLAT "a = Relu(x)\ny = Add(a, z)\nz = Relu(a)\noutput y",
		 "node '' (Add) reads 'z', which no node above it makes"},
		{FLAT "a = Add(x, b)\nb = Relu(a)", "node '' (Add) reads 'b', which no node above it makes"},
		{FLAT "a = Sum(a, x)", "node '' (Sum) reads 'a', which no node above it makes"},
		{FLAT "a, m = MaxPool(x)\ny = Relu(m)\noutput m",
		 "node '' (MaxPool) must have an input of samples, channels and one or two spatial axes"},
		{"input x f32[4]\ny = Relu(x)",
		 "the input 'x' must have two to four axes, the first of which is the batch"},
		{"input x f32[1,2,3,4,5]\ny = Relu(x)",
		 "the input 'x' must have two to four axes, the first of which is the batch"},
		{"input x f32[1,n]\ny = Relu(x)",
		 "axis 1 of the input 'x' has no size in the file ('n'), needs the key model.input: {n: SIZE}"},
		{"input x f32[1,-3]\ny = Relu(x)", "axis 1 of the input 'x' has size -3, must be 1 to 16777216"},
		{"input x f32[1,9223372036854775807]\ny = Relu(x)",
		 "axis 1 of the input 'x' has size 9223372036854775807, must be 1 to 16777216"},
		{"input x f32[1,3,65537]\ny = Relu(x)", "the input 'x' has more than 65536 positions"},
		{"input x i64[1,65537]\ny = Relu(x)", "the input 'x' has more than 65536 positions"},
		{FLAT "input z f32[1,12]\ny = Add(x, z)",
		 "the network has two inputs, 'x' and 'z', must have one: export it with its parameters, without a "
		 "loss, and other inputs as constants"},
		{FLAT "w: f32[2] = 1 2\ny = Neg(w)", "the network reads no input"},
		{FLAT "y = Relu(x) @domain=com.microsoft @name=n",
		 "node 'n' (Relu) is an operator of 'com.microsoft', must be one of ONNX itself"},
		{FLAT "y = Einsum(x) @name=n", "node 'n' (Einsum) is an operator that has no layer in psd"},
	};

	CHECK(refusals);
}

Test(onnx_refusals, constants)
{
	static const struct refusal refusals[] = {
		{FLAT "w: f32[1,1,1,1,1,1,1,1,1]\ny = Add(x, w)", "tensor 'w' has 9 axes, must have up to 8"},
		{FLAT "w: f32[-1]\ny = Add(x, w)", "tensor 'w' has a dimension of -1, must be 0 to 4294967295"},
		{FLAT "w: f32[4294967296]\ny = Add(x, w)",
		 "tensor 'w' has a dimension of 4294967296, must be 0 to 4294967295"},
		{FLAT "s: i64[2]\ny = Reshape(x, s)", "the file leaves out the numbers of 's'"},
		{FLAT "s: i64[2] = 3\ny = Reshape(x, s)", "the file leaves out the numbers of 's'"},
		{FLAT "s: str[2]\ny = Reshape(x, s)", "tensor 's' has no numbers"},
		{FLAT "s: i64[9] = 1 1 1 1 1 1 1 1 12\ny = Reshape(x, s)",
		 "node '' (Reshape) has 9 'shape', must have up to 8"},
		{FLAT "s = Shape(x)\nc = ConstantOfShape(s) value=f32[1,1,1,1,1,1,1,1,1]{2}\ny = Mul(x, c)",
		 "tensor '' has 9 axes, must have up to 8"},
		{FLAT "c = Constant() value=f32[1,1,1,1,1,1,1,1,1]{2}\nd = Neg(c)\ny = Mul(x, d)",
		 "tensor '' has 9 axes, must have up to 8"},
		{FLAT "c = Constant() value_string=\"a\"\ny = Mul(x, c)",
		 "node '' (Constant) has no value, must have numbers"},
		{FLAT "e: f32[2] = external /etc/passwd 0\nt = Neg(e)\ny = Mul(x, t)",
		 "tensor 'e' lies in '/etc/passwd', must lie in a file beside the model"},
		{FLAT "e: f32[2] = external ../w.bin 0\nt = Neg(e)\ny = Mul(x, t)",
		 "tensor 'e' lies in '../w.bin', must lie in a file beside the model"},
		{FLAT "a: f32[2] = 1 2\nt = Add(a, )\ny = Mul(x, t)", "node '' (Add) must have 2 inputs"},
		{FLAT "a: f32[2] = 1 2\nt = Add(, a)\ny = Mul(x, t)", "node '' (Add) must have 2 inputs"},
		{FLAT "t = Neg()\ny = Mul(x, t)", "node '' (Neg) must have 1 inputs"},
		{FLAT "t = ConstantOfShape()\ny = Mul(x, t)", "node '' (ConstantOfShape) must have 1 inputs"},
		{FLAT "t = ReduceProd()\ny = Mul(x, t)", "node '' (ReduceProd) must have 1 inputs"},
		{FLAT "a: f32[2] = 1 2\nt = Where(a, a)\ny = Mul(x, t)", "node '' (Where) must have 3 inputs"},
		{FLAT "a: f32[2] = 1 2\nt = GatherElements(a)\ny = Mul(x, t)",
		 "node '' (GatherElements) must have 2 inputs"},
		{FLAT "a: f32[2] = 1 2\nb: f32[3] = 1 2 3\nt = Add(a, b)\ny = Mul(x, t)",
		 "node '' (Add) has inputs of shapes [2] and [3], must be equal in each axis, or 1"},
		{FLAT "a: f32[2] = 1 2\nb: f32[3] = 1 2 3\nt = Where(a, b, a)\ny = Mul(x, t)",
		 "node '' (Where) has inputs of shapes [2], [3] and [2], must be equal in each axis, or 1"},
		{FLAT "a: f32[2] = 1 2\nb: f32[1,1] = 3\nt = Concat(a, b) axis=0\ny = Mul(x, t)",
		 "node '' (Concat) has inputs of shapes [2] and [1,1], must be equal except along 'axis'"},
		{FLAT "a: f32[2,1] = 1 2\nb: f32[3,1] = 1 2 3\nt = Concat(a, b) axis=1\ny = Mul(x, t)",
		 "node '' (Concat) has inputs of shapes [2,1] and [3,1], must be equal except along 'axis'"},
		{FLAT "a: f32[2] = 1 2\nb: i64[1,1] = 0\nt = GatherElements(a, b)\ny = Mul(x, t)",
		 "node '' (GatherElements) has inputs of shapes [2] and [1,1], must be equal except along 'axis'"},
		{FLAT "a: f32[2,2] = 1 2 3 4\nb: i64[1,1] = 0\nt = GatherElements(a, b)\ny = Mul(x, t)",
		 "node '' (GatherElements) has inputs of shapes [2,2] and [1,1], must be equal except along 'axis'"},
		{FLAT "a: f32[2] = 1 2\nb: i64[2] = 0 2\nt = GatherElements(a, b)\ny = Mul(x, t)",
		 "node '' (GatherElements) takes position 2 of an axis with 2"},
		{FLAT "s: i64[9] = 1 1 1 1 1 1 1 1 1\nt = ConstantOfShape(s)\ny = Mul(x, t)",
		 "node '' (ConstantOfShape) has more than 8 axes"},
		{FLAT "s: i64[2] = 4097 4096\nt = ConstantOfShape(s)\ny = Mul(x, t)",
		 "node '' (ConstantOfShape) needs more than 16777216 numbers of a constant"},
		{FLAT "a: i64[] = 0\nb: i64[] = 3\nt = Range(a, b, a)\ny = Mul(x, t)",
		 "node '' (Range) must have a start, a limit and a step"},
		{FLAT "a: f32[2] = 1 2\nt = Trilu(a)\ny = Mul(x, t)",
		 "node '' (Trilu) has an input of 1 axes, must have 2"},
		{FLAT "a: f32[2,1] = 1 2\nt = ReduceProd(a)\ny = Mul(x, t)",
		 "node '' (ReduceProd) has an input of 2 axes, must have 1"},
		{FLAT "a: f32[2] = 1 2\ni: i64[] = 2\nt = Gather(a, i)\ny = Mul(x, t)",
		 "node '' (Gather) takes position 2 of an axis with 2"},
		{FLAT "a: f32[2] = 1 2\ni: f32[] = nan\nt = Gather(a, i)\ny = Mul(x, t)",
		 "node '' (Gather) takes position nan of an axis with 2"},
		{FLAT "a: f32[1,1,1,1,1,1,1,1] = 1\ni: i64[1,1] = 0\nt = Gather(a, i)\ny = Mul(x, t)",
		 "node '' (Gather) makes more than 8 axes"},
		{FLAT "a: f32[0] = \nt = Reshape(a, a)\ny = Mul(x, t)",
		 "node '' (Reshape) has an input that psd cannot view in another shape"},
	};

	CHECK(refusals);
}

Test(onnx_refusals, shapes)
{
	static const struct refusal refusals[] = {
		{ROWS "y = Reshape(x, x)", "node '' (Reshape) computes 'shape' from the samples, must have a constant"},
		{ROWS "s: i64[2] = 1 23\ny = Reshape(x, s)",
		 "node '' (Reshape) cannot reshape an input of shape [1,4,6] to [1,23]"},
		{ROWS "s: i64[2] = -1 -1\ny = Reshape(x, s)",
		 "node '' (Reshape) makes axis 1 of size -1, which is not possible"},
		{ROWS "s: i64[2] = 1 -2\ny = Reshape(x, s)",
		 "node '' (Reshape) makes axis 1 of size -2, which is not possible"},
		{ROWS "s: i64[4] = 1 4 6 0\ny = Reshape(x, s)",
		 "node '' (Reshape) makes axis 3 of size 0, which is not possible"},
		{ROWS "s: i64[2] = 1 4294967296\ny = Reshape(x, s)",
		 "node '' (Reshape) makes axis 1 of size 4294967296, which is not possible"},
		{ROWS "s: i64[4] = 65536 65536 65536 65536\ny = Reshape(x, s)",
		 "node '' (Reshape) cannot reshape an input of shape [1,4,6] to [65536,65536,65536,65536]"},
		{ROWS "s: i64[5] = 65536 65536 65536 65536 -1\ny = Reshape(x, s)",
		 "node '' (Reshape) cannot reshape an input of shape [1,4,6] to [65536,65536,65536,65536,0]"},
		{ROWS "a: i64[1] = 3\ny = Squeeze(x, a)", "node '' (Squeeze) has axis 3, must be from -3 to before 3"},
		{ROWS "a: i64[1] = -5\ny = Unsqueeze(x, a)",
		 "node '' (Unsqueeze) has axis -5, must be from -4 to before 4"},
		{ROWS "a: i64[6] = 0 1 2 3 4 5\ny = Unsqueeze(x, a)", "node '' (Unsqueeze) makes more than 8 axes"},
		{ROWS "a: i64[1] = 1\ny = Squeeze(x, a)",
		 "node '' (Squeeze) cannot reshape an input of shape [1,4,6] to [1,6]"},
		{ROWS "s: i64[3] = 1 4 5\ny = Expand(x, s)",
		 "node '' (Expand) cannot broadcast an input of shape [1,4,6] to [1,4,5]"},
		{ROWS "s: i64[3] = 1 4 0\ny = Expand(x, s)",
		 "node '' (Expand) cannot broadcast an input of shape [1,4,6] to [1,4,0]"},
		{ROWS "y = Transpose(x) perm=[0,1]",
		 "node '' (Transpose) has a 'perm' that must name each of 3 axes once"},
		{ROWS "y = Transpose(x) perm=[0,1,1]",
		 "node '' (Transpose) has a 'perm' that must name each of 3 axes once"},
		{ROWS "y = Transpose(x) perm=[0,1,-1]",
		 "node '' (Transpose) has a 'perm' that must name each of 3 axes once"},
		{ROWS "y = Transpose(x) perm=[0,1,2,3,4,5,6,7,8]",
		 "node '' (Transpose) has 9 'perm', must have up to 8"},
		{ROWS "o: i64[1] = 1\nt: i64[2] = 1 2\ny = Slice(x, o, t)",
		 "node '' (Slice) has 1 starts, 2 ends, 0 axes, 0 steps, must have equally many"},
		{ROWS "o: i64[1] = 2\nt: i64[1] = 2\ny = Slice(x, o, t, o)",
		 "node '' (Slice) takes positions from 2 to before 2 in steps of 1, from an axis of 6"},
		{ROWS "o: i64[1] = 1\nt: i64[1] = 9\nm: i64[1] = -1\ny = Slice(x, o, t, o, m)",
		 "node '' (Slice) takes positions from 1 to before 9 in steps of -1, from an axis of 4"},
		{ROWS "p: i64[3] = 1 2 1\ny, z = Split(x, p) axis=1",
		 "node '' (Split) has 3 parts and 2 outputs, must have equally many"},
		{ROWS "p: i64[2] = 3 2\ny, z = Split(x, p) axis=1\no = Add(y, z)",
		 "node '' (Split) takes 2 positions of axis 1 from 3 on, which no view of its input has"},
		{ROWS "p: i64[2] = 9223372036854775807 9223372036854775807\ny, z = Split(x, p) axis=1",
		 "node '' (Split) takes 9223372036854775807 positions of axis 1 from 0 on, which no view of its input "
		 "has"},
		{BATCH "o: i64[1] = 0\nt: i64[1] = 1\ny = Slice(x, o, t)",
		 "node '' (Slice) takes 1 positions of axis 0 from 0 on, which no view of its input has"},
		{ROWS "i: i64[2] = 2 1\ny = Gather(x, i) axis=1",
		 "node '' (Gather) takes positions of the samples in an order that psd cannot express"},
		{ROWS "y = DepthToSpace(x) blocksize=2",
		 "node '' (DepthToSpace) must have an input of four axes, and a 'blocksize' from 1 to 1024"},
		{"input x f32[1,6,4,5]\ny = DepthToSpace(x) blocksize=2",
		 "node '' (DepthToSpace) makes blocks of 4 values from 6 channels, must divide them"},
		{"input x f32[1,6,4,5]\ny = SpaceToDepth(x) blocksize=2",
		 "node '' (SpaceToDepth) makes blocks of 2 by 2 from 4 by 5 positions, must divide them"},
		{ROWS "i: i64[] = 4\ny = Gather(x, i) axis=1", "node '' (Gather) takes position 4 of an axis with 4"},
		{ROWS "i: i64[] = -5\ny = Gather(x, i) axis=1", "node '' (Gather) takes position -5 of an axis with 4"},
		{ROWS "i: i64[0] =\ny = Gather(x, i) axis=1",
		 "node '' (Gather) takes no position, must take one or more"},
		{ROWS "i: i64[] = 0\ny = Gather(x, i) axis=3",
		 "node '' (Gather) has axis 3, must be from -3 to before 3"},
		{SCORES "a: i64[1] = 0\ny = Squeeze(s, a)",
		 "node '' (Squeeze) changes the shape of attention's scores, which psd does not support"},
		/* every second of 5 places */
		{"input x f32[1,4,5]\no: i64[1] = 0\nt: i64[1] = 4\na: i64[1] = 2\np: i64[1] = 2\nz = Slice(x, o, t, "
		 "a, p)\n"
		 "y = Flatten(z)",
		 "node '' (Flatten) separates values in a way that psd cannot express"},
		{ROWS "s: i64[4] = 1 2 4 6\nz = Expand(x, s)\ny = Flatten(z)",
		 "node '' (Flatten) repeats values, which no layer can do"},
		/* 6 positions as 2 of 3 in one and 3 of 2 in the other, far apart in both */
		{"input x f32[1,6,6]\ns: i64[5] = 1 2 3 2 3\nr = Reshape(x, s)\nf: i64[3] = 1 6 6\n"
		 "o = Transpose(r) perm=[0,1,4,3,2]\np = Transpose(r) perm=[0,4,1,2,3]\n"
		 "a = Reshape(o, f)\nb = Reshape(p, f)\ny = Add(a, b)",
		 "node '' (Add) has inputs of one shape, but with their values in orders that no layer can make equal"},
		{"input x f32[1,65536,64]\nt = Transpose(x) perm=[0,2,1]\ns: i64[3] = 1 1 4194304\nr = Reshape(t, s)\n"
		 "w: f32[2,1,1]\ny = Conv(r, w)",
		 "node '' (Conv) needs a layer of 1x4194304x1, must be at most 16777216x65536x65536"},
	};

	CHECK(refusals);
}

Test(onnx_refusals, products)
{
	static const struct refusal refusals[] = {
		{ROWS "w: f32[7,5]\ny = MatMul(x, w)",
		 "node '' (MatMul) multiplies 6 values by a weight for 7, must be equally many"},
		{ROWS "w: f32[6,16777217]\ny = MatMul(x, w)",
		 "node '' (MatMul) has 16777217 outputs, must have up to 16777216"},
		{ROWS "w: f32[6]\ny = MatMul(x, w)", "node '' (MatMul) must have a constant weight of 2 to 2 axes"},
		{ROWS "w: f32[6,0]\ny = MatMul(x, w)", "node '' (MatMul) must have a constant weight of 2 to 2 axes"},
		{ROWS "y = MatMul(x)", "node '' (MatMul) must have a constant weight of 2 to 2 axes"},
		{ROWS "w: f32[4,4]\ny = MatMul(w, x)",
		 "node '' (MatMul) must multiply samples by a weight, or be part of attention"},
		{FLAT "w: f32[12,5]\ny = Gemm(x, w) alpha=0.5",
		 "node '' (Gemm) must multiply samples by a weight, with factors of 1"},
		{FLAT "w: f32[12,5]\nb: f32[1]\ny = Gemm(x, w, b)",
		 "node '' (Gemm) has a computed scale or shift, must be 5 values of the file"},
		{MAPS "w: f32[4,3,3,3]\ns: i64[1] = 4\nb = ConstantOfShape(s) value=f32[1]{1}\ny = "
		      "Conv(x, w, b)",
		 "node '' (Conv) has a computed scale or shift, must be 4 values of the file"},
		{FLAT "w: f32[12,5]\nb: f32[1,1,5]\np = MatMul(x, w)\ny = Add(p, b)",
		 "node '' (Add) has inputs of shapes [1,5] and [1,1,5], the learned one has too many "
		 "axes"}, /* it makes an axis */
		{FLAT "w: f32[12,5]\nb: f32[5,1]\np = MatMul(x, w)\ny = Add(p, b)",
		 "node '' (Add) has inputs of shapes [1,5] and [5,1], must be equal in each axis, or 1 "
		 "in the learned one"},
		{FLAT "w: f32[12,5]\ny = Gemm(x, w) transA=1",
		 "node '' (Gemm) must multiply samples by a weight, with factors of 1"},
		{BATCH "s: i64[2] = 1 72\nr = Reshape(x, s)\nw: f32[72,5]\ny = MatMul(r, w)",
		 "node '' (MatMul) is over axis 1, which contains the batch, must be within a sample"},
		{BATCH "y = Concat(x, x) axis=0",
		 "node '' (Concat) is over axis 0, which contains the batch, must be within a sample"},
		{BATCH "y = Softmax(x) axis=0\nz = Relu(y)",
		 "node '' (Softmax) is over axis 0, which contains the batch, must be within a sample"},
		{FLAT "w: f32[4,12,3]\ny = Conv(x, w)",
		 "node '' (Conv) must have an input of samples, channels and one or two spatial axes"},
		{MAPS "w: f32[4,3]\ny = Conv(x, w)", "node '' (Conv) must have a constant weight of 3 to 4 axes"},
		{MAPS "w: f32[4,2,3,3]\ny = Conv(x, w)",
		 "node '' (Conv) has a weight of shape [4,2,3,3], which does not fit 3 channels in 1 groups"},
		{MAPS "w: f32[4,1,3,3]\ny = Conv(x, w) group=-3",
		 "node '' (Conv) has a weight of shape [4,1,3,3], which does not fit 3 channels in -3 groups"},
		{MAPS "w: f32[3,4294967295,1,1]\ny = ConvTranspose(x, w) group=2",
		 "node '' (ConvTranspose) has a weight of shape [3,4294967295,1,1], which does not fit "
		 "3 channels in 2 groups"},
		{MAPS "w: f32[4,3,65537,1]\ny = Conv(x, w)",
		 "node '' (Conv) has a window of 65537, must have up to 65536"},
		{MAPS "w: f32[4,3,3,3]\ny = Conv(x, w) kernel_shape=[5,3]",
		 "node '' (Conv) has a weight for a window of 3 by 3, and a kernel of 5 by 3"},
		{ROWS "w: f32[4,4,3,3]\ny = Conv(x, w)",
		 "node '' (Conv) has a weight for a window of 3 by 3, and a kernel of 3 by 3"},
		{MAPS "w: f32[4,3,3,3]\ny = Conv(x, w) strides=[0,1]",
		 "node '' (Conv) has 'strides' 0, must have 2 from 1 to 65536"},
		{MAPS "w: f32[4,3,3,3]\ny = Conv(x, w) strides=[1]",
		 "node '' (Conv) has 'strides' 1, must have 2 from 1 to 65536"},
		{MAPS "w: f32[4,3,3,3]\ny = Conv(x, w) dilations=[1,1,1]",
		 "node '' (Conv) has 3 'dilations', must have up to 2"},
		{MAPS "w: f32[4,3,3,3]\ny = Conv(x, w) pads=[1,1]", "node '' (Conv) has 2 pads, must have 4"},
		{MAPS "w: f32[4,3,3,3]\ny = Conv(x, w) pads=[0,1,1,1]",
		 "node '' (Conv) has pads of 0 before and 1 after, must be equal"},
		{MAPS "w: f32[4,3,3,3]\ny = Conv(x, w) pads=[-1,1,-1,1]",
		 "node '' (Conv) has pads of -1 before and -1 after, must be equal"},
		/* 8 by 2 with windows of 3: one more at one end */
		{MAPS "w: f32[4,3,3,3]\ny = Conv(x, w) strides=[2,2] auto_pad=\"SAME_UPPER\"",
		 "node '' (Conv) has pads of 0 before and 1 after, must be equal"},
		{MAPS "w: f32[3,4,3,3]\ny = ConvTranspose(x, w) auto_pad=\"SAME_LOWER\"",
		 "node '' (ConvTranspose) has 'auto_pad', must have 'pads'"},
		{MAPS "w: f32[3,4,3,3]\ny = ConvTranspose(x, w) output_padding=[1,1]",
		 "node '' (ConvTranspose) has an output padding or shape, must have none"},
		{MAPS "y = MaxPool(x) kernel_shape=[2,2] dilations=[2,2]",
		 "node '' (MaxPool) has 'dilations', must have none"},
		{MAPS "y = AveragePool(x) kernel_shape=[3,3] pads=[1,1,1,1]",
		 "node '' (AveragePool) has a mean without its pads, must have 'count_include_pad' 1"},
		{ROWS "t: f32[7,5]\ny = Gather(t, x) axis=1",
		 "node '' (Gather) must look up table rows by the network's input"},
		{"input x i64[1,4]\nt: f32[16777217,5]\ny = Gather(t, x)",
		 "node '' (Gather) has a table of more than 16777216 rows or columns"},
		{"input x i64[1,4]\ns: i64[8] = 1 1 1 1 1 1 1 4\nr = Reshape(x, s)\nt: f32[7,5]\ny = "
		 "Gather(t, r)",
		 "node '' (Gather) makes more than 8 axes"},
	};

	CHECK(refusals);
}

Test(onnx_refusals, other_layers)
{
	static const struct refusal refusals[] = {
		{ROWS "t = Transpose(x) perm=[0,2,1]\ny = Add(x, t)",
		 "node '' (Add) has inputs of shapes [1,4,6] and [1,6,4], must be equal, or one must have a factor for "
		 "each map of the other"},
		{ROWS "w: f32[1,4,6] = external w.bin 0\ny = Mul(x, w)",
		 "node '' (Mul) has learned values for some axes of its input, must have them for one axis, or "
		 "summands for all values"},
		{ROWS "w: f32[5]\ny = Add(x, w)", "node '' (Add) has inputs of shapes [1,4,6] and [5], must be equal "
						  "in each axis, or 1 in the learned one"},
		{ROWS "w: f32[1,1,4,6]\ny = Add(x, w)",
		 "node '' (Add) has inputs of shapes [1,4,6] and [1,1,4,6], the learned one has too many axes"},
		{BATCH "w: f32[3,4,6]\ny = Add(x, w)", "node '' (Add) has learned values for each sample of the batch"},
		{ROWS "w: f32[6]\ny = Div(x, w)", "node '' (Div) combines samples with values of the file, must add or "
						  "multiply them: normalise samples outside of the network"},
		{ROWS "i: i64[2] = 6 1\nc = Cast(i) to=1\ny = Mul(x, c)",
		 "node '' (Mul) combines samples with several computed numbers, must be a single one or values of the "
		 "file"},
		{ROWS "y = Add(x)", "node '' (Add) must have two inputs, and samples as one of them"},
		{ROWS "r = RandomUniformLike(x)\nl = Add(r, x)",
		 "node '' (Add) combines samples with random numbers, must be the mask of dropout"},
		{ROWS "r = RandomUniformLike(x)\nm = Less(r, r)\ny = Mul(x, m)",
		 "node '' (Less) changes a random mask, must compare it with a number"},
		{ROWS "y = Dropout(x) ratio=1.0", "node '' (Dropout) drops 1, must be 0 to less than 1"},
		{ROWS "y = Dropout(x) ratio=-0.5", "node '' (Dropout) drops -0.5, must be 0 to less than 1"},
		{ROWS "z: f32[] = 0\ny = Less(x, z)", "node '' (Less) compares samples, which no layer can do"},
		{ROWS "c: b8[] = 1\nz: f32[] = 0\ny = Where(c, x, z)",
		 "node '' (Where) chooses between samples, which no layer can do"},
		{ROWS "y = ReduceMean(x)", "node '' (ReduceMean) must have 'axes'"},
		{BATCH "y = ReduceMean(x) axes=[0]",
		 "node '' (ReduceMean) is over the axis of the batch, must be within a sample"},
		{ROWS "y = ReduceMean(x) axes=[3]", "node '' (ReduceMean) has axis 3, must be from -3 to before 3"},
		{ROWS "c: f32[2] = 1 2\nm = ReduceMean(c) axes=[0]\ny = Mul(x, m)",
		 "node '' (ReduceMean) must have samples as its input"},
		{ROWS "a: i64[2] = 0 1\nf = Reshape(x, a)",
		 "node '' (Reshape) cannot reshape an input of shape [1,4,6] to [1,1]"},
		{FLAT "s: i64[1] = -1\nf = Reshape(x, s)\ny = BatchNormalization(f, s, s, s, s)",
		 "node '' (BatchNormalization) must have an input of samples and channels"},
		{FLAT "s: i64[1] = -1\nf = Reshape(x, s)\ny = PRelu(f, s)",
		 "node '' (PRelu) must have an input of samples and channels"},
		{FLAT "s: i64[1] = -1\nf = Reshape(x, s)",
		 "node '' (Reshape) makes an output of 1 axes, must have samples and classes"},
		{ROWS "w: f32[6]\ny = LayerNormalization(x, w) axis=1",
		 "node '' (LayerNormalization) is over several axes, must be over the last one"},
		{MAPS "y = LRN(x) size=4", "node '' (LRN) has 'size' 4, must be an odd number from 1 to 65536"},
		{MAPS "y = LRN(x)", "node '' (LRN) has 'size' 0, must be an odd number from 1 to 65536"},
		{"input x f32[1,4,65536,65536]\ns: i64[5] = 1 2 2 65536 65536\nr = Reshape(x, s)\nw: f32[2]\n"
		 "y = BatchNormalization(r, w, w, w, w)",
		 "node '' (BatchNormalization) has an axis of more than 4294967295"},
		{MAPS "w: f32[2]\ny = PRelu(x, w)", "node '' (PRelu) must have a slope for each channel, or one"},
		{"opset 12\n" ROWS "p = Softmax(x) axis=1\ny = Relu(p)",
		 "node '' (Softmax) is over axis 1 and all after it, must be over one"},
		{ROWS "f = Flatten(x)\ny = Concat(x, f) axis=1",
		 "node '' (Concat) has inputs of shapes [1,4,6] and [1,24], must have equally many axes"},
		{ROWS "c: f32[1,4,6]\ny = Concat(x, c) axis=1", "node '' (Concat) must have samples as its input"},
		{ROWS "e = Erf(x)\ny = Neg(e)",
		 "node '' (Erf) needs the error function, which psd has only within GELU"},
	};

	CHECK(refusals);
}

Test(onnx_refusals, attention)
{
	static const struct refusal refusals[] = {
		{FLAT "y = MatMul(x, x)",
		 "node '' (MatMul) multiplies samples by samples, which psd supports only in attention with heads"},
		{HEADS "k = Transpose(x) perm=[0,1,3,2]\nr = Relu(k)\ns = MatMul(x, r)",
		 "node '' (MatMul) has queries or keys with a function that is not a factor"},
		{SCORES HALF "t = Mul(s, h)\np = Softmax(t)\nu = Mul(p, h)\ny = MatMul(u, x)",
		 "node '' (Mul) changes scores after their softmax, which psd does not support"},
		{SCORES HALF "t = Mul(s, h)\np = Softmax(t)\nm: f32[4,4]\nu = Add(p, m)\ny = MatMul(u, x)",
		 "node '' (Add) adds to scores, must add a constant mask"},
		{SCORES "m: f32[3,3] = 0 0 0 0 0 0 0 0 0\nu = Add(s, m)\ny = MatMul(u, x)",
		 "node '' (Add) has a mask of shape [3,3], must end with [4,4]"},
		{SCORES "m: f32[4,4] = 0 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0\nu = Add(s, m)\ny = MatMul(u, x)",
		 "node '' (Add) has a mask that must be causal, or show all positions to all"},
		/* -5 does not hide what is masked */
		{SCORES
		 "m: b8[4,4] = 1 0 0 0 1 1 0 0 1 1 1 0 1 1 1 1\nl: f32[] = -5\nu = Where(m, s, l)\ny = MatMul(u, x)",
		 "node '' (Where) chooses between samples, which no layer can do"},
		{SCORES "p = Softmax(s)\ny = MatMul(p, x)",
		 "node '' (Softmax) scales scores by 1, must be 1 / sqrt(4), the depth of a head"},
		{SCORES HALF "t = Mul(s, h)\np = Softmax(t) axis=1\ny = MatMul(p, x)",
		 "node '' (Softmax) must be over the last axis of attention's scores, without a logarithm"},
		{SCORES HALF "t = Mul(s, h)\np = LogSoftmax(t)\ny = MatMul(p, x)",
		 "node '' (LogSoftmax) must be over the last axis of attention's scores, without a logarithm"},
		{SCORES "y = MatMul(s, x)",
		 "node '' (MatMul) multiplies samples by samples, which psd supports only in attention with heads"},
		{"input x f32[1,2,4,8]\nq, v = Split(x) axis=-1\nk = Transpose(q) perm=[0,1,3,2]\ns = MatMul(q, "
		 "k)\n" HALF
		 "t = Mul(s, h)\np = Softmax(t)\nb: i64[1] = 0\ne: i64[1] = 2\na: i64[1] = 3\nw = Slice(v, b, e, a)\n"
		 "y = MatMul(p, w)",
		 "node '' (MatMul) has other positions or heads in keys and values than in queries, must have the "
		 "same"},
		{"input x f32[1,1,4,4]\ne: i64[4] = 1 2 4 4\nq = Expand(x, e)\nk = Transpose(q) perm=[0,1,3,2]\n"
		 "s = MatMul(q, k)\n" HALF "t = Mul(s, h)\np = Softmax(t)\ny = MatMul(p, q)",
		 "node '' (MatMul) has queries that several heads share, must have one for each"},
		/* heads that share come before those that do not */
		{HEADS "u: i64[1] = 1\nz = Unsqueeze(x, u)\ne: i64[5] = 1 2 2 4 4\nq = Expand(z, e)\n"
		       "k = Transpose(q) perm=[0,1,2,4,3]\ns = MatMul(q, k)\n" HALF
		       "t = Mul(s, h)\np = Softmax(t)\ny = MatMul(p, q)",
		 "node '' (MatMul) has heads in an order that psd cannot express"},
		/* samples as places */
		{"input x f32[3,2,4,4]\nq = Transpose(x) perm=[1,2,0,3]\nk = Transpose(x) perm=[1,2,3,0]\n"
		 "s = MatMul(q, k)\n" HALF "t = Mul(s, h)\np = Softmax(t)\ny = MatMul(p, q)",
		 "node '' (MatMul) has heads in an order that psd cannot express"},
		{ROWS "y = Attention(x, x, x)", "node '' (Attention) must have inputs of four axes, or three and "
						"'q_num_heads' that divide the last"},
		{ROWS "y = Attention(x, x, x) q_num_heads=4 kv_num_heads=4",
		 "node '' (Attention) must have inputs of four axes, or three and 'q_num_heads' that divide the last"},
		{ROWS "y = Attention(x, x, x) q_num_heads=2 kv_num_heads=-1",
		 "node '' (Attention) must have inputs of four axes, or three and 'kv_num_heads' that divide the last"},
		{ROWS "y = Attention(x, x, x) q_num_heads=2 kv_num_heads=2 softcap=30.0",
		 "node '' (Attention) has a past or a 'softcap', must have neither"},
		{ROWS "y = Attention(x, x)", "node '' (Attention) must have inputs of four axes, or three and "
					     "'q_num_heads' that divide the last"},
	};

	CHECK(refusals);
}
