/* Sharded data-parallel training. A reduce-scatter gives each worker the sum of its part of a gradient, it updates that
 * part of the parameters, and an all-gather brings all parts to all workers. ZeRO-1: a worker has the optimiser state of
 * its part alone. Source: Rajbhandari et al. 2020, ZeRO (arXiv 1910.02054), section 5. */
#include "engine/program/program_builder.h"

static const struct psd_route scatter = {&psd_reduce_scatter, PSD_WHERE_WORKERS, PSD_WHERE_WORKERS, PSD_VIEW(GRADIENT),
					 PSD_VIEW_OF(GRADIENT, WORKERS)};
static const struct psd_route gather = {&psd_all_gather, PSD_WHERE_WORKERS, PSD_WHERE_WORKERS,
					PSD_VIEW_OF(PARAMETER, WORKERS), PSD_VIEW(PARAMETER)};

/* Returns the operation after which each worker's device has the sum of its part. */
static uint32_t add_scatter(struct psd_builder *b, const struct psd_stage *stage, uint64_t part_elements)
{
	const uint64_t elements = stage->item->subject.elements;
	const uint32_t out = psd_builder_add_departure(b, stage, &scatter, elements);
	const struct psd_op op = psd_stage_transfer(b, stage, PSD_OP_COLLECTIVE, &scatter, elements);
	const uint32_t sum = psd_builder_add_op(b, &op);

	psd_builder_after_departure(b, sum, out);
	return psd_builder_add_arrival(b, stage, &scatter, part_elements, sum, PSD_NO_OP);
}

/* Returns the operation after which each worker's device has all parameters. */
static uint32_t add_gather(struct psd_builder *b, const struct psd_stage *stage, uint64_t part_elements,
			   uint32_t updated)
{
	const uint64_t elements = stage->item->subject.elements;
	const uint32_t out = psd_builder_add_leaving(b, stage, &gather, part_elements, updated, PSD_NO_OP);
	const struct psd_op op = psd_stage_transfer(b, stage, PSD_OP_COLLECTIVE, &gather, elements);
	const uint32_t all = psd_builder_add_op(b, &op);

	psd_builder_after(b, all, out);
	return psd_builder_add_arrival(b, stage, &gather, elements, all, PSD_NO_OP);
}

static void unroll(struct psd_builder *b, const struct psd_stage *stage)
{
	const uint64_t workers = b->plan->layout.workers;
	/* elements of the largest part */
	const uint64_t part_elements = (stage->item->subject.elements + workers - 1) / workers;

	if (workers == 1) {
		psd_builder_add_lone_worker(b, stage);
		return;
	}
	const uint32_t sum = add_scatter(b, stage, part_elements);
	const uint32_t updated = psd_builder_add_apply(b, stage, PSD_WHERE_WORKERS, sum);

	psd_builder_add_done(b, stage, add_gather(b, stage, part_elements, updated));
}

const struct psd_method psd_method_zero_1 = {
	.name = "zero-1",
	.collective = &psd_reduce_scatter,
	.keeps = {[PSD_BUFFER_HISTORY] = true},
	.updates = PSD_OWNER_WORKERS,
	.unroll = unroll,
};
