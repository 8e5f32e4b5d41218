/* What carrying out a program yields, whichever executor did it. */
#ifndef PSD_OUTCOME_H
#define PSD_OUTCOME_H

#include <stdint.h>

#include "engine/program/account.h"

struct psd_outcome {
	double iteration_sec;		/* mean of the measured iterations */
	struct psd_parts parts;		/* of it, on the worker that waits least */
	double busy_sec[PSD_RESOURCES]; /* per iteration, of the busiest host */
	uint64_t sent_bytes_per_node;	/* per iteration, of the node that sends most; to other nodes only */
	uint64_t received_bytes_per_node;
	uint32_t n_iterations; /* carried out, unmeasured first ones included */
	uint64_t n_events;     /* what it took to find out: operations of all hosts, messages, dates */
};

/* Iterations to carry out and how many of the first not to measure: with a barrier per iteration and without jitter all
 * are equal, so one does; with a barrier per layer the first ones fill the pipeline, and a sparse system's first one
 * waits for no norms; with late updates the first ones wait for nothing, and what they have begun delays others. Whole
 * units are measured. requested 0: chosen here. */
struct psd_run_length {
	uint32_t n_iterations;
	uint32_t first_measured;
	uint64_t most_events; /* UINT64_MAX: no matter how many */
};
struct psd_run_length psd_run_length_make(const struct psd_system *system, uint32_t requested, double jitter_ratio);

/* Iterations that are measured as one: a period of local steps, which ends with an exchange; with late updates all that
 * are under way at a time, of which some may hurry and others wait. Pure. */
uint32_t psd_run_unit(const struct psd_system *system);

/* PSD_EINVAL: the system is too much for so many events. */
enum psd_status psd_refuse_length(const struct psd_system *system, unsigned workers, uint64_t most_events,
				  struct psd_error *err) PSD_MUST_CHECK;

#endif
