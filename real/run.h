/* Commands of psd-run that take a scenario: training or replaying its systems, and calibrating. They print results,
 * progress and other lines as the command line asks for. */
#ifndef PSD_REAL_RUN_H
#define PSD_REAL_RUN_H

#include "engine/base/error.h"
#include "engine/scenario/scenario.h"
#include "real/run_options.h"

/* Trains or replays the chosen systems of the scenario, one after another. After a failure, the results of earlier
 * systems are printed all the same. *n_joined: number of systems that this host has completed together with other
 * hosts. Returns the status of the first failure. */
enum psd_status psd_run_scenario(const struct psd_run_options *options, const struct psd_scenario *scenario,
				 unsigned *n_joined, struct psd_error *err) PSD_MUST_CHECK;
/* If this process is one of several hosts, begins its lines with its rank from now on. Reads no file. */
void psd_run_name_host(const struct psd_run_options *options);
/* Tells the hosts that wait for this one that it has failed. words: the reason; n_joined: number that
 * psd_run_scenario() has set. */
void psd_run_excuse(const struct psd_run_options *options, unsigned n_joined, const char *words);
/* Measures this machine, and writes the scenario with the measured values. options->version is written to the files,
 * too. */
enum psd_status psd_run_calibration(const struct psd_run_options *options, const struct psd_scenario *scenario,
				    struct psd_error *err) PSD_MUST_CHECK;

#endif
