/* Gradients as products of narrow matrices: every operation of one item, by hand. */
#define _DEFAULT_SOURCE
#include <criterion/criterion.h>
#include <stdio.h>

#include "engine/collectives/collective.h"
#include "tests/engine/methods/item_helper.h"
#include "tests/test_with.h"

enum { TEXT_MAX = 1024 };

/* One matrix of 32 outputs by 96 inputs, as products of rank 2. */
static const uint64_t outputs = 32, inputs = 96, rank = 2;
static const uint64_t elements = 32 * 96, left = 32 * 2, right = 96 * 2;

static void open_matrix(struct one_item *item, const char *system, bool has_own_memory)
{
	open_item(item, "tests/data/wide_layer.yaml", 3, system, has_own_memory);
}

/* ---- operations and edges ---- */

static void expect_ops(const char *system, bool has_own_memory, const char *expected)
{
	expect_operations("tests/data/wide_layer.yaml", 3, system, has_own_memory, expected);
}

/* The left matrix is made of a final gradient, the right one of the sum of the left ones, the product of both sums. */
Test(low_rank, a_device_in_its_hosts_memory_copies_nothing)
{
	expect_ops("sync: ring, low_rank: {rank: 2}", false,
		   "0 forward on device of workers after 8-1, 10-1\n"
		   "1 backward on device of workers after 0\n"
		   "2 project on device of workers, gradient to left after 1\n"
		   "3 collective on network of workers, left to left after 2\n"
		   "4 fit on device of workers, left to right after 3\n"
		   "5 collective on network of workers, right to right after 4\n"
		   "6 expand on device of workers, right to gradient after 5\n"
		   "7 apply on device of workers after 6\n"
		   "8 barrier on device of workers after 1, 7\n"
		   "9 next on nothing of workers after 8\n"
		   "10 gate on nothing of workers after 0\n");
}

#define COPIED_MATRICES                                                                                                \
	"1 backward on device of workers after 0\n"                                                                    \
	"2 project on device of workers, gradient to left after 1\n"                                                   \
	"3 copy on way out of workers, left to left after 2\n"                                                         \
	"4 collective on network of workers, left to left after 3\n"                                                   \
	"5 copy on way in of workers, left to left after 4\n"                                                          \
	"6 fit on device of workers, left to right after 5\n"                                                          \
	"7 copy on way out of workers, right to right after 6\n"                                                       \
	"8 collective on network of workers, right to right after 7\n"                                                 \
	"9 copy on way in of workers, right to right after 8\n"                                                        \
	"10 expand on device of workers, right to gradient after 9\n"                                                  \
	"11 apply on device of workers after 10\n"

/* Narrow matrices are copied around both sums, and never the gradient; the same whatever the sums go by. Nothing is cut
 * for a pipeline. */
Test(low_rank, a_device_with_memory_of_its_own_copies_narrow_matrices)
{
	static const char expected[] = "0 forward on device of workers after 12-1, 14-1\n" COPIED_MATRICES
				       "12 barrier on device of workers after 1, 11\n"
				       "13 next on nothing of workers after 12\n"
				       "14 gate on nothing of workers after 0\n";
	char system[TEXT_MAX];

	for (unsigned p = 0; p < PSD_N_ALL_REDUCES; p++) {
		snprintf(system, sizeof(system), "sync: %s, low_rank: {rank: 2}", psd_all_reduces[p]->name);
		expect_ops(system, true, expected);
	}
	expect_ops("sync: ring, low_rank: {rank: 2}, priority: forward", true, expected);
	expect_ops("sync: ring, low_rank: {rank: 2}, pipeline: 4096B", true, expected);
}

/* 12288 bytes of a gradient are three parts of at most 4096. */
Test(low_rank, a_pipeline_cuts_no_item)
{
	struct one_item item;

	open_matrix(&item, "sync: ring, low_rank: {rank: 2}, pipeline: 4096B", true);
	cr_expect_eq(item.made.plan.items[0].n_slices, 1);
	close_item(&item);
	open_matrix(&item, "sync: ring, pipeline: 4096B", true);
	cr_expect_eq(item.made.plan.items[0].n_slices, 3);
	close_item(&item);
}

