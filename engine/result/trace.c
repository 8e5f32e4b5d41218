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

/* All that a span may be, so that readers need no list of their own; gates take no time and have none. */
static void add_kinds(struct psd_text *text)
{
	psd_text_add(text, ",\"kinds\":\"%s", psd_op_kind_names[0]);
	for (unsigned k = 1; k < PSD_OP_KINDS; k++)
		if (k != PSD_OP_COPY_IN && k != PSD_OP_GATE && k != PSD_OP_NEXT)
			psd_text_add(text, " %s", psd_op_kind_names[k]);
	psd_text_add(text, "\"");
}

void psd_trace_add_head(struct psd_text *text, const struct psd_case *traced, const char *executor)
{
	const struct psd_layout *layout = &traced->plan.layout;

	psd_text_add(text, "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"scenario\":");
	psd_text_add_json(text, traced->costed->scenario->title);
	psd_text_add(text, ",\"system\":");
	psd_text_add_json(text, traced->system->name);
	psd_text_add(text, ",\"executor\":\"%s\",\"nodes\":%u,\"workers\":%u,\"bandwidth_bps\":%.15g", executor,
		     traced->point.nodes, traced->point.workers, traced->point.bandwidth_bps);
	add_kinds(text);
	psd_text_add(text, "},\"traceEvents\":[");
	for (unsigned host = 0; host < psd_layout_hosts(layout); host++)
		name_process(text, layout, host);
}

/* ---- spans ---- */

/* "push fc6 2/9": one word for what is done, then the layer. */
static void add_name(struct psd_text *text, const struct psd_plan *plan, const struct psd_op *op)
{
	const struct psd_plan_item *item = op->item >= 0 ? &plan->items[op->item] : NULL;
	const char *verb = op->payload.collective ? op->payload.collective->name : psd_op_kind_names[op->kind];
	char name[200];

	if (op->kind == PSD_OP_BARRIER)
		snprintf(name, sizeof(name), "%s end of iteration", verb);
	else if (item && item->n_slices > 1 && op->kind != PSD_OP_FACTOR)
		snprintf(name, sizeof(name), "%s %.150s %u/%u", verb, plan->graph->layers[op->layer].name,
			 op->slice + 1, item->n_slices);
	else
		snprintf(name, sizeof(name), "%s %.150s", verb, plan->graph->layers[op->layer].name);
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
		     psd_op_kind_names[span->is_arrival ? PSD_OP_RECEIVE : op->kind], span->host, row,
		     1e6 * span->start_sec, 1e6 * (span->end_sec - span->start_sec), span->task.iteration, span->bytes);
}

void psd_trace_add_end(struct psd_text *text)
{
	psd_text_add(text, "\n]}\n");
}
