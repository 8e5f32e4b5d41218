/* Layers of sequences on the CPU, against the reference in double. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/model/model.h"
#include "tests/real/device/gradients_helper.h"
#include "tests/real/transformer_helper.h"
#include "tests/test_with.h"

/* Above 4 and 16 channels, read twice, and where nothing below has parameters. */
Test(cpu_sequences, layer_norm_has_its_gradients)
{
	check_function("kind: layer-norm");
	check_function("kind: layer-norm, scale: false, epsilon: 0.5");
	check_function("kind: layer-norm, bias: false");
	check_function("kind: layer-norm, scale: false, bias: false");
	check_network(
		"name: m\ninput: {channels: 5, height: 3, width: 2}\nlayers:\n  - {name: n, kind: layer-norm}\n" TAIL,
		2);
	check_network(BLOCKED "  - {name: n, kind: layer-norm}\n  - {name: l, kind: layer-norm, input: n}\n"
			      "  - {name: r, kind: layer-norm, input: n, scale: false}\n"
			      "  - {name: s, kind: add, inputs: [l, n, r, base]}\n" TAIL,
		      2);
}

/* 20 channels fill a quarter of the second block, 8 half of the first. */
#define PART_BLOCK(channels)                                                                                           \
	"name: m\ninput: {channels: 3, height: 9, width: 8}\nlayers:\n  - {name: first, kind: conv, "                  \
	"outputs: " channels ", kernel: 3, stride: 2}\n  - {name: base, kind: conv, outputs: " channels                \
	", kernel: 3, pad: 1, bias: false}\n"
#define MEAN "  - {name: mean, kind: global-pool}\n"

Test(cpu_sequences, layer_norm_of_part_of_a_block_has_its_gradients)
{
	check_network(PART_BLOCK("8") "  - {name: n, kind: layer-norm}\n" MEAN TAIL, 2);
	check_network(PART_BLOCK("20") "  - {name: n, kind: layer-norm}\n" MEAN TAIL, 1);
}

/* Channels 1 and 3: mean 2, variance 1, normalised -1 and 1 where epsilon is next to nothing; scaled by 2 and 3,
 * shifted by 1 and 0: scores -1 and 3, the loss of class 0 is ln(1 + e^4). */
NET_TEST(cpu_sequences, layer_norm_is_that_of_a_pocket_calculator,
	 net_make("name: m\ninput: {channels: 2}\nlayers:\n"
		  "  - {name: n, kind: layer-norm, epsilon: 1e-12}\n"
		  "  - {name: loss, kind: softmax-loss}\n",
		  1))
{
	net->images[0] = 1, net->images[1] = 3;
	net->parameters[0][0] = 2, net->parameters[0][1] = 3;
	net->parameters[1][0] = 1, net->parameters[1][1] = 0;
	net->labels[0] = 0;
	cr_assert_float_eq(net_run(net), log(1 + exp(4)), 1e-5);
}

/* As of the layer norm: with 5, 8 and 20 channels, too, read several times, and where nothing below has parameters. */
Test(cpu_sequences, rms_norm_has_its_gradients)
{
	check_function("kind: rms-norm");
	check_function("kind: rms-norm, scale: false, epsilon: 0.5");
	check_network(
		"name: m\ninput: {channels: 5, height: 3, width: 2}\nlayers:\n  - {name: n, kind: rms-norm}\n" TAIL, 2);
	check_network(BLOCKED "  - {name: n, kind: rms-norm}\n  - {name: l, kind: rms-norm, input: n}\n"
			      "  - {name: r, kind: rms-norm, input: n, scale: false}\n"
			      "  - {name: s, kind: add, inputs: [l, n, r, base]}\n" TAIL,
		      2);
	check_network(PART_BLOCK("8") "  - {name: n, kind: rms-norm}\n" MEAN TAIL, 2);
	check_network(PART_BLOCK("20") "  - {name: n, kind: rms-norm}\n" MEAN TAIL, 1);
}

