/* Parameter server: workers send gradients to the shards. Each shard sums and applies its part, and returns parameters;
 * where workers update, it returns sums of gradients. With two levels only the leader of a node exchanges with the
 * shards: it sums the gradients of its node, and forwards the parameters. */
#include "engine/program/program_builder.h"

/* Routes between shards and the senders of gradients, which are workers or leaders. */
struct routes {
	struct psd_route up, down;
};

static struct routes routes_of(const struct psd_builder *b, enum psd_where senders)
{
	const bool are_leaders = senders == PSD_WHERE_LEADERS, is_summed = b->plan->workers_update;

	return (struct routes){{are_leaders ? &psd_leader_push : &psd_push, senders, PSD_WHERE_SHARDS,
				PSD_VIEW(GRADIENT), PSD_VIEW(RECEIVED)},
			       {are_leaders ? &psd_leader_pull : &psd_pull,
				PSD_WHERE_SHARDS,
				senders,
				{.buffer = is_summed ? PSD_BUFFER_GRADIENT : PSD_BUFFER_PART},
				{.buffer = is_summed ? PSD_BUFFER_GRADIENT : PSD_BUFFER_PARAMETER}}};
}

static const struct psd_route to_leader = {&psd_to_leader, PSD_WHERE_WORKERS, PSD_WHERE_LEADERS, PSD_VIEW(GRADIENT),
					   PSD_VIEW(MEMBERS)};

static struct psd_route from_leader(const struct psd_builder *b)
{
	const enum psd_buffer buffer = b->plan->workers_update ? PSD_BUFFER_GRADIENT : PSD_BUFFER_PARAMETER;

	return (struct psd_route){
		&psd_from_leader, PSD_WHERE_LEADERS, PSD_WHERE_WORKERS, {.buffer = buffer}, {.buffer = buffer}};
}

/* ---- between shards and their senders ---- */

/* Each of n_senders pushes after `out` and, unless it is PSD_NO_OP, after `summed`. Returns the operation after which
 * new parameters, or sums, are ready to leave the shards. */
static uint32_t add_push(struct psd_builder *b, const struct psd_stage *stage, const struct routes *routes,
			 unsigned n_senders, uint32_t out, uint32_t summed)
{
	const struct psd_layout *layout = &b->plan->layout;
	const uint64_t elements = psd_plan_slice(stage->item, stage->slice).elements;
	const uint64_t part_elements =
		(elements + layout->shards - 1) / layout->shards; /* elements of the largest part */
	const struct psd_message push = psd_builder_add_message(b, stage, &routes->up, elements);
	const double part_bytes = (double)elements * b->plan->value_bytes / layout->shards;

	psd_builder_after_departure(b, push.send, out);
	psd_builder_after(b, push.send, summed);
	const uint32_t reduce = psd_builder_add_reduce(b, stage, PSD_WHERE_SHARDS, part_bytes * n_senders, n_senders);
	psd_builder_after(b, reduce, push.receive);
	psd_builder_after_departure(b, reduce, out);
	psd_builder_after(b, reduce, summed);
	psd_builder_after(b, b->gate_pushed, reduce);
	if (b->plan->workers_update)
		return reduce;
	return psd_builder_add_leaving(b, stage, &routes->down, part_elements, reduce, PSD_NO_OP);
}

/* The part of a sender's own shard does not travel: both must be ready. */
static uint32_t add_both(struct psd_builder *b, enum psd_where where, uint32_t received, uint32_t reduced)
{
	if (received == PSD_NO_OP)
		return reduced;
	if (b->plan->layout.has_separate_servers)
		return received;
	const uint32_t both = psd_builder_add_gate(b, where);
	psd_builder_after(b, both, received);
	psd_builder_after(b, both, reduced);
	return both;
}

/* Returns the operation after which new parameters, or sums, have arrived. */
static uint32_t add_pull(struct psd_builder *b, const struct psd_stage *reply, const struct routes *routes,
			 uint32_t ready)
{
	const uint64_t elements = psd_plan_slice(reply->item, reply->slice).elements;
	const struct psd_message pull = psd_builder_add_message(b, reply, &routes->down, elements);

	psd_builder_after(b, pull.send, ready);
	psd_builder_after(b, pull.send, b->gate_pushed);
	if (b->plan->workers_update)
		psd_builder_add_sent(b, reply, pull.send);
	return add_both(b, routes->down.to, pull.receive, ready);
}

