/* Traces as results: the steps of each trace give one row, with the speedup over the trace of fewest workers. */
#ifndef PSD_PLOTS_STEPS_H
#define PSD_PLOTS_STEPS_H

#include "plots/results.h"

/* True if the first path is that of a trace: .json, .json.gz, .sqlite or .nsys-rep's export. */
bool psd_steps_are_traces(const char *const paths[], unsigned n_paths);
/* Reads traces of psd-sim, psd-run (both forms of --trace) or PyTorch's profiler. Every worker has the same samples in
 * a step whatever their number is; traces of one system and one number of workers count once, by their median. where:
 * as in psd_results_read(). PSD_EINVAL: a trace has no step, or all have the same number of workers. PSD_EFILE,
 * PSD_ENOMEM. */
enum psd_status psd_steps_read(struct psd_results *results, const char *const paths[], unsigned n_paths,
			       const char *const where[], struct psd_error *err) PSD_MUST_CHECK;

#endif
