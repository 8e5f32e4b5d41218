/* The table of matrix.h for the partial broadcast of factors. */
#include "tests/real/matrix_keys.h"

#define PEERS(n) ", peers: " #n STEPS

static const struct matrix_layout partial[] = {
	{"sync: sfb" PEERS(1), 3, 1},
	{"sync: sfb" PEERS(2), 4, 1},
	{"sync: sfb, barrier: layer, priority: forward" PEERS(1), 4, 2},
	{"sync: sfb, servers: 2" PEERS(2), 4, 1},
	{"sync: sfb, pair: 512B, slice: 1KiB, unit: tensor" PEERS(1), 4, 1},
	{"sync: sfb" PEERS(3), 8, 2},
	{"sync: hybrid" PEERS(1), 4, 2}, /* takes factors for the larger matrix */
	{0},
};

#define ROW_PARTIAL(name, claim, ...) MATRIX_ROW(run_partial, name, claim, .layouts = partial, __VA_ARGS__)

MATRIX_ROW(run_partial, with_all_peers_it_is_a_broadcast_bit_for_bit, matrix_has_same_bits,
	   .subject = &matrix_maskless_shared,
	   MATRIX_ON({"sync: sfb", 2, 1}, {"sync: sfb, barrier: layer", 3, 1}, {"sync: sfb, wire: bf16", 4, 2},
		     {"sync: hybrid", 4, 1}),
	   .keys = {PEERS(3), PEERS(7)}, .other.keys = "", .learns = {FALLING(SGD, 0.02)})
MATRIX_ROW(run_partial, a_run_repeats_exactly, matrix_repeats, .subject = &matrix_maskless_shared,
	   MATRIX_ON({"sync: sfb" PEERS(1), 3, 1}), .learns = {FALLING(SGD, 0.02)})
/* Networks of one matrix, with periods that the turns of peers do not divide. */
MATRIX_ROW(run_partial, it_is_the_published_algorithm, matrix_follows_the_algorithm, .subject = &matrix_softmax,
	   MATRIX_ON({"sync: sfb" PEERS(1), 3, 1}, {"sync: sfb" PEERS(1), 4, 1}, {"sync: sfb" PEERS(2), 4, 2},
		     {"sync: sfb, wire: fp32, barrier: layer, peers: 2, local_sgd: {steps: 1}", 4, 1}),
	   .learns = {FIXED(SGD, 0.05)}, .way_ratio = SAME_WAY_RATIO)
ROW_PARTIAL(all_end_with_the_same_bits, matrix_is_same_on_all, .subject = &matrix_maskless, .iterations = 10,
	    .learns = {FIXED(SGD, 0.05), FIXED(SGD, 0.05) ANY_ORDER})
MATRIX_ROW(run_partial, rounded_factors_end_with_the_same_bits, matrix_is_same_on_all, .subject = &matrix_maskless,
	   MATRIX_ON({"sync: sfb, wire: bf16" PEERS(1), 4, 1}, {"sync: sfb, accumulate: 2" PEERS(2), 4, 1}),
	   .iterations = 10, .learns = {FIXED(SGD, 0.05)})
/* Saved before iterations 3 and 6, where 2 and 4 were asked for. */
#define PEERS_OF_3(n) ", peers: " #n ", local_sgd: {steps: 3}"
MATRIX_ROW(run_partial, a_resumed_run_ends_as_an_uncut_one, matrix_resumes,
	   MATRIX_ON({"sync: sfb" PEERS_OF_3(1), 4, 1}, {"sync: sfb, wire: bf16" PEERS_OF_3(2), 4, 2},
		     {"sync: hybrid, servers: 2, barrier: layer" PEERS_OF_3(1), 3, 1}),
	   .is_in_turn = true, .learns = {GOING_ON_SGD, GOING_ON_ADAMW})
/* In 3 iterations each pair of 4 workers meets equally often, on its node or not. */
MATRIX_ROW(run_partial, a_prediction_counts_the_same_bytes, matrix_sends_as_predicted, .subject = &matrix_maskless,
	   MATRIX_ON({"sync: sfb" PEERS_OF_3(1), 4, 2}, {"sync: hybrid" PEERS_OF_3(2), 4, 2}),
	   .cluster = "nodes: 2, workers_per_node: 2}")
/* 8 samples of 128 + 24 and of 24 + 10 values to each peer. conv, 224, goes by a parameter server: all but a part of 56
 * out, and a part to each of three. Every 4th time 3096 and 250 elements do, in parts of 774 and of 63 at most. Two
 * periods are measured. */
#define BYTES(n) (4 * ((n)*8 * (128 + 24 + 24 + 10) + 168 + 3 * 56) + (2322 + 3 * 774 + 187 + 3 * 63))
#define ROW_BYTES(n)                                                                                                   \
	MATRIX_ROW(run_partial, n##_peers_get_the_bytes_of_the_formula, matrix_sends, .subject = &matrix_maskless,     \
		   MATRIX_ON({"sync: sfb" PEERS(n), 4, 1}), .iterations = 14, .learns = {FIXED(SGD, 0.05)},            \
		   .bytes = BYTES(n), .fewer_bytes = 1)
ROW_BYTES(1)
ROW_BYTES(2)
/* All parameters are of matrices that go by factors. */
static const struct matrix_subject perceptron = {
	.graph = "perceptron.yaml",
	.text = "name: perceptron\ninput: {channels: 192}\nlayers:\n"
		"  - {name: ip1, kind: inner-product, outputs: 24}\n  - {name: sigmoid, kind: sigmoid}\n"
		"  - {name: ip2, kind: inner-product, outputs: 10}\n  - {name: loss, kind: softmax-loss}\n",
	.batch = 16,
	.seed = 1,
	.iterations = 60,
	.train = ", data: {kind: synthetic, training_samples: 1280, test_samples: 640, noise: 2}",
	.learn = ", optimiser: {momentum: 0.9}, learning_rate: {policy: fixed, base: 0.02}",
	.is_tested = true,
};
/* 2 points are 12 of 640 samples. The last entry averages at the end alone. */
MATRIX_ROW(run_partial, accuracy_is_within_two_points_of_a_broadcast, matrix_is_accurate, .subject = &perceptron,
	   MATRIX_ON({"sync: sfb", 4, 1}), .keys = {PEERS(1), PEERS(2), ", peers: 1, local_sgd: {steps: 60}"},
	   .other.keys = "", .lost_ratio = 0.02, .n_seeds = 3, .first_seed = 1)
