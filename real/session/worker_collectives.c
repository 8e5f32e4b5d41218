/* Collectives: by a library's calls, as jobs of a lane, or step by step. */
#include "real/session/worker_parts.h"
#include "real/work/sums.h"

/* Counts the bytes that psd's own algorithm would move. */
static void count_bytes(struct psd_worker *worker, struct psd_task task)
{
	const struct psd_host *host = &worker->host;
	const struct psd_payload *payload = &host->program->ops[task.op].payload;

	for (unsigned p = 0; p < host->n_hosts; p++) {
		if (p == host->self || !psd_worker_is_counted(worker, p, task.iteration))
			continue;
		worker->sent_bytes += psd_payload_bytes_between(payload, host->layout, host->self, p);
		worker->received_bytes += psd_payload_bytes_between(payload, host->layout, p, host->self);
	}
}

static void call_library(struct psd_worker *worker, struct psd_task task)
{
	psd_worker_work(worker, worker->host.self, PSD_RESOURCE_NIC, task, 0.0);
}

/* Traffic between nodes is counted as it happens if a library works inside them. */
void psd_worker_collective(void *context, struct psd_task task)
{
	struct psd_worker *worker = context;

	if (!psd_sums_are_open(&worker->work)) {
		psd_worker_begin_transfer(worker, task);
		return;
	}
	if (!psd_sums_kind(&worker->work)->is_inside_nodes)
		count_bytes(worker, task);
	call_library(worker, task);
}

void psd_worker_summed(struct psd_worker *worker, struct psd_task task)
{
	if (psd_sums_need_transfer(&worker->work))
		psd_worker_begin_transfer(worker, task);
	else
		psd_interpreter_collective_finished(&worker->interpreter, task);
}

void psd_worker_transfer_is_over(struct psd_worker *worker, struct psd_task task)
{
	if (psd_sums_need_return(&worker->work))
		call_library(worker, task);
	else
		psd_interpreter_collective_finished(&worker->interpreter, task);
}
