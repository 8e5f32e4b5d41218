/* Compressed gradients to the shards and compressed sums back: every operation of one item, by hand. */
#define _DEFAULT_SOURCE
#include <criterion/criterion.h>

#include "engine/encodings/compression.h"
#include "tests/engine/methods/item_helper.h"

enum { WORKERS = 3 };

/* One matrix of 128 x 128, which is 16 blocks of 1024 values; at 3 nodes shards have 5, 5 and 6 of them. */
static const uint64_t matrix_bytes = 4 * 128 * 128, n_blocks = 16, block_bytes = 2 * 4 + 1024 / 8;

static void open_matrix(struct one_item *item, const char *system, bool has_own_memory)
{
	open_item(item, "tests/data/one_layer.yaml", WORKERS, system, has_own_memory);
}

/* ---- operations and edges ---- */

static void expect_ops(const char *system, bool has_own_memory, const char *expected)
{
	expect_operations("tests/data/one_layer.yaml", WORKERS, system, has_own_memory, expected);
}

/* The gradient is packed when it is final. A shard sums when it has the other workers' blocks, and its own worker's are
 * in its memory. A worker unpacks when it has the other shards' blocks and its own shard's. */
Test(packed, a_device_in_its_hosts_memory_copies_nothing)
{
	expect_ops("sync: ps, compress: {by: one-bit}", false,
		   "0 forward on device of workers after 11-1, 13-1\n"
		   "1 backward on device of workers after 0\n"
		   "2 pack on device of workers, gradient to packed after 1\n"
		   "3 send on network of workers, packed to packed_parts after 2\n"
		   "4 receive on nothing of shards, packed to packed_parts\n"
		   "5 repack on processor of shards, packed_parts to packed_sum after 4, 2\n"
		   "6 send on network of shards, packed_sum to packed_sum after 5\n"
		   "7 receive on nothing of workers, packed_sum to packed_sum\n"
		   "8 gate on nothing of workers after 7, 5\n"
		   "9 unpack on device of workers, packed_sum to gradient after 8\n"
		   "10 apply on device of workers after 9\n"
		   "11 barrier on device of workers after 1, 10\n"
		   "12 next on nothing of workers after 11\n"
		   "13 gate on nothing of workers after 0\n");
}

#define COPIED_BLOCKS                                                                                                  \
	"1 backward on device of workers after 0\n"                                                                    \
	"2 pack on device of workers, gradient to packed after 1\n"                                                    \
	"3 copy on way out of workers, packed to packed after 2\n"                                                     \
	"4 send on network of workers, packed to packed_parts after 3\n"                                               \
	"5 receive on nothing of shards, packed to packed_parts\n"                                                     \
	"6 repack on processor of shards, packed_parts to packed_sum after 5, 3\n"                                     \
	"7 send on network of shards, packed_sum to packed_sum after 6\n"                                              \
	"8 receive on nothing of workers, packed_sum to packed_sum\n"                                                  \
	"9 gate on nothing of workers after 8, 6\n"                                                                    \
	"10 copy on way in of workers, packed_sum to packed_sum after 9\n"                                             \
	"11 unpack on device of workers, packed_sum to gradient after 10\n"                                            \
	"12 apply on device of workers after 11\n"

/* Blocks are copied, and not gradients. */
Test(packed, a_device_with_memory_of_its_own_copies_blocks)
{
	static const char expected[] = "0 forward on device of workers after 13-1, 15-1\n" COPIED_BLOCKS
				       "13 barrier on device of workers after 1, 12\n"
				       "14 next on nothing of workers after 13\n"
				       "15 gate on nothing of workers after 0\n";

	expect_ops("sync: ps, compress: {by: one-bit}", true, expected);
	expect_ops("sync: ps, compress: {by: top-k}", true, expected);
	expect_ops("sync: ps, compress: {by: top-k, tensors: matrices}", true, expected);
	expect_ops("sync: ps, compress: {by: one-bit}, servers: 2", true, expected);
}

Test(packed, with_a_barrier_per_layer_the_next_forward_waits_for_the_update)
{
	expect_ops("sync: ps, compress: {by: one-bit}, barrier: layer", true,
		   "0 forward on device of workers after 13-1, 15-1, 12-1\n" COPIED_BLOCKS
		   "13 barrier on device of workers after 1\n"
		   "14 next on nothing of workers after 13, 12\n"
		   "15 gate on nothing of workers after 0\n");
}

