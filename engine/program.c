/* Unrolls a plan into operations. The order of operations is the order of generation, so that equal ranks fall back on it. */
#include "engine/program.h"

#include <assert.h>
#include <stdlib.h>

const char *const psd_op_kind_names[PSD_OP_KINDS + 1] = {
	"forward", "backward", "copy", "copy", "send", "receive", "reduce", "factor", "collective", "gate", "barrier", "next", NULL,
};

#define NO_OP UINT32_MAX

/* Grows arrays of operations and edges; remembers a failed allocation instead of reporting each. */
struct builder {
	const struct psd_plan *plan;
	struct psd_program program;
	uint32_t ops_capacity;
	uint32_t edges_capacity;
	bool is_out_of_memory;
	uint32_t *backward_of_layer;
	uint32_t backward_end;   /* the backward operation of the first layer: the last one to run */
	uint32_t gate_backward;  /* sequential schedule: stages wait for each other at these; NO_OP otherwise */
	uint32_t gate_copied_out;
	uint32_t gate_pushed;
	uint32_t gate_pulled;
	uint32_t barrier;        /* barrier per iteration: where all synchronisation ends, else NO_OP */
	uint32_t *done_ops;      /* pairs of layer and operation that ends the layer's synchronisation on a host */
	uint32_t n_done;
	uint32_t done_capacity;
};

static uint32_t *grow(uint32_t *array, uint32_t *capacity, bool *is_out_of_memory)
{
	const uint32_t wanted = *capacity > 0 ? *capacity * 2 : 256;
	uint32_t *grown = realloc(array, wanted * sizeof(*grown));
	if (grown == NULL) {
		*is_out_of_memory = true;
		return array;
	}
	*capacity = wanted;
	return grown;
}

static uint32_t add_op(struct builder *b, const struct psd_op *op)
{
	struct psd_program *program = &b->program;
	if (program->n_ops == b->ops_capacity) {
		const uint32_t wanted = b->ops_capacity > 0 ? b->ops_capacity * 2 : 256;
		struct psd_op *grown = realloc(program->ops, wanted * sizeof(*grown));
		if (grown == NULL) {
			b->is_out_of_memory = true;
			return 0;
		}
		program->ops = grown;
		b->ops_capacity = wanted;
	}
	program->ops[program->n_ops] = *op;
	return program->n_ops++;
}

/* `waits` cannot start before `before` is done, in the same iteration or in the one before. Edges are collected as (before, waits)
 * and sorted into both directions at the end. */
static void add_edge(struct builder *b, uint32_t before, uint32_t waits, bool is_next_iteration)
{
	struct psd_program *program = &b->program;
	if (before == NO_OP || waits == NO_OP)
		return;
	if (program->n_edges == b->edges_capacity) {
		const uint32_t wanted = b->edges_capacity > 0 ? b->edges_capacity * 2 : 1024;
		struct psd_edge *from = realloc(program->dependencies, wanted * sizeof(*from));
		if (from != NULL)
			program->dependencies = from;
		struct psd_edge *to = realloc(program->dependents, wanted * sizeof(*to));
		if (to != NULL)
			program->dependents = to;
		if (from == NULL || to == NULL) {
			b->is_out_of_memory = true;
			return;
		}
		b->edges_capacity = wanted;
	}
	program->dependencies[program->n_edges] = (struct psd_edge){before, is_next_iteration};
	program->dependents[program->n_edges] = (struct psd_edge){waits, is_next_iteration};
	program->n_edges++;
}

static void after(struct builder *b, uint32_t waits, uint32_t before)
{
	add_edge(b, before, waits, false);
}

static uint32_t add_gate(struct builder *b, enum psd_where where)
{
	return add_op(b, &(struct psd_op){.kind = PSD_OP_GATE, .resource = PSD_RESOURCE_NONE, .where = where, .item = -1});
}

/* The layer's new parameters are on this host's device once `op` is done. */
static void add_done(struct builder *b, unsigned layer, uint32_t op)
{
	if (b->n_done + 2 > b->done_capacity)
		b->done_ops = grow(b->done_ops, &b->done_capacity, &b->is_out_of_memory);
	if (b->is_out_of_memory)
		return;
	b->done_ops[b->n_done++] = layer;
	b->done_ops[b->n_done++] = op;
}

