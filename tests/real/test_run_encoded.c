/* Whole runs on loopback whose values travel as 2 bytes and leave the range of their encoding: these updates move
 * nothing, and a loss scale falls until updates go through. How all others train is in test_run_gradients.c. */
#include <criterion/criterion.h>
#include <math.h>

#include "tests/real/matrix_keys.h"

TestSuite(run_encoded, .timeout = 120);

static struct training *train(const struct matrix_layout *of, const char *wire, unsigned iterations, const char *learn)
{
	char system[128];
	const struct matrix_layout encoded = {system, of->workers, of->workers_per_node};

	snprintf(system, sizeof(system), "%s, wire: %s", of->system, wire);
	return matrix_train(&matrix_quick, &encoded, iterations, learn);
}

/* Every exchange has a gradient that 10^9 takes out of fp16's range, in every iteration: 65504 / 10^9 is far below. */
static void check_range(const struct matrix_layout *of)
{
	struct training *few = train(of, "fp16", 1, ", loss_scale: 1e9"),
			*more = train(of, "fp16", 4, ", loss_scale: 1e9"),
			*moved = train(of, "fp16", 4, ", loss_scale: 1024"),
			*unscaled = train(of, "bf16", 4, ", loss_scale: 1e9"), *plain = train(of, "bf16", 4, "");

	cr_expect(training_is_same(few, 0, more, 0), "%s", of->system);
	cr_expect_gt(more->result.n_updates, 0, "%s", of->system);
	cr_expect_eq(more->result.n_left_out, more->result.n_updates, "%s", of->system);
	cr_expect_eq(moved->result.n_updates, more->result.n_updates, "%s", of->system);
	cr_expect_eq(moved->result.n_left_out, 0, "%s", of->system);
	cr_expect_eq(unscaled->result.n_updates, 0, "%s", of->system);
	cr_expect_gt(training_distance(moved, more), 0.0, "%s", of->system);
	cr_expect(training_is_same(unscaled, 0, plain, 0), "%s", of->system);
	training_free(few);
	training_free(more);
	training_free(moved);
	training_free(unscaled);
	training_free(plain);
}

/* Each of the servers has a part of what left it. */
#define RANGE(name, ...)                                                                                               \
	Test(run_encoded, name)                                                                                        \
	{                                                                                                              \
		const struct matrix_layout layouts[] = {__VA_ARGS__};                                                  \
                                                                                                                       \
		for (unsigned l = 0; l < sizeof(layouts) / sizeof(layouts[0]); l++)                                    \
			check_range(&layouts[l]);                                                                      \
	}
RANGE(sums_that_leave_the_range_move_nothing, {"sync: ring", 2, 1})
RANGE(sums_of_servers_that_leave_the_range_move_nothing, {"sync: ps", 2, 1}, {"sync: ps, servers: 2", 2, 1},
      {"sync: ps, pair: 512B, slice: 8KiB", 2, 1})
RANGE(factors_that_leave_the_range_move_nothing, {"sync: sfb", 2, 1}, {"sync: hybrid", 2, 1})
RANGE(sums_of_roots_that_leave_the_range_move_nothing, {"sync: adam", 2, 1},
      {"sync: adam, pair: 512B, slice: 8KiB, servers: 1", 2, 1})
RANGE(sums_of_a_node_that_leave_the_range_move_nothing, {"sync: two-level-ps", 4, 2})
RANGE(slices_of_a_node_that_leave_the_range_move_nothing,
      {"sync: two-level-ps, servers: 2, pair: 512B, slice: 8KiB", 4, 2})

/* ---- the loss scale ---- */

/* Two inner products, the first of which is loud: the second's gradient is larger than 65504 / 32768. */
static const struct matrix_subject loud = {
	.graph = "loud.prototxt",
	.text = "input: 'data' input_shape { dim: [1, 30] }\n"
		"layer { name: 'a' type: 'InnerProduct' bottom: 'data' top: 'a' inner_product_param { "
		"num_output: 40 weight_filler { type: 'gaussian' std: 4 } } }\n"
		"layer { name: 'b' type: 'InnerProduct' bottom: 'a' top: 'b' inner_product_param { "
		"num_output: 50 weight_filler { type: 'gaussian' std: 0.1 } } }\n"
		"layer { name: 'loss' type: 'Softmax' bottom: 'b' }\n",
	.batch = 8,
	.seed = 1,
};

/* Change of the second matrix. */
static double loud_way(const struct training *from, const struct training *to)
{
	enum { FIRST = 30 * 40 + 40, END = FIRST + 40 * 50 };

	return training_values_distance(training_parameters(from, 0) + FIRST, training_parameters(to, 0) + FIRST,
					END - FIRST);
}

/* Few updates are left out before the scale is small enough, each halving it for all workers and servers alike: were it
 * another at a server, its updates would be larger or smaller by a power of two. */
static void check_scale(const char *system, const char *more)
{
	enum { ITERATIONS = 40, MOST_LEFT_OUT = 10 };
	const struct matrix_layout of = {system, 2, 1};
	char learn[128], fixed_learn[] = ", learning_rate: {base: 1e-4}, loss_scale: 16";
	struct training *begun, *once, *fixed, *dynamic;
	double way_ratio;

	snprintf(learn, sizeof(learn), ", learning_rate: {base: 1e-4}%s", more);
	begun = matrix_train(&loud, &of, 1, ", learning_rate: {base: 1e-9}");
	once = matrix_train(&loud, &of, 1, learn);
	fixed = matrix_train(&loud, &of, ITERATIONS, fixed_learn);
	dynamic = matrix_train(&loud, &of, ITERATIONS, learn);
	way_ratio = loud_way(begun, dynamic) / loud_way(begun, fixed);
	cr_expect_lt(loud_way(begun, once), 1e-6, "%s: the first update was not left out", system);
	cr_expect(way_ratio < 1.0 && way_ratio > 1.0 - (double)MOST_LEFT_OUT / ITERATIONS, "%s: %g of the way", system,
		  way_ratio);
	training_free(begun);
	training_free(once);
	training_free(fixed);
	training_free(dynamic);
}

Test(run_encoded, a_dynamic_scale_falls_until_updates_go_through)
{
	check_scale("sync: ring, wire: fp16", "");
	check_scale("sync: ps, wire: fp16", "");
	check_scale("sync: ps, servers: 2, pair: 512B, slice: 4KiB, wire: fp16", ANY_ORDER);
}

/* A message that a worker may not add before its own step has left waits outside; it comes in when that has left, not
 * when a sign of life is next due, a quarter of this limit later. */
Test(run_encoded, a_message_that_waits_for_a_step_comes_in_when_that_has_left, .timeout = 60)
{
	struct training *training = matrix_make(
		&matrix_quick, &(struct matrix_layout){"sync: recursive-doubling, wire: fp16, priority: forward", 4, 1},
		4, "");

	training->options.worker.stall_sec = 3600;
	training_free(training_finish(training, "recursive-doubling"));
}