/* Stages are gates: the end of backward, of copies out, of pushes and of pulls. */
Test(packed, in_sequence_every_stage_waits_for_the_one_before)
{
	expect_ops("sync: ps, compress: {by: one-bit}, schedule: sequential", true,
		   "0 forward on device of workers after 17-1, 19-1\n"
		   "1 backward on device of workers after 0\n"
		   "2 gate on nothing of workers after 1\n"
		   "3 gate on nothing of workers after 2, 7\n"
		   "4 gate on nothing of all after 10\n"
		   "5 gate on nothing of workers after 13\n"
		   "6 pack on device of workers, gradient to packed after 1, 2\n"
		   "7 copy on way out of workers, packed to packed after 6, 2\n"
		   "8 send on network of workers, packed to packed_parts after 7, 2, 3\n"
		   "9 receive on nothing of shards, packed to packed_parts\n"
		   "10 repack on processor of shards, packed_parts to packed_sum after 9, 7, 2, 3\n"
		   "11 send on network of shards, packed_sum to packed_sum after 10, 4\n"
		   "12 receive on nothing of workers, packed_sum to packed_sum\n"
		   "13 gate on nothing of workers after 12, 10\n"
		   "14 copy on way in of workers, packed_sum to packed_sum after 13, 5\n"
		   "15 unpack on device of workers, packed_sum to gradient after 14, 5\n"
		   "16 apply on device of workers after 15\n"
		   "17 barrier on device of workers after 1, 16\n"
		   "18 next on nothing of workers after 17\n"
		   "19 gate on nothing of workers after 0\n");
}

/* The step leaves the values to pack in the gradient's buffer. */
Test(packed, after_a_local_step_all_of_it_is_an_exchange)
{
	expect_ops("sync: ps, compress: {by: one-bit}, local_sgd: {steps: 4}", false,
		   "0 forward on device of workers after 12-1, 14-1\n"
		   "1 backward on device of workers after 0\n"
		   "2 step on device of workers after 1\n"
		   "3 pack on device of workers, gradient to packed after 2, of exchanges\n"
		   "4 send on network of workers, packed to packed_parts after 3, of exchanges\n"
		   "5 receive on nothing of shards, packed to packed_parts, of exchanges\n"
		   "6 repack on processor of shards, packed_parts to packed_sum after 5, 3, of exchanges\n"
		   "7 send on network of shards, packed_sum to packed_sum after 6, of exchanges\n"
		   "8 receive on nothing of workers, packed_sum to packed_sum, of exchanges\n"
		   "9 gate on nothing of workers after 8, 6, of exchanges\n"
		   "10 unpack on device of workers, packed_sum to gradient after 9, of exchanges\n"
		   "11 apply on device of workers after 10, of exchanges\n"
		   "12 barrier on device of workers after 1, 2, 11\n"
		   "13 next on nothing of workers after 12\n"
		   "14 gate on nothing of workers after 0\n");
}

static const struct psd_op *find_op(const struct one_item *item, enum psd_op_kind kind)
{
	for (uint32_t i = 0; i < item->made.program.n_ops; i++)
		if (item->made.program.ops[i].kind == kind)
			return &item->made.program.ops[i];
	cr_assert(false, "no '%s'", psd_ops[kind].name);
	return NULL;
}

/* A server has no device: it receives, packs the sum and sends. */
Test(packed, a_separate_server_has_the_sums_alone)
{
	struct one_item item;
	unsigned n_ops = 0;

	open_matrix(&item, "sync: ps, compress: {by: one-bit}, servers: 2", true);
	for (uint32_t i = 0; i < item.made.program.n_ops; i++)
		n_ops += psd_op_runs_on(&item.made.program.ops[i], &item.made.plan.layout, WORKERS);
	cr_expect_eq(n_ops, 3);
	cr_expect(psd_op_runs_on(find_op(&item, PSD_OP_RECEIVE), &item.made.plan.layout, WORKERS));
	cr_expect(psd_op_runs_on(find_op(&item, PSD_OP_REPACK), &item.made.plan.layout, WORKERS));
	cr_expect_not(psd_op_runs_on(find_op(&item, PSD_OP_REPACK), &item.made.plan.layout, 0));
	close_item(&item);
}

/* Layers, whose turn is -1, are always ready while backward goes on. Replies have the item's turn. */
Test(packed, operations_that_others_wait_for_go_before_layers)
{
	struct one_item item;

	open_matrix(&item, "sync: ps, compress: {by: one-bit}", true);
	cr_expect_lt(find_op(&item, PSD_OP_PACK)->turn, find_op(&item, PSD_OP_BACKWARD)->turn);
	cr_expect_gt(find_op(&item, PSD_OP_UNPACK)->turn, find_op(&item, PSD_OP_BACKWARD)->turn);
	close_item(&item);
}

