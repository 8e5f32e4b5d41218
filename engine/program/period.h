/* Local steps: the iterations in which workers exchange their parameters. Pure, any thread. */
#ifndef PSD_PERIOD_H
#define PSD_PERIOD_H

#include <stdbool.h>
#include <stdint.h>

/* An exchange comes every `steps` iterations, counted anew in each window, and in the last iteration of each window and
 * of the run. The steps of two windows are known at a time: windows with even and with odd numbers. */
struct psd_period {
	uint32_t end;	 /* end of the run */
	uint32_t window; /* iterations of a window; 0: one window for the whole run */
	uint32_t steps[2];
};

/* All windows get these steps, at least 1. end is at least 1. */
struct psd_period psd_period_make(uint32_t steps, uint32_t window, uint32_t end);
/* Sets the steps of a window. */
void psd_period_set_steps(struct psd_period *period, uint32_t window_number, uint32_t steps);
/* Workers exchange at the end of that iteration. */
bool psd_period_exchanges(const struct psd_period *period, uint32_t iteration);
/* Iteration of the next exchange, at or after that one. The run's last one for iterations behind it. */
uint32_t psd_period_next(const struct psd_period *period, uint32_t iteration);
/* Last iteration, up to that one, that begins with the result of an exchange or begins the run. */
uint32_t psd_period_first(const struct psd_period *period, uint32_t iteration);

#endif
