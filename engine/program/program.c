/* Makes the operations of a plan in the order in which gradients are generated. Operations with equal turns therefore
 * start in this order. */
#include "engine/program/program_builder.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "engine/base/grow.h"

static void *grow(struct psd_builder *b, void *array, uint32_t n, uint32_t *capacity, size_t entry_bytes)
{
	void *grown = psd_grown(array, n, capacity, entry_bytes);
	b->is_out_of_memory = b->is_out_of_memory || grown == NULL;
	return grown;
}

uint32_t psd_builder_add_op(struct psd_builder *b, const struct psd_op *op)
{
	struct psd_program *program = &b->program;
	struct psd_op *ops = grow(b, program->ops, program->n_ops, &b->ops_capacity, sizeof(*ops));
	if (ops == NULL)
		return 0;
	program->ops = ops;
	ops[program->n_ops] = *op;
	return program->n_ops++;
}

void psd_builder_after_iterations(struct psd_builder *b, uint32_t waits, uint32_t before, uint32_t distance)
{
	struct psd_builder_edge *edges;
	if (before == PSD_NO_OP || waits == PSD_NO_OP)
		return;
	edges = grow(b, b->edges, b->n_edges, &b->edges_capacity, sizeof(*edges));
	if (edges == NULL)
		return;
	b->edges = edges;
	edges[b->n_edges++] = (struct psd_builder_edge){before, waits, distance};
	if (b->program.window <= distance)
		b->program.window = distance + 1;
}

void psd_builder_after(struct psd_builder *b, uint32_t waits, uint32_t before)
{
	psd_builder_after_iterations(b, waits, before, 0);
}

uint32_t psd_builder_add_gate(struct psd_builder *b, enum psd_where where)
{
	return psd_builder_add_op(
		b, &(struct psd_op){.kind = PSD_OP_GATE, .resource = PSD_RESOURCE_NONE, .where = where, .item = -1});
}

static void add_done(struct psd_builder *b, const struct psd_stage *stage, uint32_t op, uint32_t lag)
{
	struct psd_builder_done *done = grow(b, b->done, b->n_done, &b->done_capacity, sizeof(*done));
	if (done == NULL)
		return;
	b->done = done;
	done[b->n_done++] = (struct psd_builder_done){stage->item_index, op, lag};
}

void psd_builder_add_done(struct psd_builder *b, const struct psd_stage *stage, uint32_t op)
{
	add_done(b, stage, op, b->plan->reads_stale ? b->plan->staleness : 0);
}

void psd_builder_add_sent(struct psd_builder *b, const struct psd_stage *stage, uint32_t send)
{
	add_done(b, stage, send, b->plan->staleness);
	/* waits because clipping scales the source of this send in place */
	psd_builder_after_iterations(b, b->clip, send, b->plan->staleness);
}

/* ---- compute ---- */

static bool has_parameters(const struct psd_graph *graph, unsigned layer)
{
	return graph->layers[layer].n_tensors > 0;
}

/* Layers run in groups: one with parameters and the parameterless ones after it (before the first of them: with it). A
 * forward operation is named after the first layer of its group, and so is the backward one, which ends there. */
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

struct psd_layers psd_program_layers(const struct psd_graph *graph, unsigned layer)
{
	const unsigned first_group_end = group_end(graph, 0);
	const unsigned first = layer < first_group_end ? 0 : layer;
	return (struct psd_layers){first, group_end(graph, first)};
}

bool psd_op_ends_forward(const struct psd_op *op, const struct psd_graph *graph)
{
	return psd_ops[op->kind].is_forward && psd_program_layers(graph, op->layer).end == graph->n_layers;
}

static uint32_t add_compute(struct psd_builder *b, enum psd_op_kind kind, uint32_t micro_batch, unsigned first,
			    unsigned end)
{
	const struct psd_costs *costs = b->plan->costs;
	double work_sec = 0.0;
	for (unsigned l = first; l < end; l++)
		work_sec += kind == PSD_OP_FORWARD ? costs->forward_sec[l]
						   : costs->recompute_sec[l] + costs->backward_sec[l];
	/* compute precedes factor rebuilds on the device: gradients still to come hold up more than parameters not yet
	 * needed */
	return psd_builder_add_op(b, &(struct psd_op){
					     .kind = kind,
					     .resource = PSD_RESOURCE_DEVICE,
					     .where = PSD_WHERE_WORKERS,
					     .layer = parameter_layer(b->plan->graph, first, end),
					     .item = -1,
					     .micro_batch = micro_batch,
					     .work_sec = work_sec,
					     .turn = -1,
				     });
}

