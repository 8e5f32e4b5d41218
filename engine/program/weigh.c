/* Weighs the alternatives of an item: unrolls each alone, adds up what its operations send, and follows their edges. */
#include <math.h>
#include <stdlib.h>

#include "engine/program/choice.h"
#include "engine/program/program_builder.h"

static uint64_t node_bytes(const struct psd_program *program, unsigned node)
{
	const struct psd_traffic traffic = psd_program_traffic(program, node);

	return traffic.sent_bytes + traffic.received_bytes;
}

/* The only operation that moves bytes; NULL: there are several, or none. */
static const struct psd_op *only_mover(const struct psd_program *program)
{
	const struct psd_op *mover = NULL;

	for (uint32_t i = 0; i < program->n_ops; i++) {
		const struct psd_op *op = &program->ops[i];

		if (op->kind != PSD_OP_SEND && op->kind != PSD_OP_COLLECTIVE)
			continue;
		if (mover)
			return NULL;
		mover = op;
	}
	return mover;
}

static struct psd_price *price_of(const struct psd_plan *plan, const struct psd_op *op)
{
	return psd_prices_of(plan->prices, &op->payload, &plan->layout, &plan->alone_rates);
}

/* What one all-reduce moves is in its price; others say it by a formula. */
static uint64_t busiest_node_bytes(const struct psd_program *program)
{
	const struct psd_op *mover = only_mover(program);
	struct psd_price *price = mover && mover->kind == PSD_OP_COLLECTIVE ? price_of(program->plan, mover) : NULL;
	uint64_t most_bytes = 0;

	if (price)
		return psd_price_node_bytes(price, &program->plan->layout);
	for (unsigned node = 0; node < psd_layout_nodes(&program->plan->layout); node++) {
		const uint64_t bytes = node_bytes(program, node);

		most_bytes = bytes > most_bytes ? bytes : most_bytes;
	}
	return most_bytes;
}

/* Not a number: out of memory. */
static double op_sec(const struct psd_plan *plan, const struct psd_op *op)
{
	const struct psd_rates *rates = &plan->alone_rates;
	const bool is_send = op->kind == PSD_OP_SEND;
	const struct psd_price *price;

	if (!is_send && op->kind != PSD_OP_COLLECTIVE)
		return op->work_sec;
	price = price_of(plan, op);
	if (!price)
		return NAN;
	if (is_send)
		return price->transfer_sec +
		       (psd_layout_nodes(&plan->layout) > 1 ? rates->latency_sec : rates->local_latency_sec);
	return price->transfer_sec + price->delay_sec;
}

/* To the end of the last operation that ends the item, from when the gradient would be final. The first operation
 * stands for that, and ends earlier by what a rebuild takes over from backward. Not a number: out of memory. Edges go
 * from earlier operations to later ones. */
static double longest_chain_sec(const struct psd_builder *b, double *end_sec)
{
	const struct psd_program *program = &b->program;
	double chain_sec = 0.0;

	for (uint32_t i = 0; i < program->n_ops; i++) {
		const struct psd_op *op = &program->ops[i];
		double begin_sec = op->kind == PSD_OP_RECEIVE ? end_sec[op->match] : i ? end_sec[0] : 0.0;

		for (uint32_t e = 0; e < b->n_edges; e++)
			if (b->edges[e].waits == i)
				begin_sec = fmax(begin_sec, end_sec[b->edges[e].before]);
		end_sec[i] = begin_sec + op_sec(b->plan, op);
		if (isnan(end_sec[i]))
			return NAN;
	}
	for (uint32_t i = 0; i < b->n_done; i++)
		chain_sec = fmax(chain_sec, end_sec[b->done[i].op]);
	return chain_sec;
}

static enum psd_status weigh(struct psd_alternative *alternative, const struct psd_plan *plan,
			     const struct psd_plan_item *item, const struct psd_method *method, struct psd_error *err)
{
	struct psd_plan_item alone = *item;
	struct psd_builder b = {.plan = plan, .program = {.plan = plan}};
	double *end_sec = NULL;

	alone.method = method;
	alone.n_slices = 1;
	alone.root = psd_layout_shard_host(&plan->layout, 0);
	b.gate_backward = b.gate_copied_out = b.gate_pushed = b.gate_pulled = PSD_NO_OP;
	method->unroll(&b,
		       &(struct psd_stage){.item = &alone, .gradient = psd_builder_add_gate(&b, PSD_WHERE_WORKERS)});
	if (!b.is_out_of_memory)
		end_sec = calloc(b.program.n_ops, sizeof(*end_sec));
	const double chain_sec = end_sec ? longest_chain_sec(&b, end_sec) : NAN;
	if (!isnan(chain_sec))
		*alternative = (struct psd_alternative){true, busiest_node_bytes(&b.program), chain_sec};
	psd_builder_release(&b);
	free(end_sec);
	return isnan(chain_sec)
		       ? psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for the choice of a method")
		       : PSD_OK;
}

enum psd_status psd_choice_weigh(struct psd_alternative alternatives[PSD_CANDIDATES], const struct psd_plan *plan,
				 const struct psd_plan_item *item, struct psd_error *err)
{
	enum psd_status status = PSD_OK;

	for (unsigned m = 0; m < plan->n_candidates && !status; m++) {
		const struct psd_method *method = plan->candidates[m];

		alternatives[m] = (struct psd_alternative){.is_possible = false};
		if (psd_choice_takes_wire(plan, method) &&
		    (!method->keeps[PSD_BUFFER_FACTORS] || item->subject.rows > 0))
			status = weigh(&alternatives[m], plan, item, method, err);
	}
	return status;
}
