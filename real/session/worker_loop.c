/* Event loop of a worker: tells the interpreter what is over, and executes what comes next. */
#include <math.h>

#include "real/net/socket.h"
#include "real/session/worker_parts.h"

#define LONGEST_TURN_SEC 0.5

enum psd_status psd_worker_out_of_memory(struct psd_error *err)
{
	return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a worker");
}

double psd_worker_now(void *context)
{
	const struct psd_worker *worker = context;

	return worker->timers.firing ? worker->timers.firing->due_sec
				     : (psd_socket_now_sec() - worker->start_sec) / worker->dilation_ratio;
}

/* Ends an operation of a lane. */
static void finish_task(struct psd_worker *worker, const struct psd_job *job)
{
	const struct psd_op *op = &worker->program->ops[job->task.op];

	if (op->kind != PSD_OP_COLLECTIVE) /* messages count as work beside jobs */
		worker->load.jobs_cpu_sec += job->cpu_sec;
	worker->liveness.longest_sec[job->task.op] = fmax(worker->liveness.longest_sec[job->task.op], job->sec);
	if (op->resource == PSD_RESOURCE_DEVICE)
		psd_interpreter_worked(&worker->interpreter, 0, job->busy_sec);
	if (op->kind == PSD_OP_CHOOSE)
		psd_chunk_selection_adopt(&worker->selection);
	if (op->kind == PSD_OP_FORWARD || op->kind == PSD_OP_BACKWARD)
		worker->last_sec[job->task.op] = job->sec;
	if (op->kind == PSD_OP_FORWARD && psd_program_layers(worker->graph, op->layer).end == worker->graph->n_layers)
		psd_worker_report(worker, job->task.iteration, worker->kind->loss(worker->device),
				  worker->kind->correct(worker->device));
	if (op->kind == PSD_OP_COLLECTIVE) /* it tells the interpreter itself */
		psd_worker_summed(worker, job->task);
	else
		psd_interpreter_finished(&worker->interpreter, 0, op->resource);
}

/* Ends a job of a lane. */
static enum psd_status finish_job(struct psd_worker *worker, enum psd_resource lane, struct psd_error *err)
{
	const struct psd_job *job = psd_worker_job(worker, lane);

	if (job->status) {
		*err = job->err;
		return job->status;
	}
	(job->is_pause ? psd_worker_go_on : finish_task)(worker, job);
	worker->jobs[lane].n_over++;
	return PSD_OK;
}

static bool take_job_done(struct psd_worker *worker, enum psd_resource lane)
{
	struct psd_job *job = psd_worker_job(worker, lane);

	if (!job->is_done_at_once)
		return worker->jobs[lane].has_lane && psd_lane_take_done(&worker->jobs[lane].lane);
	job->is_done_at_once = false;
	return true;
}

/* Tells the interpreter all that is over; what it starts may be over at once. */
static enum psd_status settle(struct psd_worker *worker, bool *has_moved, struct psd_error *err)
{
	enum psd_status status = PSD_OK;
	bool has_news = true;

	while (has_news && !status && !worker->status) {
		has_news = false;
		status = psd_connections_flush(worker->connections, err);
		for (int r = 0; r < PSD_RESOURCES && !status; r++)
			if (worker->is_over[r]) {
				worker->is_over[r] = false;
				psd_interpreter_finished(&worker->interpreter, 0, (enum psd_resource)r);
				has_news = true;
			}
		if (!status && psd_worker_take_timer(worker))
			has_news = true;
		for (int r = 0; r < PSD_RESOURCES && !status; r++)
			if (take_job_done(worker, (enum psd_resource)r)) {
				status = finish_job(worker, (enum psd_resource)r, err);
				has_news = true;
			}
		has_news = has_news || worker->transfer.has_left;
		worker->transfer.has_left = false;
		if (!status && psd_worker_take_steps_done(worker)) {
			psd_worker_transfer_is_over(worker, worker->transfer.task);
			has_news = true;
		}
		has_news = psd_worker_pause(worker) || has_news;
		if (!status && has_news)
			status = psd_connections_resume(worker->connections, err);
		*has_moved = *has_moved || has_news;
	}
	psd_worker_await_timer(worker);
	return status ? status : worker->status;
}

/* True beside a library's sum: the NIC's lane has no other job. */
static bool is_busy(const struct psd_worker *worker)
{
	for (int r = 0; r < PSD_RESOURCES; r++)
		if (r != PSD_RESOURCE_NIC && worker->jobs[r].has_lane && psd_lane_is_busy(&worker->jobs[r].lane))
			return true;
	return psd_worker_has_timer(worker);
}

static bool is_computing(const struct psd_worker *worker)
{
	const struct psd_jobs *sums = &worker->jobs[PSD_RESOURCE_NIC];

	return is_busy(worker) || (sums->has_lane && psd_lane_is_busy(&sums->lane));
}

enum psd_status psd_worker_turn(struct psd_worker *worker, double within_sec, struct psd_error *err)
{
	const double longest_sec = fmin(worker->options->stall_sec / 10, LONGEST_TURN_SEC);
	const int within_ms = (int)ceil(1e3 * fmin(within_sec, longest_sec));
	bool has_moved = false, has_settled = false;
	enum psd_status status = psd_connections_turn(worker->connections, within_ms, &has_moved, err);

	psd_worker_beat(worker, PSD_PULSE_TURNING);
	psd_worker_send_heartbeat(worker, is_computing(worker), is_busy(worker));
	if (!status)
		status = settle(worker, &has_settled, err); /* sends its messages, too */
	if (has_moved || has_settled || is_computing(worker))
		worker->liveness.last_move_sec = psd_worker_now(worker);
	return status ? status : psd_worker_check_stall(worker, err);
}

enum psd_status psd_worker_begin(struct psd_worker *worker, struct psd_error *err)
{
	const uint32_t next_pause = psd_worker_next_pause(worker, worker->options->first_iteration);
	bool has_moved = false;
	enum psd_status status;

	psd_worker_beat(worker, PSD_PULSE_TURNING);
	worker->start_sec = worker->liveness.turned_sec = worker->liveness.awake_sec = psd_socket_now_sec();
	worker->liveness.last_move_sec = 0.0;
	worker->phase = PSD_PHASE_GOING;
	if (worker->options->first_iteration == worker->options->n_iterations)
		return psd_connections_resume(worker->connections, err);
	if (next_pause > 0 && worker->duties.n_carried > 0)
		psd_interpreter_set_fence(&worker->interpreter, 0, next_pause);
	psd_interpreter_begin(&worker->interpreter);
	status = psd_connections_resume(worker->connections, err);
	return status ? status : settle(worker, &has_moved, err);
}
