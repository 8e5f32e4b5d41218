/* Operations that several methods use. Edges alone distinguish schedules: a gate that is left out is PSD_NO_OP. */
#include "engine/program/program_builder.h"

#include <math.h>

static const double rounding_ratio = 1e-12;

double psd_builder_sec(const struct psd_builder *b, enum psd_op_kind kind, double bytes)
{
	const struct psd_host_costs *host = &b->plan->system->host;

	switch (psd_ops[kind].rate) {
	case PSD_RATE_COPY: return psd_cost_bytes_sec(bytes, host->copy_bps);
	case PSD_RATE_REDUCE: return psd_cost_bytes_sec(bytes, host->reduce_bps);
	case PSD_RATE_UPDATE: return psd_cost_bytes_sec(bytes, host->update_bps);
	case PSD_RATE_CONVERT: return psd_cost_bytes_sec(bytes, psd_cost_convert_bps(host));
	case PSD_RATE_NONE: break;
	}
	return 0.0;
}

struct psd_op psd_stage_op(const struct psd_stage *stage, enum psd_op_kind kind, enum psd_where where)
{
	return (struct psd_op){
		.kind = kind,
		.resource = psd_ops[kind].resource,
		.where = where,
		.layer = stage->item->layer,
		.item = stage->item_index,
		.slice = stage->slice,
		.turn = stage->turn,
		.payload = {.root = stage->item->root},
	};
}

uint32_t psd_builder_add_work(struct psd_builder *b, struct psd_op op, double more_sec, uint32_t before)
{
	op.work_sec = psd_builder_sec(b, op.kind, (double)op.bytes) + more_sec;
	const uint32_t work = psd_builder_add_op(b, &op);
	psd_builder_after(b, work, before);
	return work;
}

struct psd_stage psd_stage_reply(const struct psd_builder *b, const struct psd_stage *stage)
{
	struct psd_stage reply = *stage;

	if (b->plan->system->schedule != PSD_SCHEDULE_WAIT_FREE)
		/* larger than the turns of all other operations */
		reply.turn += b->plan->n_items + b->plan->graph->n_layers;
	return reply;
}

/* True if the buffer is in the memory of a device that has memory of its own. */
static bool is_apart(const struct psd_builder *b, enum psd_buffer buffer)
{
	return psd_buffers[buffer].is_on_device && b->plan->costs->has_own_memory;
}

/* Returns the view of the same values in the buffer that transfers use. */
static struct psd_view on_wire(const struct psd_builder *b, struct psd_view view)
{
	return (struct psd_view){psd_buffer_on_wire(view.buffer, b->plan->wire), view.owner};
}

/* Appends the operation `op`, still without views and duration, as a copy of the values that travel for a view,
 * after operation `before`. Returns it; returns `before` if the buffer is in the host's memory, so that no copy is
 * needed. */
static uint32_t add_copy(struct psd_builder *b, struct psd_op op, struct psd_view view, uint64_t elements,
			 uint32_t before)
{
	if (!is_apart(b, view.buffer) || elements == 0)
		return before;
	op.source = op.target = on_wire(b, view);
	op.bytes = elements * psd_plan_value_bytes(b->plan, op.source.buffer);
	return psd_builder_add_work(b, op, 0.0, before);
}

/* Appends a conversion from one view to another, after operation `before`: on the device if the values are there, at
 * the rate of updates, otherwise on the host's processor, at the rate of sums. Returns it; `before` if no conversion is
 * needed. */
static uint32_t add_convert(struct psd_builder *b, const struct psd_stage *stage, enum psd_where where, bool is_there,
			    struct psd_view source, struct psd_view target, uint64_t elements, uint32_t before)
{
	const struct psd_host_costs *host = &b->plan->system->host;
	struct psd_op op = psd_stage_op(stage, PSD_OP_CONVERT, where);
	op.resource = is_there ? op.resource : PSD_RESOURCE_CPU;
	if (source.buffer == target.buffer || elements == 0)
		return before;
	if (is_there && psd_buffers[target.buffer].is_encoded)
		op.turn = PSD_TURN_BEFORE_LAYERS;
	op.source = source;
	op.target = target;
	op.bytes = elements *
		   (psd_plan_value_bytes(b->plan, source.buffer) + psd_plan_value_bytes(b->plan, target.buffer));
	op.work_sec = is_there ? psd_builder_sec(b, op.kind, (double)op.bytes)
			       : psd_cost_bytes_sec((double)op.bytes, host->reduce_bps);
	if (is_there)
		op.work_sec += host->launch_sec;
	const uint32_t convert = psd_builder_add_op(b, &op);
	psd_builder_after(b, convert, before);
	return convert;
}

