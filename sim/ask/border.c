/* Doubling steps from a guess, then bisection. */
#include "sim/ask/border.h"

static bool holds(const struct psd_border *border, uint64_t number)
{
	return border->holds(border->context, number);
}

/* The claim holds for `good` and fails for `bad`. */
static uint64_t bisect(const struct psd_border *border, uint64_t good, uint64_t bad)
{
	while (bad - good > 1) {
		const uint64_t middle = good + (bad - good) / 2;

		if (holds(border, middle))
			good = middle;
		else
			bad = middle;
	}
	return good;
}

static uint64_t find_above(const struct psd_border *border, uint64_t good)
{
	for (uint64_t step = 1; good < border->most; step *= 2) {
		const uint64_t next = border->most - good < step ? border->most : good + step;

		if (!holds(border, next))
			return bisect(border, good, next);
		good = next;
	}
	return border->most;
}

static uint64_t find_below(const struct psd_border *border, uint64_t bad)
{
	for (uint64_t step = 1; bad > border->least; step *= 2) {
		const uint64_t next = bad - border->least < step ? border->least : bad - step;

		if (holds(border, next))
			return bisect(border, next, bad);
		bad = next;
	}
	return border->least - 1;
}

uint64_t psd_border_find(const struct psd_border *border, uint64_t guess)
{
	guess = guess < border->least ? border->least : guess > border->most ? border->most : guess;
	return holds(border, guess) ? find_above(border, guess) : find_below(border, guess);
}
