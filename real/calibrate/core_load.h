/* Artificial load: on each processor core a process multiplies matrices while other processes are measured. */
#ifndef PSD_REAL_CORE_LOAD_H
#define PSD_REAL_CORE_LOAD_H

#include <stdatomic.h>

#include "engine/base/error.h"
#include "real/cluster/process_group.h"

/* A running load. Fields are private to core_load.c. */
struct psd_core_load {
	struct psd_process_group group;
	unsigned first_core, n_cores, n_members;
	/* Time that each process has spent in the kernel until the end of its last matrix product, seconds; in shared
	 * memory; shape (n_members). */
	_Atomic double *kernel_sec;
};

/* Starts a process on each of the cores first_core to n_cores - 1. Starts none if first_core equals n_cores. *load must
 * not be moved until psd_core_load_stop(). PSD_ENOMEM, PSD_ERUN. */
enum psd_status psd_core_load_start(struct psd_core_load *load, unsigned first_core, unsigned n_cores,
				    struct psd_error *err) PSD_MUST_CHECK;
/* Checks that no process of the load has failed. Otherwise returns the status and the text of the first one that
 * failed. */
enum psd_status psd_core_load_check(struct psd_core_load *load, struct psd_error *err) PSD_MUST_CHECK;
/* Returns the time that all processes of the load have spent in the kernel so far, added up, seconds. */
double psd_core_load_kernel_sec(const struct psd_core_load *load);
void psd_core_load_stop(struct psd_core_load *load);

#endif