/* ---- compute ---- */

static bool has_parameters(const struct psd_graph *graph, unsigned layer)
{
	return graph->layers[layer].n_tensors > 0;
}

/* Layers run in groups: one with parameters and the parameterless ones after it (before the first of them: with it). A forward
 * operation is named after the first layer of its group, and so is the backward one, which ends there. */
static unsigned group_end(const struct psd_graph *graph, unsigned first)
{
	unsigned end = first;
	bool has_seen_parameters = false;
	while (end < graph->n_layers && !(has_seen_parameters && has_parameters(graph, end))) {
		has_seen_parameters = has_seen_parameters || has_parameters(graph, end);
		end++;
	}
	return end;
}

static unsigned parameter_layer(const struct psd_graph *graph, unsigned first, unsigned end)
{
	for (unsigned l = first; l < end; l++)
		if (has_parameters(graph, l))
			return l;
	return first;
}

static uint32_t add_compute(struct builder *b, enum psd_op_kind kind, unsigned first, unsigned end)
{
	const struct psd_costs *costs = b->plan->costs;
	const double *layer_sec = kind == PSD_OP_FORWARD ? costs->forward_sec : costs->backward_sec;
	double work_sec = 0.0;
	for (unsigned l = first; l < end; l++)
		work_sec += layer_sec[l];
	/* compute precedes factor rebuilds on the device: gradients still to come hold up more than parameters not yet needed */
	return add_op(b, &(struct psd_op){
				 .kind = kind,
				 .resource = PSD_RESOURCE_DEVICE,
				 .where = PSD_WHERE_WORKERS,
				 .layer = parameter_layer(b->plan->graph, first, end),
				 .item = -1,
				 .work_sec = work_sec,
				 .rank = -1,
			 });
}

/* Returns the first forward operation. */
static uint32_t add_all_compute(struct builder *b)
{
	const struct psd_graph *graph = b->plan->graph;
	uint32_t first_forward = NO_OP;
	uint32_t previous = NO_OP;
	for (unsigned first = 0; first < graph->n_layers; first = group_end(graph, first)) {
		const uint32_t op = add_compute(b, PSD_OP_FORWARD, first, group_end(graph, first));
		if (first_forward == NO_OP)
			first_forward = op;
		after(b, op, previous);
		previous = op;
	}
	/* the groups again, backwards: forward operations hold their order */
	const uint32_t n_groups = b->program.n_ops;
	unsigned end = graph->n_layers;
	for (uint32_t g = n_groups; g-- > 0 && !b->is_out_of_memory;) {
		const unsigned layer = b->program.ops[g].layer;
		const unsigned first = g == 0 ? 0 : layer;
		const uint32_t op = add_compute(b, PSD_OP_BACKWARD, first, end);
		after(b, op, previous);
		previous = op;
		b->backward_of_layer[layer] = op;
		end = first;
	}
	b->backward_end = previous;
	return first_forward;
}

/* ---- synchronisation ---- */

struct stage {
	const struct psd_plan_item *item;
	int item_index;
	unsigned slice;
	int64_t rank;
};

static uint64_t slice_elements(const struct psd_plan_item *item, unsigned slice)
{
	const uint64_t whole = item->subject.elements / item->n_slices;
	const uint64_t rest = item->subject.elements % item->n_slices;
	return whole + (slice < rest ? 1 : 0);
}

static struct psd_op base_op(const struct stage *stage, enum psd_op_kind kind, enum psd_resource resource, enum psd_where where)
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
static uint32_t add_copy(struct builder *b, const struct stage *stage, enum psd_op_kind kind, enum psd_where where, uint64_t bytes,
			 uint32_t before)
{
	const double copy_bps = b->plan->system->host.copy_bps;
	if (copy_bps == 0.0 || bytes == 0)
		return before;
	struct psd_op op = base_op(stage, kind, kind == PSD_OP_COPY_OUT ? PSD_RESOURCE_COPY_OUT : PSD_RESOURCE_COPY_IN, where);
	op.bytes = bytes;
	op.work_sec = 8.0 * (double)bytes / copy_bps;
	const uint32_t copy = add_op(b, &op);
	after(b, copy, before);
	return copy;
}

