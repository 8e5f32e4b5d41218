/* Layers of sequences and parameters that layers share, in the native form: shapes, tensors, work, properties of
 * samples, and every error with its line and column. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "engine/model/graph.h"
#include "engine/model/layer.h"
#include "engine/model/model.h"
#include "tests/test_with.h"

/* The third line of each file is "layers:", so the first layer stands in line 4. */
#define TOKENS "name: m\ninput: {name: tokens, channels: 1, height: 5, width: 2}\nlayers:\n"
#define MAP    "name: m\ninput: {channels: 12, height: 5, width: 3}\nlayers:\n"

static struct psd_graph parse(const char *text)
{
	struct psd_graph graph;
	struct psd_error err = {0};

	cr_assert_eq(psd_model_parse(&graph, "m.yaml", text, strlen(text), &err), PSD_OK, "%s", err.text);
	return graph;
}

static void refuses(const char *text, const char *message)
{
	struct psd_graph graph;
	struct psd_error err = {0};

	cr_assert_eq(psd_model_parse(&graph, "m.yaml", text, strlen(text), &err), PSD_EINVAL, "must be: %s", message);
	cr_assert_str_eq(err.text, message);
}

static bool has_shape(const struct psd_layer *layer, uint32_t channels, uint32_t height, uint32_t width)
{
	return layer->shape.channels == channels && layer->shape.height == height && layer->shape.width == width;
}

static void expect_dims(const struct psd_tensor *tensor, const char *name, unsigned n_dims, const uint32_t dims[])
{
	uint64_t elements = 1;

	cr_expect_str_eq(tensor->name, name);
	cr_assert_eq(tensor->n_dims, n_dims, "%s", name);
	for (unsigned i = 0; i < n_dims; i++) {
		cr_expect_eq(tensor->dims[i], dims[i], "%s", name);
		elements *= dims[i];
	}
	cr_expect_eq(tensor->elements, elements, "%s", name);
}

static void expect_start(const struct psd_tensor *tensor, float value, float deviation)
{
	cr_expect_eq(tensor->start_value, value, "%s", tensor->name);
	cr_expect_eq(tensor->start_deviation, deviation, "%s", tensor->name);
	cr_expect_eq(tensor->start_bound, 0, "%s", tensor->name);
}

static void expect_flops(const struct psd_layer *layer, uint64_t forward, uint64_t backward)
{
	cr_expect_eq(layer->forward_flops, forward, "%s: %llu, must be %llu", layer->name,
		     (unsigned long long)layer->forward_flops, (unsigned long long)forward);
	cr_expect_eq(layer->backward_flops, backward, "%s: backward %llu, must be %llu", layer->name,
		     (unsigned long long)layer->backward_flops, (unsigned long long)backward);
}

static void expect_bytes(const struct psd_layer *layer, uint64_t values_read, uint64_t values_written)
{
	cr_expect_eq(layer->read_bytes, 4 * values_read, "%s", layer->name);
	cr_expect_eq(layer->write_bytes, 4 * values_written, "%s", layer->name);
}

/* ---- kinds ---- */

/* 5 x 2 tokens name rows of 6 values. Forward computes nothing; backward adds each row's gradient to the table's.
 * Forward reads these rows only, and there may be more of them than the table has. */
GRAPH_TEST(sequences, an_embedding_looks_up_rows,
	   parse(TOKENS "  - {name: e, kind: embedding, vocabulary: 7, outputs: 6}\n"))
{
	const struct psd_layer *embedding = &graph.layers[1];
	const uint64_t tokens = 5 * 2;

	cr_assert(has_shape(embedding, 6, 5, 2));
	cr_assert_eq(graph.n_tensors, 1);
	expect_dims(&graph.tensors[0], "e.weight", 2, (const uint32_t[]){7, 6});
	expect_start(&graph.tensors[0], 0, 0.02f);
	cr_expect(graph.tensors[0].rows == 0 && graph.tensors[0].columns == 0); /* no factors */
	cr_expect_eq(graph.parameters, 7 * 6);
	cr_expect_eq(embedding->parameters, 7 * 6);
	cr_expect(embedding->is_trained);
	expect_flops(embedding, 0, tokens * 6);
	expect_bytes(embedding, tokens + tokens * 6, tokens * 6);
	cr_expect_eq(graph.activation_bytes, 4 * (tokens + tokens * 6));
}

/* A sum for each element; backward a sum for each element of the weight's gradient, and the data's is handed on. */
GRAPH_TEST(sequences, a_position_has_a_value_for_each_element,
	   parse(MAP "  - {name: p, kind: position}\n  - {name: q, kind: position}\n"))
{
	const uint64_t elements = 12 * 5 * 3;

	cr_assert_eq(graph.n_tensors, 2);
	expect_dims(&graph.tensors[0], "p.weight", 3, (const uint32_t[]){12, 5, 3});
	expect_start(&graph.tensors[0], 0, 0.02f);
	for (unsigned l = 1; l <= 2; l++) { /* with and without a gradient of the data */
		cr_assert(has_shape(&graph.layers[l], 12, 5, 3));
		expect_flops(&graph.layers[l], elements, elements);
		expect_bytes(&graph.layers[l], 2 * elements, elements);
	}
}

/* Nothing is computed forward; backward a sum for each value of the vectors' gradient. */
GRAPH_TEST(sequences, a_prefix_puts_positions_in_front,
	   parse(MAP "  - {name: p, kind: prefix}\n  - {name: q, kind: prefix, places: 3}\n"
		     "  - {name: s, kind: prefix, shares: q, places: 3}\n"))
{
	const uint64_t places = 5 * 3;

	cr_assert_eq(graph.n_tensors, 2);
	expect_dims(&graph.tensors[0], "p.weight", 2, (const uint32_t[]){12, 1});
	expect_dims(&graph.tensors[1], "q.weight", 2, (const uint32_t[]){12, 3});
	expect_start(&graph.tensors[1], 0, 0.02f);
	cr_expect(graph.tensors[1].rows == 0 && graph.tensors[1].columns == 0); /* no factors */
	cr_assert(has_shape(&graph.layers[1], 12, 5 * 3 + 1, 1));
	cr_assert(has_shape(&graph.layers[2], 12, 5 * 3 + 1 + 3, 1));
	cr_assert(has_shape(&graph.layers[3], 12, 5 * 3 + 1 + 3 + 3, 1));
	expect_flops(&graph.layers[1], 0, 12);
	expect_flops(&graph.layers[2], 0, 12 * 3);
	expect_bytes(&graph.layers[2], 12 * (places + 1) + 12 * 3, 12 * (places + 1 + 3));
}

