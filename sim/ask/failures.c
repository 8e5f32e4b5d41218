/* Failures in closed form, and jobs with failures drawn one by one. */
#include "sim/ask/failures.h"

#include <math.h>
#include <stdlib.h>

#include "engine/base/random.h"

enum { BISECTIONS = 60 };

/* The expected time of a segment of work w, divided by w, is shortest where (1 - w/M) * exp((w + C)/M) = 1. The left
 * side falls from exp(C/M) at 0 to 0 at M. */
double psd_failures_interval_sec(const struct psd_failures *failures)
{
	const double checkpoint = failures->checkpoint_sec / failures->mtbf_sec;
	double low = 0.0, high = 1.0;

	for (int i = 0; i < BISECTIONS; i++) {
		const double middle = (low + high) / 2.0;

		if (log1p(-middle) + middle + checkpoint > 0.0)
			low = middle;
		else
			high = middle;
	}
	return fmin(high * failures->mtbf_sec, failures->work_sec);
}

/* Number of parts that end with a checkpoint; the last part has none. */
static double n_checkpoints(const struct psd_failures *failures, double interval_sec)
{
	return fmax(0.0, ceil(failures->work_sec / interval_sec * (1.0 - 1e-12)) - 1.0);
}

/* Expected time of a part that must be repeated from its start after each failure. */
static double part_sec(const struct psd_failures *failures, double sec)
{
	const double mtbf_sec = failures->mtbf_sec;

	return mtbf_sec * exp(failures->restart_sec / mtbf_sec) * expm1(sec / mtbf_sec);
}

double psd_failures_expected_sec(const struct psd_failures *failures, double interval_sec)
{
	const double n = n_checkpoints(failures, interval_sec);

	return n * part_sec(failures, interval_sec + failures->checkpoint_sec) +
	       part_sec(failures, failures->work_sec - n * interval_sec);
}

/* ---- jobs ---- */

struct draws {
	uint64_t seed, n;
};

/* Time until the next failure. */
static double draw_sec(struct draws *draws, double mtbf_sec)
{
	const uint64_t bits = psd_random_mix(psd_random_mix(draws->seed) + draws->n++);

	return -mtbf_sec * log(((double)(bits >> 11) + 0.5) * 0x1p-53);
}

static double restart(const struct psd_failures *failures, struct draws *draws)
{
	double sec = 0.0, next;

	while ((next = draw_sec(draws, failures->mtbf_sec)) < failures->restart_sec)
		sec += next;
	return sec + failures->restart_sec;
}

/* Time without a memory: after a restart the time until the next failure is drawn anew. */
static double job_sec(const struct psd_failures *failures, double interval_sec, struct draws *draws)
{
	const double whole_sec = interval_sec + failures->checkpoint_sec;
	double left = n_checkpoints(failures, interval_sec), sec = 0.0;
	const double last_sec = failures->work_sec - left * interval_sec;

	for (;;) {
		const double next = draw_sec(draws, failures->mtbf_sec);

		if (next >= left * whole_sec + last_sec)
			return sec + left * whole_sec + last_sec;
		sec += next + restart(failures, draws);
		left -= fmin(left, floor(next / whole_sec));
	}
}

static int compare(const void *a, const void *b)
{
	const double first = *(const double *)a, second = *(const double *)b;

	return (first > second) - (first < second);
}

void psd_failures_simulate(const struct psd_failures *failures, double interval_sec, uint64_t seed,
			   double sec[PSD_FAILURES_JOBS])
{
	struct draws draws = {seed, 0};

	for (unsigned i = 0; i < PSD_FAILURES_JOBS; i++)
		sec[i] = job_sec(failures, interval_sec, &draws);
	qsort(sec, PSD_FAILURES_JOBS, sizeof(*sec), compare);
}