uint32_t psd_builder_add_passes(struct psd_builder *b, uint32_t micro_batch, uint32_t before)
{
	const struct psd_graph *graph = b->plan->graph;
	const uint32_t first_forward = b->program.n_ops;
	uint32_t previous = before;
	b->first_pass[micro_batch] = first_forward;
	for (unsigned first = 0; first < graph->n_layers; first = group_end(graph, first)) {
		const uint32_t op = add_compute(b, PSD_OP_FORWARD, micro_batch, first, group_end(graph, first));
		psd_builder_after(b, op, previous);
		previous = op;
	}
	b->forward_end = previous;
	/* the groups again, backwards: forward operations hold their order */
	const uint32_t forward_end = b->program.n_ops;
	unsigned end = graph->n_layers;
	for (uint32_t g = forward_end; g-- > first_forward && !b->is_out_of_memory;) {
		const unsigned layer = b->program.ops[g].layer;
		const unsigned first = g == first_forward ? 0 : layer;
		const uint32_t op = add_compute(b, PSD_OP_BACKWARD, micro_batch, first, end);
		psd_builder_after(b, op, previous);
		previous = op;
		b->backward_of_layer[layer] = op;
		end = first;
	}
	b->backward_end = previous;
	return first_forward;
}

uint32_t psd_builder_pass_of(const struct psd_builder *b, uint32_t pass, uint32_t micro_batch)
{
	return b->first_pass[micro_batch] + (pass - b->first_pass[b->plan->micro_batches - 1]);
}

/* A sequential stack does one stage for all tensors before the next: copy out, push, pull, copy in. Servers with a
 * clock do so for push and pull only. */
static void add_stage_gates(struct psd_builder *b)
{
	const enum psd_schedule schedule = b->plan->system->schedule;

	b->gate_backward = b->gate_copied_out = b->gate_pushed = b->gate_pulled = PSD_NO_OP;
	if (schedule == PSD_SCHEDULE_SEQUENTIAL) {
		b->gate_backward = psd_builder_add_gate(b, PSD_WHERE_WORKERS);
		psd_builder_after(b, b->gate_backward, b->backward_end);
		b->gate_copied_out = psd_builder_add_gate(b, PSD_WHERE_WORKERS);
		psd_builder_after(b, b->gate_copied_out, b->gate_backward);
	}
	if (schedule != PSD_SCHEDULE_WAIT_FREE)
		b->gate_pushed = psd_builder_add_gate(b, PSD_WHERE_EVERYWHERE);
	if (schedule == PSD_SCHEDULE_SEQUENTIAL)
		b->gate_pulled = psd_builder_add_gate(b, PSD_WHERE_WORKERS);
}

/* Makes the forward operations of an item's layers wait for the operation that ended the item's synchronisation in an
 * earlier iteration. Forward operations of the first micro-batch are the first of the program, one for each group of
 * layers. */
static void forward_after(struct psd_builder *b, uint32_t first_forward, const struct psd_builder_done *done)
{
	const struct psd_plan_item *item = &b->plan->items[done->item];

	for (uint32_t forward = first_forward; b->program.ops[forward].kind == PSD_OP_FORWARD; forward++)
		if (psd_plan_has_layer(b->plan, item, b->program.ops[forward].layer))
			psd_builder_after_iterations(b, forward, done->op, 1 + done->lag);
}

void psd_builder_add_ends(struct psd_builder *b, uint32_t first_forward)
{
	const bool waits_for_all = b->plan->system->barrier == PSD_BARRIER_ITERATION;
	const uint32_t barrier = psd_builder_add_op(b, &(struct psd_op){
							       .kind = PSD_OP_BARRIER,
							       .resource = PSD_RESOURCE_DEVICE,
							       .where = PSD_WHERE_WORKERS,
							       .item = -1,
							       .work_sec = b->plan->system->host.iteration_sec,
							       .turn = -1,
						       });
	const uint32_t next = psd_builder_add_op(b, &(struct psd_op){
							    .kind = PSD_OP_NEXT,
							    .resource = PSD_RESOURCE_NONE,
							    .where = PSD_WHERE_WORKERS,
							    .item = -1,
						    });
	psd_builder_after(b, barrier, b->backward_end);
	psd_builder_after(b, next, barrier);
	/* Not NEXT, which is on no stream: the barrier is on the device's, so that this can be given ahead. But not
	 * before all forward of the iteration is over: its loss is read then, and a test is due or not. */
	const uint32_t gate = psd_builder_add_gate(b, PSD_WHERE_WORKERS);
	psd_builder_after(b, gate, b->forward_end);
	psd_builder_after_iterations(b, first_forward, barrier, 1);
	psd_builder_after_iterations(b, first_forward, gate, 1);
	for (uint32_t i = 0; i < b->n_done && !b->is_out_of_memory; i++) {
		const struct psd_builder_done *done = &b->done[i];
		const struct psd_plan_item *item = &b->plan->items[done->item];
		if (waits_for_all) {
			psd_builder_after_iterations(b, barrier, done->op, done->lag);
			continue;
		}
		forward_after(b, first_forward, done);
		if (psd_plan_has_layer(b->plan, item, b->program.ops[first_forward].layer))
			psd_builder_after_iterations(b, next, done->op, done->lag);
	}
	if (b->plan->reads_stale)
		psd_builder_add_reads(b, first_forward, barrier);
	b->program.next_op = next;
}