/* Channels 1 and 7: mean square 25, divided by 5 where epsilon is next to nothing, scaled by 10 and 5: 2 and 7. */
NET_TEST(cpu_sequences, rms_norm_is_that_of_a_pocket_calculator,
	 net_make("name: m\ninput: {channels: 2}\nlayers:\n"
		  "  - {name: n, kind: rms-norm, epsilon: 1e-12}\n"
		  "  - {name: loss, kind: softmax-loss}\n",
		  1))
{
	net->images[0] = 1, net->images[1] = 7;
	net->parameters[0][0] = 10, net->parameters[0][1] = 5;
	net->labels[0] = 0;
	cr_assert_float_eq(net_run(net), log(1 + exp(5)), 1e-5);
}

/* In either format, and where nothing below has parameters. */
Test(cpu_sequences, position_has_its_gradients)
{
	check_function("kind: position");
	check_network(
		"name: m\ninput: {channels: 3, height: 2, width: 4}\nlayers:\n  - {name: p, kind: position}\n" TAIL, 3);
	check_network(PART_BLOCK("8") "  - {name: p, kind: position}\n" MEAN TAIL, 2);
	check_network(PART_BLOCK("20") "  - {name: p, kind: position}\n" MEAN TAIL, 1);
}

/* The sum over a batch of one is a copy. */
Test(cpu_sequences, position_of_one_sample_has_its_gradients)
{
	check_network(HEAD "  - {name: p, kind: position}\n" TAIL, 1);
	check_network(BLOCKED "  - {name: p, kind: position}\n" TAIL, 1);
}

/* Its input is read by others, and so is its output, by one in place of it among them. */
Test(cpu_sequences, position_between_several_readers_has_its_gradients)
{
	check_network(BLOCKED "  - {name: p, kind: position}\n  - {name: q, kind: position, input: base}\n"
			      "  - {name: l, kind: conv, input: p, outputs: 16, kernel: 1}\n"
			      "  - {name: s, kind: add, inputs: [p, l, q, base]}\n  - {name: g, kind: relu}\n" TAIL,
		      2);
}

/* In either format, read beside others, several of one tensor, and where nothing below has parameters. */
Test(cpu_sequences, prefix_has_its_gradients)
{
	check_network(HEAD "  - {name: p, kind: prefix}\n" TAIL, 2);
	check_network("name: m\ninput: {channels: 3, height: 2, width: 4}\nlayers:\n"
		      "  - {name: p, kind: prefix, places: 2}\n" TAIL,
		      3);
	check_network(PART_BLOCK("20") "  - {name: p, kind: prefix, places: 3}\n" MEAN TAIL, 1);
	check_network(BLOCKED "  - {name: p, kind: prefix, places: 2}\n  - {name: q, kind: prefix, places: 2, input: "
			      "base, shares: p}\n"
			      "  - {name: l, kind: conv, input: p, outputs: 16, kernel: 1}\n"
			      "  - {name: s, kind: add, inputs: [p, l, q]}\n  - {name: g, kind: sigmoid}\n" TAIL,
		      2);
}

/* Vectors (3, 5) and (4, 6) in front of the one place (1, 2): by channels 3, 4, 1 and 5, 6, 2. */
NET_TEST(cpu_sequences, prefix_puts_its_vectors_in_front,
	 net_make("name: m\ninput: {channels: 2}\nlayers:\n"
		  "  - {name: p, kind: prefix, places: 2}\n  - {name: loss, kind: softmax-loss}\n",
		  1))
{
	net->images[0] = 1, net->images[1] = 2;
	net->parameters[0][0] = 3, net->parameters[0][1] = 4, net->parameters[0][2] = 5, net->parameters[0][3] = 6;
	net->labels[0] = net->labels[1] = 1, net->labels[2] = 0;
	cr_assert_float_eq(net_run(net), (2 * log(1 + exp(-2)) + log(1 + exp(1))) / 3, 1e-6);
}

