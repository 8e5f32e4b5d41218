/* Matrices that several layers have, outputs that count, and sizes from outside. Expected counts are PyTorch's, of the
 * modules in the comments. */
#include <criterion/criterion.h>
#include <string.h>

#include "tests/engine/model/onnx/onnx_file.h"

#define TOKENS "input x i64[b,4]\n"

/* Parameters of the graph, of which `n` layers share theirs. */
static void counts(const char *text, const struct psd_model_choices *choices, uint64_t parameters, unsigned n,
		   const char *remarks)
{
	struct psd_graph graph;
	struct psd_error err = {0};
	unsigned n_shared = 0;

	cr_assert_eq(onnx_file_parse_as(text, choices, &graph, &err), PSD_OK, "%s\n%s", err.text, text);
	for (unsigned l = 0; l < graph.n_layers; l++)
		n_shared += graph.layers[l].n_shared > 0;
	cr_expect_eq(graph.parameters, parameters, "%llu\n%s", (unsigned long long)graph.parameters, text);
	cr_expect_eq(n_shared, n, "%s", text);
	cr_expect_str_eq(graph.remarks ? graph.remarks : "", remarks, "%s", text);
	psd_graph_release(&graph);
}

static void refuses(const char *text, const struct psd_model_choices *choices, const char *message)
{
	struct psd_graph graph;
	struct psd_error err = {0};

	cr_assert_eq(onnx_file_parse_as(text, choices, &graph, &err), PSD_EINVAL, "%s", text);
	cr_expect_str_eq(err.text, message);
}

static bool doubts(const char *text)
{
	struct psd_graph graph = onnx_file_load(text);
	const bool does = graph.doubts;

	psd_graph_release(&graph);
	return does;
}

/* ---- tables and heads ---- */

#define HEAD(values)                                                                                                   \
	TOKENS "t: f32[3,2] = 1 2 3 4 5 6\nh: f32[2,3] = " values "\ne = Gather(t, x) @name=embed\nr = Relu(e)\n"      \
	       "y = MatMul(r, h) @name=head\n"

#define TIED "tied: head has the matrix of embed, 6 parameters\n"

Test(onnx_ties, a_head_with_the_transposed_values_of_a_table_is_tied)
{
	counts(HEAD("1 3 5 2 4 6"), NULL, 6, 1, TIED);
	/* Gemm with transB has the table's own order */
	counts(TOKENS "t: f32[3,2] = 1 2 3 4 5 6\nh: f32[3,2] = 1 2 3 4 5 6\nk: i64[2] = -1 2\ne = Gather(t, x)\n"
		      "m = Transpose(h)\ny = MatMul(e, m)\n",
	       NULL, 6, 1, "tied: MatMul has the matrix of Gather, 6 parameters\n");
}

Test(onnx_ties, a_head_with_other_values_has_its_own_matrix)
{
	counts(HEAD("1 3 5 2 4 7"), NULL, 12, 0, "");
	/* equal in the order of the file, not of the matrix */
	counts(HEAD("1 2 3 4 5 6"), NULL, 12, 0, "");
}

Test(onnx_ties, equal_values_mean_nothing_if_all_are_one_number)
{
	counts(TOKENS "t: f32[3,2] = 0 0 0 0 0 0\nh: f32[2,3] = 0 0 0 0 0 0\ne = Gather(t, x)\ny = MatMul(e, h)\n",
	       NULL, 12, 0, "");
	/* two convolutions that start at 0, which the exporter wrote once: ResNet's last norms, folded */
	counts("input x f32[b,2,4,4]\nw: f32[2,2,1,1] = 0 0 0 0\na = Conv(x, w)\nr = Relu(a)\ny = Conv(r, w)\n", NULL,
	       8, 0, "");
}

Test(onnx_ties, values_that_the_file_lacks_are_in_doubt)
{
	const char *const text = TOKENS "t: f32[3,2]\nh: f32[2,3]\ne = Gather(t, x)\ny = MatMul(e, h)\n";

	counts(text, NULL, 12, 0, "");
	cr_expect(doubts(text));
	cr_expect_not(doubts(HEAD("1 3 5 2 4 7")));
}

/* ---- one tensor of the file ---- */

