/* Sharded data-parallel training. A reduce-scatter gives each worker the sum of its part of a gradient, it updates that
 * part of the parameters, and an all-gather brings all parts to all workers.
 *
 * ZeRO-1: a worker keeps the optimiser state of its part alone.
 * ZeRO-2: it keeps the sum of its part alone, too. Memory for whole gradients is that of GRADIENT_SLOTS buckets, which
 * take turns.
 * ZeRO-3 (FSDP): it keeps the parameters of its part alone, too. Whole parameters of a bucket are gathered before its
 * forward pass and before its backward pass, `prefetch` buckets ahead, into memory of `prefetch` + 1 buckets, which
 * take turns. A worker first writes its part to its position there, as FSDP2 does, where that is the input of the
 * all-gather. Buckets with parameters that several layers share are gathered once in an iteration.
 *
 * With accumulation, ZeRO-2 and ZeRO-3 exchange the gradient of each micro-batch, and a worker adds its part of each.
 *
 * Parts are of all workers, or of those of each node: then an all-reduce sums each part across nodes (hybrid sharding).
 *
 * Sources: Rajbhandari et al. 2020, ZeRO (arXiv 1910.02054), section 5; Zhao et al. 2023, PyTorch FSDP
 * (arXiv 2304.11277), section 3. */
#include "engine/program/program_builder.h"

/* Routes of the parts that the method's owner has. */
static struct psd_route route_of(const struct psd_stage *stage, enum psd_buffer buffer)
{
	const enum psd_owner owner = stage->item->method->updates;
	const bool is_in_nodes = owner == PSD_OWNER_MEMBERS;
	const struct psd_view whole = {.buffer = buffer}, part = {buffer, owner};

	if (buffer == PSD_BUFFER_GRADIENT)
		return (struct psd_route){is_in_nodes ? &psd_node_reduce_scatter : &psd_reduce_scatter,
					  PSD_WHERE_WORKERS, PSD_WHERE_WORKERS, whole, part};
	return (struct psd_route){is_in_nodes ? &psd_node_all_gather : &psd_all_gather, PSD_WHERE_WORKERS,
				  PSD_WHERE_WORKERS, part, whole};
}

/* Number of elements of the largest part. */
static uint64_t part_of(const struct psd_builder *b, const struct psd_stage *stage)
{
	const uint64_t parts = psd_layout_parts(&b->plan->layout, stage->item->method->updates);

	return (stage->item->subject.elements + parts - 1) / parts;
}

/* Returns the operation after which each worker's device has the sum of its part. */
static uint32_t add_scatter(struct psd_builder *b, const struct psd_stage *stage)
{
	const struct psd_route scatter = route_of(stage, PSD_BUFFER_GRADIENT);
	const uint64_t elements = stage->item->subject.elements;
	const uint32_t out = psd_builder_add_departure(b, stage, &scatter, elements);
	uint32_t sum = psd_builder_add_collective(b, stage, &scatter, elements);

	psd_builder_after_departure(b, sum, out);
	if (stage->item->method->updates == PSD_OWNER_MEMBERS && b->plan->layout.nodes > 1) {
		const struct psd_route across = {&psd_across_nodes, PSD_WHERE_WORKERS, PSD_WHERE_WORKERS,
						 scatter.target, scatter.target};
		const uint32_t of_node = sum;

		sum = psd_builder_add_collective(b, stage, &across, elements);
		psd_builder_after(b, sum, of_node);
	}
	return psd_builder_add_arrival(b, stage, &scatter, part_of(b, stage), sum, PSD_NO_OP);
}

/* First operation of an all-gather, and the one after which each worker's device has all parameters. */
struct gathering {
	uint32_t first, last;
};

/* first: operation that brings the worker's part into the memory of whole parameters; PSD_NO_OP: it is there. */
static struct gathering add_gather(struct psd_builder *b, const struct psd_stage *stage, uint32_t first)
{
	const struct psd_route gather = route_of(stage, PSD_BUFFER_PARAMETER);
	const uint64_t elements = stage->item->subject.elements;
	const uint32_t out = psd_builder_add_leaving(b, stage, &gather, part_of(b, stage), first, PSD_NO_OP);
	const uint32_t all = psd_builder_add_collective(b, stage, &gather, elements);

