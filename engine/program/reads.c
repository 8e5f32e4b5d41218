/* Ages of stale reads. */
#include "engine/program/reads.h"

#include <assert.h>
#include <stdlib.h>

enum psd_status psd_reads_init(struct psd_read_counts *reads, const struct psd_program *program, unsigned n_hosts,
			       struct psd_iterations iterations, struct psd_error *err)
{
	const struct psd_plan *plan = program->plan;

	*reads = (struct psd_read_counts){
		.n_iterations = iterations.end,
		.n_hosts = n_hosts,
		.n_items = plan->n_items,
		.n_ages = plan->staleness + 1,
	};
	if (!plan->reads_stale)
		return PSD_OK;
	reads->n_applied = malloc(((size_t)n_hosts * plan->n_items + 1) * sizeof(*reads->n_applied));
	reads->counts = calloc((size_t)iterations.end * n_hosts * reads->n_ages + 1, sizeof(*reads->counts));
	if (!reads->n_applied || !reads->counts)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for %u hosts", n_hosts);
	for (size_t i = 0; i < (size_t)n_hosts * plan->n_items; i++)
		reads->n_applied[i] = iterations.first;
	return PSD_OK;
}

void psd_reads_release(struct psd_read_counts *reads)
{
	free(reads->n_applied);
	free(reads->counts);
	*reads = (struct psd_read_counts){.counts = NULL};
}

static uint64_t *counts_of(const struct psd_read_counts *reads, unsigned host, uint32_t iteration)
{
	return reads->counts + ((size_t)iteration * reads->n_hosts + host) * reads->n_ages;
}

void psd_reads_begin(struct psd_read_counts *reads, unsigned host, const struct psd_op *op, uint32_t iteration)
{
	const struct psd_op_row *row = &psd_ops[op->kind];

	if (!reads->counts || (!row->updates && !row->reads))
		return;
	uint32_t *n_applied = &reads->n_applied[(size_t)host * reads->n_items + (unsigned)op->item];
	if (row->updates) {
		*n_applied = iteration + 1;
		return;
	}
	assert(*n_applied <= iteration && iteration - *n_applied < reads->n_ages);
	counts_of(reads, host, iteration)[iteration - *n_applied]++;
}

void psd_reads_skip(struct psd_read_counts *reads, uint32_t last, uint32_t unit, uint32_t n_units)
{
	if (!reads->counts)
		return;
	uint64_t *counts = counts_of(reads, 0, last + 1 - unit);
	for (size_t i = 0; i < (size_t)unit * reads->n_hosts * reads->n_ages; i++)
		counts[i] *= 1 + n_units;
}

void psd_reads_add(const struct psd_read_counts *reads, unsigned host, uint32_t first, uint64_t weight,
		   uint64_t counts[PSD_READ_AGES])
{
	for (uint32_t i = first; reads->counts && i < reads->n_iterations; i++)
		for (unsigned age = 0; age < reads->n_ages; age++)
			counts[age] += weight * counts_of(reads, host, i)[age];
}
