/* Compressed gradients on workers and shards against a plain reference in double precision: a worker's loss joins its
 * next gradient, a shard's loss the next sum. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "real/session/worker_parts.h"
#include "tests/loaded_helper.h"
#include "tests/real/plain_compression.h"
#include "tests/scratch_folder.h"
#include "tests/test_with.h"

enum { WORKERS = 3, MOST_HOSTS = 8, ITERATIONS = 5, BLOCK = 1024 };

/* Floats against doubles, over all iterations: of the largest gradient. */
#define NEAR_RATIO 1e-5

/* A weight of 2800 and its bias of 70 are blocks of 1024, 1024, 752 and 70 values: of three shards the last has the two
 * short ones, of two the second. A weight of 700 and its bias of 10 are 700 and 10: of three shards one has none. A
 * weight of 3000 and its bias of 300 are 1024, 1024, 952 and 300. */
static const char model[] = "name: uneven\ninput: {channels: 40}\nlayers:\n"
			    "  - {name: fc1, kind: inner-product, outputs: 70}\n"
			    "  - {name: fc2, kind: inner-product, outputs: 10}\n"
			    "  - {name: fc3, kind: inner-product, outputs: 300}\n"
			    "  - {name: loss, kind: softmax-loss}\n";
static const char scenario[] = "title: t\n"
			       "model: {graph: %s, batch_per_worker: 4}\n"
			       "compute: {device: k20}\n"
			       "cluster: {stack: none, nodes: 3, network: {bandwidth: 1Gbps, latency: 50us}}\n"
			       "systems: [{name: s, sync: ps, %s}]\n";

/* All hosts of one program, between which messages are copied here; and what they should have. */
struct group {
	struct scratch_folder folder;
	struct loaded loaded;
	struct psd_case made;
	struct psd_worker_options options;
	struct psd_worker hosts[MOST_HOSTS];
	unsigned n_hosts;
	bool is_top_k;
	uint64_t n;		    /* values of all tensors, in the plan's order */
	double *residual[WORKERS];  /* samples of each worker */
	double *sum_residual, *sum; /* at whichever shard has the block; what workers unpack */
};

static double *zeros(uint64_t n)
{
	double *values = calloc(n, sizeof(*values));

	cr_assert(values);
	return values;
}

static void open_host(struct group *group, unsigned host)
{
	struct psd_worker *worker = &group->hosts[host];
	const struct psd_memory_options options = {.host = host};
	struct psd_error err = {.text = ""};

	*worker = (struct psd_worker){.host = {.options = &group->options,
					       .program = &group->made.program,
					       .plan = &group->made.plan,
					       .layout = &group->made.plan.layout,
					       .graph = &group->loaded.costed.graph,
					       .self = host,
					       .n_hosts = group->n_hosts,
					       .kind = &psd_device_cpu,
					       .on_device = &worker->host.memory},
				      .work.host = &worker->host};
	cr_assert_eq(psd_memory_init(&worker->host.memory, worker->host.program, &options, &err), PSD_OK, "%s",
		     err.text);
	cr_assert_eq(psd_family_packed.open(&worker->work, &err), PSD_OK, "%s", err.text);
}

static struct group *open_crew(const char *keys)
{
	struct group *group = calloc(1, sizeof(*group));

	cr_assert(group);
	group->folder = scratch_folder_make();
	scratch_folder_write(&group->folder, "uneven.yaml", model, strlen(model));
	loaded_print(&group->loaded, scenario, scratch_folder_path(&group->folder, "uneven.yaml").text, keys);
	loaded_case(&group->made, &group->loaded, 0, 0);
	group->options = (struct psd_worker_options){.made = &group->made, .train = &group->loaded.scenario.train};
	group->n_hosts = psd_layout_hosts(&group->made.plan.layout);
	group->is_top_k = strstr(keys, "top-k");
	group->n = group->loaded.costed.graph.parameters;
	cr_assert_leq(group->n_hosts, MOST_HOSTS);
	for (unsigned h = 0; h < group->n_hosts; h++)
		open_host(group, h);
	for (unsigned w = 0; w < WORKERS; w++)
		group->residual[w] = zeros(group->n);
	group->sum_residual = zeros(group->n);
	group->sum = zeros(group->n);
	return group;
}