struct message {
	uint32_t send;
	uint32_t receive;
};

static bool has_network(const struct builder *b)
{
	return psd_layout_hosts(&b->plan->layout) > 1;
}

/* A send on `from` hosts and its receive on `to` hosts; both NO_OP on a single host. */
static struct message add_message(struct builder *b, const struct stage *stage, enum psd_pattern pattern, uint64_t elements,
				  enum psd_where from, enum psd_where to)
{
	if (!has_network(b))
		return (struct message){NO_OP, NO_OP};
	struct psd_op send = base_op(stage, PSD_OP_SEND, PSD_RESOURCE_NIC, from);
	send.payload = (struct psd_payload){pattern, elements, b->plan->value_bytes, stage->item->root};
	send.bytes = elements * b->plan->value_bytes;
	struct message message = {.send = add_op(b, &send)};
	struct psd_op receive = base_op(stage, PSD_OP_RECEIVE, PSD_RESOURCE_NONE, to);
	receive.match = message.send;
	receive.bytes = send.bytes;
	receive.payload = send.payload;
	message.receive = add_op(b, &receive);
	return message;
}

static uint32_t add_reduce(struct builder *b, const struct stage *stage, uint64_t elements)
{
	const double reduce_bps = b->plan->system->host.reduce_bps;
	struct psd_op op = base_op(stage, PSD_OP_REDUCE, PSD_RESOURCE_CPU, PSD_WHERE_SHARDS);
	const double part_bytes = (double)elements * b->plan->value_bytes / b->plan->layout.shards;
	op.bytes = (uint64_t)(part_bytes * b->plan->layout.workers);
	op.work_sec = reduce_bps > 0 ? 8.0 * part_bytes * b->plan->layout.workers / reduce_bps : 0.0;
	op.resource = op.work_sec > 0 ? PSD_RESOURCE_CPU : PSD_RESOURCE_NONE;
	return add_op(b, &op);
}

static void add_ps_slice(struct builder *b, const struct stage *stage)
{
	const struct psd_plan_item *item = stage->item;
	const uint64_t elements = slice_elements(item, stage->slice);
	const uint64_t bytes = elements * b->plan->value_bytes;
	const uint32_t backward = b->backward_of_layer[item->layer];
	const uint32_t out = add_copy(b, stage, PSD_OP_COPY_OUT, PSD_WHERE_WORKERS, bytes, backward);
	if (out != backward)
		after(b, out, b->gate_backward);
	after(b, b->gate_copied_out, out);

	const struct message push = add_message(b, stage, PSD_PATTERN_PUSH, elements, PSD_WHERE_WORKERS, PSD_WHERE_SHARDS);
	after(b, push.send, out);
	after(b, push.send, b->gate_backward);
	after(b, push.send, b->gate_copied_out);

	const uint32_t reduce = add_reduce(b, stage, elements);
	after(b, reduce, push.receive);
	after(b, reduce, out);
	after(b, reduce, b->gate_backward);
	after(b, reduce, b->gate_copied_out);
	after(b, b->gate_pushed, reduce);

	const struct message pull = add_message(b, stage, PSD_PATTERN_PULL, elements, PSD_WHERE_SHARDS, PSD_WHERE_WORKERS);
	after(b, pull.send, reduce);
	after(b, pull.send, b->gate_pushed);

	uint32_t arrived = pull.receive != NO_OP ? pull.receive : reduce;
	if (arrived != reduce && !b->plan->layout.has_separate_servers) {
		/* a worker's own shard never crosses the network: both must be there */
		const uint32_t both = add_gate(b, PSD_WHERE_WORKERS);
		after(b, both, arrived);
		after(b, both, reduce);
		arrived = both;
	}
	after(b, b->gate_pulled, arrived);
	const uint32_t in = add_copy(b, stage, PSD_OP_COPY_IN, PSD_WHERE_WORKERS, bytes, arrived);
	if (in != arrived)
		after(b, in, b->gate_pulled);
	add_done(b, item->layer, in);
}

