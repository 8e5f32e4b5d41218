/* One host of a real run: executes its operations of the program on this processor and over TCP until the last
 * iteration. Workers train, separate servers reduce. Prints nothing and starts no processes. */
#ifndef PSD_REAL_WORKER_H
#define PSD_REAL_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/case/case.h"
#include "engine/program/account.h"
#include "engine/program/scheduler.h"
#include "engine/result/trace.h"
#include "engine/scenario/scenario_keys.h"
#include "engine/scenario/train.h"
#include "real/data/data.h"
#include "real/device/device.h"
#include "real/net/mesh.h"
#include "real/session/memory.h"

struct psd_checkpoints;
struct psd_pulse;

struct psd_progress {
	uint32_t iteration;
	uint32_t n_iterations;
	double loss;	      /* mean over the global batch */
	double correct_ratio; /* share of the global batch classified correctly, before the update */
	double elapsed_sec; /* since training began, until the losses were known or the tested parameters were there */
	double epochs;	    /* passes over the training samples at the end of this iteration */
	uint64_t test_labels; /* number of test samples, after the update; 0: not tested */
	uint64_t test_correct;
};

struct psd_worker_options {
	const struct psd_case *made;
	const struct psd_train *train;
	const struct psd_device_kind *device; /* NULL: this processor */
	unsigned place;			      /* index among the hosts of its machine, which selects the device */
	/* NULL: computes. Otherwise operations are only timed, tests and final parameters are left out, and device and
	 * train (except streams) do not count; except for the replay's real workers. */
	const struct psd_replay *replay;
	/* Executes first_iteration to n_iterations - 1. If both are equal, it only waits until all hosts have this
	 * checkpoint, the last one. If first_iteration > 0, the checkpoint after it
	 * is read from `checkpoints`: this host's own file (from_hosts 0), or those of from_hosts hosts, of a run with
	 * another number of hosts or another system. */
	uint32_t first_iteration, n_iterations;
	unsigned from_hosts;
	uint64_t first_sample; /* samples of all workers before first_iteration, since training began */
	const struct psd_checkpoints *checkpoints; /* borrowed; NULL: none are written */
	unsigned self;
	const struct psd_mesh_host *hosts;
	const char *terms;		  /* from psd_terms_add(); NULL: all hosts have this one's scenario */
	struct psd_secret *secret;	  /* see psd_mesh_options */
	int listener;			  /* see psd_mesh_options; -1: none */
	unsigned n_joined;		  /* see psd_mesh_options */
	struct psd_mesh_attempt *attempt; /* see psd_mesh_options */
	uint32_t n_restarts;		  /* limit, equal on all hosts */
	bool has_rate;			  /* shape this host's traffic, since nothing else does */
	double send_bps, receive_bps;
	/* Rates of payload, for delivering messages no sooner; both 0: no limit. */
	double pace_send_bps, pace_receive_bps;
	bool has_latency; /* raise the latency between hosts to this */
	double latency_sec;
	double connect_sec;
	void (*remark)(void *context, const char *line); /* may be NULL; of psd_mesh_options */
	double stall_sec;				 /* limit without a received byte or finished task */
	struct psd_pulse *pulse; /* signs of life for the process that watches this one; NULL: none does */
	bool is_tested;		 /* worker 0 measures test accuracy, at the end and as train says */
	/* Both may be NULL. progress: on worker 0, when an iteration's losses are known (before its update), or after
	 * the test that follows. finished: on every host, after the last iteration and before its memory is
	 * released. */
	void (*progress)(void *context, const struct psd_progress *progress);
	void (*finished)(void *context, unsigned self, const struct psd_memory *memory);
	void *context;
	/* May be NULL. Each operation that held a resource of this host, and each arrival, on host 0's clock, once it
	 * is over; in the event loop's thread. */
	psd_span_fn span;
	void *span_context;
};