#define TWO(first, second, bias)                                                                                       \
	"input x f32[b,2]\nw: f32[2,2] = 1 2 3 4\na: f32[2] = 1 2\nc: f32[2] = 3 4\nh = Gemm(x, w, a) @name=" first    \
	"\nr = Relu(h)\ny = Gemm(r, w, " bias ") @name=" second "\n"

Test(onnx_ties, copies_of_a_module_have_their_own_matrices)
{
	/* nn.TransformerEncoder copies a layer, and the exporter writes equal tensors once */
	const char *const copies = TWO("/layers.0/fc/Gemm", "/layers.1/fc/Gemm", "a");

	counts(copies, NULL, 2 * (4 + 2), 0, "");
	cr_expect(doubts(copies));
	/* copies have equal biases, so this matrix is shared */
	counts(TWO("/layers.0/fc/Gemm", "/layers.1/fc/Gemm", "c"), NULL, 4 + 2 + 2, 1,
	       "tied: layers.1.fc has the matrix of layers.0.fc, 4 parameters\n");
	/* a module that is called twice, and two modules that the model ties */
	counts(TWO("/fc/Gemm", "/fc/Gemm_1", "a"), NULL, 4 + 2, 1, "tied: fc-2 has the matrix of fc, 4 parameters\n");
	counts(TWO("fc1", "fc2", "a"), NULL, 4 + 2, 1, "tied: fc2 has the matrix of fc1, 4 parameters\n");
}

Test(onnx_ties, a_shared_matrix_has_the_bias_of_each)
{
	counts(TWO("fc1", "fc2", "c"), NULL, 4 + 2 + 2, 1, "tied: fc2 has the matrix of fc1, 4 parameters\n");
	counts(TWO("fc1", "fc2", ""), NULL, 4 + 2, 1, "tied: fc2 has the matrix of fc1, 4 parameters\n");
}

/* ---- the user's choice ---- */

Test(onnx_ties, the_user_decides)
{
	const struct psd_model_choices none = {.tied = {"none"}, .n_tied = 1}, head = {.tied = {"head"}, .n_tied = 1};
	const struct psd_model_choices pair = {.tied = {"head=embed"}, .n_tied = 1};
	const struct psd_model_choices other = {.tied = {"hat"}, .n_tied = 1};
	const struct psd_model_choices copy = {.tied = {"layers.1.fc"}, .n_tied = 1};

	counts(HEAD("1 3 5 2 4 6"), &none, 12, 0, "");
	counts(HEAD("1 3 5 2 4 6"), &head, 6, 1, TIED);
	counts(HEAD("1 3 5 2 4 7"), &pair, 6, 1, TIED);
	counts(TWO("fc1", "fc2", "a"), &none, 12, 0, "");
	counts(TWO("/layers.0/fc/Gemm", "/layers.1/fc/Gemm", "a"), &copy, 6, 1,
	       "tied: layers.1.fc has the matrix of layers.0.fc, 4 parameters\n");
	refuses(HEAD("1 3 5 2 4 7"), &head,
		"m.onnx: node 'head' (MatMul) is in 'tied', but no layer above it has an equal matrix");
	refuses(HEAD("1 3 5 2 4 6"), &other,
		"m.onnx: 'tied' has 'hat', the file has no layer with a matrix and that name");
}

/* ---- differences from PyTorch's count ---- */

#define HEADS                                                                                                          \
	"input x f32[b,2]\nw: f32[2,2] = 1 2 3 4\nv: f32[2,5]\nb: f32[5]\nr = MatMul(x, w)\ny = Relu(r)\n"             \
	"z = Gemm(r, v, b)\noutput y\noutput z\n"

