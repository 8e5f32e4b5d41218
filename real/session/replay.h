/* Dilation that a replay needs on this machine: an estimate before the first run, a verdict after each. Runs
 * nothing. */
#ifndef PSD_REAL_REPLAY_H
#define PSD_REAL_REPLAY_H

#include <stdbool.h>

#include "engine/base/error.h"
#include "engine/case/case.h"
#include "real/session/worker.h"

/* Whole dilation at which the machine carries the traffic of all busy links, and its latency per message is estimated
 * to be negligible. PSD_ENOMEM, PSD_ERUN: no estimate. */
enum psd_status psd_replay_estimate(const struct psd_case *made, double payload_ratio, double *dilation_ratio,
				    struct psd_error *err) PSD_MUST_CHECK;

/* PSD_ERUN, naming the dilation to use, if by estimate the latency per message is not negligible. */
enum psd_status psd_replay_check_messages(const struct psd_case *made, double dilation_ratio,
					  struct psd_error *err) PSD_MUST_CHECK;

/* True if the run kept its times: the machine was idle enough and timers fired in time. Pure, as the others. */
bool psd_replay_is_true(const struct psd_worker_result *result);
/* Busy share of the machine's processor time, all processes together, 0 to 1. */
double psd_replay_busy_ratio(const struct psd_worker_result *result);
/* Short runs that search a dilation. */
struct psd_soundings {
	double next_ratio;     /* next dilation; the first from psd_replay_estimate() */
	unsigned n_runs;       /* finished runs */
	double dilation_ratio; /* last dilation that kept its times, or else the last one */
	struct psd_worker_result result;
	bool is_true;
};

/* Evaluates a run at next_ratio. Returns false when no more runs are needed: timers were late by half the limit at
 * most, or no dilation helps. Starts from zeros except next_ratio. */
bool psd_replay_sound(struct psd_soundings *soundings, const struct psd_worker_result *result);

/* Evaluates a whole run. Returns true and sets the dilation for another one, at most four times larger, if it did not
 * keep its times. False, with *dilation_ratio unchanged: it did, or no dilation helps. */
bool psd_replay_again(const struct psd_worker_result *result, double *dilation_ratio);

/* PSD_ERUN, naming the dilation to use, if the run did not keep its times. system_name: for the message. */
enum psd_status psd_replay_check(const struct psd_worker_result *result, const struct psd_replay *replay,
				 const char *system_name, struct psd_error *err) PSD_MUST_CHECK;

#endif
