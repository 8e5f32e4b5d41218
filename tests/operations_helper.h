/* Operations of a program as lines of text, for tests that list them. */
#ifndef PSD_TESTS_OPERATIONS_HELPER_H
#define PSD_TESTS_OPERATIONS_HELPER_H

#include "engine/base/text.h"
#include "engine/program/program.h"

static const char *const operation_resources[] = {
	[PSD_RESOURCE_DEVICE] = "device", [PSD_RESOURCE_COPY_OUT] = "way out", [PSD_RESOURCE_COPY_IN] = "way in",
	[PSD_RESOURCE_CPU] = "processor", [PSD_RESOURCE_NIC] = "network",      [PSD_RESOURCE_NONE] = "nothing",
};

static const char *const operation_hosts[] = {
	[PSD_WHERE_WORKERS] = "workers",
	[PSD_WHERE_SHARDS] = "shards",
	[PSD_WHERE_EVERYWHERE] = "all",
};

/* A line: number, kind, on what of whom, from which buffer to which, and what it waits for; -1 is of the iteration
 * before. */
static inline void add_operation(struct psd_text *text, const struct psd_program *program, uint32_t number)
{
	const struct psd_op *op = &program->ops[number];

	psd_text_add(text, "%u %s on %s of %s", number, psd_op_kind_names[op->kind], operation_resources[op->resource],
		     operation_hosts[op->where]);
	if (op->source != op->target || op->source != PSD_BUFFER_PARAMETER)
		psd_text_add(text, ", %s to %s", psd_buffers[op->source].name, psd_buffers[op->target].name);
	for (uint32_t e = 0; e < op->n_dependencies; e++) {
		const struct psd_edge edge = program->dependencies[op->first_dependency + e];

		psd_text_add(text, "%s%u%s", e ? ", " : " after ", edge.op, edge.distance ? "-1" : "");
	}
	psd_text_add(text, "%s\n", op->is_exchange ? ", of exchanges" : "");
}

#endif
