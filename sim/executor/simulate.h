/* The simulation executor: simulates a case on SimGrid. A process can run only one simulation, so callers fork. */
#ifndef PSD_SIM_SIMULATE_H
#define PSD_SIM_SIMULATE_H

#include "engine/base/error.h"
#include "engine/case/case.h"
#include "engine/program/outcome.h"
#include "engine/result/trace.h"
#include "sim/network/network.h"

/* Returns the platform (nodes, links and rates) that psd_network_open() needs for the case. */
struct psd_platform psd_simulate_platform(const struct psd_case *simulated);

/* Detail of a simulation. Results and spans are the same in all of them. */
enum psd_detail {
	PSD_DETAIL_CLASSES, /* one host of each class of equal hosts is simulated, and has spans */
	PSD_DETAIL_HOSTS,   /* all hosts are simulated and have spans; equal all-reduces are simulated once */
	PSD_DETAIL_ALL,	    /* all hosts, flows and messages are simulated */
};

/* Simulates the case and fills *outcome on success. span(context, ...) is called for each operation and each message of
 * the simulated hosts, for a trace; span may be NULL. PSD_EINVAL: the platform cannot be used, or there are too many
 * events. PSD_ERUN: a worker did not finish; the text names the worker, and an operation for which it waits.
 * PSD_ENOMEM. */
enum psd_status psd_simulate(const struct psd_case *simulated, enum psd_detail detail, psd_span_fn span, void *context,
			     struct psd_outcome *outcome, struct psd_error *err) PSD_MUST_CHECK;

#endif
