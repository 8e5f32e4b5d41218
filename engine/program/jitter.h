/* The random spread of compute times: the same draws wherever a case is carried out. */
#ifndef PSD_JITTER_H
#define PSD_JITTER_H

#include <stdint.h>

#include "engine/program/scheduler.h"

/* What a task's seconds are multiplied by on that host: depends on seed, host and task alone. Log-normal with mean 1
 * and standard deviation `ratio`, so that it is positive and slow tails are longer. 1 where ratio is 0. Pure. */
double psd_jitter_factor(double ratio, uint64_t seed, unsigned host, struct psd_task task);

#endif
