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
	double loss;	      /* mean loss over the global batch */
	double correct_ratio; /* share of the global batch classified correctly, before the update */
	double elapsed_sec;   /* seconds since training began, until losses were known or tested parameters complete */
	double epochs;	      /* passes over the training samples at the end of this iteration */
	uint64_t test_labels; /* number of tested samples, in a test after the update; 0: not tested */
	uint64_t test_correct;
};

struct psd_worker_options {
	const struct psd_case *made;
	const struct psd_train *train;
	const struct psd_device_kind *device; /* device that computes; NULL: this processor */
	unsigned place; /* index of the host among those on its machine, which selects the device */
	/* NULL: the host computes. Otherwise operations are only timed, tests and final parameters are left out, and
	 * device and train (except streams) have no effect. A replay's real workers compute nevertheless. */
	const struct psd_replay *replay;
	/* Range of iterations: from first_iteration to n_iterations - 1. If both are equal, the worker only waits until
	 * all hosts have this checkpoint, the last one. If first_iteration > 0, the checkpoint after it is read from
	 * `checkpoints`: this host's own file (from_hosts 0), or those of from_hosts hosts, of a run with another
	 * number of hosts or another system. */
	uint32_t first_iteration, n_iterations;
	unsigned from_hosts;
	uint64_t first_sample; /* samples of all workers before first_iteration, since training began */
	const struct psd_checkpoints *checkpoints; /* checkpoints to write and to resume from; NULL: none */
	unsigned self;
	const struct psd_mesh_host *hosts;
	const char *terms; /* terms that all hosts must share, from psd_terms_add(); NULL: this host's scenario */
	struct psd_secret *secret;	  /* pre-shared secret of the hosts; NULL: none; see psd_mesh_options */
	int listener;			  /* listening descriptor, taken over; -1: none; see psd_mesh_options */
	uint64_t run_hash;		  /* hash of the run and of its earlier joinings; see psd_mesh_options */
	const char *build;		  /* version and commit of psd-run, equal on all hosts; NULL: not compared */
	struct psd_mesh_attempt *attempt; /* attempt to join again; NULL: hosts join once; see psd_mesh_options */
	uint32_t n_restarts;		  /* largest number of restarts, equal on all hosts */
	bool has_rate;			  /* shape this host's traffic in this process, since nothing else does */
	double send_bps, receive_bps;
	/* Payload rates of the emulated links, bits per second: no message is delivered sooner. Both 0: no limit. */
	double pace_send_bps, pace_receive_bps;
	bool has_latency; /* raise the latency between hosts to latency_sec */
	double latency_sec;
	double connect_sec;
	void (*remark)(void *context,
		       const char *line); /* receives lines about hosts that join; may be NULL; see psd_mesh_options */
	double stall_sec; /* time without a received byte or finished operation after which a host counts as stalled */
	struct psd_pulse *pulse; /* signs of life for the process that watches this one; NULL: none does */
	bool is_tested;		 /* worker 0 measures test accuracy, at the end and at the interval that train gives */
	/* Observers, which may be NULL. progress: on worker 0, when an iteration's losses are known (before its
	 * update), or after the test that follows. finished: on every host, after the last iteration and before its
	 * memory is released. */
	void (*progress)(void *context, const struct psd_progress *progress);
	void (*finished)(void *context, unsigned self, const struct psd_memory *memory);
	void *context;
	/* Observer of spans; may be NULL. It gets each operation that held a resource of this host, and each arrival,
	 * once it is over. Times are of host 0's clock; called in the event loop's thread. */
	psd_span_fn span;
	void *span_context;
};