#define SEQUENCE                                                                                                       \
	"name: m\ninput: {channels: 1, height: 5}\nlayers:\n  - {name: base, kind: embedding, vocabulary: 7, "         \
	"outputs: 6}\n"

/* 15 tokens of 7: some rows are read several times, some perhaps never. */
Test(cpu_sequences, embedding_has_its_gradient)
{
	check_network(SEQUENCE TAIL, 3);
	check_network("name: m\ninput: {channels: 1, height: 2, width: 3}\nlayers:\n  - {name: a, kind: embedding, "
		      "vocabulary: 4, outputs: 3}\n"
		      "  - {name: b, kind: embedding, input: input, vocabulary: 9, outputs: 3}\n"
		      "  - {name: s, kind: add, inputs: [a, b]}\n" TAIL,
		      2);
}

/* Tokens 2, 0, 2 of a table of 4: row 2 has the sum of both places' gradients, rows 1 and 3 have 0, though the table's
 * gradient was full of something else. Scores are the rows themselves, all 0: probabilities 1/2 each, and every label
 * is 0. */
NET_TEST(cpu_sequences, rows_that_no_token_names_have_no_gradient,
	 net_make("name: m\ninput: {channels: 1, height: 3}\nlayers:\n"
		  "  - {name: e, kind: embedding, vocabulary: 4, outputs: 2}\n"
		  "  - {name: loss, kind: softmax-loss}\n",
		  1))
{
	const float tokens[] = {2, 0, 2}, expected[] = {-0.5f, 0.5f, 0, 0, -1, 1, 0, 0}; /* times a third: the mean */

	memcpy(net->images, tokens, sizeof(tokens));
	memset(net->parameters[0], 0, sizeof(expected));
	memset(net->labels, 0, 3 * sizeof(*net->labels));
	for (unsigned run = 0; run < 2; run++) {
		cr_assert_float_eq(net_run(net), log(2), 1e-7);
		for (unsigned i = 0; i < 8; i++)
			cr_expect_float_eq(net->gradients[0][i], expected[i] / 3, 1e-7, "%u: %g", i,
					   (double)net->gradients[0][i]);
	}
}

/* 9 channels are no whole vectors. */
TEST_ROW(cpu_sequences, a_table_read_twice_has_its_gradient,
	 check_network("name: m\ninput: {channels: 1, height: 2, width: 2}\nlayers:\n"
		       "  - {name: e, kind: embedding, vocabulary: 5, outputs: 9}\n"
		       "  - {name: g, kind: gelu}\n  - {name: s, kind: add, inputs: [e, g, e]}\n" TAIL,
		       3))

/* The head multiplies by the table that the embedding reads; two embeddings of one table. */
Test(cpu_sequences, a_shared_table_has_the_sum_of_gradients)
{
	check_network(SEQUENCE "  - {name: g, kind: gelu}\n"
			       "  - {name: head, kind: conv, outputs: 7, kernel: 1, bias: false, shares: base}\n"
			       "  - {name: loss, kind: softmax-loss}\n",
		      3);
	check_network(SEQUENCE
		      "  - {name: other, kind: embedding, input: input, vocabulary: 7, outputs: 6, shares: base}\n"
		      "  - {name: m, kind: multiply, inputs: [base, other]}\n" TAIL,
		      2);
}

#define SMALL_BLOCKED                                                                                                  \
	"name: m\ninput: {channels: 1, height: 2, width: 2}\nlayers:\n  - {name: base, kind: conv, outputs: 16, "      \
	"kernel: 1}\n"

