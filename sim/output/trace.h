/* Writes the trace of one simulated case, as Chrome trace events or as files of PyTorch's profiler. */
#ifndef PSD_SIM_TRACE_H
#define PSD_SIM_TRACE_H

#include "engine/base/error.h"
#include "engine/case/case.h"
#include "engine/result/trace_files.h"
#include "sim/executor/simulate.h"

/* Simulates one system at one point of the sweep in a child process, and writes its trace to the open files. Statuses
 * and *signal_number are those of psd_children_run(). */
enum psd_status psd_trace_run(struct psd_trace_files *files, const struct psd_costed_model *costed,
			      const struct psd_system *system, struct psd_point point, enum psd_detail detail,
			      int *signal_number, struct psd_error *err) PSD_MUST_CHECK;

#endif
