/* The CPU against a reference in double: losses, and gradients against central differences of the reference's loss. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "real/device/cpu/cpu.h"
#include "tests/real/device/gradients_helper.h"
#include "tests/real/net.h"
#include "tests/test_with.h"

#define SPLIT_TOLERANCE_RATIO 1e-5

/* Below a batch norm a bias changes nothing: its gradient is rounding and says nothing. */
#define UNBIASED_HEAD                                                                                                  \
	"name: m\ninput: {channels: 3, height: 7, width: 6}\nlayers:\n"                                                \
	"  - {name: base, kind: conv, outputs: 4, kernel: 3, pad: 1, bias: false}\n"
#define UNBIASED_BLOCKED                                                                                               \
	"name: m\ninput: {channels: 2, height: 6, width: 5}\nlayers:\n"                                                \
	"  - {name: base, kind: conv, outputs: 16, kernel: 3, pad: 1, bias: false}\n"

Test(cpu, every_kind_has_a_row)
{
	for (unsigned i = 0; psd_layer_kinds[i]; i++)
		cr_expect(!psd_cpu_find_kind(psd_layer_kinds[i]) == psd_layer_kinds[i]->is_predicted_only, "%s",
			  psd_layer_kinds[i]->name);
}

/* ---- gradients ---- */

TEST_ROW(cpu, conv_has_its_gradients, check_network(HEAD "  - {name: c, kind: conv, outputs: 5, kernel: 3}\n" TAIL, 3))
TEST_ROW(cpu, conv_with_stride_on_odd_sides_has_its_gradients,
	 check_network(HEAD "  - {name: c, kind: conv, outputs: 3, kernel: [3, 2], stride: [2, 3], pad: [0, 1]}\n" TAIL,
		       2))

Test(cpu, conv_with_groups_has_its_gradients)
{
	check_network(HEAD "  - {name: c, kind: conv, outputs: 6, kernel: 3, pad: 1, groups: 2}\n" TAIL, 2);
	check_network(
		BLOCKED "  - {name: c, kind: conv, outputs: 16, kernel: 3, pad: 1, groups: 2, bias: false}\n" TAIL, 1);
}

TEST_ROW(cpu, conv_with_dilation_has_its_gradients,
	 check_network(HEAD "  - {name: c, kind: conv, outputs: 3, kernel: [3, 2], dilation: [2, 3], pad: 1}\n" TAIL,
		       2))

Test(cpu, deconv_has_its_gradients)
{
	check_network(HEAD "  - {name: c, kind: deconv, outputs: 5, kernel: 4, stride: 2, pad: 1}\n" TAIL, 2);
	check_network(HEAD "  - {name: c, kind: deconv, outputs: 3, kernel: [3, 2], stride: [1, 3], dilation: [2, 1], "
			   "pad: [1, 0]}\n" TAIL,
		      2);
	check_network(HEAD "  - {name: c, kind: deconv, outputs: 4, kernel: 3, groups: 4, bias: false}\n" TAIL, 2);
	check_network(BLOCKED
		      "  - {name: c, kind: deconv, outputs: 16, kernel: 3, groups: 2}\n  - {name: r, kind: relu}\n"
		      "  - {name: d, kind: conv, outputs: 2, kernel: 3}\n" TAIL,
		      1);
}

/* Larger, smaller, as large, to one place and from one place. */
Test(cpu, resize_has_its_gradient)
{
	check_network(HEAD "  - {name: s, kind: resize, height: 12, width: 11}\n" TAIL, 2);
	check_network(HEAD "  - {name: s, kind: resize, height: 4, width: 3}\n" TAIL, 2);
	check_network(BLOCKED "  - {name: s, kind: resize, height: 6, width: 5}\n" TAIL, 2);
	check_network(BLOCKED "  - {name: s, kind: resize, input: base, height: 1, width: 1}\n"
			      "  - {name: t, kind: resize, height: 6, width: 5}\n"
			      "  - {name: sum, kind: add, inputs: [t, base]}\n" TAIL,
		      2);
}

