/* What psd-run does with one scenario: trains or replays its systems, or calibrates. Prints results, progress and
 * remarks as the command line asks. */
#ifndef PSD_REAL_RUN_H
#define PSD_REAL_RUN_H

#include "engine/base/error.h"
#include "engine/scenario/scenario.h"
#include "real/run_options.h"

/* Statuses of everything that a run consists of; results of systems that were done before stay printed. *n_joined is
 * raised by one for each of them, with other hosts. */
enum psd_status psd_run_scenario(const struct psd_run_options *options, const struct psd_scenario *scenario,
				 unsigned *n_joined, struct psd_error *err) PSD_MUST_CHECK;
/* For a host of a cluster that has failed, wherever: tells those of the others that wait for it, having joined it as
 * often. */
void psd_run_excuse(const struct psd_run_options *options, unsigned n_joined, const char *words);
/* version: of psd-run, noted in what is written. */
enum psd_status psd_run_calibration(const struct psd_run_options *options, const struct psd_scenario *scenario,
				    const char *version, struct psd_error *err) PSD_MUST_CHECK;

#endif
