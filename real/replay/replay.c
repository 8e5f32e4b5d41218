#include "real/replay/replay.h"

#include <math.h>
#include <stdio.h>

#include "engine/estimate/estimate.h"
#include "real/base/affinity.h"

/* Above this, processes wait for each other's processors. */
#define MOST_BUSY_RATIO	  0.70
#define MOST_LATE_RATIO	  0.02 /* share of an iteration */
#define SAFE_LATE_RATIO	  0.01 /* for a trial run; a whole run may be later than two iterations */
#define MOST_SOUNDINGS	  6
#define MOST_TIMES_LONGER 4.0  /* limit for repeating a whole run */
#define LEAST_LEFT_RATIO  0.20 /* that others must leave free: with less, their load decides, not the dilation */
/* Rate of all links of an emulated cluster on two cores, both ends included (tests/bench/real/bench_emulation.c). */
#define MACHINE_BYTES_PER_SEC 1e9
/* Latency that the machine adds to a message, and core time of each end: a step in a ring of four hosts with small
 * tensors (scenarios/execute/messages.yaml, two cores of an AMD EPYC) takes some 150 us more than its link. */
#define MACHINE_LATENCY_SEC  55e-6
#define MACHINE_HANDLING_SEC 25e-6
/* Real computation cannot be slowed down by a dilation. */
#define REAL_ADVICE "real workers take no dilation: use fewer nodes, slower links or larger messages"

static double late_ratio(const struct psd_worker_result *result)
{
	return result->iteration_sec > 0.0 ? result->late_sec / result->iteration_sec : 0.0;
}

/* Share of the processor time that is left by real workers, which have machines of their own in the cluster. */
static double ratio_of(double cpu_sec, const struct psd_worker_result *result)
{
	const double left_sec = result->machine_cpu_sec - result->real_cpu_sec;

	return left_sec > 0.0 ? cpu_sec / left_sec : 0.0;
}

double psd_replay_busy_ratio(const struct psd_worker_result *result)
{
	return ratio_of(fmax(0.0, result->busy_cpu_sec - result->real_cpu_sec), result);
}

static bool is_true(const struct psd_worker_result *result, double most_late_ratio)
{
	return psd_replay_busy_ratio(result) <= MOST_BUSY_RATIO && late_ratio(result) <= most_late_ratio;
}

bool psd_replay_is_true(const struct psd_worker_result *result)
{
	return is_true(result, MOST_LATE_RATIO);
}

/* A message costs the same at any dilation, so its share shrinks with a longer time; other load does not. */
static bool find_true(const struct psd_worker_result *result, double dilation_ratio, double most_late_ratio,
		      double *true_ratio)
{
	const double own_ratio = ratio_of(result->own_cpu_sec, result);
	const double left_ratio = MOST_BUSY_RATIO - fmax(0.0, psd_replay_busy_ratio(result) - own_ratio);

	if (left_ratio < LEAST_LEFT_RATIO)
		return false;
	*true_ratio = ceil(dilation_ratio * fmax(own_ratio / left_ratio, late_ratio(result) / most_late_ratio));
	*true_ratio = fmax(*true_ratio, floor(dilation_ratio) + 1.0);
	return true;
}

/* ---- before the first run ---- */

/* Lateness of an iteration whose messages are that much later. */
static enum psd_status estimate_late(const struct psd_case *made, double late_sec, double *iteration_sec,
				     struct psd_error *err)
{
	const struct psd_run_length length = psd_run_length_make(made->system, 0, 0.0);
	struct psd_system system = *made->system;
	struct psd_outcome outcome;
	struct psd_case late;

	system.host.latency_sec += late_sec;
	PSD_TRY(psd_case_make(&late, made->costed, &system, made->point, err));
	const enum psd_status status = psd_estimate(&late.program, length, &outcome, err);
	psd_case_release(&late);
	if (!status)
		*iteration_sec = outcome.iteration_sec;
	return status;
}

/* Each host handles one message at a time, on the available cores. */
static double machine_message_sec(const struct psd_case *made)
{
	const double hosts_per_core = (double)psd_layout_hosts(&made->plan.layout) / psd_affinity_count();

	return MACHINE_LATENCY_SEC + 2.0 * MACHINE_HANDLING_SEC * fmax(1.0, hosts_per_core);
}

/* Time by which this machine's messages lengthen an iteration. */
static enum psd_status estimate_excess(const struct psd_case *made, double plain_sec, double dilation_ratio,
				       double *excess_ratio, struct psd_error *err)
{
	double sec = 0.0;

	PSD_TRY(estimate_late(made, machine_message_sec(made) / dilation_ratio, &sec, err));
	*excess_ratio = sec / plain_sec - 1.0;
	return PSD_OK;
}

/* Smallest whole dilation at which messages lengthen it by little enough. */
static enum psd_status find_for_messages(const struct psd_case *made, double plain_sec, double *dilation_ratio,
					 struct psd_error *err)
{
	double low = 0.0, high = 1.0, excess_ratio = 0.0;

