/* The table of matrix.h for treatments of gradients between hosts: whole, in 2 bytes, and with a part that is held back
 * at first: sparse, low-rank and compressed. Claims about one treatment alone are in test_run_encoded.c and
 * test_run_treatments.c. */
#include "tests/real/matrix_keys.h"

#define WIRE_16 ", wire: fp16", ", wire: bf16"

#define ON_TWO(identifier, name)  {"sync: " name, 2, 1},
#define ON_FOUR(identifier, name) {"sync: " name, 4, 1},
static const struct matrix_layout all_reduces_of_two[] = {PSD_ALL_REDUCES(ON_TWO){0}},
				  all_reduces_of_four[] = {PSD_ALL_REDUCES(ON_FOUR){0}};
static const struct matrix_layout alone[] = {{"sync: ring", 1, 1}, {0}};

/* ---- without loss ---- */

/* A network without decisions. Treatments of gradients do not show in the parameters, but for the order of
 * sums: a sum of 16 samples is rounded by at most 16 2^-24 = 1e-6 of its parts' norms, and that changes later gradients
 * no more where nothing is decided. */
static const struct matrix_subject smooth = {
	.graph = "../../tests/data/smooth.yaml",
	.samples = 16,
	.seed = 1,
	.iterations = 20,
	.learn = ", optimiser: {momentum: 0.9, weight_decay: 0.004}, learning_rate: {policy: fixed, base: 0.05}",
};

#define ROW_LOSSLESS(name, ...)                                                                                        \
	MATRIX_ROW(run_lossless, name, matrix_is_near, .subject = &smooth, .other.layout = alone,                      \
		   .is_by_tensor = true, .norm_ratio = 1e-5, .least_way_ratio = 0.06, __VA_ARGS__)
ROW_LOSSLESS(servers_train_as_one_worker,
	     MATRIX_ON({"sync: ps", 0, 1}, {"sync: ps, schedule: sequential", 0, 1},
		       {"sync: ps, pair: 512B, slice: 1KiB, barrier: layer, priority: forward", 0, 1}))
ROW_LOSSLESS(factors_train_as_one_worker, MATRIX_ON({"sync: sfb", 0, 1}, {"sync: sfb, barrier: layer", 0, 1},
						    {"sync: hybrid", 0, 1}, {"sync: hybrid, rule: seconds", 0, 1}))
ROW_LOSSLESS(roots_train_as_one_worker, MATRIX_ON({"sync: adam", 0, 1}, {"sync: adam, pair: 512B, slice: 1KiB", 0, 1},
						  {"sync: sacp", 0, 1}, {"sync: auto", 0, 1}))
/* Also all six tensors in one exchange, and as many as make 1 KiB. */
#define ROW_ALL_REDUCE(identifier, name)                                                                               \
	ROW_LOSSLESS(identifier##_trains_as_one_worker,                                                                \
		     MATRIX_ON({"sync: " name, 0, 1}, {"sync: " name ", fuse: 1MB", 0, 1},                             \
			       {"sync: " name ", fuse: 1KiB", 0, 1}))
PSD_ALL_REDUCES(ROW_ALL_REDUCE)
#define GATHERED .subject = &smooth, .keys = {", fuse: 1KiB", ", fuse: 1MB", ", fuse: auto"}, .other.keys = ""
/* The sum of two has one order. */
MATRIX_ROW(run_lossless, gathering_changes_no_bit_of_two_workers, matrix_has_same_bits, .layouts = all_reduces_of_two,
	   GATHERED)
/* With more of them a ring, a tree or a torus sums an element in the order that its position in the exchange gives it,
 * and that changes with the other tensors in there. These two sum pairs, pairs of pairs and so on, wherever it is. */
MATRIX_ROW(run_lossless, gathering_changes_no_bit_where_pairs_are_summed, matrix_has_same_bits,
	   MATRIX_ON({"sync: recursive-doubling", 4, 1}, {"sync: recursive-doubling", 8, 1},
		     {"sync: halving-doubling", 4, 1}, {"sync: halving-doubling", 8, 1}),
	   GATHERED)

/* ---- sparse ---- */

/* The same exchanges, cut in the same parts, so that each sum has the same order; `fuse: 1MB`: all ten tensors, more
 * than a message has pieces. */
MATRIX_ROW(run_sparse, at_sparsity_0_it_is_momentum_bit_for_bit, matrix_has_same_bits, .subject = &matrix_quick,
	   MATRIX_ON({"sync: ring", 0, 1}, {"sync: ring, fuse: 1MB", 4, 1},
		     {"sync: ring, fuse: 80kB, schedule: sequential", 3, 1},
		     {"sync: ring, fuse: 80kB, barrier: layer", 2, 1}),
	   .keys = {", sparse: {sparsity: 0, chunk: 1000}"}, .other.keys = "")
/* Worker 0 holds the digests of all choices against its own in every iteration, and gives up where one differs. */
MATRIX_ROW(run_sparse, all_workers_choose_the_same_and_end_with_the_same_bits, matrix_is_same_on_all,
	   .subject = &matrix_quick, .keys = {", fuse: 80kB, sparse: {sparsity: 0.85, chunk: 500}"},
	   MATRIX_ON({"sync: ring", 2, 1}, {"sync: ring", 3, 1}, {"sync: ring", 4, 1}, {"sync: ring", 5, 1},
		     {"sync: ring", 6, 1}, {"sync: ring", 7, 1}, {"sync: ring", 8, 1}))