/* ---- edges into rows ---- */

/* Edges of an operation keep the order in which they were collected. */
static enum psd_status sort_edges(const struct psd_builder *b, struct psd_program *program, struct psd_error *err)
{
	program->n_edges = b->n_edges;
	program->dependencies = malloc((b->n_edges + 1) * sizeof(*program->dependencies));
	program->dependents = malloc((b->n_edges + 1) * sizeof(*program->dependents));
	if (program->dependencies == NULL || program->dependents == NULL)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a program of %u edges",
				     b->n_edges);
	for (uint32_t i = 0; i < b->n_edges; i++) {
		program->ops[b->edges[i].waits].n_dependencies++;
		program->ops[b->edges[i].before].n_dependents++;
	}
	uint32_t first_dependency = 0;
	uint32_t first_dependent = 0;
	for (struct psd_op *op = program->ops; op < program->ops + program->n_ops; op++) {
		op->first_dependency = first_dependency;
		op->first_dependent = first_dependent;
		first_dependency += op->n_dependencies;
		first_dependent += op->n_dependents;
		op->n_dependencies = op->n_dependents = 0;
		program->has_groups = program->has_groups || op->payload.group.n > 0;
	}
	for (uint32_t i = 0; i < b->n_edges; i++) {
		const struct psd_builder_edge *edge = &b->edges[i];
		struct psd_op *waits = &program->ops[edge->waits];
		struct psd_op *before = &program->ops[edge->before];
		program->dependencies[waits->first_dependency + waits->n_dependencies++] =
			(struct psd_edge){edge->before, edge->distance};
		program->dependents[before->first_dependent + before->n_dependents++] =
			(struct psd_edge){edge->waits, edge->distance};
	}
	return PSD_OK;
}

/* Marks the operations that wait in the same iteration for a collective, directly or through others
 * (follows_collective). */
static enum psd_status mark_followers(struct psd_program *program, struct psd_error *err)
{
	uint32_t *next = malloc((program->n_ops + 1) * sizeof(*next)); /* each operation is there once at most */
	uint32_t n_next = 0;

	if (next == NULL)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a program");
	for (uint32_t i = 0; i < program->n_ops; i++)
		if (psd_op_is_collective(&program->ops[i]))
			next[n_next++] = i;
	while (n_next > 0) {
		const struct psd_op *op = &program->ops[next[--n_next]];

		for (uint32_t e = 0; e < op->n_dependents; e++) {
			const struct psd_edge edge = program->dependents[op->first_dependent + e];
			struct psd_op *waits = &program->ops[edge.op];

			if (edge.distance > 0 || waits->follows_collective)
				continue;
			waits->follows_collective = true;
			if (!psd_op_is_collective(waits))
				next[n_next++] = edge.op;
		}
	}
	free(next);
	return PSD_OK;
}

/* ---- turns ---- */

/* With the window of two that a program has otherwise, no two iterations have anything ready on one host at a time that
 * its turns would not order. */
static int64_t iteration_turns(const struct psd_program *program)
{
	int64_t last = 0;

	for (uint32_t i = 0; i < program->n_ops; i++)
		last = program->ops[i].turn > last ? program->ops[i].turn : last;
	return program->window > 2 ? last + 1 : 0;
}

int64_t psd_program_turn(const struct psd_program *program, uint32_t i, uint32_t iteration)
{
	const struct psd_op *op = &program->ops[i];

	return op->resource == PSD_RESOURCE_DEVICE ? op->turn : op->turn + iteration * program->iteration_turns;
}