static uint32_t add_rebuild(struct builder *b, const struct stage *stage, enum psd_where where, unsigned senders)
{
	struct psd_op op = base_op(stage, PSD_OP_FACTOR, PSD_RESOURCE_DEVICE, where);
	op.work_sec = psd_cost_rebuild_flops(&stage->item->subject, senders) / b->plan->costs->gemm_flops_per_sec;
	return add_op(b, &op);
}

/* Factors leave every worker by `pattern` and arrive, copied to the device, at the `to` hosts; returns what a rebuild waits for. */
static uint32_t add_factor_exchange(struct builder *b, const struct stage *stage, enum psd_pattern pattern, enum psd_where to)
{
	const struct psd_plan_item *item = stage->item;
	const uint64_t elements = (uint64_t)item->subject.batch * ((uint64_t)item->subject.rows + item->subject.columns);
	const uint64_t bytes = elements * b->plan->value_bytes;
	const uint32_t backward = b->backward_of_layer[item->layer];
	const uint32_t out = add_copy(b, stage, PSD_OP_COPY_OUT, PSD_WHERE_WORKERS, bytes, backward);
	if (out != backward)
		after(b, out, b->gate_backward);
	after(b, b->gate_copied_out, out);
	const struct message message = add_message(b, stage, pattern, elements, PSD_WHERE_WORKERS, to);
	after(b, message.send, out);
	after(b, message.send, b->gate_backward);
	after(b, message.send, b->gate_copied_out);
	after(b, b->gate_pushed, message.receive);
	const uint32_t in =
		add_copy(b, stage, PSD_OP_COPY_IN, to, bytes * (b->plan->layout.workers - 1), message.receive);
	if (in != message.receive)
		after(b, in, b->gate_pushed);
	return in;
}

static void add_sfb(struct builder *b, const struct stage *stage)
{
	const unsigned layer = stage->item->layer;
	if (b->plan->layout.workers == 1) {
		add_done(b, layer, b->backward_of_layer[layer]); /* nobody to hear from */
		return;
	}
	const uint32_t arrived = add_factor_exchange(b, stage, PSD_PATTERN_BROADCAST, PSD_WHERE_WORKERS);
	const uint32_t rebuild = add_rebuild(b, stage, PSD_WHERE_WORKERS, b->plan->layout.workers - 1);
	after(b, rebuild, arrived);
	after(b, rebuild, b->backward_of_layer[layer]);
	after(b, rebuild, b->gate_pushed);
	add_done(b, layer, rebuild);
}

static void add_adam(struct builder *b, const struct stage *whole)
{
	const struct psd_plan_item *item = whole->item;
	const struct psd_layout *layout = &b->plan->layout;
	if (layout->workers == 1 && !layout->has_separate_servers) {
		add_done(b, item->layer, b->backward_of_layer[item->layer]);
		return;
	}
	const uint32_t arrived = add_factor_exchange(b, whole, PSD_PATTERN_TO_ROOT, PSD_WHERE_ROOT);
	const uint32_t rebuild =
		add_rebuild(b, whole, PSD_WHERE_ROOT, layout->workers - (layout->has_separate_servers ? 0 : 1));
	after(b, rebuild, arrived);
	after(b, rebuild, b->backward_of_layer[item->layer]);
	after(b, rebuild, b->gate_pushed);
	for (unsigned s = 0; s < item->n_slices; s++) {
		const struct stage stage = {item, whole->item_index, s, whole->rank};
		const uint64_t elements = slice_elements(item, s);
		const uint64_t bytes = elements * b->plan->value_bytes;
		const uint32_t out = add_copy(b, &stage, PSD_OP_COPY_OUT, PSD_WHERE_ROOT, bytes, rebuild);
		const struct message down =
			add_message(b, &stage, PSD_PATTERN_FROM_ROOT, elements, PSD_WHERE_ROOT, PSD_WHERE_WORKERS);
		after(b, down.send, out);
		after(b, b->gate_pulled, down.receive);
		/* the root's own device holds the matrix already, but takes part in the copy like every worker */
		const uint32_t in = add_copy(b, &stage, PSD_OP_COPY_IN, PSD_WHERE_WORKERS, bytes, down.receive);
		after(b, in, rebuild);
		if (in != down.receive)
			after(b, in, b->gate_pulled);
		add_done(b, item->layer, in);
	}
}

