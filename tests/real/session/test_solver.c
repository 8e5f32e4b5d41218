/* Learning rates against their formulas in caffe.proto, updates against steps done by hand. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "real/session/solver.h"

static const double tolerance_ratio = 1e-13;

static void expect_rate(const struct psd_learning_rate *rate, uint64_t iteration, double expected)
{
	const double actual = psd_solver_rate(rate, iteration);

	cr_expect(fabs(actual - expected) <= tolerance_ratio * expected, "iteration %lu: %.17g, not %.17g",
		  (unsigned long)iteration, actual, expected);
}

/* base ^ exponent by multiplication, as a person would. */
static double power_of(double base, unsigned exponent)
{
	double product = 1;

	for (unsigned i = 0; i < exponent; i++)
		product *= base;
	return product;
}

/* ---- learning rates ---- */

Test(solver, fixed_stays)
{
	const struct psd_learning_rate rate = {.policy = PSD_RATE_FIXED, .base = 0.01};

	expect_rate(&rate, 0, 0.01);
	expect_rate(&rate, 123456, 0.01);
}

/* base_lr * gamma ^ (floor(iter / step)) */
Test(solver, step_falls_every_so_often)
{
	const struct psd_learning_rate rate = {
		.policy = PSD_RATE_STEP, .base = 0.01, .gamma = 0.1, .step_iterations = 100};

	expect_rate(&rate, 0, 0.01);
	expect_rate(&rate, 99, 0.01);
	expect_rate(&rate, 100, 0.01 * 0.1);
	expect_rate(&rate, 350, 0.01 * power_of(0.1, 3));
}

/* as step, at the given iterations */
Test(solver, multistep_falls_where_told)
{
	const struct psd_learning_rate rate = {
		.policy = PSD_RATE_MULTISTEP, .base = 0.5, .gamma = 0.5, .steps_at = {10, 11, 50}, .n_steps = 3};

	expect_rate(&rate, 9, 0.5);
	expect_rate(&rate, 10, 0.25);
	expect_rate(&rate, 11, 0.125);
	expect_rate(&rate, 49, 0.125);
	expect_rate(&rate, 50, 0.0625);
	expect_rate(&rate, 1000000, 0.0625);
}

/* base_lr * (1 + gamma * iter) ^ (- power) */
Test(solver, inv_falls_hyperbolically)
{
	const struct psd_learning_rate rate = {.policy = PSD_RATE_INV, .base = 0.01, .gamma = 0.5, .power = 2};

	expect_rate(&rate, 0, 0.01);
	expect_rate(&rate, 2, 0.01 / 4);    /* (1 + 0.5 * 2) ^ 2 */
	expect_rate(&rate, 18, 0.01 / 100); /* (1 + 0.5 * 18) ^ 2 */
}

/* base_lr * gamma ^ iter */
Test(solver, exp_falls_geometrically)
{
	const struct psd_learning_rate rate = {.policy = PSD_RATE_EXP, .base = 2, .gamma = 0.99};

	expect_rate(&rate, 0, 2);
	expect_rate(&rate, 1, 2 * 0.99);
	expect_rate(&rate, 20, 2 * power_of(0.99, 20));
}

/* base_lr * (1 - iter / max_iter) ^ power */
Test(solver, poly_ends_at_zero)
{
	const struct psd_learning_rate rate = {.policy = PSD_RATE_POLY, .base = 0.1, .power = 3, .max_iterations = 200};

	expect_rate(&rate, 0, 0.1);
	expect_rate(&rate, 50, 0.1 * 0.75 * 0.75 * 0.75);
	expect_rate(&rate, 150, 0.1 * power_of(0.25, 3));
	expect_rate(&rate, 200, 0);
	expect_rate(&rate, 5000, 0);
}

Test(solver, warm_up_rises_in_equal_steps_to_the_policys_rate)
{
	const struct psd_learning_rate fixed = {.policy = PSD_RATE_FIXED, .base = 0.4, .warmup_iterations = 4};
	const struct psd_learning_rate exp = {.policy = PSD_RATE_EXP, .base = 1, .gamma = 0.5, .warmup_iterations = 2};

	expect_rate(&fixed, 0, 0.1);
	expect_rate(&fixed, 1, 0.2);
	expect_rate(&fixed, 2, 0.4 * 0.75);
	expect_rate(&fixed, 3, 0.4);
	expect_rate(&fixed, 4, 0.4);
	expect_rate(&exp, 0, 1.0 / 2);
	expect_rate(&exp, 1, 0.5);
	expect_rate(&exp, 2, 0.25);
}