static void close_crew(struct group *group)
{
	for (unsigned h = 0; h < group->n_hosts; h++) {
		psd_memory_release(&group->hosts[h].host.memory);
		psd_arena_release(&group->hosts[h].host.arena);
	}
	for (unsigned w = 0; w < WORKERS; w++)
		free(group->residual[w]);
	free(group->sum_residual);
	free(group->sum);
	psd_case_release(&group->made);
	loaded_close(&group->loaded);
	scratch_folder_remove(&group->folder);
	free(group);
}

/* Values of a few bits, so that top-k adds and compares alike in float and double; workers' differ in size. */
static float gradient_at(unsigned worker, unsigned iteration, uint64_t e)
{
	const uint64_t hash = (e * 2654435761u + worker * 40503u + iteration * 69069u) >> 7;

	return (float)((int)(hash % 251) - 125) * 0x1p-7f * (float)(1 + worker);
}
#define MOST_GRADIENT (125.0 * 0x1p-7 * WORKERS)

/* ---- the program ---- */

static uint32_t find_op(const struct group *group, enum psd_op_kind kind, unsigned item, enum psd_buffer source)
{
	const struct psd_op *ops = group->made.program.ops;
	uint32_t op = 0;

	while (op < group->made.program.n_ops &&
	       (ops[op].kind != kind || ops[op].item != (int)item || ops[op].source.buffer != source))
		op++;
	cr_assert_lt(op, group->made.program.n_ops);
	return op;
}

static void send(struct group *group, struct psd_task task, unsigned from, unsigned to)
{
	const struct psd_payload payload = psd_worker_payload(&group->hosts[from], task);
	const uint64_t bytes = psd_payload_bytes_between(&payload, &group->made.plan.layout, from, to);
	struct iovec out[PSD_SEGMENTS_MAX], in[PSD_SEGMENTS_MAX];

	if (bytes == 0)
		return;
	cr_assert_eq(psd_worker_segments(&group->hosts[from], task, from, to, out), 1);
	cr_assert_eq(psd_worker_segments(&group->hosts[to], task, from, to, in), 1);
	cr_assert_eq(out[0].iov_len, bytes);
	cr_assert_eq(in[0].iov_len, bytes);
	memcpy(in[0].iov_base, out[0].iov_base, bytes);
}

static void send_all(struct group *group, struct psd_task task)
{
	for (unsigned from = 0; from < group->n_hosts; from++)
		for (unsigned to = 0; to < group->n_hosts; to++)
			if (to != from)
				send(group, task, from, to);
}

/* Values of an item, numbered through all of them. */
static void fill_gradients(struct group *group, unsigned worker, unsigned i, uint32_t iteration)
{
	const struct psd_plan *plan = &group->made.plan;
	float *const *gradients = psd_memory_gradients(&group->hosts[worker].host.memory, iteration);
	uint64_t at = 0;

	for (unsigned t = 0; t < plan->items[i].first + plan->items[i].n_tensors; t++) {
		const unsigned tensor = plan->tensors[t];
		const uint64_t elements = group->loaded.costed.graph.tensors[tensor].elements;

		for (uint64_t e = 0; e < elements && t >= plan->items[i].first; e++)
			gradients[tensor][e] = gradient_at(worker, iteration, at + e);
		at += elements;
	}
}

static void run_op(struct group *group, unsigned host, struct psd_task task)
{
	const struct psd_op *op = &group->made.program.ops[task.op];
	struct psd_error err = {.text = ""};

	cr_assert_eq(psd_work_find(&group->made.plan, op)->run(&group->hosts[host].work, task, &err), PSD_OK, "%s",
		     err.text);
}

static void run_item(struct group *group, unsigned item, uint32_t iteration)
{
	const struct psd_layout *layout = &group->made.plan.layout;
	const struct psd_task pack = {iteration, find_op(group, PSD_OP_PACK, item, PSD_BUFFER_GRADIENT)},
			      push = {iteration, find_op(group, PSD_OP_SEND, item, PSD_BUFFER_PACKED)},
			      repack = {iteration, find_op(group, PSD_OP_REPACK, item, PSD_BUFFER_PACKED_PARTS)},
			      pull = {iteration, find_op(group, PSD_OP_SEND, item, PSD_BUFFER_PACKED_SUM)},
			      unpack = {iteration, find_op(group, PSD_OP_UNPACK, item, PSD_BUFFER_PACKED_SUM)};

	for (unsigned w = 0; w < WORKERS; w++) {
		fill_gradients(group, w, item, iteration);
		run_op(group, w, pack);
	}
	send_all(group, push);
	for (unsigned h = 0; h < group->n_hosts; h++)
		if (psd_layout_is_shard(layout, h))
			run_op(group, h, repack);
	send_all(group, pull);
	for (unsigned w = 0; w < WORKERS; w++)
		run_op(group, w, unpack);
}

