/* Assignment of the threads of a process to processors (logical CPUs of the machine). */
#ifndef PSD_REAL_AFFINITY_H
#define PSD_REAL_AFFINITY_H

#include <stdbool.h>

/* Divides the processors that the calling thread may use evenly among n_hosts hosts, and pins the calling thread and
 * the threads that it starts later to the part of host number `host`. Returns false without pinning if the kernel
 * refuses, or if there are more hosts than processors, because then the kernel distributes the hosts better. */
bool psd_affinity_pin(unsigned host, unsigned n_hosts);
/* Pins the calling thread to one processor: number `number`, modulo their count, of those that it may use. Returns
 * false without pinning if n_threads threads, pinned in this way, would leave no processor to others. */
bool psd_affinity_pin_to(unsigned number, unsigned n_threads);
/* Returns the number of processors that the calling thread may use; 1 if it is unknown. */
unsigned psd_affinity_count(void);
/* Returns an array of *n_numbers flags: entry i is true if the calling thread may use processor number i. The caller
 * frees it. NULL: no memory, or the kernel does not tell. */
bool *psd_affinity_allowed(unsigned *n_numbers);

#endif
