/* Processes of one measurement, and the values that they leave: as many of each. Private to real/calibrate/. */
#ifndef PSD_REAL_SHARED_RESULTS_H
#define PSD_REAL_SHARED_RESULTS_H

#include "real/calibrate/calibrate_parts.h"
#include "real/cluster/process_group.h"

struct psd_shared_results {
	const struct psd_calibration *calibration;
	unsigned n_members;
	unsigned n_values; /* of one member */
	/* private to board.c */
	struct psd_process_group_barrier *barrier;
	double *values; /* (n_members, n_values), shared */
};

/* Runs work(board, member) in a process for each member, until all have ended. The first three fields are filled; the
 * values stay until psd_shared_results_close(), which is called after a failure as well. As psd_process_group_wait(). */
enum psd_status psd_shared_results_run(struct psd_shared_results *results, psd_process_group_work_fn *work,
				       struct psd_error *err) PSD_MUST_CHECK;
void psd_shared_results_close(struct psd_shared_results *results);
double *psd_shared_results_values(const struct psd_shared_results *results, unsigned member);
/* Meets all other members. */
void psd_shared_results_meet(const struct psd_shared_results *results);

#endif
