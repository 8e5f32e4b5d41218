/* A run on one host: its options, and its measurements. */
#ifndef PSD_REAL_KEEP_RUN_H
#define PSD_REAL_KEEP_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/case/case.h"
#include "engine/program/account.h"
#include "engine/program/chunks.h"
#include "engine/program/reads.h"
#include "engine/program/scheduler.h"
#include "engine/result/trace.h"
#include "engine/scenario/scenario_keys.h"
#include "engine/scenario/train.h"
#include "real/data/data.h"
#include "real/device/device.h"
#include "real/keep/memory.h"
#include "real/net/mesh.h"
#include "real/net/wire.h"

struct psd_checkpoints;
struct psd_pulse;

struct psd_progress {
	uint32_t iteration;
	uint32_t n_iterations;
	double loss; /* mean loss over the samples of all workers in this iteration */
	/* Fraction of the samples of all workers that were classified correctly, computed before the iteration's
	 * update. */
	double correct_ratio;
	/* Seconds from the start of training until the losses of this iteration were known. If a test follows the
	 * iteration: until the parameters to be tested were complete. */
	double elapsed_sec;
	/* Number of passes over the training samples until the end of this iteration, with a fraction. */
	double epochs;
	uint64_t test_labels; /* number of labels in the test that follows this iteration; 0: no test follows */
	uint64_t test_correct;
};

struct psd_worker_options {
	const struct psd_case *made;
	const struct psd_train *train;
	const struct psd_device_kind *device; /* kind of device that computes; NULL: the host's processor */
	/* Number of this host among the hosts on its machine, from 0; it decides which device is used. */
	unsigned place;
	/* Settings of a replay; NULL: the host computes. In a replay, operations are timed waits, there are no tests
	 * and no final parameters, and `device` and `train` (except train->streams) are not used. Exception: real
	 * workers of a replay, for which psd_worker_is_replayed() is false, compute as in training. */
	const struct psd_replay *replay;
	/* First iteration to execute. If it is not 0, the host reads the checkpoint before it, from the folder
	 * `checkpoints`. If it equals n_iterations, the host only waits until all hosts have that last checkpoint. */
	uint32_t first_iteration;
	uint32_t n_iterations; /* number of the iteration before which the run ends */
	/* Number of hosts that wrote the first checkpoint, if they were another number of hosts or had another system.
	 * Then this host reads the files of all of them. 0: this host reads only its own file. */
	unsigned from_hosts;
	/* Total number of samples that all workers processed before first_iteration, since the start of training. */
	uint64_t first_sample;
	/* Folder of the checkpoints that the run writes, and from which it resumes; NULL: no checkpoints. */
	const struct psd_checkpoints *checkpoints;
	unsigned self;
	const struct psd_mesh_host *hosts;
	/* Terms that must be equal on all hosts, made by psd_terms_add(). Checkpoints have the hash of this text. NULL:
	 * hosts compare no terms, and there are no checkpoints. */
	const char *terms;
	/* Pre-shared secret of the hosts; NULL: connections are not encrypted; see psd_mesh_options. */
	struct psd_secret *secret;
	/* Listening socket, which the worker closes; -1: the worker makes one; see psd_mesh_options. */
	int listener;
	/* Hash of the run and of the number of times that hosts joined before; see psd_mesh_options. */
	uint64_t run_hash;
	/* Version and commit of psd-run, which must be equal on all hosts; NULL: hosts do not compare them. */
	const char *build;
	/* Attempt to join again after a lost host; NULL: hosts join only once; see psd_mesh_options. */
	struct psd_mesh_attempt *attempt;
	/* Largest number of restarts after a lost host, equal on all hosts; 0: the run never restarts. */
	uint32_t n_restarts;
	/* This process limits its own traffic to send_bps and receive_bps, bits per second; false: the links are
	 * limited already. */
	bool has_rate;
	double send_bps, receive_bps;
	/* Payload rate of this host's outgoing emulated link, bits per second. No message is delivered before that link
	 * would have carried it. If this and pace_receive_bps are 0, there is no limit. */
	double pace_send_bps;
	double pace_receive_bps; /* payload rate of this host's incoming emulated link, bits per second */
	/* Messages between nodes are delayed so that their one-way latency is latency_sec, with the difference of
	 * the nodes' kinds; false: no delay. */
	bool has_latency;
	double latency_sec;
	/* Factor by which the work of this host's device takes longer than it does on this machine's processor, to
	 * emulate a slower device; the host waits for the rest. 0: it is not emulated. */
	double slowed_ratio;
	double connect_sec;
	/* Receives lines about hosts that join; NULL: no lines; see psd_mesh_options. */
	void (*remark)(void *context, const char *line);
	/* A host counts as stalled after this time without a received byte and without a finished operation,
	 * seconds. */
	double stall_sec;
	/* Signs of life for the process that has started this one; NULL: no process watches this one. */
	struct psd_pulse *pulse;
	/* Worker 0 measures the test accuracy: at the end of the run, and also during the run if `train` sets an
	 * interval. */
	bool is_tested;
	/* Callbacks, which may be NULL. progress(): called on worker 0 for each iteration, when its losses are known
	 * (before its update) or, if a test follows the iteration, after the test. finished(): called on each host
	 * after the last iteration, before its memory is freed. */
	void (*progress)(void *context, const struct psd_progress *progress);
	void (*finished)(void *context, unsigned self, const struct psd_memory *memory);
	void *context;
	/* Receives own_compute_sec of each host, as that host has measured it, when the run has ended; shape (number of
	 * hosts). 0: the host was lost after the last iteration. NULL: not wanted. */
	double *compute_sec;
	/* Callback for spans (operations with start and end); NULL: none. Called for each operation that used a
	 * resource of this host, and for each message that arrived, when it has ended. Times are of host 0's clock. The
	 * event loop's thread calls it. */
	psd_span_fn span;
	void *span_context;
};

