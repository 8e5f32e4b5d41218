/* Local steps by the law of AdaComm: expected numbers are worked out beside them. */
#include <criterion/criterion.h>
#include <math.h>

#include "real/session/quality.h"

static const struct psd_local_sgd by_loss = {.steps = 20, .window = 32};
static const struct psd_local_sgd bounded = {.steps = 20, .window = 32, .gap_ratio = 0.25};

static void expect_steps(const struct psd_local_sgd *local, double first, double lowest, double last, uint32_t before,
			 uint32_t expected)
{
	const struct psd_losses_seen losses = {first, lowest, last};
	const uint32_t steps = psd_quality_steps(local, &losses, before, false);

	cr_expect_eq(steps, expected, "first %g, lowest %g, last %g, %u before: %u, not %u", first, lowest, last,
		     before, steps, expected);
}

Test(quality, steps_go_with_the_root_of_the_loss)
{
	expect_steps(&by_loss, 4, 4, 1, 20, 10);     /* sqrt(1 / 4) 20 */
	expect_steps(&by_loss, 4, 4, 1.1, 20, 11);   /* sqrt(0.275) 20 = 10.49, rounded up */
	expect_steps(&by_loss, 4, 4, 0.0004, 20, 1); /* sqrt(0.0001) 20 = 0.2 */
	expect_steps(&by_loss, 4, 4, 3.9, 20, 10);   /* sqrt(0.975) 20 = 19.75: no fewer, so half */
	expect_steps(&by_loss, 4, 4, 3.6, 20, 19);   /* sqrt(0.9) 20 = 18.97 */
}

Test(quality, steps_are_halved_where_the_loss_asks_for_no_fewer)
{
	expect_steps(&by_loss, 4, 1, 1, 10, 5);
	expect_steps(&by_loss, 4, 1, 9, 7, 3);
	expect_steps(&by_loss, 4, 1, 9, 2, 1);
	expect_steps(&by_loss, 4, 1, 9, 1, 1); /* there is no half of it */
}

Test(quality, a_loss_that_is_no_number_halves_them)
{
	expect_steps(&by_loss, 4, 1, (double)NAN, 8, 4);
	expect_steps(&by_loss, (double)NAN, 1, 1, 8, 4);
	expect_steps(&by_loss, 0, 1, 0, 8, 4);
	expect_steps(&by_loss, 4, 1, (double)INFINITY, 8, 4);
	expect_steps(&by_loss, -1, -2, 1, 8, 4);
}

/* A quarter above the lowest, 2, is 2.5. */
Test(quality, a_loss_far_above_the_lowest_ends_local_steps)
{
	expect_steps(&bounded, 10, 2, 2.5, 20, 10); /* sqrt(0.25) 20 */
	expect_steps(&bounded, 10, 2, 2.51, 20, 1);
	expect_steps(&bounded, 10, 2, (double)NAN, 20, 1);
	expect_steps(&bounded, 10, (double)INFINITY, 2.5, 20, 10); /* there is no lowest yet */
}

Test(quality, a_rate_that_falls_ends_local_steps)
{
	const struct psd_losses_seen losses = {4, 4, 1};

	cr_expect_eq(psd_quality_steps(&by_loss, &losses, 20, true), 1);
}
