/* Result of the execution of a program by any executor (estimate, simulation or real run). */
#ifndef PSD_OUTCOME_H
#define PSD_OUTCOME_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/program/account.h"
#include "engine/program/chunks.h"
#include "engine/program/reads.h"

/* Percentiles of the durations of measured iterations: 50 %, 95 % and 99 %. */
enum psd_percentile { PSD_P50, PSD_P95, PSD_P99, PSD_PERCENTILES };

/* Advice for a user whose run was refused because it needs more events than `most_events` allows. All values include
 * the advice to raise this limit. All except PSD_RELIEF_NODES also include the advice to simulate fewer iterations. */
enum psd_relief {
	PSD_RELIEF_NODES,    /* advice: use fewer nodes; for a program that is too large for every executor */
	PSD_RELIEF_LENGTH,   /* advice: use fewer nodes or fewer iterations */
	PSD_RELIEF_ESTIMATE, /* advice: as PSD_RELIEF_LENGTH, or use an estimate instead of a simulation */
	PSD_RELIEF_FLOW,     /* advice: as PSD_RELIEF_LENGTH, or use flow fidelity instead of message fidelity */
	PSD_RELIEF_FLOW_OR_ESTIMATE,
};

struct psd_outcome {
	double iteration_sec;	/* mean duration of a measured iteration, seconds */
	struct psd_parts parts; /* parts of iteration_sec, seconds; see psd_interpreter_parts() */
	/* per resource: time per iteration in which operations occupy it, on the host where it is longest */
	double busy_sec[PSD_RESOURCES];
	/* bytes per iteration that a node sends to other nodes; of the node that sends most */
	uint64_t sent_bytes_per_node;
	/* bytes per iteration that a node receives from other nodes; of the node that receives most */
	uint64_t received_bytes_per_node;
	/* durations of iterations differ by random factors, so percentiles_sec is valid */
	bool has_percentiles;
	double percentiles_sec[PSD_PERCENTILES]; /* percentiles of the durations of single iterations */
	/* Stale reads: number of reads of each age (reads.h) in the measured iterations; zeros: there are none */
	uint64_t reads[PSD_READ_AGES];
	struct psd_early_chunks early; /* managed communication, see psd_plan_early(). Set only by predictions. */
	/* Asynchronous training. bound_from: iteration from which on the quickest worker waits, because it is as far
	 * ahead of the slowest one as the bound allows; 0: never. is_at_bound: iteration_sec counts these waits. */
	uint64_t bound_from;
	bool is_at_bound;
	double slowest_sec;	 /* asynchronous training: mean iteration of the slowest worker, which ends last */
	uint64_t job_iterations; /* number of iterations of the training; 0: not known */
	uint32_t period;	 /* number of iterations of a period or clock, see psd_plan_steps(); 0: not known */
	uint32_t n_parts;	 /* number of parts that exchange in turn, see psd_plan_parts(); 0: not known */
	uint32_t n_iterations;	 /* number of executed iterations, including those that are not measured */
	/* is_estimate: an estimate replaces a simulation of a sweep, which would have too many events. is_refused:
	 * there is no result, because an estimate would ignore some keys of the scenario or have too many events, too;
	 * `relief` has advice for the user. */
	bool is_estimate, is_refused;
	enum psd_relief relief;
	/* Some gradients are rebuilt from factors of linear layers. Set only by predictions. */
	bool takes_factors;
	/* Simulations: number of nodes, and number of those nodes that were simulated; every other node behaves as one
	 * of these. 0: all nodes were simulated. */
	unsigned n_nodes, n_simulated_nodes;
	/* Numbers of messages and iterations that were not simulated, because their results are copies of simulated
	 * ones. */
	uint64_t n_skipped_messages;
	uint32_t n_skipped_iterations;
	/* memory that a worker's device needs, see footprint.h, bytes. Set by sweeps and questions; 0: not known */
	uint64_t memory_bytes;
	uint64_t n_events; /* number of events: operations of all hosts, messages and timers */
};

/* True if the program rebuilds some gradients from factors. Pure. */
bool psd_outcome_takes_factors(const struct psd_program *program);

/* Sets the duration of an iteration to iteration_sec, which is not shorter. The device waits for communication in the
 * time that is added. */
void psd_outcome_lengthen(struct psd_outcome *outcome, double iteration_sec);

/* Length of a run: number of iterations, and numbers of first and of last iterations that are not measured. With a
 * barrier per iteration and without jitter all iterations are equal, so one is enough. The first iterations of some
 * systems differ. With a barrier per layer they fill the pipeline. With sparse all-reduce the first one does not wait
 * for norms. With late updates they wait for no gradients. With `adam` the last one does not wait for the next one's
 * pushes. All numbers are multiples of psd_run_unit(). */
struct psd_run_length {
	uint32_t n_iterations;
	uint32_t first_measured;
	uint32_t n_behind;
	uint64_t most_events; /* largest number of events of the run; UINT64_MAX: no limit */
};
/* Returns the length of a run that measures `requested` iterations. If requested is 0, it measures 20 iterations with
 * jitter, otherwise 2 with a barrier per layer, otherwise 1. */
struct psd_run_length psd_run_length_make(const struct psd_system *system, uint32_t requested, double jitter_ratio);

/* Returns the number of iterations that form a unit; only whole units are measured, because the iterations of a unit
 * have different durations. With local steps it is the number of steps from one exchange to the next. With
 * managed communication it is the number of iterations of a clock. With late updates it is the number of
 * iterations under way at a time. Otherwise it is 1. Pure. */
uint32_t psd_run_unit(const struct psd_system *system);

/* Returns the number of iterations before the first measured one, before it is rounded up to whole units. Pure. */
uint32_t psd_run_first_measured(const struct psd_system *system);

/* Fills err: the system needs more than most_events events on this number of workers, with the advice `relief`.
 * Returns PSD_EINVAL. */
enum psd_status psd_refuse_length(const struct psd_system *system, unsigned workers, uint64_t most_events,
				  enum psd_relief relief, struct psd_error *err) PSD_MUST_CHECK;

#endif
