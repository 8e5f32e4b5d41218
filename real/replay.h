/* How slow a replay must be on this machine: an estimate before the first run, a judgement after each. Refuses to run anything. */
#ifndef PSD_REAL_REPLAY_H
#define PSD_REAL_REPLAY_H

#include <stdbool.h>

#include "engine/case.h"
#include "engine/error.h"
#include "real/worker.h"

/* A dilation at which a machine can move what all links carry at a time when they are busy, and at which what it adds to each message is estimated not to matter; a whole number. PSD_ENOMEM, PSD_ERUN: no estimate. */
enum psd_status psd_replay_estimate(const struct psd_case *made, double payload_ratio, double *dilation_ratio,
				    struct psd_error *err) PSD_MUST_CHECK;

/* PSD_ERUN, with the dilation to use instead, where by estimate it does matter. */
enum psd_status psd_replay_check_messages(const struct psd_case *made, double dilation_ratio,
					  struct psd_error *err) PSD_MUST_CHECK;

/* A run is true to its times when the machine idled often enough and the timers rang in time. Pure, as are the others. */
bool psd_replay_is_true(const struct psd_worker_result *result);
/* After a few iterations: a longer run at the same dilation will be true as well, as far as they can tell. */
bool psd_replay_is_safe(const struct psd_worker_result *result);
/* What was busy of the machine's processors, with whatever, 0 to 1. */
double psd_replay_busy_ratio(const struct psd_worker_result *result);
/* The dilation, a whole number, at which a run that had this result at another one, and was not safe there, would be; larger than the other one.
 * False: at none, for other programs keep the machine busy. */
bool psd_replay_find_true(const struct psd_worker_result *result, double dilation_ratio, double *true_ratio);

/* PSD_ERUN, with the dilation to use instead, when the run was not true to its times. system_name: for the message. */
enum psd_status psd_replay_check(const struct psd_worker_result *result, double dilation_ratio, const char *system_name,
				 struct psd_error *err) PSD_MUST_CHECK;

#endif