/* ---- the reference ---- */

static void expect_block(struct group *group, uint32_t iteration, uint64_t first, uint64_t n)
{
	const uint32_t kept = group->is_top_k ? group->made.plan.block.kept : 0;
	double sent[BLOCK];

	for (unsigned w = 0; w < WORKERS; w++) {
		for (uint64_t e = first; e < first + n; e++)
			group->residual[w][e] += (double)gradient_at(w, iteration, e);
		plain_compress(kept, group->residual[w] + first, sent, n);
		for (uint64_t e = 0; e < n; e++)
			group->sum_residual[first + e] += sent[e];
	}
	plain_compress(kept, group->sum_residual + first, group->sum + first, n);
}

/* Whatever hosts and parts there are. */
static void expect_iteration(struct group *group, uint32_t iteration)
{
	const struct psd_plan *plan = &group->made.plan;
	uint64_t at = 0;

	for (unsigned t = 0; t < plan->n_tensors; t++) {
		const uint64_t elements = group->loaded.costed.graph.tensors[plan->tensors[t]].elements;

		for (uint64_t first = 0; first < elements; first += BLOCK)
			expect_block(group, iteration, at + first, elements - first < BLOCK ? elements - first : BLOCK);
		at += elements;
	}
}

/* ---- both ---- */

static void compare(const float *actual, const double *expected, uint64_t n, const char *what, unsigned host,
		    uint32_t iteration)
{
	for (uint64_t e = 0; e < n; e++)
		cr_assert_float_eq((double)actual[e], expected[e], NEAR_RATIO * MOST_GRADIENT,
				   "iteration %u, host %u, %s: value %lu is %g, must be %g", iteration, host, what,
				   (unsigned long)e, (double)actual[e], expected[e]);
}

static void compare_worker(const struct group *group, unsigned w, uint32_t iteration)
{
	const struct psd_plan *plan = &group->made.plan;
	float *const *gradients = psd_memory_gradients(&group->hosts[w].host.memory, iteration);
	uint64_t at = 0;

	for (unsigned i = 0; i < plan->n_items; i++) {
		compare(psd_memory_buffer(&group->hosts[w].host.memory, PSD_BUFFER_RESIDUAL, i, iteration),
			group->residual[w] + at, plan->items[i].subject.elements, "residual", w, iteration);
		for (unsigned n = 0; n < plan->items[i].n_tensors; n++) {
			const unsigned tensor = psd_plan_tensor(plan, &plan->items[i], n);

			compare(gradients[tensor], group->sum + at, group->loaded.costed.graph.tensors[tensor].elements,
				"sum", w, iteration);
			cr_assert_eq(memcmp(gradients[tensor],
					    psd_memory_gradients(&group->hosts[0].host.memory, iteration)[tensor],
					    group->loaded.costed.graph.tensors[tensor].elements * sizeof(float)),
				     0, "worker %u unpacks other bits than worker 0", w);
			at += group->loaded.costed.graph.tensors[tensor].elements;
		}
	}
}

static void check(const char *keys)
{
	struct group *group = open_crew(keys);

	for (uint32_t i = 0; i < ITERATIONS; i++) {
		for (unsigned item = 0; item < group->made.plan.n_items; item++)
			run_item(group, item, i);
		expect_iteration(group, i);
		for (unsigned w = 0; w < WORKERS; w++)
			compare_worker(group, w, i);
	}
	close_crew(group);
}

/* A shard on each worker: parts of 1, 1 and 2 blocks, and of 0, 1 and 1. */
TEST_ROW(worker_packed, signs_and_means_are_summed, check("compress: {by: one-bit}"))

Test(worker_packed, the_largest_values_are_summed)
{
	check("compress: {by: top-k, kept: 5%}");
	check("compress: {by: top-k, kept: 100%}");
}