/* Returns the operation after which every worker's device has new parameters, or sums, of a slice. */
typedef uint32_t add_slice_fn(struct psd_builder *b, const struct psd_stage *stage);

static uint32_t add_slice(struct psd_builder *b, const struct psd_stage *stage)
{
	const struct routes routes = routes_of(b, PSD_WHERE_WORKERS);
	const struct psd_stage reply = psd_stage_reply(b, stage);
	const uint64_t elements = psd_plan_slice(stage->item, stage->slice).elements;
	const uint32_t out = psd_builder_add_departure(b, stage, &routes.up, elements);
	const uint32_t ready = add_push(b, stage, &routes, b->plan->layout.workers, out, PSD_NO_OP);
	const uint32_t arrived = add_pull(b, &reply, &routes, ready);

	return psd_builder_add_arrival(b, stage, &routes.down, elements, arrived, b->gate_pulled);
}

/* Each slice ends with its new parameters; sums are applied together like those of an all-reduce. */
static void unroll_by(struct psd_builder *b, const struct psd_stage *whole, add_slice_fn *add)
{
	const bool is_summed = b->plan->workers_update;
	const uint32_t all = is_summed ? psd_builder_add_gate(b, PSD_WHERE_WORKERS) : PSD_NO_OP;
	struct psd_stage stage = *whole;

	for (stage.slice = 0; stage.slice < whole->item->n_slices; stage.slice++) {
		const uint32_t arrived = add(b, &stage);

		if (is_summed)
			psd_builder_after(b, all, arrived);
		else
			psd_builder_add_done(b, &stage, arrived);
	}
	if (is_summed)
		psd_builder_add_done(b, whole, psd_builder_add_apply(b, whole, PSD_WHERE_WORKERS, all));
}

static void unroll(struct psd_builder *b, const struct psd_stage *whole)
{
	unroll_by(b, whole, add_slice);
}

/* ---- servers that hold whole tensors ---- */

static uint32_t add_whole_slice(struct psd_builder *b, const struct psd_stage *stage)
{
	static const struct psd_route up = {&psd_to_root, PSD_WHERE_WORKERS, PSD_WHERE_ROOT, PSD_VIEW(GRADIENT),
					    PSD_VIEW(RECEIVED)};
	static const struct psd_route down = {&psd_from_root, PSD_WHERE_ROOT, PSD_WHERE_WORKERS, PSD_VIEW(PART),
					      PSD_VIEW(PARAMETER)};
	const struct psd_layout *layout = &b->plan->layout;
	const struct psd_stage reply = psd_stage_reply(b, stage);
	const uint64_t elements = psd_plan_slice(stage->item, stage->slice).elements;
	const uint32_t out = psd_builder_add_departure(b, stage, &up, elements);
	const struct psd_message push = psd_builder_add_message(b, stage, &up, elements);
	const double bytes = (double)elements * b->plan->value_bytes * layout->workers;
	const uint32_t reduce = psd_builder_add_reduce(b, stage, PSD_WHERE_ROOT, bytes, layout->workers);

	psd_builder_after_departure(b, push.send, out);
	psd_builder_after(b, reduce, push.receive);
	psd_builder_after_departure(b, reduce, out);
	psd_builder_after(b, b->gate_pushed, reduce);
	const struct psd_message pull = psd_builder_add_message(b, &reply, &down, elements);
	psd_builder_after(b, pull.send, reduce);
	psd_builder_after(b, pull.send, b->gate_pushed);
	return psd_builder_add_arrival(b, stage, &down, elements, add_both(b, PSD_WHERE_WORKERS, pull.receive, reduce),
				       b->gate_pulled);
}

static void unroll_by_tensors(struct psd_builder *b, const struct psd_stage *whole)
{
	if (b->plan->layout.workers == 1 && !b->plan->layout.has_separate_servers) {
		psd_builder_add_lone_worker(b, whole);
		return;
	}
	unroll_by(b, whole, add_whole_slice);
}