Test(low_rank, with_a_barrier_per_layer_the_next_forward_waits_for_the_update)
{
	expect_ops("sync: ring, low_rank: {rank: 2}, barrier: layer", true,
		   "0 forward on device of workers after 12-1, 14-1, 11-1\n" COPIED_MATRICES
		   "12 barrier on device of workers after 1\n"
		   "13 next on nothing of workers after 12, 11\n"
		   "14 gate on nothing of workers after 0\n");
}

/* Both sums wait for what all items' left matrices wait for: the end of backward, and of copies out. That the right one
 * leaves after that is no part of the gate, which would wait for itself. */
Test(low_rank, in_sequence_sums_wait_for_all_left_matrices)
{
	expect_ops("sync: ring, low_rank: {rank: 2}, schedule: sequential", true,
		   "0 forward on device of workers after 16-1, 18-1\n"
		   "1 backward on device of workers after 0\n"
		   "2 gate on nothing of workers after 1\n"
		   "3 gate on nothing of workers after 2, 7\n"
		   "4 gate on nothing of all\n"
		   "5 gate on nothing of workers\n"
		   "6 project on device of workers, gradient to left after 1, 2\n"
		   "7 copy on way out of workers, left to left after 6\n"
		   "8 collective on network of workers, left to left after 7, 2, 3\n"
		   "9 copy on way in of workers, left to left after 8\n"
		   "10 fit on device of workers, left to right after 9\n"
		   "11 copy on way out of workers, right to right after 10\n"
		   "12 collective on network of workers, right to right after 11, 2, 3\n"
		   "13 copy on way in of workers, right to right after 12\n"
		   "14 expand on device of workers, right to gradient after 13\n"
		   "15 apply on device of workers after 14\n"
		   "16 barrier on device of workers after 1, 15\n"
		   "17 next on nothing of workers after 16\n"
		   "18 gate on nothing of workers after 0\n");
}

/* The local step replaces the gradient by the distance that the worker has moved. */
Test(low_rank, after_a_local_step_all_of_it_is_an_exchange)
{
	expect_ops("sync: ring, low_rank: {rank: 2}, local_sgd: {steps: 4}", false,
		   "0 forward on device of workers after 9-1, 11-1\n"
		   "1 backward on device of workers after 0\n"
		   "2 step on device of workers after 1\n"
		   "3 project on device of workers, gradient to left after 2, of exchanges\n"
		   "4 collective on network of workers, left to left after 3, of exchanges\n"
		   "5 fit on device of workers, left to right after 4, of exchanges\n"
		   "6 collective on network of workers, right to right after 5, of exchanges\n"
		   "7 expand on device of workers, right to gradient after 6, of exchanges\n"
		   "8 apply on device of workers after 7, of exchanges\n"
		   "9 barrier on device of workers after 1, 2, 8\n"
		   "10 next on nothing of workers after 9\n"
		   "11 gate on nothing of workers after 0\n");
}

/* 128 x 128 values are as many as two matrices of (128 + 128) * 64 / 2 each: these would save nothing. */
Test(low_rank, a_tensor_without_narrow_matrices_is_summed_as_it_is)
{
	expect_operations("tests/data/one_layer.yaml", 3, "sync: ring, low_rank: {rank: 64}", true,
			  "0 forward on device of workers after 6-1, 8-1\n"
			  "1 backward on device of workers after 0\n"
			  "2 copy on way out of workers, gradient to gradient after 1\n"
			  "3 collective on network of workers, gradient to gradient after 2\n"
			  "4 copy on way in of workers, gradient to gradient after 3\n"
			  "5 apply on device of workers after 4\n"
			  "6 barrier on device of workers after 1, 5\n"
			  "7 next on nothing of workers after 6\n"
			  "8 gate on nothing of workers after 0\n");
}