static void add_ring(struct builder *b, const struct stage *stage)
{
	const struct psd_plan_item *item = stage->item;
	const uint32_t backward = b->backward_of_layer[item->layer];
	if (b->plan->layout.workers == 1) {
		add_done(b, item->layer, backward);
		return;
	}
	const uint64_t bytes = item->subject.elements * b->plan->value_bytes;
	const uint32_t out = add_copy(b, stage, PSD_OP_COPY_OUT, PSD_WHERE_WORKERS, bytes, backward);
	if (out != backward)
		after(b, out, b->gate_backward);
	struct psd_op op = base_op(stage, PSD_OP_COLLECTIVE, PSD_RESOURCE_NIC, PSD_WHERE_WORKERS);
	op.payload = (struct psd_payload){PSD_PATTERN_RING, item->subject.elements, b->plan->value_bytes, 0};
	op.bytes = bytes;
	const uint32_t ring = add_op(b, &op);
	after(b, ring, out);
	after(b, ring, b->gate_backward);
	add_done(b, item->layer, add_copy(b, stage, PSD_OP_COPY_IN, PSD_WHERE_WORKERS, bytes, ring));
}

static void add_synchronisation(struct builder *b)
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
		case PSD_METHOD_SFB:
			add_sfb(b, &stage);
			break;
		case PSD_METHOD_ADAM:
			add_adam(b, &stage);
			break;
		case PSD_METHOD_RING:
			add_ring(b, &stage);
			break;
		case PSD_METHODS:
			break;
		}
	}
}

/* A sequential stack does one stage for all tensors before the next: copy out, push, pull, copy in. */
static void add_stage_gates(struct builder *b)
{
	b->gate_backward = b->gate_copied_out = b->gate_pushed = b->gate_pulled = NO_OP;
	if (b->plan->system->schedule != PSD_SCHEDULE_SEQUENTIAL)
		return;
	b->gate_backward = add_gate(b, PSD_WHERE_WORKERS);
	after(b, b->gate_backward, b->backward_end);
	b->gate_copied_out = add_gate(b, PSD_WHERE_WORKERS);
	after(b, b->gate_copied_out, b->gate_backward);
	b->gate_pushed = add_gate(b, PSD_WHERE_EVERYWHERE);
	b->gate_pulled = add_gate(b, PSD_WHERE_WORKERS);
}

static void add_ends(struct builder *b, uint32_t first_forward)
{
	const bool waits_for_all = b->plan->system->barrier == PSD_BARRIER_ITERATION;
	const uint32_t barrier = add_op(b, &(struct psd_op){
						   .kind = PSD_OP_BARRIER,
						   .resource = PSD_RESOURCE_DEVICE,
						   .where = PSD_WHERE_WORKERS,
						   .item = -1,
						   .work_sec = b->plan->system->host.iteration_sec,
						   .rank = -1,
					   });
	const uint32_t next = add_op(b, &(struct psd_op){
						.kind = PSD_OP_NEXT,
						.resource = PSD_RESOURCE_NONE,
						.where = PSD_WHERE_WORKERS,
						.item = -1,
					});
	after(b, barrier, b->backward_end);
	after(b, next, barrier);
	add_edge(b, next, first_forward, true);
	const uint32_t *done = b->done_ops;
	for (uint32_t i = 0; i < b->n_done && !b->is_out_of_memory; i += 2) {
		if (waits_for_all) {
			after(b, barrier, done[i + 1]);
			continue;
		}
		/* forward operations are the first of the program, one a group; the group of this layer waits for it */
		uint32_t forward = first_forward;
		while (b->program.ops[forward].layer != done[i])
			forward++;
		add_edge(b, done[i + 1], forward, true);
		if (forward == first_forward)
			after(b, next, done[i + 1]);
	}
	b->program.next_op = next;
}

