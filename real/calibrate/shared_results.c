#include "real/calibrate/shared_results.h"

static size_t bytes_of(const struct psd_shared_results *results)
{
	return (size_t)results->n_members * results->n_values * sizeof(*results->values);
}

enum psd_status psd_shared_results_run(struct psd_shared_results *results, psd_process_group_work_fn *work,
				       struct psd_error *err)
{
	struct psd_process_group group;

	results->values = psd_process_group_share(bytes_of(results));
	if (!results->values)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a measurement");
	PSD_TRY(psd_process_group_barrier_open(&results->barrier, results->n_members, err));
	PSD_TRY(psd_process_group_start(&group, results->n_members, work, results, err));
	return psd_process_group_wait(&group, results->calibration->options->stop_signal,
				      results->calibration->options->stall_sec, err);
}

void psd_shared_results_close(struct psd_shared_results *results)
{
	psd_process_group_barrier_close(results->barrier);
	psd_process_group_unshare(results->values, bytes_of(results));
}

double *psd_shared_results_values(const struct psd_shared_results *results, unsigned member)
{
	return results->values + (size_t)member * results->n_values;
}

void psd_shared_results_meet(const struct psd_shared_results *results)
{
	psd_process_group_barrier_wait(results->barrier);
}