Test(onnx_ties, outputs_beyond_the_first_are_left_out_unless_the_user_wants_them)
{
	const struct psd_model_choices both = {.outputs = {"y", "z"}, .n_outputs = 2};
	const struct psd_model_choices second = {.outputs = {"z"}, .n_outputs = 1};
	const struct psd_model_choices other = {.outputs = {"q"}, .n_outputs = 1};

	counts(HEADS, NULL, 4, 0,
	       "outputs left out: z, with 15 parameters of their own (key model.outputs)\nPyTorch counts 19 "
	       "parameters\n");
	counts(HEADS, &both, 19, 0, "");
	counts(HEADS, &second, 19, 0, "outputs left out: y, with 0 parameters of their own (key model.outputs)\n");
	/* a head that is left out, and tied to the table */
	counts(TOKENS "t: f32[3,2] = 1 2 3 4 5 6\nh: f32[2,3] = 1 3 5 2 4 6\ny = Gather(t, x)\nz = MatMul(y, h)\n"
		      "output y\noutput z\n",
	       NULL, 6, 0, "outputs left out: z, with 0 parameters of their own (key model.outputs)\n");
	refuses(HEADS, &other, "m.onnx: 'outputs' has 'q', the file has no output of that name; its first is 'y'");
}

Test(onnx_ties, folded_norms_and_rows_are_said)
{
	/* conv without bias, then a norm of 2 channels: weight 8 + 2 * 2 */
	counts("input x f32[b,4,3,3]\nonnx::Conv_1: f32[2,4,1,1]\nonnx::Conv_2: f32[2]\n"
	       "y = Conv(x, onnx::Conv_1, onnx::Conv_2)\n",
	       NULL, 8 + 2, 0,
	       "folded norms: 1, each left a bias in its convolution and had 2 more parameters in all, up to 4 if "
	       "the convolutions had biases\n"
	       "PyTorch counts 12 parameters\n");
	counts("input x f32[b,4,3,3]\nw: f32[2,4,1,1]\nw_bias: f32[2]\ny = Conv(x, w, w_bias)\n", NULL, 8 + 2, 0,
	       "folded norms: 1, each left a bias in its convolution and had 2 more parameters in all, up to 4 if "
	       "the convolutions had biases\n"
	       "PyTorch counts 12 parameters\n");
	counts("input x f32[b,4,3,3]\nw: f32[2,4,1,1]\nb: f32[2]\ny = Conv(x, w, b)\n", NULL, 8 + 2, 0, "");
	/* a table of 9 positions, of which samples of 4 have 4 */
	counts(TOKENS "t: f32[5,2]\np: f32[9,2]\nf: i64[1] = 0\nl: i64[1] = 4\ns = Slice(p, f, l, f)\n"
		      "e = Gather(t, x)\ny = Add(e, s)\n",
	       NULL, 10 + 8, 0,
	       "rows: p has 9 rows, 4 are read: 10 parameters are left out\nPyTorch counts 28 parameters\n");
}

#define MAPS "input x f32[b,4,3,3]\nw: f32[2,4,1,1]\n"

/* An exporter that optimises leaves out zeros, and says in its metadata what it changed. */
Test(onnx_ties, biases_and_norms_of_0_are_said)
{
	counts(MAPS "y = Conv(x, w) @rules=FuseBatchNormIntoConv, RemoveOptionalBiasFromConv\n", NULL, 8, 0,
	       "values of 0: 1 layers lost a bias or norm with 4 parameters\nPyTorch counts 12 parameters\n");
	counts(MAPS
	       "y = Conv(x, w) @fx=conv2d(args = (%x, %p_c_weight, %p_c_bias)) @rules=RemoveOptionalBiasFromConv\n",
	       NULL, 8, 0,
	       "values of 0: 1 layers lost a bias or norm with 2 parameters\nPyTorch counts 10 parameters\n");
	/* the exporter had made the bias itself */
	counts(MAPS "y = Conv(x, w) @fx=conv2d(args = (%x, %p_c_weight)) @rules=RemoveOptionalBiasFromConv\n", NULL, 8,
	       0, "");
}

Test(onnx_ties, buffers_and_single_values_are_said)
{
	counts(MAPS "c.mask: f32[2,1,1]\nr = Conv(x, w)\ny = Add(r, c.mask) @fx=add(args = (%conv2d, %b_c_mask))\n",
	       NULL, 8 + 2, 0,
	       "buffers: 2 values that PyTorch does not train count as parameters\nPyTorch counts 8 parameters\n");
	counts(MAPS "c.masks: f32[2,1,1]\nr = Conv(x, w)\ny = Add(r, c.masks) @fx=add(args = (%conv2d, %b_c_mask))\n",
	       NULL, 8 + 2, 0, "");
	counts(MAPS "c.scale: f32[] = 2\nr = Conv(x, w)\ny = Mul(r, c.scale)\n", NULL, 8, 0,
	       "single values: 1 parameters are constants here\nPyTorch counts 9 parameters\n");
	counts(MAPS "val_2: f32[] = 2\nr = Conv(x, w)\ny = Mul(r, val_2)\n", NULL, 8, 0, "");
}

