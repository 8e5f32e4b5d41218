/* Learning rates against their formulas in caffe.proto, updates that take their numbers from the job. */
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "real/work/solver.h"

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

/* lowest + (base - lowest) (1 + cos(pi (i - warm-up) / (max - warm-up))) / 2: cos is 1, sqrt(1/2), 0, -1 at 0, 1/4, 1/2
 * and all of the distance from 4 to 12. */
Test(solver, cosine_falls_behind_the_warm_up)
{
	const struct psd_learning_rate rate = {
		.policy = PSD_RATE_COSINE, .base = 1, .lowest = 0.2, .max_iterations = 12, .warmup_iterations = 4};

	expect_rate(&rate, 0, 0.25);
	expect_rate(&rate, 3, 1);
	expect_rate(&rate, 4, 1);
	expect_rate(&rate, 6, 0.6 + 0.4 * 0.70710678118654752);
	expect_rate(&rate, 8, 0.6);
	expect_rate(&rate, 12, 0.2);
	expect_rate(&rate, 5000, 0.2);
}

Test(solver, cosine_that_ends_in_its_warm_up_is_at_its_lowest_there)
{
	const struct psd_learning_rate rate = {
		.policy = PSD_RATE_COSINE, .base = 1, .lowest = 0.5, .max_iterations = 2, .warmup_iterations = 4};

	expect_rate(&rate, 1, 0.5);
	expect_rate(&rate, 2, 0.375); /* three quarters of the lowest */
	expect_rate(&rate, 4, 0.5);
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

/* Iterations whose rate is less than that of the one before, but for policies whose rate always falls a little. */
static void expect_drops(const struct psd_learning_rate *rate)
{
	for (uint64_t first = 0; first < 60; first++)
		for (uint64_t end = first + 1; end < 60; end++) {
			bool drops = false;

			for (uint64_t i = first > 1 ? first : 1; i < end; i++)
				drops = drops || psd_solver_rate(rate, i) < psd_solver_rate(rate, i - 1);
			cr_assert_eq(psd_solver_drops(rate, first, end), drops, "%lu to %lu", (unsigned long)first,
				     (unsigned long)end);
		}
}

Test(solver, a_rate_drops_where_it_falls_by_a_step)
{
	const struct psd_learning_rate step = {
		.policy = PSD_RATE_STEP, .base = 0.01, .gamma = 0.1, .step_iterations = 20};
	const struct psd_learning_rate multistep = {
		.policy = PSD_RATE_MULTISTEP, .base = 0.5, .gamma = 0.5, .steps_at = {10, 11, 50}, .n_steps = 3};
	const struct psd_learning_rate fixed = {.policy = PSD_RATE_FIXED, .base = 0.5};
	const struct psd_learning_rate exp = {.policy = PSD_RATE_EXP, .base = 2, .gamma = 0.5};

	expect_drops(&step);
	expect_drops(&multistep);
	expect_drops(&fixed);
	cr_expect_not(psd_solver_drops(&exp, 0, 100), "it falls by no step");
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

	cr_expect_float_eq(psd_update_by_norms(update, weight, gradient, 37).rate, 2 * 0.2, 1e-6);
	/* without the last weight: 0.5 * 3 / (10 + 0.5 * 3) */
	cr_expect_float_eq(psd_update_by_norms(update, weight, gradient, 36).rate, 2 * 1.5 / 11.5, 1e-6);
	cr_expect_eq(psd_update_by_norms(update, zeros, gradient, 37).rate, 2.0f);
	cr_expect_eq(psd_update_by_norms(update, weight, zeros, 37).rate, 2.0f);
}

Test(solver, without_lars_norms_count_nothing)
{
	const struct psd_train train = {.rate = {.policy = PSD_RATE_FIXED, .base = 2}, .optimiser = {.trust_ratio = 1}};
	const float weight[] = {3}, gradient[] = {6};

	cr_expect_eq(psd_update_by_norms(psd_solver_update(&train, 1, 0), weight, gradient, 1).rate, 2.0f);
}

/* ---- one of several workers ---- */

/* Powers of two, so that nothing is rounded. A batch of 8 by 4 workers: the gradient (6, -8) of one, divided by its own
 * 2 samples, comes to the update as (1.5, -2), divided by 8. rate (gradient + decay weight) = 0.5 ((6, -8) + 0.25 (16,
 * 64)) = (5, 4), and so do the 4 times as many of a quarter. */
Test(solver, a_workers_own_update_is_by_its_own_gradient)
{
	const struct psd_train train = {.rate = {.policy = PSD_RATE_FIXED, .base = 0.5},
					.optimiser = {.momentum = 0.5, .weight_decay = 0.25}};
	const struct psd_update update = psd_solver_own_update(&train, 4, 8, 0);
	const float gradient[] = {1.5f, -2.0f};
	float weight[] = {16, 64}, history[] = {2, 4};

	psd_update_apply(&update, weight, gradient, (struct psd_moments){.history = history}, 2);
	cr_expect_eq(history[0], 1 + 5.0f);
	cr_expect_eq(history[1], 2 + 4.0f);
	cr_expect_eq(weight[0], 16 - 6.0f);
	cr_expect_eq(weight[1], 64 - 6.0f);
}

/* In the third step, with betas whose powers are exact: 1 / (1 - 1/8), 1 / sqrt(1 - 1/64). Neither the samples nor, in
 * a worker's own update, the number of workers change how far it goes but by what is added to the root. */
Test(solver, an_adaptive_update_undoes_that_means_begin_with_0)
{
	const struct psd_train train = {.rate = {.policy = PSD_RATE_FIXED, .base = 0.5},
					.optimiser = {.kind = PSD_OPTIMISER_ADAMW,
						      .beta1 = 0.5,
						      .beta2 = 0.25,
						      .epsilon = 0.125,
						      .weight_decay = 0.25}};
	const struct psd_update update = psd_solver_update(&train, 8, 2), own = psd_solver_own_update(&train, 4, 8, 2);

	cr_expect_eq(update.adaptive.beta1, 0.5f);
	cr_expect_eq(update.adaptive.beta2, 0.25f);
	cr_expect_eq(update.adaptive.epsilon, 0.125f);
	cr_expect_eq(update.adaptive.mean_ratio, (float)(8.0 / 7.0));
	cr_expect_eq(update.adaptive.root_ratio, (float)(8.0 / sqrt(63.0)));
	cr_expect_eq(own.rate, 0.5f);
	cr_expect_eq(own.weight_decay, 0.25f);
	cr_expect_eq(own.adaptive.epsilon, 0.125f / 4);
	cr_expect_eq(own.adaptive.mean_ratio, update.adaptive.mean_ratio);
}

/* From zeros both means are the gradient's own once they are divided by what they lack, so that each parameter goes by
 * the rate: also where 1 - beta is rounded by a thousandth of itself. */
Test(solver, the_first_adaptive_step_is_as_long_as_the_rate)
{
	static const double betas[] = {0, 0.9, 0.999, 0.999999};
	const double rate = 0.5, tolerance = rate * 8 * (double)FLT_EPSILON;

	for (unsigned b = 0; b < sizeof(betas) / sizeof(betas[0]); b++) {
		const struct psd_train train = {
			.rate = {.policy = PSD_RATE_FIXED, .base = rate},
			.optimiser = {
				.kind = PSD_OPTIMISER_ADAMW, .beta1 = betas[b], .beta2 = betas[b], .epsilon = 1e-12}};
		const struct psd_update update = psd_solver_update(&train, 8, 0);
		const float gradient[] = {0.37f, -0.0021f};
		float weight[] = {0, 0}, history[] = {0, 0}, squares[] = {0, 0};

		psd_update_apply(&update, weight, gradient, (struct psd_moments){history, squares}, 2);
		cr_expect_float_eq((double)weight[0], -rate, tolerance, "%g: %.9g", betas[b], (double)weight[0]);
		cr_expect_float_eq((double)weight[1], rate, tolerance, "%g: %.9g", betas[b], (double)weight[1]);
	}
}

/* As above; norm(6, -8) = 10, norm(3, 4) = 5: the rate is 2 * 0.5 * 5 / (10 + 0.5 * 5) = 0.4, and each steps by it
 * times (6, -8) + 0.5 (3, 4) = (7.5, -6). */
Test(solver, a_workers_own_update_has_its_own_norms)
{
	const struct psd_train train = {
		.rate = {.policy = PSD_RATE_FIXED, .base = 2},
		.optimiser = {.kind = PSD_OPTIMISER_LARS, .trust_ratio = 0.5, .weight_decay = 0.5}};
	const float gradient[] = {1.5f, -2.0f};
	float weight[] = {3, 4}, history[] = {0, 0};
	const struct psd_update update =
		psd_update_by_norms(psd_solver_own_update(&train, 4, 8, 0), weight, gradient, 2);

	psd_update_apply(&update, weight, gradient, (struct psd_moments){.history = history}, 2);
	cr_expect_float_eq(weight[0], 3 - 0.4 * 7.5, 1e-6);
	cr_expect_float_eq(weight[1], 4 + 0.4 * 6, 1e-6);
}
