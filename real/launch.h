/* Runs a case on this machine: one process for each worker and separate server, either in an emulated cluster whose links have the scenario's
 * rate, or all on loopback, unshaped. Refuses to print. */
#ifndef PSD_REAL_LAUNCH_H
#define PSD_REAL_LAUNCH_H

#include "real/worker.h"

struct psd_launch_options {
	const struct psd_case *made;
	const struct psd_train *train;
	uint32_t n_iterations;
	bool is_emulated;
	double connect_sec, stall_sec;
	bool is_tested;
	/* As in psd_worker_options; called in the processes. */
	void (*progress)(void *context, const struct psd_progress *progress);
	void (*finished)(void *context, unsigned self, const struct psd_memory *memory);
	void *context;
};

/* Starts all processes, waits for all, ends those that a failed one leaves behind. Call it from the main thread, before starting any.
 * PSD_EINVAL, PSD_EFILE, PSD_ENOMEM, PSD_ERUN: what the first that failed had to say. *result is worker 0's, written on success. */
enum psd_status psd_launch(const struct psd_launch_options *options, struct psd_worker_result *result,
			   struct psd_error *err) PSD_MUST_CHECK;

#endif