/* For each value: its part of the mean 1, of the variance 3, normalised 2, scaled 1, shifted 1. Backward: the data's
 * gradient 6 and the scale 1; gamma's gradient 2, beta's 1. */
GRAPH_TEST(sequences, a_layer_norm_is_of_the_channels,
	   parse(MAP "  - {name: bare, kind: layer-norm, scale: false, bias: false}\n"
		     "  - {name: both, kind: layer-norm}\n"
		     "  - {name: above, kind: layer-norm, epsilon: 0.001}\n"
		     "  - {name: scale, kind: layer-norm, bias: false}\n"
		     "  - {name: shift, kind: layer-norm, scale: false}\n"
		     "  - {name: top, kind: layer-norm, scale: false, bias: false}\n"))
{
	const uint64_t elements = 12 * 5 * 3;
	const char *const names[] = {"both.weight", "both.bias",    "above.weight",
				     "above.bias",  "scale.weight", "shift.bias"};

	cr_assert_eq(graph.n_tensors, 6);
	for (unsigned t = 0; t < 6; t++) {
		expect_dims(&graph.tensors[t], names[t], 1, (const uint32_t[]){12});
		expect_start(&graph.tensors[t], strstr(names[t], "weight") ? 1 : 0, 0);
	}
	cr_expect_not(graph.layers[1].is_trained);
	expect_flops(&graph.layers[1], 6 * elements, 0);
	expect_flops(&graph.layers[2], 8 * elements, 3 * elements); /* no gradient of the data */
	expect_flops(&graph.layers[3], 8 * elements, (7 + 3) * elements);
	expect_flops(&graph.layers[4], 7 * elements, (7 + 2) * elements);
	expect_flops(&graph.layers[5], 7 * elements, (6 + 1) * elements);
	expect_flops(&graph.layers[6], 6 * elements, 6 * elements);
	expect_bytes(&graph.layers[3], elements + 2 * 12, elements);
	cr_expect_eq(graph.layers[2].settings.affine.epsilon, 1e-5);
	cr_expect_eq(graph.layers[3].settings.affine.epsilon, 1e-3);
	cr_expect_eq(graph.n_states, 0);
}

/* For each value: its part of the mean square 2, divided 1, scaled 1. Backward: its part of the sum of dy x 2, the
 * difference of dy and x times a factor each 3, the scale 1; gamma's gradient 2. */
GRAPH_TEST(sequences, an_rms_norm_has_a_scale_alone,
	   parse(MAP "  - {name: bare, kind: rms-norm, scale: false}\n"
		     "  - {name: low, kind: rms-norm}\n"
		     "  - {name: high, kind: rms-norm, epsilon: 0.001}\n"
		     "  - {name: top, kind: rms-norm, scale: false}\n"))
{
	const uint64_t elements = 12 * 5 * 3;

	cr_assert_eq(graph.n_tensors, 2);
	expect_dims(&graph.tensors[0], "low.weight", 1, (const uint32_t[]){12});
	expect_dims(&graph.tensors[1], "high.weight", 1, (const uint32_t[]){12});
	expect_start(&graph.tensors[1], 1, 0);
	cr_expect_not(graph.layers[1].is_trained);
	cr_assert(has_shape(&graph.layers[3], 12, 5, 3));
	expect_flops(&graph.layers[1], 3 * elements, 0);
	expect_flops(&graph.layers[2], 4 * elements, 2 * elements); /* no gradient of the data */
	expect_flops(&graph.layers[3], 4 * elements, (6 + 2) * elements);
	expect_flops(&graph.layers[4], 3 * elements, 5 * elements);
	expect_bytes(&graph.layers[3], elements + 12, elements);
	cr_expect_eq(graph.layers[2].settings.affine.epsilon, 1e-6);
	cr_expect_eq(graph.layers[3].settings.affine.epsilon, 1e-3);
}

/* x (1 + erf(x / sqrt 2)) / 2: two products, the error function, a sum, a product. Backward (1 + erf(x / sqrt 2)) / 2 +
 * x exp(-x x / 2) / sqrt(2 pi), times dy: the first term 4; of the second a square, the exponential and a product with
 * x over a constant; the sum, the product with dy. */
GRAPH_TEST(sequences, a_gelu_counts_five_and_nine,
	   parse(MAP "  - {name: f, kind: gelu}\n  - {name: p, kind: position}\n"
		     "  - {name: g, kind: gelu}\n"))
{
	const uint64_t elements = 12 * 5 * 3;

	cr_assert(has_shape(&graph.layers[3], 12, 5, 3));
	expect_flops(&graph.layers[1], 5 * elements, 0);
	expect_flops(&graph.layers[3], 5 * elements, 9 * elements);
	expect_bytes(&graph.layers[3], elements, elements);
	cr_expect_eq(graph.n_tensors, 1);
}

/* By tanh: x (1 + t) / 2 with t = tanh(x (a + b x x)), whose argument has three products and a sum, and which counts 5
 * as a layer of it does; a sum and two products. Backward t once more, 9, and (1 + t) / 2 + x / 2 (1 - t t) (a + 3 b x
 * x), times dy: a sum and a product, a product and a difference, a product and a sum, three products, a sum, and dy. */
GRAPH_TEST(sequences, a_gelu_by_tanh_counts_twelve_and_twenty,
	   parse(MAP "  - {name: p, kind: position}\n"
		     "  - {name: g, kind: gelu, approximate: tanh}\n"
		     "  - {name: h, kind: gelu, approximate: none}\n"))
{
	const uint64_t elements = 12 * 5 * 3;

	expect_flops(&graph.layers[2], 12 * elements, 20 * elements);
	expect_flops(&graph.layers[3], 5 * elements, 9 * elements);
}

