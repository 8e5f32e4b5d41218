/* The simulation executor: carries a case out on SimGrid. One simulation per process: callers fork. */
#ifndef PSD_SIM_SIMULATE_H
#define PSD_SIM_SIMULATE_H

#include "engine/base/error.h"
#include "engine/case/case.h"
#include "engine/program/outcome.h"
#include "engine/result/trace.h"
#include "sim/network/network.h"

/* What the network shim needs to build the case's platform. */
struct psd_platform psd_simulate_platform(const struct psd_case *simulated);

/* Runs the case; span, called for every span, may be NULL. PSD_EINVAL (platform), PSD_ERUN (some worker did not finish:
 * which, and what it waits for), PSD_ENOMEM. */
enum psd_status psd_simulate(const struct psd_case *simulated, psd_span_fn span, void *context,
			     struct psd_outcome *outcome, struct psd_error *err) PSD_MUST_CHECK;

#endif
