/* Result of the execution of a program by any executor (estimate, simulation or real run). */
#ifndef PSD_OUTCOME_H
#define PSD_OUTCOME_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/program/account.h"

/* Percentiles of the measured iterations: 50, 95 and 99. */
enum psd_percentile { PSD_P50, PSD_P95, PSD_P99, PSD_PERCENTILES };

/* Requests that need fewer events than a refused run, beside a larger limit. Later ones include fewer nodes. */
enum psd_relief {
	PSD_RELIEF_NODES,    /* fewer nodes: any executor unrolls as much */
	PSD_RELIEF_LENGTH,   /* fewer nodes or iterations */
	PSD_RELIEF_ESTIMATE, /* also an estimate */
	PSD_RELIEF_FLOW,     /* also flow fidelity */
	PSD_RELIEF_FLOW_OR_ESTIMATE,
};

struct psd_outcome {
	double iteration_sec;	/* mean duration of the measured iterations */
	struct psd_parts parts; /* parts of iteration_sec, on the worker whose device waits least */
	/* per resource: seconds per iteration in which operations hold it, on the host where that is longest */
	double busy_sec[PSD_RESOURCES];
	/* bytes per iteration that a node sends to other nodes, on the node that sends most */
	uint64_t sent_bytes_per_node;
	/* bytes per iteration that a node receives from other nodes, on the node that receives most */
	uint64_t received_bytes_per_node;
	bool has_percentiles;			 /* iterations differ by random draws */
	double percentiles_sec[PSD_PERCENTILES]; /* percentiles of single iterations' times, if has_percentiles */
	uint32_t n_iterations;			 /* number of executed iterations, unmeasured ones included */
	/* is_estimate: in a sweep this is an estimate, because a simulation would have too many events. is_refused:
	 * there is no result, because an estimate cannot replace that simulation; relief says what would need fewer. */
	bool is_estimate, is_refused;
	enum psd_relief relief;
	bool takes_factors; /* some gradients are rebuilt from factors of linear layers; set by predictions only */
	/* Simulations: number of nodes, and number of those that were simulated, as the others are like one of them; 0:
	 * all were. Numbers of messages and iterations that were not simulated, as they are like others. */
	unsigned n_nodes, n_simulated_nodes;
	uint64_t n_skipped_messages;
	uint32_t n_skipped_iterations;
	uint64_t n_events; /* number of events: operations of all hosts, messages, dates */
};

/* Tells whether the program rebuilds gradients from factors. Pure. */
bool psd_outcome_takes_factors(const struct psd_program *program);

/* Length of a run: number of iterations, and number of first iterations that are not measured. With a barrier per
 * iteration and without jitter all iterations are equal, so one is enough. Some systems have first iterations that are
 * not like the later ones: a barrier per layer (they fill the pipeline), sparse all-reduce (the first one has no norms
 * to wait for), late updates (they wait for no gradients). Both numbers are multiples of psd_run_unit(). */
struct psd_run_length {
	uint32_t n_iterations;
	uint32_t first_measured;
	uint64_t most_events; /* largest number of events of the run; UINT64_MAX: no limit */
};
/* Returns the length of a run that measures `requested` iterations; 0: 1 iteration, 20 with jitter, 2 with a barrier
 * per layer. */
struct psd_run_length psd_run_length_make(const struct psd_system *system, uint32_t requested, double jitter_ratio);

/* Returns the number of iterations that have to be measured together, since their durations differ. With local steps it
 * is the number of steps from one exchange to the next. With late updates it is the number of iterations under way at a
 * time. Otherwise it is 1. Pure. */
uint32_t psd_run_unit(const struct psd_system *system);

/* Makes the error that a system needs more than most_events events, and returns PSD_EINVAL. */
enum psd_status psd_refuse_length(const struct psd_system *system, unsigned workers, uint64_t most_events,
				  enum psd_relief relief, struct psd_error *err) PSD_MUST_CHECK;

#endif
