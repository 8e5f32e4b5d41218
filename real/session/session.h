/* A host's part in a run, driven step by step by the caller's thread, which may drive several. Observers in its options
 * get progress, spans and final parameters. */
#ifndef PSD_REAL_SESSION_H
#define PSD_REAL_SESSION_H

#include "real/session/worker.h"

struct psd_worker;

/* Prepares the host and joins the others, for at most options->connect_sec; no other call waits for them. The options,
 * with all that they point to, must stay until close. *session is filled on success. Statuses as psd_worker_run(). */
enum psd_status psd_session_open(struct psd_worker **session, const struct psd_worker_options *options,
				 struct psd_error *err) PSD_MUST_CHECK;
/* Waits for an event, for within_sec and at most half a second, and handles it. *is_over: this host and the others are
 * done, and *result is its measurement. Make no further steps then, nor after a failure. */
enum psd_status psd_session_step(struct psd_worker *session, double within_sec, bool *is_over,
				 struct psd_worker_result *result, struct psd_error *err) PSD_MUST_CHECK;
/* Ends a session. status, err: of the last step; on an error the other hosts are told why this one gives up. */
void psd_session_close(struct psd_worker *session, enum psd_status status, const struct psd_error *err);

#endif
