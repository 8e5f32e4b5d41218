/* The simulation executor: carries a case out on SimGrid. One simulation per process: callers fork. */
#ifndef PSD_SIM_SIMULATE_H
#define PSD_SIM_SIMULATE_H

#include "engine/case.h"
#include "engine/error.h"
#include "engine/outcome.h"
#include "engine/sched.h"
#include "sim/network.h"

/* Called for each operation that held a resource on a host; a transfer's receiving side is reported with is_arrival. Times in seconds. */
struct psd_span {
	unsigned host;
	struct psd_task task;
	bool is_arrival; /* a message's way into `host`; resource NIC is its way out */
	uint64_t bytes;	 /* of an arrival: what the transfer carried; else the operation's payload */
	double start_sec, end_sec;
};
typedef void (*psd_span_fn)(void *context, const struct psd_program *program, const struct psd_span *span);

/* What the network shim needs to build the case's platform. */
struct psd_platform psd_simulate_platform(const struct psd_case *simulated);

/* Runs the case; span may be NULL. PSD_EINVAL (platform), PSD_ERUN (some worker did not finish: which, and what it waits for), PSD_ENOMEM. */
enum psd_status psd_simulate(const struct psd_case *simulated, psd_span_fn span, void *context, struct psd_outcome *outcome,
			     struct psd_error *err) PSD_MUST_CHECK;

#endif
