/* Assignment of the threads of a worker or server to processors. */
#ifndef PSD_REAL_AFFINITY_H
#define PSD_REAL_AFFINITY_H

#include <stdbool.h>

/* Pins the calling thread, and the threads that it will start, to share `host` of the allowed processors, which are
 * divided evenly among n_hosts. False: not pinned. More hosts than processors are not pinned: the kernel is fairer. */
bool psd_affinity_pin(unsigned host, unsigned n_hosts);
/* Pins the calling thread to one allowed processor: number modulo their count. False: not pinned, since n_threads
 * pinned threads would leave no processor to the others. */
bool psd_affinity_pin_to(unsigned number, unsigned n_threads);
/* Number of processors on which the calling thread may run; 1 if unknown. */
unsigned psd_affinity_count(void);
/* Returns an array of *n_numbers flags: entry i is true if the calling thread may run on processor i. The caller frees
 * it. NULL: no memory, or unknown. */
bool *psd_affinity_allowed(unsigned *n_numbers);

#endif
