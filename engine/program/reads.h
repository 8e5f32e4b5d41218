/* Counts the ages of stale reads (psd_plan.reads_stale), in which workers use parameters that lack some sums of
 * gradients. The age of a read is the number of iterations before it whose sum of all gradients is missing in the
 * parameters that are read. If none is missing, as in synchronous training, it is 0. Ages are at most the plan's
 * staleness. */
#ifndef PSD_READS_H
#define PSD_READS_H

#include "engine/program/program.h"
#include "engine/program/scheduler.h"

enum { PSD_READ_AGES = PSD_MOST_STALENESS + 1 };

struct psd_read_counts {
	/* number of iterations whose sums are in the parameters of an item (bucket) on a host; shape (n_hosts,
	 * n_items) */
	uint32_t *n_applied;
	/* number of reads of each age; shape (n_iterations, n_hosts, n_ages). NULL: there are no stale reads */
	uint64_t *counts;
	uint32_t n_iterations;
	unsigned n_hosts, n_items, n_ages;
};

/* Begins to count the reads of n_hosts hosts; psd_reads_release() releases the counts. PSD_ENOMEM. */
enum psd_status psd_reads_init(struct psd_read_counts *reads, const struct psd_program *program, unsigned n_hosts,
			       struct psd_iterations iterations, struct psd_error *err) PSD_MUST_CHECK;
void psd_reads_release(struct psd_read_counts *reads);
/* Records that the host begins an operation. Operations of a device begin in the order in which it executes them. */
void psd_reads_begin(struct psd_read_counts *reads, unsigned host, const struct psd_op *op, uint32_t iteration);
/* Counts the last `unit` iterations up to `last` another n_units times, for psd_interpreter_skip(). */
void psd_reads_skip(struct psd_read_counts *reads, uint32_t last, uint32_t unit, uint32_t n_units);
/* Adds `weight` times the number of the host's reads of each age, in all iterations from `first` on. */
void psd_reads_add(const struct psd_read_counts *reads, unsigned host, uint32_t first, uint64_t weight,
		   uint64_t counts[PSD_READ_AGES]);

#endif
