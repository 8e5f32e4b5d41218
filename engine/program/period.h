/* Local steps: the iterations in which workers exchange their parameters. Pure, any thread. */
#ifndef PSD_PERIOD_H
#define PSD_PERIOD_H

#include <stdbool.h>
#include <stdint.h>

/* Schedule of exchanges. An exchange comes every `steps` iterations, counted anew in each window, and in the last
 * iteration of each window and of the run. The steps of the last even and last odd window are known at a time. */
struct psd_period {
	uint32_t end;	 /* iteration at which the run ends, exclusive */
	uint32_t window; /* number of iterations of a window; 0: one window for the whole run */
	uint32_t steps[2];
};

/* Makes a schedule in which all windows have these steps. steps and end: at least 1. */
struct psd_period psd_period_make(uint32_t steps, uint32_t window, uint32_t end);
/* Sets the local steps of a window. */
void psd_period_set_steps(struct psd_period *period, uint32_t window_number, uint32_t steps);
/* True if workers exchange at the end of that iteration. */
bool psd_period_exchanges(const struct psd_period *period, uint32_t iteration);
/* Iteration of the next exchange, at or after `iteration`; behind the run's end: the run's last iteration. */
uint32_t psd_period_next(const struct psd_period *period, uint32_t iteration);
/* Last iteration, up to `iteration`, that begins with the result of an exchange or begins the run. */
uint32_t psd_period_first(const struct psd_period *period, uint32_t iteration);

#endif