#define CALL  "@scopes=['', 'block', 'block.f', 'linear']\n"
#define NORM  "@scopes=['', 'block', 'block.n', 'norm']\n"
#define OTHER "@scopes=['', 'block', 'block.m', 'norm']\n"

/* A module that is called twice: an exporter writes its transposed matrix for each call. */
Test(onnx_ties, a_module_that_is_called_twice_counts_once)
{
	const char *const text =
		"input x f32[b,2]\nv: f32[2,2] = 1 2 3 4\nw: f32[2,2] = 1 2 3 4\ns: f32[2]\nh: f32[2]\n"
		"a = MatMul(x, v) " CALL "b = LayerNormalization(a, s, h) " NORM "c = Relu(b)\nd = MatMul(c, w) " CALL
		"e = LayerNormalization(d, s, h) " NORM "y = LayerNormalization(e, s, h) " OTHER;

	counts(text, NULL, 4 + 4 + 4, 2, "tied: block.f-2 has the matrix of block.f, 4 parameters\n");
}

/* ---- sizes from outside ---- */

#define OPEN "input x f32[b,3,height,width]\nw: f32[2,3,1,1]\ny = Conv(x, w)\n"

static void has_input(const char *text, const struct psd_model_choices *choices, uint32_t height, uint32_t width)
{
	struct psd_graph graph;
	struct psd_error err = {0};

	cr_assert_eq(onnx_file_parse_as(text, choices, &graph, &err), PSD_OK, "%s", err.text);
	cr_expect_eq(graph.layers[0].shape.height, height);
	cr_expect_eq(graph.layers[0].shape.width, width);
	psd_graph_release(&graph);
}

Test(onnx_ties, open_axes_have_the_size_from_outside)
{
	const struct psd_model_choices whole = {.inputs = {"x=3x8x6"}, .n_inputs = 1};
	const struct psd_model_choices batch = {.inputs = {"x=1x3x8x6"}, .n_inputs = 1};
	const struct psd_model_choices named = {.inputs = {"width=6", "height=8"}, .n_inputs = 2};
	const struct psd_model_choices data = {.sample = {3, 8, 6}}, grey = {.sample = {1, 8, 6}};
	const struct psd_model_choices half = {.inputs = {"height=8"}, .n_inputs = 1};
	const struct psd_model_choices other = {.inputs = {"z=8"}, .n_inputs = 1};
	const struct psd_model_choices word = {.inputs = {"x=3xhigh"}, .n_inputs = 1};
	const struct psd_model_choices few = {.inputs = {"x=8x6"}, .n_inputs = 1};
	const struct psd_model_choices wrong = {.inputs = {"x=4x8x6"}, .n_inputs = 1};

	has_input(OPEN, &whole, 8, 6);
	has_input(OPEN, &batch, 8, 6);
	has_input(OPEN, &named, 8, 6);
	has_input(OPEN, &data, 8, 6);
	/* grey images are no samples of a network for three channels */
	refuses(OPEN, &grey,
		"m.onnx: axis 2 of the input 'x' has no size in the file ('height'), needs the key "
		"model.input: {height: SIZE}");
	refuses(OPEN, &half,
		"m.onnx: axis 3 of the input 'x' has no size in the file ('width'), needs the key "
		"model.input: {width: SIZE}");
	refuses(OPEN, &other,
		"model.input: 'z=8' is not in m.onnx, which has the inputs and open sides 'x', 'height', 'width'");
	refuses(OPEN, &word,
		"model.input: 'x=3xhigh' must have sizes behind '=', from 1 to 16777216, such as 3x224x224");
	refuses(OPEN, &few, "m.onnx: the input 'x' has 2 sizes in 'input', must have 3 without the batch");
	refuses(OPEN, &wrong,
		"m.onnx: axis 1 of the input 'x' has size 3 in the file, 'input' must give the same, not 4");
}
