/* Runs a case on this machine: one process for each worker and separate server, pinned to their share of the processors
 * unless some replay. Refuses to print. */
#ifndef PSD_REAL_LAUNCH_H
#define PSD_REAL_LAUNCH_H

#include <signal.h>

#include "real/session/spans.h"
#include "real/session/worker.h"

/* What lies between the processes. */
enum psd_cluster_kind {
	PSD_CLUSTER_LOOPBACK, /* loopback as it is */
	PSD_CLUSTER_SHAPED, /* loopback; every process itself keeps to the scenario's rate in what it sends and what it
				receives */
	PSD_CLUSTER_EMULATED, /* network namespaces, links shaped by the kernel */
	PSD_CLUSTER_HOSTS,    /* machines of a cluster, see psd_join() */
};

#define PSD_LAUNCH_CONNECT_SEC 300.0 /* many on few cores are slow to start; one that ends is noticed without it */

struct psd_launch_options {
	/* What all have in common: who each is, its links and its spans are filled in. Its place is the first one's,
	 * the others' follow. Its functions are called in the processes. */
	struct psd_worker_options worker;
	enum psd_cluster_kind cluster_kind;	  /* the last two have the scenario's latency, too */
	struct psd_spans *spans;		  /* one recorder for each host; NULL: none are kept */
	const volatile sig_atomic_t *stop_signal; /* NULL, or not 0 from the signal on that ends the run: PSD_ERUN */
};

/* Whether this machine can emulate the case's cluster: makes it and takes it away. replay: as above. PSD_ERUN: not
 * possible here, PSD_CLUSTER_SHAPED is left; PSD_EINVAL, PSD_ENOMEM. */
enum psd_status psd_launch_try_emulation(const struct psd_case *made, const struct psd_replay *replay,
					 struct psd_error *err) PSD_MUST_CHECK;

/* Starts all processes, waits for all, ends those that a failed one leaves behind. Call it from the main thread, before
 * starting any. PSD_EINVAL, PSD_EFILE, PSD_ENOMEM, PSD_ERUN, PSD_ELOST: what the first that failed had to say;
 * PSD_ELOST: which one was killed by a signal. *result is worker 0's, but for a replay's latest timer and processor
 * times of its hosts, which are of all; written on success. */
enum psd_status psd_launch(const struct psd_launch_options *options, struct psd_worker_result *result,
			   struct psd_error *err) PSD_MUST_CHECK;

#endif