TEST_ROW(cpu, conv_with_rectifier_has_its_gradients,
	 check_network(BLOCKED "  - {name: r, kind: relu}\n  - {name: c, kind: conv, outputs: 16, kernel: 3}\n  - "
			       "{name: s, kind: relu}\n" TAIL,
		       2))

Test(cpu, max_pool_has_its_gradient)
{
	check_network(HEAD "  - {name: p, kind: pool, method: max, kernel: 3, stride: 2}\n" TAIL, 2);
	check_network(HEAD "  - {name: p, kind: pool, method: max, kernel: 3, stride: 2, pad: 1}\n" TAIL, 2);
}

Test(cpu, average_pool_has_its_gradient)
{
	check_network(HEAD "  - {name: p, kind: pool, method: average, kernel: [2, 3], stride: [2, 1]}\n" TAIL, 2);
	check_network(HEAD "  - {name: p, kind: pool, method: average, kernel: 3, pad: 1}\n" TAIL, 2);
}

/* Sides of 7 and 6: windows of 3 in steps of 2 end at 7 and at 7, one beyond the width; windows of 2 in steps of 4
 * begin at 0 and 4; windows of 2 in steps of 3 would begin at 6 as well, which is beyond the width and in the height.
 */
Test(cpu, pool_rounded_up_cuts_the_last_window)
{
	check_network(HEAD "  - {name: p, kind: pool, method: max, kernel: 3, stride: 2, round: up}\n" TAIL, 2);
	check_network(HEAD "  - {name: p, kind: pool, method: average, kernel: 3, stride: 2, round: up}\n" TAIL, 2);
	check_network(HEAD "  - {name: p, kind: pool, method: average, kernel: 2, stride: 4, round: up}\n" TAIL, 2);
	check_network(HEAD "  - {name: p, kind: pool, method: average, kernel: 2, stride: 3, round: up}\n" TAIL, 2);
	check_network(HEAD "  - {name: p, kind: pool, method: max, kernel: 3, stride: 3, pad: 1, round: up}\n" TAIL, 2);
}

Test(cpu, global_pool_has_its_gradient)
{
	check_network(HEAD "  - {name: p, kind: global-pool}\n" TAIL, 3);
	check_network(BLOCKED "  - {name: p, kind: global-pool}\n" TAIL, 2);
	check_network(BLOCKED "  - {name: p, kind: global-pool}\n  - {name: loss, kind: softmax-loss}\n", 2);
}

/* Caffe's constants hardly show at inputs near 1: an inner product with weights of about 0.5 over 3 x 7 x 6 inputs
 * gives some more. */
Test(cpu, lrn_has_its_gradient)
{
	check_network(HEAD "  - {name: n, kind: lrn, size: 3}\n" TAIL, 2);
	check_network(BLOCKED "  - {name: n, kind: lrn, size: 5}\n" TAIL, 2);
}

Test(cpu, batch_norm_has_its_gradients)
{
	check_network(UNBIASED_HEAD "  - {name: n, kind: batch-norm}\n" TAIL, 3);
	check_network(UNBIASED_BLOCKED "  - {name: n, kind: batch-norm}\n" TAIL, 2);
	check_network(UNBIASED_HEAD "  - {name: n, kind: batch-norm, scale: false, bias: false}\n" TAIL, 2);
	check_network(UNBIASED_HEAD "  - {name: n, kind: batch-norm, scale: false}\n" TAIL, 2);
	check_network(
		"name: m\ninput: {channels: 3, height: 4, width: 3}\nlayers:\n  - {name: n, kind: batch-norm}\n" TAIL,
		2);
}

