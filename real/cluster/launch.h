/* Runs one system of a scenario on this machine, with one process for each worker and each separate server. Each
 * process is pinned to its own part of the processors, of equal size, unless it replays. Prints nothing. */
#ifndef PSD_REAL_LAUNCH_H
#define PSD_REAL_LAUNCH_H

#include <signal.h>

#include "real/session/spans.h"
#include "real/session/worker.h"

/* Kinds of network between the processes of a run. */
enum psd_cluster_kind {
	PSD_CLUSTER_LOOPBACK, /* the machine's loopback interface, as fast as it is */
	/* Loopback; each process limits its own sending and receiving to the rate in the scenario. */
	PSD_CLUSTER_SHAPED,
	PSD_CLUSTER_EMULATED, /* network namespaces on this machine; the kernel limits the rates of their links */
	PSD_CLUSTER_HOSTS,    /* the network between the machines of a real cluster, see psd_join() */
};

/* Limit for joining, seconds; many processes on few cores start slowly, and one that ends is noticed at once. */
#define PSD_LAUNCH_CONNECT_SEC 300.0

struct psd_launch_options {
	/* Options for every process. Its number, the options of its links and its observer of spans are set by
	 * psd_launch(). `place` is that of the first process; the others get the numbers after it. Callbacks are called
	 * in the started processes. */
	struct psd_worker_options worker;
	/* Kind of network; PSD_CLUSTER_LOOPBACK ignores the scenario's latency. */
	enum psd_cluster_kind cluster_kind;
	/* Recorders of spans, one for each process; NULL: no spans are recorded. */
	struct psd_spans *spans;
	const volatile sig_atomic_t *stop_signal; /* as soon as it is not 0, the run ends with PSD_ERUN; NULL: never */
};

/* Checks that this machine can emulate the cluster of a case (a system at a point of a scenario): makes it and removes
 * it. replay: NULL for training. PSD_ERUN: it cannot, only PSD_CLUSTER_SHAPED is possible; PSD_EINVAL, PSD_ENOMEM. */
enum psd_status psd_launch_try_emulation(const struct psd_case *made, const struct psd_replay *replay,
					 struct psd_error *err) PSD_MUST_CHECK;

/* Starts all processes of a run and waits for them. If one fails, the others are ended. Call it from the main thread,
 * before other threads start. Returns the status and the text of the first process that failed; PSD_ELOST also if a
 * signal killed one. *result, written on success: measurements of worker 0, but late_sec is the largest of all hosts,
 * and own_cpu_sec and real_cpu_sec are sums over all hosts. */
enum psd_status psd_launch(const struct psd_launch_options *options, struct psd_worker_result *result,
			   struct psd_error *err) PSD_MUST_CHECK;

#endif
