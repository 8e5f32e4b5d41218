/* Random factors on compute times. Every executor draws the same factors. */
#ifndef PSD_JITTER_H
#define PSD_JITTER_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/program/program.h"
#include "engine/program/scheduler.h"

/* Returns a random factor on the duration of a task on a host. It depends only on seed, host, task and ratio. It is
 * log-normal with mean 1 and standard deviation `ratio`, so slow values lie farther from 1 than fast ones. 1 if ratio
 * is 0. Pure. */
double psd_jitter_factor(double ratio, uint64_t seed, unsigned host, struct psd_task task);
/* Returns a random factor on all work of the host's device in an iteration. It has the standard deviation
 * spread->ratio; in a slow iteration it is also multiplied by spread->tail_factor. Pure. */
double psd_spread_factor(const struct psd_spread *spread, uint64_t seed, unsigned host, uint32_t iteration);

/* Returns the seconds of a task with all random factors of the scenario. sec: seconds without them; resource: resource
 * on which the task is executed. Pure. */
double psd_jittered_sec(const struct psd_scenario *scenario, unsigned host, const struct psd_op *op,
			enum psd_resource resource, struct psd_task task, double sec);
/* True if the scenario has random factors on compute times: jitter, spread or tail. */
bool psd_jitter_is_drawn(const struct psd_scenario *scenario);
/* Returns the number of iterations that a simulation should measure: the scenario's key `iterations`, or 100 if it is
 * absent and the scenario has a spread or tail. 0: psd_run_length_make() chooses. */
uint32_t psd_jitter_iterations(const struct psd_scenario *scenario);

#endif