Test(low_rank, a_lone_worker_applies_its_own_gradient)
{
	expect_operations("tests/data/wide_layer.yaml", 1, "sync: ring, low_rank: {rank: 2}", true,
			  "0 forward on device of workers after 3-1, 5-1\n"
			  "1 backward on device of workers after 0\n"
			  "2 apply on device of workers after 1\n"
			  "3 barrier on device of workers after 1, 2\n"
			  "4 next on nothing of workers after 3\n"
			  "5 gate on nothing of workers after 0\n");
}

static const struct psd_op *find_op(const struct one_item *item, enum psd_op_kind kind, enum psd_buffer source)
{
	for (uint32_t i = 0; i < item->made.program.n_ops; i++)
		if (item->made.program.ops[i].kind == kind && item->made.program.ops[i].source.buffer == source)
			return &item->made.program.ops[i];
	cr_assert(false, "no '%s' of '%s'", psd_ops[kind].name, psd_buffers[source].name);
	return NULL;
}

/* Layers, whose turn is -1, are always ready while backward goes on. Work that follows sums has the item's turn, 0. */
Test(low_rank, operations_that_others_wait_for_go_before_layers)
{
	struct one_item item;

	open_matrix(&item, "sync: ring, low_rank: {rank: 2}", true);
	cr_expect_lt(find_op(&item, PSD_OP_PROJECT, PSD_BUFFER_GRADIENT)->turn, -1);
	cr_expect_lt(find_op(&item, PSD_OP_FIT, PSD_BUFFER_LEFT)->turn, -1);
	cr_expect_eq(find_op(&item, PSD_OP_EXPAND, PSD_BUFFER_RIGHT)->turn, 0);
	cr_expect_eq(find_op(&item, PSD_OP_COLLECTIVE, PSD_BUFFER_LEFT)->turn, 0);
	cr_expect_eq(find_op(&item, PSD_OP_COLLECTIVE, PSD_BUFFER_RIGHT)->turn, 0);
	close_item(&item);
}

static bool orders_collectives(const char *model, const char *system)
{
	struct one_item item;

	open_item(&item, model, 3, system, true);
	const bool orders = psd_program_orders_collectives(&item.made.program);
	close_item(&item);
	return orders;
}

/* A worker may have the right matrix of one item before the gradient of the next, and another after it. */
Test(low_rank, workers_do_not_begin_sums_by_themselves)
{
	static const char wide[] = "tests/data/wide_layer.yaml", square[] = "tests/data/one_layer.yaml";

	cr_expect_not(orders_collectives(wide, "sync: ring, low_rank: {rank: 2}"));
	cr_expect_not(orders_collectives(wide, "sync: torus, schedule: sequential, low_rank: {rank: 2}"));
	cr_expect(orders_collectives(wide, "sync: ring"));
	cr_expect(orders_collectives(square, "sync: ring, low_rank: {rank: 64}")); /* as it is */
}

/* ---- bytes and seconds ---- */

/* Bytes at the rate of updates; products, of two values with an addition each, at the rate of a matrix product. */
static void expect_work(const struct one_item *item, const struct psd_op *op, uint64_t bytes, uint64_t products)
{
	const double expected_sec =
		(double)bytes / 4e9 + 2.0 * (double)products / item->made.plan.costs->gemm_flops_per_sec;

	cr_expect_eq(op->bytes, bytes, "'%s' has %lu bytes", psd_ops[op->kind].name, op->bytes);
	cr_expect_float_eq(op->work_sec, expected_sec, 1e-12 * expected_sec, "'%s' takes %g s, expected %g",
			   psd_ops[op->kind].name, op->work_sec, expected_sec);
}

/* M of outputs x inputs: left = M right; right = M' left, and left right' is taken from M; at last it is made of the
 * sums. Each has M inputs * outputs * rank times. M joins a residual first, and what is left of M stays there. */
