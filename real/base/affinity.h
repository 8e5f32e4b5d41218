/* Which processors the threads of a worker or server run on. */
#ifndef PSD_REAL_AFFINITY_H
#define PSD_REAL_AFFINITY_H

#include <stdbool.h>

/* Pins the calling thread, and the threads that it will start, to the host's share of the n_hosts equal ones of the
 * processors that this process may use. False: not pinned, as with more hosts than processors, for it is more even. */
bool psd_affinity_pin(unsigned host, unsigned n_hosts);
/* Pins the calling thread to one of the processors that this process may use, the number-th, counted round. False: not
 * pinned, for n_threads that do so would leave none to all others. */
bool psd_affinity_pin_to(unsigned number, unsigned n_threads);
/* How many processors the calling thread may run on; 1 where that is not known. */
unsigned psd_affinity_count(void);
/* Whether it may, for each of the processors' numbers below *n_numbers; to be freed. NULL: no memory, or unknown. */
bool *psd_affinity_allowed(unsigned *n_numbers);

#endif
