/* Gradient accumulation: an iteration has several micro-batches. Their gradients are added on the device, in order. The
 * last sum of an item (bucket) takes the position of its gradient, so that only this one is exchanged, while layers
 * below it are still to come. Factors of micro-batches are kept one after the other instead: their product is the sum
 * of all gradients.
 *
 * Where a worker keeps the sum of its part of a gradient alone, each micro-batch is exchanged, and the worker adds its
 * part of each. */
#include "engine/program/program_builder.h"

/* Values of a sum that are read and written, against those of an update, which also has parameters and momentum. */
static const double moved_ratio = 3.0 / 5.0;

/* The item of the norms of chunks has no tensors. */
static bool is_summed(const struct psd_builder *b, const struct psd_plan_item *item)
{
	return item->n_tensors > 0 && psd_plan_adds_gradients(b->plan) && !psd_plan_rebuilds(b->plan, item);
}

static double sum_sec(const struct psd_builder *b, const struct psd_plan_item *item, uint64_t bytes)
{
	return psd_builder_sec(b, PSD_OP_ACCUMULATE, moved_ratio * (double)bytes) +
	       item->n_tensors * b->plan->system->host.launch_sec;
}

static uint64_t bytes_of(const struct psd_builder *b, const struct psd_plan_item *item)
{
	return is_summed(b, item) ? item->subject.elements * b->plan->value_bytes : 0;
}

double psd_builder_accumulate_sec(const struct psd_builder *b, const struct psd_plan_item *item)
{
	return is_summed(b, item) ? sum_sec(b, item, bytes_of(b, item)) : 0.0;
}

/* Appends the sum of all gradients of a micro-batch between two others, after operation `before`. */
static uint32_t add_sum_of_all(struct psd_builder *b, uint32_t micro_batch, uint32_t before)
{
	struct psd_op op = psd_builder_op(PSD_OP_ACCUMULATE);

	op.micro_batch = micro_batch;
	op.turn = PSD_TURN_OF_LAYERS;
	for (unsigned i = 0; i < b->plan->n_items; i++) {
		op.bytes += bytes_of(b, &b->plan->items[i]);
		op.work_sec += psd_builder_accumulate_sec(b, &b->plan->items[i]);
	}
	const uint32_t sum = psd_builder_add_op(b, &op);
	psd_builder_after(b, sum, before);
	return sum;
}

/* The device has one loss, which is read after the forward pass: the next one waits for a gate. */
uint32_t psd_builder_add_compute(struct psd_builder *b)
{
	const uint32_t first_forward = psd_builder_add_passes(b, 0, PSD_NO_OP);

	for (uint32_t m = 1; m < b->plan->micro_batches && !b->is_out_of_memory; m++) {
		const bool has_sum = m > 1 && psd_plan_adds_gradients(b->plan);
		const uint32_t before = has_sum ? add_sum_of_all(b, m - 1, b->backward_end) : b->backward_end;
		const uint32_t gate = psd_builder_add_gate(b, PSD_WHERE_WORKERS);

		psd_builder_after(b, gate, b->forward_end);
		psd_builder_after(b, psd_builder_add_passes(b, m, before), gate);
	}
	b->n_compute = b->program.n_ops;
	return first_forward;
}

/* Appends the sum of an item. Before the layers that are still to come: others wait for it. */
static uint32_t add_sum(struct psd_builder *b, const struct psd_stage *stage, struct psd_op op, uint64_t bytes,
			uint32_t before)
{
	op.turn = PSD_TURN_BEFORE_LAYERS;
	op.bytes = bytes;
	op.work_sec = sum_sec(b, stage->item, bytes);
	const uint32_t sum = psd_builder_add_op(b, &op);
	psd_builder_after(b, sum, before);
	return sum;
}

uint32_t psd_builder_add_gradient(struct psd_builder *b, const struct psd_stage *stage)
{
	const uint32_t backward = b->backward_of_layer[stage->item->layer];
	struct psd_op op = psd_stage_op(stage, PSD_OP_ACCUMULATE, PSD_WHERE_WORKERS);

	if (!is_summed(b, stage->item))
		return backward;
	op.micro_batch = b->plan->micro_batches - 1;
	return add_sum(b, stage, op, bytes_of(b, stage->item), backward);
}

uint32_t psd_builder_add_part_sum(struct psd_builder *b, const struct psd_stage *stage, uint32_t micro_batch,
				  uint64_t elements, uint32_t before)
{
	struct psd_op op = psd_stage_op(stage, PSD_OP_ACCUMULATE, PSD_WHERE_WORKERS);

	op.micro_batch = micro_batch;
	op.source = (struct psd_view){PSD_BUFFER_GRADIENT, stage->item->method->updates};
	op.target = (struct psd_view)PSD_VIEW(SUM);
	return add_sum(b, stage, op, elements * b->plan->value_bytes, before);
}
