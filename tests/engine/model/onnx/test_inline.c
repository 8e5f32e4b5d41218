/* Graphs inside nodes: functions, branches and loops become nodes. */
#include <criterion/criterion.h>
#include <string.h>

#include "tests/engine/model/onnx/onnx_file.h"

static const struct psd_model_choices predicts = {.allows_other = true};

static void refuses(const char *text, const char *message)
{
	struct psd_graph graph;
	struct psd_error err = {0};

	cr_assert_eq(onnx_file_parse_as(text, &predicts, &graph, &err), PSD_EINVAL, "%s", text);
	cr_expect_str_eq(err.text, message);
}

#define MAPS "input x f32[b,4,6,5]\n"

Test(onnx_inline, a_call_becomes_the_nodes_of_its_function)
{
	onnx_file_becomes(MAPS "w: f32[8,4,1,1]\nfunction block (a, v) -> (c) { b = Conv(a, v); c = Relu(b) }\n"
			       "d = block(x, w) @domain=local\ny = Sigmoid(d)\n",
			  "input 4x6x5, conv 8x6x5, relu 8x6x5, sigmoid 8x6x5, softmax-loss 8x6x5");
}

Test(onnx_inline, a_call_gives_the_attributes_that_nodes_refer_to)
{
	onnx_file_becomes(MAPS "function halve (a) -> (c) k s { c = MaxPool(a) kernel_shape=&k strides=&s }\n"
			       "d = halve(x) k=[2,2] s=[2,1] @domain=local\n",
			  "input 4x6x5, pool 4x3x4, softmax-loss 4x3x4");
	/* the operator's own stride is 1 */
	onnx_file_becomes(MAPS "function halve (a) -> (c) k s { c = MaxPool(a) kernel_shape=&k strides=&s }\n"
			       "d = halve(x) k=[2,2] @domain=local\n",
			  "input 4x6x5, pool 4x5x4, softmax-loss 4x5x4");
}

Test(onnx_inline, names_of_two_calls_stay_apart)
{
	onnx_file_becomes(MAPS "function twice (a) -> (c) { b = Relu(a); c = Tanh(b) }\n"
			       "function both (a) -> (c) { b = twice(a) @domain=local; c = twice(b) @domain=local }\n"
			       "y = both(x) @domain=local\n",
			  "input 4x6x5, relu 4x6x5, tanh 4x6x5, relu 4x6x5, tanh 4x6x5, softmax-loss 4x6x5");
}

#define BRANCHES "then_branch={ a = Relu(x); output a } else_branch={ d = Tanh(x); e = Sigmoid(d); output e }\n"

Test(onnx_inline, a_constant_condition_chooses_a_branch)
{
	onnx_file_becomes(MAPS "c: b8[] = 1\ny = If(c) " BRANCHES, "input 4x6x5, relu 4x6x5, softmax-loss 4x6x5");
	onnx_file_becomes(MAPS "c: b8[] = 0\ny = If(c) " BRANCHES,
			  "input 4x6x5, tanh 4x6x5, sigmoid 4x6x5, softmax-loss 4x6x5");
	/* from the shape: x has 4 axes */
	onnx_file_becomes(MAPS "s = Shape(x)\nn = Size(s)\nf: i64[] = 3\nc = Equal(n, f)\ny = If(c) " BRANCHES,
			  "input 4x6x5, tanh 4x6x5, sigmoid 4x6x5, softmax-loss 4x6x5");
}

Test(onnx_inline, an_open_condition_takes_the_larger_branch_and_says_so)
{
	struct psd_graph graph;
	struct psd_error err = {0};
	char layers[256];

	cr_assert_eq(onnx_file_parse_as(MAPS "m = ReduceMax(x) keepdims=0 axes=[1,2,3]\nq: f32[] = 0\n"
					     "c = Greater(m, q)\ny = If(c) " BRANCHES,
					&predicts, &graph, &err),
		     PSD_OK, "%s", err.text);
	onnx_file_describe(&graph, layers, sizeof(layers));
	cr_expect_not_null(strstr(layers, "tanh 4x6x5, sigmoid 4x6x5"), "%s", layers);
	cr_expect_str_eq(graph.doubts, "1 conditions depend on values: the branch with more nodes counts\n");
	psd_graph_release(&graph);
}

Test(onnx_inline, a_loop_of_constant_length_is_unrolled)
{
	onnx_file_becomes(MAPS "n: i64[] = 3\nt: b8[] = 1\n"
			       "y = Loop(n, t, x) body={ input i i64[]; input c b8[]; input v f32[b,4,6,5]; "
			       "d = Identity(c); w = Relu(v); u = Tanh(w); output d; output u }\n",
			  "input 4x6x5, relu 4x6x5, tanh 4x6x5, relu 4x6x5, tanh 4x6x5, relu 4x6x5, tanh 4x6x5, "
			  "softmax-loss 4x6x5");
	refuses(MAPS "m = ReduceMax(x) keepdims=0\nn = Cast(m) to=7\nt: b8[] = 1\n"
		     "y = Loop(n, t, x) body={ input i i64[]; input c b8[]; input v f32[b,4,6,5]; "
		     "d = Identity(c); w = Relu(v); output d; output w }\n",
		"m.onnx: node '' (Loop) repeats a graph as often as values say, which psd cannot know: "
		"model.outputs can leave it out");
}

Test(onnx_inline, a_function_that_calls_itself_is_refused)
{
	refuses(MAPS "function f (a) -> (c) { c = f(a) @domain=local }\ny = f(x) @domain=local\n",
		"m.onnx: node '' (f) is in graphs that are nested too deeply, or make too many nodes");
}

/* Parts of an axis, put into a list by a loop and taken out again. */
Test(onnx_inline, lists_of_values)
{
	onnx_file_becomes("input x f32[b,4,6,5]\nn: i64[] = 2\nt: b8[] = 1\nl = SequenceEmpty()\n"
			  "s = Loop(n, t, l) body={ input i i64[]; input c b8[]; input v f32[]; d = Identity(c); "
			  "r = Relu(x); w = SequenceInsert(v, r); output d; output w }\n"
			  "h = Tanh(x)\nm = SequenceInsert(s, h)\nk: i64[] = -1\ny = SequenceAt(m, k)\n",
			  "input 4x6x5, tanh 4x6x5, softmax-loss 4x6x5");
}

Test(onnx_inline, numbers_of_a_branch_come_with_it)
{
	onnx_file_becomes(MAPS "c: b8[] = 1\ny = If(c) then_branch={ w: f32[8,4,1,1]; a = Conv(x, w); output a } "
			       "else_branch={ d = Tanh(x); output d }\n",
			  "input 4x6x5, conv 8x6x5, softmax-loss 8x6x5");
}

/* Two turns on 8 values: their list has 2 rows of 8. */
Test(onnx_inline, a_loop_joins_the_values_of_its_turns)
{
	onnx_file_becomes("input x f32[b,8]\nn: i64[] = 2\nt: b8[] = 1\n"
			  "v, l = Loop(n, t, x) body={ input i i64[]; input c b8[]; input v f32[b,8]; "
			  "d = Identity(c); u = Tanh(v); s = Relu(u); output d; output u; output s }\n"
			  "p = Transpose(l) perm=[1,0,2]\ny = Sigmoid(p)\n",
			  "input 8, tanh 8, relu 8, reshape 1x8, tanh 8, relu 8, reshape 1x8, concat 2x8, sigmoid 2x8, "
			  "permute 8x2, softmax-loss 8x2");
}
