/* Coarse-grained sparse communication: an all-reduce sums the chunks of gradients that all workers have chosen, and
 * each worker applies the sums. The other chunks are added to the residual. At the end of an iteration an all-reduce of
 * the chunks' norms chooses those of the next. Source: Sun et al. 2019 (arXiv 1902.06855), section 3.2. With managed
 * communication an item has these operations twice: with some of its chunks, and with all of them at the end of each
 * clock. With stale reads workers' updates take the gradients' position, and a choice is for as many iterations later
 * as workers may be apart. */
#include "engine/program/program_builder.h"

/* Updates that leave are kept until their sum arrives: they are the sum of gradient and residual, minus the new
 * residual. */
static uint64_t kept_bytes(const struct psd_plan *plan, uint64_t elements)
{
	return elements *
	       (psd_plan_value_bytes(plan, PSD_BUFFER_GRADIENT) + 2 * psd_plan_value_bytes(plan, PSD_BUFFER_RESIDUAL) +
		3 * psd_plan_value_bytes(plan, PSD_BUFFER_KEPT));
}

/* Reads the gradient and the residual, writes the new residual and the chosen chunks. */
static uint32_t add_gather(struct psd_builder *b, const struct psd_stage *stage)
{
	const uint64_t elements = stage->item->subject.elements;
	struct psd_op op = psd_stage_op(stage, PSD_OP_GATHER, PSD_WHERE_WORKERS);

	op.source.buffer = PSD_BUFFER_GRADIENT;
	op.target.buffer = PSD_BUFFER_CHOSEN;
	op.bytes = elements * psd_plan_value_bytes(b->plan, PSD_BUFFER_GRADIENT) +
		   2 * elements * psd_plan_value_bytes(b->plan, PSD_BUFFER_RESIDUAL) +
		   stage->item->travelling * psd_plan_value_bytes(b->plan, PSD_BUFFER_CHOSEN) +
		   (psd_plan_sends_updates(b->plan) ? kept_bytes(b->plan, elements) : 0);
	const uint32_t gather = psd_builder_add_work(b, op, 0.0, stage->gradient);
	psd_builder_after(b, gather, b->gate_backward);
	return gather;
}

static uint32_t unroll_chunks(struct psd_builder *b, const struct psd_stage *stage)
{
	const struct psd_route route = {stage->item->method->collective, PSD_WHERE_WORKERS, PSD_WHERE_WORKERS,
					PSD_VIEW(CHOSEN), PSD_VIEW(CHOSEN)};
	const uint64_t elements = stage->item->travelling;
	struct psd_stage gathered = *stage;

	gathered.gradient = add_gather(b, stage);
	const uint32_t out = psd_builder_add_departure(b, &gathered, &route, elements);
	const uint32_t sum = psd_builder_add_all_reduce(b, stage, &route, elements, out);
	const uint32_t apply = psd_builder_add_apply(b, stage, PSD_WHERE_WORKERS, sum);
	psd_builder_add_done(b, stage, apply);
	return apply;
}

static void unroll(struct psd_builder *b, const struct psd_stage *stage)
{
	struct psd_plan_item whole = *stage->item;
	const uint32_t first = b->program.n_ops;
	struct psd_stage all = *stage;
	const uint32_t early = unroll_chunks(b, stage);

	if (b->plan->sparse->clock == 0 || b->n_compute == 0) /* an item alone is one of most iterations */
		return;
	const uint32_t first_of_all = b->program.n_ops;
	whole.travelling = whole.subject.elements;
	all.item = &whole;
	const uint32_t last = unroll_chunks(b, &all);
	if (b->plan->reads_stale) { /* sums of both kinds count in the order of iterations */
		psd_builder_after_iterations(b, early, last, 1);
		psd_builder_after_iterations(b, last, early, 1);
	}
	for (uint32_t i = first; i < b->program.n_ops && !b->is_out_of_memory; i++) {
		b->program.ops[i].is_between = i < first_of_all;
		b->program.ops[i].is_exchange = i >= first_of_all;
	}
}

/* Returns the operation that chooses chunks by all workers' norms. */
static uint32_t add_choose(struct psd_builder *b, const struct psd_stage *stage, uint32_t sum)
{
	struct psd_op op = psd_stage_op(stage, PSD_OP_CHOOSE, PSD_WHERE_WORKERS);

	op.source.buffer = op.target.buffer = PSD_BUFFER_NORMS;
	op.bytes = stage->item->subject.elements * psd_plan_value_bytes(b->plan, PSD_BUFFER_NORMS);
	return psd_builder_add_work(b, op, 0.0, sum);
}

/* Unrolled after all other items: norms are final when each of these has been applied. No parameter depends on them, so
 * that the next iteration overlaps with them, whatever the barrier. */
static void unroll_norms(struct psd_builder *b, const struct psd_stage *stage)
{
	const struct psd_route route = {stage->item->method->collective, PSD_WHERE_WORKERS, PSD_WHERE_WORKERS,
					PSD_VIEW(NORMS), PSD_VIEW(NORMS)};
	const uint64_t elements = stage->item->subject.elements;
	const uint32_t n_ops = b->program.n_ops, final = psd_builder_add_gate(b, PSD_WHERE_WORKERS);
	const uint32_t out = psd_builder_add_leaving(b, stage, &route, elements, final, PSD_NO_OP);
	const uint32_t choose = add_choose(b, stage, psd_builder_add_all_reduce(b, stage, &route, elements, out));

	for (uint32_t i = 0; i < n_ops && !b->is_out_of_memory; i++) {
		if (psd_ops[b->program.ops[i].kind].updates)
			psd_builder_after(b, final, i);
		if (b->program.ops[i].kind == PSD_OP_GATHER)
			psd_builder_after_iterations(b, i, choose, 1 + b->plan->staleness);
	}
	if (b->plan->reads_stale) /* chunks are chosen in the order of iterations */
		psd_builder_after_iterations(b, choose, choose, 1);
}

#define BY_ALL_REDUCE(identifier, text)                                                                                \
	{.name = "sparse " text,                                                                                       \
	 .collective = &psd_##identifier,                                                                              \
	 .keeps = {[PSD_BUFFER_HISTORY] = true,                                                                        \
		   [PSD_BUFFER_RESIDUAL] = true,                                                                       \
		   [PSD_BUFFER_CHOSEN] = true,                                                                         \
		   [PSD_BUFFER_ENCODED_GRADIENT] = true},                                                              \
	 .unroll = unroll},
const struct psd_method psd_method_sparse[] = {PSD_ALL_REDUCES(BY_ALL_REDUCE)};

#define NORMS_BY_ALL_REDUCE(identifier, text)                                                                          \
	{.name = "norms " text,                                                                                        \
	 .collective = &psd_##identifier,                                                                              \
	 .keeps = {[PSD_BUFFER_NORMS] = true},                                                                         \
	 .unroll = unroll_norms},
const struct psd_method psd_method_norms[] = {PSD_ALL_REDUCES(NORMS_BY_ALL_REDUCE)};
