/* Sufficient factor broadcasting: every worker sends its factors to all others and rebuilds the gradient. In a partial
 * one it sends them to some, other ones in each iteration, and updates with the mean gradient of those that it has.
 * Parameters then differ by worker, and are averaged through shards in the exchanges of local SGD. With two
 * levels, the leader of a node sends the factors of all its workers to other leaders, and hands on those that come. */
#include "engine/program/program_builder.h"

static const struct psd_route to_all = {&psd_broadcast, PSD_WHERE_WORKERS, PSD_WHERE_WORKERS, PSD_VIEW(FACTORS),
					PSD_VIEW(FACTORS)};

static void unroll(struct psd_builder *b, const struct psd_stage *stage)
{
	if (b->plan->layout.workers == 1) {
		psd_builder_add_lone_worker(b, stage);
		return;
	}
	const uint32_t arrived = psd_builder_add_factor_exchange(b, stage, &to_all);
	psd_builder_add_done(b, stage, psd_builder_add_rebuild(b, stage, PSD_WHERE_WORKERS, arrived));
}

const struct psd_method psd_method_sfb = {
	.name = "sfb",
	.collective = &psd_broadcast,
	.keeps = {[PSD_BUFFER_FACTORS] = true, [PSD_BUFFER_HISTORY] = true, [PSD_BUFFER_ENCODED_FACTORS] = true},
	.unroll = unroll,
};

static const struct psd_route to_some = {&psd_partial_broadcast, PSD_WHERE_WORKERS, PSD_WHERE_WORKERS,
					 PSD_VIEW(FACTORS), PSD_VIEW(FACTORS)};

static void unroll_partial(struct psd_builder *b, const struct psd_stage *whole)
{
	struct psd_stage stage = *whole;
	const uint32_t arrived = psd_builder_add_factor_exchange(b, whole, &to_some);

	stage.gradient = psd_builder_add_rebuilt(b, whole, PSD_WHERE_WORKERS, arrived);
	psd_builder_add_local(b, &stage, &psd_method_ps);
}

const struct psd_method psd_method_partial_sfb = {
	.name = "partial sfb",
	.collective = &psd_push,
	.keeps = {[PSD_BUFFER_FACTORS] = true,
		  [PSD_BUFFER_ENCODED_FACTORS] = true,
		  [PSD_BUFFER_PART] = true,
		  [PSD_BUFFER_RECEIVED] = true,
		  [PSD_BUFFER_ENCODED_GRADIENT] = true,
		  [PSD_BUFFER_ENCODED_PARAMETER] = true},
	.slicing = PSD_SLICED,
	.is_partial = true,
	.unroll = unroll_partial,
};

static const struct psd_route beside = {&psd_node_broadcast, PSD_WHERE_WORKERS, PSD_WHERE_WORKERS, PSD_VIEW(FACTORS),
					PSD_VIEW(FACTORS)},
			      across = {&psd_leader_broadcast, PSD_WHERE_LEADERS, PSD_WHERE_LEADERS, PSD_VIEW(FACTORS),
					PSD_VIEW(FACTORS)},
			      over = {&psd_hand_over, PSD_WHERE_LEADERS, PSD_WHERE_WORKERS, PSD_VIEW(FACTORS),
				      PSD_VIEW(FACTORS)};

/* Appends a transfer after `before` and after the worker's own factors are there (`out`). `all` waits for its end.
 * Returns the operation that receives it. */
static uint32_t add_transfer(struct psd_builder *b, const struct psd_stage *stage, const struct psd_route *route,
			     uint32_t before, uint32_t out, uint32_t all)
{
	const uint64_t elements = psd_subject_factors(&stage->item->subject);
	const struct psd_message message = psd_builder_add_message(b, stage, route, elements);

	psd_builder_after(b, message.send, before);
	psd_builder_after_departure(b, message.send, out);
	psd_builder_add_sent(b, stage, message.send);
	psd_builder_after(b, all, message.receive);
	return message.receive;
}

static void unroll_by_leaders(struct psd_builder *b, const struct psd_stage *stage)
{
	if (b->plan->layout.workers_per_node == 1) {
		unroll(b, stage);
		return;
	}
	const uint64_t elements = psd_subject_factors(&stage->item->subject);
	const uint32_t out = psd_builder_add_departure(b, stage, &beside, elements);
	const uint32_t all = psd_builder_add_gate(b, PSD_WHERE_WORKERS);
	const uint32_t here = add_transfer(b, stage, &beside, PSD_NO_OP, out, all);

	if (b->plan->layout.nodes > 1) {
		const uint32_t there = add_transfer(b, stage, &across, here, out, all);

		add_transfer(b, stage, &over, there, out, all);
	}
	const uint32_t arrived = psd_builder_add_factor_arrival(b, stage, &over, all, out);
	psd_builder_add_done(b, stage, psd_builder_add_rebuild(b, stage, PSD_WHERE_WORKERS, arrived));
}

const struct psd_method psd_method_two_level_sfb = {
	.name = "two-level sfb",
	.collective = &psd_leader_broadcast,
	.keeps = {[PSD_BUFFER_FACTORS] = true, [PSD_BUFFER_HISTORY] = true, [PSD_BUFFER_ENCODED_FACTORS] = true},
	.joins_nodes = true,
	.unroll = unroll_by_leaders,
};