uint32_t psd_builder_add_move(struct psd_builder *b, const struct psd_stage *stage, const struct psd_route *route,
			      uint64_t elements, uint32_t before)
{
	return add_convert(b, stage, route->from, is_apart(b, route->source.buffer), route->source, route->target,
			   elements, before);
}

uint32_t psd_builder_add_leaving(struct psd_builder *b, const struct psd_stage *stage, const struct psd_route *route,
				 uint64_t elements, uint32_t before, uint32_t gate)
{
	const uint32_t encoded = add_convert(b, stage, route->from, is_apart(b, route->source.buffer), route->source,
					     on_wire(b, route->source), elements, before);
	if (encoded != before)
		psd_builder_after(b, encoded, gate);
	const uint32_t out =
		add_copy(b, psd_stage_op(stage, PSD_OP_COPY_OUT, route->from), route->source, elements, encoded);
	if (out != encoded)
		psd_builder_after(b, out, gate);
	return out;
}

uint32_t psd_builder_add_arrival(struct psd_builder *b, const struct psd_stage *stage, const struct psd_route *route,
				 uint64_t elements, uint32_t arrived, uint32_t gate)
{
	psd_builder_after(b, gate, arrived);
	const uint32_t in =
		add_copy(b, psd_stage_op(stage, PSD_OP_COPY_IN, route->to), route->target, elements, arrived);
	if (in != arrived)
		psd_builder_after(b, in, gate);
	const uint32_t decoded = add_convert(b, stage, route->to, is_apart(b, route->target.buffer),
					     on_wire(b, route->target), route->target, elements, in);
	if (decoded != in)
		psd_builder_after(b, decoded, gate);
	return decoded;
}

uint32_t psd_builder_add_departure(struct psd_builder *b, const struct psd_stage *stage, const struct psd_route *route,
				   uint64_t elements)
{
	const uint32_t out = psd_builder_add_leaving(b, stage, route, elements, stage->gradient, b->gate_backward);
	psd_builder_after(b, b->gate_copied_out, out);
	return out;
}

void psd_builder_after_departure(struct psd_builder *b, uint32_t waits, uint32_t departure)
{
	psd_builder_after(b, waits, departure);
	psd_builder_after(b, waits, b->gate_backward);
	psd_builder_after(b, waits, b->gate_copied_out);
}

/* Returns an operation that transfers `elements` elements by the route, on the hosts route->from. */
static struct psd_op transfer(const struct psd_builder *b, const struct psd_stage *stage, enum psd_op_kind kind,
			      const struct psd_route *route, uint64_t elements)
{
	struct psd_op op = psd_stage_op(stage, kind, route->from);

	op.payload.collective = route->collective;
	op.payload.elements = elements;
	op.source = on_wire(b, route->source);
	op.target = on_wire(b, route->target);
	op.payload.value_bytes = psd_plan_value_bytes(b->plan, op.source.buffer);
	op.payload.peers = b->plan->peers;
	op.bytes = elements * op.payload.value_bytes;
	return op;
}

struct psd_message psd_builder_add_message(struct psd_builder *b, const struct psd_stage *stage,
					   const struct psd_route *route, uint64_t elements)
{
	if (psd_layout_hosts(&b->plan->layout) == 1)
		return (struct psd_message){PSD_NO_OP, PSD_NO_OP};
	struct psd_op op = transfer(b, stage, PSD_OP_SEND, route, elements);
	const uint32_t send = psd_builder_add_op(b, &op);
	op.kind = PSD_OP_RECEIVE;
	op.resource = PSD_RESOURCE_NONE;
	op.where = route->to;
	op.match = send;
	return (struct psd_message){send, psd_builder_add_op(b, &op)};
}

