/* One host's part in a run, from the outside: whoever has the thread lets it go on, step by step, and may have several.
 * What watches it are the observers of its options: progress, spans, the parameters at the end. */
#ifndef PSD_REAL_SESSION_H
#define PSD_REAL_SESSION_H

#include "real/session/worker.h"

struct psd_worker;

/* Gets ready and joins the others, for options->connect_sec at most: the one call that waits for them. The options, and
 * all they point to, stay until close. *session is filled on success. Statuses of psd_worker_run(). */
enum psd_status psd_session_open(struct psd_worker **session, const struct psd_worker_options *options,
				 struct psd_error *err) PSD_MUST_CHECK;
/* Waits until something happens, for so long and half a second at most, and carries on. *is_over: this host has all it
 * needs, as the others have, and *result is what it measured; no step follows. After a failure none does, either. */
enum psd_status psd_session_step(struct psd_worker *session, double within_sec, bool *is_over,
				 struct psd_worker_result *result, struct psd_error *err) PSD_MUST_CHECK;
/* status, err: what the last step returned; the others hear why this host gives up. */
void psd_session_close(struct psd_worker *session, enum psd_status status, const struct psd_error *err);

#endif
