/* The table of matrix.h for treatments of updates: late, clipped, adaptive and local ones. Claims that are about local
 * steps alone are in test_run_local.c. */
#include <float.h>

#include "tests/real/going_on.h"
#include "tests/real/matrix_keys.h"

/* ---- updates by workers ---- */

/* Systems whose workers make all updates, as they do where these come late and where gradients are clipped: sums by
 * rings and trees, whole and in parts; sums that shards send back, whole and in slices, from workers and from hosts of
 * their own, by leaders; factors. */
static const struct matrix_layout updates[] = {
	{"sync: ring", 2, 1},
	{"sync: ring, fuse: 1MB, barrier: layer", 3, 1},
	{"sync: halving-doubling, schedule: sequential, pipeline: 4KiB", 4, 1},
	{"sync: two-level", 4, 2},
	{"sync: ps", 2, 1},
	{"sync: ps", 4, 2},
	{"sync: ps, schedule: sequential", 3, 1},
	{"sync: ps, pair: 512B, slice: 1KiB, barrier: layer, priority: forward", 3, 1},
	{"sync: ps, servers: 2", 3, 1},
	{"sync: two-level-ps, pair: 512B, slice: 1KiB", 4, 2},
	{"sync: two-level-ps, servers: 1, pair: 512B, slice: 1KiB", 4, 2},
	{"sync: two-level-ps", 4, 2},
	{"sync: sfb", 3, 1},
	{"sync: hybrid", 4, 2},
	{"sync: hybrid, rule: seconds, barrier: layer", 3, 1},
	{0},
};
enum { SERVERS = 4, FACTORS = 12 };

static const struct matrix_layout all_alone[] = {{"sync: ring", 1, 1}, {"sync: ps", 1, 1}, {0}};

