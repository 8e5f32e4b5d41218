/* Where the elements of tensors lie on a run's hosts: against what hosts' memory has, element by element. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "real/keep/memory.h"
#include "real/keep/shard_map.h"
#include "tests/real/training.h"

TestSuite(shard_map, .timeout = 60);

/* No part of it is like another. */
static const char model[] = "../../tests/data/odd.yaml";
#define JOB "iterations: 1, learning_rate: {base: 0.1}, data: {kind: synthetic}"

struct spot {
	unsigned host;
	uint64_t index;
};

/* Position of each element of an item, by the parts in shards' memory. */
static struct spot *spots_of(const struct training *training, unsigned item, enum psd_buffer buffer)
{
	const struct psd_plan *plan = &training->made.plan;
	struct spot *spots = calloc(plan->items[item].subject.elements + 1, sizeof(*spots));

	cr_assert(spots);
	for (unsigned shard = 0; shard < plan->layout.shards; shard++) {
		const unsigned host = psd_layout_shard_host(&plan->layout, shard);
		const struct psd_memory_options options = {.host = host};
		struct psd_memory memory;
		struct psd_error err;
		uint64_t index = 0;

		cr_assert_eq(psd_memory_init(&memory, &training->made.program, &options, &err), PSD_OK);
		for (unsigned s = 0; s < plan->items[item].n_slices && buffer == PSD_BUFFER_PART; s++) {
			const struct psd_range part = psd_memory_own_part(&memory, item, s);

			for (uint64_t e = 0; e < part.elements; e++)
				spots[part.first + e] = (struct spot){host, index++};
		}
		if (buffer == PSD_BUFFER_PART_RESIDUAL) {
			const struct psd_range part = psd_memory_own_blocks(&memory, item);
			const uint64_t block = plan->block.elements;
			uint64_t before = 0, first = 0; /* blocks, and elements, of the tensors before */

			for (unsigned n = 0; n < plan->items[item].n_tensors; n++) {
				const unsigned t = psd_plan_tensor(plan, &plan->items[item], n);
				const uint64_t elements = plan->graph->tensors[t].elements;

				for (uint64_t e = 0; e < elements; e++) {
					const uint64_t b = before + e / block;

					if (b >= part.first && b < part.first + part.elements)
						spots[first + e] =
							(struct spot){host, (b - part.first) * block + e % block};
				}
				before += psd_block_count(&plan->block, elements);
				first += elements;
			}
		}
		psd_memory_release(&memory);
	}
	return spots;
}

static void check_tensor(const struct psd_shard_map *shard_map, enum psd_buffer buffer, unsigned tensor,
			 const struct spot spots[], const char *what)
{
	const uint64_t elements = shard_map->graph->tensors[tensor].elements;
	struct psd_shard_map_run run;

	for (uint64_t e = 0; e < elements; e += run.elements) {
		run = psd_shard_map_find(shard_map, buffer, tensor, e);
		cr_assert(run.elements >= 1 && run.elements <= elements - e, "%s", what);
		for (uint64_t i = 0; i < run.elements; i++) {
			cr_assert_eq(run.host, spots[e + i].host, "%s: element %lu of tensor %u", what, e + i, tensor);
			cr_assert_eq(run.first + i, spots[e + i].index, "%s: element %lu of tensor %u", what, e + i,
				     tensor);
		}
	}
}

static void check_on(const char *system, unsigned workers, unsigned workers_per_node, const char *groups,
		     enum psd_buffer buffer)
{
	struct training *training = training_make_groups(model, system, workers, workers_per_node, 2, 1, JOB, groups);
	const struct psd_plan *plan = &training->made.plan;
	struct psd_text text = {.bytes = NULL}, again = {.bytes = NULL};
	struct psd_shard_map made, read;
	struct psd_error err = {.text = ""};

	cr_assert_eq(psd_shard_map_make(&made, plan, &err), PSD_OK, "%s", err.text);
	psd_shard_map_add(&text, &made);
	cr_assert_eq(psd_shard_map_parse(&read, plan->graph, text.bytes, PSD_NOWHERE, &err), PSD_OK, "%s: %s",
		     text.bytes, err.text);
	psd_shard_map_add(&again, &read);
	cr_expect_str_eq(again.bytes, text.bytes);
	for (unsigned i = 0; i < plan->n_items; i++) {
		struct spot *spots = spots_of(training, i, buffer);
		uint64_t first = 0;

		for (unsigned n = 0; n < plan->items[i].n_tensors; n++) {
			const unsigned t = psd_plan_tensor(plan, &plan->items[i], n);

			check_tensor(&made, buffer, t, spots + first, text.bytes);
			check_tensor(&read, buffer, t, spots + first, text.bytes);
			first += plan->graph->tensors[t].elements;
		}
		free(spots);
	}
	psd_shard_map_release(&made);
	psd_shard_map_release(&read);
	psd_text_release(&text);
	psd_text_release(&again);
	training_free(training);
}