/* x / (1 + exp(-x)): a sign, an exponential, a sum, a quotient. Backward s = 1 / (1 + exp(-x)) once more, and
 * s (1 + x (1 - s)), times dy. */
GRAPH_TEST(sequences, a_silu_counts_four_and_nine,
	   parse(MAP "  - {name: f, kind: silu}\n  - {name: p, kind: position}\n"
		     "  - {name: s, kind: silu}\n"))
{
	const uint64_t elements = 12 * 5 * 3;

	cr_assert(has_shape(&graph.layers[3], 12, 5, 3));
	expect_flops(&graph.layers[1], 4 * elements, 0);
	expect_flops(&graph.layers[3], 4 * elements, (4 + 5) * elements);
	expect_bytes(&graph.layers[3], elements, elements);
	cr_expect_eq(graph.n_tensors, 1);
}

/* L = 5 x 3 positions of d = 12 / 3 channels in 2 heads. Forward has two products of L x L x d, 2 FLOPs each, and for
 * each head L x L scores: the scale 1 and the softmax 5. Backward has four such products, and 5 for each score. A mask
 * of dropout is a product in either. */
GRAPH_TEST(sequences, an_attention_counts_all_pairs,
	   parse(MAP "  - {name: a, kind: attention, heads: 2}\n"
		     "  - {name: p, kind: position, input: input}\n"
		     "  - {name: b, kind: attention, heads: 2, causal: true}\n"
		     "  - {name: c, kind: attention, heads: 2, dropout: 0.1, input: p}\n"))
{
	const uint64_t places = 5 * 3, pairs = places * places, channels = 12 / 3;
	const uint64_t product = 2 * pairs * channels, scores = 2 * pairs;

	cr_assert(has_shape(&graph.layers[1], 4, 5, 3));
	cr_assert(has_shape(&graph.layers[3], 4, 5, 3));
	expect_flops(&graph.layers[1], 2 * product + 6 * scores, 0);
	expect_flops(&graph.layers[3], 2 * product + 6 * scores, 4 * product + 5 * scores);
	expect_flops(&graph.layers[4], 2 * product + 7 * scores, 4 * product + 6 * scores);
	expect_bytes(&graph.layers[3], 3 * channels * places, channels * places);
	cr_expect_eq(graph.layers[1].kept_bytes, 4 * scores, "the probabilities");
	cr_expect_not(graph.layers[1].settings.attention.is_causal);
	cr_expect(graph.layers[3].settings.attention.is_causal);
	cr_expect_eq(graph.layers[1].n_tensors, 0);
}

/* 32 channels are 8 for each of 2 heads of queries, 1 of keys and 1 of values: all pairs count as if each head had its
 * own. The 24 channels of queries and keys are rotated in pairs of 4 products, a sum and a difference, 3 for each
 * value; backward once more, and their gradients back. */
GRAPH_TEST(sequences, heads_share_keys_and_values_and_are_rotated,
	   parse("name: m\ninput: {channels: 32, height: 5, width: 3}\nlayers:\n"
		 "  - {name: p, kind: position}\n"
		 "  - {name: a, kind: attention, heads: 2, kv_heads: 1}\n"
		 "  - {name: b, kind: attention, heads: 2, kv_heads: 1, rotary: 10000, input: p}\n"
		 "  - {name: c, kind: attention, heads: 2, kv_heads: 1, rotary: 0, input: p}\n"))
{
	const uint64_t places = 5 * 3, pairs = places * places, product = 2 * pairs * 2 * 8, scores = 2 * pairs;
	const uint64_t forward = 2 * product + 6 * scores, backward = 4 * product + 5 * scores,
		       rotation = 3 * 24 * places;

	for (unsigned l = 2; l <= 4; l++) {
		cr_assert(has_shape(&graph.layers[l], 2 * 8, 5, 3));
		expect_flops(&graph.layers[l], forward + (l == 3 ? rotation : 0),
			     backward + (l == 3 ? 2 * rotation : 0));
		expect_bytes(&graph.layers[l], 32 * places, 16 * places);
		cr_expect_eq(graph.layers[l].kept_bytes, 4 * scores);
	}
}

/* Forward has 5 FLOPs for each score of each position; backward has a difference and the weight. */
GRAPH_TEST(sequences, a_loss_counts_every_place,
	   parse(MAP "  - {name: p, kind: position}\n  - {name: loss, kind: softmax-loss}\n"))
{
	const uint64_t elements = 12 * 5 * 3;

	cr_assert(has_shape(&graph.layers[2], 12, 5, 3));
	expect_flops(&graph.layers[2], 5 * elements, 2 * elements);
}

/* ---- properties of samples ---- */

static void expect_samples(const char *text, uint64_t labels, uint32_t classes, uint32_t vocabulary)
{
	struct psd_graph graph = parse(text);

	cr_expect_eq(graph.labels, labels, "%s: %llu labels", text, (unsigned long long)graph.labels);
	cr_expect_eq(graph.classes, classes, "%s: %u classes", text, graph.classes);
	cr_expect_eq(graph.vocabulary, vocabulary, "%s: vocabulary %u", text, graph.vocabulary);
	psd_graph_release(&graph);
}

#define EMBEDDING "  - {name: e, kind: embedding, vocabulary: 7, outputs: 6}\n"
#define LOSS	  "  - {name: loss, kind: softmax-loss}\n"

Test(sequences, a_loss_has_a_label_for_each_of_its_positions)
{
	expect_samples(MAP "  - {name: f, kind: inner-product, outputs: 9}\n" LOSS, 1, 9, 0); /* an image */
	expect_samples(MAP "  - {name: c, kind: conv, outputs: 9, kernel: 2}\n" LOSS, 4 * 2, 9, 0);
	expect_samples(TOKENS EMBEDDING LOSS, 5 * 2, 6, 7);
	expect_samples(TOKENS EMBEDDING "  - {name: f, kind: inner-product, outputs: 4}\n" LOSS, 1, 4, 7);
}

