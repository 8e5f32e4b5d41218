/* Spans of this worker's operations, on the clock that all hosts share. */
#include "real/session/worker_parts.h"

/* Passes on a span whose times are this worker's. */
static void record(struct psd_worker *worker, struct psd_span span)
{
	const double zero_sec = (worker->timers.start_sec + worker->clock_offset_sec) / worker->timers.dilation_ratio;

	span.host = worker->host.self;
	span.start_sec += zero_sec;
	span.end_sec += zero_sec;
	worker->host.options->span(worker->host.options->span_context, worker->host.program, &span);
}

void psd_worker_record(struct psd_worker *worker, struct psd_task task, double start_sec, double end_sec)
{
	const struct psd_op *op = &worker->host.program->ops[task.op];
	struct psd_span span = {.task = task, .bytes = op->bytes, .start_sec = start_sec, .end_sec = end_sec};
	const struct psd_job *job;

	if (!worker->host.options->span)
		return;
	if (!worker->replay && op->resource != PSD_RESOURCE_NIC && task.op != worker->host.program->next_op) {
		if (!worker->work.rows[task.op] || !worker->jobs[psd_worker_lane(worker, task.op)].has_lane)
			return; /* nothing is done or copied here */
		job = psd_worker_job(worker, psd_worker_lane(worker, task.op));
		/* as measured by its thread: the event loop may be late */
		span.start_sec = job->start_sec;
		span.end_sec = job->start_sec + job->sec;
		span.work_sec = job->busy_sec;
	}
	record(worker, span);
}

void psd_worker_record_begin(struct psd_worker *worker, unsigned peer, uint32_t op)
{
	double *start_sec = &worker->peers[peer].ops[op].start_sec;

	if (*start_sec > 0.0) /* the first of several shares */
		return;
	*start_sec = psd_worker_now(worker);
	psd_interpreter_departed(&worker->interpreter);
}

void psd_worker_record_arrival(struct psd_worker *worker, unsigned peer, struct psd_task task, uint64_t bytes)
{
	double *start_sec = &worker->peers[peer].ops[task.op].start_sec;

	const struct psd_payload payload = psd_op_payload(&worker->host.program->ops[task.op], task.iteration);

	if (worker->replay)
		bytes = psd_payload_bytes_between(&payload, worker->host.layout, peer, worker->host.self);
	if (worker->host.options->span)
		record(worker, (struct psd_span){.task = task,
						 .is_arrival = true,
						 .bytes = bytes,
						 .start_sec = *start_sec,
						 .end_sec = psd_worker_now(worker),
						 .peer = peer});
	*start_sec = 0.0;
}
