/* Writes the trace of one simulated case, as Chrome trace events. */
#ifndef PSD_SIM_TRACE_H
#define PSD_SIM_TRACE_H

#include <stdio.h>

#include "engine/base/error.h"
#include "engine/case/case.h"
#include "engine/result/trace.h"
#include "sim/executor/simulate.h"

/* Simulates one system at one point of the sweep in a child process, and writes its trace to `out`. Statuses and
 * *signal_number are those of psd_children_run(). */
enum psd_status psd_trace_run(FILE *out, const struct psd_costed_model *costed, const struct psd_system *system,
			      struct psd_point point, enum psd_detail detail, int *signal_number,
			      struct psd_error *err) PSD_MUST_CHECK;

#endif
