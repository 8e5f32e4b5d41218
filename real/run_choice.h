/* What of a scenario a run on one machine takes: which cluster, how many iterations. */
#ifndef PSD_REAL_RUN_CHOICE_H
#define PSD_REAL_RUN_CHOICE_H

#include <stdint.h>

#include "engine/base/error.h"
#include "engine/scenario/scenario.h"
#include "real/session/worker.h"

/* n_nodes: that many; 0: the first cluster of several nodes that one machine can be, else the first that it can be.
 * PSD_EINVAL when there is none. */
enum psd_status psd_run_choose_point(const struct psd_scenario *scenario, uint64_t n_nodes, struct psd_point *point,
				     struct psd_error *err) PSD_MUST_CHECK;
/* The cluster of a hosts file: what is not a separate server of the system is a worker. PSD_EINVAL when no worker is
 * left. */
enum psd_status psd_run_choose_hosts(const struct psd_scenario *scenario, const struct psd_system *system,
				     unsigned n_hosts, struct psd_point *point, struct psd_error *err) PSD_MUST_CHECK;
/* PSD_EINVAL unless the system has as many hosts there. */
enum psd_status psd_run_check_hosts(const struct psd_system *system, const struct psd_point *point, unsigned n_hosts,
				    struct psd_error *err) PSD_MUST_CHECK;
/* With how many iterations the run ends. n_asked: with so many; 0: with what the training job takes, all else as in
 * psd_worker_iterations(); a replay, which trains nothing, measures as many as a prediction would, or a few. Pure. */
uint32_t psd_run_choose_iterations(const struct psd_scenario *scenario, uint64_t n_asked, uint64_t training_samples,
				   uint64_t global_batch, struct psd_worker_start start);
/* Of a replay that nobody asked for so many of, by a system with these steps from one exchange to the next: whole
 * periods, behind one that warms up. Pure. */
uint32_t psd_run_whole_periods(uint32_t n_iterations, uint32_t steps);

#endif
