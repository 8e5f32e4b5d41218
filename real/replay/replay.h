/* Dilation of a replay: the factor by which a replay must be slowed down so that this machine can keep the times of the
 * emulated cluster. This module estimates it before the first run, and judges it after each run. It runs nothing
 * itself. */
#ifndef PSD_REAL_REPLAY_H
#define PSD_REAL_REPLAY_H

#include <stdbool.h>

#include "engine/base/error.h"
#include "engine/case/case.h"
#include "real/keep/run.h"

/* Estimates the smallest integer dilation that fulfils two conditions: this machine can carry the traffic of all busy
 * links, and its own latency per message is negligible. payload_ratio: fraction of each message that is really sent.
 * PSD_ENOMEM; PSD_ERUN: no estimate is possible. */
enum psd_status psd_replay_estimate(const struct psd_case *made, double payload_ratio, double *dilation_ratio,
				    struct psd_error *err) PSD_MUST_CHECK;

/* Estimates whether this machine's latency per message is negligible at this dilation. PSD_ERUN: it is not; the text
 * names the dilation to use. */
enum psd_status psd_replay_check_messages(const struct psd_case *made, double dilation_ratio,
					  struct psd_error *err) PSD_MUST_CHECK;

/* True if the times of the run are valid: the machine was not too busy, and timers ended in time. This function and
 * those after it are pure. */
bool psd_replay_is_true(const struct psd_worker_result *result);
/* Returns the fraction of the machine's processor time that all programs together used during the run, 0 to 1. */
double psd_replay_busy_ratio(const struct psd_worker_result *result);
/* State of the search for the smallest dilation with valid times, by a series of short runs. */
struct psd_soundings {
	double next_ratio; /* dilation for the next short run; the first one is from psd_replay_estimate() */
	unsigned n_runs;   /* number of short runs so far */
	/* Last dilation whose times were valid. If there was none, the last dilation that was tried. */
	double dilation_ratio;
	struct psd_worker_result result;
	bool is_true;
};

/* Judges the short run with dilation next_ratio by its result, and sets next_ratio for the next short run. Returns
 * false if no more short runs are needed, because timers were late by at most half the limit, or because a larger
 * dilation does not help. Before the first call, the caller fills *soundings with zeros and sets next_ratio. */
bool psd_replay_sound(struct psd_soundings *soundings, const struct psd_worker_result *result);

/* Judges a complete run. Returns true if its times are invalid and a larger dilation may help. Then *dilation_ratio is
 * set for the next run, to at most four times its value. Otherwise *dilation_ratio is unchanged. */
bool psd_replay_again(const struct psd_worker_result *result, double *dilation_ratio);

/* Checks that the times of a run are valid. replay: settings of the run. system_name: name of the system for the text.
 * PSD_ERUN: they are not valid; the text names the dilation to use. */
enum psd_status psd_replay_check(const struct psd_worker_result *result, const struct psd_replay *replay,
				 const char *system_name, struct psd_error *err) PSD_MUST_CHECK;

#endif