/* ---- norms ---- */

static uint32_t add_clip(struct psd_builder *b)
{
	return b->plan->clips ? psd_builder_add_op(b, &(struct psd_op){.kind = PSD_OP_CLIP,
								       .resource = PSD_RESOURCE_DEVICE,
								       .where = PSD_WHERE_WORKERS,
								       .item = -1})
			      : PSD_NO_OP;
}

/* ---- the whole ---- */

enum psd_status psd_builder_open(struct psd_builder *b, const struct psd_plan *plan, struct psd_error *err)
{
	*b = (struct psd_builder){.plan = plan, .program = {.plan = plan}, .clip = PSD_NO_OP};
	b->backward_of_layer = calloc(plan->graph->n_layers, sizeof(*b->backward_of_layer));
	b->first_pass = calloc(plan->micro_batches, sizeof(*b->first_pass));
	if (b->backward_of_layer != NULL && b->first_pass != NULL)
		return PSD_OK;
	free(b->backward_of_layer);
	free(b->first_pass);
	return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a program");
}

enum psd_status psd_builder_close(struct psd_builder *b, struct psd_program *program, struct psd_error *err)
{
	enum psd_status status = b->is_out_of_memory
					 ? psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a program")
					 : sort_edges(b, &b->program, err);
	if (status == PSD_OK)
		status = mark_followers(&b->program, err);
	if (status == PSD_OK) {
		*program = b->program;
		program->iteration_turns = iteration_turns(program);
		b->program = (struct psd_program){0};
	}
	free(b->backward_of_layer);
	free(b->first_pass);
	free(b->edges);
	free(b->done);
	psd_program_release(&b->program);
	return status;
}

static enum psd_status unroll(struct psd_program *program, const struct psd_plan *plan, struct psd_error *err)
{
	struct psd_builder b;
	if (psd_builder_open(&b, plan, err))
		return err->status;
	const uint32_t first_forward = psd_builder_add_compute(&b);
	add_stage_gates(&b);
	b.clip = add_clip(&b);
	psd_builder_add_synchronisation(&b);
	psd_builder_add_ends(&b, first_forward);
	return psd_builder_close(&b, program, err);
}

/* Fills the durations of all operations on nodes of a kind. The operations are those of the plan itself: devices with
 * and without memory of their own have copies alike, which take no time on the latter. */
static enum psd_status time_kind(double sec[], const struct psd_program *program, const struct psd_plan_kind *kind,
				 struct psd_error *err)
{
	struct psd_costs costs = kind->costs;
	struct psd_plan plan = *program->plan;
	struct psd_program timed;

	costs.has_own_memory = plan.costs->has_own_memory;
	plan.costs = &costs;
	plan.system = &kind->system;
	plan.kinds = NULL;
	PSD_TRY(unroll(&timed, &plan, err));
	assert(timed.n_ops == program->n_ops);
	for (uint32_t i = 0; i < timed.n_ops; i++) {
		const struct psd_op *op = &timed.ops[i];

		sec[i] = op->resource == PSD_RESOURCE_DEVICE ? op->work_sec / kind->speed_ratio : op->work_sec;
		if (psd_ops[op->kind].rate == PSD_RATE_COPY && !kind->costs.has_own_memory)
			sec[i] = 0.0;
	}
	psd_program_release(&timed);
	return PSD_OK;
}

static enum psd_status time_kinds(struct psd_program *program, struct psd_error *err)
{
	const unsigned n_kinds = program->plan->kinds ? program->plan->layout.n_kinds : 0;

	if (n_kinds == 0)
		return PSD_OK;
	program->kind_sec = calloc((size_t)n_kinds * program->n_ops, sizeof(*program->kind_sec));
	if (!program->kind_sec)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a program");
	for (unsigned k = 0; k < n_kinds; k++)
		PSD_TRY(time_kind(program->kind_sec + (size_t)k * program->n_ops, program, &program->plan->kinds[k],
				  err));
	return PSD_OK;
}

enum psd_status psd_program_make(struct psd_program *program, const struct psd_plan *plan, struct psd_error *err)
{
	struct psd_program made;

	PSD_TRY(unroll(&made, plan, err));
	if (time_kinds(&made, err)) {
		psd_program_release(&made);
		return err->status;
	}
	*program = made;
	return PSD_OK;
}

const double *psd_program_host_sec(const struct psd_program *program, unsigned host)
{
	const struct psd_layout *layout = &program->plan->layout;
	const unsigned kind = psd_layout_kind(layout, psd_layout_node(layout, host));

	return program->kind_sec && kind < layout->n_kinds ? program->kind_sec + (size_t)kind * program->n_ops : NULL;
}