Test(sequences, without_a_loss_there_are_no_labels)
{
	expect_samples(MAP "  - {name: g, kind: gelu}\n", 0, 0, 0);
	expect_samples(TOKENS EMBEDDING, 0, 0, 7);
}

TEST_ROW(sequences, the_last_of_several_losses_counts,
	 expect_samples(MAP "  - {name: c, kind: conv, outputs: 9, kernel: 2}\n  - {name: aside, kind: softmax-loss}\n"
			    "  - {name: d, kind: conv, input: input, outputs: 2, kernel: 1}\n" LOSS
			    "  - {name: g, kind: gelu, input: d}\n",
			5 * 3, 2, 0))

/* A token is a row of each table. */
Test(sequences, the_smallest_vocabulary_of_several_tables_counts)
{
	static const char smallest_first[] =
		TOKENS EMBEDDING "  - {name: f, kind: embedding, input: tokens, vocabulary: 8, outputs: 6}\n";
	static const char smallest_last[] =
		TOKENS EMBEDDING "  - {name: f, kind: embedding, input: tokens, vocabulary: 5, outputs: 6}\n";

	expect_samples(smallest_first, 0, 0, 7);
	expect_samples(smallest_last, 0, 0, 5);
}

/* ---- another layer's parameters ---- */

/* The table of 7 rows of 6 is the weight of a convolution of single positions with 7 outputs of 6 inputs. */
GRAPH_TEST(sequences, a_shared_table_counts_once,
	   parse(TOKENS EMBEDDING "  - {name: p, kind: position}\n"
				  "  - {name: head, kind: conv, outputs: 7, kernel: 1, bias: false, shares: e}\n"
				  "  - {name: n, kind: layer-norm}\n"
				  "  - {name: again, kind: layer-norm, shares: n}\n"))
{
	const struct psd_layer *head = &graph.layers[3], *norm = &graph.layers[4], *again = &graph.layers[5];
	const uint64_t places = 5 * 2;

	cr_assert_eq(graph.n_tensors, 4);
	expect_dims(&graph.tensors[0], "e.weight", 2, (const uint32_t[]){7, 6});
	expect_dims(&graph.tensors[1], "p.weight", 3, (const uint32_t[]){6, 5, 2});
	expect_dims(&graph.tensors[2], "n.weight", 1, (const uint32_t[]){7});
	expect_dims(&graph.tensors[3], "n.bias", 1, (const uint32_t[]){7});
	cr_expect_eq(graph.parameters, 7 * 6 + 6 * places + 2 * 7);
	cr_expect(head->n_tensors == 0 && head->n_shared == 1 && head->first_tensor == 0);
	cr_expect(norm->n_tensors == 2 && norm->n_shared == 0 && norm->first_tensor == 2);
	cr_expect(again->n_tensors == 0 && again->n_shared == 2 && again->first_tensor == 2);
	/* a layer works with what it shares as with its own */
	cr_expect_eq(head->parameters, 7 * 6);
	cr_expect(head->is_trained);
	expect_flops(head, 2 * 7 * 6 * places, 2 * 2 * 7 * 6 * places);
	expect_bytes(head, 6 * places + 7 * 6, 7 * places);
}

/* Else the owner's gradient would be sent as factors, and the other's part of it would be lost. */
GRAPH_TEST(sequences, a_shared_matrix_has_no_factors,
	   parse(MAP "  - {name: a, kind: inner-product, outputs: 4}\n"
		     "  - {name: b, kind: inner-product, outputs: 4}\n"
		     "  - {name: c, kind: inner-product, outputs: 4, shares: b}\n"))
{
	cr_assert_eq(graph.n_tensors, 4);
	cr_expect_eq(graph.tensors[0].rows, 12 * 5 * 3);
	cr_expect_eq(graph.tensors[0].columns, 4);
	cr_expect(graph.tensors[2].rows == 0 && graph.tensors[2].columns == 0);
	cr_expect_eq(graph.parameters, 12 * 5 * 3 * 4 + 4 + 4 * 4 + 4);
}

/* A layer that has only another's parameters is trained, too: backward has to reach and pass it. */
GRAPH_TEST(sequences, a_layer_with_shared_parameters_is_trained,
	   parse(TOKENS EMBEDDING
		 "  - {name: f, kind: embedding, input: tokens, vocabulary: 7, outputs: 6, shares: e}\n"
		 "  - {name: g, kind: gelu}\n"))
{
	const uint64_t elements = 6 * 5 * 2;

	cr_expect(graph.layers[2].is_trained);
	expect_flops(&graph.layers[2], 0, elements);
	expect_flops(&graph.layers[3], 5 * elements, 9 * elements);
	expect_bytes(&graph.layers[2], 5 * 2 + elements, elements);
	cr_expect_eq(graph.vocabulary, 7);
}

GRAPH_TEST(sequences, several_layers_share_with_one,
	   parse(MAP "  - {name: a, kind: position}\n  - {name: b, kind: position, shares: a}\n"
		     "  - {name: c, kind: position, shares: a}\n"))
{
	cr_expect_eq(graph.n_tensors, 1);
	cr_expect_eq(graph.parameters, 12 * 5 * 3);
	cr_expect(graph.layers[2].n_shared == 1 && graph.layers[3].n_shared == 1);
}

/* A layer without a bias shares the weight of one with a bias, not the other way round. */
GRAPH_TEST(sequences, a_layer_may_leave_out_the_bias_of_the_other,
	   parse(MAP "  - {name: a, kind: layer-norm}\n  - {name: b, kind: layer-norm, bias: false, shares: a}\n"))
{
	cr_expect_eq(graph.n_tensors, 2);
	cr_expect_eq(graph.parameters, 12 + 12);
	cr_expect_eq(graph.layers[2].n_shared, 1);
}

#define SHARES "m.yaml:5:39: layer 'b' shares the parameters of "