/* Measurements of a run. Those of worker 0 are measurements of the whole run, those of another host are of that host
 * only. Seconds of a replay are seconds of the emulated cluster, not of the slower replay. */
struct psd_worker_result {
	double iteration_sec; /* median duration of the measured iterations, seconds */
	/* Durations that together make iteration_sec, such as computing and waiting, see struct psd_parts: on the
	 * worker whose device works longest; with asynchronous training see psd_mean_iteration_parts(). Computing is
	 * measured in processor time of one thread, or on a GPU by its own clock. */
	struct psd_parts parts;
	/* parts.compute_sec of this host alone, in its own iterations */
	double own_compute_sec;
	uint32_t n_measured; /* number of measured iterations */
	uint32_t n_needed;   /* late updates: number of iterations that a sound measurement needs; 0: it has them */
	/* Payload bytes that a node sends to other nodes: mean per measured iteration, for the node that sends most. */
	uint64_t sent_bytes_per_node;
	uint64_t received_bytes_per_node;
	double last_loss;
	uint64_t test_labels; /* number of labels in the last test; 0: there was no test */
	uint64_t test_correct;
	/* Number of samples of the test set, if it is smaller than a batch of worker 0, so that there was no test;
	 * otherwise 0. */
	uint64_t untested_samples;
	/* Number of updates of slices; counted only for encodings with a loss scale, otherwise 0. */
	uint64_t n_updates;
	uint64_t n_left_out;	       /* number of these updates that were skipped because of an overflow */
	struct psd_early_chunks early; /* managed communication: chunks that worker 0 has sent */
	/* Stale reads: number of all workers' reads of each age in the measured iterations, see psd_read_counts. */
	uint64_t reads[PSD_READ_AGES];
	/* Asynchronous training: ages of the gradients of all updates; n_updates is 0 otherwise, and in a replay. */
	struct psd_gradient_ages ages;
	/* In training: processor time that this host's threads use per iteration in addition to its operations, for
	 * example for messages; median over the measured iterations, seconds. */
	double beside_cpu_sec;
	/* Relative spread of the values of which beside_cpu_sec is the median: (third quartile - first quartile) /
	 * median. */
	double beside_spread_ratio;
	/* Processor times in the fields after late_sec are totals over all measured iterations. */
	/* In a replay: largest lateness of a timer on this host in an iteration, seconds; median over the measured
	 * iterations. */
	double late_sec;
	double own_cpu_sec;  /* in a replay: processor time of the event loop's thread, seconds */
	double real_cpu_sec; /* for a real worker in a replay: processor time of its process, seconds */
	double busy_cpu_sec; /* processor time used by all programs on worker 0's machine, seconds */
	/* Processor time that the physical host of worker 0's virtual machine gave to other virtual machines,
	 * seconds. */
	double stolen_cpu_sec;
	/* Processor time available on worker 0's machine: duration times number of processors, seconds. */
	double machine_cpu_sec;
};

/* True if this host computes nothing, because it is part of a replay and is not one of the replay's real workers.
 * Pure. */
bool psd_worker_is_replayed(const struct psd_worker_options *options);

#endif
