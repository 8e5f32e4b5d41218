/* Weighs the alternatives of an item: unrolls each alone, adds up the bytes of its operations, and executes them. */
#include <math.h>
#include <stdlib.h>

#include "engine/base/heap.h"
#include "engine/program/choice.h"
#include "engine/program/program_builder.h"

static uint64_t node_bytes(const struct psd_program *program, unsigned node)
{
	const struct psd_traffic traffic = psd_program_traffic(program, node);

	return traffic.sent_bytes + traffic.received_bytes;
}

static struct psd_price *price_of(const struct psd_plan *plan, const struct psd_op *op)
{
	return psd_prices_of(plan->prices, &op->payload, &plan->layout, &plan->alone_rates);
}

/* Prices have the bytes of all-reduces; other collectives have a formula. Returns false when memory runs out. */
static bool find_busiest_node_bytes(const struct psd_program *program, uint64_t *most_bytes)
{
	const struct psd_layout *layout = &program->plan->layout;
	bool has_collective = false;

	*most_bytes = 0;
	for (uint32_t i = 0; i < program->n_ops; i++) {
		if (!psd_op_is_collective(&program->ops[i]))
			continue;
		struct psd_price *price = price_of(program->plan, &program->ops[i]);

		if (!price)
			return false;
		*most_bytes += psd_price_node_bytes(price, layout);
		has_collective = true;
	}
	for (unsigned node = 0; node < psd_layout_nodes(layout) && !has_collective; node++) {
		const uint64_t bytes = node_bytes(program, node);

		*most_bytes = bytes > *most_bytes ? bytes : *most_bytes;
	}
	return true;
}

/* Seconds in which a message is on its way behind the sender's link, which then is free for the next slice. */
static double on_way_sec(const struct psd_plan *plan, const struct psd_op *op)
{
	return psd_op_is_send(op) && plan->layout.has_separate_servers &&
			       psd_payload_fan_in(&op->payload, &plan->layout) > 0
		       ? plan->alone_rates.latency_sec
		       : 0.0;
}

/* Returns NaN when memory runs out. */
static double op_sec(const struct psd_plan *plan, const struct psd_op *op)
{
	const struct psd_rates *rates = &plan->alone_rates;
	const bool is_send = psd_op_is_send(op);

	if (!psd_op_moves(op))
		return op->work_sec;
	const struct psd_price *price = price_of(plan, op);
	if (!price)
		return NAN;
	if (is_send && psd_payload_fan_in(&op->payload, &plan->layout) > 0)
		return price->transfer_sec + rates->latency_sec;
	if (is_send) /* inside a node, or not at all */
		return psd_payload_local_elements(&op->payload, &plan->layout) > 0.0
			       ? price->transfer_sec + rates->local_latency_sec
			       : 0.0;
	return price->transfer_sec + price->delay_sec;
}

/* ---- execution ---- */

struct progress {
	double ready_sec;
	uint32_t n_waits;
};

/* The first operation of an item that is unrolled alone. */
enum { GRADIENT = 0 };
enum { MOST_SLICES_ALONE = 256 }; /* with more, the first and last one are too short to matter */

enum { ROLES = 2 }; /* workers, and servers on nodes of their own */

/* Execution of one item alone: operations start in the order in which they become ready, one at a time on a resource of
 * a host. Servers of their own have resources beside those of workers. */
struct trial {
	const struct psd_program *program;
	struct progress *of; /* each operation */
	struct psd_heap ready;
	double free_sec[ROLES][PSD_RESOURCES + 1];
};

static bool make_ready(struct trial *trial, uint32_t op)
{
	return psd_heap_push(&trial->ready, (struct psd_heap_entry){trial->of[op].ready_sec, op, op});
}

/* Returns false when memory runs out. */
static bool end(struct trial *trial, const struct psd_op *op, double end_sec)
{
	for (uint32_t e = 0; e < op->n_dependents; e++) {
		const uint32_t waits = trial->program->dependents[op->first_dependent + e].op;
		struct progress *progress = &trial->of[waits];

		if (waits == GRADIENT)
			continue;
		progress->ready_sec = fmax(progress->ready_sec, end_sec);
		if (--progress->n_waits == 0 && !make_ready(trial, waits))
			return false;
	}
	return true;
}

static bool is_of_servers(const struct psd_plan *plan, const struct psd_op *op)
{
	return plan->layout.has_separate_servers && op->where == PSD_WHERE_SHARDS;
}

/* Seconds from the final gradient to the end of the last operation. The first operation is the gradient; it ends
 * earlier by the time that a rebuild takes over from backward. A late update counts as if it were of the same
 * iteration. NaN when memory runs out. */
