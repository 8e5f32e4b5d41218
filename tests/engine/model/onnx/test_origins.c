/* Constants that PyTorch does not train, and parameters that an exporter changed: counts by hand. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tests/engine/model/onnx/onnx_file.h"

static const struct psd_model_choices predicts = {.allows_other = true};

/* Parameters of the graph, and the lines of its remarks that begin with `line`. */
static void counts(const char *text, uint64_t parameters, const char *remark)
{
	struct psd_graph graph;
	struct psd_error err = {0};

	cr_assert_eq(onnx_file_parse_as(text, &predicts, &graph, &err), PSD_OK, "%s\n%s", err.text, text);
	cr_expect_eq(graph.parameters, parameters, "%llu instead of %llu\n%s", (unsigned long long)graph.parameters,
		     (unsigned long long)parameters, text);
	cr_expect(!*remark || (graph.remarks && strstr(graph.remarks, remark)), "%s\n%s",
		  graph.remarks ? graph.remarks : "no remarks", remark);
	psd_graph_release(&graph);
}

#define TOKENS "input x i64[b,4]\nt: f32[9,4]\ne = Gather(t, x)\n"
/* two heads of 2 channels: queries and keys are the embeddings, 36 parameters */
#define SCORES                                                                                                         \
	TOKENS "k: i64[4] = 0 4 2 2\nr = Reshape(e, k)\nq = Transpose(r) perm=[0,2,1,3]\n"                             \
	       "u = Transpose(r) perm=[0,2,3,1]\ns = MatMul(q, u)\n"
#define REST "p = Softmax(a)\ny = MatMul(p, q)\n"

/* Row i, column j of head h has the number 10 h + j - i + 4: 7 distances. by_pairs: [4 x 4, 2] instead of [2, 4, 4]. */
static const char *write_table(char text[512], const char *name, bool is_by_pairs)
{
	int n = snprintf(text, 512, is_by_pairs ? "%s: f32[16,2] =" : "%s: f32[1,2,4,4] =", name);

	for (int i = 0; i < 32; i++) {
		const int head = is_by_pairs ? i % 2 : i / 16, pair = is_by_pairs ? i / 2 : i % 16;

		n += snprintf(text + n, (size_t)(512 - n), " %d", 10 * head + pair % 4 - pair / 4 + 4);
	}
	snprintf(text + n, (size_t)(512 - n), "\n");
	return text;
}

Test(onnx_origins, a_mask_of_scores_is_not_a_parameter)
{
	counts(SCORES "m: f32[1,1,4,4] = 0 -9 -9 -9 0 0 -9 -9 0 0 0 -9 0 0 0 0\na = Add(s, m)\n" REST, 36, "");
	/* 16 different numbers are a bias that is learned; it is counted without its batch */
	counts(SCORES "m: f32[1,1,4,4] = 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\na = Add(s, m)\n" REST, 36 + 16, "");
}

Test(onnx_origins, a_table_that_is_written_out_counts_its_rows)
{
	char text[2048], table[512];

	snprintf(text, sizeof(text), SCORES "%sa = Add(s, w)\n" REST, write_table(table, "w", false));
	counts(text, 36 + 2 * 7, "written-out tables of positions: 1 count 14 parameters");
	snprintf(text, sizeof(text),
		 SCORES "%sl: i64[3] = 4 4 2\nv = Reshape(w, l)\nz = Transpose(v) perm=[2,0,1]\na = Add(s, z)\n" REST,
		 write_table(table, "w", true));
	counts(text, 36 + 2 * 7, "written-out tables of positions: 1 count 14 parameters");
}

Test(onnx_origins, equal_tables_are_one)
{
	char text[2048], tables[2][512];

	snprintf(text, sizeof(text), SCORES "%s%sb = Add(s, w)\na = Add(b, w2)\n" REST,
		 write_table(tables[0], "w", false), write_table(tables[1], "w2", false));
	counts(text, 36 + 2 * 7, "written-out tables of positions: 1 count 14 parameters");
}

#define LISTED "listed PARAMETER t\n"

Test(onnx_origins, the_exporters_list_tells_parameters_from_constants)
{
	/* computed from no parameter, and from one with positions */
	counts(LISTED "folded v from arange\n" TOKENS "v: f32[1,4,4]\ny = Add(e, v)\n", 36, "");
	counts(LISTED "listed PARAMETER table\nfolded v from table arange\n" TOKENS "v: f32[1,4,4]\ny = Add(e, v)\n",
	       36 + 16, "computed by the exporter: 1 constants, first 'v', count 16 parameters");
	counts(LISTED "listed BUFFER v.b\n" TOKENS "v.b: f32[1,4,4]\ny = Add(e, v.b)\n", 36 + 16,
	       "buffers: 16 values that PyTorch does not train count as parameters\nPyTorch counts 36 parameters\n");
	counts(LISTED "listed PARAMETER mask.token\n" TOKENS "y = Relu(e)\n", 36,
	       "not in the file: 1 of PyTorch's 2 parameters, first 'mask.token'");
}

