/* A worker that computes nothing: everything but the network takes its predicted time, by timers of the event loop. */
#include "engine/program/jitter.h"
#include "real/session/worker_parts.h"

/* Size of the largest message. */
static uint64_t most_bytes(const struct psd_worker *worker)
{
	uint64_t most = 0;

	for (uint32_t i = 0; i < worker->host.program->n_ops; i++) {
		const struct psd_payload payload = psd_worker_payload(worker, (struct psd_task){0, i});
		const uint64_t bytes = payload.elements * payload.value_bytes;

		most = bytes > most ? bytes : most;
	}
	return most;
}

enum psd_status psd_worker_open_replay(struct psd_worker *worker, struct psd_error *err)
{
	PSD_TRY(psd_worker_open_quality(worker, err));
	if (worker->is_beside_others && worker->host.plan->sparse)
		PSD_TRY(psd_work_open_selection(&worker->work, err));
	PSD_TRY(psd_repeated_memory_open(&worker->repeated, most_bytes(worker), err));
	return worker->is_beside_others ? psd_repeated_memory_open(&worker->zeros, most_bytes(worker), err) : PSD_OK;
}

void psd_worker_replay(void *context, unsigned host, enum psd_resource resource, struct psd_task task, double sec)
{
	struct psd_worker *worker = context;
	const struct psd_scenario *scenario = worker->host.options->made->costed->scenario;

	(void)host; /* the interpreter has one host only */
	psd_worker_watch_load(worker, task.iteration);
	sec = psd_jittered_sec(scenario, worker->host.self, &worker->host.program->ops[task.op], resource, task, sec);
	if (resource == PSD_RESOURCE_DEVICE)
		sec /= psd_worker_speed_ratio(worker);
	psd_timers_set(&worker->timers, resource, task, sec);
	if (resource == PSD_RESOURCE_DEVICE)
		psd_interpreter_worked(&worker->interpreter, 0, sec);
}