void psd_program_release(struct psd_program *program)
{
	free(program->ops);
	free(program->dependencies);
	free(program->dependents);
	free(program->kind_sec);
	*program = (struct psd_program){0};
}

bool psd_op_runs_on(const struct psd_op *op, const struct psd_layout *layout, unsigned host)
{
	switch (op->where) {
	case PSD_WHERE_WORKERS: return psd_layout_is_worker(layout, host);
	case PSD_WHERE_LEADERS: return psd_layout_is_leader(layout, host);
	case PSD_WHERE_SHARDS: return psd_layout_is_shard(layout, host);
	case PSD_WHERE_ROOT: return host == op->payload.root;
	case PSD_WHERE_GROUP: return psd_payload_has_member(&op->payload, layout, host);
	case PSD_WHERE_EVERYWHERE: return true;
	}
	return false;
}

bool psd_op_is_due(const struct psd_op *op, const struct psd_period *period, uint32_t iteration)
{
	if (op->is_exchange)
		return psd_period_exchanges_of(period, op->fragment, iteration);
	return !op->is_between || !psd_period_exchanges(period, iteration);
}

uint32_t psd_op_next(const struct psd_op *op, const struct psd_period *period, uint32_t iteration)
{
	if (op->is_exchange)
		return psd_period_next_of(period, op->fragment, iteration);
	return iteration + (op->is_between && psd_period_exchanges(period, iteration));
}

uint32_t psd_op_times(const struct psd_op *op, uint32_t n_iterations, uint32_t n_exchanges)
{
	return op->is_exchange ? n_exchanges : op->is_between ? n_iterations - n_exchanges : n_iterations;
}

static struct psd_traffic traffic_of(const struct psd_program *program, unsigned node, uint32_t n_iterations)
{
	struct psd_traffic total = {0, 0};

	for (uint32_t i = 0; i < program->n_ops; i++) {
		const struct psd_op *op = &program->ops[i];
		const uint32_t times = psd_op_times(op, n_iterations, 1);

		if (!psd_op_moves(op) || times == 0)
			continue;
		const struct psd_traffic traffic = psd_payload_node_traffic(&op->payload, &program->plan->layout, node);
		total.sent_bytes += times * traffic.sent_bytes;
		total.received_bytes += times * traffic.received_bytes;
	}
	return total;
}

struct psd_traffic psd_program_traffic(const struct psd_program *program, unsigned node)
{
	return traffic_of(program, node, 1);
}

struct psd_traffic psd_program_mean_traffic(const struct psd_program *program, unsigned node)
{
	const uint32_t steps = psd_plan_steps(program->plan);
	const struct psd_traffic all = traffic_of(program, node, steps);

	return (struct psd_traffic){all.sent_bytes / steps, all.received_bytes / steps};
}

/* With another priority, or several iterations ahead, a worker may have a collective ready that others do not have yet.
 * Another worker's next collective may wait for a send, through a barrier per layer; the send would wait behind a
 * collective that its host has begun. A collective that follows another one is ready before the next gradient on a slow
 * worker, and after it on a quick one. */
bool psd_program_orders_collectives(const struct psd_program *program)
{
	if (program->plan->system->priority != PSD_PRIORITY_GENERATION || program->window > 2)
		return false;
	for (uint32_t i = 0; i < program->n_ops; i++)
		if (psd_op_is_send(&program->ops[i]) ||
		    (psd_op_is_collective(&program->ops[i]) && program->ops[i].follows_collective))
			return false;
	return true;
}

double psd_op_cores(const struct psd_op *op, const struct psd_machine *machine)
{
	if (op->resource == PSD_RESOURCE_DEVICE && !psd_ops[op->kind].is_fixed)
		return machine->threads;
	return op->resource == PSD_RESOURCE_DEVICE || op->resource == PSD_RESOURCE_CPU ? 1.0 : 0.0;
}

double psd_program_busy_ratio(const struct psd_program *program, uint32_t op, unsigned host)
{
	const struct psd_plan *plan = program->plan;
	const unsigned kind = psd_layout_kind(&plan->layout, psd_layout_node(&plan->layout, host));

	if (!plan->kinds || kind == plan->layout.n_kinds || program->ops[op].resource != PSD_RESOURCE_DEVICE)
		return 1.0;
	return fmin(plan->kinds[kind].speed_ratio, 1.0);
}
