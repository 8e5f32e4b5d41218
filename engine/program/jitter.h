/* Random spread of compute times, with equal draws in every executor. */
#ifndef PSD_JITTER_H
#define PSD_JITTER_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/program/program.h"
#include "engine/program/scheduler.h"

/* Returns a random factor for the duration of a task on that host; it depends on seed, host and task alone. Log-normal
 * with mean 1 and standard deviation `ratio`: positive, with a longer tail of slow values. 1 if ratio is 0. Pure. */
double psd_jitter_factor(double ratio, uint64_t seed, unsigned host, struct psd_task task);
/* Random factor on all work of that host's device in an iteration: the spread's, and the tail's if the iteration is
 * slow. Pure. */
double psd_spread_factor(const struct psd_spread *spread, uint64_t seed, unsigned host, uint32_t iteration);

/* Seconds of a task with the scenario's jitter, spread and tail. sec: seconds without them. Pure. */
double psd_jittered_sec(const struct psd_scenario *scenario, unsigned host, const struct psd_op *op,
			enum psd_resource resource, struct psd_task task, double sec);
/* Tells whether the scenario draws any seconds: it has jitter, spread or tail. */
bool psd_jitter_is_drawn(const struct psd_scenario *scenario);
/* Number of measured iterations of a simulation, more with a spread or tail; 0: psd_run_length_make() chooses. */
uint32_t psd_jitter_iterations(const struct psd_scenario *scenario);

#endif
