/* The simulation executor: runs a case on SimGrid. A process runs one simulation only, so callers fork. */
#ifndef PSD_SIM_SIMULATE_H
#define PSD_SIM_SIMULATE_H

#include "engine/base/error.h"
#include "engine/case/case.h"
#include "engine/program/outcome.h"
#include "engine/result/trace.h"
#include "sim/network/network.h"

/* Returns the platform that psd_network_open() needs for the case. */
struct psd_platform psd_simulate_platform(const struct psd_case *simulated);

/* Runs the case and calls span, if it is not NULL, for every span. Returns PSD_EINVAL (bad platform), PSD_ERUN (a
 * worker did not finish; the text says which one and what it waits for) or PSD_ENOMEM. */
enum psd_status psd_simulate(const struct psd_case *simulated, psd_span_fn span, void *context,
			     struct psd_outcome *outcome, struct psd_error *err) PSD_MUST_CHECK;

#endif
