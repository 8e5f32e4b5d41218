/* Spans of a real run. Each host writes records to an unnamed file made before its process; the starting process makes
 * one trace of all. Does not set a zero of time: seconds are those of the monotonic clock, shared by a machine's
 * processes. */
#ifndef PSD_REAL_SPANS_H
#define PSD_REAL_SPANS_H

#include <stdint.h>
#include <stdio.h>

#include "engine/base/error.h"
#include "engine/case/case.h"
#include "engine/result/trace.h"

enum { PSD_MAX_SPANS = 1000000 }; /* spans that a host records, 40 MB; later ones are dropped */

struct psd_recorder {
	FILE *file;
	uint64_t n_spans;
};

struct psd_spans {
	struct psd_recorder *hosts;
	unsigned n_hosts;
};

/* Opens one recorder per host. *spans is filled on success; psd_spans_close() closes it. PSD_ENOMEM, PSD_ERUN. */
enum psd_status psd_spans_open(struct psd_spans *spans, unsigned n_hosts, struct psd_error *err) PSD_MUST_CHECK;
void psd_spans_close(struct psd_spans *spans);

/* Records a span; called in the host's process. Write errors stay in the file's flag until psd_recorder_finish(). */
void psd_recorder_add(struct psd_recorder *recorder, const struct psd_span *span);
/* Completes a host's records before its process ends. PSD_ERUN: a write failed. */
enum psd_status psd_recorder_finish(struct psd_recorder *recorder, struct psd_error *err) PSD_MUST_CHECK;

/* Passes all spans to `span`, host by host, in order of their ends, after all hosts' processes ended. PSD_ERUN. */
enum psd_status psd_spans_tell(const struct psd_spans *spans, const struct psd_program *program, psd_span_fn span,
			       void *context, struct psd_error *err) PSD_MUST_CHECK;
/* Writes the trace, whose first span begins at 0. Called once all hosts' processes have ended. *last_iteration: last
 * one in the trace of the first host with dropped spans, or UINT32_MAX. Write errors stay in out's flag. */
enum psd_status psd_spans_write(const struct psd_spans *spans, FILE *out, const struct psd_case *traced,
				const char *executor, uint32_t *last_iteration, struct psd_error *err) PSD_MUST_CHECK;

#endif