/* ---- edges into rows ---- */

static enum psd_status sort_edges(struct psd_program *program, struct psd_error *err)
{
	const uint32_t n_edges = program->n_edges;
	struct psd_edge *before = program->dependencies; /* edge i: before[i].op, then waits[i].op */
	struct psd_edge *waits = program->dependents;
	struct psd_edge *dependencies = malloc((n_edges + 1) * sizeof(*dependencies));
	struct psd_edge *dependents = malloc((n_edges + 1) * sizeof(*dependents));
	if (dependencies == NULL || dependents == NULL) {
		free(dependencies);
		free(dependents);
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a program of %u edges", n_edges);
	}
	for (uint32_t i = 0; i < n_edges; i++) {
		program->ops[waits[i].op].n_dependencies++;
		program->ops[before[i].op].n_dependents++;
	}
	uint32_t first_dependency = 0;
	uint32_t first_dependent = 0;
	for (uint32_t op = 0; op < program->n_ops; op++) {
		program->ops[op].first_dependency = first_dependency;
		program->ops[op].first_dependent = first_dependent;
		first_dependency += program->ops[op].n_dependencies;
		first_dependent += program->ops[op].n_dependents;
		program->ops[op].n_dependencies = 0;
		program->ops[op].n_dependents = 0;
	}
	for (uint32_t i = 0; i < n_edges; i++) {
		struct psd_op *waiting = &program->ops[waits[i].op];
		struct psd_op *earlier = &program->ops[before[i].op];
		dependencies[waiting->first_dependency + waiting->n_dependencies++] = before[i];
		dependents[earlier->first_dependent + earlier->n_dependents++] = waits[i];
	}
	free(before);
	free(waits);
	program->dependencies = dependencies;
	program->dependents = dependents;
	return PSD_OK;
}

enum psd_status psd_program_make(struct psd_program *program, const struct psd_plan *plan, struct psd_error *err)
{
	struct builder b = {.plan = plan, .program = {.plan = plan}};
	enum psd_status status = PSD_OK;
	b.backward_of_layer = calloc(plan->graph->n_layers, sizeof(*b.backward_of_layer));
	if (b.backward_of_layer == NULL) {
		status = psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a program");
		goto out;
	}
	const uint32_t first_forward = add_all_compute(&b);
	add_stage_gates(&b);
	add_synchronisation(&b);
	add_ends(&b, first_forward);
	if (b.is_out_of_memory) {
		status = psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a program");
		goto out;
	}
	status = sort_edges(&b.program, err);
out:
	free(b.backward_of_layer);
	free(b.done_ops);
	if (status != PSD_OK)
		psd_program_release(&b.program);
	else
		*program = b.program;
	return status;
}

void psd_program_release(struct psd_program *program)
{
	free(program->ops);
	free(program->dependencies);
	free(program->dependents);
	*program = (struct psd_program){0};
}

bool psd_op_runs_on(const struct psd_op *op, const struct psd_layout *layout, unsigned host)
{
	switch (op->where) {
	case PSD_WHERE_WORKERS:
		return psd_layout_is_worker(layout, host);
	case PSD_WHERE_SHARDS:
		return psd_layout_is_shard(layout, host);
	case PSD_WHERE_ROOT:
		return host == op->payload.root;
	case PSD_WHERE_EVERYWHERE:
		return true;
	}
	return false;
}

struct psd_traffic psd_program_traffic(const struct psd_program *program, unsigned node)
{
	struct psd_traffic total = {0, 0};
	for (uint32_t i = 0; i < program->n_ops; i++) {
		const struct psd_op *op = &program->ops[i];
		if (op->kind != PSD_OP_SEND && op->kind != PSD_OP_COLLECTIVE)
			continue;
		const struct psd_traffic traffic = psd_payload_node_traffic(&op->payload, &program->plan->layout, node);
		total.sent_bytes += traffic.sent_bytes;
		total.received_bytes += traffic.received_bytes;
	}
	return total;
}
