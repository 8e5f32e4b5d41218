/* Programs of one item, and their operations as lines of text. */
#ifndef PSD_TESTS_ENGINE_ITEM_HELPER_H
#define PSD_TESTS_ENGINE_ITEM_HELPER_H

#include <criterion/criterion.h>
#include <stdio.h>

#include "engine/base/text.h"
#include "engine/program/program.h"
#include "tests/loaded_helper.h"

static const char *const operation_resources[] = {
	[PSD_RESOURCE_DEVICE] = "device", [PSD_RESOURCE_COPY_OUT] = "way out", [PSD_RESOURCE_COPY_IN] = "way in",
	[PSD_RESOURCE_CPU] = "processor", [PSD_RESOURCE_NIC] = "network",      [PSD_RESOURCE_NONE] = "nothing",
};

static const char *const operation_hosts[] = {
	[PSD_WHERE_WORKERS] = "workers",
	[PSD_WHERE_SHARDS] = "shards",
	[PSD_WHERE_EVERYWHERE] = "all",
};

/* One line: number, kind, resource, hosts, source and destination buffers, and dependencies; -1: a dependency on the
 * iteration before. */
static inline void add_operation(struct psd_text *text, const struct psd_program *program, uint32_t number)
{
	const struct psd_op *op = &program->ops[number];

	psd_text_add(text, "%u %s on %s of %s", number, psd_ops[op->kind].name, operation_resources[op->resource],
		     operation_hosts[op->where]);
	if (op->source.buffer != op->target.buffer || op->source.buffer != PSD_BUFFER_PARAMETER)
		psd_text_add(text, ", %s to %s", psd_buffers[op->source.buffer].name,
			     psd_buffers[op->target.buffer].name);
	for (uint32_t e = 0; e < op->n_dependencies; e++) {
		const struct psd_edge edge = program->dependencies[op->first_dependency + e];

		psd_text_add(text, "%s%u%s", e ? ", " : " after ", edge.op, edge.distance ? "-1" : "");
	}
	psd_text_add(text, "%s\n", op->is_exchange ? ", of exchanges" : "");
}

struct one_item {
	struct loaded loaded;
	struct psd_case made;
};

/* model: a graph, and more keys of the model; system: all but its name. */
static inline void open_item(struct one_item *item, const char *model, unsigned nodes, const char *system,
			     bool has_own_memory)
{
	char text[2048];

	snprintf(text, sizeof(text),
		 "model: {graph: %s, batch_per_worker: 64}\ncompute: {device: v100}\n"
		 "cluster:\n  stack: none\n  nodes: %u\n  network: {bandwidth: 10Gbps, latency: 50us}\n"
		 "  host: {copy: 1GBps, reduce: 2GBps, update: 4GBps, tensor: 1ms}\n"
		 "systems: [{name: A, %s}]\n",
		 model, nodes, system);
	loaded_open(&item->loaded, text);
	psd_costed_model_compute_on(&item->loaded.costed, has_own_memory);
	loaded_case(&item->made, &item->loaded, 0, 0);
}

static inline void close_item(struct one_item *item)
{
	psd_case_release(&item->made);
	loaded_close(&item->loaded);
}

/* All of them. */
static inline void expect_operations(const char *model, unsigned nodes, const char *system, bool has_own_memory,
				     const char *expected)
{
	struct psd_text text = {.bytes = NULL};
	struct one_item item;

	open_item(&item, model, nodes, system, has_own_memory);
	for (uint32_t i = 0; i < item.made.program.n_ops; i++)
		add_operation(&text, &item.made.program, i);
	cr_assert_not(text.is_out_of_memory);
	cr_expect_str_eq(text.bytes, expected, "%s", system);
	psd_text_release(&text);
	close_item(&item);
}

/* These buffers and no others. */
static inline void expect_kept(const struct one_item *item, const enum psd_buffer kept[], unsigned n_kept)
{
	for (unsigned b = 0; b < PSD_BUFFERS; b++) {
		bool is_expected = false;

		for (unsigned k = 0; k < n_kept; k++)
			is_expected = is_expected || kept[k] == b;
		cr_expect_eq(psd_plan_keeps(&item->made.plan, &item->made.plan.items[0], (enum psd_buffer)b),
			     is_expected, "%s", psd_buffers[b].name);
	}
}

#endif
