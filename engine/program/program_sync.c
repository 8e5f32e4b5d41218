/* The operations of each synchronisation method. Edges alone tell wait-free from sequential: the gates are PSD_NO_OP in
 * one. */
#include "engine/program/program_builder.h"

struct stage {
	const struct psd_plan_item *item;
	int item_index;
	unsigned slice;
	int64_t rank;
};

static struct psd_op base_op(const struct stage *stage, enum psd_op_kind kind, enum psd_resource resource,
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

/* Copies cost nothing where the stack states no rate: then there is no operation and `before` stands for it. */
static uint32_t add_copy(struct psd_builder *b, const struct stage *stage, enum psd_op_kind kind, enum psd_where where,
			 uint64_t bytes, uint32_t before)
{
	const double copy_bps = b->plan->system->host.copy_bps;
	if (copy_bps == 0.0 || bytes == 0)
		return before;
	struct psd_op op =
		base_op(stage, kind, kind == PSD_OP_COPY_OUT ? PSD_RESOURCE_COPY_OUT : PSD_RESOURCE_COPY_IN, where);
	op.bytes = bytes;
	op.work_sec = 8.0 * (double)bytes / copy_bps;
	const uint32_t copy = psd_builder_add_op(b, &op);
	psd_builder_after(b, copy, before);
	return copy;
}

/* A worker's gradient or factors leave the device: the copy out, or the backward operation where copies cost nothing.
 */
static uint32_t add_departure(struct psd_builder *b, const struct stage *stage, uint64_t bytes)
{
	const uint32_t backward = b->backward_of_layer[stage->item->layer];
	const uint32_t out = add_copy(b, stage, PSD_OP_COPY_OUT, PSD_WHERE_WORKERS, bytes, backward);
	if (out != backward)
		psd_builder_after(b, out, b->gate_backward);
	psd_builder_after(b, b->gate_copied_out, out);
	return out;
}

static void after_departure(struct psd_builder *b, uint32_t waits, uint32_t departure)
{
	psd_builder_after(b, waits, departure);
	psd_builder_after(b, waits, b->gate_backward);
	psd_builder_after(b, waits, b->gate_copied_out);
}

struct message {
	uint32_t send;
	uint32_t receive;
};

/* What a message is: between whom, and of what. */
struct route {
	const struct psd_pattern *pattern;
	enum psd_where from, to;
	enum psd_buffer source, target;
};

static const struct route part_up = {&psd_push, PSD_WHERE_WORKERS, PSD_WHERE_SHARDS, PSD_BUFFER_GRADIENT,
				     PSD_BUFFER_RECEIVED};
static const struct route part_down = {&psd_pull, PSD_WHERE_SHARDS, PSD_WHERE_WORKERS, PSD_BUFFER_PARAMETER,
				       PSD_BUFFER_PARAMETER};
static const struct route factors_to_all = {&psd_broadcast, PSD_WHERE_WORKERS, PSD_WHERE_WORKERS, PSD_BUFFER_FACTORS,
					    PSD_BUFFER_FACTORS};
static const struct route factors_to_root = {&psd_to_root, PSD_WHERE_WORKERS, PSD_WHERE_ROOT, PSD_BUFFER_FACTORS,
					     PSD_BUFFER_FACTORS};
static const struct route matrix = {&psd_from_root, PSD_WHERE_ROOT, PSD_WHERE_WORKERS, PSD_BUFFER_PARAMETER,
				    PSD_BUFFER_PARAMETER};

static bool has_network(const struct psd_builder *b)
{
	return psd_layout_hosts(&b->plan->layout) > 1;
}

/* A send and its receive; both PSD_NO_OP on a single host. */
static struct message add_message(struct psd_builder *b, const struct stage *stage, const struct route *route,
				  uint64_t elements)
{
	if (!has_network(b))
		return (struct message){PSD_NO_OP, PSD_NO_OP};
	struct psd_op send = base_op(stage, PSD_OP_SEND, PSD_RESOURCE_NIC, route->from);
	send.payload = (struct psd_payload){.pattern = route->pattern,
					    .elements = elements,
					    .value_bytes = b->plan->value_bytes,
					    .root = stage->item->root};
	send.source = route->source;
	send.target = route->target;
	send.bytes = elements * b->plan->value_bytes;
	struct message message = {.send = psd_builder_add_op(b, &send)};
	struct psd_op receive = base_op(stage, PSD_OP_RECEIVE, PSD_RESOURCE_NONE, route->to);
	receive.match = message.send;
	receive.bytes = send.bytes;
	receive.payload = send.payload;
	receive.source = send.source;
	receive.target = send.target;
	message.receive = psd_builder_add_op(b, &receive);
	return message;
}

static uint32_t add_reduce(struct psd_builder *b, const struct stage *stage, uint64_t elements)
{
	const double reduce_bps = b->plan->system->host.reduce_bps;
	struct psd_op op = base_op(stage, PSD_OP_REDUCE, PSD_RESOURCE_CPU, PSD_WHERE_SHARDS);
	const double part_bytes = (double)elements * b->plan->value_bytes / b->plan->layout.shards;
	op.bytes = (uint64_t)(part_bytes * b->plan->layout.workers);
	op.work_sec = reduce_bps > 0 ? 8.0 * part_bytes * b->plan->layout.workers / reduce_bps : 0.0;
	return psd_builder_add_op(b, &op);
}

/* What comes back of a stage. In sequence the replies of all others wait for this host's pushes, so these leave first,
 * else a worker that is behind would keep the others waiting for it, iteration after iteration. */
static struct stage reply_of(const struct psd_builder *b, const struct stage *stage)
{
	struct stage reply = *stage;

	if (b->plan->system->schedule == PSD_SCHEDULE_SEQUENTIAL)
		reply.rank += b->plan->n_items + b->plan->graph->n_layers; /* behind every other */
	return reply;
}

static void add_ps_slice(struct psd_builder *b, const struct stage *stage)
{
	const struct stage reply = reply_of(b, stage);
	const struct psd_plan_item *item = stage->item;
	const uint64_t elements = psd_plan_slice(item, stage->slice).elements;
	const uint64_t bytes = elements * b->plan->value_bytes;
	const uint32_t out = add_departure(b, stage, bytes);
	const struct message push = add_message(b, stage, &part_up, elements);
	after_departure(b, push.send, out);
	const uint32_t reduce = add_reduce(b, stage, elements);
	psd_builder_after(b, reduce, push.receive);
	after_departure(b, reduce, out);
	psd_builder_after(b, b->gate_pushed, reduce);

	const struct message pull = add_message(b, &reply, &part_down, elements);
	psd_builder_after(b, pull.send, reduce);
	psd_builder_after(b, pull.send, b->gate_pushed);

	uint32_t arrived = pull.receive != PSD_NO_OP ? pull.receive : reduce;
	if (arrived != reduce && !b->plan->layout.has_separate_servers) {
		/* a worker's own shard never crosses the network: both must be there */
		const uint32_t both = psd_builder_add_gate(b, PSD_WHERE_WORKERS);
		psd_builder_after(b, both, arrived);
		psd_builder_after(b, both, reduce);
		arrived = both;
	}
	psd_builder_after(b, b->gate_pulled, arrived);
	const uint32_t in = add_copy(b, stage, PSD_OP_COPY_IN, PSD_WHERE_WORKERS, bytes, arrived);
	if (in != arrived)
		psd_builder_after(b, in, b->gate_pulled);
	psd_builder_add_done(b, item->layer, in);
}

/* The update, where the whole gradient is on the host's own device. */
static uint32_t add_apply(struct psd_builder *b, const struct stage *stage, enum psd_where where, uint32_t gradient)
{
	const double update_bps = b->plan->system->host.update_bps;
	struct psd_op op = base_op(stage, PSD_OP_APPLY, PSD_RESOURCE_DEVICE, where);
	op.bytes = stage->item->subject.elements * b->plan->value_bytes;
	op.work_sec = update_bps > 0 ? 8.0 * (double)op.bytes / update_bps : 0.0;
	const uint32_t apply = psd_builder_add_op(b, &op);
	psd_builder_after(b, apply, gradient);
	return apply;
}

/* A single worker has nobody to hear from. */
static void add_lone_worker(struct psd_builder *b, const struct stage *stage)
{
	const unsigned layer = stage->item->layer;
	const uint32_t apply = add_apply(b, stage, PSD_WHERE_WORKERS, b->backward_of_layer[layer]);
	psd_builder_after(b, apply, b->gate_backward);
	psd_builder_add_done(b, layer, apply);
}

static uint32_t add_rebuild(struct psd_builder *b, const struct stage *stage, enum psd_where where, unsigned senders)
{
	struct psd_op op = base_op(stage, PSD_OP_FACTOR, PSD_RESOURCE_DEVICE, where);
	op.work_sec = psd_cost_rebuild_flops(&stage->item->subject, senders) / b->plan->costs->gemm_flops_per_sec;
	return psd_builder_add_op(b, &op);
}

/* Factors leave every worker by the route and arrive, copied to the device; returns what a rebuild
 * waits for. */
static uint32_t add_factor_exchange(struct psd_builder *b, const struct stage *stage, const struct route *route)
{
	const struct psd_plan_item *item = stage->item;
	const uint64_t elements =
		(uint64_t)item->subject.batch * ((uint64_t)item->subject.rows + item->subject.columns);
	const uint64_t bytes = elements * b->plan->value_bytes;
	const uint32_t out = add_departure(b, stage, bytes);
	const struct message message = add_message(b, stage, route, elements);
	after_departure(b, message.send, out);
	psd_builder_after(b, b->gate_pushed, message.receive);
	/* others may still be reading this host's factors when it has theirs: it must not overwrite them */
	psd_builder_add_done(b, item->layer, message.send);
	const uint32_t in =
		add_copy(b, stage, PSD_OP_COPY_IN, route->to, bytes * (b->plan->layout.workers - 1), message.receive);
	if (in != message.receive)
		psd_builder_after(b, in, b->gate_pushed);
	return in;
}

static void add_sfb(struct psd_builder *b, const struct stage *stage)
{
	const unsigned layer = stage->item->layer;
	if (b->plan->layout.workers == 1) {
		add_lone_worker(b, stage);
		return;
	}
	const uint32_t arrived = add_factor_exchange(b, stage, &factors_to_all);
	const uint32_t rebuild = add_rebuild(b, stage, PSD_WHERE_WORKERS, b->plan->layout.workers - 1);
	psd_builder_after(b, rebuild, arrived);
	psd_builder_after(b, rebuild, b->backward_of_layer[layer]);
	psd_builder_after(b, rebuild, b->gate_pushed);
	psd_builder_add_done(b, layer, add_apply(b, stage, PSD_WHERE_WORKERS, rebuild));
}

static void add_adam(struct psd_builder *b, const struct stage *whole)
{
	const struct psd_plan_item *item = whole->item;
	const struct psd_layout *layout = &b->plan->layout;
	if (layout->workers == 1 && !layout->has_separate_servers) {
		add_lone_worker(b, whole);
		return;
	}
	const uint32_t arrived = add_factor_exchange(b, whole, &factors_to_root);
	const uint32_t rebuild =
		add_rebuild(b, whole, PSD_WHERE_ROOT, layout->workers - (layout->has_separate_servers ? 0 : 1));
	psd_builder_after(b, rebuild, arrived);
	psd_builder_after(b, rebuild, b->backward_of_layer[item->layer]);
	psd_builder_after(b, rebuild, b->gate_pushed);
	const uint32_t apply = add_apply(b, whole, PSD_WHERE_ROOT, rebuild);
	for (unsigned s = 0; s < item->n_slices; s++) {
		const struct stage stage = {item, whole->item_index, s, whole->rank}, reply = reply_of(b, &stage);
		const uint64_t elements = psd_plan_slice(item, s).elements;
		const uint64_t bytes = elements * b->plan->value_bytes;
		const uint32_t out = add_copy(b, &stage, PSD_OP_COPY_OUT, PSD_WHERE_ROOT, bytes, apply);
		const struct message down = add_message(b, &reply, &matrix, elements);
		psd_builder_after(b, down.send, out);
		psd_builder_after(b, b->gate_pulled, down.receive);
		/* the root's own device holds the matrix already, but takes part in the copy like every worker */
		const uint32_t in = add_copy(b, &stage, PSD_OP_COPY_IN, PSD_WHERE_WORKERS, bytes, down.receive);
		psd_builder_after(b, in, apply);
		if (in != down.receive)
			psd_builder_after(b, in, b->gate_pulled);
		psd_builder_add_done(b, item->layer, in);
	}
}

static void add_ring(struct psd_builder *b, const struct stage *stage)
{
	const struct psd_plan_item *item = stage->item;
	if (b->plan->layout.workers == 1) {
		add_lone_worker(b, stage);
		return;
	}
	const uint64_t bytes = item->subject.elements * b->plan->value_bytes;
	const uint32_t out = add_departure(b, stage, bytes);
	struct psd_op op = base_op(stage, PSD_OP_COLLECTIVE, PSD_RESOURCE_NIC, PSD_WHERE_WORKERS);
	op.source = op.target = PSD_BUFFER_GRADIENT;
	op.payload = (struct psd_payload){.pattern = b->plan->all_reduce,
					  .elements = item->subject.elements,
					  .value_bytes = b->plan->value_bytes};
	op.bytes = bytes;
	const uint32_t ring = psd_builder_add_op(b, &op);
	after_departure(b, ring, out);
	const uint32_t in = add_copy(b, stage, PSD_OP_COPY_IN, PSD_WHERE_WORKERS, bytes, ring);
	psd_builder_add_done(b, item->layer, add_apply(b, stage, PSD_WHERE_WORKERS, in));
}

void psd_builder_add_synchronisation(struct psd_builder *b)
{
	for (unsigned i = 0; i < b->plan->n_items && !b->is_out_of_memory; i++) {
		const struct psd_plan_item *item = &b->plan->items[i];
		struct stage stage = {
			.item = item,
			.item_index = (int)i,
			.rank = b->plan->system->priority == PSD_PRIORITY_FORWARD ? (int64_t)item->layer : (int64_t)i,
		};
		switch (item->method) {
		case PSD_METHOD_PS:
			for (stage.slice = 0; stage.slice < item->n_slices; stage.slice++)
				add_ps_slice(b, &stage);
			break;
		case PSD_METHOD_SFB: add_sfb(b, &stage); break;
		case PSD_METHOD_ADAM: add_adam(b, &stage); break;
		case PSD_METHOD_RING: add_ring(b, &stage); break;
		case PSD_METHODS: break;
		}
	}
}