Test(cpu_sequences, other_shared_parameters_have_the_sum_of_gradients)
{
	check_network(SMALL_BLOCKED
		      "  - {name: n, kind: layer-norm}\n  - {name: p, kind: position}\n"
		      "  - {name: c, kind: conv, outputs: 16, kernel: 3, pad: 1}\n"
		      "  - {name: o, kind: layer-norm, shares: n}\n  - {name: q, kind: position, shares: p}\n"
		      "  - {name: d, kind: conv, outputs: 16, kernel: 3, pad: 1, shares: c}\n" TAIL,
		      2);
}

#define GROUPED(channels)                                                                                              \
	"name: m\ninput: {channels: 1, height: 5}\nlayers:\n  - {name: base, kind: embedding, vocabulary: 7, "         \
	"outputs: " channels "}\n"

Test(cpu_sequences, attention_has_its_gradients)
{
	check_network(SEQUENCE "  - {name: a, kind: attention, heads: 1}\n" TAIL, 2);
	check_network(SEQUENCE "  - {name: a, kind: attention, heads: 2, causal: true}\n" TAIL, 2);
	check_network(SMALL_BLOCKED "  - {name: q, kind: conv, input: base, outputs: 48, kernel: 1}\n"
				    "  - {name: a, kind: attention, heads: 4}\n"
				    "  - {name: s, kind: add, inputs: [base, a]}\n" TAIL,
		      2);
}

/* Masks of two layers differ; one of an input without a gradient needs memory, too. */
Test(cpu_sequences, attention_with_dropout_has_its_gradients)
{
	check_network(SEQUENCE "  - {name: a, kind: attention, heads: 2, dropout: 0.4}\n" TAIL, 2);
	check_network(GROUPED("32") "  - {name: a, kind: attention, heads: 4, kv_heads: 2, rotary: 10, causal: true, "
				    "dropout: 0.5}\n"
				    "  - {name: b, kind: attention, heads: 2, kv_heads: 1, dropout: 0.2, input: base}\n"
				    "  - {name: s, kind: concat, inputs: [a, b]}\n" TAIL,
		      3);
	check_network("name: m\ninput: {channels: 6, height: 4}\nlayers:\n"
		      "  - {name: a, kind: attention, heads: 2, dropout: 0.3}\n" TAIL,
		      2);
}

/* Two heads of queries for each of keys and values, four for one, and one for each, which is nothing new. */
Test(cpu_sequences, grouped_attention_has_its_gradients)
{
	check_network(GROUPED("8") "  - {name: a, kind: attention, heads: 2, kv_heads: 1, causal: true}\n" TAIL, 2);
	check_network(GROUPED("12") "  - {name: a, kind: attention, heads: 4, kv_heads: 1}\n" TAIL, 2);
	check_network(GROUPED("16") "  - {name: a, kind: attention, heads: 4, kv_heads: 2}\n" TAIL, 2);
	check_network(GROUPED("12") "  - {name: a, kind: attention, heads: 2, kv_heads: 2}\n" TAIL, 2);
	check_network(SMALL_BLOCKED "  - {name: q, kind: conv, input: base, outputs: 32, kernel: 1}\n"
				    "  - {name: a, kind: attention, heads: 4, kv_heads: 2}\n"
				    "  - {name: b, kind: attention, heads: 6, kv_heads: 1, input: q}\n"
				    "  - {name: c, kind: slice, channels: 16, first: 1, input: b}\n"
				    "  - {name: s, kind: add, inputs: [base, a, c]}\n" TAIL,
		      2);
}

