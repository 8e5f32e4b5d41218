/* Search for iterations that repeat: when all hosts are, at the end of an iteration, in the state in which they were at
 * the end of an earlier one, all that follows repeats as well, and most of it is left out (psd_interpreter_skip()). For
 * executors in which work lasts as long in each iteration. */
#ifndef PSD_REPEAT_H
#define PSD_REPEAT_H

#include "engine/program/interpreter.h"

struct psd_repeat_state;

struct psd_repeat {
	bool is_on;    /* false: nothing is looked for, or has been found */
	uint32_t unit; /* number of iterations that may differ from one another, psd_run_unit() */
	uint32_t next; /* iteration whose end is waited for */
	/* states at the last two ends of `unit` iterations; the older one first */
	struct psd_repeat_state *states[2];
	double *busy_sec; /* for each host and resource: seconds between these two ends */
	/* times of the last three ends; shape: oldest first */
	double end_sec[3];
	unsigned n_ends; /* number of ends so far */
};

/* Begins a search. Iterations from first_measured on may be left out. The search is off if it needs too much memory or
 * cannot pay. PSD_ENOMEM. */
enum psd_status psd_repeat_init(struct psd_repeat *repeat, const struct psd_interpreter *interpreter, uint32_t unit,
				uint32_t first_measured, struct psd_error *err) PSD_MUST_CHECK;
void psd_repeat_release(struct psd_repeat *repeat);
/* Returns true if an iteration whose end is compared has ended on all workers since the last call: the caller then
 * calls psd_repeat_compare(). Called after each event. */
static inline bool psd_repeat_is_due(const struct psd_repeat *repeat, const struct psd_interpreter *interpreter)
{
	return repeat->is_on && interpreter->n_next_done[repeat->next] == interpreter->n_workers;
}
/* Compares the state with the last one. is_settled: the executor's own state follows from the interpreter's. Leaves out
 * iterations if both are equal, and returns the number of times for which `unit` iterations were left out, or 0. */
uint32_t psd_repeat_compare(struct psd_repeat *repeat, struct psd_interpreter *interpreter, bool is_settled);

#endif
