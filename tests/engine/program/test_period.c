/* In which iterations workers exchange, against counting one by one. */
#include <criterion/criterion.h>

#include "engine/program/period.h"

/* Exchanges of a run of 40 iterations or less, one by one: marks the last iteration of each period. */
static void expect_exchanges(const struct psd_period *period, const uint32_t exchanges[], unsigned n)
{
	unsigned next = 0;

	for (uint32_t i = 0; i < period->end; i++) {
		const bool is_exchange = next < n && exchanges[next] == i;

		cr_expect_eq(psd_period_exchanges(period, i), is_exchange, "iteration %u", i);
		next += is_exchange;
	}
	cr_expect_eq(next, n);
}

Test(period, steps_of_one_exchange_in_every_iteration)
{
	const struct psd_period period = psd_period_make(1, 0, 5);

	expect_exchanges(&period, (const uint32_t[]){0, 1, 2, 3, 4}, 5);
}

/* 10 iterations, 4 in a period: the last period has two, for the run's last iteration exchanges. */
Test(period, exchanges_come_after_so_many_steps_and_in_the_end)
{
	const struct psd_period period = psd_period_make(4, 0, 10);

	expect_exchanges(&period, (const uint32_t[]){3, 7, 9}, 3);
}

Test(period, a_run_shorter_than_its_steps_exchanges_once)
{
	const struct psd_period period = psd_period_make(100, 0, 3);

	expect_exchanges(&period, (const uint32_t[]){2}, 1);
}

/* Windows of 10 end in 9, 19 and 29; in each the steps are counted from its first iteration. */
Test(period, a_window_ends_with_an_exchange_and_counts_anew)
{
	const struct psd_period period = psd_period_make(4, 10, 25);

	expect_exchanges(&period, (const uint32_t[]){3, 7, 9, 13, 17, 19, 23, 24}, 8);
}

/* Window 1, from 10 to 19, has steps of its own: 12, 15, 18 and its end. Those beside it have 4. */
Test(period, steps_are_of_one_window)
{
	struct psd_period period = psd_period_make(4, 10, 30);

	psd_period_set_steps(&period, 1, 3);
	expect_exchanges(&period, (const uint32_t[]){3, 7, 9, 12, 15, 18, 19, 23, 27, 29}, 10);
	/* window 2 replaces window 0, which is over */
	psd_period_set_steps(&period, 2, 1);
	for (uint32_t i = 20; i < 30; i++)
		cr_expect(psd_period_exchanges(&period, i), "iteration %u", i);
	cr_expect_not(psd_period_exchanges(&period, 13), "window 1 keeps its steps");
}

/* A period is from psd_period_first() to psd_period_next(), both of it, and every iteration of it says the same. */
static void expect_periods(const struct psd_period *period)
{
	uint32_t first = 0;

	for (uint32_t i = 0; i < period->end; i++) {
		const uint32_t next = psd_period_next(period, i);

		cr_expect_eq(psd_period_first(period, i), first, "iteration %u", i);
		cr_expect_geq(next, i);
		cr_expect_eq(psd_period_first(period, next), first, "iteration %u", i);
		cr_expect_eq(psd_period_next(period, first), next, "iteration %u", i);
		for (uint32_t between = i; between < next; between++)
			cr_expect_not(psd_period_exchanges(period, between), "iteration %u", between);
		cr_expect(psd_period_exchanges(period, next), "iteration %u", next);
		if (next == i)
			first = i + 1;
	}
}

Test(period, first_and_next_enclose_one_period)
{
	for (uint32_t steps = 1; steps <= 7; steps++)
		for (uint32_t window = 0; window <= 16; window += 8)
			for (uint32_t odd_steps = 1; odd_steps <= 7; odd_steps += 3) {
				struct psd_period period = psd_period_make(steps, window, 40);

				if (window > 0)
					psd_period_set_steps(&period, 1, odd_steps);
				expect_periods(&period);
			}
}