/* Values for the whole run on worker 0, for this host alone on others. A replay has the cluster's seconds and bytes. */
struct psd_worker_result {
	double iteration_sec; /* median of the measured iterations */
	struct psd_parts
		parts; /* parts of it on this host; compute is time of the thread or, by its clock, of the GPU */
	uint64_t sent_bytes_per_node; /* per iteration, to other nodes; of the node that sends most */
	uint64_t received_bytes_per_node;
	double last_loss;
	uint64_t test_labels; /* 0: not tested */
	uint64_t test_correct;
	/* Encodings with a loss scale: updates of slices, and those of them skipped after an overflow. */
	uint64_t n_updates, n_left_out;
	/* Training, per iteration: processor time of this worker's threads beside its operations, messages included;
	 * median, spread as in psd_summary. */
	double beside_cpu_sec, beside_spread_ratio;
	/* During the measured iterations. */
	double late_sec;	/* replay: lateness of an iteration's latest timer here, median */
	double own_cpu_sec;	/* replay: processor time of this worker's thread */
	double real_cpu_sec;	/* replay's real worker: processor time of its process */
	double busy_cpu_sec;	/* processor time used on this machine; worker 0's, as the next two */
	double stolen_cpu_sec;	/* used by other virtual machines */
	double machine_cpu_sec; /* available */
};

/* Runs the host. PSD_EINVAL: this executor cannot do what the scenario asks for; PSD_EFILE, PSD_ENOMEM; PSD_ERUN,
 * PSD_ELOST: the run did not complete, the text says which host waits for which. *result is written on success. Starts
 * threads; several may run in one process. */
enum psd_status psd_worker_run(const struct psd_worker_options *options, struct psd_worker_result *result,
			       struct psd_error *err) PSD_MUST_CHECK;

/* True if this host computes nothing: in a replay, unless it is a real worker. Pure. */
bool psd_worker_is_replayed(const struct psd_worker_options *options);

/* Executor of the scenario within psd-run: PSD_BY_RUN, PSD_BY_REPLAY, or both as PSD_BY_PSD_RUN. Pure. */
enum psd_use psd_worker_use(const struct psd_scenario *scenario);
/* PSD_EINVAL: the real executor cannot do what the scenario asks for; the text says which executor can. */
enum psd_status psd_worker_check(const struct psd_scenario *scenario, struct psd_error *err) PSD_MUST_CHECK;
/* PSD_EINVAL with the system's place: the optimiser needs whole tensors, but servers update parts. */
enum psd_status psd_worker_check_optimiser(const struct psd_case *made, struct psd_error *err) PSD_MUST_CHECK;

/* PSD_EINVAL with the system's place: the library for its sums is not available here. device: NULL: a replay. */
enum psd_status psd_worker_check_library(const struct psd_system *system, unsigned workers,
					 const struct psd_device_kind *device, struct psd_error *err) PSD_MUST_CHECK;

/* PSD_EINVAL with the system's place: a library sums between nodes and does not encrypt, but hosts share a secret. */
enum psd_status psd_worker_check_secret(const struct psd_system *system, unsigned n_nodes,
					const struct psd_device_kind *device, struct psd_error *err) PSD_MUST_CHECK;

/* PSD_EINVAL with the system's place: hosts in a library's sums would wait for a lost one. */
enum psd_status psd_worker_check_restarts(const struct psd_system *system, const struct psd_device_kind *device,
					  struct psd_error *err) PSD_MUST_CHECK;

/* Data set of a training job, in the network's shapes. */
struct psd_data_options psd_worker_data_options(const struct psd_graph *graph, const struct psd_train *train);
/* Number of training samples. As psd_data_open(). */
enum psd_status psd_worker_count_samples(const struct psd_graph *graph, const struct psd_train *train,
					 uint64_t *samples, struct psd_error *err) PSD_MUST_CHECK;
/* Start of a run: iterations and samples of all workers in earlier runs. */
struct psd_worker_start {
	uint32_t iterations;
	uint64_t samples;
};
/* Iteration at which the training job ends, including those before its start; training_samples: size of the data
 * set. */
uint32_t psd_worker_iterations(const struct psd_train *train, uint64_t training_samples, uint64_t global_batch,
			       struct psd_worker_start start);
/* Iterations to execute so that n_measured are measured. Pure. */
uint32_t psd_worker_warmed_up(uint32_t n_measured);

#endif