#define CHOSEN ", sparse: {sparsity: 0.7, chunk: 700, warmup: 5}"
MATRIX_ROW(run_sparse, every_all_reduce_schedule_and_encoding_leaves_equal_bits, matrix_is_same_on_all,
	   .subject = &matrix_quick, .layouts = all_reduces_of_four, .is_in_turn = true, .iterations = 12,
	   .keys = {CHOSEN ", barrier: layer", CHOSEN ", schedule: sequential", CHOSEN ", wire: bf16",
		    CHOSEN ", wire: fp16, priority: forward"})
/* One exchange of all 145,578 values in chunks of 1000: 146, the last of 578. After the first iteration, which is not
 * measured, 146 - floor(146 * 0.85) = 22 travel, of which one may be the last. A ring of 2 sends each half of them
 * twice, and each half of the norms, 4 bytes each whatever the values have. */
#define ROW_CHOSEN(name, encoding, value_bytes)                                                                        \
	MATRIX_ROW(run_sparse, name, matrix_sends, .subject = &matrix_quick, .iterations = 9,                          \
		   MATRIX_ON({"sync: ring, fuse: 1MB, sparse: {sparsity: 0.85, chunk: 1000}, wire: " encoding, 2, 1}), \
		   .bytes = (value_bytes) * (146 - 124) * 1000 + 4 * 146, .fewer_bytes = (value_bytes) * (1000 - 578))
ROW_CHOSEN(a_node_sends_the_bytes_of_the_formula, "fp32", 4)
ROW_CHOSEN(a_node_sends_the_bytes_of_the_formula_in_fp16, "fp16", 2)
ROW_CHOSEN(a_node_sends_the_bytes_of_the_formula_in_bf16, "bf16", 2)
#define ROW_ACCURATE(name, more)                                                                                       \
	MATRIX_ROW(run_sparse, name, matrix_is_accurate, .subject = &matrix_tested,                                    \
		   MATRIX_ON({"sync: ring, fuse: 64KiB", 2, 1}), .iterations = 300, .other.keys = "",                  \
		   .keys = {", sparse: {sparsity: 0.85, chunk: 1000, warmup: 50" more "}"}, .lost_ratio = 0.01)
ROW_ACCURATE(accuracy_is_within_a_point, "")
ROW_ACCURATE(accuracy_with_full_feedback_is_within_a_point, ", feedback: full")
MATRIX_ROW(run_sparse, lars_is_refused_with_its_place, matrix_is_refused, .subject = &matrix_maskless,
	   MATRIX_ON({"sync: ring, sparse: {sparsity: 0.5}", 2, 1}), .learns = {FIXED(LARS, 0.003)},
	   .words = "'s' is 'sparse', optimiser 'lars' needs whole gradients")

/* ---- managed communication ---- */

/* With all chunks in each iteration nothing is withheld. */
MATRIX_ROW(run_managed, with_all_chunks_early_it_is_momentum_bit_for_bit, matrix_has_same_bits,
	   .subject = &matrix_quick, .iterations = 5, MATRIX_ON({"sync: ring, fuse: 80kB", 3, 1}),
	   .keys = {", managed: {clock: 2, early: 100%, chunk: 1000}"}, .other.keys = "")
#define WITHHELD(priority) ", managed: {clock: 3, early: 30%, chunk: 700, priority: " priority "}"
MATRIX_ROW(run_managed, every_order_leaves_equal_bits, matrix_is_same_on_all, .subject = &matrix_quick,
	   .layouts = all_reduces_of_four, .is_in_turn = true, .iterations = 8,
	   .keys = {WITHHELD("magnitude") ", barrier: layer", WITHHELD("random") ", schedule: sequential",
		    WITHHELD("generation") ", wire: bf16", WITHHELD("forward") ", priority: forward"})
/* As for sparse ones; of four iterations three send 146 - floor(146 * 0.75) = 37 chunks, one sends all. */
MATRIX_ROW(run_managed, a_node_sends_the_bytes_of_the_formula, matrix_sends, .subject = &matrix_quick, .iterations = 12,
	   MATRIX_ON({"sync: ring, fuse: 1MB, managed: {clock: 4, early: 25%, chunk: 1000, priority: random}", 2, 1}),
	   .bytes = 3 * 37 * 1000 + 145578 + 4 * 146)
MATRIX_ROW(run_managed, lars_is_refused_with_its_place, matrix_is_refused, .subject = &matrix_maskless,
	   MATRIX_ON({"sync: ring, managed: {clock: 4, early: 25%}", 2, 1}), .learns = {FIXED(LARS, 0.003)},
	   .words = "'s' is 'managed', optimiser 'lars' needs whole gradients")

/* ---- values of 2 bytes ---- */

#define ROW_ROUNDED(name, n_iterations, ...)                                                                           \
	MATRIX_ROW(run_encoded, name, matrix_rounds_nearly, .subject = &matrix_quick, .iterations = (n_iterations),    \
		   .keys = {WIRE_16}, .other.keys = "", __VA_ARGS__)
