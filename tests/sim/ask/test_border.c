/* The search for a border, from every guess to every border. */
#include <criterion/criterion.h>

#include "sim/ask/border.h"

struct counted {
	uint64_t last;
	unsigned n_calls;
};

static bool is_small(void *context, uint64_t number)
{
	struct counted *counted = context;

	counted->n_calls++;
	return number <= counted->last;
}

enum { LEAST = 3, MOST = 40 };

Test(border, is_found_from_every_guess)
{
	for (uint64_t last = LEAST - 1; last <= MOST; last++)
		for (uint64_t guess = 0; guess <= MOST + 2; guess++) {
			struct counted counted = {.last = last};
			const struct psd_border border = {is_small, &counted, LEAST, MOST};

			cr_assert_eq(psd_border_find(&border, guess), last, "border %u from %u", (unsigned)last,
				     (unsigned)guess);
		}
}

/* A good guess needs two calls; another one few. */
Test(border, is_found_with_few_calls)
{
	struct counted near = {.last = 500}, far = {.last = 900000};

	psd_border_find(&(struct psd_border){is_small, &near, 1, 1000000}, 500);
	psd_border_find(&(struct psd_border){is_small, &far, 1, 1000000}, 1);
	cr_expect_eq(near.n_calls, 2);
	cr_expect_leq(far.n_calls, 2 * 20);
}
