/* Whole runs of a small network without decisions, in which nothing makes a rounding larger, with each method. */
#ifndef PSD_TESTS_CUDA_RUN_H
#define PSD_TESTS_CUDA_RUN_H

#include "real/device/device.h"
#include "tests/real/training.h"

/* With the program of a device that has memory of its own, on any kind (NULL: the processor, which takes no notice of
 * copies). Ended by training_free(). */
struct training *cuda_run_make(const char *system, unsigned workers, unsigned workers_per_node, uint32_t iterations,
			       const struct psd_device_kind *kind);
/* The same of another model of tests/data/ and another `train`. */
struct training *cuda_run_make_job(const char *model, const char *job, const char *system, unsigned workers,
				   unsigned workers_per_node, const struct psd_device_kind *kind);
/* Executes the run of cuda_run_make(); fails the test unless it ends well. */
struct training *cuda_run(const char *system, unsigned workers, unsigned workers_per_node, uint32_t iterations,
			  const struct psd_device_kind *kind);

#endif
