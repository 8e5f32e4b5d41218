/* Sharded data-parallel training: every operation of one item and of three, by hand; bytes and memory by formulas. */
#define _DEFAULT_SOURCE
#include <criterion/criterion.h>

#include "engine/program/footprint.h"
#include "tests/engine/methods/item_helper.h"

enum { WORKERS = 3 };

/* ---- operations and edges ---- */

static void expect_ops(const char *model, const char *system, bool has_own_memory, const char *expected)
{
	expect_operations(model, WORKERS, system, has_own_memory, expected);
}

static const char one_layer[] = "tests/data/one_layer.yaml", three_layers[] = "tests/data/maskless.yaml";

Test(zero, a_part_is_updated_between_two_halves_of_an_all_reduce)
{
	expect_ops(one_layer, "sync: zero-1", false,
		   "0 forward on device of workers after 5-1, 7-1\n"
		   "1 backward on device of workers after 0\n"
		   "2 collective on network of workers, gradient to gradient after 1\n"
		   "3 apply on device of workers after 2\n"
		   "4 collective on network of workers after 3\n"
		   "5 barrier on device of workers after 1, 4\n"
		   "6 next on nothing of workers after 5\n"
		   "7 gate on nothing of workers after 0\n");
}

Test(zero, values_are_copied_from_and_to_a_devices_own_memory)
{
	expect_ops(one_layer, "sync: zero-2", true,
		   "0 forward on device of workers after 10-1, 12-1\n"
		   "1 backward on device of workers after 0, 5-1\n"
		   "2 copy on way out of workers, gradient to gradient after 1\n"
		   "3 collective on network of workers, gradient to gradient after 2\n"
		   "4 copy on way in of workers, gradient to gradient after 3\n"
		   "5 convert on device of workers, gradient to sum after 4\n"
		   "6 apply on device of workers after 5\n"
		   "7 copy on way out of workers after 6\n"
		   "8 collective on network of workers after 7\n"
		   "9 copy on way in of workers after 8\n"
		   "10 barrier on device of workers after 1, 9\n"
		   "11 next on nothing of workers after 10\n"
		   "12 gate on nothing of workers after 0\n");
}

/* The third gradient has the memory of the first, and the first of the next iteration that of the third. */
Test(zero, gradients_of_two_items_are_there_at_a_time)
{
	expect_ops(three_layers, "sync: zero-2", false,
		   "0 forward on device of workers after 18-1, 20-1\n"
		   "1 forward on device of workers after 0\n"
		   "2 forward on device of workers after 1\n"
		   "3 backward on device of workers after 2, 15-1\n"
		   "4 backward on device of workers after 3, 11-1\n"
		   "5 backward on device of workers after 4, 7\n"
		   "6 collective on network of workers, gradient to gradient after 3\n"
		   "7 convert on processor of workers, gradient to sum after 6\n"
		   "8 apply on device of workers after 7\n"
		   "9 collective on network of workers after 8\n"
		   "10 collective on network of workers, gradient to gradient after 4\n"
		   "11 convert on processor of workers, gradient to sum after 10\n"
		   "12 apply on device of workers after 11\n"
		   "13 collective on network of workers after 12\n"
		   "14 collective on network of workers, gradient to gradient after 5\n"
		   "15 convert on processor of workers, gradient to sum after 14\n"
		   "16 apply on device of workers after 15\n"
		   "17 collective on network of workers after 16\n"
		   "18 barrier on device of workers after 5, 9, 13, 17\n"
		   "19 next on nothing of workers after 18\n"
		   "20 gate on nothing of workers after 2\n");
}

/* Each pass waits for its parameters, which are gathered when the pass before has ended. Those of the last forward pass
 * are still there in the first backward pass. */