Test(cpu, scale_has_its_gradients)
{
	check_network(HEAD "  - {name: s, kind: scale}\n" TAIL, 2);
	check_network(BLOCKED "  - {name: s, kind: scale, bias: false}\n" TAIL, 2);
	check_network(UNBIASED_HEAD "  - {name: n, kind: batch-norm, scale: false, bias: false}\n  - {name: s, kind: "
				    "scale}\n  - {name: r, kind: relu}\n" TAIL,
		      2);
}

/* 8 channels fill half of a block where vectors have 16 values. */
Test(cpu, scale_of_half_a_block_has_its_gradients)
{
	check_network("name: m\ninput: {channels: 3, height: 12, width: 12}\nlayers:\n"
		      "  - {name: base, kind: conv, outputs: 8, kernel: 3, stride: 2}\n"
		      "  - {name: c, kind: conv, outputs: 8, kernel: 3, pad: 1, bias: false}\n"
		      "  - {name: s, kind: scale}\n"
		      "  - {name: e, kind: add, inputs: [base, s]}\n" TAIL,
		      2);
}

Test(cpu, inner_product_has_its_gradients)
{
	check_network("name: m\ninput: {channels: 5}\nlayers:\n  - {name: a, kind: inner-product, outputs: 4}\n  - "
		      "{name: r, kind: relu}\n"
		      "  - {name: b, kind: inner-product, outputs: 6, bias: false}\n" TAIL,
		      4);
	check_network(BLOCKED "  - {name: a, kind: inner-product, outputs: 4}\n" TAIL, 1);
}

/* The derivative of the loss when the tensor moves along its gradient's signs, which is the sum of the gradient's
 * magnitudes: one difference instead of one for each element. */
static void check_along_signs(const struct net *net, unsigned tensor, double **wide)
{
	const uint64_t count = net->graph->tensors[tensor].elements;
	double expected = 0, sum = 0;

	for (int side = -1; side <= 1; side += 2) {
		for (uint64_t i = 0; i < count; i++)
			wide[tensor][i] = (double)net->parameters[tensor][i] +
					  side * DIFFERENCE_STEP * (net->gradients[tensor][i] > 0 ? 1 : -1);
		expected += side * reference_loss(net->graph, &net->options, &net->batch, wide) / (2 * DIFFERENCE_STEP);
	}
	for (uint64_t i = 0; i < count; i++)
		sum += fabs((double)net->gradients[tensor][i]);
	cr_expect_lt(fabs(sum / expected - 1), GRADIENT_TOLERANCE_RATIO, "%s: %g, must be %g",
		     net->graph->tensors[tensor].name, sum, expected);
}

/* 1,024 and 3,072 inputs are rows of whole 4 KiB, which take the way by blocks; 300 outputs are not whole blocks. */
Test(cpu, inner_product_with_aliasing_rows_has_its_gradients)
{
	static const char *const texts[] = {
		"name: m\ninput: {channels: 2}\nlayers:\n  - {name: base, kind: inner-product, outputs: 1024}\n"
		"  - {name: a, kind: inner-product, outputs: 300}\n" TAIL,
		"name: m\ninput: {channels: 2}\nlayers:\n  - {name: base, kind: inner-product, outputs: 3072}\n"
		"  - {name: a, kind: inner-product, outputs: 300}\n" TAIL,
	};

	for (unsigned i = 0; i < 2; i++) {
		struct net net = net_make(texts[i], 3);
		double **wide;

		for (uint64_t p = 0; p < net.graph->tensors[2].elements; p++)
			net.parameters[2][p] *= 0.05f; /* else the softmax saturates */
		wide = net_widen_parameters(&net);
		check_loss(&net, net_run(&net));
		check_along_signs(&net, 0, wide);
		net_free_wide(&net, wide);
		net_release(&net);
	}
}