uint32_t psd_builder_add_collective(struct psd_builder *b, const struct psd_stage *stage, const struct psd_route *route,
				    uint64_t elements)
{
	const struct psd_op op = transfer(b, stage, PSD_OP_COLLECTIVE, route, elements);

	return psd_builder_add_op(b, &op);
}

/* Appends a sum of this number of bytes. Each request to sum a tensor for a sender has a cost of its own. */
static uint32_t add_sum(struct psd_builder *b, const struct psd_stage *stage, enum psd_op_kind kind,
			enum psd_where where, double bytes, unsigned n_senders)
{
	const struct psd_host_costs *host = &b->plan->system->host;
	const double n_tensors = stage->slice == 0 ? stage->item->n_tensors : 0;
	const double n_requests = n_senders * n_tensors * (host->requests ? host->requests : 1);
	struct psd_op op = psd_stage_op(stage, kind, where);

	op.bytes = (uint64_t)bytes;
	op.work_sec = psd_builder_sec(b, kind, bytes) + n_requests * host->request_sec;
	return psd_builder_add_op(b, &op);
}

uint32_t psd_builder_add_reduce(struct psd_builder *b, const struct psd_stage *stage, enum psd_where where,
				double bytes, unsigned n_senders)
{
	return add_sum(b, stage, PSD_OP_REDUCE, where, bytes, n_senders);
}

uint32_t psd_builder_add_node_sum(struct psd_builder *b, const struct psd_stage *stage, double bytes)
{
	return add_sum(b, stage, PSD_OP_SUM, PSD_WHERE_LEADERS, bytes, 0);
}

/* Bytes of the values that travel for an item, on the host that updates most of them. */
static uint64_t updated_bytes(const struct psd_builder *b, const struct psd_stage *stage)
{
	const uint64_t parts = psd_layout_parts(&b->plan->layout, stage->item->method->updates);

	return (stage->item->travelling + parts - 1) / parts * b->plan->value_bytes;
}

/* Appends the operation that computes the sum of squares of a gradient, and of parameters if their norms are needed,
 * which takes the time of reading them once. */
static void add_measure(struct psd_builder *b, const struct psd_stage *stage, enum psd_where where, uint32_t gradient)
{
	struct psd_op op = psd_stage_op(stage, PSD_OP_MEASURE, where);

	if (b->clip == PSD_NO_OP && b->plan->sums_per_tensor == 0)
		return;
	op.bytes = updated_bytes(b, stage) * (b->plan->sums_per_tensor > 1 ? b->plan->sums_per_tensor : 1);
	op.work_sec = psd_builder_sec(b, op.kind, (double)op.bytes);
	op.lag = b->plan->lag;
	const uint32_t measure = psd_builder_add_op(b, &op);
	psd_builder_after_iterations(b, measure, gradient, op.lag);
	if (op.lag > 0) /* behind what the last iteration made of its squares */
		psd_builder_after(b, measure, stage->gradient);
	psd_builder_after(b, b->clip, measure);
}

/* Appends the update by an exchange with a delay in the last iteration of a run, which has no later one. */
static void add_last_apply(struct psd_builder *b, const struct psd_stage *stage, struct psd_op op, uint32_t gradient)
{
	op.lag = 0;
	op.is_last = true;
	const uint32_t apply = psd_builder_add_op(b, &op);
	psd_builder_after(b, apply, gradient);
	psd_builder_after(b, apply, stage->gradient);
	psd_builder_add_done(b, stage, apply);
}

