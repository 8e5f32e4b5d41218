/* Event loop of a worker: tells the interpreter what is over, and executes what comes next. */
#include <math.h>

#include "real/net/socket.h"
#include "real/session/worker_parts.h"

#define LONGEST_TURN_SEC 0.5

/* Ends an operation of a lane. */
static void finish_task(struct psd_worker *worker, const struct psd_job *job)
{
	const struct psd_op *op = &worker->host.program->ops[job->task.op];

	if (!psd_op_is_collective(op)) /* messages count as work beside jobs */
		worker->load.jobs_cpu_sec += job->cpu_sec;
	worker->liveness.longest_sec[job->task.op] = fmax(worker->liveness.longest_sec[job->task.op], job->sec);
	if (op->resource == PSD_RESOURCE_DEVICE)
		psd_interpreter_worked(&worker->interpreter, 0, job->busy_sec);
	if (worker->work.rows[job->task.op] && worker->work.rows[job->task.op]->finish)
		worker->work.rows[job->task.op]->finish(&worker->work, job->task);
	worker->last_sec[job->task.op] = job->sec;
	if (psd_op_ends_forward(op, worker->host.graph))
		psd_worker_report(worker, job->task, worker->host.kind->loss(worker->host.device),
				  worker->host.kind->correct(worker->host.device));
	if (psd_op_is_collective(op)) /* it tells the interpreter itself */
		psd_worker_summed(worker, job->task);
	else
		psd_interpreter_finished(&worker->interpreter, 0, op->resource);
}

/* ---- ends of timers ---- */

/* Reports progress at the end of the last forward operation. */
static void report_progress(struct psd_worker *worker, const struct psd_timer *timer)
{
	const struct psd_op *op = &worker->host.program->ops[timer->task.op];

	if (psd_op_ends_forward(op, worker->host.graph))
		psd_worker_report(worker, timer->task, 0.0, 0);
}

static void fire(struct psd_worker *worker, enum psd_resource resource, const struct psd_timer *timer)
{
	if (psd_op_is_collective(&worker->host.program->ops[timer->task.op])) {
		psd_worker_continue(worker);
	} else {
		report_progress(worker, timer);
		psd_interpreter_finished(&worker->interpreter, 0, resource);
	}
}

/* Ends the operation of the timer that ended first, if one has. */
static bool take_timer(struct psd_worker *worker)
{
	struct psd_timer timer;

	if (!psd_timers_take(&worker->timers, &timer))
		return false;
	worker->timers.firing = &timer;
	fire(worker, timer.resource, &timer);
	worker->timers.firing = NULL;
	return true;
}

/* Makes the next wait of the event loop end when the next timer ends. */
static void await_timer(struct psd_worker *worker)
{
	const struct psd_timer *first = psd_timers_first(&worker->timers);

	if (first)
		psd_connections_wake_at(worker->connections, psd_timers_due(&worker->timers, first));
}

/* ---- ends of jobs ---- */

/* Ends a job of a lane. */
static enum psd_status finish_job(struct psd_worker *worker, enum psd_resource lane, struct psd_error *err)
{
	const struct psd_job *job = psd_worker_job(worker, lane);

	if (job->status) {
		*err = job->err;
		return job->status;
	}
	if (job->is_test && !job->is_pause)
		psd_worker_tested(worker, job);
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
		if (!status && take_timer(worker))
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
	await_timer(worker);
	return status ? status : worker->status;
}

/* True beside a library's sum: the NIC's lane has no other job. */
static bool is_busy(const struct psd_worker *worker)
{
	for (int r = 0; r < PSD_RESOURCES; r++)
		if (r != PSD_RESOURCE_NIC && worker->jobs[r].has_lane && psd_lane_is_busy(&worker->jobs[r].lane))
			return true;
	return psd_timers_first(&worker->timers);
}

static bool is_computing(const struct psd_worker *worker)
{
	const struct psd_jobs *sums = &worker->jobs[PSD_RESOURCE_NIC];

	return is_busy(worker) || (sums->has_lane && psd_lane_is_busy(&sums->lane));
}

enum psd_status psd_worker_turn(struct psd_worker *worker, double within_sec, struct psd_error *err)
{
	const double longest_sec = fmin(worker->host.options->stall_sec / 10, LONGEST_TURN_SEC);
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
	const uint32_t next_pause = psd_worker_next_pause(worker, worker->host.options->first_iteration);
	bool has_moved = false;

	psd_worker_beat(worker, PSD_PULSE_TURNING);
	worker->timers.start_sec = worker->liveness.turned_sec = worker->liveness.awake_sec = psd_socket_now_sec();
	worker->liveness.last_move_sec = 0.0;
	worker->phase = PSD_PHASE_GOING;
	if (worker->host.options->first_iteration == worker->host.options->n_iterations)
		return psd_connections_resume(worker->connections, err);
	if (next_pause > 0 && worker->duties.n_carried > 0)
		psd_interpreter_set_fence(&worker->interpreter, 0, next_pause);
	psd_interpreter_begin(&worker->interpreter);
	PSD_TRY(psd_connections_resume(worker->connections, err));
	return settle(worker, &has_moved, err);
}
