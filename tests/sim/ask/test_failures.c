/* Checkpoints and failures, against a clock that goes from event to event and against a search of all intervals. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "sim/ask/failures.h"

static const double mean_tolerance_ratio = 0.02, percentile_tolerance_ratio = 0.02, interval_tolerance_ratio = 0.05;

enum { JOBS = 1000, N_CASES = 12 };

/* Knuth's generator, another one than that of psd. */
static double draw(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return ((double)(*state >> 11) + 0.5) * 0x1p-53;
}

/* Walks through one job: work, checkpoint, failure, restart are events on one clock; failures are on a list of their
 * own and go on during all of them. */
static double walk(const struct psd_failures *failures, double interval_sec, uint64_t *state)
{
	double now = 0.0, saved = 0.0, fails_at = -failures->mtbf_sec * log(draw(state));

	while (saved < failures->work_sec) {
		const double work = fmin(interval_sec, failures->work_sec - saved);
		const double rest = failures->work_sec - saved - work;
		const double end = now + work + (rest > 1e-9 * failures->work_sec ? failures->checkpoint_sec : 0.0);

		if (end <= fails_at) {
			now = end;
			saved = rest > 1e-9 * failures->work_sec ? saved + work : failures->work_sec;
			continue;
		}
		do { /* a failure during a restart begins it anew */
			now = fails_at + failures->restart_sec;
			fails_at -= failures->mtbf_sec * log(draw(state));
		} while (fails_at < now);
	}
	return now;
}

static int compare(const void *a, const void *b)
{
	return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

/* Jobs of hours to weeks, on clusters with a failure every 20 minutes to every day. */
static struct psd_failures drawn_case(uint64_t seed)
{
	uint64_t state = 977 * seed + 1;
	struct psd_failures failures;

	draw(&state);
	failures.mtbf_sec = 1200.0 * pow(72.0, draw(&state));
	failures.work_sec = failures.mtbf_sec * pow(200.0, 0.2 + 0.8 * draw(&state));
	failures.checkpoint_sec = failures.mtbf_sec * 0.3 * draw(&state) * draw(&state) + 1.0;
	failures.restart_sec = failures.mtbf_sec * 0.3 * draw(&state);
	return failures;
}

static double mean_of(const double sec[], unsigned n)
{
	double sum = 0.0;

	for (unsigned i = 0; i < n; i++)
		sum += sec[i];
	return sum / n;
}

Test(failures, mean_and_percentiles_are_those_of_1000_jobs)
{
	static double walked[20 * JOBS], simulated[PSD_FAILURES_JOBS];

	for (uint64_t seed = 1; seed <= N_CASES; seed++) {
		const struct psd_failures failures = drawn_case(seed);
		const double interval_sec = psd_failures_interval_sec(&failures);
		const double expected_sec = psd_failures_expected_sec(&failures, interval_sec);
		uint64_t state = seed;

		for (unsigned i = 0; i < 20 * JOBS; i++)
			walked[i] = walk(&failures, interval_sec, &state);
		qsort(walked, 20 * JOBS, sizeof(*walked), compare);
		psd_failures_simulate(&failures, interval_sec, seed, simulated);
		const double mean_sec = mean_of(walked, 20 * JOBS), p90_sec = walked[20 * JOBS * 9 / 10];

		cr_expect_float_eq(expected_sec / mean_sec, 1.0, mean_tolerance_ratio, "seed %u: %g, not %g",
				   (unsigned)seed, expected_sec, mean_sec);
		cr_expect_float_eq(simulated[PSD_FAILURES_JOBS * 9 / 10] / p90_sec, 1.0, percentile_tolerance_ratio,
				   "seed %u: %g, not %g", (unsigned)seed, simulated[PSD_FAILURES_JOBS * 9 / 10],
				   p90_sec);
	}
}

/* Expected time of a part by counting: it succeeds with probability p, and each failure costs the time until it came
 * and a restart. */
static double counted_sec(const struct psd_failures *failures, double sec)
{
	const double mtbf_sec = failures->mtbf_sec, restart_sec = failures->restart_sec;
	const double p = exp(-sec / mtbf_sec), q = exp(-restart_sec / mtbf_sec);
	const double lost = mtbf_sec - sec * p / (1.0 - p);
	const double restarts =
		restart_sec > 0.0 ? restart_sec + (1.0 - q) / q * (mtbf_sec - restart_sec * q / (1.0 - q)) : 0.0;

	return sec + (1.0 - p) / p * (lost + restarts);
}

Test(failures, the_best_interval_is_that_of_a_search)
{
	for (uint64_t seed = 1; seed <= 200; seed++) {
		struct psd_failures failures = drawn_case(seed);
		double best_sec = INFINITY, best_interval_sec = 0.0;

		failures.work_sec = 1e4 * failures.mtbf_sec; /* so long that the last part does not count */
		for (double tried = 1e-4 * failures.mtbf_sec; tried < 3.0 * failures.mtbf_sec; tried *= 1.002) {
			const double sec = counted_sec(&failures, tried + failures.checkpoint_sec) / tried;

			if (sec < best_sec) {
				best_sec = sec;
				best_interval_sec = tried;
			}
		}
		cr_expect_float_eq(psd_failures_interval_sec(&failures) / best_interval_sec, 1.0,
				   interval_tolerance_ratio, "seed %u: %g, not %g", (unsigned)seed,
				   psd_failures_interval_sec(&failures), best_interval_sec);
	}
}

Test(failures, a_job_shorter_than_the_best_interval_needs_no_checkpoint)
{
	const struct psd_failures failures = {
		.work_sec = 10.0, .mtbf_sec = 1e6, .checkpoint_sec = 5.0, .restart_sec = 1.0};
	double sec[PSD_FAILURES_JOBS];

	cr_expect_eq(psd_failures_interval_sec(&failures), 10.0);
	psd_failures_simulate(&failures, 10.0, 1, sec);
	cr_expect_eq(sec[PSD_FAILURES_JOBS / 2], 10.0);
}
