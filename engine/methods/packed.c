/* Parameter server with compression in both directions: workers send compressed gradients to the shards. Each shard
 * sums its part, compresses the sum, and sends it to all workers, which apply it. Both ends keep a residual (error
 * feedback). Source: Seide et al. 2014 (1-bit SGD); Tang et al. 2019, DoubleSqueeze (arXiv 1905.05957). */
#include "engine/program/program_builder.h"

static const struct psd_route up = {&psd_push, PSD_WHERE_WORKERS, PSD_WHERE_SHARDS, PSD_VIEW(PACKED),
				    PSD_VIEW(PACKED_PARTS)};
static const struct psd_route down = {&psd_pull, PSD_WHERE_SHARDS, PSD_WHERE_WORKERS, PSD_VIEW(PACKED_SUM),
				      PSD_VIEW(PACKED_SUM)};

static uint64_t whole_bytes(const struct psd_builder *b, const struct psd_stage *stage, enum psd_buffer buffer)
{
	return stage->item->subject.elements * psd_plan_value_bytes(b->plan, buffer);
}

static uint64_t packed_bytes(const struct psd_builder *b, const struct psd_stage *stage)
{
	return stage->item->n_blocks * psd_plan_value_bytes(b->plan, PSD_BUFFER_PACKED);
}

/* Executed by one kernel before the remaining layers, since a transfer waits for it. */
static uint32_t add_pack(struct psd_builder *b, const struct psd_stage *stage)
{
	const uint64_t velocity_bytes = psd_plan_keeps(b->plan, stage->item, PSD_BUFFER_VELOCITY)
						? whole_bytes(b, stage, PSD_BUFFER_VELOCITY)
						: 0;
	struct psd_op op = psd_stage_op(stage, PSD_OP_PACK, PSD_WHERE_WORKERS);

	op.turn = PSD_TURN_BEFORE_LAYERS;
	op.source.buffer = PSD_BUFFER_GRADIENT;
	op.target.buffer = PSD_BUFFER_PACKED;
	op.bytes = whole_bytes(b, stage, PSD_BUFFER_GRADIENT) + whole_bytes(b, stage, PSD_BUFFER_RESIDUAL) +
		   velocity_bytes + packed_bytes(b, stage);
	const uint32_t pack = psd_builder_add_work(b, op, b->plan->system->host.launch_sec, stage->gradient);
	psd_builder_after(b, pack, b->gate_backward);
	return pack;
}

/* Adds every worker's part to the residual and packs the sum, whose error is the new residual. Priced as the largest
 * part, whose blocks are full if the item has that many values. */
static uint32_t add_repack(struct psd_builder *b, const struct psd_stage *stage)
{
	const struct psd_plan *plan = b->plan;
	const uint64_t blocks = (stage->item->n_blocks + plan->layout.shards - 1) / plan->layout.shards;
	const uint64_t most = blocks * plan->block.elements, all = stage->item->subject.elements;
	const uint64_t sum_bytes = (most < all ? most : all) * psd_plan_value_bytes(plan, PSD_BUFFER_PART_RESIDUAL);
	const uint64_t part_bytes = blocks * psd_plan_value_bytes(plan, PSD_BUFFER_PACKED_PARTS);
	const uint64_t added_bytes = plan->compression->adds_all ? sum_bytes : part_bytes;
	struct psd_op op = psd_stage_op(stage, PSD_OP_REPACK, PSD_WHERE_SHARDS);

	op.source.buffer = PSD_BUFFER_PACKED_PARTS;
	op.target.buffer = PSD_BUFFER_PACKED_SUM;
	op.bytes = plan->layout.workers * added_bytes + sum_bytes;
	return psd_builder_add_work(b, op, 0.0, PSD_NO_OP);
}

static uint32_t add_unpack(struct psd_builder *b, const struct psd_stage *stage, uint32_t arrived)
{
	struct psd_op op = psd_stage_op(stage, PSD_OP_UNPACK, PSD_WHERE_WORKERS);

	op.source.buffer = PSD_BUFFER_PACKED_SUM;
	op.target.buffer = PSD_BUFFER_GRADIENT;
	op.bytes = whole_bytes(b, stage, PSD_BUFFER_GRADIENT) + packed_bytes(b, stage);
	const uint32_t unpack = psd_builder_add_work(b, op, b->plan->system->host.launch_sec, arrived);
	psd_builder_after(b, unpack, b->gate_pulled);
	return unpack;
}

/* Returns the operation after which a shard's part of the sum is ready. */
static uint32_t add_push(struct psd_builder *b, const struct psd_stage *stage)
{
	struct psd_stage packed = *stage;

	packed.gradient = add_pack(b, stage);
	const uint32_t out = psd_builder_add_departure(b, &packed, &up, stage->item->n_blocks);
	const struct psd_message push = psd_builder_add_message(b, stage, &up, stage->item->n_blocks);
	psd_builder_after_departure(b, push.send, out);
	const uint32_t repack = add_repack(b, stage);
	psd_builder_after(b, repack, push.receive);
	psd_builder_after_departure(b, repack, out);
	psd_builder_after(b, b->gate_pushed, repack);
	return repack;
}

/* The part of a worker's own shard does not travel: both must be ready. */
static uint32_t add_pull(struct psd_builder *b, const struct psd_stage *stage, uint32_t ready)
{
	const struct psd_stage reply = psd_stage_reply(b, stage);
	const struct psd_message pull = psd_builder_add_message(b, &reply, &down, stage->item->n_blocks);

	psd_builder_after(b, pull.send, ready);
	psd_builder_after(b, pull.send, b->gate_pushed);
	return psd_builder_add_both(b, stage, PSD_WHERE_WORKERS, pull.receive, ready);
}

static void unroll(struct psd_builder *b, const struct psd_stage *stage)
{
	const uint32_t arrived = add_pull(b, stage, add_push(b, stage));
	const uint32_t in = psd_builder_add_arrival(b, stage, &down, stage->item->n_blocks, arrived, b->gate_pulled);
	const uint32_t sum = add_unpack(b, stage, in);

	psd_builder_add_done(b, stage, psd_builder_add_apply(b, stage, PSD_WHERE_WORKERS, sum));
}

#define BY_COMPRESSION(identifier, text)                                                                               \
	{.name = text " ps",                                                                                           \
	 .collective = &psd_push,                                                                                      \
	 .keeps = {[PSD_BUFFER_HISTORY] = true,                                                                        \
		   [PSD_BUFFER_VELOCITY] = true,                                                                       \
		   [PSD_BUFFER_RESIDUAL] = true,                                                                       \
		   [PSD_BUFFER_PACKED] = true,                                                                         \
		   [PSD_BUFFER_PACKED_PARTS] = true,                                                                   \
		   [PSD_BUFFER_PART_RESIDUAL] = true,                                                                  \
		   [PSD_BUFFER_PACKED_SUM] = true},                                                                    \
	 .unroll = unroll},
const struct psd_method psd_method_packed[] = {PSD_COMPRESSIONS(BY_COMPRESSION)};