Test(period, behind_the_run_the_next_exchange_is_its_last)
{
	const struct psd_period period = psd_period_make(4, 0, 10);

	cr_expect_eq(psd_period_next(&period, 10), 9);
	cr_expect_eq(psd_period_next(&period, 1000), 9);
}

/* 2^32 - 1 = 3 * 1431655765, and 2^32 - 1 iterations end with number 2^32 - 2. */
Test(period, the_longest_run_does_not_overflow)
{
	const uint32_t end = UINT32_MAX, last = end - 1;
	const struct psd_period threes = psd_period_make(3, 0, end), long_steps = psd_period_make(10000, 0, end),
				windows = psd_period_make(7, 1000000000, end);

	cr_expect_eq(psd_period_next(&threes, last), last);
	cr_expect_eq(psd_period_first(&threes, last), last - 2);
	cr_expect(psd_period_exchanges(&threes, last - 3));
	cr_expect_not(psd_period_exchanges(&threes, last - 1));
	/* the last period begins at 4294960000 and would reach to 4294969999, beyond 32 bits */
	cr_expect_eq(psd_period_first(&long_steps, last), 4294960000u);
	cr_expect_eq(psd_period_next(&long_steps, 4294960000u), last);
	cr_expect(psd_period_exchanges(&long_steps, 4294959999u));
	/* so would the window that begins at 4000000000: 294967294 is 6 more than a multiple of 7 */
	cr_expect_eq(psd_period_first(&windows, last), last - 294967294u % 7);
	cr_expect_eq(psd_period_next(&windows, last), last);
	cr_expect(psd_period_exchanges(&windows, 3999999999u));
	cr_expect_eq(psd_period_first(&windows, 4000000000u), 4000000000u);
}

/* ---- fragments ---- */

/* With 10 steps and 4 fragments, fragments exchange after 10 / 4 iterations, rounded down, 20 / 4, 30 / 4 and 10. */
Test(period, fragments_take_turns)
{
	static const uint32_t after[] = {2, 5, 7, 10};
	struct psd_period period = psd_period_make(10, 0, 23);

	period.fragments = 4;
	for (uint32_t f = 0; f < 4; f++)
		for (uint32_t i = 0; i < 23; i++)
			cr_expect_eq(psd_period_exchanges_of(&period, f, i), i % 10 + 1 == after[f] || i == 22,
				     "fragment %u, iteration %u", f, i);
	cr_expect_eq(psd_period_next_of(&period, 2, 7), 16);
	cr_expect_eq(psd_period_next_of(&period, 1, 15), 22);
	period.is_endless = true;
	cr_expect_not(psd_period_exchanges_of(&period, 0, 22));
	cr_expect_eq(psd_period_next_of(&period, 1, 15), 24);
}

Test(period, one_fragment_is_the_period)
{
	const struct psd_period period = psd_period_make(4, 10, 25);

	for (uint32_t i = 0; i < 25; i++) {
		cr_expect_eq(psd_period_exchanges_of(&period, 0, i), psd_period_exchanges(&period, i));
		cr_expect_eq(psd_period_begins(&period, 0, i), psd_period_first(&period, i) == i, "iteration %u", i);
	}
}

/* A resumed run's workers had equal parameters before iteration 3, and fragment 1 of 2 exchanges after 3 and 7. */
Test(period, a_fragment_begins_after_its_exchange)
{
	struct psd_period period = psd_period_make(4, 0, 20);

	period.fragments = 2;
	period.first = 3;
	for (uint32_t i = 3; i < 12; i++) {
		cr_expect_eq(psd_period_begins(&period, 0, i), i == 3 || i == 6 || i == 10, "iteration %u", i);
		cr_expect_eq(psd_period_begins(&period, 1, i), i == 3 || i == 4 || i == 8, "iteration %u", i);
	}
}