/* In place, on an input that others read, and below a dropout, which would overwrite what its backward needs. */
Test(cpu, sigmoid_has_its_gradient)
{
	check_network(HEAD "  - {name: s, kind: sigmoid}\n" TAIL, 2);
	check_network(BLOCKED "  - {name: s, kind: sigmoid}\n  - {name: t, kind: add, inputs: [base, s]}\n" TAIL, 2);
	check_network(HEAD "  - {name: a, kind: inner-product, outputs: 9}\n  - {name: s, kind: sigmoid}\n  - {name: "
			   "d, kind: dropout, ratio: 0.4}\n" TAIL,
		      3);
}

Test(cpu, functions_of_an_element_have_their_gradients)
{
	check_function("kind: relu, slope: 0.1");
	check_function("kind: prelu");
	check_function("kind: prelu, shared: true");
	check_function("kind: tanh");
	check_function("kind: elu, alpha: 0.7");
	check_function("kind: clip, most: 0.5");
	check_function("kind: affine, factor: -1.5, summand: 0.25");
	check_function("kind: lrn, size: 3, alpha: 0.5, beta: 0.6, k: 1.5");
	check_function("kind: lrn, size: 3, within: true, alpha: 0.5");
	check_function("kind: batch-norm, fixed: true, epsilon: 0.5");
	check_function("kind: scale, scale: false");
	check_function("kind: exp");
	check_function("kind: abs");
	check_function("kind: softplus");
	check_function("kind: gelu");
	check_function("kind: gelu, approximate: tanh");
	check_function("kind: silu");
	check_function("kind: power, exponent: 3");
}

/* Values above 0. */
Test(cpu, functions_of_positive_numbers_have_their_gradients)
{
	check_function("kind: sigmoid}\n  - {name: g, kind: log");
	check_function("kind: softplus}\n  - {name: g, kind: power, exponent: -0.5");
}

TEST_ROW(
	cpu, losses_have_their_weights,
	check_network(
		HEAD
		"  - {name: top, kind: inner-product, outputs: 3}\n  - {name: aside, kind: softmax-loss, weight: 0.3}\n"
		"  - {name: loss, kind: softmax-loss, input: top, weight: 2}\n",
		2))

/* Layers above do not overwrite values that a layer's backward needs. */
Test(cpu, functions_in_place_above_each_other_have_their_gradients)
{
	check_network(HEAD "  - {name: a, kind: relu}\n  - {name: b, kind: affine, factor: -1, summand: 2}\n" TAIL, 2);
	check_network(HEAD "  - {name: a, kind: relu, slope: 0.5}\n  - {name: d, kind: dropout, ratio: 0.3}\n"
			   "  - {name: b, kind: sigmoid}\n  - {name: c, kind: tanh}\n" TAIL,
		      2);
}

Test(cpu, layers_that_move_values_have_their_gradients)
{
	check_network(HEAD "  - {name: f, kind: reshape, channels: 14, height: 3, width: 4}\n"
			   "  - {name: c, kind: conv, outputs: 2, kernel: 3}\n" TAIL,
		      2);
	check_network(BLOCKED "  - {name: f, kind: reshape, channels: 480}\n" TAIL, 2);
	check_network(BLOCKED "  - {name: f, kind: permute, channels: 3, rows: 1, columns: 2}\n"
			      "  - {name: c, kind: conv, outputs: 2, kernel: 3}\n" TAIL,
		      2);
	check_network(
		BLOCKED
		"  - {name: f, kind: shuffle, groups: 4}\n  - {name: c, kind: conv, outputs: 2, kernel: 3}\n" TAIL,
		2);
	check_network(BLOCKED "  - {name: a, kind: slice, input: base, channels: 8}\n"
			      "  - {name: b, kind: slice, input: base, first: 5, channels: 8}\n"
			      "  - {name: s, kind: add, inputs: [a, b]}\n" TAIL,
		      2);
	check_network(HEAD "  - {name: g, kind: pool, method: max, kernel: [7, 6]}\n" TAIL, 2);
}