Test(sequences, layers_that_cannot_share_are_refused)
{
	refuses(MAP "  - {name: a, kind: position}\n  - {name: b, kind: position, shares: b}\n",
		SHARES "'b', must be a layer above it");
	refuses(MAP "  - {name: a, kind: position}\n  - {name: b, kind: position, shares: c}\n"
		    "  - {name: c, kind: position}\n",
		SHARES "'c', must be a layer above it");
	refuses(MAP "  - {name: a, kind: position}\n  - {name: b, kind: position, shares: d}\n",
		SHARES "'d', must be a layer above it");
	refuses(MAP "  - {name: a, kind: gelu}\n  - {name: b, kind: position, shares: a}\n",
		SHARES "'a', which has none of its own");
	refuses(MAP "  - {name: a, kind: gelu}\n  - {name: b, kind: position, shares: input}\n",
		SHARES "'input', which has none of its own");
	refuses(MAP "  - {name: a, kind: position}\n  - {name: b, kind: position, shares: a}\n"
		    "  - {name: c, kind: position, shares: b}\n",
		"m.yaml:6:39: layer 'c' shares the parameters of 'b', which has none of its own");
	refuses(MAP "  - {name: a, kind: position}\n  - {name: b, kind: position, shares: [a]}\n",
		"m.yaml:5:39: 'shares' is a list, must be a text");
}

/* The layer has its own parameters until it is known whether it may share others. */
#define UNLIKE(own, others)                                                                                            \
	"m.yaml:5:5: layer 'b' has the parameters " own ", must have those of 'a' to share them: " others

/* Parameters of other sizes, more or fewer of them, of another meaning, without any, and with states, which are not
 * shared. */
Test(sequences, parameters_that_are_unlike_are_not_shared)
{
	refuses(MAP "  - {name: a, kind: conv, outputs: 12, kernel: 1, bias: false}\n"
		    "  - {name: b, kind: conv, outputs: 11, kernel: 1, bias: false, shares: a}\n",
		UNLIKE("weight 11x12x1x1", "weight 12x12x1x1"));
	refuses(MAP "  - {name: a, kind: conv, outputs: 12, kernel: 1, bias: false}\n"
		    "  - {name: b, kind: conv, outputs: 12, kernel: [1, 2], bias: false, shares: a}\n",
		UNLIKE("weight 12x12x1x2", "weight 12x12x1x1"));
	refuses(MAP "  - {name: a, kind: conv, outputs: 12, kernel: 1, bias: false}\n"
		    "  - {name: b, kind: conv, outputs: 12, kernel: 1, shares: a}\n",
		UNLIKE("weight 12x12x1x1, bias 12", "weight 12x12x1x1"));
	refuses(MAP "  - {name: a, kind: layer-norm, scale: false}\n"
		    "  - {name: b, kind: layer-norm, bias: false, shares: a}\n",
		UNLIKE("weight 12", "bias 12"));
	/* a table turned around */
	refuses(TOKENS "  - {name: a, kind: embedding, vocabulary: 7, outputs: 6}\n"
		       "  - {name: b, kind: conv, outputs: 6, kernel: 1, bias: false, shares: a}\n",
		UNLIKE("weight 6x6x1x1", "weight 7x6"));
	refuses(MAP "  - {name: a, kind: layer-norm}\n  - {name: b, kind: gelu, shares: a}\n",
		"m.yaml:5:5: layer 'b' (gelu) cannot share parameters");
	refuses(MAP "  - {name: a, kind: layer-norm}\n  - {name: b, kind: batch-norm, shares: a}\n",
		"m.yaml:5:5: layer 'b' (batch-norm) cannot share parameters");
}

/* ---- settings of a layer ---- */

static uint64_t hash_of(const char *text)
{
	struct psd_graph graph = parse(text);
	uint64_t hash = 1;

	for (unsigned l = 0; l < graph.n_layers; l++)
		hash = psd_layer_hash(&graph.layers[l], hash);
	psd_graph_release(&graph);
	return hash;
}

/* Each says something else that shows in no size of a tensor. */
Test(sequences, a_hash_covers_all_keys_of_layers)
{
	static const char *const texts[] = {
		MAP "  - {name: b, kind: attention, heads: 2}\n",
		MAP "  - {name: b, kind: attention, heads: 4}\n",
		MAP "  - {name: b, kind: attention, heads: 2, causal: true}\n",
		MAP "  - {name: b, kind: attention, heads: 2, kv_heads: 1}\n",
		MAP "  - {name: b, kind: attention, heads: 2, dropout: 0.1}\n",
		MAP "  - {name: b, kind: attention, heads: 2, rotary: 10000}\n",
		MAP "  - {name: b, kind: attention, heads: 2, rotary: 500000}\n",
		MAP "  - {name: b, kind: gelu}\n",
		MAP "  - {name: b, kind: gelu, approximate: tanh}\n",
		MAP "  - {name: b, kind: silu}\n",
		MAP "  - {name: b, kind: prefix}\n",
		MAP "  - {name: b, kind: prefix, places: 2}\n",
		MAP "  - {name: b, kind: rms-norm}\n",
		MAP "  - {name: b, kind: rms-norm, epsilon: 0.5}\n",
		MAP "  - {name: b, kind: relu}\n",
		MAP "  - {name: b, kind: relu, slope: 0.5}\n",
		MAP "  - {name: b, kind: dropout, ratio: 0.5}\n",
		MAP "  - {name: b, kind: dropout, ratio: 0.25}\n",
		MAP "  - {name: b, kind: pool, method: max, kernel: 3, pad: 1}\n",
		MAP "  - {name: b, kind: pool, method: average, kernel: 3, pad: 1}\n",
		MAP "  - {name: b, kind: pool, method: max, kernel: [3, 1], pad: [1, 0]}\n",
		MAP "  - {name: b, kind: relu}\n  - {name: c, kind: gelu}\n",
		MAP "  - {name: b, kind: relu}\n  - {name: c, kind: gelu, input: input}\n",
	};
	enum { N = sizeof(texts) / sizeof(texts[0]) };

	for (unsigned i = 0; i < N; i++)
		for (unsigned j = 0; j < N; j++)
			cr_expect_eq(hash_of(texts[i]) == hash_of(texts[j]), i == j, "%u, %u", i, j);
}

/* ---- complaints ---- */