Test(zero, parameters_of_one_item_are_there_at_a_time)
{
	expect_ops(three_layers, "sync: zero-3, prefetch: 0", false,
		   "0 forward on device of workers after 22, 25-1, 27-1\n"
		   "1 forward on device of workers after 0, 15\n"
		   "2 forward on device of workers after 1, 10\n"
		   "3 backward on device of workers after 2, 19-1\n"
		   "4 backward on device of workers after 3, 12-1, 17\n"
		   "5 backward on device of workers after 4, 7, 24\n"
		   "6 collective on network of workers, gradient to gradient after 3\n"
		   "7 convert on processor of workers, gradient to sum after 6\n"
		   "8 apply on device of workers after 7\n"
		   "9 convert on processor of workers, own to parameter after 1, 8-1\n"
		   "10 collective on network of workers after 9\n"
		   "11 collective on network of workers, gradient to gradient after 4\n"
		   "12 convert on processor of workers, gradient to sum after 11\n"
		   "13 apply on device of workers after 12\n"
		   "14 convert on processor of workers, own to parameter after 0, 13-1\n"
		   "15 collective on network of workers after 14\n"
		   "16 convert on processor of workers, own to parameter after 3, 13-1\n"
		   "17 collective on network of workers after 16\n"
		   "18 collective on network of workers, gradient to gradient after 5\n"
		   "19 convert on processor of workers, gradient to sum after 18\n"
		   "20 apply on device of workers after 19\n"
		   "21 convert on processor of workers, own to parameter after 5-1, 20-1\n"
		   "22 collective on network of workers after 21\n"
		   "23 convert on processor of workers, own to parameter after 4, 20-1\n"
		   "24 collective on network of workers after 23\n"
		   "25 barrier on device of workers after 5, 8, 13, 20\n"
		   "26 next on nothing of workers after 25\n"
		   "27 gate on nothing of workers after 2\n");
}

/* A device with memory of its own writes the part there. */
Test(zero, a_part_is_written_among_whole_parameters_before_it_is_copied_out)
{
	expect_ops(one_layer, "sync: zero-3", true,
		   "0 forward on device of workers after 10, 11-1, 13-1\n"
		   "1 backward on device of workers after 0, 5-1\n"
		   "2 copy on way out of workers, gradient to gradient after 1\n"
		   "3 collective on network of workers, gradient to gradient after 2\n"
		   "4 copy on way in of workers, gradient to gradient after 3\n"
		   "5 convert on device of workers, gradient to sum after 4\n"
		   "6 apply on device of workers after 5\n"
		   "7 convert on device of workers, own to parameter after 6-1\n"
		   "8 copy on way out of workers after 7\n"
		   "9 collective on network of workers after 8\n"
		   "10 copy on way in of workers after 9\n"
		   "11 barrier on device of workers after 1, 6\n"
		   "12 next on nothing of workers after 11\n"
		   "13 gate on nothing of workers after 0\n");
}

/* A gradient has left before the one of the next micro-batch is made. */
Test(zero, each_micro_batch_is_exchanged_and_its_part_is_added)
{
	expect_ops(one_layer, "sync: zero-2, accumulate: 2", false,
		   "0 forward on device of workers after 11-1, 13-1\n"
		   "1 backward on device of workers after 0, 8-1\n"
		   "2 gate on nothing of workers after 0\n"
		   "3 forward on device of workers after 1, 2\n"
		   "4 backward on device of workers after 3, 6\n"
		   "5 collective on network of workers, gradient to gradient after 1\n"
		   "6 convert on processor of workers, gradient to sum after 5\n"
		   "7 collective on network of workers, gradient to gradient after 4\n"
		   "8 accumulate on device of workers, gradient to sum after 7\n"
		   "9 apply on device of workers after 8\n"
		   "10 collective on network of workers after 9\n"
		   "11 barrier on device of workers after 4, 10\n"
		   "12 next on nothing of workers after 11\n"
		   "13 gate on nothing of workers after 3\n");
}

/* ---- bytes and memory ---- */

