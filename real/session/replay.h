/* How slow a replay must be on this machine: an estimate before the first run, a judgement after each. Runs nothing. */
#ifndef PSD_REAL_REPLAY_H
#define PSD_REAL_REPLAY_H

#include <stdbool.h>

#include "engine/base/error.h"
#include "engine/case/case.h"
#include "real/session/worker.h"

/* A dilation at which a machine can move what all links carry at a time when they are busy, and at which what it adds
 * to each message is estimated not to matter; a whole number. PSD_ENOMEM, PSD_ERUN: no estimate. */
enum psd_status psd_replay_estimate(const struct psd_case *made, double payload_ratio, double *dilation_ratio,
				    struct psd_error *err) PSD_MUST_CHECK;

/* PSD_ERUN, with the dilation to use instead, where by estimate it does matter. */
enum psd_status psd_replay_check_messages(const struct psd_case *made, double dilation_ratio,
					  struct psd_error *err) PSD_MUST_CHECK;

/* A run is true to its times if the machine idled often enough and the timers rang in time. Pure, as are the others. */
bool psd_replay_is_true(const struct psd_worker_result *result);
/* What was busy of the machine's processors, with whatever, 0 to 1. */
double psd_replay_busy_ratio(const struct psd_worker_result *result);
/* Short runs that look for a dilation. */
struct psd_soundings {
	double next_ratio;     /* to be run at; the first: psd_replay_estimate() */
	unsigned n_runs;       /* so far */
	double dilation_ratio; /* the last at which one was true, or else the last */
	struct psd_worker_result result;
	bool is_true;
};

/* Takes a run at next_ratio into account. False: no more are needed, since timers were late by half of what is allowed
 * at most, or of no use. Starts from zeros but for next_ratio. */
bool psd_replay_sound(struct psd_soundings *soundings, const struct psd_worker_result *result);

/* Of a whole run at *dilation_ratio that was not true to its times: sets the dilation at which to run it again, as
 * after a sounding, but four times as large at most. False, and unchanged: it was true, or no dilation helps. */
bool psd_replay_again(const struct psd_worker_result *result, double *dilation_ratio);

/* PSD_ERUN, with the dilation to use instead, when the run was not true to its times. system_name: for the message. */
enum psd_status psd_replay_check(const struct psd_worker_result *result, const struct psd_replay *replay,
				 const char *system_name, struct psd_error *err) PSD_MUST_CHECK;

#endif
