/* Results, in shared memory, of processes (members) that make one measurement together. Private to real/calibrate/. */
#ifndef PSD_REAL_SHARED_RESULTS_H
#define PSD_REAL_SHARED_RESULTS_H

#include "real/calibrate/calibrate_parts.h"
#include "real/cluster/process_group.h"

struct psd_shared_results {
	const struct psd_calibration *calibration;
	unsigned n_members;
	unsigned n_values; /* number of results of each member */
	/* The fields below are private to shared_results.c. */
	struct psd_process_group_barrier *barrier;
	double *values; /* results in shared memory; shape (n_members, n_values) */
};

/* Forks n_members processes, each of which calls work(results, member, err), and waits until all have ended. Before,
 * the caller fills the first three fields. Afterwards, even after a failure, it calls psd_shared_results_close().
 * Statuses as psd_process_group_wait(). */
enum psd_status psd_shared_results_run(struct psd_shared_results *results, psd_process_group_work_fn *work,
				       struct psd_error *err) PSD_MUST_CHECK;
void psd_shared_results_close(struct psd_shared_results *results);
double *psd_shared_results_values(const struct psd_shared_results *results, unsigned member);
/* Called by a member: waits until all members have called it. */
void psd_shared_results_meet(const struct psd_shared_results *results);

#endif
