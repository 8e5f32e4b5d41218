/* Collectives of a trace: measured, and predicted by a ring on links of the rate that the user gives. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/grid.h"
#include "engine/base/grow.h"
#include "engine/base/units.h"
#include "sim/import/import.h"
#include "sim/import/shapes.h"

enum { MOST_ROWS = 12 };

/* Kernels of one collective with the same size. */
struct group {
	uint32_t name;
	uint64_t bytes;
	uint32_t n_ranks;
	uint32_t n_kernels;
	double sum_us, least_us;
};

struct groups {
	struct group *entries;
	uint32_t n, room;
	bool is_out_of_memory;
};

static unsigned value_bytes(const char *dtype)
{
	static const struct {
		const char *name;
		unsigned bytes;
	} types[] = {{"Double", 8},	 {"double", 8},	       {"Long", 8},	     {"long", 8}, {"Half", 2},
		     {"c10::Half", 2},	 {"BFloat16", 2},      {"c10::BFloat16", 2}, {"Byte", 1}, {"Char", 1},
		     {"signed char", 1}, {"unsigned char", 1}, {"Bool", 1},	     {"Short", 2}};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (!strcmp(dtype, types[i].name))
			return types[i].bytes;
	return 4;
}

static uint64_t bytes_of(const struct psd_trace *trace, uint64_t elements, uint32_t dtype)
{
	return elements > UINT64_MAX / 8 ? 0 : elements * value_bytes(psd_trace_string(trace, dtype));
}

/* The collective of a kernel: by record_param_comms around its launch, else by a range `nccl:...`, whose elements are
 * those of its first input. */
static struct group group_of(const struct psd_import *import, const struct psd_trace_kernel *kernel)
{
	const struct psd_trace *trace = &import->trace;
	struct group group = {.name = kernel->name, .n_ranks = trace->n_ranks};

	for (uint32_t at = kernel->op; at != PSD_TRACE_NONE; at = trace->ops[at].parent) {
		const struct psd_trace_op *op = &trace->ops[at];
		const struct psd_trace_collective *told;

		if (op->collective == PSD_TRACE_NONE)
			continue;
		told = &trace->collectives[op->collective];
		group.name = told->name;
		if (op->is_range) {
			const struct psd_shapes shapes = psd_shapes_read(trace, op);

			group.bytes = bytes_of(trace, shapes.n_inputs ? shapes.inputs[0].elements : 0, told->dtype);
			continue;
		}
		group.bytes = bytes_of(trace, told->elements, told->dtype);
		group.n_ranks = told->n_ranks ? told->n_ranks : group.n_ranks;
		break;
	}
	return group;
}

static void add_to_groups(struct groups *groups, struct group group, double us)
{
	uint32_t at = 0;

	while (at < groups->n && (groups->entries[at].name != group.name || groups->entries[at].bytes != group.bytes ||
				  groups->entries[at].n_ranks != group.n_ranks))
		at++;
	if (at == groups->n) {
		void *grown = psd_grown(groups->entries, groups->n, &groups->room, sizeof(*groups->entries));

		if (!grown) {
			groups->is_out_of_memory = true;
			return;
		}
		groups->entries = grown;
		group.least_us = us;
		groups->entries[groups->n++] = group;
	}
	groups->entries[at].n_kernels++;
	groups->entries[at].sum_us += us;
	groups->entries[at].least_us = us < groups->entries[at].least_us ? us : groups->entries[at].least_us;
}

static int compare_groups(const void *left, const void *right)
{
	const struct group *one = left, *other = right;

	if (one->sum_us != other->sum_us)
		return one->sum_us > other->sum_us ? -1 : 1;
	if (one->bytes != other->bytes)
		return one->bytes > other->bytes ? -1 : 1;
	return (one->name > other->name) - (one->name < other->name);
}

