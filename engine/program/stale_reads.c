/* Stale synchronous reads. A worker keeps its own gradient of each iteration, and updates a second copy of the
 * parameters by the sum of all workers' gradients when it arrives. Before an item's (bucket's) layers begin the next
 * forward pass, their parameters are read: they become that copy, updated once more by each of the worker's own
 * gradients whose sum is still missing. Sums come in the order of iterations, at most `staleness` of them late. */
#include "engine/program/program_builder.h"

/* Values that are read and written, against those of an update, which has parameters, momentum and a gradient. A copy
 * has two, a sum three. A read copies parameters and momentum, and makes one update: usually one sum is missing. Where
 * updates are sent, a gradient and its decay are added, zeros set and then updated; a read adds the withheld updates to
 * parameters, and makes one update. */
static const double keep_ratio = 2.0 / 5.0, read_ratio = 9.0 / 5.0;
static const double make_ratio = 11.0 / 5.0, read_withheld_ratio = 8.0 / 5.0;

uint32_t psd_builder_add_keep(struct psd_builder *b, const struct psd_stage *stage)
{
	struct psd_op op = psd_stage_op(stage, PSD_OP_KEEP, PSD_WHERE_WORKERS);
	const double ratio = psd_plan_sends_updates(b->plan) ? make_ratio : keep_ratio;

	op.turn = PSD_TURN_BEFORE_LAYERS;
	op.bytes = (uint64_t)(ratio * (double)(stage->item->subject.elements * b->plan->value_bytes));
	const uint32_t keep = psd_builder_add_work(b, op, 0.0, stage->gradient);
	psd_builder_after(b, keep, b->gate_backward);
	return keep;
}

/* Waits for the item's (bucket's) sums, and for the operations that keep the worker's own updates. */
static void after_updates(struct psd_builder *b, uint32_t read, int item)
{
	for (uint32_t o = 0; o < read && !b->is_out_of_memory; o++) {
		const struct psd_op *op = &b->program.ops[o];

		if (op->item == item && (op->kind == PSD_OP_KEEP || op->kind == PSD_OP_GATHER))
			psd_builder_after_iterations(b, read, o, 1);
		else if (op->item == item && op->kind == PSD_OP_APPLY)
			psd_builder_after_iterations(b, read, o, 1 + b->plan->staleness);
	}
}

static bool has_layer(const struct psd_builder *b, const struct psd_plan_item *item, uint32_t forward)
{
	return psd_plan_has_layer(b->plan, item, b->program.ops[forward].layer);
}

static uint32_t add_read(struct psd_builder *b, const struct psd_plan_item *item, int i)
{
	const struct psd_stage stage = {.item = item, .item_index = i, .turn = PSD_TURN_BEFORE_LAYERS};
	struct psd_op op = psd_stage_op(&stage, PSD_OP_READ, PSD_WHERE_WORKERS);
	const double ratio = psd_plan_sends_updates(b->plan) ? read_withheld_ratio : read_ratio;

	op.bytes = (uint64_t)(ratio * (double)(item->subject.elements * b->plan->value_bytes));
	return psd_builder_add_work(b, op, item->n_tensors * b->plan->system->host.tensor_sec, PSD_NO_OP);
}

void psd_builder_add_reads(struct psd_builder *b, uint32_t first_forward, uint32_t barrier)
{
	for (unsigned i = 0; i < b->plan->n_items && !b->is_out_of_memory; i++) {
		const struct psd_plan_item *item = &b->plan->items[i];
		uint32_t first = first_forward;

		if (item->n_tensors == 0)
			continue;
		const uint32_t read = add_read(b, item, (int)i);
		psd_builder_after_iterations(b, read, barrier, 1);
		after_updates(b, read, (int)i);
		while (!b->is_out_of_memory && !has_layer(b, item, first))
			first++;
		if (first > first_forward)
			psd_builder_after(b, read, first - 1);
		for (uint32_t f = first; !b->is_out_of_memory && psd_ops[b->program.ops[f].kind].is_forward; f++)
			if (has_layer(b, item, f))
				psd_builder_after(b, f, read);
	}
}