/* From a half of 0.4: 0.2 + (i + 1) / 4 of the other 0.2. */
Test(solver, warm_up_may_start_at_a_share)
{
	const struct psd_learning_rate rate = {
		.policy = PSD_RATE_FIXED, .base = 0.4, .warmup_iterations = 4, .warmup_start_ratio = 0.5};

	expect_rate(&rate, 0, 0.25);
	expect_rate(&rate, 1, 0.3);
	expect_rate(&rate, 3, 0.4);
	expect_rate(&rate, 4, 0.4);
}

/* ---- updates ---- */

Test(solver, an_update_takes_its_numbers_from_the_job)
{
	const struct psd_train train = {
		.rate = {.policy = PSD_RATE_STEP, .base = 1, .gamma = 0.5, .step_iterations = 10},
		.optimiser = {.momentum = 0.75, .weight_decay = 0.125, .is_nesterov = true},
	};
	const struct psd_update update = psd_solver_update(&train, 32, 10);

	cr_expect_eq(update.rate, 0.5f);
	cr_expect_eq(update.momentum, 0.75f);
	cr_expect_eq(update.weight_decay, 0.125f);
	cr_expect(update.is_nesterov);
}

Test(solver, a_rate_for_a_batch_grows_with_it)
{
	const struct psd_train train = {.rate = {.policy = PSD_RATE_FIXED, .base = 0.5, .for_batch = 256}};

	cr_expect_eq(psd_solver_update(&train, 256, 0).rate, 0.5f);
	cr_expect_eq(psd_solver_update(&train, 1024, 0).rate, 2.0f);
	cr_expect_eq(psd_solver_update(&train, 64, 0).rate, 0.125f);
}

/* norm(w) = norm(3, 4, 0...) = 5 and norm(g) = norm(6, 0, 8, 0...) = 10, values far apart: 0.5 trust * 5 / (10 + 0.5 *
 * 5) = 0.2 */
Test(solver, lars_goes_by_the_norms_of_a_tensor)
{
	const struct psd_train train = {
		.rate = {.policy = PSD_RATE_FIXED, .base = 2},
		.optimiser = {.kind = PSD_OPTIMISER_LARS, .trust_ratio = 0.5, .weight_decay = 0.5}};
	const struct psd_update update = psd_solver_update(&train, 1, 0);
	float weight[37] = {[0] = 3, [36] = -4}, gradient[37] = {[15] = 6, [33] = -8};
	const float zeros[37] = {0};

	cr_expect_float_eq(psd_solver_update_by_norms(update, weight, gradient, 37).rate, 2 * 0.2, 1e-6);
	/* without the last weight: 0.5 * 3 / (10 + 0.5 * 3) */
	cr_expect_float_eq(psd_solver_update_by_norms(update, weight, gradient, 36).rate, 2 * 1.5 / 11.5, 1e-6);
	cr_expect_eq(psd_solver_update_by_norms(update, zeros, gradient, 37).rate, 2.0f);
	cr_expect_eq(psd_solver_update_by_norms(update, weight, zeros, 37).rate, 2.0f);
}

Test(solver, without_lars_norms_count_nothing)
{
	const struct psd_train train = {.rate = {.policy = PSD_RATE_FIXED, .base = 2}, .optimiser = {.trust_ratio = 1}};
	const float weight[] = {3}, gradient[] = {6};

	cr_expect_eq(psd_solver_update_by_norms(psd_solver_update(&train, 1, 0), weight, gradient, 1).rate, 2.0f);
}

/* Numbers with few binary digits, so that every step is exact and equality is the right comparison. */
Test(solver, three_steps_with_momentum_by_hand)
{
	const struct psd_update update = {.rate = 0.5f, .momentum = 0.5f, .weight_decay = 0.25f};
	const float gradients[] = {1, -2, 0.5f};
	/* step 1: g + wd w = 1 + 0.25 * 4 = 2;          h = 0.5 * 0 + 0.5 * 2 = 1;              w = 4 - 1 = 3
	 * step 2: g + wd w = -2 + 0.25 * 3 = -1.25;     h = 0.5 * 1 - 0.5 * 1.25 = -0.125;      w = 3.125
	 * step 3: g + wd w = 0.5 + 0.78125 = 1.28125;   h = -0.0625 + 0.640625 = 0.578125;      w = 2.546875 */
	const float weights[] = {3, 3.125f, 2.546875f}, histories[] = {1, -0.125f, 0.578125f};
	float weight = 4, history = 0;

	for (unsigned i = 0; i < 3; i++) {
		psd_solver_apply(&update, &weight, &gradients[i], &history, 1);
		cr_expect_eq(history, histories[i], "step %u: history %.9g", i + 1, (double)history);
		cr_expect_eq(weight, weights[i], "step %u: weight %.9g", i + 1, (double)weight);
	}
}

