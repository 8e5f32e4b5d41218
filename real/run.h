/* The commands of psd-run that take a scenario: train or replay its systems, or calibrate. They print results, progress
 * and remarks as the command line asks. */
#ifndef PSD_REAL_RUN_H
#define PSD_REAL_RUN_H

#include "engine/base/error.h"
#include "engine/scenario/scenario.h"
#include "real/run_options.h"

/* Runs the scenario's systems. After a failure the results of earlier systems are printed all the same. *n_joined
 * counts the systems that were completed together with other hosts. Returns the status of the first failure. */
enum psd_status psd_run_scenario(const struct psd_run_options *options, const struct psd_scenario *scenario,
				 unsigned *n_joined, struct psd_error *err) PSD_MUST_CHECK;
/* Lets this process name its rank in what it prints, if it is one of several hosts. Reads no file. */
void psd_run_name_host(const struct psd_run_options *options);
/* Sends the reason why this host has failed to the hosts that wait for it. words: the reason; n_joined: as
 * psd_run_scenario() left it. */
void psd_run_excuse(const struct psd_run_options *options, unsigned n_joined, const char *words);
/* Calibrates. The version in options is noted in the files. */
enum psd_status psd_run_calibration(const struct psd_run_options *options, const struct psd_scenario *scenario,
				    struct psd_error *err) PSD_MUST_CHECK;

#endif
