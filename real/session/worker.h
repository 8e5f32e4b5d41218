/* One host of a real run, a worker or a separate server. It executes the host's operations of the program, on this
 * machine's processor or device and over TCP, until the last iteration. Workers train; separate servers sum gradients
 * and update parameters. Prints nothing and starts no processes. */
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
	double loss; /* mean loss over the samples of all workers */
	/* Fraction of the samples of all workers that were classified correctly, before the iteration's update. */
	double correct_ratio;
	/* Seconds from the start of training until the losses were known, or, with a test, until the tested parameters
	 * were complete. */
	double elapsed_sec;
	double epochs;	      /* number of passes over the training samples up to the end of this iteration */
	uint64_t test_labels; /* number of samples in the test that follows this iteration; 0: no test follows */
	uint64_t test_correct;
};

struct psd_worker_options {
	const struct psd_case *made;
	const struct psd_train *train;
	const struct psd_device_kind *device; /* kind of device that computes; NULL: this processor */
	unsigned place; /* number of this host among the hosts on its machine; it selects the device */
	/* NULL: the host computes. Otherwise this is a replay: operations are timed waits, there are no tests and no
	 * final parameters, and `device` and `train` (except train->streams) are ignored. The replay's real workers
	 * compute nevertheless. */
	const struct psd_replay *replay;
	/* First iteration to execute. If it is > 0, the host begins with the checkpoint before it, in `checkpoints`. If
	 * it equals n_iterations, the host only waits until all hosts have that last checkpoint. */
	uint32_t first_iteration;
	uint32_t n_iterations; /* number of the iteration at which the run ends, which is not executed */
	/* Number of hosts that wrote the first checkpoint, whose files are all read, if these were another number of
	 * hosts or another system; 0: this host reads its own file. */
	unsigned from_hosts;
	/* Number of samples that all workers processed before first_iteration, from the start of training. */
	uint64_t first_sample;
	/* Folder of the checkpoints to write and to resume from; NULL: no checkpoints. */
	const struct psd_checkpoints *checkpoints;
	unsigned self;
	const struct psd_mesh_host *hosts;
	/* Terms that must be equal on all hosts, made by psd_terms_add(). Their hash is in the metadata of
	 * checkpoints. NULL: neither is needed. */
	const char *terms;
	/* Pre-shared secret of the hosts; NULL: connections are not encrypted; see psd_mesh_options. */
	struct psd_secret *secret;
	/* Listening descriptor, which the worker closes; -1: it opens one; see psd_mesh_options. */
	int listener;
	/* Hash of the run and of its earlier attempts to join; see psd_mesh_options. */
	uint64_t run_hash;
	/* Version and commit of psd-run, which must be equal on all hosts; NULL: not compared. */
	const char *build;
	/* Attempt to join again after a lost host; NULL: hosts join once; see psd_mesh_options. */
	struct psd_mesh_attempt *attempt;
	/* Largest number of restarts after a lost host, equal on all hosts; 0: none. */
	uint32_t n_restarts;
	/* This process limits its own traffic to send_bps and receive_bps, because no link does. */
	bool has_rate;
	double send_bps, receive_bps;
	/* Payload rate of this host's outgoing emulated link, bits per second: no message is delivered sooner than the
	 * link allows. 0, and pace_receive_bps 0: no limit. */
	double pace_send_bps;
	double pace_receive_bps; /* payload rate of this host's incoming emulated link, bits per second */
	bool has_latency;	 /* messages between nodes are delayed so that their latency is latency_sec */
	double latency_sec;
	double connect_sec;
	/* Receives lines about hosts that join; NULL: none; see psd_mesh_options. */
	void (*remark)(void *context, const char *line);
	/* Seconds without a received byte or a finished operation after which a host counts as stalled. */
	double stall_sec;
	/* Signs of life for the process that has started this one; NULL: no process watches this one. */
	struct psd_pulse *pulse;
	/* Worker 0 measures the test accuracy, at the end of the run and at the interval that `train` gives. */
	bool is_tested;
	/* Callbacks, which may be NULL. progress(): on worker 0, for each iteration, once its losses are known (before
	 * its update), or after the test that follows it. finished(): on each host, after the last iteration and before
	 * its memory is freed. */
	void (*progress)(void *context, const struct psd_progress *progress);
	void (*finished)(void *context, unsigned self, const struct psd_memory *memory);
	void *context;
	/* Callback for spans; NULL: none. Called for each operation that used a resource of this host, and for each
	 * message that arrived, once it has ended. Times are of host 0's clock. The event loop's thread calls it. */
	psd_span_fn span;
	void *span_context;
};

/* Measurements of a run. Those of worker 0 are of the whole run, those of another host of that host alone. Seconds of a
 * replay are those of the emulated cluster, not of the slower replay. */