Test(sequences, keys_of_sequences_are_checked)
{
	refuses(MAP "  - {name: b, kind: attention}\n", "m.yaml:4:5: 'b' needs 'heads'");
	refuses(MAP "  - {name: b, kind: attention, heads: 0}\n",
		"m.yaml:4:39: 'heads' is '0', must be a whole number from 1 to 16777216");
	refuses(MAP "  - {name: b, kind: attention, heads: 2, masked: true}\n",
		"m.yaml:4:42: unknown key 'masked' in 'b', known are name, kind, input, inputs, shares, heads, "
		"kv_heads, causal, rotary, dropout");
	refuses(MAP "  - {name: b, kind: attention, heads: 2, causal: 2}\n",
		"m.yaml:4:50: 'causal' is '2', must be true or false");
	refuses(MAP "  - {name: b, kind: position, outputs: 2}\n",
		"m.yaml:4:31: unknown key 'outputs' in 'b', known are name, kind, input, inputs, shares");
	refuses(MAP "  - {name: b, kind: prefix, places: 0}\n",
		"m.yaml:4:37: 'places' is '0', must be a whole number from 1 to 65536");
	refuses(MAP "  - {name: b, kind: prefix, places: 65522}\n",
		"m.yaml:4:5: layer 'b' has 65537 positions, must be 1 to 65536");
	refuses(MAP "  - {name: b, kind: prefix, inputs: [input, input]}\n",
		"m.yaml:4:5: layer 'b' (prefix) has 2 inputs, must be 1");
	refuses(MAP "  - {name: b, kind: gelu, slope: 2}\n",
		"m.yaml:4:27: unknown key 'slope' in 'b', known are name, kind, input, inputs, shares, approximate");
	refuses(MAP "  - {name: b, kind: gelu, approximate: erf}\n",
		"m.yaml:4:40: 'approximate' is 'erf', must be one of: none, tanh");
	refuses(MAP "  - {name: b, kind: silu, beta: 1}\n",
		"m.yaml:4:27: unknown key 'beta' in 'b', known are name, kind, input, inputs, shares");
	refuses(MAP "  - {name: b, kind: layer-norm, shift: true}\n",
		"m.yaml:4:33: unknown key 'shift' in 'b', known are name, kind, input, inputs, shares, scale, bias, "
		"epsilon");
	refuses(MAP "  - {name: b, kind: layer-norm, epsilon: 0}\n",
		"m.yaml:4:42: 'epsilon' is '0', must be a number from 1e-12 to 1");
	refuses(MAP "  - {name: b, kind: rms-norm, bias: true}\n",
		"m.yaml:4:31: unknown key 'bias' in 'b', known are name, kind, input, inputs, shares, scale, epsilon");
	refuses(MAP "  - {name: b, kind: rms-norm, epsilon: 2}\n",
		"m.yaml:4:40: 'epsilon' is '2', must be a number from 1e-12 to 1");
	refuses(TOKENS "  - {name: b, kind: embedding, outputs: 2}\n", "m.yaml:4:5: 'b' needs 'vocabulary'");
	refuses(TOKENS "  - {name: b, kind: embedding, vocabulary: 2}\n", "m.yaml:4:5: 'b' needs 'outputs'");
	refuses(TOKENS "  - {name: b, kind: embedding, vocabulary: 0, outputs: 2}\n",
		"m.yaml:4:44: 'vocabulary' is '0', must be a whole number from 1 to 16777216");
	/* from 2^24 + 1 on whole numbers are no floats any more */
	refuses(TOKENS "  - {name: b, kind: embedding, vocabulary: 16777217, outputs: 2}\n",
		"m.yaml:4:44: 'vocabulary' is '16777217', must be a whole number from 1 to 16777216");
	refuses(TOKENS "  - {name: b, kind: embedding, vocabulary: 2, outputs: 16777217}\n",
		"m.yaml:4:56: 'outputs' is '16777217', must be a whole number from 1 to 16777216");
}

#define ATTENTION_OF(channels)                                                                                         \
	MAP "  - {name: c, kind: conv, outputs: " channels ", kernel: 1}\n  - {name: b, kind: attention, "

Test(sequences, heads_divide_queries_keys_and_values)
{
	refuses(MAP "  - {name: b, kind: attention, heads: 3}\n",
		"m.yaml:4:5: layer 'b' has an input of 12 channels, must be a multiple of 9: 3 heads of queries, 3 of "
		"keys, 3 of values");
	refuses(ATTENTION_OF("10") "heads: 1}\n", "m.yaml:5:5: layer 'b' has an input of 10 channels, must be a "
						  "multiple of 3: 1 heads of queries, 1 of keys, 1 of values");
	refuses(ATTENTION_OF("14") "heads: 4, kv_heads: 2}\n",
		"m.yaml:5:5: layer 'b' has an input of 14 channels, must be a multiple of 8: 4 heads of queries, 2 of "
		"keys, 2 of values");
	/* 3 times 2^24 heads is more than a channel each */
	refuses(MAP "  - {name: b, kind: attention, heads: 16777216}\n",
		"m.yaml:4:5: layer 'b' has an input of 12 channels, must be a multiple of 50331648: 16777216 heads of "
		"queries, 16777216 of keys, 16777216 of values");
}

Test(sequences, heads_of_keys_divide_those_of_queries)
{
	refuses(MAP "  - {name: b, kind: attention, heads: 4, kv_heads: 3}\n",
		"m.yaml:4:5: layer 'b' has 4 heads, must be a multiple of its 3 kv_heads");
	refuses(MAP "  - {name: b, kind: attention, heads: 2, kv_heads: 4}\n",
		"m.yaml:4:5: layer 'b' has 2 heads, must be a multiple of its 4 kv_heads");
	refuses(MAP "  - {name: b, kind: attention, heads: 2, kv_heads: 0}\n",
		"m.yaml:4:52: 'kv_heads' is '0', must be a whole number from 1 to 16777216");
}

