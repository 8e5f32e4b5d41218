/* Execution of a run on one host, step by step. The caller's thread executes each step, and may alternate between
 * several sessions. Callbacks in the options receive progress, spans (operations with start and end) and the final
 * parameters. */
#ifndef PSD_REAL_SESSION_H
#define PSD_REAL_SESSION_H

#include "real/session/worker.h"

struct psd_worker;

/* Prepares the host and joins the other hosts. Blocks until all have joined, at most options->connect_sec seconds. No
 * other function of this file waits for other hosts. The options, and everything to which they point, must stay valid
 * until psd_session_close(). *session is filled on success. Statuses as psd_worker_run(). */
enum psd_status psd_session_open(struct psd_worker **session, const struct psd_worker_options *options,
				 struct psd_error *err) PSD_MUST_CHECK;
/* Waits for the next event, at most within_sec seconds and at most half a second, and handles it. *is_over: all hosts
 * have executed all their operations, and *result has this host's measurements. After that, or after a failure, do not
 * call it again. */
enum psd_status psd_session_step(struct psd_worker *session, double within_sec, bool *is_over,
				 struct psd_worker_result *result, struct psd_error *err) PSD_MUST_CHECK;
/* Ends a session. status, err: result of the last step. If status is an error, the other hosts are told that this host
 * gives up, with the text of err. */
void psd_session_close(struct psd_worker *session, enum psd_status status, const struct psd_error *err);

#endif