Test(cpu, multiply_has_its_gradients)
{
	check_network(BLOCKED "  - {name: a, kind: conv, input: base, outputs: 16, kernel: 1}\n"
			      "  - {name: m, kind: multiply, inputs: [base, a]}\n" TAIL,
		      2);
	check_network(
		BLOCKED
		"  - {name: g, kind: global-pool, input: base}\n  - {name: a, kind: conv, outputs: 16, kernel: 1}\n"
		"  - {name: w, kind: sigmoid}\n  - {name: m, kind: multiply, inputs: [base, w]}\n" TAIL,
		2);
	check_network(HEAD "  - {name: m, kind: multiply, inputs: [base, base]}\n" TAIL, 2);
}

/* In blocks of channels and not, read twice, and below what would overwrite it. */
Test(cpu, softmax_has_its_gradient)
{
	check_network(HEAD "  - {name: s, kind: softmax}\n" TAIL, 2);
	check_network(BLOCKED
		      "  - {name: s, kind: softmax, input: base}\n  - {name: t, kind: add, inputs: [s, base, s]}\n"
		      "  - {name: u, kind: softmax}\n  - {name: d, kind: dropout, ratio: 0.4}\n" TAIL,
		      2);
	check_network(HEAD "  - {name: a, kind: inner-product, outputs: 9}\n  - {name: s, kind: softmax}\n" TAIL, 2);
}

Test(cpu, dropout_has_its_gradient)
{
	check_network(HEAD "  - {name: a, kind: inner-product, outputs: 9}\n  - {name: r, kind: relu}\n"
			   "  - {name: d, kind: dropout, ratio: 0.4}\n" TAIL,
		      3);
	check_network(BLOCKED "  - {name: d, kind: dropout, ratio: 0.25}\n" TAIL, 2);
}

/* The base is read three times, the sum twice; the same input may come twice. */
Test(cpu, outputs_read_by_several_layers_sum_their_gradients)
{
	check_network(HEAD "  - {name: l, kind: conv, outputs: 4, kernel: 1}\n"
			   "  - {name: r, kind: relu, input: base}\n"
			   "  - {name: s, kind: add, inputs: [l, r, base, l]}\n"
			   "  - {name: t, kind: relu, input: s}\n"
			   "  - {name: c, kind: concat, inputs: [s, t]}\n" TAIL,
		      2);
}

TEST_ROW(cpu, in_place_layer_read_twice_sums_its_gradients,
	 check_network(BLOCKED "  - {name: r, kind: relu}\n"
			       "  - {name: l, kind: conv, outputs: 16, kernel: 3, pad: 1, input: r}\n"
			       "  - {name: s, kind: add, inputs: [r, l]}\n"
			       "  - {name: t, kind: relu}\n" TAIL,
		       2))

Test(cpu, concat_has_its_gradient)
{
	check_network(BLOCKED "  - {name: l, kind: conv, outputs: 8, kernel: 1}\n"
			      "  - {name: c, kind: concat, inputs: [l, base, l]}\n"
			      "  - {name: d, kind: conv, outputs: 8, kernel: 3}\n" TAIL,
		      2);
	check_network(HEAD "  - {name: l, kind: conv, outputs: 8, kernel: 1}\n"
			   "  - {name: k, kind: conv, outputs: 3, kernel: 1, input: base}\n"
			   "  - {name: c, kind: concat, inputs: [k, l, base]}\n" TAIL,
		      1);
}

TEST_ROW(cpu, sum_of_different_formats_has_its_gradient,
	 check_network(BLOCKED "  - {name: d, kind: dropout, ratio: 0.5, input: base}\n"
			       "  - {name: s, kind: add, inputs: [base, d]}\n"
			       "  - {name: t, kind: add, inputs: [d, s]}\n" TAIL,
		       2))

/* ---- the loss ---- */

static const char identity_text[] =
	"name: m\ninput: {channels: 2}\nlayers:\n  - {name: top, kind: inner-product, outputs: 2}\n"
	"  - {name: loss, kind: softmax-loss}\n";