/* Queries and keys are rotated in a copy of what others read, and their gradients beside those of others. */
Test(cpu_sequences, rotary_attention_has_its_gradients)
{
	check_network(GROUPED("12") "  - {name: a, kind: attention, heads: 1, rotary: 10000, causal: true}\n" TAIL, 2);
	check_network(GROUPED("12") "  - {name: a, kind: attention, heads: 2, rotary: 3}\n" TAIL, 2);
	check_network(GROUPED("32") "  - {name: a, kind: attention, heads: 4, kv_heads: 2, rotary: 10}\n" TAIL, 2);
	check_network(SMALL_BLOCKED "  - {name: q, kind: conv, input: base, outputs: 48, kernel: 1}\n"
				    "  - {name: a, kind: attention, heads: 4, rotary: 100, causal: true}\n"
				    "  - {name: b, kind: attention, heads: 2, rotary: 1, input: q}\n"
				    "  - {name: c, kind: attention, heads: 2, input: q}\n"
				    "  - {name: s, kind: add, inputs: [base, a, b, c]}\n" TAIL,
		      2);
	check_network("name: m\ninput: {channels: 6, height: 4}\nlayers:\n  - {name: a, kind: attention, heads: 1, "
		      "rotary: 9}\n" TAIL,
		      2); /* where nothing below has parameters */
}

/* It sees itself alone: the probability is 1, and queries and keys change nothing. */
Test(cpu_sequences, attention_of_one_place_is_its_value)
{
	struct net net = net_make("name: m\ninput: {channels: 6}\nlayers:\n"
				  "  - {name: base, kind: inner-product, outputs: 6, bias: false}\n"
				  "  - {name: a, kind: attention, heads: 2}\n  - {name: loss, kind: softmax-loss}\n",
				  1);

	(void)net_run(&net);
	for (unsigned i = 0; i < 2 * 2 * 6; i++) /* rows of queries and of keys */
		cr_expect_eq(net.gradients[0][i], 0);
	net_release(&net);
	check_network("name: m\ninput: {channels: 1}\nlayers:\n"
		      "  - {name: base, kind: embedding, vocabulary: 3, outputs: 6}\n"
		      "  - {name: a, kind: attention, heads: 2, causal: true}\n" TAIL,
		      3);
}

/* Along rows, where the order tells what is hidden. */
Test(cpu_sequences, attention_over_a_map_has_its_gradients)
{
	check_network(HEAD "  - {name: q, kind: conv, outputs: 12, kernel: 3}\n"
			   "  - {name: a, kind: attention, heads: 2, causal: true}\n" TAIL,
		      2);
	check_network("name: m\ninput: {channels: 1, height: 2, width: 3}\nlayers:\n"
		      "  - {name: base, kind: embedding, vocabulary: 7, outputs: 18}\n"
		      "  - {name: a, kind: attention, heads: 3}\n  - {name: l, kind: layer-norm}\n" TAIL,
		      2);
}

/* Inputs in blocks of channels, or not, with other readers; the attention has other readers, too. */
Test(cpu_sequences, attention_between_several_readers_has_its_gradients)
{
	check_network("name: m\ninput: {channels: 2, height: 3, width: 4}\nlayers:\n"
		      "  - {name: base, kind: conv, outputs: 48, kernel: 3, pad: 1}\n"
		      "  - {name: a, kind: attention, heads: 2, causal: true}\n"
		      "  - {name: b, kind: attention, heads: 4, input: base}\n"
		      "  - {name: c, kind: conv, outputs: 16, kernel: 1, input: base}\n"
		      "  - {name: s, kind: add, inputs: [a, b, c, a]}\n" TAIL,
		      2);
	check_network(SEQUENCE "  - {name: a, kind: attention, heads: 2}\n"
			       "  - {name: b, kind: attention, heads: 1, input: base}\n"
			       "  - {name: s, kind: add, inputs: [a, b]}\n" TAIL,
		      2);
	check_network(
		"name: m\ninput: {channels: 6, height: 4}\nlayers:\n  - {name: a, kind: attention, heads: 2}\n" TAIL,
		2); /* where nothing below has parameters */
}

/* Two places, one channel: queries 1 and 2, keys 0 and 1, values 0 and 4. Scores 0 and 1: of the second value 1 / (1 +
 * 1/e); scores 0 and 2: 1 / (1 + 1/e^2). Where nothing later is seen the first place has value 0. */
