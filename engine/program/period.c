#include "engine/program/period.h"

struct psd_period psd_period_make(uint32_t steps, uint32_t window, uint32_t end)
{
	return (struct psd_period){.end = end, .window = window, .steps = {steps, steps}, .fragments = 1};
}

void psd_period_set_steps(struct psd_period *period, uint32_t window_number, uint32_t steps)
{
	period->steps[window_number % 2] = steps;
}

static uint32_t first_of_window(const struct psd_period *period, uint32_t iteration)
{
	return period->window ? iteration - iteration % period->window : 0;
}

static uint32_t steps_of(const struct psd_period *period, uint32_t iteration)
{
	return period->steps[period->window ? iteration / period->window % 2 : 0];
}

uint32_t psd_period_first(const struct psd_period *period, uint32_t iteration)
{
	return iteration - (iteration - first_of_window(period, iteration)) % steps_of(period, iteration);
}

uint32_t psd_period_next(const struct psd_period *period, uint32_t iteration)
{
	const uint64_t behind = (uint64_t)psd_period_first(period, iteration) + steps_of(period, iteration);
	const uint64_t of_window = (uint64_t)first_of_window(period, iteration) + period->window;
	const uint64_t sooner = period->window && of_window < behind ? of_window : behind;

	return (sooner < period->end ? (uint32_t)sooner : period->end) - 1;
}

bool psd_period_exchanges(const struct psd_period *period, uint32_t iteration)
{
	return psd_period_next(period, iteration) == iteration;
}

/* True if fragments, or the end of the run, make a difference. */
static bool takes_turns(const struct psd_period *period)
{
	return period->fragments > 1 || period->is_endless;
}

uint32_t psd_period_next_of(const struct psd_period *period, uint32_t fragment, uint32_t iteration)
{
	const uint64_t steps = period->steps[0], position = (fragment + UINT64_C(1)) * steps / period->fragments;

	if (!takes_turns(period))
		return psd_period_next(period, iteration);
	const uint64_t next = iteration + (position + steps - (iteration + UINT64_C(1)) % steps) % steps;

	return !period->is_endless && next >= period->end ? period->end - 1 : (uint32_t)next;
}

bool psd_period_exchanges_of(const struct psd_period *period, uint32_t fragment, uint32_t iteration)
{
	return psd_period_next_of(period, fragment, iteration) == iteration;
}

bool psd_period_is_last(const struct psd_period *period, uint32_t iteration)
{
	return !period->is_endless && iteration + UINT64_C(1) == period->end;
}

bool psd_period_begins(const struct psd_period *period, uint32_t fragment, uint32_t iteration)
{
	return iteration == period->first ||
	       (iteration > period->first && psd_period_exchanges_of(period, fragment, iteration - 1));
}