/* Scores (0, ln 3): probabilities 1/4 and 3/4, loss ln 4 for class 0. Scores (0, 0): 1/2 each, ln 2; the lower class
 * wins the tie. */
NET_TEST(cpu, softmax_loss_is_that_of_a_pocket_calculator, net_make(identity_text, 2))
{
	const float weight[] = {1, 0, 0, 1}, images[] = {0, logf(3), 0, 0};
	const double divisor = net->options.loss_divisor;
	const float score_gradients[2][2] = {{-0.75f, 0.75f}, {-0.5f, 0.5f}};

	memcpy(net->parameters[0], weight, sizeof(weight));
	memset(net->parameters[1], 0, 2 * sizeof(float));
	memcpy(net->images, images, sizeof(images));
	net->labels[0] = net->labels[1] = 0;
	cr_assert_float_eq(net_run(net), (log(4) + log(2)) / divisor, 1e-7);
	cr_assert_eq(psd_device_cpu.correct(net->device), 1);
	for (unsigned c = 0; c < 2; c++)
		cr_assert_float_eq(net->gradients[1][c], (score_gradients[0][c] + score_gradients[1][c]) / divisor,
				   1e-6);
	cr_assert_float_eq(net->gradients[0][1], score_gradients[0][0] * logf(3) / divisor, 1e-6);
}

NET_TEST(cpu, large_scores_do_not_overflow, net_make(identity_text, 1))
{
	net->parameters[0][0] = 1e4f, net->parameters[0][3] = -1e4f;
	net->images[0] = net->images[1] = 1;
	net->labels[0] = 1;
	cr_assert_float_eq(net_run(net), 2e4, 2); /* e^-20000 is nothing beside 1 */
	cr_assert(isfinite(net->gradients[0][0]));
}

Test(cpu, loss_divisor_scales_loss_and_gradients)
{
	struct net one = net_make(HEAD TAIL, 2), other = net_make(HEAD TAIL, 2);
	double loss;

	loss = net_run(&one);
	psd_device_cpu.close(other.device);
	other.options.loss_divisor = 4 * one.options.loss_divisor; /* a power of two: exact */
	net_open(&other);
	cr_assert_float_eq(net_run(&other), loss / 4, 1e-12);
	for (unsigned t = 0; t < one.graph->n_tensors; t++)
		for (uint64_t i = 0; i < one.graph->tensors[t].elements; i++)
			cr_assert_eq(other.gradients[t][i], one.gradients[t][i] / 4);
	net_release(&one);
	net_release(&other);
}

NET_TEST(cpu, label_beyond_the_classes_is_refused, net_make(identity_text, 2))
{
	struct psd_error err = {0};

	net->labels[1] = 2;
	cr_assert_eq(psd_device_cpu.begin(net->device, &net->batch, &err), PSD_OK);
	cr_assert_eq(psd_device_cpu.forward(net->device, 0, &err), PSD_OK);
	cr_assert_eq(psd_device_cpu.forward(net->device, 1, &err), PSD_OK);
	cr_assert_eq(psd_device_cpu.forward(net->device, 2, &err), PSD_EINVAL);
	cr_assert_str_eq(err.text, "sample 9 has label 2, must be 0 to 1");
}

/* ---- one batch on several workers ---- */

#define SPLIT_TEXT                                                                                                     \
	BLOCKED "  - {name: r, kind: relu}\n  - {name: p, kind: pool, method: max, kernel: 2, stride: 2}\n"            \
		"  - {name: a, kind: inner-product, outputs: 24}\n  - {name: d, kind: dropout, ratio: 0.5}\n" TAIL

/* The samples [first, first + batch) of net, as another worker computes them. */
static struct net make_part(const struct net *net, const char *text, uint32_t first, uint32_t batch)
{
	struct net part = net_make(text, batch);