Test(sequences, only_pairs_of_channels_are_rotated)
{
	refuses(ATTENTION_OF("15") "heads: 1, rotary: 10000}\n",
		"m.yaml:5:5: layer 'b' has 5 channels in a head, must be even where 'rotary' is 10000");
	refuses(MAP "  - {name: b, kind: attention, heads: 2, rotary: 0.5}\n",
		"m.yaml:4:5: layer 'b': 'rotary' is 0.5, must be 0, or 1 or more");
	refuses(MAP "  - {name: b, kind: attention, heads: 2, rotary: -1}\n",
		"m.yaml:4:50: 'rotary' is '-1', must be a number from 0 to 1000000000000");
}

Test(sequences, tokens_are_an_input_of_one_channel)
{
	refuses(MAP "  - {name: b, kind: embedding, vocabulary: 7, outputs: 6}\n",
		"m.yaml:4:5: layer 'b' has an input of 12 channels, must be 1");
	refuses(TOKENS "  - {name: a, kind: relu}\n  - {name: b, kind: embedding, vocabulary: 7, outputs: 6}\n",
		"m.yaml:5:5: layer 'b' looks up values of layer 'a', must look up the network's input");
	refuses(TOKENS "  - {name: b, kind: embedding, inputs: [tokens, tokens], vocabulary: 7, outputs: 6}\n",
		"m.yaml:4:5: layer 'b' (embedding) has 2 inputs, must be 1");
	refuses(MAP "  - {name: b, kind: attention, heads: 2, inputs: [input, input, input]}\n",
		"m.yaml:4:5: layer 'b' (attention) has 3 inputs, must be 1");
}

#define TOO_LARGE "m.yaml:4:5: layer 'b' makes the graph too large: its FLOPs or bytes must stay below 2^60"

/* With 2^29 positions of one channel and one head, 2 products of 2 x 2^58 are 2^60 already. With 2^32 positions the
 * pairs alone are 2^64, which wraps to 0; half as many positions make 2^62. With 2^27 positions a product is 2 x 2^54
 * for each channel: 2^64 for 512 channels, and two products are 2^64 for 256. */
Test(sequences, an_attention_of_too_many_positions_is_refused)
{
	refuses("name: m\ninput: {channels: 3, height: 65536, width: 8192}\nlayers:\n"
		"  - {name: b, kind: attention, heads: 1}\n",
		TOO_LARGE);
	refuses("name: m\ninput: {channels: 3, height: 65536, width: 32768}\nlayers:\n"
		"  - {name: b, kind: attention, heads: 1}\n",
		TOO_LARGE);
	refuses("name: m\ninput: {channels: 3, height: 65536, width: 65536}\nlayers:\n"
		"  - {name: b, kind: attention, heads: 1}\n",
		TOO_LARGE);
	refuses("name: m\ninput: {channels: 1536, height: 65536, width: 2048}\nlayers:\n"
		"  - {name: b, kind: attention, heads: 1}\n",
		TOO_LARGE);
	refuses("name: m\ninput: {channels: 768, height: 65536, width: 2048}\nlayers:\n"
		"  - {name: b, kind: attention, heads: 1}\n",
		TOO_LARGE);
}

/* 2^27 positions: 4 x 2^54 + 6 x 2^54. */
GRAPH_TEST(sequences, an_attention_of_many_positions_is_counted,
	   parse("name: m\ninput: {channels: 3, height: 65536, width: 2048}\nlayers:\n"
		 "  - {name: b, kind: attention, heads: 1}\n"))
{
	expect_flops(&graph.layers[1], (UINT64_C(4) << 54) + (UINT64_C(6) << 54), 0);
}

/* ---- the transformers we ship ---- */

/* Forward FLOPs of a block over L positions of d channels. Each position is multiplied by weights of 3 d d, d d, 4 d d
 * and 4 d d, and has biases for 9 d outputs. Two layer norms of 8 and two sums of 1 count for each of d channels, a
 * gelu of 5 for each of 4 d. The attention has two products of 2 L L d, and 6 for each of L L scores of each head. */
static uint64_t block_flops(uint64_t places, uint64_t channels, uint64_t heads)
{
	const uint64_t weights = (3 + 1 + 4 + 4) * channels * channels;
	const uint64_t others = (9 + 2 * 8 + 2 + 5 * 4) * channels;

	return places * (2 * weights + others) + 4 * places * places * channels + 6 * heads * places * places;
}

/* Weights as above, 9 d biases, two layer norms of 2 d. */
static uint64_t block_parameters(uint64_t channels)
{
	return 12 * channels * channels + 9 * channels + 4 * channels;
}

static struct psd_graph load(const char *path)
{
	struct psd_graph graph;
	struct psd_error err = {0};

	cr_assert_eq(psd_graph_load(&graph, path, &err), PSD_OK, "%s", err.text);
	return graph;
}

static void expect_flops_of(const struct psd_graph *graph, uint64_t forward)
{
	cr_expect_eq(graph->forward_flops, forward, "%s: %llu, must be %llu", graph->name,
		     (unsigned long long)graph->forward_flops, (unsigned long long)forward);
}

/* Radford et al. 2019; 124,439,808 parameters in 148 tensors are those of OpenAI's checkpoint: tokens, positions, 12
 * for each block, the last norm's 2. The head is the table once more. */
GRAPH_TEST(sequences, gpt2_has_its_published_parameters, load("scenarios/models/gpt2.yaml"))
{
	const uint64_t vocabulary = 50257, places = 1024, channels = 768;
	const struct psd_layer *head = &graph.layers[graph.n_layers - 2];

	cr_expect_eq(graph.parameters, UINT64_C(124439808));
	cr_expect_eq(graph.parameters,
		     (vocabulary + places) * channels + 12 * block_parameters(channels) + 2 * channels);
	cr_expect_eq(graph.n_tensors, 2 + 12 * 12 + 2);
	cr_expect_eq(graph.n_tensors, 148);
	cr_expect(head->n_shared == 1 && head->first_tensor == 0);
	cr_expect(has_shape(head, (uint32_t)vocabulary, (uint32_t)places, 1));
	cr_expect(graph.labels == places && graph.classes == vocabulary && graph.vocabulary == vocabulary);
	/* the position 1 for each value, the last norm 8, the head's products, the loss 5 for each score */
	expect_flops_of(&graph,
			12 * block_flops(places, channels, 12) +
				places * (channels + 8 * channels + 2 * vocabulary * channels + 5 * vocabulary));
}