Test(solver, three_nesterov_steps_by_hand)
{
	const struct psd_update update = {.rate = 0.5f, .momentum = 0.5f, .weight_decay = 0.25f, .is_nesterov = true};
	const float gradients[] = {1, -2, 0.5f};
	/* step 1: g + wd w = 2;                              h = 1;                              w = 4 - (1.5 * 1 - 0.5
	 * * 0) = 2.5 step 2: -2 + 0.625 = -1.375;    h = 0.5 - 0.6875 = -0.1875;    w = 2.5 - (1.5 * -0.1875 - 0.5 * 1)
	 * = 3.28125 step 3: 0.5 + 0.8203125 = 1.3203125;  h = -0.09375 + 0.66015625 = 0.56640625; w = 3.28125 - (1.5 *
	 * 0.56640625 - 0.5 * -0.1875) = 3.28125 - 0.943359375 = 2.337890625 */
	const float weights[] = {2.5f, 3.28125f, 2.337890625f}, histories[] = {1, -0.1875f, 0.56640625f};
	float weight = 4, history = 0;

	for (unsigned i = 0; i < 3; i++) {
		psd_solver_apply(&update, &weight, &gradients[i], &history, 1);
		cr_expect_eq(history, histories[i], "step %u: history %.9g", i + 1, (double)history);
		cr_expect_eq(weight, weights[i], "step %u: weight %.9g", i + 1, (double)weight);
	}
}

enum { ELEMENTS = 1003 };

struct tensor {
	float weight[ELEMENTS], gradient[ELEMENTS], history[ELEMENTS];
};

static float any_number(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return (float)(*state >> 8) * 0x1p-23f - 1.0f;
}

static void fill(struct tensor *tensor)
{
	uint32_t state = 42;

	for (unsigned i = 0; i < ELEMENTS; i++) {
		tensor->weight[i] = any_number(&state);
		tensor->gradient[i] = any_number(&state);
		tensor->history[i] = any_number(&state);
	}
}

static void apply_range(struct tensor *tensor, const struct psd_update *update, size_t begin, size_t end)
{
	psd_solver_apply(update, tensor->weight + begin, tensor->gradient + begin, tensor->history + begin,
			 end - begin);
}

static void expect_slices_equal_whole(bool is_nesterov)
{
	static const size_t cuts[] = {0, 1, 1, 17, 33, 34, 500, 1002, ELEMENTS}; /* aligned and not, empty, single */
	const struct psd_update update = {
		.rate = 0.3f, .momentum = 0.9f, .weight_decay = 0.0005f, .is_nesterov = is_nesterov};
	static struct tensor whole, sliced, before;

	fill(&whole);
	before = whole;
	sliced = whole;
	apply_range(&whole, &update, 0, ELEMENTS);
	for (size_t i = sizeof(cuts) / sizeof(cuts[0]) - 1; i > 0;
	     i--) /* backwards: the order does not matter either */
		apply_range(&sliced, &update, cuts[i - 1], cuts[i]);
	cr_expect_eq(memcmp(&whole, &sliced, sizeof(whole)), 0);
	cr_expect_eq(memcmp(whole.gradient, before.gradient, sizeof(whole.gradient)), 0, "gradients are only read");
	for (unsigned i = 0; i < ELEMENTS; i++)
		cr_assert_neq(whole.weight[i], before.weight[i], "element %u has not moved", i);
}

Test(solver, slices_give_the_bits_of_the_whole)
{
	expect_slices_equal_whole(false);
	expect_slices_equal_whole(true);
}

Test(solver, every_element_gets_the_documented_update)
{
	static struct tensor tensor, before;

	for (unsigned is_nesterov = 0; is_nesterov < 2; is_nesterov++) {
		const struct psd_update update = {
			.rate = 0.3f, .momentum = 0.9f, .weight_decay = 0.0005f, .is_nesterov = is_nesterov};

		fill(&tensor);
		before = tensor;
		apply_range(&tensor, &update, 0, ELEMENTS);
		for (unsigned i = 0; i < ELEMENTS; i++) {
			const double gradient = (double)before.gradient[i] + 0.0005 * (double)before.weight[i];
			const double history = 0.9 * (double)before.history[i] + 0.3 * gradient;
			const double change = is_nesterov ? 1.9 * history - 0.9 * (double)before.history[i] : history;

			/* float arithmetic on numbers of size 1 to 4 */
			cr_assert_float_eq((double)tensor.history[i], history, 1e-6);
			cr_assert_float_eq((double)tensor.weight[i], (double)before.weight[i] - change, 1e-6);
		}
	}
}
