/* Commands of psd-run that need a scenario: training or replay of its systems, and calibration. They print results,
 * progress and messages according to the command line. */
#ifndef PSD_REAL_RUN_H
#define PSD_REAL_RUN_H

#include "engine/base/error.h"
#include "engine/scenario/scenario.h"
#include "real/run_options.h"

/* Trains or replays the chosen systems of the scenario, one after another. If a system fails, the results of the
 * systems before it are still printed. *n_joined: number of systems that this host has completed together with other
 * hosts. Returns the status of the first failure. */
enum psd_status psd_run_scenario(const struct psd_run_options *options, const struct psd_scenario *scenario,
				 unsigned *n_joined, struct psd_error *err) PSD_MUST_CHECK;
/* If this process is one of several hosts, all its printed lines begin with its rank from now on. Reads no file. */
void psd_run_name_host(const struct psd_run_options *options);
/* Called after this host has failed: sends the reason to the hosts that wait for this host. words: the reason;
 * n_joined: number that psd_run_scenario() has set. */
void psd_run_excuse(const struct psd_run_options *options, unsigned n_joined, const char *words);
/* Measures this machine, and writes a copy of the scenario with the measured values. The files also contain
 * options->version. */
enum psd_status psd_run_calibration(const struct psd_run_options *options, const struct psd_scenario *scenario,
				    struct psd_error *err) PSD_MUST_CHECK;

#endif