	psd_builder_after(b, all, out);
	if (first == PSD_NO_OP)
		first = out == PSD_NO_OP ? all : out;
	return (struct gathering){first, psd_builder_add_arrival(b, stage, &gather, elements, all, PSD_NO_OP)};
}

/* Adds the update of a part, before the layers that are still to come, and the all-gather of the updated parameters. */
static void add_update(struct psd_builder *b, const struct psd_stage *stage, uint32_t sum)
{
	const uint32_t updated = psd_builder_add_apply(b, stage, PSD_WHERE_WORKERS, sum);
	const struct gathering all = add_gather(b, stage, PSD_NO_OP);

	if (!b->is_out_of_memory)
		b->program.ops[updated].turn = PSD_TURN_BEFORE_LAYERS;
	psd_builder_after(b, all.first, updated);
	psd_builder_add_done(b, stage, all.last);
}

static void unroll_1(struct psd_builder *b, const struct psd_stage *stage)
{
	if (b->plan->layout.workers == 1)
		psd_builder_add_lone_worker(b, stage);
	else
		add_update(b, stage, add_scatter(b, stage));
}

/* ---- gradients that take turns ---- */

enum { GRADIENT_SLOTS = 2 };

/* Number of the item in the plan, also where it is unrolled alone. */
static unsigned number_of(const struct psd_builder *b, const struct psd_stage *stage)
{
	unsigned i = 0;

	while (i + 1 < b->plan->n_items && b->plan->items[i].first < stage->item->first)
		i++;
	return i;
}

/* Layer of an item whose gradient is computed first. */
static unsigned first_backward_layer(const struct psd_plan *plan, unsigned item)
{
	return plan->graph->tensors[psd_plan_tensor(plan, &plan->items[item], 0)].layer;
}

/* Difference between the turns of a micro-batch's reduce-scatters and the stage's, which are the last one's. */
static int64_t turns_behind(const struct psd_builder *b, uint32_t micro_batch)
{
	const uint32_t behind = b->plan->micro_batches - 1 - micro_batch;

	return (int64_t)behind * (b->plan->n_items + b->plan->graph->n_layers);
}

static struct psd_stage stage_of_batch(const struct psd_builder *b, const struct psd_stage *stage, uint32_t micro_batch)
{
	struct psd_stage of = *stage;

	of.turn -= turns_behind(b, micro_batch);
	if (b->n_compute > 0)
		of.gradient = psd_builder_pass_of(b, stage->gradient, micro_batch);
	return of;
}

/* Makes the item which has the memory of the whole gradient next wait until it is free: the one GRADIENT_SLOTS later,
 * or one of the next micro-batch, or of the next iteration. */
static void free_gradient(struct psd_builder *b, const struct psd_stage *stage, uint32_t micro_batch, uint32_t kept)
{
	const unsigned i = number_of(b, stage), later = i + GRADIENT_SLOTS;
	const bool is_last = later >= psd_plan_buckets(b->plan);
	const uint32_t next_batch = micro_batch + is_last;
	const unsigned layer = first_backward_layer(b->plan, is_last ? i % GRADIENT_SLOTS : later);
	const bool is_over = next_batch == b->plan->micro_batches;

	if (b->n_compute > 0)
		psd_builder_after_iterations(
			b, psd_builder_pass_of(b, b->backward_of_layer[layer], is_over ? 0 : next_batch), kept,
			is_over ? 1 : 0);
}

/* Returns the operation after which the sum of all micro-batches is kept. The first one's sum is moved out of the
 * memory of the whole gradient, later ones are added to it. */
static uint32_t add_kept_sum(struct psd_builder *b, const struct psd_stage *stage)
{
	const struct psd_route keep = {NULL,
				       PSD_WHERE_WORKERS,
				       PSD_WHERE_WORKERS,
				       {PSD_BUFFER_GRADIENT, stage->item->method->updates},
				       PSD_VIEW(SUM)};
	uint32_t kept = PSD_NO_OP;

	for (uint32_t m = 0; m < b->plan->micro_batches && !b->is_out_of_memory; m++) {
		struct psd_stage of = stage_of_batch(b, stage, m);

		if (b->n_compute == 0 && m > 0) /* an item alone: one after the other */
			of.gradient = kept;
		const uint32_t sum = add_scatter(b, &of);

		kept = m == 0 ? psd_builder_add_move(b, &of, &keep, part_of(b, &of), sum)
			      : psd_builder_add_part_sum(b, &of, m, part_of(b, &of), sum);
		free_gradient(b, stage, m, kept);
	}
	return kept;
}

