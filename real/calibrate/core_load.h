/* Processes that multiply matrices, one on each core, beside which others are measured. Refuses to measure them. */
#ifndef PSD_REAL_CORE_LOAD_H
#define PSD_REAL_CORE_LOAD_H

#include <stdatomic.h>

#include "engine/base/error.h"
#include "real/cluster/process_group.h"

/* Fields are private to core_load.c. */
struct psd_core_load {
	struct psd_process_group group;
	unsigned first_core, n_cores, n_members;
	_Atomic double *kernel_sec; /* one for each member, shared: on account of it, until its last product */
};

/* On each of n_cores equal shares of the cores but the first ones; first_core = n_cores: nobody multiplies. *gang stays
 * where it is until psd_core_load_stop(). PSD_ENOMEM, PSD_ERUN. */
enum psd_status psd_core_load_start(struct psd_core_load *load, unsigned first_core, unsigned n_cores,
				    struct psd_error *err) PSD_MUST_CHECK;
/* PSD_OK as long as none has failed, else what the first that did had to say. */
enum psd_status psd_core_load_check(struct psd_core_load *load, struct psd_error *err) PSD_MUST_CHECK;
/* Seconds that the kernel took so far on account of them. */
double psd_core_load_kernel_sec(const struct psd_core_load *load);
void psd_core_load_stop(struct psd_core_load *load);

#endif