static void expect_all_work(const char *model, uint64_t gradient_bytes, bool has_own_memory)
{
	const uint64_t product = outputs * inputs * rank, residual_bytes = 4 * elements;
	struct one_item item;

	open_item(&item, model, 3, "sync: ring, low_rank: {rank: 2}", has_own_memory);
	const struct psd_op *apply = find_op(&item, PSD_OP_APPLY, PSD_BUFFER_PARAMETER);
	expect_work(&item, find_op(&item, PSD_OP_PROJECT, PSD_BUFFER_GRADIENT), gradient_bytes + residual_bytes,
		    product);
	expect_work(&item, find_op(&item, PSD_OP_FIT, PSD_BUFFER_LEFT), residual_bytes, 2 * product);
	expect_work(&item, find_op(&item, PSD_OP_EXPAND, PSD_BUFFER_RIGHT), gradient_bytes, product);
	cr_expect_eq(apply->bytes, gradient_bytes);
	cr_expect_float_eq(apply->work_sec, (double)gradient_bytes / 4e9 + 1e-3, 1e-12);
	close_item(&item);
}

Test(low_rank, operations_take_their_values_and_products)
{
	expect_all_work("tests/data/wide_layer.yaml", 4 * elements, true);
	expect_all_work("tests/data/wide_layer.yaml", 4 * elements, false);
}