/* Items of maskless.yaml: conv 3 x 3 x 3 x 8 and 8, ip1 128 x 24 and 24, ip2 24 x 10 and 10. */
enum { CONV = 224, IP1 = 3096, IP2 = 250, ALL = CONV + IP1 + IP2 };

static void expect_bytes(const char *system, uint64_t elements)
{
	struct one_item item;

	open_item(&item, three_layers, 2, system,
		  false); /* a worker sends one half of each item, once or several times */
	cr_expect_eq(psd_program_traffic(&item.made.program, 0).sent_bytes, sizeof(float) * elements, "%s", system);
	close_item(&item);
}

Test(zero, a_node_sends_the_bytes_of_an_all_reduce_and_of_what_it_gathers_twice)
{
	expect_bytes("sync: ring, unit: layer", ALL);
	expect_bytes("sync: zero-1", ALL);
	expect_bytes("sync: zero-2", ALL);
	expect_bytes("sync: zero-3, prefetch: 0", ALL + (CONV + IP1) / 2);
	expect_bytes("sync: fsdp, prefetch: 1", ALL + CONV / 2); /* ip1 and ip2 are still there */
}

/* A forward pass behind a backward pass finds the parameters of conv. */
Test(zero, a_node_sends_the_gradients_of_each_micro_batch)
{
	expect_bytes("sync: zero-1, accumulate: 2", ALL);
	expect_bytes("sync: zero-2, accumulate: 2", ALL + ALL / 2);
	expect_bytes("sync: zero-3, prefetch: 0, accumulate: 2",
		     ALL + ALL / 2 + 2 * (CONV + IP1) / 2 + (IP1 + IP2) / 2);
	expect_bytes("sync: zero-3, prefetch: 2, accumulate: 2", ALL + ALL / 2); /* all are still there */
}

static void expect_memory(const char *system, uint64_t parameters, uint64_t gradients, uint64_t buffers)
{
	struct one_item item;
	struct psd_footprint footprint;

	open_item(&item, three_layers, 2, system, true);
	footprint = psd_footprint_make(&item.made.program, 64);
	cr_expect_eq(footprint.parameters_bytes, sizeof(float) * parameters, "%s: %lu", system,
		     footprint.parameters_bytes);
	cr_expect_eq(footprint.gradients_bytes, sizeof(float) * gradients, "%s: %lu", system,
		     footprint.gradients_bytes);
	cr_expect_eq(footprint.buffers_bytes, sizeof(float) * buffers, "%s: %lu", system, footprint.buffers_bytes);
	close_item(&item);
}

Test(zero, a_worker_keeps_its_part)
{
	expect_memory("sync: ring", ALL, ALL, 0);
	expect_memory("sync: zero-1", ALL, ALL, 0);
	expect_memory("sync: zero-2", ALL, IP1 + IP2, ALL / 2); /* ip2 and conv take turns */
	expect_memory("sync: zero-3, prefetch: 0", ALL / 2 + IP1, IP1 + IP2, ALL / 2);
	expect_memory("sync: zero-3, prefetch: 1", ALL / 2 + IP1 + IP2, IP1 + IP2, ALL / 2);
	expect_memory("sync: zero-3, prefetch: 2", ALL / 2 + ALL, IP1 + IP2, ALL / 2);
	expect_memory("sync: zero-1, accumulate: 2", ALL, 2 * ALL, 0);
	expect_memory("sync: zero-2, accumulate: 2", ALL, IP1 + IP2, ALL / 2);
	expect_memory("sync: zero-3, prefetch: 0, accumulate: 2", ALL / 2 + IP1, IP1 + IP2, ALL / 2);
}

static uint64_t optimiser_bytes(const char *system)
{
	struct one_item item;
	uint64_t bytes;

	open_item(&item, three_layers, 2, system, true);
	bytes = psd_footprint_make(&item.made.program, 64).optimiser_bytes;
	close_item(&item);
	return bytes;
}