	psd_device_cpu.close(part.device);
	part.options.loss_divisor = net->options.loss_divisor;
	net_open(&part);
	memcpy(part.images, net->images + first * net_image_elements(net),
	       batch * net_image_elements(net) * sizeof(float));
	memcpy(part.labels, net->labels + first * net->graph->labels,
	       batch * net->graph->labels * sizeof(*part.labels));
	part.batch.first_sample = net->batch.first_sample + first;
	return part;
}

static void check_parts(const char *text)
{
	struct net whole = net_make(text, 4), parts[2] = {make_part(&whole, text, 0, 1), make_part(&whole, text, 1, 3)};
	const double loss = net_run(&whole);

	cr_assert_lt(fabs((net_run(&parts[0]) + net_run(&parts[1])) / loss - 1), SPLIT_TOLERANCE_RATIO);
	cr_assert_eq(psd_device_cpu.correct(whole.device),
		     psd_device_cpu.correct(parts[0].device) + psd_device_cpu.correct(parts[1].device));
	for (unsigned t = 0; t < whole.graph->n_tensors; t++) {
		const uint64_t count = whole.graph->tensors[t].elements;
		double *expected = net_widen(whole.gradients[t], count);

		for (uint64_t i = 0; i < count; i++)
			parts[0].gradients[t][i] += parts[1].gradients[t][i];
		cr_expect_lt(net_distance(parts[0].gradients[t], expected, count), SPLIT_TOLERANCE_RATIO);
		free(expected);
	}
	for (unsigned p = 0; p < 2; p++)
		net_release(&parts[p]);
	net_release(&whole);
}

Test(cpu, gradients_of_parts_sum_to_the_whole)
{
	check_parts(SPLIT_TEXT);
	check_parts("name: m\ninput: {channels: 1, height: 5}\nlayers:\n"
		    "  - {name: table, kind: embedding, vocabulary: 7, outputs: 12}\n  - {name: p, kind: position}\n"
		    "  - {name: n, kind: layer-norm}\n  - {name: a, kind: attention, heads: 2}\n"
		    "  - {name: top, kind: conv, outputs: 3, kernel: 1}\n  - {name: loss, kind: softmax-loss}\n");
}

static const char dropout_text[] =
	"name: m\ninput: {channels: 50}\nlayers:\n  - {name: d, kind: dropout, ratio: 0.3}\n"
	"  - {name: top, kind: inner-product, outputs: 2}\n  - {name: loss, kind: softmax-loss}\n";

/* The linear layer's input for an image of ones: 0 or 1 / 0.7 each. To be freed. */
static float *masks_of(struct net *net)
{
	struct psd_factors factors;

	for (uint64_t i = 0; i < net->options.batch * net_image_elements(net); i++)
		net->images[i] = 1;
	(void)net_run_forward(net);
	factors = net_take_factors(net, 2);
	free(factors.top_diff);
	return factors.bottom;
}

Test(cpu, dropout_does_not_depend_on_the_split)
{
	struct net whole = net_make(dropout_text, 4);
	struct net halves[2] = {make_part(&whole, dropout_text, 0, 2), make_part(&whole, dropout_text, 2, 2)};
	float *masks = masks_of(&whole);

	for (unsigned h = 0; h < 2; h++) {
		float *of_half = masks_of(&halves[h]);

		cr_assert_arr_eq(of_half, masks + h * 2 * 50, 2 * 50 * sizeof(float));
		free(of_half);
	}
	free(masks);
	for (unsigned h = 0; h < 2; h++)
		net_release(&halves[h]);
	net_release(&whole);
}

NET_TEST(cpu, dropout_differs_between_samples_and_iterations, net_make(dropout_text, 2))
{
	float *first = masks_of(net), *second, *third;

	cr_assert_arr_neq(first, first + 50, 50 * sizeof(float));
	net->batch.iteration++;
	second = masks_of(net);
	cr_assert_arr_neq(second, first, 2 * 50 * sizeof(float));
	net->batch.iteration--;
	third = masks_of(net);
	cr_assert_arr_eq(third, first, 2 * 50 * sizeof(float));
	free(first);
	free(second);
	free(third);
}