	PSD_TRY(estimate_excess(made, plain_sec, high, &excess_ratio, err));
	while (excess_ratio > MOST_LATE_RATIO && high < PSD_MOST_DILATION) {
		low = high;
		high = fmin(2.0 * high, PSD_MOST_DILATION);
		PSD_TRY(estimate_excess(made, plain_sec, high, &excess_ratio, err));
	}
	if (excess_ratio > MOST_LATE_RATIO)
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE,
				     "%s: this machine's latency per message is too long for dilations up to %.0f",
				     made->system->name, high);
	while (high - low > 1.0) {
		const double middle = floor((low + high) / 2.0);

		PSD_TRY(estimate_excess(made, plain_sec, middle, &excess_ratio, err));
		*(excess_ratio > MOST_LATE_RATIO ? &low : &high) = middle;
	}
	*dilation_ratio = high;
	return PSD_OK;
}

enum psd_status psd_replay_estimate(const struct psd_case *made, double payload_ratio, double *dilation_ratio,
				    struct psd_error *err)
{
	const double bytes_per_sec =
		payload_ratio * psd_layout_hosts(&made->plan.layout) * made->plan.rates.send_bps / 8.0;
	double plain_sec = 0.0, for_messages_ratio = 1.0;

	PSD_TRY(estimate_late(made, 0.0, &plain_sec, err));
	PSD_TRY(find_for_messages(made, plain_sec, &for_messages_ratio, err));
	*dilation_ratio = fmax(for_messages_ratio, ceil(bytes_per_sec / MACHINE_BYTES_PER_SEC));
	return PSD_OK;
}

enum psd_status psd_replay_check_messages(const struct psd_case *made, double dilation_ratio, struct psd_error *err)
{
	const bool has_real = made->costed->scenario->replay.real_workers > 0;
	double plain_sec = 0.0, excess_ratio = 0.0, true_ratio = 1.0;
	char advice[40];

	PSD_TRY(estimate_late(made, 0.0, &plain_sec, err));
	PSD_TRY(estimate_excess(made, plain_sec, dilation_ratio, &excess_ratio, err));
	if (excess_ratio > MOST_LATE_RATIO && !has_real)
		PSD_TRY(find_for_messages(made, plain_sec, &true_ratio, err));
	if (excess_ratio <= MOST_LATE_RATIO)
		return PSD_OK;
	snprintf(advice, sizeof(advice), "use --dilation %.0f", true_ratio);
	return psd_error_set(err, PSD_ERUN, PSD_NOWHERE,
			     "%s: at dilation %g this machine's latency per message lengthens an iteration by %.1f "
			     "%%, must be %.0f %% or less; %s",
			     made->system->name, dilation_ratio, 100.0 * excess_ratio, 100.0 * MOST_LATE_RATIO,
			     has_real ? REAL_ADVICE : advice);
}

/* ---- trial runs ---- */

bool psd_replay_sound(struct psd_soundings *soundings, const struct psd_worker_result *result)
{
	const double sounded_ratio = soundings->next_ratio;

	if (is_true(result, MOST_LATE_RATIO) || !soundings->is_true) {
		soundings->is_true = is_true(result, MOST_LATE_RATIO);
		soundings->dilation_ratio = sounded_ratio;
		soundings->result = *result;
	}
	soundings->n_runs++;
	return soundings->n_runs < MOST_SOUNDINGS && !is_true(result, SAFE_LATE_RATIO) &&
	       find_true(result, sounded_ratio, SAFE_LATE_RATIO, &soundings->next_ratio);
}

/* ---- after a run ---- */

bool psd_replay_again(const struct psd_worker_result *result, double *dilation_ratio)
{
	const double most_ratio = MOST_TIMES_LONGER * *dilation_ratio;

	if (psd_replay_is_true(result) || !find_true(result, *dilation_ratio, SAFE_LATE_RATIO, dilation_ratio))
		return false;
	*dilation_ratio = fmin(*dilation_ratio, most_ratio);
	return true;
}

enum psd_status psd_replay_check(const struct psd_worker_result *result, const struct psd_replay *replay,
				 const char *system_name, struct psd_error *err)
{
	const bool is_busy = psd_replay_busy_ratio(result) > MOST_BUSY_RATIO;
	char at[32] = "", advice[sizeof(REAL_ADVICE) + 2];
	double true_ratio;

	if (psd_replay_is_true(result))
		return PSD_OK;
	if (replay->real_workers > 0) {
		snprintf(advice, sizeof(advice), "; %s", REAL_ADVICE);
	} else if (find_true(result, replay->dilation_ratio, MOST_LATE_RATIO, &true_ratio)) {
		snprintf(at, sizeof(at), "at dilation %g ", replay->dilation_ratio);
		snprintf(advice, sizeof(advice), "; use --dilation %.0f", true_ratio);
	} else {
		snprintf(advice, sizeof(advice), ", and mostly %s: no dilation helps",
			 is_busy ? "with other programs" : "other programs kept it busy");
	}
	if (is_busy)
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE,
				     "%s: %sthis machine was busy for %.0f %% of the time%s, must be %.0f %% or less%s",
				     system_name, at, 100.0 * psd_replay_busy_ratio(result),
				     replay->real_workers > 0 ? " that real workers left" : "", 100.0 * MOST_BUSY_RATIO,
				     advice);
	return psd_error_set(
		err, PSD_ERUN, PSD_NOWHERE,
		"%s: %stimers of this machine were late by %.1f %% of an iteration, must be %.0f %% or less%s",
		system_name, at, 100.0 * late_ratio(result), 100.0 * MOST_LATE_RATIO, advice);
}
