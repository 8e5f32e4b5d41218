/* Draws of jitter, spread and tail: their means, their spread, and equal draws for equal seeds. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "engine/program/jitter.h"

enum { N = 20000 };

static const struct psd_spread none = {.ratio = 0.0};

Test(jitter, without_a_spread_nothing_is_drawn)
{
	const struct psd_scenario scenario = {.seed = 1};
	const struct psd_op op = {.kind = PSD_OP_FORWARD};

	cr_expect_eq(psd_spread_factor(&none, 1, 3, 5), 1.0);
	cr_expect_eq(psd_jittered_sec(&scenario, 0, &op, PSD_RESOURCE_DEVICE, (struct psd_task){.op = 2}, 0.5), 0.5);
	cr_expect_not(psd_jitter_is_drawn(&scenario));
	cr_expect_eq(psd_jitter_iterations(&scenario), 0);
}

Test(jitter, a_spread_has_mean_1_and_its_deviation)
{
	const struct psd_spread spread = {.ratio = 0.2};
	double sum = 0.0, squares = 0.0;

	for (uint32_t i = 0; i < N; i++) {
		const double factor = psd_spread_factor(&spread, 7, i % 4, i);

		sum += factor;
		squares += (factor - 1.0) * (factor - 1.0);
	}
	cr_expect_float_eq(sum / N, 1.0, 4 * 0.2 / sqrt(N), "%g", sum / N);
	cr_expect_float_eq(sqrt(squares / N), 0.2, 0.01, "%g", sqrt(squares / N));
}

Test(jitter, a_tail_has_its_share_of_iterations)
{
	const struct psd_spread spread = {.tail_chance_ratio = 0.01, .tail_factor = 3};
	unsigned n_slow = 0;

	for (uint32_t i = 0; i < N; i++) {
		const double factor = psd_spread_factor(&spread, 7, i % 4, i);

		cr_assert(factor == 1.0 || factor == 3.0);
		n_slow += factor == 3.0;
	}
	cr_expect(abs((int)n_slow - N / 100) < 4 * 14, "%u", n_slow); /* the deviation is the root of N / 100 */
}

/* All of a worker's device work in an iteration has one factor; its layers have their own beside it. */
Test(jitter, an_iteration_has_one_factor)
{
	const struct psd_scenario scenario = {.seed = 3, .spread = {.ratio = 0.3}};
	const struct psd_op layer = {.kind = PSD_OP_BACKWARD}, update = {.kind = PSD_OP_APPLY};
	const struct psd_task a = {.iteration = 4, .op = 1}, b = {.iteration = 4, .op = 9};
	const double factor = psd_spread_factor(&scenario.spread, 3, 2, 4);

	cr_expect_eq(psd_jittered_sec(&scenario, 2, &layer, PSD_RESOURCE_DEVICE, a, 2.0), 2.0 * factor);
	cr_expect_eq(psd_jittered_sec(&scenario, 2, &update, PSD_RESOURCE_DEVICE, b, 2.0), 2.0 * factor);
	cr_expect_eq(psd_jittered_sec(&scenario, 2, &update, PSD_RESOURCE_NIC, b, 2.0), 2.0);
	cr_expect_neq(psd_spread_factor(&scenario.spread, 3, 2, 5), factor);
	cr_expect_neq(psd_spread_factor(&scenario.spread, 3, 1, 4), factor);
	cr_expect_neq(psd_spread_factor(&scenario.spread, 4, 2, 4), factor);
	cr_expect(psd_jitter_is_drawn(&scenario));
	cr_expect_eq(psd_jitter_iterations(&scenario), 100);
}
