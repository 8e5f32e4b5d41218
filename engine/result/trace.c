/* Spans as trace events. Every line is one event, so that the order of spans is the order of lines. */
#include "engine/result/trace.h"

#include <inttypes.h>
#include <stdio.h>

/* Rows of a process; 1 to 5 are enum psd_resource plus one. */
enum { ROW_NETWORK_IN = PSD_RESOURCES + 1 };

static const char *const row_names[] = {"compute", "copy out", "copy in", "host CPU", "network out", "network in"};

/* ---- head ---- */

static void name_process(struct psd_text *text, const struct psd_layout *layout, unsigned host)
{
	const bool is_worker = psd_layout_is_worker(layout, host);

	psd_text_add(text, "%s\n{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%u,\"args\":{\"name\":\"%s %u\"}}",
		     host ? "," : "", host, is_worker ? "worker" : "server", is_worker ? host : host - layout->workers);
	for (unsigned row = 1; row <= ROW_NETWORK_IN; row++)
		psd_text_add(
			text,
			",\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%u,\"tid\":%u,\"args\":{\"name\":\"%s\"}}",
			host, row, row_names[row - 1]);
}

void psd_trace_add_head(struct psd_text *text, const struct psd_case *traced, const char *executor)
{
	const struct psd_layout *layout = &traced->plan.layout;

	psd_text_add(text, "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"scenario\":");
	psd_text_add_json(text, traced->matter->scenario->title);
	psd_text_add(text, ",\"system\":");
	psd_text_add_json(text, traced->system->name);
	psd_text_add(text, ",\"executor\":\"%s\",\"nodes\":%u},\"traceEvents\":[", executor, traced->point.nodes);
	for (unsigned host = 0; host < psd_layout_hosts(layout); host++)
		name_process(text, layout, host);
}

/* ---- spans ---- */

static const char *verb(const struct psd_op *op)
{
	switch (op->kind) {
	case PSD_OP_COPY_OUT: return "copy out";
	case PSD_OP_COPY_IN: return "copy in";
	case PSD_OP_SEND: return op->payload.pattern->name;
	case PSD_OP_FACTOR: return "rebuild";
	case PSD_OP_COLLECTIVE: return "all-reduce";
	default: return psd_op_kind_names[op->kind];
	}
}

/* "push fc6 2/9"; what belongs to no layer is its verb alone. */
static void add_name(struct psd_text *text, const struct psd_plan *plan, const struct psd_op *op)
{
	char name[200];
	const unsigned n_slices = op->item >= 0 ? plan->items[op->item].n_slices : 1;
	const char *layer_name = plan->graph->layers[op->layer].name;

	if (op->kind == PSD_OP_BARRIER)
		snprintf(name, sizeof(name), "end of iteration");
	else if (n_slices > 1 && op->kind != PSD_OP_FACTOR)
		snprintf(name, sizeof(name), "%s %.150s %u/%u", verb(op), layer_name, op->slice + 1, n_slices);
	else
		snprintf(name, sizeof(name), "%s %.150s", verb(op), layer_name);
	psd_text_add_json(text, name);
}

void psd_trace_add_span(struct psd_text *text, const struct psd_program *program, const struct psd_span *span)
{
	const struct psd_op *op = &program->ops[span->task.op];
	const int row = span->is_arrival ? ROW_NETWORK_IN : (int)op->resource + 1;

	psd_text_add(text, ",\n{\"name\":");
	add_name(text, program->plan, op);
	psd_text_add(text,
		     ",\"cat\":\"%s\",\"ph\":\"X\",\"pid\":%u,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"args\":{"
		     "\"iteration\":%" PRIu32 ",\"bytes\":%" PRIu64 "}}",
		     span->is_arrival ? "receive" : psd_op_kind_names[op->kind], span->host, row, 1e6 * span->start_sec,
		     1e6 * (span->end_sec - span->start_sec), span->task.iteration, span->bytes);
}

void psd_trace_add_end(struct psd_text *text)
{
	psd_text_add(text, "\n]}\n");
}