static void check_calculator(bool is_causal, double first, double second)
{
	char text[512];
	struct net net;
	const float images[] = {1, 2, 0, 1, 0, 4};
	double expected = 0;

	snprintf(text, sizeof(text),
		 "name: m\ninput: {channels: 3, height: 2}\nlayers:\n"
		 "  - {name: a, kind: attention, heads: 1, causal: %s}\n"
		 "  - {name: top, kind: conv, outputs: 2, kernel: 1}\n  - {name: loss, kind: softmax-loss}\n",
		 is_causal ? "true" : "false");
	net = net_make(text, 1);
	memcpy(net.images, images, sizeof(images));
	net.parameters[0][0] = 1, net.parameters[0][1] = 0; /* scores: the value and 0 */
	net.parameters[1][0] = net.parameters[1][1] = 0;
	net.labels[0] = net.labels[1] = 0;
	expected = (log(1 + exp(-first)) + log(1 + exp(-second))) / 2;
	cr_expect_float_eq(net_run(&net), expected, 1e-6);
	net_release(&net);
}

Test(cpu_sequences, attention_is_that_of_a_pocket_calculator)
{
	const double second = 4 / (1 + exp(-2));

	check_calculator(false, 4 / (1 + exp(-1)), second);
	check_calculator(true, 0, second);
}

/* Queries and keys are (1, 0) at both places, values (0, 0) and (4, 0). The second place is rotated by 1 whatever the
 * base: a query has the score 1 / sqrt 2 with the key of its own place, and cos(1) / sqrt 2 with the other one. */
Test(cpu_sequences, rotary_attention_is_that_of_a_pocket_calculator)
{
	const float images[] = {1, 1, 0, 0, 1, 1, 0, 0, 0, 4, 0, 0}; /* by channels: queries, keys, values */
	const double near = exp(1 / sqrt(2)), far = exp(cos(1) / sqrt(2));
	const double first = 4 * far / (near + far), second = 4 * near / (near + far);
	struct net net = net_make("name: m\ninput: {channels: 6, height: 2}\nlayers:\n"
				  "  - {name: a, kind: attention, heads: 1, rotary: 10000}\n"
				  "  - {name: loss, kind: softmax-loss}\n",
				  1);

	memcpy(net.images, images, sizeof(images));
	net.labels[0] = net.labels[1] = 0; /* scores: the value and 0 */
	cr_expect_float_eq(net_run(&net), (log(1 + exp(-first)) + log(1 + exp(-second))) / 2, 1e-6);
	net_release(&net);
}

/* Each place has a label. */
Test(cpu_sequences, a_loss_of_places_is_their_mean)
{
	check_network(SEQUENCE
		      "  - {name: top, kind: conv, outputs: 3, kernel: 1}\n  - {name: loss, kind: softmax-loss}\n",
		      2);
	check_network(BLOCKED "  - {name: top, kind: conv, outputs: 3, kernel: 3}\n  - {name: loss, kind: "
			      "softmax-loss, weight: 0.5}\n",
		      3);
}

/* None of them needs its output, which a layer above may overwrite. */
Test(cpu_sequences, what_stands_above_works_in_place)
{
	check_network(SEQUENCE "  - {name: r, kind: sigmoid}\n" TAIL, 2);
	check_network(SEQUENCE "  - {name: p, kind: position}\n  - {name: r, kind: sigmoid}\n" TAIL, 2);
	check_network(SEQUENCE "  - {name: n, kind: layer-norm}\n  - {name: r, kind: sigmoid}\n" TAIL, 2);
	check_network(SEQUENCE "  - {name: n, kind: rms-norm}\n  - {name: r, kind: sigmoid}\n" TAIL, 2);
	check_network(SEQUENCE "  - {name: a, kind: attention, heads: 2}\n  - {name: r, kind: sigmoid}\n" TAIL, 2);
}

