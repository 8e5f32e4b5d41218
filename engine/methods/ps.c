/* Parameter server: gradients to the shards, each of which sums and applies its part; parameters back. */
#include "engine/program/program_builder.h"

static const struct psd_route up = {&psd_push, PSD_WHERE_WORKERS, PSD_WHERE_SHARDS, PSD_BUFFER_GRADIENT,
				    PSD_BUFFER_RECEIVED};
static const struct psd_route down = {&psd_pull, PSD_WHERE_SHARDS, PSD_WHERE_WORKERS, PSD_BUFFER_PART,
				      PSD_BUFFER_PARAMETER};

static uint32_t add_reduce(struct psd_builder *b, const struct psd_stage *stage, uint64_t elements)
{
	struct psd_op op = psd_stage_op(stage, PSD_OP_REDUCE, PSD_RESOURCE_CPU, PSD_WHERE_SHARDS);
	const double part_bytes = (double)elements * b->plan->value_bytes / b->plan->layout.shards;

	op.bytes = (uint64_t)(part_bytes * b->plan->layout.workers);
	op.work_sec = psd_cost_bytes_sec(part_bytes * b->plan->layout.workers, b->plan->system->host.reduce_bps);
	return psd_builder_add_op(b, &op);
}

/* Gradients leave, and come together at the shards; returns what makes new parameters ready to leave. */
static uint32_t add_push(struct psd_builder *b, const struct psd_stage *stage, uint64_t elements)
{
	const unsigned shards = b->plan->layout.shards;
	const uint64_t part_elements = (elements + shards - 1) / shards; /* of the largest */
	const uint32_t out = psd_builder_add_departure(b, stage, &up, elements);
	const struct psd_message push = psd_builder_add_message(b, stage, &up, elements);
	psd_builder_after_departure(b, push.send, out);
	const uint32_t reduce = add_reduce(b, stage, elements);

	psd_builder_after(b, reduce, push.receive);
	psd_builder_after_departure(b, reduce, out);
	psd_builder_after(b, b->gate_pushed, reduce);
	return psd_builder_add_leaving(b, stage, &down, part_elements, reduce, PSD_NO_OP);
}

/* A worker's own shard never crosses the network: both must be there. */
static uint32_t add_both(struct psd_builder *b, uint32_t received, uint32_t reduced)
{
	if (received == PSD_NO_OP)
		return reduced;
	if (b->plan->layout.has_separate_servers)
		return received;
	const uint32_t both = psd_builder_add_gate(b, PSD_WHERE_WORKERS);
	psd_builder_after(b, both, received);
	psd_builder_after(b, both, reduced);
	return both;
}

static void unroll_slice(struct psd_builder *b, const struct psd_stage *stage)
{
	const struct psd_stage reply = psd_stage_reply(b, stage);
	const uint64_t elements = psd_plan_slice(stage->item, stage->slice).elements;
	const uint32_t ready = add_push(b, stage, elements);
	const struct psd_message pull = psd_builder_add_message(b, &reply, &down, elements);

	psd_builder_after(b, pull.send, ready);
	psd_builder_after(b, pull.send, b->gate_pushed);
	const uint32_t arrived = add_both(b, pull.receive, ready);
	psd_builder_add_done(b, stage, psd_builder_add_arrival(b, stage, &down, elements, arrived, b->gate_pulled));
}

static void unroll(struct psd_builder *b, const struct psd_stage *whole)
{
	struct psd_stage stage = *whole;

	for (stage.slice = 0; stage.slice < whole->item->n_slices; stage.slice++)
		unroll_slice(b, &stage);
}

const struct psd_method psd_method_ps = {
	.name = "ps",
	.pattern = &psd_push,
	.keeps = {[PSD_BUFFER_PART] = true,
		  [PSD_BUFFER_PART_HISTORY] = true,
		  [PSD_BUFFER_RECEIVED] = true,
		  [PSD_BUFFER_ENCODED_GRADIENT] = true,
		  [PSD_BUFFER_ENCODED_PARAMETER] = true},
	.slicing = PSD_SLICED,
	.unroll = unroll,
};
