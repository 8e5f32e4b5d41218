/* Local steps: in which iterations workers exchange what has become of their parameters. Pure, any thread. */
#ifndef PSD_PERIOD_H
#define PSD_PERIOD_H

#include <stdbool.h>
#include <stdint.h>

/* Exchanges come every `steps` iterations, counted anew from the first of each window, and in the last iteration of
 * each window and of the run. The steps of two windows are known at a time: of those with an even number and with an
 * odd one. */
struct psd_period {
	uint32_t end;	 /* of the run */
	uint32_t window; /* iterations; 0: one for the whole run */
	uint32_t steps[2];
};

/* All windows have these steps so far, at least 1. end is at least 1. */
struct psd_period psd_period_make(uint32_t steps, uint32_t window, uint32_t end);
/* Iterations of a window with that number. */
void psd_period_set_steps(struct psd_period *period, uint32_t window_number, uint32_t steps);
/* Workers exchange at the end of that iteration. */
bool psd_period_exchanges(const struct psd_period *period, uint32_t iteration);
/* The iteration of the next exchange: that one itself, or a later one. The run's last one for those behind it. */
uint32_t psd_period_next(const struct psd_period *period, uint32_t iteration);
/* The last iteration, up to that one, that begins with what an exchange has left, or with which the run begins. */
uint32_t psd_period_first(const struct psd_period *period, uint32_t iteration);

#endif
