/* Schedule of local SGD: the iterations in which workers exchange their parameters. Pure, any thread. */
#ifndef PSD_PERIOD_H
#define PSD_PERIOD_H

#include <stdbool.h>
#include <stdint.h>

/* Schedule of local SGD. Workers exchange after every `steps` iterations, counted from the begin of a window of
 * iterations. They also exchange in the last iteration of each window and of the run. Each window may have its own
 * `steps`; the numbers of the last two windows are stored. */
struct psd_period {
	uint32_t end;	 /* number of iterations of the run */
	uint32_t window; /* number of iterations of a window; 0: one window for the whole run */
	/* number of steps in the newest even-numbered window [0] and in the newest odd-numbered window [1] */
	uint32_t steps[2];
	/* Number of fragments that exchange in turn; 1: all parameters exchange together. With more there is one
	 * window. */
	uint32_t fragments;
	/* The run stands for a part of an endless run, so its last iteration is like any other. Only with fragments. */
	bool is_endless;
	/* Iteration before which workers had equal parameters: the first of the run, or of the one that it resumes. */
	uint32_t first;
};

/* Makes a schedule in which every window has the same `steps`. window: iterations of a window, 0 for one window; end:
 * number of iterations of the run. steps and end must be at least 1. */
struct psd_period psd_period_make(uint32_t steps, uint32_t window, uint32_t end);
/* Sets the steps of one window; windows are numbered from 0. */
void psd_period_set_steps(struct psd_period *period, uint32_t window_number, uint32_t steps);
/* True if workers exchange at the end of that iteration. */
bool psd_period_exchanges(const struct psd_period *period, uint32_t iteration);
/* Returns the iteration of the next exchange: `iteration` itself or a later one, at most the last of the run. */
uint32_t psd_period_next(const struct psd_period *period, uint32_t iteration);
/* Returns the first iteration of the period that contains `iteration`: the one after the last exchange, or the first
 * of the run. */
uint32_t psd_period_first(const struct psd_period *period, uint32_t iteration);

/* The same functions for one fragment, whose number is less than period->fragments. In a period of H iterations
 * fragment f of F exchanges at the end of iteration (f + 1) H / F - 1, rounded down, the last one at its end. All
 * fragments exchange in the last iteration of a run that is not endless. */
bool psd_period_exchanges_of(const struct psd_period *period, uint32_t fragment, uint32_t iteration);
uint32_t psd_period_next_of(const struct psd_period *period, uint32_t fragment, uint32_t iteration);
/* True for the last iteration of a run that is not endless. */
bool psd_period_is_last(const struct psd_period *period, uint32_t iteration);
/* True if the iteration is the first one after an exchange of the fragment, or period->first. */
bool psd_period_begins(const struct psd_period *period, uint32_t fragment, uint32_t iteration);

#endif