/* A launch takes 10 us. Two kernels make the left matrix; three for each of 2 columns and three more the right one. */
Test(low_rank, each_kernel_is_launched)
{
	static const char model[] = "tests/data/wide_layer.yaml";
	static const struct {
		enum psd_op_kind kind;
		enum psd_buffer source;
		unsigned launches;
	} expected[] = {{PSD_OP_PROJECT, PSD_BUFFER_GRADIENT, 2},
			{PSD_OP_FIT, PSD_BUFFER_LEFT, 9},
			{PSD_OP_EXPAND, PSD_BUFFER_RIGHT, 1}};
	struct one_item priced, unpriced;

	open_item(&priced, model, 3, "sync: ring, low_rank: {rank: 2}, stack: ideal, host: {convert: 4GBps}", true);
	open_item(&unpriced, model, 3, "sync: ring, low_rank: {rank: 2}, host: {convert: 4GBps}", true);
	for (unsigned i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
		cr_expect_float_eq(find_op(&priced, expected[i].kind, expected[i].source)->work_sec -
					   find_op(&unpriced, expected[i].kind, expected[i].source)->work_sec,
				   10e-6 * expected[i].launches, 1e-12);
	close_item(&priced);
	close_item(&unpriced);
}

/* Gradients have 2 bytes, what is lost 4. */
TEST_ROW(low_rank, mixed_precision_keeps_what_is_lost_in_4_bytes,
	 expect_all_work("tests/data/wide_layer.yaml, precision: mixed", 2 * elements, true))

static void expect_sum(const struct one_item *item, enum psd_buffer buffer, uint64_t values)
{
	const struct psd_op *sum = find_op(item, PSD_OP_COLLECTIVE, buffer);

	cr_expect_eq(sum->payload.elements, values);
	cr_expect_eq(sum->payload.value_bytes, 4);
	cr_expect_eq(sum->bytes, 4 * values);
	for (int kind = PSD_OP_COPY_OUT; kind <= PSD_OP_COPY_IN; kind++) {
		const struct psd_op *copy = find_op(item, (enum psd_op_kind)kind, buffer);

		cr_expect_eq(copy->bytes, 4 * values);
		cr_expect_float_eq(copy->work_sec, 4.0 * (double)values / 1e9, 1e-15);
	}
}

/* Floats also where gradients have 2 bytes. */
Test(low_rank, sums_and_copies_are_of_narrow_matrices)
{
	static const char *const models[] = {"tests/data/wide_layer.yaml",
					     "tests/data/wide_layer.yaml, precision: mixed"};

	for (unsigned m = 0; m < 2; m++) {
		struct one_item item;

		open_item(&item, models[m], 3, "sync: ring, low_rank: {rank: 2}", true);
		expect_sum(&item, PSD_BUFFER_LEFT, left);
		expect_sum(&item, PSD_BUFFER_RIGHT, right);
		close_item(&item);
	}
}

/* ---- messages ---- */

static uint64_t all_sent_bytes(const struct one_item *item)
{
	uint64_t bytes = 0;

	for (unsigned node = 0; node < item->made.plan.layout.nodes; node++)
		bytes += psd_program_traffic(&item->made.program, node).sent_bytes;
	return bytes;
}

/* P divides both matrices: each of a ring sends 1/P of them in 2(P-1) steps. */
Test(low_rank, a_ring_moves_both_narrow_matrices)
{
	for (uint64_t P = 2; P <= 32; P *= 2) {
		struct one_item item;

		open_item(&item, "tests/data/wide_layer.yaml", (unsigned)P, "sync: ring, low_rank: {rank: 2}", true);
		for (unsigned node = 0; node < P; node++) {
			const struct psd_traffic traffic = psd_program_traffic(&item.made.program, node);

			cr_expect_eq(traffic.sent_bytes, 2 * (P - 1) * (left + right) / P * 4, "node %u of %lu", node,
				     P);
			cr_expect_eq(traffic.received_bytes, traffic.sent_bytes, "node %u of %lu", node, P);
		}
		close_item(&item);
	}
}

/* To sum a value among P workers it passes P - 1 links, and as many to come back. Recursive doubling exchanges all
 * values in log2 P steps. */
Test(low_rank, every_all_reduce_moves_both_narrow_matrices)
{
	const uint64_t P = 4, steps = 2;

	for (unsigned p = 0; p < PSD_N_ALL_REDUCES; p++) {
		const bool sends_all = !strcmp(psd_all_reduces[p]->name, "recursive-doubling");
		char system[TEXT_MAX];
		struct one_item item;

		snprintf(system, sizeof(system), "sync: %s, low_rank: {rank: 2}", psd_all_reduces[p]->name);
		open_item(&item, "tests/data/wide_layer.yaml", (unsigned)P, system, true);
		cr_expect_eq(item.made.plan.items[0].method, &psd_method_low_rank[p], "%s", system);
		cr_expect_eq(find_op(&item, PSD_OP_COLLECTIVE, PSD_BUFFER_LEFT)->payload.collective,
			     psd_all_reduces[p]);
		cr_expect_eq(find_op(&item, PSD_OP_COLLECTIVE, PSD_BUFFER_RIGHT)->payload.collective,
			     psd_all_reduces[p]);
		cr_expect_eq(all_sent_bytes(&item), (sends_all ? P * steps : 2 * (P - 1)) * (left + right) * 4, "%s",
			     system);
		close_item(&item);
	}
}

/* ---- buffers ---- */

/* The residual and the right matrix, from which the next iteration starts, stay for the whole run. */
Test(low_rank, hosts_keep_narrow_matrices_and_what_is_lost)
{
	static const enum psd_buffer kept[] = {PSD_BUFFER_HISTORY, PSD_BUFFER_RESIDUAL, PSD_BUFFER_LEFT,
					       PSD_BUFFER_RIGHT, PSD_BUFFER_START};

	for (unsigned is_local = 0; is_local < 2; is_local++) {
		struct one_item item;

		open_matrix(&item,
			    is_local ? "sync: ring, low_rank: {rank: 2}, local_sgd: {steps: 4}"
				     : "sync: ring, low_rank: {rank: 2}",
			    true);
		expect_kept(&item, kept, 4 + is_local);
		close_item(&item);
	}
	cr_expect_eq(psd_buffers[PSD_BUFFER_RIGHT].life, PSD_LIFETIME_RUN);
	cr_expect_eq(psd_buffers[PSD_BUFFER_RESIDUAL].life, PSD_LIFETIME_RUN);
}