struct psd_worker_result {
	double iteration_sec; /* median duration of the measured iterations, seconds */
	/* Durations that add up to iteration_sec on this host, such as computing and waiting, see struct psd_parts.
	 * Computing is measured as time of a processor thread, or of a GPU by its own clock. */
	struct psd_parts parts;
	/* Mean payload bytes per measured iteration that the node which sends most sends to other nodes. */
	uint64_t sent_bytes_per_node;
	uint64_t received_bytes_per_node;
	double last_loss;
	uint64_t test_labels; /* number of samples in the last test; 0: no test was made */
	uint64_t test_correct;
	uint64_t n_updates;  /* number of updates of slices; counted for encodings with a loss scale, else 0 */
	uint64_t n_left_out; /* number of these updates that were skipped after an overflow */
	/* In training: processor seconds per iteration that this host's threads use beside its operations, for messages
	 * for example; median over the measured iterations. */
	double beside_cpu_sec;
	double beside_spread_ratio; /* (third quartile - first quartile) / median of the same values */
	/* All fields below are of the measured iterations together. */
	/* In a replay: for each iteration, largest lateness of a timer on this host, seconds; median over the
	 * iterations. */
	double late_sec;
	double own_cpu_sec;  /* in a replay: processor seconds of the event loop's thread */
	double real_cpu_sec; /* real worker in a replay: processor seconds of its process */
	double busy_cpu_sec; /* processor seconds used by all programs on worker 0's machine */
	/* Processor seconds that the physical host of worker 0's virtual machine gave to others. */
	double stolen_cpu_sec;
	/* Processor seconds that worker 0's machine had in all: time times number of processors. */
	double machine_cpu_sec;
};

/* Executes a run on one host from beginning to end. *result is written on success. Starts threads. Several hosts may
 * run in one process, each in a thread of its own. PSD_EINVAL: the real executor cannot do what the scenario asks for;
 * PSD_EFILE, PSD_ENOMEM; PSD_ERUN, PSD_ELOST: the run did not complete, and the text says which host waits for
 * which. */
enum psd_status psd_worker_run(const struct psd_worker_options *options, struct psd_worker_result *result,
			       struct psd_error *err) PSD_MUST_CHECK;

/* True if this host computes nothing: it is part of a replay, and not one of the replay's real workers. Pure. */
bool psd_worker_is_replayed(const struct psd_worker_options *options);

/* Returns how psd-run executes the scenario: PSD_BY_RUN (training), PSD_BY_REPLAY, or PSD_BY_PSD_RUN if some workers
 * are real and the others replay. Pure. */
enum psd_use psd_worker_use(const struct psd_scenario *scenario);
/* Checks that psd-run can execute the scenario. PSD_EINVAL: it cannot; the text says which executor can. */
enum psd_status psd_worker_check(const struct psd_scenario *scenario, struct psd_error *err) PSD_MUST_CHECK;
/* Checks that the optimiser works with the way in which the system exchanges gradients: sparse, compressed, or by
 * parameter servers, which update only parts of a tensor. PSD_EINVAL, with the system's line in the scenario: it does
 * not. */
enum psd_status psd_worker_check_optimiser(const struct psd_case *made, struct psd_error *err) PSD_MUST_CHECK;

/* Checks that the library of the system's all-reduce (such as MPI's) is available; PSD_OK if the system uses none.
 * device NULL: the run is a replay, which cannot call libraries. PSD_EINVAL, with the system's line in the scenario: it
 * is not available. */
enum psd_status psd_worker_check_library(const struct psd_system *system, unsigned workers,
					 const struct psd_device_kind *device, struct psd_error *err) PSD_MUST_CHECK;

/* Checks, for hosts that share a secret, that no library sums between nodes, because libraries do not encrypt.
 * PSD_EINVAL, with the system's line in the scenario: one would. */
enum psd_status psd_worker_check_secret(const struct psd_system *system, unsigned n_nodes,
					const struct psd_device_kind *device, struct psd_error *err) PSD_MUST_CHECK;

/* Checks, for a run with restarts, that a library's all-reduce can be interrupted when a host is lost. PSD_EINVAL, with
 * the system's line in the scenario: it cannot. */
enum psd_status psd_worker_check_restarts(const struct psd_system *system, const struct psd_device_kind *device,
					  struct psd_error *err) PSD_MUST_CHECK;

/* Returns the options with which the data set of a training job is opened, in the shapes of the network's input and
 * labels. */
struct psd_data_options psd_worker_data_options(const struct psd_graph *graph, const struct psd_train *train);
/* Opens the data set and writes its number of training samples to *samples. Statuses as psd_data_open(). */
enum psd_status psd_worker_count_samples(const struct psd_graph *graph, const struct psd_train *train,
					 uint64_t *samples, struct psd_error *err) PSD_MUST_CHECK;
/* Start of a run: numbers of iterations and samples that all workers together processed in earlier runs; 0: it is the
 * first run. */
struct psd_worker_start {
	uint32_t iterations;
	uint64_t samples;
};
/* Returns the iteration at which the training job ends, counted from the start of training, not of this run.
 * training_samples: size of the data set; global_batch: samples of all workers in an iteration; start: where this run
 * begins. */
uint32_t psd_worker_iterations(const struct psd_train *train, uint64_t training_samples, uint64_t global_batch,
			       struct psd_worker_start start);
/* Returns the number of iterations to execute if n_measured are to be measured: n_measured and those of the warm-up.
 * Pure. */
uint32_t psd_worker_warmed_up(uint32_t n_measured);

#endif
