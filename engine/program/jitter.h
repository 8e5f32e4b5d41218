/* Random spread of compute times, with equal draws in every executor. */
#ifndef PSD_JITTER_H
#define PSD_JITTER_H

#include <stdint.h>

#include "engine/program/scheduler.h"

/* Returns a random factor for the duration of a task on that host; it depends on seed, host and task alone. Log-normal
 * with mean 1 and standard deviation `ratio`: positive, with a longer tail of slow values. 1 if ratio is 0. Pure. */
double psd_jitter_factor(double ratio, uint64_t seed, unsigned host, struct psd_task task);

#endif
