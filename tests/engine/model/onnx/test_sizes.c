/* Operators that select by value or sample regions: largest sizes, by hand. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tests/engine/model/onnx/onnx_file.h"

static const struct psd_model_choices predicts = {.allows_other = true};

/* Shape and FLOPs of the last layer of the kind other. */
static void becomes(const char *text, const char *expected, const char *doubts)
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
		snprintf(found, sizeof(found), "%ux%ux%u %llu", other->shape.channels, other->shape.height,
			 other->shape.width, (unsigned long long)other->forward_flops);
	cr_expect_str_eq(found, expected, "%s\n%s", found, text);
	cr_expect_str_eq(graph.doubts ? graph.doubts : "", doubts);
	psd_graph_release(&graph);
	cr_expect_eq(onnx_file_parse(text, &graph, &err), PSD_EINVAL, "%s", text);
}

#define MAPS "input x f32[1,4,6,5]\n"

Test(onnx_sizes, positions_of_values_that_are_not_0)
{
	/* 4 axes, and 4 x 6 x 5 positions at most */
	becomes(MAPS "y = NonZero(x)\n", "4x120x1 0",
		"the size of 1 outputs depends on values, first of '' (NonZero): the largest size counts\n");
	/* positions of a constant are known: 3 rows of each map stay */
	becomes(MAPS "c: i64[6] = 0 7 0 8 9 0\nn = NonZero(c)\nk: i64[1] = -1\ni = Reshape(n, k)\n"
		     "g = Gather(x, i) axis=2\ny = ReduceMax(g) keepdims=0 axes=[3]\n",
		"3x4x1 60", "");
}

Test(onnx_sizes, boxes_that_stay)
{
	/* 2 classes, 3 of 7 boxes each; 16 FLOPs for each pair */
	becomes("input x f32[1,7,4]\ninput s f32[1,2,7]\nm: i64[1] = 3\ny = NonMaxSuppression(x, s, m)\n", "6x3x1 672",
		"the size of 1 outputs depends on values, first of '' (NonMaxSuppression): the largest size counts\n");
}

Test(onnx_sizes, regions_and_grids)
{
	/* 3 regions of 2 x 2 from 4 maps; 4 samples of 9 FLOPs for each value */
	becomes(MAPS "r: f32[3,4] = 0 0 1 1 0 0 1 1 0 0 1 1\nb: i64[3] = 0 0 0\n"
		     "y = RoiAlign(x, r, b) output_height=2 output_width=2 sampling_ratio=2\n",
		"3x8x2 1728", "");
	becomes(MAPS "g: f32[1,2,3,2]\ny = GridSample(x, g)\n", "4x2x3 216", "");
	/* 12 rows are 3 channels of blocks of 2 x 2 */
	becomes("input x f32[1,12,6]\ns: i64[2] = 4 6\nk: i64[2] = 2 2\ny = Col2Im(x, s, k)\n", "3x4x6 72", "");
	becomes("input x i64[1,6]\nd: i64[] = 5\nv: f32[2] = 0 1\ny = OneHot(x, d, v)\n", "5x6x1 0", "");
}

Test(onnx_sizes, one_map_without_a_batch)
{
	struct psd_graph graph;
	struct psd_error err = {0};
	const char *const text =
		"input x f32[3,8,8]\nw: f32[4,3,3,3]\na: i64[1] = 0\nu = Unsqueeze(x, a)\ny = Conv(u, w)\n";

	cr_assert_eq(onnx_file_parse_as(text, &predicts, &graph, &err), PSD_OK, "%s", err.text);
	cr_expect_eq(graph.parameters, 108);
	cr_expect_eq(graph.layers[0].shape.channels, 3);
	psd_graph_release(&graph);
}

/* A shift by 0 cuts a map into nothing and all of it. */
Test(onnx_sizes, parts_without_positions_are_left_out)
{
	struct psd_graph graph;
	struct psd_error err = {0};
	const char *const text = MAPS "z: i64[1] = 0\ne: i64[1] = 99\na: i64[1] = 2\nu = Slice(x, z, z, a)\n"
				      "v = Slice(x, z, e, a)\nc = Concat(v, u) axis=2\ny = Relu(c)\n";

	cr_assert_eq(onnx_file_parse_as(text, &predicts, &graph, &err), PSD_OK, "%s", err.text);
	cr_expect_eq(psd_graph_predicted_only(&graph).n_layers, 0);
	psd_graph_release(&graph);
}

Test(onnx_sizes, values_that_differ)
{
	const char *doubts = "the size of 1 outputs depends on values, first of '' (Unique): the largest size counts\n";

	/* 4 x 6 x 5 values, or along an axis all positions */
	becomes(MAPS "y = Unique(x)\n", "120x1x1 0", doubts);
	becomes(MAPS "y = Unique(x) axis=2\n", "4x6x5 0", doubts);
}
