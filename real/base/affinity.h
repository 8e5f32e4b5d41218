/* Pins the threads of a process to processors. A processor is a logical CPU of the machine. */
#ifndef PSD_REAL_AFFINITY_H
#define PSD_REAL_AFFINITY_H

#include <stdbool.h>

/* Divides the processors that the calling thread may use evenly among n_hosts hosts. Pins the calling thread, and the
 * threads that it starts later, to the part of host number `host` (from 0). Returns false without pinning if the kernel
 * does not allow it, or if there are more hosts than processors. In that case the kernel distributes the hosts
 * better. */
bool psd_affinity_pin(unsigned host, unsigned n_hosts);
/* Pins the calling thread to one of the processors that it may use: processor number `number` (from 0), modulo their
 * count. n_threads: number of threads that are pinned by this function. Returns false without pinning if they would
 * leave no processor for other threads. */
bool psd_affinity_pin_to(unsigned number, unsigned n_threads);
/* Returns the number of processors that the calling thread may use; 1 if the kernel does not tell. */
unsigned psd_affinity_count(void);
/* Returns an array of *n_numbers flags: entry i is true if the calling thread may use processor number i. The caller
 * frees it. Returns NULL if memory runs out, or if the kernel does not tell. */
bool *psd_affinity_allowed(unsigned *n_numbers);

#endif
