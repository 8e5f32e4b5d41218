/* Runs a case on this machine with one process for each worker and separate server, pinned to equal shares of the
 * processors unless they replay. Refuses to print. */
#ifndef PSD_REAL_LAUNCH_H
#define PSD_REAL_LAUNCH_H

#include <signal.h>

#include "real/session/spans.h"
#include "real/session/worker.h"

/* Kinds of network between the processes of a cluster. */
enum psd_cluster_kind {
	PSD_CLUSTER_LOOPBACK, /* loopback, without limits */
	PSD_CLUSTER_SHAPED,   /* loopback; each process limits its own sending and receiving to the scenario's rate */
	PSD_CLUSTER_EMULATED, /* network namespaces, with links shaped by the kernel */
	PSD_CLUSTER_HOSTS,    /* machines of a real cluster, see psd_join() */
};

#define PSD_LAUNCH_CONNECT_SEC 300.0 /* many processes on few cores start slowly; an ended one is noticed earlier */

struct psd_launch_options {
	/* Options of every process. Number, links and spans of each are filled in. `place` is the first one's, and
	 * counts up for the others. Functions are called in the processes. */
	struct psd_worker_options worker;
	enum psd_cluster_kind cluster_kind;	  /* kind of network; LOOPBACK ignores the scenario's latency */
	struct psd_spans *spans;		  /* recorders of spans, one for each host; NULL: none are kept */
	const volatile sig_atomic_t *stop_signal; /* ends the run with PSD_ERUN once it is not 0; may be NULL */
};

/* Checks that this machine can emulate the case's cluster, by making and removing it. replay: NULL for training.
 * PSD_ERUN: it cannot, PSD_CLUSTER_SHAPED remains; PSD_EINVAL, PSD_ENOMEM. */
enum psd_status psd_launch_try_emulation(const struct psd_case *made, const struct psd_replay *replay,
					 struct psd_error *err) PSD_MUST_CHECK;

/* Starts all processes and waits for them; after a failure it ends the others. Call it from the main thread, before
 * other threads start. Returns the status and text of the first process that failed; PSD_ELOST also if a signal killed
 * one. *result, written on success, is worker 0's, except late_sec, own_cpu_sec and real_cpu_sec, which cover all
 * hosts. */
enum psd_status psd_launch(const struct psd_launch_options *options, struct psd_worker_result *result,
			   struct psd_error *err) PSD_MUST_CHECK;

#endif
