/* Spans (operations with start and end) of a real run. Each host's process writes its spans to a file without a name,
 * which the starting process has made. Later the starting process makes one trace from all files. Times are seconds of
 * the monotonic clock, which all processes of a machine share. Only in the trace of psd_spans_write() they begin at
 * 0. */
#ifndef PSD_REAL_SPANS_H
#define PSD_REAL_SPANS_H

#include <stdint.h>
#include <stdio.h>

#include "engine/base/error.h"
#include "engine/case/case.h"
#include "engine/result/trace_files.h"

/* Largest number of spans that a host records (40 MB); later spans are not recorded. */
enum { PSD_MAX_SPANS = 1000000 };

struct psd_recorder {
	FILE *file;
	uint64_t n_spans;
};

struct psd_spans {
	struct psd_recorder *hosts; /* one entry for each host whose spans this machine records */
	unsigned n_hosts;
};

/* Opens one recorder for each of n_hosts hosts. *spans is filled on success; psd_spans_close() closes it. PSD_ENOMEM,
 * PSD_ERUN. */
enum psd_status psd_spans_open(struct psd_spans *spans, unsigned n_hosts, struct psd_error *err) PSD_MUST_CHECK;
void psd_spans_close(struct psd_spans *spans);

/* Writes a span to the host's file; a psd_span_fn. context: a struct psd_recorder. Called in the host's process. If
 * writing fails, psd_recorder_finish() reports it. */
void psd_recorder_add_span(void *context, const struct psd_program *program, const struct psd_span *span);
/* Completes the host's file; called at the end of its process. PSD_ERUN: a span could not be written. */
enum psd_status psd_recorder_finish(struct psd_recorder *recorder, struct psd_error *err) PSD_MUST_CHECK;

/* Calls span(context, ...) for each recorded span: all spans of host 0, then those of host 1, and so on; those of a
 * host in the order in which they ended. Call it when all processes of the hosts have ended. PSD_ERUN: a file cannot be
 * read. */
enum psd_status psd_spans_tell(const struct psd_spans *spans, const struct psd_program *program, psd_span_fn span,
			       void *context, struct psd_error *err) PSD_MUST_CHECK;
/* Writes all spans as a trace in which the first span begins at 0. by_clock: times are those of host 0's clock instead,
 * for hosts that write a file each. Call it when all processes of the hosts have ended. *last_iteration: if a host had
 * more spans than it recorded, iteration of its last recorded span, for the first such host; UINT32_MAX: there is none.
 * psd_outputs_commit() finds errors of writing. PSD_ENOMEM; PSD_ERUN: a file cannot be read. */
enum psd_status psd_spans_write(const struct psd_spans *spans, struct psd_trace_files *files,
				const struct psd_case *traced, const char *executor, bool by_clock,
				uint32_t *last_iteration, struct psd_error *err) PSD_MUST_CHECK;

#endif