Test(zero, a_worker_keeps_the_optimiser_state_of_its_part)
{
	cr_expect_eq(2 * optimiser_bytes("sync: zero-1"), optimiser_bytes("sync: ring"));
	cr_expect_eq(2 * optimiser_bytes("sync: zero-3"), optimiser_bytes("sync: ring"));
}

/* ---- norms of whole tensors ---- */

#define FOUR_WORKERS                                                                                                   \
	"model: {graph: tests/data/maskless.yaml, batch_per_worker: 8}\ncompute: {device: cpu}\n"                      \
	"cluster: {stack: none, nodes: 4, network: {bandwidth: 1Gbps, latency: 50us}}\n"                               \
	"systems: [{name: A, sync: zero-1}]\ntrain: {iterations: 1, learning_rate: {policy: fixed, base: 0.1}, "

static void expect_squares(const char *optimiser, uint64_t elements)
{
	char text[1024];
	struct loaded loaded;
	struct psd_case made;

	snprintf(text, sizeof(text), FOUR_WORKERS "optimiser: {%s}}\n", optimiser);
	loaded_open(&loaded, text);
	loaded_case(&made, &loaded, 0, 0);
	cr_expect_eq(made.plan.n_items - psd_plan_buckets(&made.plan), elements > 0, "%s", optimiser);
	if (elements > 0)
		cr_expect_eq(made.plan.items[made.plan.n_items - 1].subject.elements, elements, "%s", optimiser);
	psd_case_release(&made);
	loaded_close(&loaded);
}

/* Six tensors. */
Test(zero, squares_of_parts_are_added_up_where_norms_count)
{
	expect_squares("momentum: 0.9", 0);
	expect_squares("kind: adamw", 0);
	expect_squares("momentum: 0.9, clip: 1", 6);
	expect_squares("kind: lars, trust: 0.02", 2 * 6);
	expect_squares("kind: lars, trust: 0.02, clip: 1", 2 * 6);
}

static bool waits_for(const struct psd_program *program, const struct psd_op *op, uint32_t before)
{
	bool waits = false;

	for (uint32_t e = 0; e < op->n_dependencies; e++)
		waits = waits || program->dependencies[op->first_dependency + e].op == before;
	return waits;
}

/* All squares are measured before the gate that the sum waits for; a clipping ratio waits for the sum. */
static void expect_waits(const char *optimiser, uint32_t clips)
{
	char text[1024];
	struct loaded loaded;
	struct psd_case made;
	const struct psd_program *program = &made.program;
	uint32_t sums = 0, n_measures = 0, n_updates = 0, n_clips = 0;

	snprintf(text, sizeof(text), FOUR_WORKERS "optimiser: {%s}}\n", optimiser);
	loaded_open(&loaded, text);
	loaded_case(&made, &loaded, 0, 0);
	while (program->ops[sums].source.buffer != PSD_BUFFER_NORMS)
		cr_assert_lt(++sums, program->n_ops);
	const uint32_t gate = program->dependencies[program->ops[sums].first_dependency].op;
	for (uint32_t i = 0; i < program->n_ops; i++) {
		const struct psd_op *op = &program->ops[i];

		n_measures += op->kind == PSD_OP_MEASURE && waits_for(program, &program->ops[gate], i);
		n_updates += op->kind == PSD_OP_APPLY && waits_for(program, op, sums);
		n_clips += op->kind == PSD_OP_CLIP && waits_for(program, op, sums);
	}
	cr_expect_eq(n_measures, 6, "%s", optimiser);
	cr_expect_eq(n_updates, 6, "%s", optimiser);
	cr_expect_eq(n_clips, clips, "%s", optimiser);
	psd_case_release(&made);
	loaded_close(&loaded);
}

Test(zero, updates_by_norms_wait_for_the_sums_of_squares)
{
	expect_waits("kind: lars, trust: 0.02", 0);
	expect_waits("kind: lars, trust: 0.02, clip: 1", 1);
}