GRAPH_TEST(sequences, gpt_small_has_four_blocks, load("scenarios/models/gpt-small.yaml"))
{
	const uint64_t vocabulary = 256, places = 64, channels = 128;

	cr_expect_eq(graph.parameters,
		     (2 * vocabulary + places) * channels + 4 * block_parameters(channels) + 2 * channels);
	cr_expect_eq(graph.parameters, 867072); /* as its file says */
	cr_expect_eq(graph.n_tensors, 2 + 4 * 12 + 2 + 1);
	cr_expect(graph.labels == places && graph.classes == vocabulary && graph.vocabulary == vocabulary);
	for (unsigned l = 0; l < graph.n_layers; l++)
		cr_expect(graph.layers[l].kind != &psd_layer_attention || graph.layers[l].settings.attention.is_causal);
	expect_flops_of(&graph,
			4 * block_flops(places, channels, 4) +
				places * (channels + 8 * channels + 2 * vocabulary * channels + 5 * vocabulary));
}

/* torchvision's vit_b_16 has 86,567,656 parameters, of them the class token and its position, 768 each. */
GRAPH_TEST(sequences, vit_b16_has_torchvisions_parameters_without_the_class_token,
	   load("scenarios/models/vit-b16.yaml"))
{
	const uint64_t places = 14 * 14, channels = 768, patch = 3 * 16 * 16, classes = 1000;

	cr_expect_eq(graph.parameters, 86567656 - 2 * channels);
	cr_expect_eq(graph.parameters, patch * channels + channels + places * channels +
					       12 * block_parameters(channels) + 2 * channels + channels * classes +
					       classes);
	cr_expect_eq(graph.n_tensors, 2 + 1 + 12 * 12 + 2 + 2);
	cr_expect(graph.labels == 1 && graph.classes == classes && graph.vocabulary == 0);
	/* patches with a bias; the position 1, the last norm 8 and the mean 1 for each value; the head with a bias */
	expect_flops_of(&graph, places * (2 * patch * channels + channels) + 12 * block_flops(places, channels, 12) +
					places * (channels + 8 * channels + channels) + 2 * channels * classes +
					classes + 5 * classes);
}

struct llama {
	const char *path;
	uint64_t places, channels, kv_channels, heads, hidden, blocks, parameters;
};

/* Forward FLOPs of a block over L positions of d channels, k of keys and as many of values, and h hidden ones. Each
 * position is multiplied by weights of d (d + 2 k), d d and 3 d h. Two norms of 4 and two sums of 1 count for each of d
 * channels; rotated queries and keys, 3 for each of d + k channels; a silu of 4 and a product for each of h. The
 * attention is GPT-2's. */
static uint64_t llama_block_flops(const struct llama *of)
{
	const uint64_t d = of->channels, k = of->kv_channels, h = of->hidden, places = of->places;
	const uint64_t weights = d * (d + 2 * k) + d * d + 3 * d * h;
	const uint64_t others = (2 * 4 + 2) * d + 3 * (d + k) + (4 + 1) * h;

	return places * (2 * weights + others) + 4 * places * places * d + 6 * of->heads * places * places;
}

/* Tokens and head with a table each, a last norm; of a block its weights and two norms. */
static void check_llama(const struct llama *of)
{
	const uint64_t d = of->channels, vocabulary = 32000;
	const uint64_t block = 2 * d * d + 2 * d * of->kv_channels + 3 * d * of->hidden + 2 * d;
	struct psd_graph graph = load(of->path);
	const struct psd_layer *attention = &graph.layers[4];

	cr_expect_eq(graph.parameters, of->parameters, "%s", of->path);
	cr_expect_eq(graph.parameters, 2 * vocabulary * d + of->blocks * block + d, "%s", of->path);
	cr_expect_eq(graph.n_tensors, 2 + 7 * of->blocks + 1);
	cr_expect(graph.labels == of->places && graph.classes == vocabulary && graph.vocabulary == vocabulary);
	cr_expect_eq(attention->kind, &psd_layer_attention);
	cr_expect_eq(attention->settings.attention.rotary_base, 10000);
	cr_expect(attention->settings.attention.is_causal);
	expect_flops_of(&graph, of->blocks * llama_block_flops(of) +
					of->places * (4 * d + 2 * vocabulary * d + 5 * vocabulary));
	psd_graph_release(&graph);
}

/* As transformers counts those of TinyLlama/TinyLlama-1.1B-Chat-v1.0 and of meta-llama/Llama-2-7b-hf. */
Test(sequences, llamas_have_their_published_parameters)
{
	check_llama(&(struct llama){"scenarios/models/tinyllama.yaml", 2048, 2048, 256, 32, 5632, 22, 1100048384});
	check_llama(&(struct llama){"scenarios/models/llama2-7b.yaml", 4096, 4096, 4096, 32, 11008, 32,
				    UINT64_C(6738415616)});
}

/* torchvision's vit_b_16 to the last parameter: vit-b16.yaml with a prefix, one position more, and a head of its token.
 * */
GRAPH_TEST(sequences, a_class_token_makes_vit_b16_torchvisions,
	   parse("name: m\ninput: {channels: 3, height: 224, width: 224}\nlayers:\n"
		 "  - {name: patches, kind: conv, outputs: 768, kernel: 16, stride: 16}\n"
		 "  - {name: token, kind: prefix}\n  - {name: place, kind: position}\n"
		 "  - {name: norm, kind: layer-norm}\n"
		 "  - {name: places, kind: permute, channels: 2, rows: 1, columns: 3}\n"
		 "  - {name: first, kind: slice, channels: 1}\n"
		 "  - {name: head, kind: inner-product, outputs: 1000}\n" LOSS))
{
	cr_assert(has_shape(&graph.layers[3], 768, 197, 1));
	cr_assert(has_shape(&graph.layers[6], 1, 768, 1));
	cr_expect_eq(graph.parameters + 12 * block_parameters(768), 86567656);
}
