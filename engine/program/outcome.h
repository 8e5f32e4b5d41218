/* Result of the execution of a program, by any executor. */
#ifndef PSD_OUTCOME_H
#define PSD_OUTCOME_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/program/account.h"

/* Percentiles of the measured iterations: 50, 95 and 99. */
enum psd_percentile { PSD_P50, PSD_P95, PSD_P99, PSD_PERCENTILES };

struct psd_outcome {
	double iteration_sec;		/* mean duration of the measured iterations */
	struct psd_parts parts;		/* parts of iteration_sec, on the worker that waits least */
	double busy_sec[PSD_RESOURCES]; /* seconds per iteration in which each resource is held, on its busiest host */
	uint64_t sent_bytes_per_node;	/* bytes per iteration to other nodes, from the node that sends most */
	uint64_t received_bytes_per_node;
	bool has_percentiles;			 /* iterations differ by random draws */
	double percentiles_sec[PSD_PERCENTILES]; /* percentiles of single iterations' times, if has_percentiles */
	uint32_t n_iterations;			 /* number of executed iterations, unmeasured ones included */
	/* In a sweep an estimate stands for a simulation with too many events, or nothing does. */
	bool is_estimate, is_refused;
	bool takes_factors; /* gradients are rebuilt from factors; set by predictions only */
	uint64_t n_events;  /* number of events: operations of all hosts, messages, dates */
};

/* Tells whether the program rebuilds gradients from factors. Pure. */
bool psd_outcome_takes_factors(const struct psd_program *program);

/* Length of a run: iterations to execute, and the number of first ones that are not measured. With a barrier per
 * iteration and without jitter all iterations are equal, so one is enough. With a barrier per layer the first ones fill
 * the pipeline. A sparse system's first one waits for no norms. With late updates the first ones wait for nothing, and
 * delay others. Whole units (psd_run_unit()) are measured. requested 0: the length is chosen here. */
struct psd_run_length {
	uint32_t n_iterations;
	uint32_t first_measured;
	uint64_t most_events; /* largest number of events of the run; UINT64_MAX: no limit */
};
struct psd_run_length psd_run_length_make(const struct psd_system *system, uint32_t requested, double jitter_ratio);

/* Number of iterations that are measured together. With local steps: a period, which ends with an exchange. With late
 * updates: all iterations under way at a time, since some are quicker than others. Pure. */
uint32_t psd_run_unit(const struct psd_system *system);

/* Checks the number of events that a system needs. PSD_EINVAL: it needs more than most_events. */
enum psd_status psd_refuse_length(const struct psd_system *system, unsigned workers, uint64_t most_events,
				  struct psd_error *err) PSD_MUST_CHECK;

#endif