/* ---- bytes and seconds ---- */

static void expect_work(const struct one_item *item, enum psd_op_kind kind, uint64_t bytes, double bytes_per_sec)
{
	const struct psd_op *op = find_op(item, kind);

	cr_expect_eq(op->bytes, bytes, "'%s' has %lu bytes, expected %lu", psd_ops[kind].name, op->bytes, bytes);
	cr_expect_float_eq(op->work_sec, (double)bytes / bytes_per_sec, 1e-12, "'%s' takes %g s", psd_ops[kind].name,
			   op->work_sec);
}

/* A gradient, what was lost, and blocks, each once, as an update counts its gradient. A shard adds so many workers'
 * values to what was lost. */
Test(packed, operations_take_what_they_read_and_write)
{
	const uint64_t blocks_bytes = n_blocks * block_bytes, most_blocks = 6;
	struct one_item item;

	open_matrix(&item, "sync: ps, compress: {by: one-bit}", true);
	expect_work(&item, PSD_OP_PACK, 2 * matrix_bytes + blocks_bytes, 4e9);
	expect_work(&item, PSD_OP_COPY_OUT, blocks_bytes, 1e9);
	expect_work(&item, PSD_OP_COPY_IN, blocks_bytes, 1e9);
	expect_work(&item, PSD_OP_REPACK, most_blocks * (WORKERS + 1) * 4 * 1024, 2e9);
	expect_work(&item, PSD_OP_UNPACK, matrix_bytes + blocks_bytes, 4e9);
	cr_expect_eq(find_op(&item, PSD_OP_SEND)->bytes, blocks_bytes);
	cr_expect_eq(find_op(&item, PSD_OP_APPLY)->bytes, matrix_bytes);
	cr_expect_float_eq(find_op(&item, PSD_OP_APPLY)->work_sec, (double)matrix_bytes / 4e9 + 1e-3, 1e-12);
	close_item(&item);
}

static void expect_launch(const char *system, enum psd_op_kind kind)
{
	struct one_item priced, unpriced;
	char text[128];

	snprintf(text, sizeof(text), "%s, host: {convert: 4GBps}", system);
	open_matrix(&unpriced, text, true);
	snprintf(text, sizeof(text), "%s, host: {convert: 4GBps}, stack: ideal", system);
	open_matrix(&priced, text, true);
	cr_expect_float_eq(find_op(&priced, kind)->work_sec - find_op(&unpriced, kind)->work_sec, 10e-6, 1e-12,
			   "%s: %s", system, psd_ops[kind].name);
	close_item(&priced);
	close_item(&unpriced);
}

Test(packed, each_conversion_on_a_device_is_launched)
{
	expect_launch("sync: ps, compress: {by: one-bit}", PSD_OP_PACK);
	expect_launch("sync: ps, compress: {by: top-k}", PSD_OP_UNPACK);
	expect_launch("sync: ring, wire: fp16", PSD_OP_CONVERT);
}

/* With top-k a shard touches only the values that travel, 11 of a block with their positions. */
Test(packed, sums_of_few_values_take_those)
{
	const uint64_t top_bytes = 11 * (4 + 2) + 2, most_blocks = 6;
	struct one_item item;

	open_matrix(&item, "sync: ps, compress: {by: top-k}", true);
	expect_work(&item, PSD_OP_PACK, 2 * matrix_bytes + n_blocks * top_bytes, 4e9);
	expect_work(&item, PSD_OP_REPACK, most_blocks * (WORKERS * top_bytes + 4 * 1024), 2e9);
	close_item(&item);
}

/* 16384 values in a block of 32768: some shard has all of it, and the others nothing. */
Test(packed, a_shard_of_the_only_block_sums_all_of_it)
{
	struct one_item item;

	open_matrix(&item, "sync: ps, compress: {by: one-bit, block: 32768}", true);
	expect_work(&item, PSD_OP_REPACK, (WORKERS + 1) * matrix_bytes, 2e9);
	close_item(&item);
}

/* Gradients and parameters have 2 bytes, what is lost 4. */
Test(packed, mixed_precision_keeps_what_is_lost_in_4_bytes)
{
	const uint64_t blocks_bytes = n_blocks * block_bytes;
	struct one_item item;

	open_item(&item, "tests/data/one_layer.yaml, precision: mixed", WORKERS, "sync: ps, compress: {by: one-bit}",
		  true);
	expect_work(&item, PSD_OP_PACK, matrix_bytes / 2 + matrix_bytes + blocks_bytes, 4e9);
	expect_work(&item, PSD_OP_REPACK, 6 * (WORKERS + 1) * 4 * 1024, 2e9);
	expect_work(&item, PSD_OP_UNPACK, matrix_bytes / 2 + blocks_bytes, 4e9);
	cr_expect_eq(find_op(&item, PSD_OP_APPLY)->bytes, matrix_bytes / 2);
	close_item(&item);
}

