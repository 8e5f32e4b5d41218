/* Dilation that a replay needs on this machine: an estimate before the first run, a verdict after each. Runs
 * nothing. */
#ifndef PSD_REAL_REPLAY_H
#define PSD_REAL_REPLAY_H

#include <stdbool.h>

#include "engine/base/error.h"
#include "engine/case/case.h"
#include "real/session/worker.h"

/* Estimates the whole dilation at which this machine carries the traffic of all busy links, and at which its latency
 * per message is negligible. PSD_ENOMEM, PSD_ERUN: no estimate. */
enum psd_status psd_replay_estimate(const struct psd_case *made, double payload_ratio, double *dilation_ratio,
				    struct psd_error *err) PSD_MUST_CHECK;

/* Checks by estimate that the latency per message is negligible. PSD_ERUN, naming the dilation to use: it is not. */
enum psd_status psd_replay_check_messages(const struct psd_case *made, double dilation_ratio,
					  struct psd_error *err) PSD_MUST_CHECK;

/* True if the run's times are valid: the machine was idle enough and timers fired in time. Pure, as the others. */
bool psd_replay_is_true(const struct psd_worker_result *result);
/* Busy share of the machine's processor time during the run, all processes together, 0 to 1. */
double psd_replay_busy_ratio(const struct psd_worker_result *result);
/* Series of short runs that search for the smallest sufficient dilation. */
struct psd_soundings {
	double next_ratio;     /* dilation of the next short run; the first is from psd_replay_estimate() */
	unsigned n_runs;       /* number of finished short runs */
	double dilation_ratio; /* last dilation with valid times, or else the last one tried */
	struct psd_worker_result result;
	bool is_true;
};

/* Evaluates a short run at next_ratio. Returns false when no more runs are needed: timers were late by half the limit
 * at most, or no dilation helps. The caller starts from zeros and sets next_ratio. */
bool psd_replay_sound(struct psd_soundings *soundings, const struct psd_worker_result *result);

/* Evaluates a whole run. Returns true if its times are invalid, and sets the dilation for another run, at most four
 * times larger. Returns false, with *dilation_ratio unchanged, if they are valid or no dilation helps. */
bool psd_replay_again(const struct psd_worker_result *result, double *dilation_ratio);

/* Checks that the run's times are valid. PSD_ERUN, naming the dilation to use: no. system_name: for the text. */
enum psd_status psd_replay_check(const struct psd_worker_result *result, const struct psd_replay *replay,
				 const char *system_name, struct psd_error *err) PSD_MUST_CHECK;

#endif
