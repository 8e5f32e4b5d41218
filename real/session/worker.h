/* One host of a real run: carries out its duties of a case's program on this processor and over TCP, until the last
 * iteration. Workers train, separate servers reduce. Refuses to print and to start processes. */
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

struct psd_progress {
	uint32_t iteration;
	uint32_t n_iterations;
	double loss;	      /* mean over the global batch */
	double correct_ratio; /* of the global batch's labels, before the update */
	double elapsed_sec;   /* since training began: when the losses were known, or the parameters that were tested */
	double epochs;	      /* passes over the training samples up to the end of this iteration */
	uint64_t test_labels; /* of all test samples, after the update; 0: not tested */
	uint64_t test_correct;
};

struct psd_worker_options {
	const struct psd_case *made;
	const struct psd_train *train;
	const struct psd_device_kind *device; /* NULL: this processor */
	unsigned place; /* among the hosts on its machine, from 0: which of the machine's devices it takes */
	/* NULL: computes; else nothing is, tested or finished; device and all of train but streams do not count, but
	 * for its real workers, who compute on what others make up. */
	const struct psd_replay *replay;
	/* first_iteration to n_iterations - 1 are carried out, at least one. Not 0: a checkpoint of so many iterations
	 * is read, and `checkpoints` says where it lies. from_hosts: 0: this host's own file; else those of so many
	 * hosts, of a run of another number of them or another system. */
	uint32_t first_iteration, n_iterations;
	unsigned from_hosts;
	uint64_t first_sample; /* that first_iteration begins with, of all workers' from the start of training on */
	const struct psd_checkpoints *checkpoints; /* borrowed; NULL: none are written */
	unsigned self;
	const struct psd_mesh_host *hosts;
	const char *terms;		  /* psd_terms_add(); NULL: all hosts have this one's scenario */
	struct psd_secret *secret;	  /* of psd_mesh_options */
	int listener;			  /* or -1, see psd_mesh_options */
	unsigned n_joined;		  /* of psd_mesh_options */
	struct psd_mesh_attempt *attempt; /* of psd_mesh_options */
	uint32_t n_restarts;		  /* after which the run ends; all hosts have the same */
	bool has_rate;			  /* shape what this host sends and receives, for nothing else does */
	double send_bps, receive_bps;
	/* Of payload: no message is told of before such links have carried it; both 0: they are as they are. */
	double pace_send_bps, pace_receive_bps;
	bool has_latency; /* bring the latency between hosts up to this, where it is less */
	double latency_sec;
	double connect_sec;
	void (*remark)(void *context, const char *line); /* may be NULL; of psd_mesh_options */
	double stall_sec; /* without a byte or a finished task for so long, the run fails */
	bool is_tested;	  /* worker 0 measures the accuracy on the test samples at the end and as train says */
	/* Both may be NULL. When an iteration's losses are known, which is before its update, or after the test that
	 * follows it, on worker 0; after the last, on every host, before its memory is released. */
	void (*progress)(void *context, const struct psd_progress *progress);
	void (*finished)(void *context, unsigned self, const struct psd_memory *memory);
	void *context;
	/* May be NULL. Each operation that held a resource of this host and each arrival here, on host 0's clock, once
	 * it is over; in the event loop's thread. */
	psd_span_fn span;
	void *span_context;
};