/* A convolution with a bias before a norm: the exporter left out both, 2 of the bias and 2 x 2 of the norm. */
Test(onnx_origins, a_bias_before_a_folded_norm_is_said)
{
#define MAPS "input x f32[b,4,3,3]\nc.weight: f32[2,4,1,1]\n"
	counts("listed PARAMETER c.weight\nlisted PARAMETER c.bias\n" MAPS
	       "y = Conv(x, c.weight) @rules=RemoveOptionalBiasFromConv, FuseBatchNormIntoConv\n",
	       8, "PyTorch counts 14 parameters\n");
	counts("listed PARAMETER c.weight\nlisted PARAMETER c.bias\n" MAPS
	       "c.bias: f32[2]\ny = Conv(x, c.weight, c.bias) @rules=FuseBatchNormIntoConv\n",
	       10, "PyTorch counts 14 parameters\n");
}

/* Rows are 1 2 3 ... and 1 1 1 ... in other shares: two coordinates times a matrix of 2 x 16. */
Test(onnx_origins, coordinates_times_a_parameter_count_as_the_parameter)
{
	char text[4096];
	int n = snprintf(text, sizeof(text),
			 "listed PARAMETER w\nfolded v from w c\ninput x f32[b,16,16]\nv: f32[16,16] =");

	for (int i = 0; i < 256; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, " %d",
			      (i / 16 + 1) * (i % 16 + 1) + (i / 16 * 5) % 7);
	snprintf(text + n, sizeof(text) - (size_t)n, "\ny = Add(x, v)\n");
	counts(text, 32, "written-out tables of positions: 1 count 32 parameters");
}

Test(onnx_origins, layers_over_constants_count)
{
	/* a row several times: the whole table counts, 5 x 4 */
	counts(TOKENS "g: f32[5,4]\ni: i64[4] = 3 1 3 0\nv = Gather(g, i)\ny = Add(e, v)\n", 36 + 20, "");
	/* a linear layer of coordinates, 2 x 12 + 12, then 12 x 4 */
	counts(TOKENS
	       "c = ConstantOfShape(d) value=f32[1]{0.5}\nd: i64[2] = 4 2\nw: f32[2,12]\nv: f32[12]\nu: f32[12,4]\n"
	       "l = MatMul(c, w)\nh = Add(l, v)\nr = Relu(h)\ns = MatMul(r, u)\ny = Add(e, s)\n",
	       36 + 24 + 12 + 48, "");
	/* a weight that a norm changes before the convolution uses it, with a scale; 2 x 3 x 3 x 3 and 2 */
	counts("input x f32[b,3,5,5]\nw: f32[1,2,27] \nf: f32[2]\nz = ConstantOfShape(o)\no: i64[1] = 2\n"
	       "a: i64[2] = 0 2\nm = ReduceMean(w, a) keepdims=0\nn = BatchNormalization(w, f, z, m, m) "
	       "training_mode=1\n"
	       "k: i64[4] = 2 3 3 3\nv = Reshape(n, k)\ny = Conv(x, v)\n",
	       54 + 2, "");
}

Test(onnx_origins, a_number_times_a_parameter_is_the_parameter)
{
	counts("input x f32[b,12,3]\nw: f32[12,1]\nc: f32[] = 2\nv = Mul(w, c)\ny = Mul(x, v)\n", 12, "");
	/* two parameters give one weight: both count */
	counts("input x f32[b,12,3]\nw: f32[12,3]\ng: f32[12,1]\nv = Mul(w, g)\ny = Mul(x, v)\n", 36 + 12, "");
}

/* Where each equal vector has a name of its own, a name that is used twice is one parameter. */
Test(onnx_origins, names_of_equal_vectors_tell_them_apart)
{
#define PADS "input x f32[b,2,4,5,6]\nw: f32[2,2,1,1,1]\nv: f32[2]\nu = Identity(v)\n"
	counts(PADS "a = Conv(x, w, v)\nb = Conv(a, w, u)\ny = Conv(b, w, v)\n", 4 + 2 + 2, "");
}

Test(onnx_origins, literal_constants_are_not_trained)
{
	counts("input x f32[b,4,6,5]\nw: f32[4,4,1,1]\nc = Conv(x, w)\nm = Constant() value=f32[4,1,1]{1 2 3 4}\n"
	       "y = Sub(c, m)\n",
	       16, "");
}
