/* Which processors a worker's threads run on. */
#ifndef PSD_REAL_AFFINITY_H
#define PSD_REAL_AFFINITY_H

#include <stdbool.h>

/* Pins the calling thread, and the threads that it will start, to worker's share of the n_workers equal ones of the processors that this process
 * may use. With more workers than processors nothing is pinned, for the kernel shares them more evenly. False: not pinned. */
bool psd_affinity_pin(unsigned worker, unsigned n_workers);

#endif
