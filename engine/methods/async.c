/* Asynchronous parameter server: a shard updates its part by the gradient of one worker as soon as that has arrived,
 * and returns the parameters to this worker. A worker waits for no other one, unless it is ahead of the slowest by the
 * bound. Operations between a worker and the shards are that worker's own, with its number as their root. */
#include "engine/program/program_builder.h"

/* Returns a gate on one worker, the root of the stage's item, after the two operations. */
static uint32_t add_own_gate(struct psd_builder *b, const struct psd_stage *own, uint32_t one, uint32_t other)
{
	return psd_builder_add_both(b, own, PSD_WHERE_ROOT, one, other);
}

/* Appends the exchange of one worker, whose gradient has reached its host's memory after `out`. Its reply waits for
 * `all` of the iteration before the last `bound`. Returns the shards' update. */
static uint32_t add_worker(struct psd_builder *b, const struct psd_stage *stage, unsigned worker, uint32_t out,
			   uint32_t all)
{
	static const struct psd_route up = {&psd_push_of_one, PSD_WHERE_ROOT, PSD_WHERE_SHARDS, PSD_VIEW(GRADIENT),
					    PSD_VIEW(RECEIVED)},
				      down = {&psd_pull_of_one, PSD_WHERE_SHARDS, PSD_WHERE_ROOT, PSD_VIEW(RECEIVED),
					      PSD_VIEW(PARAMETER)};
	const uint64_t elements = psd_plan_slice(stage->item, stage->slice).elements;
	const uint64_t shards = b->plan->layout.shards, part_elements = (elements + shards - 1) / shards;
	struct psd_plan_item item = *stage->item;
	struct psd_stage own = *stage;

	item.root = worker; /* workers are the first hosts */
	own.item = &item;
	const uint32_t begun = add_own_gate(b, &own, out, PSD_NO_OP);
	const struct psd_message push = psd_builder_add_message(b, &own, &up, elements);
	const uint32_t reduce =
		psd_builder_add_reduce(b, &own, PSD_WHERE_SHARDS, (double)(part_elements * b->plan->value_bytes), 1);
	const struct psd_message pull = psd_builder_add_message(b, &own, &down, elements);

	psd_builder_after(b, push.send, begun);
	psd_builder_after(b, reduce, push.receive);
	psd_builder_after(b, reduce, begun);
	psd_builder_after(b, pull.send, reduce);
	psd_builder_after_iterations(b, pull.send, all, (uint32_t)b->plan->async->bound);
	const uint32_t ended = add_own_gate(b, &own, pull.receive, reduce);

	psd_builder_after_iterations(b, ended, all, (uint32_t)b->plan->async->bound);
	psd_builder_add_done(b, &own, psd_builder_add_arrival(b, &own, &down, elements, ended, PSD_NO_OP));
	return reduce;
}

static void add_slice(struct psd_builder *b, const struct psd_stage *stage)
{
	static const struct psd_route up = {&psd_push, PSD_WHERE_WORKERS, PSD_WHERE_SHARDS, PSD_VIEW(GRADIENT),
					    PSD_VIEW(RECEIVED)};
	const uint64_t elements = psd_plan_slice(stage->item, stage->slice).elements;
	const uint32_t out = psd_builder_add_departure(b, stage, &up, elements);
	const uint32_t all = psd_builder_add_gate(b, PSD_WHERE_SHARDS);

	for (unsigned worker = 0; worker < b->plan->layout.workers; worker++)
		psd_builder_after(b, all, add_worker(b, stage, worker, out, all));
}

static void unroll(struct psd_builder *b, const struct psd_stage *whole)
{
	struct psd_stage stage = *whole;

	for (stage.slice = 0; stage.slice < whole->item->n_slices; stage.slice++)
		add_slice(b, &stage);
}

const struct psd_method psd_method_async = {
	.name = "async",
	.collective = &psd_push_of_one,
	.alone = &psd_method_ps, /* workers together move the same bytes on each link */
	.keeps = {[PSD_BUFFER_PART] = true, [PSD_BUFFER_PART_HISTORY] = true, [PSD_BUFFER_RECEIVED] = true},
	.slicing = PSD_SLICED,
	.unroll = unroll,
};
