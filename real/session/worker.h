/* One host of a real run: a worker or a separate server. It executes the host's operations of the program until the
 * last iteration, on this machine's processor or device and over TCP. Workers train. Separate servers sum gradients and
 * update parameters. Prints nothing and starts no processes. */
#ifndef PSD_REAL_WORKER_H
#define PSD_REAL_WORKER_H

#include "real/keep/run.h"

/* Executes a run on one host from beginning to end. *result is written on success. Starts threads. Several hosts may
 * run in one process, each in its own thread. PSD_EINVAL: a real run of this scenario is not supported; PSD_EFILE,
 * PSD_ENOMEM; PSD_ERUN, PSD_ELOST: the run did not complete, and the text names the host that waits and the host for
 * which it waits. */
enum psd_status psd_worker_run(const struct psd_worker_options *options, struct psd_worker_result *result,
			       struct psd_error *err) PSD_MUST_CHECK;

/* Returns the way in which psd-run executes the scenario: PSD_BY_RUN (training), PSD_BY_REPLAY (replay), or
 * PSD_BY_PSD_RUN if some workers are real and the others replay. Pure. */
enum psd_use psd_worker_use(const struct psd_scenario *scenario);
/* Checks that psd-run can execute the scenario. PSD_EINVAL: it cannot; the text names the program that can. */
enum psd_status psd_worker_check(const struct psd_scenario *scenario, struct psd_error *err) PSD_MUST_CHECK;
/* Checks that the optimiser can be used with the way in which the system exchanges gradients: sparse, compressed, or by
 * parameter servers, which update only parts of a tensor. PSD_EINVAL: it cannot; the text has the system's line in the
 * scenario. */
enum psd_status psd_worker_check_optimiser(const struct psd_case *made, struct psd_error *err) PSD_MUST_CHECK;

/* Opens the data set and writes its number of training samples to *samples. Statuses as psd_data_open(). */
enum psd_status psd_worker_count_samples(const struct psd_graph *graph, const struct psd_train *train,
					 uint64_t *samples, struct psd_error *err) PSD_MUST_CHECK;
/* Start of a run: number of iterations, and number of samples that all workers processed, in the earlier runs that this
 * run continues; 0: this is the first run. */
struct psd_worker_start {
	uint32_t iterations;
	uint64_t samples;
};
/* Returns the iteration at which the training job ends, counted from the start of training, not from the start of this
 * run. training_samples: number of samples of the data set; global_batch: number of samples of all workers in an
 * iteration; start: start of this run. */
uint32_t psd_worker_iterations(const struct psd_train *train, uint64_t training_samples, uint64_t global_batch,
			       struct psd_worker_start start);
/* Returns the number of iterations to execute so that n_measured are measured: n_measured plus the iterations of the
 * warm-up. Pure. */
uint32_t psd_worker_warmed_up(uint32_t n_measured);

#endif