/* Momentum before compression has a velocity of its own, beside the history of an update that has none. */
Test(packed, a_velocity_is_there_where_momentum_comes_before)
{
	const uint64_t blocks_bytes = n_blocks * block_bytes;
	struct one_item item;

	open_matrix(&item, "sync: ps, compress: {by: one-bit, momentum: before}", true);
	cr_expect(psd_plan_keeps(&item.made.plan, &item.made.plan.items[0], PSD_BUFFER_VELOCITY));
	expect_work(&item, PSD_OP_PACK, 3 * matrix_bytes + blocks_bytes, 4e9);
	close_item(&item);
	open_matrix(&item, "sync: ps, compress: {by: one-bit}", true);
	cr_expect_not(psd_plan_keeps(&item.made.plan, &item.made.plan.items[0], PSD_BUFFER_VELOCITY));
	close_item(&item);
}

/* ---- messages ---- */

/* Blocks that go from every worker to a shard, and back; a host has both and sends itself nothing. */
static void expect_parts(const char *system, const uint64_t parts[WORKERS], uint64_t bytes)
{
	struct one_item item;

	open_matrix(&item, system, true);
	const struct psd_layout *layout = &item.made.plan.layout;
	const struct psd_payload *push = &find_op(&item, PSD_OP_SEND)->payload;
	for (unsigned shard = 0; shard < WORKERS; shard++) {
		struct psd_payload pull = *push;
		const struct psd_traffic traffic = psd_program_traffic(&item.made.program, shard);
		uint64_t others = 0;

		pull.collective = &psd_pull;
		for (unsigned worker = 0; worker < WORKERS; worker++) {
			if (worker == shard)
				continue;
			others += parts[worker];
			cr_expect_eq(psd_payload_range(push, layout, worker, shard).elements, parts[shard]);
			cr_expect_eq(psd_payload_range(&pull, layout, shard, worker).elements, parts[shard]);
		}
		cr_expect_eq(push->value_bytes, bytes);
		/* as a worker the other shards' blocks, as a shard its own to the other workers */
		cr_expect_eq(traffic.sent_bytes, (others + (WORKERS - 1) * parts[shard]) * bytes, "%s, node %u", system,
			     shard);
		cr_expect_eq(traffic.received_bytes, traffic.sent_bytes, "%s, node %u", system, shard);
	}
	close_item(&item);
}

Test(packed, messages_are_of_whole_blocks)
{
	expect_parts("sync: ps, compress: {by: one-bit}", (const uint64_t[]){5, 5, 6}, block_bytes);
	expect_parts("sync: ps, compress: {by: top-k}", (const uint64_t[]){5, 5, 6}, 11 * 6 + 2);
	expect_parts("sync: ps, compress: {by: one-bit, block: 8192}", (const uint64_t[]){0, 1, 1}, 8 + 8192 / 8);
	expect_parts("sync: ps, compress: {by: one-bit, block: 32768}", (const uint64_t[]){0, 0, 1}, 8 + 32768 / 8);
}

/* ---- buffers ---- */

/* Residuals stay for the whole run at both ends. Workers update, and have no parameters of a shard. */
Test(packed, hosts_keep_blocks_and_what_is_lost)
{
	static const enum psd_buffer kept[] = {PSD_BUFFER_HISTORY,	PSD_BUFFER_RESIDUAL,   PSD_BUFFER_PACKED,
					       PSD_BUFFER_PACKED_PARTS, PSD_BUFFER_PACKED_SUM, PSD_BUFFER_PART_RESIDUAL,
					       PSD_BUFFER_START};
	const unsigned n_kept = sizeof(kept) / sizeof(kept[0]);

	for (int is_local = 0; is_local < 2; is_local++) {
		struct one_item item;

		open_matrix(&item,
			    is_local ? "sync: ps, compress: {by: top-k}, local_sgd: {steps: 4}"
				     : "sync: ps, compress: {by: top-k}",
			    true);
		expect_kept(&item, kept, n_kept - !is_local);
		close_item(&item);
	}
	cr_expect_eq(psd_buffers[PSD_BUFFER_RESIDUAL].life, PSD_LIFETIME_RUN);
	cr_expect_eq(psd_buffers[PSD_BUFFER_PART_RESIDUAL].life, PSD_LIFETIME_RUN);
}