/* What worker 0 knows at the end, others of themselves alone. Of a replay: the cluster's seconds and bytes. */
struct psd_worker_result {
	double iteration_sec;	/* median of the measured iterations */
	struct psd_parts parts; /* of it, on this host; compute as the time of the thread or, by its clock, the GPU */
	uint64_t sent_bytes_per_node; /* per iteration, to other nodes, of the node with most */
	uint64_t received_bytes_per_node;
	double last_loss;
	uint64_t test_labels; /* 0: not tested */
	uint64_t test_correct;
	/* Of an encoding with a ratio: updates, of slices; of them those whose gradients were beyond its range. */
	uint64_t n_updates, n_left_out;
	/* Of training, per iteration: what this worker's threads took of processors beside its operations, messages
	 * included; median, spread as in psd_summary. */
	double beside_cpu_sec, beside_spread_ratio;
	/* While the measured iterations went on. */
	double late_sec;	/* of a replay: how late the latest timer of an iteration rang here, median */
	double own_cpu_sec;	/* of a replay: processor time of this worker's thread */
	double real_cpu_sec;	/* of a replay's real worker: processor time of its process */
	double busy_cpu_sec;	/* of this machine, for whatever; worker 0's, as are the next */
	double stolen_cpu_sec;	/* of that, by other virtual machines on its host */
	double machine_cpu_sec; /* that it had */
};

/* PSD_EINVAL: the scenario asks for what this executor cannot do; PSD_EFILE, PSD_ENOMEM; PSD_ERUN, PSD_ELOST: it did
 * not come to its end, the text says who waits for whom. *result is written on success. Starts threads; several may run
 * in one process. */
enum psd_status psd_worker_run(const struct psd_worker_options *options, struct psd_worker_result *result,
			       struct psd_error *err) PSD_MUST_CHECK;

/* Whether this host computes nothing: of a replay, all but its real workers. Pure. */
bool psd_worker_is_replayed(const struct psd_worker_options *options);

/* How psd-run carries the scenario out: PSD_BY_RUN, PSD_BY_REPLAY, or both as PSD_BY_PSD_RUN. Pure. */
enum psd_use psd_worker_use(const struct psd_scenario *scenario);
/* PSD_EINVAL when the real executor cannot honour what the scenario asks for, saying which executor can. */
enum psd_status psd_worker_check(const struct psd_scenario *scenario, struct psd_error *err) PSD_MUST_CHECK;
/* PSD_EINVAL with the system's place: the optimiser needs whole tensors, and servers update parts of them. */
enum psd_status psd_worker_check_optimiser(const struct psd_case *made, struct psd_error *err) PSD_MUST_CHECK;

/* PSD_EINVAL with the system's place: it leaves its sums to a library that this process cannot use. device: NULL: of a
 * replay. */
enum psd_status psd_worker_check_library(const struct psd_system *system, unsigned workers,
					 const struct psd_device_kind *device, struct psd_error *err) PSD_MUST_CHECK;

/* PSD_EINVAL with the system's place: hosts that share a secret would leave sums between nodes to a library, which does
 * not encrypt them. */
enum psd_status psd_worker_check_secret(const struct psd_system *system, unsigned n_nodes,
					const struct psd_device_kind *device, struct psd_error *err) PSD_MUST_CHECK;

/* PSD_EINVAL with the system's place: it leaves sums to a library in which hosts would wait for one that is lost. */
enum psd_status psd_worker_check_restarts(const struct psd_system *system, const struct psd_device_kind *device,
					  struct psd_error *err) PSD_MUST_CHECK;

/* The data of a training job, as the network takes it. */
struct psd_data_options psd_worker_data_options(const struct psd_graph *graph, const struct psd_train *train);
/* Training samples that the job's data has: opens and closes it. As psd_data_open(). */
enum psd_status psd_worker_count_samples(const struct psd_graph *graph, const struct psd_train *train,
					 uint64_t *samples, struct psd_error *err) PSD_MUST_CHECK;
/* Where a run begins: iterations and samples of all workers that earlier runs have gone through. */
struct psd_worker_start {
	uint32_t iterations;
	uint64_t samples;
};
/* With how many iterations the training job ends, those before its start included; training_samples: of the data set.
 */
uint32_t psd_worker_iterations(const struct psd_train *train, uint64_t training_samples, uint64_t global_batch,
			       struct psd_worker_start start);
/* Iterations to carry out so that so many are measured. Pure. */
uint32_t psd_worker_warmed_up(uint32_t n_measured);

#endif
