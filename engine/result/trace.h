/* Trace of a run as Chrome trace events, one event per line. Perfetto can show it, awk can read it. This module makes
 * the text, the caller writes it to a file. */
#ifndef PSD_TRACE_H
#define PSD_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/text.h"
#include "engine/case/case.h"
#include "engine/program/scheduler.h"

/* Span: an operation that occupied a resource of a host or, with is_arrival, a message on its way to the host. */
struct psd_span {
	unsigned host;
	struct psd_task task;
	/* the span is a message that `host` received; false: an operation (with resource NIC, `host` sends) */
	bool is_arrival;
	uint64_t bytes; /* payload bytes of the message or of the operation */
	double start_sec, end_sec;
};
typedef void (*psd_span_fn)(void *context, const struct psd_program *program, const struct psd_span *span);

/* Append the begin of a trace with the names of its processes (workers and separate servers), then one span, then the
 * end. executor: name of the executor, as in the results' CSV. */
void psd_trace_add_head(struct psd_text *text, const struct psd_case *traced, const char *executor);
void psd_trace_add_span(struct psd_text *text, const struct psd_program *program, const struct psd_span *span);
void psd_trace_add_end(struct psd_text *text);

#endif
