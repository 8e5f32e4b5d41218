/* See cuda_run.h. */
#include "tests/cuda/cuda_run.h"

#include <criterion/criterion.h>
#include <stdio.h>

enum { BATCH = 4 };

struct training *cuda_run_make(const char *system, unsigned workers, unsigned workers_per_node, uint32_t iterations,
			       const struct psd_device_kind *kind)
{
	char job[160];

	snprintf(job, sizeof(job),
		 "iterations: %u, optimiser: {momentum: 0.9, weight_decay: 0.004}, "
		 "learning_rate: {policy: fixed, base: 0.05}",
		 iterations);
	return cuda_run_make_job("smooth.yaml", job, system, workers, workers_per_node, kind);
}

struct training *cuda_run_make_job(const char *model, const char *job, const char *system, unsigned workers,
				   unsigned workers_per_node, const struct psd_device_kind *kind)
{
	struct training *training;
	char path[80];

	snprintf(path, sizeof(path), "../../tests/data/%s", model);
	training = training_make(path, system, workers, workers_per_node, BATCH, 1, job);
	psd_case_release(&training->made);
	psd_costed_model_compute_on(&training->loaded.costed, true);
	loaded_case(&training->made, &training->loaded, 0, 0);
	training->options.worker.device = kind;
	return training;
}

struct training *cuda_run(const char *system, unsigned workers, unsigned workers_per_node, uint32_t iterations,
			  const struct psd_device_kind *kind)
{
	struct training *training = cuda_run_make(system, workers, workers_per_node, iterations, kind);

	training_run(training);
	cr_assert_eq(training->status, PSD_OK, "%s, %u workers: %s", system, workers, training->err.text);
	return training;
}