#define ROW_OF_UPDATES(suite, name, claim, ...)                                                                        \
	MATRIX_ROW(suite, name##_by_all_reduces, claim, .layouts = updates, .end = SERVERS, __VA_ARGS__)               \
	MATRIX_ROW(suite, name##_by_servers, claim, .layouts = updates, .first = SERVERS, .end = FACTORS, __VA_ARGS__) \
	MATRIX_ROW(suite, name##_by_factors, claim, .layouts = updates, .first = FACTORS, __VA_ARGS__)
#define ROW_ALIKE(suite, name, ...)                                                                                    \
	ROW_OF_UPDATES(suite, name, matrix_is_near, .subject = &matrix_maskless_shared, .other.layout = updates,       \
		       .way_ratio = SAME_WAY_RATIO, __VA_ARGS__)

/* ---- late ---- */

#define LATE ", staleness: 2"

ROW_OF_UPDATES(run_late, gradients_are_of_the_parameters_before, matrix_follows_the_algorithm,
	       .subject = &matrix_softmax, .learns = {FIXED(SGD, 0.05)}, .is_in_turn = true,
	       .keys = {", staleness: 1", ", staleness: 2", ", staleness: 3"}, .way_ratio = SAME_WAY_RATIO)
ROW_OF_UPDATES(run_late, rounded_gradients_are_late_as_well, matrix_follows_the_algorithm, .subject = &matrix_softmax,
	       .learns = {FIXED(SGD, 0.05)}, .is_in_turn = true,
	       .keys = {", staleness: 1, wire: bf16", ", staleness: 2, wire: bf16"}, .way_ratio = BF16_WAY_RATIO)
ROW_ALIKE(run_late, workers_train_alike, .keys = {LATE}, .learns = {FALLING(SGD, 0.02)})
ROW_ALIKE(run_late, sums_in_any_order_train_alike, .keys = {LATE}, .learns = {FALLING(SGD, 0.02) ANY_ORDER})
ROW_ALIKE(run_late, adaptive_updates_train_alike, .keys = {LATE}, .learns = {FIXED(ADAMW, 0.01)})
/* By one gradient less each: the parameters differ by far more than rounding. */
MATRIX_ROW(run_late, each_staleness_is_another_training, matrix_is_another, .subject = &matrix_maskless_shared,
	   .layouts = updates, .end = 1, .learns = {FALLING(SGD, 0.02)}, .way_ratio = 1000 * SAME_WAY_RATIO,
	   .keys = {"", ", staleness: 1", ", staleness: 2", ", staleness: 3"})
MATRIX_ROW(run_late, a_worker_alone_is_never_late, matrix_has_same_bits, .subject = &matrix_maskless_shared,
	   .layouts = all_alone, .keys = {", staleness: 3"}, .other.keys = "", .learns = {FALLING(SGD, 0.02)})
MATRIX_ROW(run_late, a_run_repeats_exactly, matrix_repeats, .subject = &matrix_maskless_shared, .layouts = updates,
	   .stride = 3, .keys = {LATE}, .learns = {FALLING(SGD, 0.02)})
ROW_OF_UPDATES(run_late, a_run_resumes_with_the_sums_that_it_had, matrix_resumes, .is_in_turn = true,
	       .keys = {", staleness: 1", ", staleness: 2", ", staleness: 3", ", staleness: 4"},
	       .learns = {GOING_ON_SGD, GOING_ON_ADAMW})
MATRIX_ROW(run_late, a_run_resumes_with_rounded_sums, matrix_resumes,
	   MATRIX_ON({"sync: ps, staleness: 2, wire: bf16", 3, 1}, {"sync: hybrid, staleness: 1, wire: bf16", 2, 1},
		     {"sync: ring, staleness: 3, wire: bf16", 2, 1}),
	   .learns = {GOING_ON_SGD})

/* ---- clipped ---- */

#define CLIPPED(optimiser) FALLING(optimiser ", clip: 0.3", 0.02)
/* Some of the norms are below, some above: the more workers, the more samples and the shorter their mean. */
#define CLIPPED_SOME .learns = {FIXED(SGD ", clip: @", 0.05)}, .most_norms = {0.0, 3.25, 2.45, 2.2, 2.1}

ROW_OF_UPDATES(run_clip, a_gradient_is_scaled_as_a_whole, matrix_follows_the_algorithm, .subject = &matrix_softmax,
	       CLIPPED_SOME, .way_ratio = SAME_WAY_RATIO)
MATRIX_ROW(run_clip, a_worker_alone_scales_its_own, matrix_follows_the_algorithm, .subject = &matrix_softmax,
	   .layouts = all_alone, CLIPPED_SOME, .way_ratio = SAME_WAY_RATIO)
MATRIX_ROW(run_clip, late_gradients_are_scaled_when_they_are_applied, matrix_follows_the_algorithm,
	   .subject = &matrix_softmax, .layouts = updates, .stride = 2, .keys = {", staleness: 1"}, CLIPPED_SOME,
	   .way_ratio = SAME_WAY_RATIO)
ROW_OF_UPDATES(run_clip, rounded_gradients_are_scaled_as_they_arrive, matrix_follows_the_algorithm,
	       .subject = &matrix_softmax, .keys = {", wire: bf16"}, CLIPPED_SOME, .way_ratio = BF16_WAY_RATIO)
ROW_ALIKE(run_clip, workers_train_alike, .learns = {CLIPPED(SGD)})
ROW_ALIKE(run_clip, adaptive_updates_train_alike, .learns = {CLIPPED(ADAMW)})
ROW_ALIKE(run_clip, updates_by_norms_train_alike, .learns = {CLIPPED(LARS)})
ROW_ALIKE(run_clip, sums_in_any_order_train_alike, .learns = {CLIPPED(SGD) ANY_ORDER})
/* Bit for bit, where workers update anyway. */
MATRIX_ROW(run_clip, a_short_gradient_stays_as_it_is, matrix_has_same_bits, .subject = &matrix_maskless_shared,
	   .layouts = updates, .end = SERVERS, .learns = {FALLING(SGD ", clip: 1000", 0.02)},
	   .other.learn = FALLING(SGD, 0.02))
MATRIX_ROW(run_clip, a_run_repeats_exactly, matrix_repeats, .subject = &matrix_maskless_shared, .layouts = updates,
	   .stride = 3, .learns = {CLIPPED(SGD)})
/* Each scale takes other gradients out of fp16's range, at the highest all. Those that stay are as without a bound that
 * none of them reaches, which an infinite norm would. */
#define ROW_LEFT_OUT(name, ...)                                                                                        \
	MATRIX_ROW(run_clip, name, matrix_has_same_bits, .subject = &matrix_maskless_shared, MATRIX_ON(__VA_ARGS__),   \
		   .keys = {", wire: fp16"}, .has_scales = true, .least_partial = 2,                                   \
		   .learns = {FALLING(SGD ", clip: 1000", 0.02)}, .other.learn = FALLING(SGD, 0.02))
ROW_LEFT_OUT(updates_left_out_by_a_ring_have_no_part_in_the_norm, {"sync: ring", 2, 1})
ROW_LEFT_OUT(updates_left_out_in_parts_have_no_part_in_the_norm, {"sync: ring, pipeline: 4KiB", 3, 1})
ROW_LEFT_OUT(updates_left_out_in_two_levels_have_no_part_in_the_norm, {"sync: two-level", 4, 2})
MATRIX_ROW(run_clip, sums_of_servers_that_are_left_out_move_nothing, matrix_stays_finite,
	   .subject = &matrix_maskless_shared, MATRIX_ON({"sync: ps", 2, 1}, {"sync: ps, servers: 1", 2, 1}),
	   .keys = {", wire: fp16"}, .has_scales = true, .learns = {CLIPPED(SGD)})
#define RESUMES_CLIPPED                                                                                                \
	.layouts = updates, .stride = 2,                                                                               \
	.learns = {"data: {training_samples: 40, test_samples: 32}, optimiser: {momentum: 0.9, clip: 0.2}"}
MATRIX_ROW(run_clip, sums_resume_as_if_uncut, matrix_resumes, RESUMES_CLIPPED, .end = 8)
MATRIX_ROW(run_clip, servers_and_factors_resume_as_if_uncut, matrix_resumes, RESUMES_CLIPPED, .first = 8)

/* ---- adaptive ---- */

/* Shards that update parts of slices, leaders, servers of their own, roots, and devices that update by sums, by factors
 * and by compressed sums. */
static const struct matrix_layout adaptive[] = {
	{"sync: ps", 1, 1},
	{"sync: ps", 2, 1},
	{"sync: ps", 4, 2},
	{"sync: ps, pair: 512B, slice: 1KiB, barrier: layer, priority: forward", 3, 1},
	{"sync: ps, servers: 2", 3, 1},
	{"sync: two-level-ps", 4, 2},
	{"sync: two-level-ps, servers: 1", 4, 2},
	{"sync: sfb", 3, 1},
	{"sync: adam", 3, 1},
	{"sync: adam, servers: 2", 2, 1},
	{"sync: hybrid", 4, 2},
	{"sync: hybrid, schedule: sequential", 2, 1},
	{"sync: ring", 3, 1},
	{"sync: ring, fuse: 1MB", 3, 1},
	{"sync: halving-doubling, fuse: 4KiB", 4, 1},
	{"sync: two-level", 4, 2},
	{"sync: ps, compress: {by: top-k, kept: 100%}", 4, 1},
	{"sync: ps, compress: {by: top-k, kept: 100%, tensors: matrices}", 3, 1},
	{0},
};

/* Numbers that are no fallbacks. Where a gradient is nothing but rounding its mean is far less than epsilon. */
#define LEARN_ADAPTIVE FALLING(ADAMW ", weight_decay: 0.1", 0.01)
#define AS_ONE_WORKER(ratio)                                                                                           \
	.subject = &matrix_maskless_shared, .other.layout = all_alone, .other.keys = "",                               \
	.other.learn = LEARN_ADAPTIVE, .way_ratio = ratio

MATRIX_ROW(run_adaptive, servers_train_as_one_worker, matrix_is_near, .layouts = adaptive, .end = 8,
	   .learns = {LEARN_ADAPTIVE}, AS_ONE_WORKER(SAME_WAY_RATIO))
MATRIX_ROW(run_adaptive, roots_and_devices_train_as_one_worker, matrix_is_near, .layouts = adaptive, .first = 8,
	   .learns = {LEARN_ADAPTIVE}, AS_ONE_WORKER(SAME_WAY_RATIO))
MATRIX_ROW(run_adaptive, sums_in_any_order_train_as_one_worker, matrix_is_near, .layouts = adaptive, .stride = 2,
	   .learns = {LEARN_ADAPTIVE ANY_ORDER}, AS_ONE_WORKER(SAME_WAY_RATIO))
MATRIX_ROW(run_adaptive, values_in_bf16_train_about_as_one_worker, matrix_is_near,
	   MATRIX_ON({"sync: ps", 2, 1}, {"sync: two-level-ps", 4, 2}, {"sync: adam", 3, 1}), .keys = {", wire: bf16"},
	   .learns = {LEARN_ADAPTIVE ", loss_scale: 16"}, AS_ONE_WORKER(BF16_WAY_RATIO))
MATRIX_ROW(run_adaptive, values_in_fp16_train_about_as_one_worker, matrix_is_near,
	   MATRIX_ON({"sync: ps, servers: 2", 3, 1}, {"sync: ring, fuse: 1MB", 3, 1}, {"sync: hybrid", 4, 1}),
	   .keys = {", wire: fp16"}, .learns = {LEARN_ADAPTIVE ", loss_scale: 16"}, AS_ONE_WORKER(FP16_WAY_RATIO))
MATRIX_ROW(run_adaptive, a_run_repeats_exactly, matrix_repeats, .subject = &matrix_maskless_shared, .layouts = adaptive,
	   .first = 1, .stride = 2, .learns = {LEARN_ADAPTIVE})
MATRIX_ROW(run_adaptive, it_is_the_published_algorithm, matrix_follows_the_algorithm, .subject = &matrix_softmax,
	   MATRIX_ON({"sync: ps", 2, 1}, {"sync: ps, servers: 1, pair: 512B, slice: 1KiB", 2, 1},
		     {"sync: ring, fuse: 1MB", 2, 1}, {"sync: sfb", 2, 1}),
	   .learns = {FIXED("kind: adamw", 0.01),
		      FIXED("kind: adamw, beta1: 0.5, beta2: 0.9, epsilon: 0.01, weight_decay: 0.2", 0.05)},
	   .way_ratio = SAME_WAY_RATIO)
MATRIX_ROW(run_adaptive, it_learns, matrix_learns, .subject = &matrix_maskless_shared,
	   MATRIX_ON({"sync: ps", 2, 1}, {"sync: ring, fuse: 1MB", 2, 1}, {"sync: ps, compress: {by: one-bit}", 2, 1},
		     {"sync: ring, local_sgd: {steps: 4}", 2, 1}),
	   .learns = {FIXED("kind: adamw", 0.01)}, .iterations = 60, .other.iterations = 1, .other.keys = "",
	   .other.layout = &updates[SERVERS], .loss_ratio = 0.1)
MATRIX_ROW(run_adaptive, servers_resume, matrix_resumes,
	   MATRIX_ON({"sync: ps, pair: 4KiB, slice: 16KiB", 3, 1}, {"sync: ps, servers: 2", 2, 1},
		     {"sync: two-level-ps", 4, 2}, {"sync: ps, wire: bf16", 2, 1}),
	   .learns = {GOING_ON_ADAMW})
MATRIX_ROW(run_adaptive, devices_resume, matrix_resumes,
	   MATRIX_ON({"sync: ring", 1, 1}, {"sync: ring, fuse: 8KiB", 3, 1}, {"sync: hybrid", 2, 1},
		     {"sync: adam", 3, 1}, {"sync: ps, compress: {by: one-bit}", 2, 1}),
	   .learns = {GOING_ON_ADAMW})
MATRIX_ROW(run_adaptive, ratios_that_change_resume, matrix_resumes,
	   MATRIX_ON({"sync: ps, servers: 1, wire: fp16", 2, 1}, {"sync: ring, wire: fp16", 2, 1}),
	   .learns = {"data: {training_samples: 40, test_samples: 32, noise: 90}, "
		      "optimiser: {kind: adamw, beta2: 0.95}"})

/* ---- local steps ---- */

static const struct matrix_layout local[] = {
	{"sync: ring", 2, 1},
	{"sync: ring, fuse: 1MB", 3, 1},
	{"sync: halving-doubling", 4, 2},
	{"sync: two-level", 4, 2},
	{"sync: ps", 2, 1},
	{"sync: ps", 4, 2},
	{"sync: ps, servers: 2", 3, 1},
	{"sync: ps, schedule: sequential", 4, 2},
	{"sync: ps, pair: 512B, slice: 1KiB, barrier: layer, priority: forward", 3, 1},
	{"sync: two-level-ps", 4, 2},
	{"sync: two-level-ps, servers: 1", 4, 2},
	{0},
};

/* How often a parameter of norm |w| is rounded between two exchanges, when the worker goes and when all join: its step,
 * the difference to the start, the sum of these, and the new parameter; the other run rounds it once. Its effect in
 * later iterations is less than that again. A rounding is half of a float's last bit. */
#define ROUNDINGS_RATIO(n_exchanges) (2 * 5 * (n_exchanges) * (double)FLT_EPSILON / 2)
#define NEAR_BY_TENSOR(n_exchanges)                                                                                    \
	.iterations = (n_exchanges), .is_by_tensor = true, .norm_ratio = ROUNDINGS_RATIO(n_exchanges), .way_ratio = 1e-3

/* Eight samples, which all workers have in each iteration. */
static const struct matrix_subject same_samples = {
	.graph = "../../tests/data/maskless.yaml",
	.batch = 8,
	.seed = 5,
	.train = ", data: {kind: synthetic, training_samples: 8}",
};

MATRIX_ROW(run_local, one_step_is_an_exchange_of_gradients, matrix_is_near, .subject = &matrix_maskless,
	   .layouts = local, .keys = {", local_sgd: {steps: 1}"}, .other.keys = "", .learns = {FIXED(SGD, 0.05)},
	   NEAR_BY_TENSOR(6))
/* Where all have the same samples each goes where one worker alone would. 7 iterations: two whole periods and one that
 * the end cuts. */
#define ROW_AS_ONE(name, ...)                                                                                          \
	MATRIX_ROW(run_local, name, matrix_is_near, .subject = &same_samples, .layouts = local,                        \
		   .keys = {", local_sgd: {steps: 3}"}, .other.layout = all_alone, .other.keys = "",                   \
		   .learns = {__VA_ARGS__}, NEAR_BY_TENSOR(7))
ROW_AS_ONE(workers_with_the_same_samples_go_as_one, FIXED(SGD, 0.05))
/* Norms are of a worker's own gradient, as large as that of one alone; at servers, too. */
ROW_AS_ONE(lars_goes_by_a_workers_own_norms, FIXED(DECAYING_LARS, 1))
/* So are its means. Epsilon is large here: half of it, or twice as much, would show. */
ROW_AS_ONE(adamw_goes_by_a_workers_own_means,
	   FIXED("kind: adamw, beta1: 0.8, beta2: 0.9, epsilon: 0.02, weight_decay: 0.1", 0.02))
/* Also at the end of a period that the end of the run cuts: 10 iterations of 4. */
#define SAME_ON_ALL                                                                                                    \
	.subject = &matrix_maskless, .keys = {STEPS}, .iterations = 10,                                                \
	.learns = {FIXED(SGD, 0.05), FIXED(SGD, 0.05) ANY_ORDER}
MATRIX_ROW(run_local, all_end_with_the_same_bits, matrix_is_same_on_all, .layouts = local, SAME_ON_ALL)
MATRIX_ROW(run_local, all_end_with_the_same_bits_of_other_systems, matrix_is_same_on_all,
	   MATRIX_ON({"sync: ring, wire: bf16", 3, 1}, {"sync: ps, wire: bf16", 3, 1},
		     {"sync: two-level-ps, wire: bf16", 4, 2}, {"sync: ring, barrier: layer, priority: forward", 3, 1},
		     {"sync: double-tree, schedule: sequential, fuse: 4KiB", 4, 1}),
	   SAME_ON_ALL)
MATRIX_ROW(run_local, a_run_repeats_exactly, matrix_repeats, .subject = &matrix_maskless, .layouts = local, .stride = 3,
	   .keys = {STEPS}, .learns = {FIXED(SGD, 0.05)}, .iterations = 9)
/* One worker has no other to exchange with. */
MATRIX_ROW(run_local, a_single_worker_trains_as_without, matrix_has_same_bits, .subject = &matrix_maskless,
	   MATRIX_ON({"sync: ring", 1, 1}, {"sync: ps", 1, 1}, {"sync: two-level-ps", 1, 1}), .iterations = 5,
	   .keys = {", local_sgd: {steps: 4, window: 16}"}, .other.keys = "", .learns = {FIXED(SGD, 0.05)})
/* 14 iterations: neither the first period is measured nor the last two, which exchange before their time. 5 iterations:
 * the whole period counts. 3 iterations: all count, with their one exchange. The last two cases are too short to warm
 * up. */
#define ROW_PART(name, n_iterations, n_parts, ...)                                                                     \
	MATRIX_ROW(run_local, name, matrix_sends_a_part, .subject = &matrix_maskless, .layouts = local,                \
		   .keys = {STEPS}, .iterations = (n_iterations), .parts = (n_parts), .learns = {FIXED(SGD, 0.05)},    \
		   .other.keys = "", .other.iterations = 3, __VA_ARGS__)
ROW_PART(a_period_sends_the_bytes_of_an_iteration, 14, 4, .end = 0)
ROW_PART(a_short_run_counts_its_whole_period, 5, 4, .end = 1)
ROW_PART(a_run_without_a_whole_period_counts_all, 3, 3, .end = 1)
/* Saved before iterations 3 and 6, where 2 and 4 were asked for. */
MATRIX_ROW(run_local, a_resumed_run_ends_as_an_uncut_one, matrix_resumes,
	   MATRIX_ON({"sync: ring", 2, 1}, {"sync: ring, wire: bf16", 3, 1}, {"sync: ps", 3, 1},
		     {"sync: ps, servers: 2, wire: bf16", 2, 1}, {"sync: two-level-ps, barrier: layer", 4, 2}),
	   .keys = {", local_sgd: {steps: 3}"}, .learns = {GOING_ON_SGD})
MATRIX_ROW(run_local, a_resumed_run_has_its_own_means, matrix_resumes, MATRIX_ON({"sync: ps", 2, 1}),
	   .keys = {", local_sgd: {steps: 3}"},
	   .learns = {"data: {training_samples: 40, test_samples: 32}, optimiser: {kind: adamw, weight_decay: 0.1}"})

/* ---- outer optimiser ---- */

#define OUTER(text) ", local_sgd: {steps: 3, outer: {" text "}}"
/* start - 1 * mean drift. */
MATRIX_ROW(run_local, a_rate_of_one_without_momentum_is_the_mean, matrix_has_same_bits, .subject = &matrix_maskless,
	   MATRIX_ON({"sync: ring", 3, 1}, {"sync: ps", 3, 1}, {"sync: ps, wire: bf16", 2, 1},
		     {"sync: two-level-ps, servers: 1", 4, 2}),
	   .iterations = 8, .keys = {OUTER("rate: 1, momentum: 0, nesterov: false")},
	   .other.keys = ", local_sgd: {steps: 3}", .learns = {FIXED(SGD, 0.05)})
MATRIX_ROW(run_local, all_join_by_the_outer_momentum, matrix_is_same_on_all, .subject = &matrix_maskless,
	   MATRIX_ON({"sync: ring, fuse: 4KiB", 3, 1}, {"sync: ps", 3, 1}, {"sync: ps, servers: 2, wire: bf16", 2, 1},
		     {"sync: two-level-ps", 4, 2}),
	   .iterations = 10, .keys = {OUTER("")}, .learns = {FIXED(SGD, 0.05)})
MATRIX_ROW(run_local, a_run_with_outer_momentum_resumes, matrix_resumes,
	   MATRIX_ON({"sync: ring", 2, 1}, {"sync: ps", 3, 1}, {"sync: ps, servers: 2, wire: bf16", 2, 1}),
	   .keys = {OUTER("")}, .learns = {GOING_ON_SGD})

/* ---- fragments ---- */

#define TURNS ", local_sgd: {steps: 4, fragments: 3}"
MATRIX_ROW(run_local, fragments_end_with_the_same_bits, matrix_is_same_on_all, .subject = &matrix_maskless,
	   MATRIX_ON({"sync: ring", 3, 1}, {"sync: ps", 3, 1}, {"sync: ps, servers: 2, wire: bf16", 2, 1},
		     {"sync: two-level-ps, barrier: layer", 4, 2},
		     {"sync: ps, compress: {by: int8}, priority: forward", 3, 1}),
	   .iterations = 10, .keys = {TURNS, ", local_sgd: {steps: 4, fragments: 4, outer: {}}"},
	   .learns = {FIXED(SGD, 0.05)})
MATRIX_ROW(run_local, a_period_of_fragments_sends_the_bytes_of_an_iteration, matrix_sends_a_part,
	   .subject = &matrix_maskless, .layouts = local, .keys = {TURNS}, .iterations = 14, .parts = 4,
	   .learns = {FIXED(SGD, 0.05)}, .other.keys = "", .other.iterations = 3, .end = 0)

/* ---- delay ---- */

MATRIX_ROW(run_local, no_delay_and_one_fragment_are_as_without, matrix_has_same_bits, .subject = &matrix_maskless,
	   MATRIX_ON({"sync: ring", 3, 1}, {"sync: ps", 3, 1}), .iterations = 9,
	   .keys = {", local_sgd: {steps: 4, delay: 0, fragments: 1}"}, .other.keys = STEPS,
	   .learns = {FIXED(SGD, 0.05)})
MATRIX_ROW(run_local, late_joins_end_with_the_same_bits, matrix_is_same_on_all, .subject = &matrix_maskless,
	   MATRIX_ON({"sync: ring, fuse: 4KiB", 3, 1}, {"sync: ps", 3, 1}, {"sync: ps, servers: 2, wire: bf16", 2, 1},
		     {"sync: two-level-ps, barrier: layer", 4, 2},
		     {"sync: ps, compress: {by: int8}, priority: forward", 3, 1}),
	   .iterations = 11,
	   .keys = {", local_sgd: {steps: 4, delay: 3}", ", local_sgd: {steps: 4, fragments: 3, delay: 2, outer: {}}"},
	   .learns = {FIXED(SGD, 0.05)})
MATRIX_ROW(run_local, a_prediction_counts_the_bytes_of_turns, matrix_sends_as_predicted,
	   MATRIX_ON({"sync: ring", 0, 0}, {"sync: ps, servers: 1", 0, 0}, {"sync: ps, compress: {by: int8}", 0, 0}),
	   .cluster = "nodes: 3}", .keys = {TURNS, ", local_sgd: {steps: 4, fragments: 2, delay: 3}"})