/* Layers on which no loss depends; in the second iteration their memory holds other gradients. */
NET_TEST(cpu_sequences, gradients_of_a_dead_end_are_zero,
	 net_make(SEQUENCE "  - {name: other, kind: embedding, input: input, vocabulary: 7, outputs: 6}\n"
			   "  - {name: p, kind: position}\n  - {name: n, kind: layer-norm}\n"
			   "  - {name: a, kind: attention, heads: 2}\n"
			   "  - {name: x, kind: conv, outputs: 6, kernel: 1, input: base}\n"
			   "  - {name: y, kind: conv, outputs: 6, kernel: 1}\n" TAIL,
		  2))
{
	(void)net_run(net);
	(void)net_run(net);
	for (unsigned t = net->graph->layers[2].first_tensor; t < net->graph->layers[6].first_tensor; t++)
		for (uint64_t i = 0; i < net->graph->tensors[t].elements; i++)
			cr_assert_eq(net->gradients[t][i], 0, "%s", net->graph->tensors[t].name);
}

/* A loss has no gradient of its output: it hands down its own. */
NET_TEST(cpu_sequences, layers_above_a_loss_change_no_gradient_below,
	 net_make(SEQUENCE "  - {name: loss, kind: softmax-loss}\n", 2))
{
	struct net above =
		net_make(SEQUENCE "  - {name: loss, kind: softmax-loss}\n  - {name: a, kind: attention, heads: 2}\n"
				  "  - {name: n, kind: layer-norm, input: loss}\n"
				  "  - {name: p, kind: position, input: loss}\n",
			 2);

	memcpy(above.images, net->images, 2 * net_image_elements(net) * sizeof(float)); /* drawn after the parameters */
	cr_assert_eq(net_run(&above), net_run(net));
	cr_assert_arr_eq(above.gradients[0], net->gradients[0], net->graph->tensors[0].elements * sizeof(float));
	net_release(&above);
}

TEST_ROW(cpu_sequences, a_transformer_has_its_gradients, check_network(TRANSFORMER, 3))
TEST_ROW(cpu_sequences, a_llama_has_its_gradients, check_network(LLAMA, 3))

/* The table's rows are (ln 2, 0, 0), (0, ln 2, 0) and (0, 0, ln 2): of a token's own class the probability is 2 / 4, of
 * each other 1 / 4. 8 places of two samples, 5 of which have their token as label. */
NET_TEST(cpu_sequences, correct_counts_places,
	 net_make("name: m\ninput: {channels: 1, height: 2, width: 2}\nlayers:\n"
		  "  - {name: e, kind: embedding, vocabulary: 3, outputs: 3}\n"
		  "  - {name: loss, kind: softmax-loss}\n",
		  2))
{
	const float tokens[] = {0, 1, 2, 2, 1, 1, 0, 2};
	const int32_t labels[] = {0, 1, 1, 2, 0, 1, 0, 1};

	memcpy(net->images, tokens, sizeof(tokens));
	memcpy(net->labels, labels, sizeof(labels));
	for (unsigned i = 0; i < 9; i++)
		net->parameters[0][i] = i % 4 == 0 ? logf(2) : 0;
	cr_assert_float_eq(net_run(net), (5 * log(2) + 3 * log(4)) / 8, 1e-6);
	cr_assert_eq(psd_device_cpu.correct(net->device), 5);
}

/* Each loss would count all 10 places. */
NET_TEST(cpu_sequences, correct_is_that_of_the_last_loss,
	 net_make(SEQUENCE "  - {name: aside, kind: softmax-loss}\n"
			   "  - {name: loss, kind: softmax-loss, input: base}\n",
		  2))
{
	for (unsigned i = 0; i < 10; i++) {
		net->images[i] = (float)(i % 3);
		net->labels[i] = (int32_t)(i % 3);
	}
	for (unsigned i = 0; i < 7 * 6; i++)
		net->parameters[0][i] = i % 7 == 0; /* 1 at (row, row) */
	(void)net_run(net);
	cr_assert_eq(psd_device_cpu.correct(net->device), 10);
}