uint32_t psd_builder_add_apply(struct psd_builder *b, const struct psd_stage *stage, enum psd_where where,
			       uint32_t gradient)
{
	const struct psd_host_costs *host = &b->plan->system->host;
	struct psd_op op = psd_stage_op(stage, PSD_OP_APPLY, where);
	op.bytes = updated_bytes(b, stage);
	op.work_sec = psd_builder_sec(b, op.kind, (double)op.bytes);
	if (b->plan->layout.workers > 1)
		op.work_sec += stage->item->n_tensors * host->tensor_sec;
	add_measure(b, stage, where, gradient);
	op.lag = b->plan->lag;
	if (b->plan->reads_stale)
		op.turn = PSD_TURN_BEFORE_LAYERS;
	const uint32_t apply = psd_builder_add_op(b, &op);
	psd_builder_after_iterations(b, apply, gradient, op.lag);
	if (b->plan->reads_stale) /* sums count in the order of iterations */
		psd_builder_after_iterations(b, apply, apply, 1);
	psd_builder_after(b, apply, b->clip);
	if (op.lag > 0) {
		psd_builder_after(b, apply, stage->gradient);
		/* follows from the update and the forward pass between the two; so many gradients are under way */
		psd_builder_after_iterations(b, stage->gradient, gradient, op.lag + 1);
	}
	if (op.lag > 0 && b->plan->local)
		add_last_apply(b, stage, op, gradient);
	return apply;
}

uint32_t psd_builder_add_all_reduce(struct psd_builder *b, const struct psd_stage *stage, const struct psd_route *route,
				    uint64_t elements, uint32_t departure)
{
	const uint32_t sum = psd_builder_add_collective(b, stage, route, elements);

	psd_builder_after_departure(b, sum, departure);
	return psd_builder_add_arrival(b, stage, route, elements, sum, PSD_NO_OP);
}

/* Before the layers that are still to come: what travels waits for it. */
uint32_t psd_builder_add_step(struct psd_builder *b, const struct psd_stage *stage)
{
	struct psd_op op = psd_stage_op(stage, PSD_OP_STEP, PSD_WHERE_WORKERS);

	op.turn = PSD_TURN_BEFORE_LAYERS;
	op.bytes = stage->item->travelling * b->plan->value_bytes;
	const uint32_t step = psd_builder_add_work(b, op, 0.0, stage->gradient);
	psd_builder_after(b, step, b->gate_backward);
	psd_builder_add_done(b, stage, step);
	return step;
}

void psd_builder_add_lone_worker(struct psd_builder *b, const struct psd_stage *stage)
{
	const uint32_t apply = psd_builder_add_apply(b, stage, PSD_WHERE_WORKERS, stage->gradient);
	psd_builder_after(b, apply, b->gate_backward);
	psd_builder_add_done(b, stage, apply);
}

uint32_t psd_builder_add_both(struct psd_builder *b, const struct psd_stage *stage, enum psd_where where,
			      uint32_t arrived, uint32_t encoded)
{
	struct psd_op op = psd_stage_op(stage, PSD_OP_GATE, where);

	op.item = -1;
	const uint32_t both = psd_builder_add_op(b, &op);
	psd_builder_after(b, both, arrived);
	psd_builder_after(b, both, encoded);
	return both;
}

uint32_t psd_builder_add_factor_exchange(struct psd_builder *b, const struct psd_stage *stage,
					 const struct psd_route *route)
{
	const uint64_t elements = psd_subject_factors(&stage->item->subject);
	const uint32_t out = psd_builder_add_departure(b, stage, route, elements);
	const struct psd_message message = psd_builder_add_message(b, stage, route, elements);
	psd_builder_after_departure(b, message.send, out);
	/* others may still be reading this host's factors when it has theirs: it must not overwrite them */
	psd_builder_add_sent(b, stage, message.send);
	return psd_builder_add_factor_arrival(b, stage, route, message.receive, out);
}

uint32_t psd_builder_add_factor_arrival(struct psd_builder *b, const struct psd_stage *stage,
					const struct psd_route *route, uint32_t arrived, uint32_t departure)
{
	const unsigned workers = psd_plan_times(b->plan, stage->item, PSD_BUFFER_FACTORS, 0);
	const uint64_t elements = psd_subject_factors(&stage->item->subject);

	if (!b->plan->wire->is_lossy)
		return psd_builder_add_arrival(b, stage, route, elements * (workers - 1), arrived, b->gate_pushed);
	/* a worker rebuilds from its own factors, too, as the others have them */
	const uint32_t both = psd_builder_add_both(b, stage, route->to, arrived, departure);
	return psd_builder_add_arrival(b, stage, route, elements * workers, both, b->gate_pushed);
}

/* Returns the seconds of one backward operation that compute the weight gradient of a micro-batch, by their share of
 * the layer's FLOPs. */