static double trial_sec(struct trial *trial)
{
	const struct psd_program *program = trial->program;
	double last_sec = 0.0;

	for (uint32_t i = 0; i < program->n_ops; i++) {
		trial->of[i] = i == GRADIENT ? (struct progress){0.0, 0}
					     : (struct progress){program->ops[GRADIENT].work_sec,
								 program->ops[i].n_dependencies};
		if (trial->of[i].n_waits == 0 && !make_ready(trial, i))
			return NAN;
	}
	for (int r = 0; r <= PSD_RESOURCE_NONE; r++)
		trial->free_sec[0][r] = trial->free_sec[1][r] = -INFINITY;
	while (trial->ready.n > 0) {
		const struct psd_heap_entry first = psd_heap_pop(&trial->ready);
		const struct psd_op *op = &program->ops[first.tag];
		double *free_sec = &trial->free_sec[is_of_servers(program->plan, op)][op->resource];
		const double begin_sec = op->resource == PSD_RESOURCE_NONE ? first.at : fmax(first.at, *free_sec);

		*free_sec = begin_sec + op_sec(program->plan, op);
		last_sec = fmax(last_sec, *free_sec);
		if (isnan(*free_sec) || !end(trial, op, *free_sec))
			return NAN;
		*free_sec -= on_way_sec(program->plan, op);
	}
	return last_sec;
}

/* Returns NaN when memory runs out. */
static double isolated_sec(const struct psd_program *program)
{
	struct trial trial = {.program = program, .of = calloc(program->n_ops, sizeof(*trial.of))};
	const double sec = trial.of ? trial_sec(&trial) : NAN;

	free(trial.ready.entries);
	free(trial.of);
	return sec;
}

/* ---- alternatives ---- */

static enum psd_status unroll_alone(struct psd_program *program, const struct psd_plan *plan,
				    const struct psd_plan_item *item, struct psd_error *err)
{
	struct psd_builder b;

	if (psd_builder_open(&b, plan, err))
		return err->status;
	b.gate_backward = b.gate_copied_out = b.gate_pushed = b.gate_pulled = PSD_NO_OP;
	const uint32_t gradient = psd_builder_add_gate(&b, PSD_WHERE_WORKERS);
	if (!b.is_out_of_memory) /* sums with earlier micro-batches, which factors need not */
		b.program.ops[gradient].work_sec = (plan->micro_batches - 1) * psd_builder_accumulate_sec(&b, item);
	item->method->unroll(&b, &(struct psd_stage){.item = item, .gradient = gradient});
	for (uint32_t i = 0; i < b.program.n_ops; i++)
		if (psd_op_is_receive(&b.program.ops[i]))
			psd_builder_after(&b, i, b.program.ops[i].match);
	return psd_builder_close(&b, program, err);
}

/* Slices matter where some go out while others come back: in pipelines, and between workers and servers on nodes of
 * their own. On a shared node both directions pass one link. */
static unsigned slices_alone(const struct psd_plan *plan, const struct psd_plan_item *item)
{
	const bool overlap = item->method->slicing == PSD_SLICED && plan->layout.has_separate_servers;
	const unsigned n_slices =
		overlap || item->method->slicing == PSD_SLICED_ON_DEMAND ? psd_plan_slices(plan, item) : 1;

	return overlap && n_slices > MOST_SLICES_ALONE ? MOST_SLICES_ALONE : n_slices;
}

static enum psd_status weigh(struct psd_alternative *alternative, const struct psd_plan *plan,
			     const struct psd_plan_item *item, const struct psd_method *method, bool counts_bytes,
			     struct psd_error *err)
{
	struct psd_plan_item alone = *item;
	struct psd_alternative made = {.is_possible = true};
	struct psd_program program;

	alone.method = method->alone ? method->alone : method;
	alone.n_slices = slices_alone(plan, &alone);
	alone.root = psd_layout_shard_host(&plan->layout, 0);
	if (unroll_alone(&program, plan, &alone, err))
		return err->status;
	made.isolated_sec = isolated_sec(&program);
	const bool is_known =
		!isnan(made.isolated_sec) && (!counts_bytes || find_busiest_node_bytes(&program, &made.node_bytes));
	psd_program_release(&program);
	if (!is_known)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for the choice of a method");
	*alternative = made;
	return PSD_OK;
}

static enum psd_status weigh_all(struct psd_alternative alternatives[PSD_CANDIDATES], const struct psd_plan *plan,
				 const struct psd_plan_item *item, bool counts_bytes, struct psd_error *err)
{
	for (unsigned m = 0; m < plan->n_candidates; m++) {
		const struct psd_method *method = plan->candidates[m];

		alternatives[m] = (struct psd_alternative){.is_possible = false};
		if (psd_choice_takes_wire(plan, method) &&
		    (!method->keeps[PSD_BUFFER_FACTORS] || item->subject.rows > 0) &&
		    (!method->keeps[PSD_BUFFER_LEFT] || item->right > 0))
			PSD_TRY(weigh(&alternatives[m], plan, item, method, counts_bytes, err));
	}
	return PSD_OK;
}

enum psd_status psd_choice_weigh(struct psd_alternative alternatives[PSD_CANDIDATES], const struct psd_plan *plan,
				 const struct psd_plan_item *item, struct psd_error *err)
{
	return weigh_all(alternatives, plan, item, true, err);
}

enum psd_status psd_choice_weigh_seconds(struct psd_alternative alternatives[PSD_CANDIDATES],
					 const struct psd_plan *plan, const struct psd_plan_item *item,
					 struct psd_error *err)
{
	return weigh_all(alternatives, plan, item, false, err);
}
