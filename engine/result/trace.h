/* Spans of a run as Chrome trace events, one event a line: Perfetto opens them, awk can read them. The executor writes
 * the text to a file. */
#ifndef PSD_TRACE_H
#define PSD_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/text.h"
#include "engine/case/case.h"
#include "engine/program/scheduler.h"

/* Span: an operation that held a resource on a host or, with is_arrival, the arrival of a message. */
struct psd_span {
	unsigned host;
	struct psd_task task;
	bool is_arrival; /* `host` receives the message; false, with resource NIC: `host` sends it */
	uint64_t bytes;	 /* payload of the message that arrived, or of the operation */
	double start_sec, end_sec;
};
typedef void (*psd_span_fn)(void *context, const struct psd_program *program, const struct psd_span *span);

/* Adds the head, with names of processes (workers, separate servers) and rows. executor: as in the results' CSV. Spans
 * follow, then the end. */
void psd_trace_add_head(struct psd_text *text, const struct psd_case *traced, const char *executor);
void psd_trace_add_span(struct psd_text *text, const struct psd_program *program, const struct psd_span *span);
void psd_trace_add_end(struct psd_text *text);

#endif