/* Share of a rank's bytes that pass its link, and the number of steps one behind the other: a ring's. */
static double ring_ratio(const char *name, uint32_t n_ranks, unsigned *steps)
{
	const bool is_sum_for_all =
		strstr(name, "all_reduce") || strstr(name, "allreduce") || strstr(name, "AllReduce");
	const double ratio = n_ranks ? (n_ranks - 1.0) / n_ranks : 0;

	*steps = n_ranks ? (is_sum_for_all ? 2 : 1) * (n_ranks - 1) : 0;
	if (strstr(name, "gather"))
		return n_ranks ? n_ranks - 1.0 : 0; /* each rank sends its part to all others */
	return is_sum_for_all ? 2 * ratio : strstr(name, "broadcast") ? 1 : ratio;
}

static void add_group(struct psd_grid *grid, const struct psd_import *import, const struct group *group)
{
	const struct psd_import_settings *settings = &import->settings;
	const char *name = psd_trace_string(&import->trace, group->name);
	char bytes[PSD_UNITS_TEXT_MAX];
	unsigned steps;
	const double ratio = ring_ratio(name, group->n_ranks, &steps);
	const double bits = 8.0 * (double)group->bytes * ratio;

	psd_grid_add_row(grid);
	psd_grid_set(grid, 0, "%.40s", name);
	psd_grid_set(grid, 1, "%u", group->n_kernels);
	if (group->bytes)
		psd_grid_set(grid, 2, "%s", psd_units_write_bytes(group->bytes, bytes));
	psd_grid_set_number(grid, 3, group->sum_us / group->n_kernels / 1e3, 3);
	psd_grid_set_number(grid, 4, group->least_us / 1e3, 3);
	if (bits > 0 && group->least_us > 0)
		psd_grid_set_number(grid, 5, bits / group->least_us / 1e3, 3);
	if (bits > 0 && settings->bits_per_sec > 0)
		psd_grid_set_number(grid, 6, 1e3 * (bits / settings->bits_per_sec + steps * settings->latency_sec), 3);
}

static void add_table(struct psd_text *text, const struct psd_import *import, const struct groups *groups)
{
	static const char *const heads[][2] = {{"", "collective"}, {"", "kernels"}, {"", "bytes"},
					       {"mean", "ms"},	   {"least", "ms"}, {"a link", "Gb/s"},
					       {"predicted", "ms"}};
	static const unsigned worth[] = {0, 1, 3, 2, 0, 4, 5};
	struct psd_grid grid = {.n_columns = 0};

	for (unsigned column = 0; column < sizeof(heads) / sizeof(heads[0]); column++) {
		grid.worth[psd_grid_add_column(&grid, heads[column][0], heads[column][1], !column)] = worth[column];
		grid.is_number[column] = column > 2;
	}
	for (uint32_t i = 0; i < groups->n && i < MOST_ROWS; i++)
		add_group(&grid, import, &groups->entries[i]);
	psd_text_add(text, "\n");
	psd_grid_add(text, &grid);
	psd_grid_release(&grid);
	if (groups->n > MOST_ROWS)
		psd_text_add(text, "and %u smaller ones\n", groups->n - MOST_ROWS);
	if (import->settings.bits_per_sec <= 0)
		psd_text_add(text, "note: with --bandwidth of the cluster's links, a column predicts these seconds\n");
}

static bool is_collective(const struct psd_import *import, const struct psd_trace_kernel *kernel)
{
	return strstr(psd_trace_string(&import->trace, kernel->name), "nccl") != NULL ||
	       (kernel->op != PSD_TRACE_NONE && import->places.role_of[kernel->op] == PSD_ROLE_COLLECTIVE);
}

void psd_import_add_collectives(struct psd_text *text, const struct psd_import *import)
{
	struct groups groups = {.n = 0};

	for (uint32_t i = 0; i < import->trace.n_kernels; i++)
		if (is_collective(import, &import->trace.kernels[i]))
			add_to_groups(&groups, group_of(import, &import->trace.kernels[i]),
				      import->trace.kernels[i].dur_us);
	if (groups.is_out_of_memory)
		text->is_out_of_memory = true;
	if (groups.n) {
		qsort(groups.entries, groups.n, sizeof(*groups.entries), compare_groups);
		add_table(text, import, &groups);
	}
	free(groups.entries);
}