/* 400 x 50 draws at 0.3: the share kept is 0.7 within 5 standard deviations of sqrt(0.3 x 0.7 / 20000). */
NET_TEST(cpu, dropout_drops_its_ratio, net_make(dropout_text, 400))
{
	float *masks = masks_of(net);
	double kept = 0;

	for (unsigned i = 0; i < 400 * 50; i++) {
		cr_assert(masks[i] == 0 || masks[i] == (float)(1 / 0.7));
		kept += masks[i] > 0;
	}
	cr_assert_lt(fabs(kept / 20000 - 0.7), 5 * sqrt(0.3 * 0.7 / 20000));
	free(masks);
}

/* The first and last vectors of the authors' known-answer tests (Random123, kat_vectors). */
Test(cpu, philox_gives_its_published_vectors)
{
	const uint32_t zeros[4] = {0}, ones[4] = {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX};
	const uint32_t of_zeros[4] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
	const uint32_t of_ones[4] = {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd};
	uint32_t random[4];

	psd_cpu_philox(zeros, 0, random);
	cr_assert_arr_eq(random, of_zeros, sizeof(random));
	psd_cpu_philox(ones, UINT64_MAX, random);
	cr_assert_arr_eq(random, of_ones, sizeof(random));
}

/* The rebuild from both parts' factors, side by side, is the gradient of all their samples, whatever was there before.
 */
static void check_rebuild(struct net *whole, struct net parts[2], unsigned layer)
{
	const unsigned tensor = whole->graph->layers[layer].first_tensor;
	const struct psd_tensor *weight = &whole->graph->tensors[tensor];
	double *expected_weight = net_widen(whole->gradients[tensor], weight->elements);
	double *expected_bias = net_widen(whole->gradients[tensor + 1], weight->columns);
	float *top = calloc((size_t)4 * weight->columns, sizeof(*top)),
	      *bottom = calloc((size_t)4 * weight->rows, sizeof(*bottom));
	const struct psd_factors both = {top, bottom};
	struct psd_error err = {0};

	cr_assert(top && bottom);
	for (unsigned p = 0; p < 2; p++) { /* 1 sample, then 3 */
		const struct psd_factors part = {top + p * weight->columns, bottom + p * weight->rows};

		cr_assert_eq(psd_device_cpu.keep_factors(parts[p].device, layer, &part, &err), PSD_OK);
	}
	cr_assert_eq(psd_device_cpu.rebuild(parts[0].device, &both, 4, weight->rows, weight->columns,
					    parts[0].gradients[tensor], parts[0].gradients[tensor + 1], &err),
		     PSD_OK);
	cr_expect_lt(net_distance(parts[0].gradients[tensor], expected_weight, weight->elements),
		     SPLIT_TOLERANCE_RATIO);
	cr_expect_lt(net_distance(parts[0].gradients[tensor + 1], expected_bias, weight->columns),
		     SPLIT_TOLERANCE_RATIO);
	free(top);
	free(bottom);
	free(expected_weight);
	free(expected_bias);
}

Test(cpu, rebuild_gives_the_gradient_of_all_workers)
{
	struct net whole = net_make(SPLIT_TEXT, 4),
		   parts[2] = {make_part(&whole, SPLIT_TEXT, 0, 1), make_part(&whole, SPLIT_TEXT, 1, 3)};

	(void)net_run(&whole), (void)net_run(&parts[0]), (void)net_run(&parts[1]);
	check_rebuild(&whole, parts, 4); /* its input is reordered */
	check_rebuild(&whole, parts, 6); /* its input is in place */
	net_release(&parts[0]);
	net_release(&parts[1]);
	net_release(&whole);
}