static double own_gradient_sec(const struct psd_plan *plan, const struct psd_plan_item *item)
{
	const struct psd_subject *subject = &item->subject;
	const double backward_flops = (double)plan->graph->layers[item->layer].backward_flops * subject->batch;

	return plan->costs->backward_sec[item->layer] * psd_cost_rebuild_flops(subject, 1) / backward_flops;
}

/* Where backward makes nothing else, rounding of equal times may leave less than nothing. */
static void leave(struct psd_op *gradient, double sec)
{
	gradient->work_sec -= sec;
	if (fabs(gradient->work_sec) < rounding_ratio * sec)
		gradient->work_sec = 0.0;
}

/* Takes the weight gradient out of the layer's backward operations, one for each micro-batch. An item that is unrolled
 * alone has none: its gradient ends earlier by all of that time. */
static void leave_backward(struct psd_builder *b, const struct psd_stage *stage, double sec)
{
	if (b->n_compute == 0)
		leave(&b->program.ops[stage->gradient], b->plan->micro_batches * sec);
	for (uint32_t o = 0; o < b->n_compute; o++)
		if (psd_ops[b->program.ops[o].kind].is_backward && b->program.ops[o].layer == stage->item->layer)
			leave(&b->program.ops[o], sec);
}

/* One product of all workers' samples, so that all rebuild the same bits; backward then makes none of its own. */
uint32_t psd_builder_add_rebuilt(struct psd_builder *b, const struct psd_stage *stage, enum psd_where where,
				 uint32_t arrived)
{
	const struct psd_plan *plan = b->plan;
	const unsigned others = psd_plan_times(plan, stage->item, PSD_BUFFER_FACTORS, 0) - 1;
	const double own_sec = own_gradient_sec(plan, stage->item);
	const double others_flops = psd_cost_rebuild_flops(&stage->item->subject, others);
	struct psd_op op = psd_stage_op(stage, PSD_OP_FACTOR, where);

	op.work_sec = plan->micro_batches * own_sec + others_flops / plan->costs->gemm_flops_per_sec;
	if (!b->is_out_of_memory)
		leave_backward(b, stage, own_sec);
	const uint32_t rebuild = psd_builder_add_op(b, &op);
	psd_builder_after(b, rebuild, arrived);
	psd_builder_after(b, rebuild, stage->gradient);
	psd_builder_after(b, rebuild, b->gate_pushed);
	return rebuild;
}

uint32_t psd_builder_add_rebuild(struct psd_builder *b, const struct psd_stage *stage, enum psd_where where,
				 uint32_t arrived)
{
	return psd_builder_add_apply(b, stage, where, psd_builder_add_rebuilt(b, stage, where, arrived));
}

/* The method's operations exchange the parameters' change in place of a gradient. */
void psd_builder_add_local(struct psd_builder *b, const struct psd_stage *whole, const struct psd_method *method)
{
	struct psd_stage stage = *whole;

	stage.gradient = psd_builder_add_step(b, whole);
	const uint32_t first = b->program.n_ops;
	method->unroll(b, &stage);
	for (uint32_t i = first; i < b->program.n_ops && !b->is_out_of_memory; i++) {
		b->program.ops[i].is_exchange = true;
		b->program.ops[i].fragment = whole->item->fragment;
	}
}

void psd_builder_add_synchronisation(struct psd_builder *b)
{
	const bool is_forward = b->plan->system->priority == PSD_PRIORITY_FORWARD;

	for (unsigned i = 0; i < b->plan->n_items && !b->is_out_of_memory; i++) {
		const struct psd_plan_item *item = &b->plan->items[i];
		struct psd_stage whole = {
			.item = item,
			.item_index = (int)i,
			.turn = is_forward ? (int64_t)item->layer : (int64_t)i,
		};

		whole.gradient = psd_builder_add_gradient(b, &whole);
		if (b->plan->reads_stale && item->n_tensors > 0)
			whole.gradient = psd_builder_add_keep(b, &whole);
		if (b->plan->local && b->plan->peers == 0)
			psd_builder_add_local(b, &whole, item->method);
		else
			item->method->unroll(b, &whole);
	}
}
