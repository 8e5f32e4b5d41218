/* Processes that multiply matrices, one on each core, beside which others are measured. Refuses to measure them. */
#ifndef PSD_REAL_GANG_H
#define PSD_REAL_GANG_H

#include <stdatomic.h>

#include "engine/base/error.h"
#include "real/cluster/crew.h"

/* Fields are private to gang.c. */
struct psd_gang {
	struct psd_crew crew;
	unsigned first_core, n_cores, n_members;
	_Atomic double *kernel_sec; /* one for each member, shared: on account of it, until its last product */
};

/* On each of n_cores equal shares of the cores but the first ones; first_core = n_cores: nobody multiplies. *gang stays
 * where it is until psd_gang_stop(). PSD_ENOMEM, PSD_ERUN. */
enum psd_status psd_gang_start(struct psd_gang *gang, unsigned first_core, unsigned n_cores,
			       struct psd_error *err) PSD_MUST_CHECK;
/* PSD_OK as long as none has failed, else what the first that did had to say. */
enum psd_status psd_gang_check(struct psd_gang *gang, struct psd_error *err) PSD_MUST_CHECK;
/* Seconds that the kernel took so far on account of them. */
double psd_gang_kernel_sec(const struct psd_gang *gang);
void psd_gang_stop(struct psd_gang *gang);

#endif
