/* What the methods' operations have in common. Edges alone tell wait-free from sequential: the gates are PSD_NO_OP in
 * one. */
#include "engine/program/program_builder.h"

struct psd_op psd_stage_op(const struct psd_stage *stage, enum psd_op_kind kind, enum psd_resource resource,
			   enum psd_where where)
{
	return (struct psd_op){
		.kind = kind,
		.resource = resource,
		.where = where,
		.layer = stage->item->layer,
		.item = stage->item_index,
		.slice = stage->slice,
		.rank = stage->rank,
		.payload = {.root = stage->item->root},
	};
}

struct psd_stage psd_stage_reply(const struct psd_builder *b, const struct psd_stage *stage)
{
	struct psd_stage reply = *stage;

	if (b->plan->system->schedule == PSD_SCHEDULE_SEQUENTIAL)
		reply.rank += b->plan->n_items + b->plan->graph->n_layers; /* behind every other */
	return reply;
}

uint32_t psd_builder_add_copy(struct psd_builder *b, const struct psd_stage *stage, enum psd_op_kind kind,
			      enum psd_where where, uint64_t bytes, uint32_t before)
{
	const double copy_bps = b->plan->system->host.copy_bps;
	if (copy_bps == 0.0 || bytes == 0)
		return before;
	struct psd_op op = psd_stage_op(stage, kind,
					kind == PSD_OP_COPY_OUT ? PSD_RESOURCE_COPY_OUT : PSD_RESOURCE_COPY_IN, where);
	op.bytes = bytes;
	op.work_sec = 8.0 * (double)bytes / copy_bps;
	const uint32_t copy = psd_builder_add_op(b, &op);
	psd_builder_after(b, copy, before);
	return copy;
}

uint32_t psd_builder_add_departure(struct psd_builder *b, const struct psd_stage *stage, uint64_t bytes)
{
	const uint32_t out = psd_builder_add_copy(b, stage, PSD_OP_COPY_OUT, PSD_WHERE_WORKERS, bytes, stage->gradient);
	if (out != stage->gradient)
		psd_builder_after(b, out, b->gate_backward);
	psd_builder_after(b, b->gate_copied_out, out);
	return out;
}

void psd_builder_after_departure(struct psd_builder *b, uint32_t waits, uint32_t departure)
{
	psd_builder_after(b, waits, departure);
	psd_builder_after(b, waits, b->gate_backward);
	psd_builder_after(b, waits, b->gate_copied_out);
}

struct psd_message psd_builder_add_message(struct psd_builder *b, const struct psd_stage *stage,
					   const struct psd_route *route, uint64_t elements)
{
	if (psd_layout_hosts(&b->plan->layout) == 1)
		return (struct psd_message){PSD_NO_OP, PSD_NO_OP};
	struct psd_op send = psd_stage_op(stage, PSD_OP_SEND, PSD_RESOURCE_NIC, route->from);
	send.payload = (struct psd_payload){.pattern = route->pattern,
					    .elements = elements,
					    .value_bytes = b->plan->value_bytes,
					    .root = stage->item->root};
	send.source = route->source;
	send.target = route->target;
	send.bytes = elements * b->plan->value_bytes;
	struct psd_message message = {.send = psd_builder_add_op(b, &send)};
	struct psd_op receive = psd_stage_op(stage, PSD_OP_RECEIVE, PSD_RESOURCE_NONE, route->to);
	receive.match = message.send;
	receive.bytes = send.bytes;
	receive.payload = send.payload;
	receive.source = send.source;
	receive.target = send.target;
	message.receive = psd_builder_add_op(b, &receive);
	return message;
}

uint32_t psd_builder_add_apply(struct psd_builder *b, const struct psd_stage *stage, enum psd_where where,
			       uint32_t gradient)
{
	const double update_bps = b->plan->system->host.update_bps;
	struct psd_op op = psd_stage_op(stage, PSD_OP_APPLY, PSD_RESOURCE_DEVICE, where);
	op.bytes = stage->item->subject.elements * b->plan->value_bytes;
	op.work_sec = update_bps > 0 ? 8.0 * (double)op.bytes / update_bps : 0.0;
	const uint32_t apply = psd_builder_add_op(b, &op);
	psd_builder_after(b, apply, gradient);
	return apply;
}

void psd_builder_add_lone_worker(struct psd_builder *b, const struct psd_stage *stage)
{
	const uint32_t apply = psd_builder_add_apply(b, stage, PSD_WHERE_WORKERS, stage->gradient);
	psd_builder_after(b, apply, b->gate_backward);
	psd_builder_add_done(b, stage, apply);
}

uint32_t psd_builder_add_factor_exchange(struct psd_builder *b, const struct psd_stage *stage,
					 const struct psd_route *route)
{
	const uint64_t elements = psd_subject_factors(&stage->item->subject);
	const uint64_t bytes = elements * b->plan->value_bytes;
	const uint32_t out = psd_builder_add_departure(b, stage, bytes);
	const struct psd_message message = psd_builder_add_message(b, stage, route, elements);
	psd_builder_after_departure(b, message.send, out);
	psd_builder_after(b, b->gate_pushed, message.receive);
	/* others may still be reading this host's factors when it has theirs: it must not overwrite them */
	psd_builder_add_done(b, stage, message.send);
	const uint32_t in = psd_builder_add_copy(b, stage, PSD_OP_COPY_IN, route->to,
						 bytes * (b->plan->layout.workers - 1), message.receive);
	if (in != message.receive)
		psd_builder_after(b, in, b->gate_pushed);
	return in;
}

uint32_t psd_builder_add_rebuild(struct psd_builder *b, const struct psd_stage *stage, enum psd_where where,
				 uint32_t arrived)
{
	const struct psd_layout *layout = &b->plan->layout;
	const bool has_own = where == PSD_WHERE_WORKERS || !layout->has_separate_servers;
	struct psd_op op = psd_stage_op(stage, PSD_OP_FACTOR, PSD_RESOURCE_DEVICE, where);
	op.work_sec = psd_cost_rebuild_flops(&stage->item->subject, layout->workers - has_own) /
		      b->plan->costs->gemm_flops_per_sec;
	const uint32_t rebuild = psd_builder_add_op(b, &op);
	psd_builder_after(b, rebuild, arrived);
	psd_builder_after(b, rebuild, stage->gradient);
	psd_builder_after(b, rebuild, b->gate_pushed);
	return psd_builder_add_apply(b, stage, where, rebuild);
}

void psd_builder_add_synchronisation(struct psd_builder *b)
{
	const bool is_forward = b->plan->system->priority == PSD_PRIORITY_FORWARD;

	for (unsigned i = 0; i < b->plan->n_items && !b->is_out_of_memory; i++) {
		const struct psd_plan_item *item = &b->plan->items[i];
		const struct psd_stage whole = {
			.item = item,
			.item_index = (int)i,
			.rank = is_forward ? (int64_t)item->layer : (int64_t)i,
			.gradient = b->backward_of_layer[item->layer],
		};
		item->method->unroll(b, &whole);
	}
}