/* ---- inside nodes ---- */

/* Returns the operation after which each leader has its node's gradient, priced as on the fullest node. */
static uint32_t add_node_sum(struct psd_builder *b, const struct psd_stage *stage, uint32_t out)
{
	const uint64_t elements = psd_plan_slice(stage->item, stage->slice).elements;
	const struct psd_message message = psd_builder_add_message(b, stage, &to_leader, elements);
	const double bytes = (double)elements * b->plan->value_bytes;

	psd_builder_after_departure(b, message.send, out);
	const uint32_t sum = psd_builder_add_node_sum(b, stage, bytes * b->plan->layout.workers_per_node);
	psd_builder_after(b, sum, message.receive);
	psd_builder_after_departure(b, sum, out);
	return sum;
}

/* Returns the operation after which all workers have the data of their leaders. */
static uint32_t add_handing_on(struct psd_builder *b, const struct psd_stage *reply, const struct psd_route *route,
			       uint32_t arrived)
{
	const uint64_t elements = psd_plan_slice(reply->item, reply->slice).elements;
	const struct psd_message message = psd_builder_add_message(b, reply, route, elements);
	const uint32_t all = psd_builder_add_gate(b, PSD_WHERE_WORKERS);

	psd_builder_after(b, message.send, arrived);
	if (b->plan->workers_update)
		psd_builder_add_sent(b, reply, message.send);
	psd_builder_after(b, all, message.receive);
	psd_builder_after(b, all, arrived);
	return all;
}

static uint32_t add_slice_by_leaders(struct psd_builder *b, const struct psd_stage *stage)
{
	const struct routes routes = routes_of(b, PSD_WHERE_LEADERS);
	const struct psd_route down = from_leader(b);
	const struct psd_stage reply = psd_stage_reply(b, stage);
	const uint64_t elements = psd_plan_slice(stage->item, stage->slice).elements;
	const uint32_t out = psd_builder_add_departure(b, stage, &to_leader, elements);
	const uint32_t summed = add_node_sum(b, stage, out);
	const uint32_t ready = add_push(b, stage, &routes, b->plan->layout.nodes, out, summed);
	const uint32_t arrived = add_handing_on(b, &reply, &down, add_pull(b, &reply, &routes, ready));

	return psd_builder_add_arrival(b, stage, &down, elements, arrived, b->gate_pulled);
}

static void unroll_by_leaders(struct psd_builder *b, const struct psd_stage *whole)
{
	const bool has_members = b->plan->layout.workers_per_node > 1;

	unroll_by(b, whole, has_members ? add_slice_by_leaders : add_slice);
}

const struct psd_method psd_method_ps = {
	.name = "ps",
	.collective = &psd_push,
	.keeps = {[PSD_BUFFER_PART] = true,
		  [PSD_BUFFER_PART_HISTORY] = true,
		  [PSD_BUFFER_RECEIVED] = true,
		  [PSD_BUFFER_ENCODED_GRADIENT] = true,
		  [PSD_BUFFER_ENCODED_PARAMETER] = true},
	.slicing = PSD_SLICED,
	.unroll = unroll,
};

const struct psd_method psd_method_ps_by_tensors = {
	.name = "ps by tensors",
	.collective = &psd_to_root,
	.keeps = {[PSD_BUFFER_PART] = true, [PSD_BUFFER_PART_HISTORY] = true, [PSD_BUFFER_RECEIVED] = true},
	.slicing = PSD_SLICED_NEVER, /* a server sums and applies a tensor as one */
	.has_root = true,
	.unroll = unroll_by_tensors,
};

const struct psd_method psd_method_two_level_ps = {
	.name = "two-level ps",
	.collective = &psd_leader_push,
	.keeps = {[PSD_BUFFER_PART] = true,
		  [PSD_BUFFER_PART_HISTORY] = true,
		  [PSD_BUFFER_MEMBERS] = true,
		  [PSD_BUFFER_RECEIVED] = true,
		  [PSD_BUFFER_ENCODED_GRADIENT] = true,
		  [PSD_BUFFER_ENCODED_PARAMETER] = true},
	.slicing = PSD_SLICED,
	.joins_nodes = true,
	.unroll = unroll_by_leaders,
};
