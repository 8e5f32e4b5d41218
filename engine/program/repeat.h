/* Finds iterations that repeat. At the end of an iteration all hosts may be in the same state as at the end of an
 * earlier iteration. Then all later iterations repeat the ones in between, and most of them are left out
 * (psd_interpreter_skip()). Only for executors in which an operation takes equally long in every iteration. */
#ifndef PSD_REPEAT_H
#define PSD_REPEAT_H

#include "engine/program/interpreter.h"

struct psd_repeat_state;

struct psd_repeat {
	/* iterations are still compared; false: repeated ones were found and left out, or none can be found */
	bool is_on;
	/* number of consecutive iterations that may differ from each other (a unit), from psd_run_unit() */
	uint32_t unit;
	uint32_t next; /* number of the iteration at whose end states are compared next */
	/* states of all hosts at the ends of the last two units of iterations, the older one first */
	struct psd_repeat_state *states[2];
	/* for each host and resource: seconds in which the resource was occupied between these two states */
	double *busy_sec;
	/* times of the last three ends of units, seconds since the start of the run; the oldest first */
	double end_sec[3];
	unsigned n_ends; /* number of units that have ended since the search began */
};

/* Begins a search. Only iterations from first_measured on may be left out. unit: result of psd_run_unit(). The search
 * stays off if its states need more than 32 MiB or the run has too few iterations. PSD_ENOMEM. */
enum psd_status psd_repeat_init(struct psd_repeat *repeat, const struct psd_interpreter *interpreter, uint32_t unit,
				uint32_t first_measured, struct psd_error *err) PSD_MUST_CHECK;
void psd_repeat_release(struct psd_repeat *repeat);
/* Returns true if iteration repeat->next has ended on all workers; the caller then calls psd_repeat_compare(). Called
 * after each event. */
static inline bool psd_repeat_is_due(const struct psd_repeat *repeat, const struct psd_interpreter *interpreter)
{
	return repeat->is_on && interpreter->n_next_done[repeat->next] == interpreter->n_workers;
}
/* Compares the state of all hosts with their state one unit of iterations earlier. If they are equal, leaves out
 * iterations, and returns the number of units that were left out; otherwise returns 0. is_settled: the executor has no
 * further state of its own that could differ. */
uint32_t psd_repeat_compare(struct psd_repeat *repeat, struct psd_interpreter *interpreter, bool is_settled);

#endif
