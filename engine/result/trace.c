/* Spans as trace events. Every line is one event, so that the order of spans is the order of lines. */
#include "engine/result/trace.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
	MOST_ARROWS = 16, /* a send with more receivers has none: they would hide each other */
	ID_BITS = 53,	  /* bits of an arrow's number; readers keep numbers as doubles */
};
#define BEFORE_END_SEC 1e-9 /* an arrow ends just inside its span, so that it belongs to it */

static const char *const row_names[] = {"compute", "copy out", "copy in", "host CPU", "network out", "network in"};

/* ---- head ---- */

static void name_process(struct psd_text *text, const struct psd_layout *layout, unsigned host)
{
	const bool is_worker = psd_layout_is_worker(layout, host);

	psd_text_add(text, "%s\n{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%u,\"args\":{\"name\":\"%s %u\"}}",
		     host ? "," : "", host, is_worker ? "worker" : "server", is_worker ? host : host - layout->workers);
	for (unsigned row = 1; row <= PSD_TRACE_ROW_NETWORK_IN; row++)
		psd_text_add(
			text,
			",\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%u,\"tid\":%u,\"args\":{\"name\":\"%s\"}}",
			host, row, row_names[row - 1]);
}

/* All that a span may be, so that readers need no list of their own; gates take no time and have none. */
static void add_kinds(struct psd_text *text)
{
	psd_text_add(text, ",\"kinds\":\"%s", psd_ops[0].name);
	for (unsigned k = 1; k < PSD_OP_KINDS; k++)
		if (!psd_ops[k].is_instant && strcmp(psd_ops[k].name, psd_ops[k - 1].name) != 0)
			psd_text_add(text, " %s", psd_ops[k].name);
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

void psd_trace_add_name(struct psd_text *text, const struct psd_plan *plan, const struct psd_op *op)
{
	const struct psd_plan_item *item = op->item >= 0 ? &plan->items[op->item] : NULL;
	const char *verb = op->payload.collective ? op->payload.collective->name : psd_ops[op->kind].name;
	char name[200];

	if (psd_ops[op->kind].is_fixed)
		snprintf(name, sizeof(name), "%s end of iteration", verb);
	else if (!item && op->bytes > 0)
		snprintf(name, sizeof(name), "%s all", verb);
	else if (item && item->n_slices > 1 && !psd_ops[op->kind].rebuilds)
		snprintf(name, sizeof(name), "%s %.150s %u/%u", verb, plan->graph->layers[op->layer].name,
			 op->slice + 1, item->n_slices);
	else
		snprintf(name, sizeof(name), "%s %.150s", verb, plan->graph->layers[op->layer].name);
	psd_text_add_json(text, name);
}

/* ---- transfers ---- */

static bool next_flow(const struct psd_program *program, const struct psd_span *span, unsigned *i,
		      struct psd_flow *flow)
{
	return psd_payload_flow(&program->ops[span->task.op].payload, &program->plan->layout, span->host, (*i)++, flow);
}

static uint64_t sent_bytes(const struct psd_program *program, const struct psd_span *span, unsigned to)
{
	const struct psd_payload payload = psd_op_payload(&program->ops[span->task.op], span->task.iteration);

	return to == span->host ? 0 : psd_payload_bytes_between(&payload, &program->plan->layout, span->host, to);
}

struct psd_traffic psd_trace_traffic(const struct psd_program *program, const struct psd_span *span)
{
	const struct psd_op *op = &program->ops[span->task.op];
	struct psd_traffic traffic = {.sent_bytes = 0};
	struct psd_flow flow;

	if (span->is_arrival)
		traffic.received_bytes = span->bytes;
	else if (psd_op_is_send(op))
		for (unsigned to = 0; to < psd_layout_hosts(&program->plan->layout); to++)
			traffic.sent_bytes += sent_bytes(program, span, to);
	else if (psd_op_is_collective(op))
		for (unsigned i = 0; next_flow(program, span, &i, &flow);) {
			traffic.sent_bytes += flow.elements * op->payload.value_bytes;
			traffic.received_bytes += flow.received_elements * op->payload.value_bytes;
		}
	return traffic;
}

static void add_peer(struct psd_text *text, unsigned peer, uint64_t bytes, bool *is_first)
{
	if (bytes > 0)
		psd_text_add(text, "%s[%u,%" PRIu64 "]", *is_first ? "" : ",", peer, bytes);
	*is_first = *is_first && bytes == 0;
}

void psd_trace_add_peers(struct psd_text *text, const struct psd_program *program, const struct psd_span *span)
{
	const unsigned value_bytes = program->ops[span->task.op].payload.value_bytes;
	struct psd_flow flow;
	bool is_first = true;

	psd_text_add(text, ",\"sends\":[");
	for (unsigned i = 0; next_flow(program, span, &i, &flow);)
		add_peer(text, flow.to, flow.elements * value_bytes, &is_first);
	psd_text_add(text, "],\"receives\":[");
	is_first = true;
	for (unsigned i = 0; next_flow(program, span, &i, &flow);)
		add_peer(text, flow.from, flow.received_elements * value_bytes, &is_first);
	psd_text_add(text, "]");
}

static void count(struct psd_text *text, unsigned pid, const char *name, uint64_t *until_now, uint64_t more,
		  double now_sec)
{
	*until_now += more;
	if (more > 0)
		psd_text_add(text,
			     ",\n{\"name\":\"%s\",\"ph\":\"C\",\"pid\":%u,\"ts\":%.3f,\"args\":{\"bytes\":%" PRIu64
			     "}}",
			     name, pid, 1e6 * now_sec, *until_now);
}

void psd_trace_count(struct psd_text *text, unsigned pid, struct psd_traffic *until_now, struct psd_traffic more,
		     double now_sec)
{
	count(text, pid, "bytes sent", &until_now->sent_bytes, more.sent_bytes, now_sec);
	count(text, pid, "bytes received", &until_now->received_bytes, more.received_bytes, now_sec);
}

/* One end of the arrow of a message from host `from` to host `to`: both ends compute the same number for it. */
static void add_arrow(struct psd_text *text, const struct psd_program *program, const struct psd_span *span,
		      unsigned from, unsigned to)
{
	const uint64_t n_hosts = psd_layout_hosts(&program->plan->layout);
	const uint64_t task = (uint64_t)span->task.iteration * program->n_ops + span->task.op;
	const uint64_t id = ((task * n_hosts + from) * n_hosts + to) & ((UINT64_C(1) << ID_BITS) - 1);
	const bool begins = span->host == from;
	const double at_sec = begins ? span->start_sec : fmax(span->start_sec, span->end_sec - BEFORE_END_SEC);

	psd_text_add(text,
		     ",\n{\"name\":\"message\",\"cat\":\"message\",\"ph\":\"%s\",\"id\":%" PRIu64
		     ",\"pid\":%u,\"tid\":%d,\"ts\":%.3f}",
		     begins ? "s" : "f\",\"bp\":\"e", id, span->host,
		     span->is_arrival ? PSD_TRACE_ROW_NETWORK_IN : PSD_TRACE_ROW_NETWORK_OUT, 1e6 * at_sec);
}

/* True if the collective has a flow before flow i that has the same sender, or the same receiver. */
static bool has_arrow(const struct psd_program *program, const struct psd_span *span, unsigned i, unsigned from,
		      unsigned to)
{
	struct psd_flow flow;

	for (unsigned before = 0; before + 1 < i;) {
		next_flow(program, span, &before, &flow);
		if (from == span->host ? flow.elements > 0 && flow.to == to
				       : flow.received_elements > 0 && flow.from == from)
			return true;
	}
	return false;
}

static void add_arrows(struct psd_text *text, const struct psd_program *program, const struct psd_span *span)
{
	const struct psd_layout *layout = &program->plan->layout;
	const struct psd_op *op = &program->ops[span->task.op];
	const struct psd_payload payload = psd_op_payload(op, span->task.iteration);
	const unsigned sender = span->is_arrival ? span->peer : span->host;
	struct psd_flow flow;

	if (psd_op_is_collective(op))
		for (unsigned i = 0; next_flow(program, span, &i, &flow) && i <= MOST_ARROWS;) {
			if (flow.elements > 0 && !has_arrow(program, span, i, span->host, flow.to))
				add_arrow(text, program, span, span->host, flow.to);
			if (flow.received_elements > 0 && !has_arrow(program, span, i, flow.from, span->host))
				add_arrow(text, program, span, flow.from, span->host);
		}
	if (!psd_op_is_send(op) || psd_payload_receivers(&payload, layout, sender) > MOST_ARROWS)
		return;
	if (span->is_arrival)
		add_arrow(text, program, span, sender, span->host);
	else
		for (unsigned to = 0; to < psd_layout_hosts(layout); to++)
			if (sent_bytes(program, span, to) > 0)
				add_arrow(text, program, span, span->host, to);
}

/* ---- spans ---- */

void psd_trace_add_span(struct psd_text *text, const struct psd_program *program, const struct psd_span *span)
{
	const struct psd_op *op = &program->ops[span->task.op];
	const int row = span->is_arrival ? PSD_TRACE_ROW_NETWORK_IN : (int)op->resource + 1;

	psd_text_add(text, ",\n{\"name\":");
	psd_trace_add_name(text, program->plan, op);
	psd_text_add(text,
		     ",\"cat\":\"%s\",\"ph\":\"X\",\"pid\":%u,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"args\":{"
		     "\"iteration\":%" PRIu32 ",\"bytes\":%" PRIu64,
		     psd_ops[span->is_arrival ? PSD_OP_RECEIVE : op->kind].name, span->host, row, 1e6 * span->start_sec,
		     1e6 * (span->end_sec - span->start_sec), span->task.iteration, span->bytes);
	if (psd_op_is_compute(op) && program->plan->micro_batches > 1)
		psd_text_add(text, ",\"micro_batch\":%" PRIu32, op->micro_batch);
	if (span->is_arrival)
		psd_text_add(text, ",\"from\":%u", span->peer);
	else if (psd_op_is_collective(op))
		psd_trace_add_peers(text, program, span);
	psd_text_add(text, "}}");
	add_arrows(text, program, span);
}

void psd_trace_add_end(struct psd_text *text)
{
	psd_text_add(text, "\n]}\n");
}
