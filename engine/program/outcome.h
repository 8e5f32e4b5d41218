/* Result of the execution of a program, by any executor. */
#ifndef PSD_OUTCOME_H
#define PSD_OUTCOME_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/program/account.h"

/* Percentiles of the measured iterations: 50, 95 and 99. */
enum psd_percentile { PSD_P50, PSD_P95, PSD_P99, PSD_PERCENTILES };

struct psd_outcome {
	double iteration_sec;		/* mean of the measured iterations */
	struct psd_parts parts;		/* parts of it, on the worker that waits least */
	double busy_sec[PSD_RESOURCES]; /* per iteration, of the busiest host */
	uint64_t sent_bytes_per_node;	/* per iteration, of the node that sends most; to other nodes only */
	uint64_t received_bytes_per_node;
	bool has_percentiles; /* iterations differ by draws */
	double percentiles_sec[PSD_PERCENTILES];
	uint32_t n_iterations; /* executed iterations, unmeasured ones included */
	uint64_t n_events;     /* events of the execution: operations of all hosts, messages, dates */
};

/* Length of a run: iterations to execute, and the number of first ones that are not measured. With a barrier per
 * iteration and without jitter all are equal, so that one is enough. With a barrier per layer the first ones fill the
 * pipeline; a sparse system's first one waits for no norms; with late updates the first ones wait for nothing, and
 * delay others. Whole units are measured. requested 0: chosen here. */
struct psd_run_length {
	uint32_t n_iterations;
	uint32_t first_measured;
	uint64_t most_events; /* UINT64_MAX: no limit */
};
struct psd_run_length psd_run_length_make(const struct psd_system *system, uint32_t requested, double jitter_ratio);

/* Iterations that are measured together: a period of local steps, which ends with an exchange; with late updates all
 * iterations under way at a time, of which some are quicker than others. Pure. */
uint32_t psd_run_unit(const struct psd_system *system);

/* Refuses a system that needs more events: PSD_EINVAL. */
enum psd_status psd_refuse_length(const struct psd_system *system, unsigned workers, uint64_t most_events,
				  struct psd_error *err) PSD_MUST_CHECK;

#endif