static void unroll_2(struct psd_builder *b, const struct psd_stage *stage)
{
	if (b->plan->layout.workers == 1) {
		psd_builder_add_lone_worker(b, stage);
		return;
	}
	add_update(b, stage, add_kept_sum(b, stage));
}

/* ---- parameters that take turns ---- */

/* Use of an item's (bucket's) parameters: position p < n in a micro-batch is the forward pass of item n - 1 - p,
 * position n + i is the backward pass of item i. */
struct use {
	uint32_t micro_batch;
	unsigned position;
};

static unsigned item_at(const struct psd_builder *b, unsigned position)
{
	const unsigned n = psd_plan_buckets(b->plan);

	return position < n ? n - 1 - position : position - n;
}

/* Pass of a layer in a use. */
static uint32_t pass_at(const struct psd_builder *b, struct use use, unsigned layer)
{
	uint32_t op = b->first_pass[use.micro_batch];

	if (use.position >= psd_plan_buckets(b->plan))
		return psd_builder_pass_of(b, b->backward_of_layer[layer], use.micro_batch);
	while (psd_ops[b->program.ops[op].kind].is_forward && b->program.ops[op].layer != layer)
		op++;
	return op;
}

/* Returns the last operation of a use. */
static uint32_t end_of_use(const struct psd_builder *b, struct use use)
{
	const unsigned item = item_at(b, use.position);
	const bool is_forward = use.position < psd_plan_buckets(b->plan);

	return pass_at(b, use, is_forward ? first_backward_layer(b->plan, item) : b->plan->items[item].layer);
}

/* Makes all operations of a use wait. */
static void delay_use(struct psd_builder *b, struct use use, uint32_t before)
{
	const struct psd_plan_item *item = &b->plan->items[item_at(b, use.position)];

	for (unsigned n = 0; n < item->n_tensors; n++) {
		const unsigned layer = b->plan->graph->tensors[psd_plan_tensor(b->plan, item, n)].layer;
		const bool is_new =
			n == 0 || b->plan->graph->tensors[psd_plan_tensor(b->plan, item, n - 1)].layer != layer;

		if (is_new)
			psd_builder_after(b, pass_at(b, use, layer), before);
	}
}

/* Returns the operation that writes a worker's part to its position among whole parameters. */
static uint32_t add_own(struct psd_builder *b, const struct psd_stage *stage)
{
	const struct psd_route own = {NULL,
				      PSD_WHERE_WORKERS,
				      PSD_WHERE_WORKERS,
				      PSD_VIEW(OWN),
				      {PSD_BUFFER_PARAMETER, stage->item->method->updates}};

	return psd_builder_add_move(b, stage, &own, part_of(b, stage), PSD_NO_OP);
}

/* Gathers go before all reduce-scatters: a layer waits for them. */
static struct psd_stage stage_of_use(const struct psd_builder *b, const struct psd_stage *stage, struct use use)
{
	const uint32_t behind = b->plan->micro_batches - use.micro_batch;
	struct psd_stage of = *stage;

	of.turn = use.position - (int64_t)behind * 2 * psd_plan_buckets(b->plan) - turns_behind(b, 0);
	return of;
}

/* Before it, the use `prefetch` + 1 positions earlier must have ended, since it has the memory; and the update of the
 * iteration before. */
static void add_gather_for(struct psd_builder *b, const struct psd_stage *stage, struct use use, uint32_t updated)
{
	const unsigned n_uses = 2 * psd_plan_buckets(b->plan), depth = b->plan->system->prefetch + 1;
	const struct psd_stage early = stage_of_use(b, stage, use);
	const struct gathering all = add_gather(b, &early, add_own(b, &early));
	const bool is_first = use.position < depth; /* the memory was used last in the iteration before */
	struct use freed = use;

	if (b->n_compute == 0) { /* an item alone: the next iteration gathers it */
		psd_builder_after(b, all.first, updated);
		return;
	}
	freed.micro_batch = is_first ? b->plan->micro_batches - 1 : use.micro_batch;
	freed.position = (use.position + n_uses - depth % n_uses) % n_uses;
	if (depth < n_uses)
		psd_builder_after_iterations(b, all.first, end_of_use(b, freed), is_first ? 1 : 0);
	psd_builder_after_iterations(b, all.first, updated, 1);
	delay_use(b, use, all.last);
}

