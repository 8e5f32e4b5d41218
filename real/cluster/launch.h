/* Runs one system of a scenario on this machine, with one process for each worker and each separate server. Each
 * process is pinned to its own part of the processors; the parts have equal sizes. A process that replays is not
 * pinned. Prints nothing. */
#ifndef PSD_REAL_LAUNCH_H
#define PSD_REAL_LAUNCH_H

#include <signal.h>

#include "real/session/spans.h"
#include "real/session/worker.h"

/* Kinds of network between the processes of a run. */
enum psd_cluster_kind {
	PSD_CLUSTER_LOOPBACK, /* the machine's loopback interface, without a rate limit */
	/* The loopback interface; each process limits its own sending and receiving to the rate in the scenario. */
	PSD_CLUSTER_SHAPED,
	PSD_CLUSTER_EMULATED, /* network namespaces on this machine; the kernel limits the rates of their links */
	PSD_CLUSTER_HOSTS,    /* the network between the machines of a real cluster, see psd_join() */
};

/* Time limit for all processes to join, seconds. It is long because many processes on few cores start slowly; a process
 * that ends is noticed without waiting for this limit. */
#define PSD_LAUNCH_CONNECT_SEC 300.0

struct psd_launch_options {
	/* Options for every process. psd_launch() itself sets the number of the process, the options of its links and
	 * its observer of spans. The first process has the number `place`, and the others have the following numbers.
	 * Callbacks are called in the started processes. */
	struct psd_worker_options worker;
	/* Kind of network. With PSD_CLUSTER_LOOPBACK the latency in the scenario is not emulated. */
	enum psd_cluster_kind cluster_kind;
	/* Recorders of spans, one for each process; NULL: no spans are recorded. */
	struct psd_spans *spans;
	/* When it is not 0, the run ends with PSD_ERUN; NULL: the run cannot be stopped. */
	const volatile sig_atomic_t *stop_signal;
};

/* Checks that this machine can emulate the cluster of a case (one system at one point of a scenario): makes the
 * emulated cluster and removes it. replay: settings of the replay; NULL for training. PSD_ERUN: this machine cannot,
 * and only PSD_CLUSTER_SHAPED is possible; PSD_EINVAL, PSD_ENOMEM. */
enum psd_status psd_launch_try_emulation(const struct psd_case *made, const struct psd_replay *replay,
					 struct psd_error *err) PSD_MUST_CHECK;

/* Starts all processes of a run and waits for them. If one fails, the others are ended. Call it from the main thread,
 * before other threads start. Returns the status and the text of the first process that failed; PSD_ELOST also if a
 * signal killed a process. *result is written on success: measurements of worker 0, with three exceptions. late_sec is
 * the largest value of all hosts; own_cpu_sec and real_cpu_sec are sums over all hosts. */
enum psd_status psd_launch(const struct psd_launch_options *options, struct psd_worker_result *result,
			   struct psd_error *err) PSD_MUST_CHECK;

#endif