static void check(const char *system, unsigned workers, unsigned workers_per_node, enum psd_buffer buffer)
{
	check_on(system, workers, workers_per_node, NULL, buffer);
}

/* The first workers of the nodes are workers 0, 2 and 3. */
Test(shard_map, nodes_may_have_unequal_numbers_of_workers)
{
	static const char *const groups = "[{nodes: 1, workers_per_node: 2}, {nodes: 2}]";

	check_on("sync: ps", 4, 1, groups, PSD_BUFFER_PART);
	check_on("sync: two-level-ps", 4, 1, groups, PSD_BUFFER_PART);
	check_on("sync: ps, servers: 2", 4, 1, groups, PSD_BUFFER_PART);
}

Test(shard_map, a_part_is_where_its_shard_has_it)
{
	check("sync: ps", 1, 1, PSD_BUFFER_PART);
	check("sync: ps", 3, 1, PSD_BUFFER_PART);
	check("sync: ps, servers: 2", 3, 1, PSD_BUFFER_PART);
	check("sync: two-level-ps", 5, 2, PSD_BUFFER_PART);
	check("sync: ps, servers: 8", 1, 1, PSD_BUFFER_PART);
}

/* Slices of two sizes, parts of three. */
Test(shard_map, slices_are_cut_each)
{
	for (unsigned slice_bytes = 4; slice_bytes <= 180; slice_bytes += 8) {
		char system[96];

		snprintf(system, sizeof(system), "sync: ps, pair: 4B, slice: %uB", slice_bytes);
		check(system, 3, 1, PSD_BUFFER_PART);
		snprintf(system, sizeof(system), "sync: ps, servers: 5, pair: 4B, slice: %uB", slice_bytes);
		check(system, 2, 1, PSD_BUFFER_PART);
	}
}

/* Blocks of 1,024 values, the last one of a tensor shorter. */
Test(shard_map, blocks_are_cut_from_tensors)
{
	check("sync: ps, compress: {by: one-bit, block: 1024}", 3, 1, PSD_BUFFER_PART_RESIDUAL);
	check("sync: ps, compress: {by: one-bit, block: 1024}", 4, 2, PSD_BUFFER_PART_RESIDUAL);
	check("sync: ps, servers: 2, compress: {by: one-bit, block: 2048}", 2, 1, PSD_BUFFER_PART_RESIDUAL);
}

Test(shard_map, damaged_texts_are_refused)
{
	static const char head[] = "workers 2, on a node 1, servers 0, block 0, rank 0, local 0, adaptive 0:";
	static const char *const heads[] = {
		"",
		"workers 2",
		"workers 0, on a node 1, servers 0, block 0, rank 0, local 0, adaptive 0:",
		"workers 2, on a node 0, servers 0, block 0, rank 0, local 0, adaptive 0:",
		"workers -2, on a node 1, servers 0, block 0, rank 0, local 0, adaptive 0:",
		"workers 99999999999999999999, on a node 1, servers 0, block 0, rank 0, local 0, adaptive 0:",
		"workers 3, on a node 2=1x2+1x2, servers 0, block 0, rank 0, local 0, adaptive 0:",
		"workers 3, on a node 2=0x2+3x1, servers 0, block 0, rank 0, local 0, adaptive 0:",
		"workers 3, on a node 2=1x2+, servers 0, block 0, rank 0, local 0, adaptive 0:",
		"workers 2, on a node 1, servers 0, block 40000, rank 0, local 0, adaptive 0:",
		"workers 2, on a node 1, servers 0, block 0, rank 65, local 0, adaptive 0:",
		"workers 2, on a node 1, servers 0, block 0, rank 0, local 2, adaptive 0:",
	};
	static const char *const items[] = {" ",      " 0",	" 0/",	     " 0/0",	     " 4/1",   " 0/1 0/1",
					    " 0,0/1", " 0/1@2", " 0/1@",     " 0,/1",	     " 0/1 x", "0/1",
					    " 0/1,",  " /1",	" 0/1  1/1", " 0/4294967296"};
	struct training *training = training_make(model, "sync: ps", 2, 1, 2, 1, JOB);
	const struct psd_graph *graph = &training->loaded.costed.graph;
	struct psd_shard_map shard_map;
	struct psd_error err;
	char text[256];

	for (unsigned i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		cr_expect_eq(psd_shard_map_parse(&shard_map, graph, heads[i], PSD_NOWHERE, &err), PSD_EINVAL, "%s",
			     heads[i]);
	for (unsigned i = 0; i < sizeof(items) / sizeof(items[0]); i++) {
		snprintf(text, sizeof(text), "%s%s", head, items[i]);
		cr_expect_eq(psd_shard_map_parse(&shard_map, graph, text, PSD_NOWHERE, &err), PSD_EINVAL, "%s", text);
	}
	snprintf(text, sizeof(text), "%s 3,0/7@1 1/1", head);
	cr_expect_eq(psd_shard_map_parse(&shard_map, graph, text, PSD_NOWHERE, &err), PSD_OK, "%s", text);
	psd_shard_map_release(&shard_map);
	training_free(training);
}
