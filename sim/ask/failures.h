/* A job that writes checkpoints, and whose nodes fail: the best interval between checkpoints, and the time that the job
 * takes. Failures come at random (exponentially distributed), also during checkpoints and restarts. Source: Daly 2006,
 * "A higher order estimate of the optimum checkpoint interval for restart dumps". */
#ifndef PSD_SIM_FAILURES_H
#define PSD_SIM_FAILURES_H

#include <stdint.h>

struct psd_failures {
	double work_sec;       /* time of the job without failures and checkpoints, > 0 */
	double mtbf_sec;       /* mean time between failures of the whole cluster, > 0 */
	double checkpoint_sec; /* time of a checkpoint, > 0 */
	double restart_sec;    /* time from a failure until the job continues from its last checkpoint */
};

/* Returns the work between two checkpoints for which the expected time is shortest, seconds; at most work_sec, which
 * means no checkpoint. It solves Daly's condition for the minimum, of which his formula is an approximation. Pure, as
 * the functions below. */
double psd_failures_interval_sec(const struct psd_failures *failures);
/* Returns the expected time of the job, seconds, with a checkpoint after each interval_sec of work, except at the end
 * of the job. It may be infinite. */
double psd_failures_expected_sec(const struct psd_failures *failures, double interval_sec);

enum { PSD_FAILURES_JOBS = 1000 };
/* Simulates PSD_FAILURES_JOBS jobs and sets sec[] to their times, in ascending order. The expected time must not be
 * more than PSD_FAILURES_MOST_RATIO times work_sec. Equal seeds give equal times. */
void psd_failures_simulate(const struct psd_failures *failures, double interval_sec, uint64_t seed,
			   double sec[PSD_FAILURES_JOBS]);
#define PSD_FAILURES_MOST_RATIO 100.0

#endif
