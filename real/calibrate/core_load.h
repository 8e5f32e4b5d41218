/* A load: a process on each core that multiplies matrices while other processes are measured. */
#ifndef PSD_REAL_CORE_LOAD_H
#define PSD_REAL_CORE_LOAD_H

#include <stdatomic.h>

#include "engine/base/error.h"
#include "real/cluster/process_group.h"

/* A load and its processes. Fields are private to core_load.c. */
struct psd_core_load {
	struct psd_process_group group;
	unsigned first_core, n_cores, n_members;
	_Atomic double *kernel_sec; /* shared: kernel time of each process up to its last product; shape (n_members) */
};

/* Starts a process on each core from first_core to n_cores - 1, or none if they are equal. *load must not move until
 * psd_core_load_stop(). PSD_ENOMEM, PSD_ERUN. */
enum psd_status psd_core_load_start(struct psd_core_load *load, unsigned first_core, unsigned n_cores,
				    struct psd_error *err) PSD_MUST_CHECK;
/* Checks that no process has failed; otherwise returns status and text of the first that did. */
enum psd_status psd_core_load_check(struct psd_core_load *load, struct psd_error *err) PSD_MUST_CHECK;
/* Kernel time used by all processes of the load so far. */
double psd_core_load_kernel_sec(const struct psd_core_load *load);
void psd_core_load_stop(struct psd_core_load *load);

#endif
