#include "real/replay.h"

#include <math.h>

#include "engine/estimate.h"

/* Above, processes wait for each other's processors. */
#define MOST_BUSY_RATIO	 0.70
#define MOST_LATE_RATIO	 0.02 /* of an iteration */
#define LEAST_LEFT_RATIO 0.20 /* that others must leave: with less, how much they do decides, not the dilation */
/* What the links of an emulated cluster carry together on two cores, both ends included (tests/bench/real/bench_emulation.c). */
#define MACHINE_BYTES_PER_SEC 1e9

static double late_ratio(const struct psd_worker_result *result)
{
	return result->iteration_sec > 0.0 ? result->late_sec / result->iteration_sec : 0.0;
}

static double ratio_of(double cpu_sec, const struct psd_worker_result *result)
{
	return result->machine_cpu_sec > 0.0 ? cpu_sec / result->machine_cpu_sec : 0.0;
}

double psd_replay_busy_ratio(const struct psd_worker_result *result)
{
	return ratio_of(result->busy_cpu_sec, result);
}

bool psd_replay_is_true(const struct psd_worker_result *result)
{
	return psd_replay_busy_ratio(result) <= MOST_BUSY_RATIO && late_ratio(result) <= MOST_LATE_RATIO;
}

/* What a message costs is the same at any dilation, so its share of a longer time is smaller by as much; what others do goes on. */
bool psd_replay_find_true(const struct psd_worker_result *result, double dilation_ratio, double *true_ratio)
{
	const double own_ratio = ratio_of(result->own_cpu_sec, result);
	const double left_ratio = MOST_BUSY_RATIO - fmax(0.0, psd_replay_busy_ratio(result) - own_ratio);

	if (left_ratio < LEAST_LEFT_RATIO)
		return false;
	*true_ratio = ceil(dilation_ratio * fmax(own_ratio / left_ratio, late_ratio(result) / MOST_LATE_RATIO));
	*true_ratio = fmax(*true_ratio, floor(dilation_ratio) + 1.0);
	return true;
}

enum psd_status psd_replay_estimate(const struct psd_case *made, double payload_ratio, double *dilation_ratio,
				    struct psd_error *err)
{
	const struct psd_run_length length = psd_run_length_make(made->system, 0, 0.0);
	struct psd_outcome outcome;
	enum psd_status status = psd_estimate(&made->program, length, &outcome, err);
	double bytes = 0.0;

	if (status)
		return status;
	for (unsigned node = 0; node < psd_layout_nodes(&made->plan.layout); node++)
		bytes += payload_ratio * (double)psd_program_traffic(&made->program, node).sent_bytes;
	*dilation_ratio = fmax(1.0, ceil(bytes / MACHINE_BYTES_PER_SEC / outcome.iteration_sec));
	return PSD_OK;
}

enum psd_status psd_replay_check(const struct psd_worker_result *result, double dilation_ratio, const char *system_name,
				 struct psd_error *err)
{
	const double busy_ratio = psd_replay_busy_ratio(result);
	double true_ratio;

	if (psd_replay_is_true(result))
		return PSD_OK;
	if (!psd_replay_find_true(result, dilation_ratio, &true_ratio))
		return psd_error_set(
			err, PSD_ERUN, PSD_NOWHERE,
			"%s: this machine was busy for %.0f %% of the time, must be %.0f %% or less, and mostly with other "
			"programs: no dilation helps",
			system_name, 100.0 * busy_ratio, 100.0 * MOST_BUSY_RATIO);
	if (busy_ratio > MOST_BUSY_RATIO)
		return psd_error_set(
			err, PSD_ERUN, PSD_NOWHERE,
			"%s: at dilation %g this machine was busy for %.0f %% of the time, must be %.0f %% or less; use "
			"--dilation %.0f",
			system_name, dilation_ratio, 100.0 * busy_ratio, 100.0 * MOST_BUSY_RATIO, true_ratio);
	return psd_error_set(err, PSD_ERUN, PSD_NOWHERE,
			     "%s: at dilation %g timers of this machine were late by %.1f %% of an iteration, must be %.0f %% or "
			     "less; use --dilation %.0f",
			     system_name, dilation_ratio, 100.0 * late_ratio(result), 100.0 * MOST_LATE_RATIO, true_ratio);
}