/* The last `prefetch` + 1 buckets of a pass are the first of the next one, and are still there, until an update. */
static void unroll_3(struct psd_builder *b, const struct psd_stage *stage)
{
	const unsigned n = psd_plan_buckets(b->plan), i = number_of(b, stage), prefetch = b->plan->system->prefetch;
	const bool is_there = psd_plan_is_shared(b->plan, stage->item);

	if (b->plan->layout.workers == 1) {
		psd_builder_add_lone_worker(b, stage);
		return;
	}
	if (b->is_out_of_memory)
		return;
	const uint32_t updated = psd_builder_add_apply(b, stage, PSD_WHERE_WORKERS, add_kept_sum(b, stage));

	for (uint32_t m = 0; m < b->plan->micro_batches && !b->is_out_of_memory; m++) {
		if (m == 0 || (n - 1 - i > prefetch && !is_there))
			add_gather_for(b, stage, (struct use){m, n - 1 - i}, updated);
		if (i > prefetch && !is_there)
			add_gather_for(b, stage, (struct use){m, n + i}, updated);
	}
	psd_builder_add_done(b, stage, updated);
}

#define SHARDED(number, half, owner)                                                                                   \
	.name = "zero-" #number, .collective = &(half), .updates = PSD_OWNER_##owner,                                  \
	.keeps = {[PSD_BUFFER_HISTORY] = true, [PSD_BUFFER_SUM] = (number) > 1, [PSD_BUFFER_OWN] = (number) > 2},      \
	.unroll = unroll_##number
#define OF_ALL(number)	 SHARDED(number, psd_reduce_scatter, WORKERS)
#define IN_NODES(number) SHARDED(number, psd_node_reduce_scatter, MEMBERS)
#define TAKES_TURNS	 .gradient_slots = GRADIENT_SLOTS

const struct psd_method psd_method_zero_1 = {OF_ALL(1)}, psd_method_zero_1_in_nodes = {IN_NODES(1)};
const struct psd_method psd_method_zero_2 = {OF_ALL(2), TAKES_TURNS},
			psd_method_zero_2_in_nodes = {IN_NODES(2), TAKES_TURNS};
const struct psd_method psd_method_zero_3 = {OF_ALL(3), TAKES_TURNS, .gathers = true},
			psd_method_zero_3_in_nodes = {IN_NODES(3), TAKES_TURNS, .gathers = true};

/* ---- norms of whole tensors ---- */

/* Unrolled after all other items: an update by norms waits for the sums of all of them. */
static void unroll_squares(struct psd_builder *b, const struct psd_stage *stage)
{
	static const struct psd_route route = {&psd_recursive_doubling, PSD_WHERE_WORKERS, PSD_WHERE_WORKERS,
					       PSD_VIEW(NORMS), PSD_VIEW(NORMS)};
	const uint64_t elements = stage->item->subject.elements;
	const uint32_t n_ops = b->program.n_ops, all = psd_builder_add_gate(b, PSD_WHERE_WORKERS);
	const uint32_t out = psd_builder_add_leaving(b, stage, &route, elements, all, PSD_NO_OP);
	const uint32_t summed = psd_builder_add_collective(b, stage, &route, elements);

	psd_builder_after(b, summed, out);
	const uint32_t sums = psd_builder_add_arrival(b, stage, &route, elements, summed, PSD_NO_OP);
	psd_builder_after(b, b->clip, sums);
	for (uint32_t i = 0; i < n_ops && !b->is_out_of_memory; i++) {
		if (psd_ops[b->program.ops[i].kind].measures)
			psd_builder_after(b, all, i);
		if (psd_ops[b->program.ops[i].kind].updates)
			psd_builder_after(b, i, sums);
	}
}

const struct psd_method psd_method_squares = {
	.name = "squares",
	.collective = &psd_recursive_doubling,
	.keeps = {[PSD_BUFFER_NORMS] = true},
	.unroll = unroll_squares,
};
