/* Preparation of a training host: threads, device, memory, samples, network. */
#include "real/keep/save.h"
#include "real/keep/soundness.h"
#include "real/session/worker_parts.h"

/* Reads initial values from files. */
static enum psd_status read_values(struct psd_host *host, struct psd_error *err)
{
	const struct psd_worker_options *options = host->options;

	if (options->first_iteration > 0 && options->from_hosts == 0)
		return psd_host_restore(host, err);
	if (options->first_iteration == 0 && !options->train->start_path)
		return PSD_OK;
	PSD_TRY(options->from_hosts > 0 ? psd_host_reshape(host, err) : psd_host_read_start(host, err));
	return psd_host_bring_parameters(host, err);
}

static enum psd_status open_device(struct psd_worker *worker, struct psd_error *err)
{
	struct psd_host *host = &worker->host;
	const struct psd_device_options options = {
		.n_threads = host->options->train->threads,
		.number = host->options->place,
		.arithmetic = host->options->train->arithmetic,
		.is_without_graphs = !host->options->train->has_graphs,
		.may_differ = !host->options->train->is_deterministic,
	};

	PSD_TRY(host->kind->open(&host->device, &options, err));
	host->has_device = true;
	psd_host_moved(host);
	PSD_TRY(psd_host_open_memory(host, err));
	psd_host_moved(host);
	PSD_TRY(psd_work_open(&worker->work, err));
	PSD_TRY(psd_worker_open_quality(worker, err));
	PSD_TRY(psd_worker_open_streams(worker, err));
	psd_host_moved(host);
	PSD_TRY(read_values(host, err));
	if (!psd_layout_is_worker(host->layout, host->self))
		return PSD_OK;
	host->arithmetic = psd_host_arithmetic(host);
	return psd_host_look(host, host->options->first_iteration, err);
}

static void open_job(void *context)
{
	struct psd_job *job = context;

	job->status = open_device(job->worker, &job->err);
}

enum psd_status psd_worker_open_training(struct psd_worker *worker, struct psd_error *err)
{
	struct psd_job *job = &worker->opening;

	PSD_TRY(psd_worker_open_lanes(worker, err));
	PSD_TRY(psd_worker_open_gathering(worker, err));
	*job = (struct psd_job){.worker = worker};
	psd_host_moved(&worker->host);
	psd_lane_start(&worker->jobs[PSD_RESOURCE_DEVICE].lane, open_job, job);
	PSD_TRY(psd_worker_await_opening(worker, err));
	if (job->status)
		*err = job->err;
	return job->status;
}