ROW_ROUNDED(a_ring_of_two_trains_nearly_as_of_exact_values, 12, MATRIX_ON({"sync: ring", 2, 1}))
ROW_ROUNDED(a_ring_of_eight_trains_nearly_as_of_exact_values, 12, MATRIX_ON({"sync: ring", 8, 1}))
/* `fuse: 1MB`: all ten, more than a message has pieces */
ROW_ROUNDED(gathered_tensors_travel_without_gaps, 12,
	    MATRIX_ON({"sync: ring, fuse: 1MB", 2, 1}, {"sync: ring, fuse: 80kB", 4, 1}))
#define ROW_ROUNDED_ALL_REDUCE(identifier, name)                                                                       \
	ROW_ROUNDED(every_other_all_reduce_trains_nearly_as_of_exact_values_##identifier, 12,                          \
		    MATRIX_ON({"sync: " name, 4, 1}))
PSD_ALL_REDUCES(ROW_ROUNDED_ALL_REDUCE)
#define ROW_ROUNDED_METHOD(method)                                                                                     \
	ROW_ROUNDED(every_other_method_trains_nearly_as_of_exact_values_##method##_of_two, 30,                         \
		    MATRIX_ON({"sync: " #method, 2, 1}))                                                               \
	ROW_ROUNDED(every_other_method_trains_nearly_as_of_exact_values_##method##_of_three, 30,                       \
		    MATRIX_ON({"sync: " #method, 3, 1}))                                                               \
	ROW_ROUNDED(every_other_method_trains_nearly_as_of_exact_values_##method##_of_four, 30,                        \
		    MATRIX_ON({"sync: " #method, 4, 1}))
ROW_ROUNDED_METHOD(ps)
ROW_ROUNDED_METHOD(sfb)
ROW_ROUNDED_METHOD(adam)
ROW_ROUNDED_METHOD(hybrid)
/* A single worker's values travel as well. */
ROW_ROUNDED(every_other_position_of_servers_trains_nearly_as_of_exact_values, 30,
	    MATRIX_ON({"sync: ps, servers: 1", 1, 1}, {"sync: ps, servers: 2", 3, 1}))
ROW_ROUNDED(every_other_order_of_slices_trains_nearly_as_of_exact_values, 30,
	    MATRIX_ON({"sync: ps, pair: 512B, slice: 8KiB, barrier: layer, priority: forward", 4, 1}))
ROW_ROUNDED(every_other_position_of_roots_trains_nearly_as_of_exact_values, 30,
	    MATRIX_ON({"sync: adam, servers: 1", 1, 1}, {"sync: adam, servers: 2, pair: 512B, slice: 8KiB", 2, 1}))
ROW_ROUNDED(every_other_order_of_sums_trains_nearly_as_of_exact_values, 30, .learns = {ANY_ORDER},
	    MATRIX_ON({"sync: ps, servers: 3", 2, 1}, {"sync: ps, slice: 8KiB, pair: 512B", 3, 1}))
ROW_ROUNDED(leaders_train_nearly_as_of_exact_values, 30,
	    MATRIX_ON({"sync: two-level-ps", 4, 2}, {"sync: two-level-ps, servers: 1, pair: 512B, slice: 8KiB", 3, 3}))
ROW_ROUNDED(leaders_train_nearly_as_of_exact_values_in_any_order, 30, .learns = {ANY_ORDER},
	    MATRIX_ON({"sync: two-level-ps, slice: 8KiB, pair: 512B", 4, 2}))
MATRIX_ROW(run_encoded, one_worker_rounds_nothing, matrix_has_same_bits, .subject = &matrix_quick, .layouts = alone,
	   .end = 1, .keys = {", wire: bf16"}, .other.keys = "", .iterations = 5)
/* In each exchange one scale takes one part out of the range, and no other part. */
#define ROW_FINITE(name, ...)                                                                                          \
	MATRIX_ROW(run_encoded, name, matrix_stays_finite, .subject = &matrix_quick, .iterations = 2,                  \
		   .has_scales = true, MATRIX_ON(__VA_ARGS__))
/* No worker's own gradient leaves it, but the sum in one shard's part. All shards leave the update out. */
ROW_FINITE(a_sum_of_a_node_that_leaves_the_range_moves_nothing, {"sync: two-level-ps, wire: fp16", 4, 2})
/* Parts of a tensor are summed one by one, and applied together. */
ROW_FINITE(a_part_that_leaves_the_range_takes_its_tensor_with_it, {"sync: ring, pipeline: 4KiB, wire: fp16", 2, 1})
#define ROW_ACCURATE_IN_16(method)                                                                                     \
	MATRIX_ROW(run_encoded, accuracy_is_within_a_point_of_##method, matrix_is_accurate, .subject = &matrix_tested, \
		   MATRIX_ON({"sync: " #method, 2, 1}), .keys = {WIRE_16}, .other.keys = "", .lost_ratio = 0.01)
ROW_ACCURATE_IN_16(ring)
ROW_ACCURATE_IN_16(ps)
ROW_ACCURATE_IN_16(sfb)
ROW_ACCURATE_IN_16(adam)
ROW_ACCURATE_IN_16(hybrid)
/* A shard for each node, which not all of its workers have. */
MATRIX_ROW(run_encoded, workers_of_a_node_have_the_same_bits, matrix_is_same_on_all, .subject = &matrix_quick,
	   MATRIX_ON({"sync: ps, wire: bf16", 4, 2}, {"sync: adam, wire: fp16", 4, 2},
		     {"sync: hybrid, wire: bf16", 4, 2}, {"sync: two-level-ps, wire: fp16", 4, 2}),
	   .iterations = 4)
MATRIX_ROW(run_encoded, servers_add_as_sums_arrive, matrix_is_same_on_all, .subject = &matrix_quick,
	   MATRIX_ON({"sync: ps, slice: 64KiB, pair: 1KiB, wire: fp16", 3, 1}), .learns = {ANY_ORDER}, .iterations = 4)
MATRIX_ROW(run_encoded, factors_are_rebuilt, matrix_is_same_on_all, .subject = &matrix_quick,
	   MATRIX_ON({"sync: hybrid, barrier: layer, wire: bf16", 3, 1},
		     {"sync: adam, slice: 8KiB, pair: 1KiB, priority: forward, wire: fp16", 3, 1}),
	   .iterations = 4)

/* ---- low rank ---- */

/* Matrices of (8, 27), (24, 128) and (10, 24), each with its bias. */
static const struct matrix_layout narrow[] = {
	{"sync: ring", 4, 1},
	{"sync: ring", 4, 2},
	{"sync: two-level", 4, 2},
	{"sync: halving-doubling", 4, 1},
	{"sync: recursive-doubling", 4, 1},
	{"sync: double-tree", 4, 1},
	{"sync: torus", 4, 2},
	{"sync: torus", 4, 1},
	{"sync: ring, schedule: sequential", 4, 1},
	{"sync: two-level, schedule: sequential, fuse: 1KiB", 4, 2},
	{"sync: ring, unit: tensor", 4, 1},
	{"sync: halving-doubling, unit: layer", 4, 2},
	{"sync: ring, fuse: 256B", 4, 1},
	{"sync: ring, fuse: 1MB", 4, 1},
	{"sync: ring, pipeline: 128B", 4, 1},
	{"sync: ring, priority: forward, barrier: layer", 4, 1},
	{"sync: two-level, unit: layer, priority: forward, barrier: layer, pipeline: 64B", 4, 2},
	{0},
};
static const struct matrix_layout narrow_of_others[] = {
	{"sync: ring", 2, 1},
	{"sync: ring, fuse: 1MB", 3, 1},
	{"sync: two-level", 3, 2},
	{"sync: halving-doubling", 3, 1},
	{"sync: recursive-doubling", 5, 1},
	{"sync: double-tree, unit: layer", 5, 2},
	{"sync: torus, schedule: sequential", 6, 2},
	{0},
};

#define LEARN	FALLING(SGD, 0.1)
#define RANK(n) ", low_rank: {rank: " #n "}"
/* At rank 7 the first matrix is sent unchanged, at rank 64 all are. */
#define RANKS RANK(1), RANK(2), RANK(7), RANK(64)

#define ROW_NARROW(name, treatment, ...)                                                                               \
	MATRIX_ROW(run_low_rank, name, matrix_is_near, .subject = &matrix_maskless, .layouts = narrow, .first = 1,     \
		   .keys = {treatment}, .other.layout = narrow, .learns = {__VA_ARGS__}, .way_ratio = SAME_WAY_RATIO)
ROW_NARROW(every_way_trains_the_same_by_rank_1, RANK(1), LEARN)
ROW_NARROW(every_way_trains_the_same_by_rank_4, RANK(4), LEARN)
ROW_NARROW(every_way_trains_the_same_by_local_steps, RANK(2) ", local_sgd: {steps: 2}", LEARN)
/* AdamW divides by hardly more than roundings, but for an epsilon. */
ROW_NARROW(every_way_trains_the_same_by_adamw, RANK(2), FIXED("kind: adamw, epsilon: 0.01, weight_decay: 0.1", 0.01))
#define ROW_LOST(name, treatment, ...)                                                                                 \
	MATRIX_ROW(run_low_rank, name, matrix_is_another, .subject = &matrix_maskless, .layouts = narrow, .end = 1,    \
		   .keys = {"", treatment}, .learns = {__VA_ARGS__}, .way_ratio = 10 * SAME_WAY_RATIO)
ROW_LOST(rank_1_loses_something, RANK(1), LEARN)
ROW_LOST(rank_4_loses_something, RANK(4), LEARN)
ROW_LOST(local_steps_lose_something, RANK(2) ", local_sgd: {steps: 2}", LEARN)
ROW_LOST(adamw_loses_something, RANK(2), FIXED("kind: adamw, epsilon: 0.01, weight_decay: 0.1", 0.01))
/* Embeddings, one of which the last product shares, and values of positions are matrices; norms have none. */
static const struct matrix_subject transformer = {
	.graph = "../../tests/data/transformer.yaml",
	.batch = 8,
	.seed = 5,
	.iterations = 6,
	.train = ", data: {kind: synthetic}",
};
static const struct matrix_layout first_transformer = {"sync: ring", 4, 1};
MATRIX_ROW(run_low_rank, a_transformer_trains_the_same, matrix_is_near, .subject = &transformer,
	   MATRIX_ON({"sync: two-level, fuse: 1KiB", 4, 2}, {"sync: halving-doubling, unit: layer", 4, 1}),
	   .keys = {RANK(2)}, .other.layout = &first_transformer, .learns = {FIXED("kind: sgd", 0.05)},
	   .way_ratio = SAME_WAY_RATIO)
#define ROW_SAME(name, ...)                                                                                            \
	MATRIX_ROW(run_low_rank, name, matrix_is_same_on_all, .subject = &matrix_maskless, __VA_ARGS__)
ROW_SAME(all_end_with_the_same_bits_by_odd_ranks, .layouts = narrow, .stride = 2, .keys = {RANK(1), RANK(7)},
	 .learns = {LEARN})
ROW_SAME(all_end_with_the_same_bits_by_even_ranks, .layouts = narrow, .first = 1, .stride = 2,
	 .keys = {RANK(2), RANK(64)}, .learns = {LEARN})
ROW_SAME(all_end_with_the_same_bits_of_other_numbers, .layouts = narrow_of_others, .keys = {RANKS}, .learns = {LEARN})
ROW_SAME(every_optimiser_ends_with_the_same_bits, .layouts = narrow_of_others, .stride = 2, .keys = {RANK(2)},
	 .learns = {LEARN ANY_ORDER, FIXED(NESTEROV, 0.05), FIXED(DECAYING_LARS, 1),
		    FIXED("kind: adamw, weight_decay: 0.1", 0.01)})
ROW_SAME(local_steps_end_with_the_same_bits, .layouts = narrow_of_others, .keys = {RANK(2) ", local_sgd: {steps: 3}"},
	 .learns = {LEARN})
MATRIX_ROW(run_low_rank, a_run_repeats_exactly, matrix_repeats, .subject = &matrix_maskless, .layouts = narrow,
	   .stride = 3, .keys = {RANK(2)}, .learns = {LEARN})
/* A rank that leaves no matrix fewer values leaves the run as it is. */
#define ROW_AS_WITHOUT(name, claim, ...)                                                                               \
	MATRIX_ROW(run_low_rank, name, claim, .subject = &matrix_maskless, .learns = {LEARN}, .other.keys = "",        \
		   __VA_ARGS__)
ROW_AS_WITHOUT(a_rank_beyond_all_matrices_changes_no_bit, matrix_has_same_bits, .layouts = narrow_of_others,
	       .keys = {RANK(64)})
ROW_AS_WITHOUT(a_rank_beyond_all_matrices_changes_no_byte, matrix_sends_a_part, .layouts = narrow_of_others,
	       .keys = {RANK(64)}, .parts = 1)
ROW_AS_WITHOUT(a_single_worker_trains_as_without, matrix_has_same_bits, .layouts = alone, .keys = {RANKS})
/* In a ring of 2 each worker sends as many values as there are: one half, and the sums of the other. */
enum { LENGTHS = (8 + 27) + (24 + 128) + (10 + 24), BIASES = 8 + 24 + 10 };
#define ROW_SENDS(name, system, values)                                                                                \
	MATRIX_ROW(run_low_rank, name, matrix_sends, .subject = &matrix_maskless, MATRIX_ON({system, 2, 1}),           \
		   .learns = {LEARN}, .bytes = (values) * sizeof(float))
ROW_SENDS(rank_1_sends_the_bytes_of_the_formula, "sync: ring" RANK(1), LENGTHS + BIASES)
ROW_SENDS(rank_2_sends_the_bytes_of_the_formula, "sync: ring" RANK(2), 2 * LENGTHS + BIASES)
ROW_SENDS(gathered_tensors_send_the_bytes_of_the_formula, "sync: ring, fuse: 1MB" RANK(2), 2 * LENGTHS + BIASES)
ROW_SENDS(whole_matrices_send_the_bytes_of_the_formula, "sync: ring" RANK(7),
	  7 * LENGTHS - 7 * (8 + 27) + 8 * 27 + BIASES)
/* A bias of 30 and a weight of (40, 30) are trained; the other weight and bias stay as they are and do not travel. */
static const struct matrix_subject frozen = {
	.graph = "frozen.prototxt",
	.text = "name: 'frozen'\ninput: 'data'\ninput_dim: 1\ninput_dim: 200\ninput_dim: 1\ninput_dim: 1\n"
		"layer { name: 'fc1' type: 'InnerProduct' bottom: 'data' top: 'fc1' param { lr_mult: 0 } "
		"param { lr_mult: 2 } inner_product_param { num_output: 30 } }\n"
		"layer { name: 'fc2' type: 'InnerProduct' bottom: 'fc1' top: 'fc2' param { lr_mult: 1 } "
		"param { lr_mult: 0 } inner_product_param { num_output: 40 } }\n"
		"layer { name: 'loss' type: 'Softmax' bottom: 'fc2' top: 'loss' }\n",
	.batch = 8,
	.seed = 5,
	.iterations = 6,
};
MATRIX_ROW(run_low_rank, tensors_that_stay_as_they_are_do_not_travel, matrix_sends, .subject = &frozen,
	   MATRIX_ON({"sync: ring", 2, 1}, {"sync: ring, fuse: 1MB", 2, 1}, {"sync: ring, unit: layer", 2, 1}),
	   .keys = {RANK(2)}, .learns = {LEARN}, .bytes = (30 + 2 * (40 + 30)) * sizeof(float))
MATRIX_ROW(run_low_rank, a_prediction_counts_the_same_bytes, matrix_sends_as_predicted, .layouts = narrow,
	   .cluster = "nodes: 2, workers_per_node: 2}", .is_in_turn = true,
	   .keys = {RANK(1), RANK(2), RANK(7), RANK(1) STEPS, RANK(2), RANK(7), RANK(1), RANK(2) STEPS, RANK(7),
		    RANK(1), RANK(2), RANK(7) STEPS})
/* At a fixed rate and without momentum a worker has gone the rate times its gradient, and the rest of that is the rate
 * times the rest of the gradient: a run by gradients, but for rounding. */
MATRIX_ROW(run_low_rank, one_local_step_is_an_exchange_of_gradients, matrix_is_near, .subject = &matrix_maskless,
	   MATRIX_ON({"sync: ring", 3, 1}), .keys = {RANK(2) ", local_sgd: {steps: 1}"}, .other.keys = RANK(2),
	   .learns = {FIXED("kind: sgd", 0.1)}, .way_ratio = SAME_WAY_RATIO)
#define ROW_PUBLISHED(name, ...)                                                                                       \
	MATRIX_ROW(run_low_rank, name, matrix_follows_the_algorithm, .subject = &matrix_softmax,                       \
		   MATRIX_ON({"sync: ring", 2, 1}, {"sync: ring, fuse: 1MB", 4, 1},                                    \
			     {"sync: two-level, unit: tensor", 4, 2},                                                  \
			     {"sync: halving-doubling, schedule: sequential", 4, 1}),                                  \
		   .learns = {FIXED(SGD, 0.25)}, .way_ratio = SAME_WAY_RATIO, __VA_ARGS__)
ROW_PUBLISHED(it_is_the_published_algorithm, .keys = {RANK(1), RANK(8)})
ROW_PUBLISHED(it_is_the_published_algorithm_of_other_ranks, .keys = {RANK(2), RANK(3), RANK(4), RANK(5)},
	      .is_in_turn = true)
/* A loss that has fallen to a tenth; of it, as the rest comes later; and of the first loss, with less of each gradient
 * than it has. */
#define ROW_LEARNS(name, ratio, n_other_iterations, ...)                                                               \
	MATRIX_ROW(run_low_rank, name, matrix_learns, .subject = &matrix_maskless, MATRIX_ON({"sync: ring", 2, 1}),    \
		   .learns = {FIXED("momentum: 0.9", 0.1), FIXED("kind: adamw", 0.01)}, .iterations = 60,              \
		   .loss_ratio = ratio, .other.keys = "", .other.iterations = (n_other_iterations),                    \
		   .keys = {__VA_ARGS__})
ROW_LEARNS(without_it_a_run_learns, 0.1, 1, "")
ROW_LEARNS(rank_4_learns_about_as_much, 2.0, 60, RANK(4))
ROW_LEARNS(rank_1_learns, 0.5, 1, RANK(1), RANK(2) ", local_sgd: {steps: 3}")
/* With conv, batch norm and dropout. */
#define ROW_RESUMES(name, learn, ...)                                                                                  \
	MATRIX_ROW(run_low_rank, name, matrix_resumes, MATRIX_ON(__VA_ARGS__), .learns = {learn})
ROW_RESUMES(a_resumed_run_ends_as_an_uncut_one, GOING_ON_SGD, {"sync: ring" RANK(2), 2, 1},
	    {"sync: ring, fuse: 1KiB" RANK(1), 3, 1},
	    {"sync: halving-doubling, barrier: layer, priority: forward" RANK(4), 4, 1},
	    {"sync: two-level, schedule: sequential" RANK(7), 4, 2},
	    {"sync: ring, local_sgd: {steps: 3}" RANK(2), 3, 1})
ROW_RESUMES(a_resumed_run_has_the_means_of_adamw, GOING_ON_ADAMW, {"sync: ring" RANK(2), 2, 1})
MATRIX_ROW(run_low_rank, a_run_starts_from_a_file, matrix_starts, MATRIX_ON({"sync: ring" RANK(2), 3, 1}))

/* ---- compressed ---- */

/* Tensors of 216, 8, 3072, 24, 240 and 10 values, three items of 2, 4 and 2 blocks: of four shards two have none of the
 * first and the last. */
static const struct matrix_layout packed[] = {
	{"sync: ps", 2, 1},
	{"sync: ps", 4, 1},
	{"sync: ps", 4, 2},
	{"sync: ps, servers: 1", 3, 1},
	{"sync: ps, servers: 2", 2, 1},
	{"sync: ps, servers: 5", 2, 1},
	{"sync: ps, schedule: sequential", 3, 1},
	{"sync: ps, barrier: layer, priority: forward", 4, 2},
	{"sync: ps, unit: tensor", 3, 1},
	{0},
};

#define COMPRESS(by) ", compress: {by: " by "}"
#define ALL_KEPT     COMPRESS("top-k, kept: 100%")
#define ONE_BIT	     COMPRESS("one-bit")
#define TOP_K	     COMPRESS("top-k, kept: 2%")
#define INT8	     COMPRESS("int8")
#define SOME_ONE_BIT COMPRESS("one-bit, block: 2048, tensors: matrices")
#define SOME_TOP_K   COMPRESS("top-k, kept: 0.001, block: 32768, tensors: matrices")

#define ROW_PACKED(name, claim, ...) MATRIX_ROW(run_packed, name, claim, .subject = &matrix_maskless, __VA_ARGS__)
/* A worker's residual stays 0, for all of 0 + g leaves; so does the shard's, for all of its sum leaves. The sum is
 * ((0 + g0) + g1) + ..., in order of rank as a server's g0 + g1 + ... is, and workers unpack 0 + that. So all is equal
 * but for the sign of zeros, as 0 + -0 is 0; an update adds those to something else. It is the same, value by value, at
 * a worker and at a server. */
ROW_PACKED(all_values_kept_it_is_a_server_bit_for_bit, matrix_has_same_bits, .layouts = packed, .other.keys = "",
	   .keys = {ALL_KEPT, COMPRESS("top-k, kept: 100%, block: 2048, tensors: matrices")}, .learns = {LEARN})
ROW_PACKED(a_single_worker_trains_as_without, matrix_has_same_bits, MATRIX_ON({"sync: ps", 1, 1}), .other.keys = "",
	   .keys = {ONE_BIT, COMPRESS("top-k, kept: 1%"), COMPRESS("one-bit, tensors: matrices") ", servers: 1"},
	   .learns = {LEARN})
#define PACKED                                                                                                         \
	.layouts = packed,                                                                                             \
	.keys = {INT8 ", local_sgd: {steps: 3, outer: {}}", ONE_BIT, TOP_K, SOME_ONE_BIT, SOME_TOP_K,                  \
		 ONE_BIT ", local_sgd: {steps: 3}"}
ROW_PACKED(all_end_with_the_same_bits, matrix_is_same_on_all, PACKED, .learns = {LEARN})
ROW_PACKED(every_optimiser_ends_with_the_same_bits, matrix_is_same_on_all, .layouts = packed, .end = 4,
	   .keys = {ONE_BIT, TOP_K},
	   .learns = {LEARN ANY_ORDER, FIXED(NESTEROV, 0.05), FIXED(DECAYING_LARS, 1), FIXED("kind: sgd", 0.1)})
ROW_PACKED(a_run_repeats_exactly, matrix_repeats, PACKED, .stride = 3, .learns = {LEARN})
/* 8 bytes and a bit for each of 1024 values; of 1024 the largest 21, 4 bytes each, and their positions, 2 bytes each
 * and one of them unused. */
enum { ONE_BIT_BYTES = 8 + 1024 / 8, TOP_K_BYTES = 21 * 4 + 22 * 2, CONV_BYTES = (216 + 8) * 4 };
#define ROW_PACKED_BYTES(name, system, n_workers, n_bytes)                                                             \
	ROW_PACKED(name, matrix_sends, MATRIX_ON({system, n_workers, 1}), .learns = {LEARN}, .bytes = (n_bytes))
/* Each of 2 nodes pushes the other's half of 8 blocks, and sends its own half as sums. On 4 nodes, node 1 has one block
 * of each item: it pushes the 5 others, and sends its 3 to 3. A server sends all to two workers. */
ROW_PACKED_BYTES(two_nodes_send_the_signs_of_the_formula, "sync: ps" ONE_BIT, 2, 8 * ONE_BIT_BYTES)
ROW_PACKED_BYTES(two_nodes_send_the_values_of_the_formula, "sync: ps" TOP_K, 2, 8 * TOP_K_BYTES)
/* A step and a byte for each value. */
ROW_PACKED_BYTES(two_nodes_send_the_steps_of_the_formula, "sync: ps" INT8, 2, 8 * (4 + 1024))
ROW_PACKED_BYTES(four_nodes_send_the_signs_of_the_formula, "sync: ps" ONE_BIT, 4, (5 + 3 * 3) * ONE_BIT_BYTES)
ROW_PACKED_BYTES(a_server_sends_the_signs_of_the_formula, "sync: ps, servers: 1" ONE_BIT, 2, 2 * 8 * ONE_BIT_BYTES)
ROW_PACKED_BYTES(matrices_alone_send_the_signs_of_the_formula, "sync: ps" COMPRESS("one-bit, tensors: matrices"), 2,
		 6 * ONE_BIT_BYTES + CONV_BYTES)
/* A bias of 30 is one block, a weight of 1200 two: node 0 pushes two of them and has one sum to send. */
MATRIX_ROW(run_packed, tensors_that_stay_as_they_are_do_not_travel, matrix_sends, .subject = &frozen,
	   MATRIX_ON({"sync: ps" ONE_BIT, 2, 1}), .learns = {LEARN}, .bytes = 3 * ONE_BIT_BYTES)
MATRIX_ROW(run_packed, tensors_that_stay_as_they_are_change_no_bit, matrix_has_same_bits, .subject = &frozen,
	   MATRIX_ON({"sync: ps", 2, 1}), .keys = {ALL_KEPT}, .other.keys = "", .learns = {LEARN})
#define ON_FIVE .layouts = packed, .cluster = "nodes: 3, workers_per_node: 2}\nsweep: {workers: [5]}"
ROW_PACKED(a_prediction_counts_the_same_bytes, matrix_sends_as_predicted, ON_FIVE, .stride = 2,
	   .keys = {ONE_BIT, SOME_ONE_BIT})
ROW_PACKED(a_prediction_counts_the_same_bytes_of_top_k, matrix_sends_as_predicted, ON_FIVE, .first = 1, .stride = 4,
	   .keys = {TOP_K, SOME_TOP_K})
ROW_PACKED(a_prediction_counts_the_same_bytes_of_periods, matrix_sends_as_predicted, ON_FIVE, .first = 3, .stride = 4,
	   .keys = {TOP_K STEPS, SOME_TOP_K STEPS})
/* At a fixed rate and without momentum, see low rank. */
#define ROW_STEP(name, compression, ratio)                                                                             \
	ROW_PACKED(name, matrix_is_near, MATRIX_ON({"sync: ps", 3, 1}), .learns = {FIXED("kind: sgd", 0.1)},           \
		   .keys = {compression ", local_sgd: {steps: 1}"}, .other.keys = compression, .way_ratio = ratio)
ROW_STEP(one_local_step_with_all_values_is_an_exchange_of_gradients, ALL_KEPT, SAME_WAY_RATIO)
ROW_STEP(one_local_step_with_signs_is_an_exchange_of_gradients, ONE_BIT, TURNED_RATIO)
ROW_STEP(one_local_step_with_signs_of_matrices_is_an_exchange_of_gradients, COMPRESS("one-bit, tensors: matrices"),
	 TURNED_RATIO)
/* Each of P workers has u = m u + g + (d / P) w, and all of it travels: the sum is U = m U + G + d w, and w -= rate U.
 * Without compression h = m h + rate (G + d w) is rate U where the rate stays, and w -= h. With Nesterov, s + m U
 * travels, where s = G + d w. Without compression w -= (1 + m) h - m (h before), which is rate (s + m U), too. */
ROW_PACKED(momentum_before_is_momentum_where_all_travels, matrix_is_near, MATRIX_ON({"sync: ps", 3, 1}),
	   .keys = {COMPRESS("top-k, kept: 100%, momentum: before")}, .other.keys = "", .way_ratio = SAME_WAY_RATIO,
	   .learns = {FIXED(SGD, 0.1), FIXED("nesterov: true, " SGD, 0.1), FIXED("momentum: 0", 0.1)})
ROW_PACKED(
	lars_needs_gradients_without_momentum, matrix_is_refused,
	MATRIX_ON({"sync: ps" COMPRESS("one-bit, momentum: before"), 2, 1}),
	.learns = {FIXED("kind: lars, trust: 0.02", 0.1)},
	.words = "test.yaml:6:5: system 's' has 'momentum: before', optimiser 'lars' needs gradients without momentum")
MATRIX_ROW(run_packed, it_is_the_published_algorithm, matrix_follows_the_algorithm, .subject = &matrix_softmax,
	   MATRIX_ON({"sync: ps" ONE_BIT, 2, 1}, {"sync: ps, servers: 1" ONE_BIT, 2, 1}, {"sync: ps" TOP_K, 2, 1},
		     {"sync: ps, servers: 2, unit: tensor" ALL_KEPT, 2, 1}),
	   .learns = {FIXED(SGD, 0.25)})
/* The loss has to fall to a twentieth; the rest comes later. */
#define ROW_PACKED_LEARNS(name, ratio, other_learn, ...)                                                               \
	ROW_PACKED(name, matrix_learns, MATRIX_ON({"sync: ps", 2, 1}), .learns = {FIXED("momentum: 0.9", 0.1)},        \
		   .iterations = 60, .loss_ratio = ratio, .other.keys = "", .other.learn = other_learn,                \
		   .keys = {__VA_ARGS__})
ROW_PACKED_LEARNS(without_it_a_run_learns, 0.1, MATRIX_LEARN_NOTHING, "")
ROW_PACKED_LEARNS(it_learns_about_as_much, 2.0, NULL, ONE_BIT, COMPRESS("top-k, kept: 5%"))
ROW_PACKED_LEARNS(it_learns_as_much_by_int8, 1.05, NULL, INT8)
/* Each value is rounded to a 254th of its block's range, and the error follows later. */
ROW_PACKED(int8_goes_the_way_of_no_compression, matrix_is_near, MATRIX_ON({"sync: ps", 3, 1}), .keys = {INT8},
	   .other.keys = "", .way_ratio = 0.01, .learns = {FIXED(SGD, 0.1)})
/* With conv, batch norm and dropout; parts of several blocks, and servers without any of an item. */
#define ROW_PACKED_RESUMES(name, learn, ...)                                                                           \
	MATRIX_ROW(run_packed, name, matrix_resumes, MATRIX_ON(__VA_ARGS__), .learns = {learn})
ROW_PACKED_RESUMES(a_resumed_run_ends_as_an_uncut_one, GOING_ON_SGD, {"sync: ps" ONE_BIT, 2, 1},
		   {"sync: ps" TOP_K, 3, 1},
		   {"sync: ps, servers: 2, barrier: layer" COMPRESS("one-bit, block: 2048"), 2, 1},
		   {"sync: ps" COMPRESS("top-k, tensors: matrices"), 4, 2},
		   {"sync: ps" COMPRESS("top-k, kept: 2%, momentum: before"), 3, 1},
		   {"sync: ps" ONE_BIT ", local_sgd: {steps: 3}", 3, 1},
		   {"sync: ps" INT8 ", local_sgd: {steps: 3, outer: {}}", 3, 1})
ROW_PACKED_RESUMES(a_resumed_run_has_the_norms_of_lars,
		   "data: {training_samples: 40, test_samples: 32}, optimiser: {kind: lars, trust: 0.01, "
		   "weight_decay: 0.1}",
		   {"sync: ps" ONE_BIT, 2, 1})
MATRIX_ROW(run_packed, a_run_starts_from_a_file, matrix_starts, MATRIX_ON({"sync: ps" ONE_BIT, 3, 1}))