/* One that has all blocks; two; five, of which some have none. */
Test(worker_packed, separate_servers_do_the_same)
{
	check("servers: 1, compress: {by: one-bit}");
	check("servers: 2, compress: {by: one-bit}");
	check("servers: 2, compress: {by: top-k, kept: 5%}");
	check("servers: 5, compress: {by: one-bit}");
	check("servers: 5, compress: {by: top-k, kept: 1%}");
}

Test(worker_packed, tensors_travel_alone)
{
	check("unit: tensor, compress: {by: one-bit}");
	check("unit: tensor, servers: 2, compress: {by: top-k, kept: 5%}");
}

/* ---- memory ---- */

static uint64_t room(const struct group *group, unsigned host, unsigned item, enum psd_buffer buffer)
{
	return psd_memory_elements(&group->hosts[host].host.memory, item, buffer);
}

/* The item of fc1: blocks 1, 1 and 2 of its 4. */
Test(worker_packed, a_shard_has_room_for_its_blocks)
{
	static const uint64_t parts[WORKERS] = {1, 1, 2};
	struct group *group = open_crew("compress: {by: one-bit}");
	const unsigned fc1 = 2; /* backward reaches it last */

	for (unsigned h = 0; h < WORKERS; h++) {
		cr_expect_eq(room(group, h, fc1, PSD_BUFFER_PACKED), 4);
		cr_expect_eq(room(group, h, fc1, PSD_BUFFER_PACKED_SUM), 4);
		cr_expect_eq(room(group, h, fc1, PSD_BUFFER_RESIDUAL), 2870);
		cr_expect_eq(room(group, h, fc1, PSD_BUFFER_PART_RESIDUAL), parts[h] * BLOCK);
		cr_expect_eq(room(group, h, fc1, PSD_BUFFER_PACKED_PARTS), WORKERS * parts[h]);
		cr_expect_eq(psd_memory_own_blocks(&group->hosts[h].host.memory, fc1).elements, parts[h]);
	}
	close_crew(group);
}

Test(worker_packed, a_worker_without_a_shard_has_none)
{
	struct group *group = open_crew("servers: 1, compress: {by: one-bit}");

	for (unsigned w = 0; w < WORKERS; w++) {
		cr_expect_eq(room(group, w, 0, PSD_BUFFER_PART_RESIDUAL), 0);
		cr_expect_eq(room(group, w, 0, PSD_BUFFER_PACKED_PARTS), 0);
	}
	cr_expect_eq(room(group, WORKERS, 2, PSD_BUFFER_PART_RESIDUAL), 4 * BLOCK);
	close_crew(group);
}

/* Neighbours in memory: no part reaches into the next, whatever the bytes of a block. */
static void expect_apart(const struct group *group, unsigned host, unsigned item, uint64_t block_bytes)
{
	const struct psd_memory *memory = &group->hosts[host].host.memory;
	const uint64_t part_bytes = psd_memory_own_blocks(memory, item).elements * block_bytes;
	const char *before = NULL;

	for (uint32_t i = 0; i < memory->n_under_way; i++)
		for (unsigned w = 0; w < WORKERS; w++) {
			const char *part = psd_memory_packed_part(memory, item, i, w);

			cr_expect_eq((uintptr_t)part % sizeof(float), 0);
			cr_expect(!before || part >= before + part_bytes, "host %u, item %u: iteration %u, worker %u",
				  host, item, i, w);
			before = part;
		}
	cr_expect_leq((uintptr_t)before + part_bytes, (uintptr_t)memory->block + memory->block_bytes);
}

Test(worker_packed, parts_of_workers_and_iterations_lie_apart)
{
	/* 8 + 1024 / 8 bytes; 11 of 1024 values with positions of 2 bytes, one of them unused */
	static const struct {
		const char *keys;
		uint64_t block_bytes;
	} cases[] = {{"servers: 2, compress: {by: one-bit}", 8 + 128},
		     {"servers: 2, compress: {by: top-k, kept: 1%}", 11 * 4 + 12 * 2}};

	for (unsigned c = 0; c < 2; c++) {
		struct group *group = open_crew(cases[c].keys);

		cr_expect_eq(psd_plan_value_bytes(&group->made.plan, PSD_BUFFER_PACKED), cases[c].block_bytes);
		for (unsigned h = WORKERS; h < group->n_hosts; h++)
			for (unsigned i = 0; i < group->made.plan.n_items; i++)
				expect_apart(group, h, i, cases[c].block_bytes);
		close_crew(group);
	}
}
