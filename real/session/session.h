/* Execution of a run on one host. The caller's thread drives it step by step, and may drive several sessions in turn.
 * Callbacks in the options get progress, spans (operations with start and end) and final parameters. */
#ifndef PSD_REAL_SESSION_H
#define PSD_REAL_SESSION_H

#include "real/session/worker.h"

struct psd_worker;

/* Prepares the host and joins the other hosts. Blocks until all have joined, options->connect_sec at most; no other
 * function waits for other hosts. The options, and everything they point to, must exist until psd_session_close().
 * *session is filled on success. Statuses as psd_worker_run(). */
enum psd_status psd_session_open(struct psd_worker **session, const struct psd_worker_options *options,
				 struct psd_error *err) PSD_MUST_CHECK;
/* Waits for the next event, for within_sec seconds and at most half a second, and handles it. *is_over: all hosts have
 * executed everything, and *result has this host's measurements. Do not call it again after that, nor after a
 * failure. */
enum psd_status psd_session_step(struct psd_worker *session, double within_sec, bool *is_over,
				 struct psd_worker_result *result, struct psd_error *err) PSD_MUST_CHECK;
/* Ends a session. status, err: those of the last step. If status is an error, the other hosts are told that this host
 * gives up, and why. */
void psd_session_close(struct psd_worker *session, enum psd_status status, const struct psd_error *err);

#endif
