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
	unsigned peer; /* host that sent the message; unused if it is not an arrival */
	/* Seconds in which a device really worked; the rest of the operation it waited for a processor core. 0: it
	 * worked all the time. */
	double work_sec;
};
typedef void (*psd_span_fn)(void *context, const struct psd_program *program, const struct psd_span *span);

/* Rows of a process, `tid` in events; 1 to 5 are enum psd_resource plus one. */
enum { PSD_TRACE_ROW_NETWORK_OUT = PSD_RESOURCE_NIC + 1, PSD_TRACE_ROW_NETWORK_IN = PSD_RESOURCES + 1 };

/* Append the begin of a trace with the names of its processes (workers and separate servers), then one span, then the
 * end. A span of a transfer has arrows from the sender's row to the receiver's, unless it has very many receivers.
 * executor: name of the executor, as in the results' CSV. */
void psd_trace_add_head(struct psd_text *text, const struct psd_case *traced, const char *executor);
void psd_trace_add_span(struct psd_text *text, const struct psd_program *program, const struct psd_span *span);
void psd_trace_add_end(struct psd_text *text);

/* Appends an operation's name in double quotes: one word for the kind, then the layer, as in "push fc6 2/9". */
void psd_trace_add_name(struct psd_text *text, const struct psd_plan *plan, const struct psd_op *op);
/* Appends the other members that the host sends to and receives from in a collective, with bytes, as two lists. */
void psd_trace_add_peers(struct psd_text *text, const struct psd_program *program, const struct psd_span *span);
/* Returns the payload bytes that the host of the span sends and receives in it; 0 if it is no transfer. */
struct psd_traffic psd_trace_traffic(const struct psd_program *program, const struct psd_span *span);
/* Adds `more` to the bytes that a host has sent and received until now_sec, and appends the sums that changed as
 * counters of process `pid`. */
void psd_trace_count(struct psd_text *text, unsigned pid, struct psd_traffic *until_now, struct psd_traffic more,
		     double now_sec);

#endif