/* Measurements of a run: the whole run's on worker 0, this host's on others. A replay has the cluster's seconds. */
struct psd_worker_result {
	double iteration_sec;	/* median duration of the measured iterations */
	struct psd_parts parts; /* parts of iteration_sec here; compute is a thread's time or, by its clock, a GPU's */
	uint64_t sent_bytes_per_node; /* payload bytes per iteration to other nodes, on the node that sends most */
	uint64_t received_bytes_per_node;
	double last_loss;
	uint64_t test_labels; /* number of tested samples; 0: not tested */
	uint64_t test_correct;
	/* Encodings with a loss scale: number of updates of slices, and number of those skipped after an overflow. */
	uint64_t n_updates, n_left_out;
	/* Training: processor time per iteration that this worker's threads use beside its operations, for messages for
	 * example. Median, and its spread as in psd_summary. */
	double beside_cpu_sec, beside_spread_ratio;
	/* The values below are of the measured iterations. */
	double late_sec;     /* replay: lateness of the latest timer of an iteration here; median over the iterations */
	double own_cpu_sec;  /* replay: processor seconds of this worker's thread */
	double real_cpu_sec; /* replay's real worker: processor time of its process, seconds */
	double busy_cpu_sec; /* processor seconds used by all programs on worker 0's machine; next two: there too */
	double stolen_cpu_sec;	/* processor time used by other virtual machines */
	double machine_cpu_sec; /* processor time that the machine has in all */
};

/* Runs one host to the end. PSD_EINVAL: this executor cannot do what the scenario asks for; PSD_EFILE, PSD_ENOMEM;
 * PSD_ERUN, PSD_ELOST: the run did not complete, the text says which host waits for which. *result is written on
 * success. Starts threads; several may run in one process. */
enum psd_status psd_worker_run(const struct psd_worker_options *options, struct psd_worker_result *result,
			       struct psd_error *err) PSD_MUST_CHECK;

/* True if this host computes nothing: in a replay, unless it is a real worker. Pure. */
bool psd_worker_is_replayed(const struct psd_worker_options *options);

/* Executor of the scenario within psd-run: PSD_BY_RUN, PSD_BY_REPLAY, or both as PSD_BY_PSD_RUN. Pure. */
enum psd_use psd_worker_use(const struct psd_scenario *scenario);
/* Checks that the real executor can run the scenario. PSD_EINVAL: it cannot; the text says which executor can. */
enum psd_status psd_worker_check(const struct psd_scenario *scenario, struct psd_error *err) PSD_MUST_CHECK;
/* Checks that the optimiser suits servers, which update parts. PSD_EINVAL with the system's place: it does not. */
enum psd_status psd_worker_check_optimiser(const struct psd_case *made, struct psd_error *err) PSD_MUST_CHECK;

/* Checks that the system's library is available. PSD_EINVAL with the system's place: no. device: NULL: a replay. */
enum psd_status psd_worker_check_library(const struct psd_system *system, unsigned workers,
					 const struct psd_device_kind *device, struct psd_error *err) PSD_MUST_CHECK;

/* Checks that no library sums between nodes if hosts share a secret: it does not encrypt. PSD_EINVAL with a place. */
enum psd_status psd_worker_check_secret(const struct psd_system *system, unsigned n_nodes,
					const struct psd_device_kind *device, struct psd_error *err) PSD_MUST_CHECK;

/* Checks that no host in a library's sums would wait for a lost one. PSD_EINVAL with the system's place. */
enum psd_status psd_worker_check_restarts(const struct psd_system *system, const struct psd_device_kind *device,
					  struct psd_error *err) PSD_MUST_CHECK;

/* Options to open the data set of a training job, in the network's input and output shapes. */
struct psd_data_options psd_worker_data_options(const struct psd_graph *graph, const struct psd_train *train);
/* Opens the data set and returns its number of training samples. Statuses as psd_data_open(). */
enum psd_status psd_worker_count_samples(const struct psd_graph *graph, const struct psd_train *train,
					 uint64_t *samples, struct psd_error *err) PSD_MUST_CHECK;
/* Start of a run: iterations and samples that all workers processed in earlier runs. */
struct psd_worker_start {
	uint32_t iterations;
	uint64_t samples;
};
/* Iteration at which the training job ends, counted from the start of training, not of this run. training_samples: size
 * of the data set. */
uint32_t psd_worker_iterations(const struct psd_train *train, uint64_t training_samples, uint64_t global_batch,
			       struct psd_worker_start start);
/* Iterations to execute, warm-up included, so that n_measured are measured. Pure. */
uint32_t psd_worker_warmed_up(uint32_t n_measured);

#endif