/* The second of two samples of 5 places has labels 5 to 9. */
static void check_label(unsigned place, int32_t label, const char *text)
{
	struct net net = net_make(SEQUENCE "  - {name: loss, kind: softmax-loss}\n", 2);
	struct psd_error err = {0};

	net.labels[place] = label;
	cr_assert_eq(psd_device_cpu.begin(net.device, &net.batch, &err), PSD_OK);
	cr_assert_eq(psd_device_cpu.forward(net.device, 0, &err), PSD_OK);
	cr_assert_eq(psd_device_cpu.forward(net.device, 1, &err), PSD_OK);
	cr_assert_eq(psd_device_cpu.forward(net.device, 2, &err), PSD_EINVAL);
	cr_expect_str_eq(err.text, text);
	net_release(&net);
}

Test(cpu_sequences, a_label_beyond_the_classes_names_its_sample)
{
	check_label(4, 6, "sample 8 has label 6, must be 0 to 5");
	check_label(5, 6, "sample 9 has label 6, must be 0 to 5");
	check_label(9, -1, "sample 9 has label -1, must be 0 to 5");
}

static void check_memory(const char *input, uint32_t batch)
{
	const struct psd_device_options device_options = {.n_threads = 1};
	const struct psd_network_options options = {.batch = batch, .loss_divisor = 1};
	float *none[1] = {0};
	struct psd_device *device;
	struct psd_graph graph;
	struct psd_error err = {0};
	char text[512];

	snprintf(text, sizeof(text), "name: m\ninput: {%s}\nlayers:\n  - {name: a, kind: attention, heads: 1}\n",
		 input);
	cr_assert_eq(psd_model_parse(&graph, "m.yaml", text, strlen(text), &err), PSD_OK, "%s", err.text);
	cr_assert_eq(psd_device_cpu.open(&device, &device_options, &err), PSD_OK);
	cr_assert_eq(psd_device_cpu.load(device, &graph, &options, none, none, &err), PSD_ENOMEM, "%s", input);
	cr_expect_str_eq(err.text, "no memory for the network's activations");
	psd_device_cpu.close(device);
	psd_graph_release(&graph);
}

/* Probabilities of 2^23 places are 2^48 bytes, more than a process can address; of 2^28 places in 64 samples they are
 * 2^64, which wraps to 0. */
Test(cpu_sequences, probabilities_that_nothing_can_hold_are_no_memory)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* they end a process that asks for so much */
	check_memory("channels: 3, height: 65536, width: 128", 1);
#endif
	check_memory("channels: 3, height: 65536, width: 4096", 64);
}

static void check_token(float token, const char *text)
{
	struct net net = net_make(SEQUENCE TAIL, 2);
	struct psd_error err = {0};

	net.images[7] = token; /* sample 1, place 2 */
	cr_assert_eq(psd_device_cpu.begin(net.device, &net.batch, &err), PSD_OK);
	cr_assert_eq(psd_device_cpu.forward(net.device, 0, &err), PSD_OK);
	cr_assert_eq(psd_device_cpu.forward(net.device, 1, &err), PSD_EINVAL);
	cr_expect_str_eq(err.text, text);
	net_release(&net);
}

Test(cpu_sequences, a_token_beyond_the_vocabulary_is_refused)
{
	check_token(7, "layer 'base': sample 9 has token 7, must be a whole number from 0 to 6");
	check_token(-1, "layer 'base': sample 9 has token -1, must be a whole number from 0 to 6");
	check_token(1.5f, "layer 'base': sample 9 has token 1.5, must be a whole number from 0 to 6");
	check_token(NAN, "layer 'base': sample 9 has token nan, must be a whole number from 0 to 6");
}
