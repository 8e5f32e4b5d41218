/* Lanes: threads that execute operations in place of the event loop's, or at once if that is faster than handing them
 * over. */
#define _POSIX_C_SOURCE 200809L /* nanosleep */
#include <assert.h>
#include <math.h>
#include <time.h>

#include "real/net/socket.h"
#include "real/session/worker_parts.h"
#include "real/work/sums.h"

#define MOST_LATE_SEC 0.01 /* time that a wait may be too long and later ones make up for */

enum psd_resource psd_worker_lane(const struct psd_worker *worker, uint32_t op)
{
	const struct psd_work_row *row = worker->work.rows[op];

	return row && row->follows_device && worker->host.kind->has_own_memory ? PSD_RESOURCE_DEVICE
									       : worker->host.program->ops[op].resource;
}

static bool is_asynchronous(const struct psd_worker *worker, enum psd_resource lane)
{
	if (lane == PSD_RESOURCE_NIC)
		return psd_sums_kind(&worker->work)->is_on_device;
	return lane != PSD_RESOURCE_CPU && worker->host.kind->is_asynchronous;
}

static enum psd_stream stream_of(enum psd_resource lane)
{
	switch (lane) {
	case PSD_RESOURCE_COPY_OUT: return PSD_STREAM_COPY_OUT;
	case PSD_RESOURCE_COPY_IN: return PSD_STREAM_COPY_IN;
	case PSD_RESOURCE_NIC: return PSD_STREAM_SUMS;
	case PSD_RESOURCE_DEVICE:
	case PSD_RESOURCE_CPU:
	case PSD_RESOURCES: break;
	}
	return PSD_STREAM_COMPUTE;
}

/* Work of an asynchronous device is between two marks; its preparation is before them. */
static void carry_out(struct psd_worker *worker, enum psd_resource lane, struct psd_job *job)
{
	const struct psd_host *host = &worker->host;
	const struct psd_work_row *row = worker->work.rows[job->task.op];
	const bool is_marked = is_asynchronous(worker, lane);

	if (row && row->prepare)
		job->status = row->prepare(&worker->work, job->task, &job->err);
	if (!job->status && is_marked)
		job->first_mark = host->kind->mark(host->device, stream_of(lane));
	if (!job->status && row)
		job->status = row->run(&worker->work, job->task, &job->err);
	if (!job->status && is_marked)
		job->mark = host->kind->mark(host->device, stream_of(lane));
	job->is_marked = !job->status && is_marked;
}

double psd_worker_speed_ratio(const struct psd_worker *worker)
{
	const unsigned node = psd_layout_node(worker->host.layout, worker->host.self);

	return psd_scenario_compute_ratio(worker->host.options->made->costed->scenario, node);
}

/* Returns the factor by which work of a processor takes longer on the emulated device, of a slow node or group. */
static double slowed_ratio(const struct psd_worker *worker)
{
	const double of_group = worker->host.options->slowed_ratio;

	return (of_group > 0.0 ? of_group : 1.0) / psd_worker_speed_ratio(worker);
}

static bool is_slowed(const struct psd_worker *worker, enum psd_resource lane)
{
	return lane == PSD_RESOURCE_DEVICE && slowed_ratio(worker) > 1.0;
}

/* Waits for as long as the emulated device would still work. A wait that ends late shortens later ones, unless this
 * machine has stood still. */
static void slow_down(struct psd_worker *worker, struct psd_job *job)
{
	const double from_sec = psd_worker_now(worker);

	worker->owed_sec += (slowed_ratio(worker) - 1.0) * job->busy_sec;
	if (worker->owed_sec > 0.0) {
		const struct timespec wait = {(time_t)worker->owed_sec,
					      (long)(1e9 * (worker->owed_sec - floor(worker->owed_sec)))};

		(void)nanosleep(&wait, NULL); /* a signal shortens it, and the rest stays owed */
	}
	const double waited_sec = psd_worker_now(worker) - from_sec;
	worker->owed_sec = fmax(worker->owed_sec - waited_sec, -MOST_LATE_SEC);
	job->sec += waited_sec;
	job->busy_sec += waited_sec;
}

/* The whole job, or with an asynchronous device the part that begins it. */
static void task_job(void *context)
{
	struct psd_job *job = context;
	struct psd_worker *worker = job->worker;
	const enum psd_resource lane = psd_worker_lane(worker, job->task.op);
	const double queued_cpu_sec = psd_machine_own_sec();

	if (job->is_test)
		psd_worker_test(job);
	const double begun_cpu_sec = psd_machine_own_sec();

	job->start_sec = psd_worker_now(worker);
	if (!job->status)
		carry_out(worker, lane, job);
	job->sec = psd_worker_now(worker) - job->start_sec;
	job->cpu_sec = psd_machine_own_sec() - begun_cpu_sec;
	job->busy_sec = worker->host.options->train->threads > 1 ? job->sec : job->cpu_sec;
	if (is_slowed(worker, lane))
		slow_down(worker, job);
	job->cpu_sec += begun_cpu_sec - queued_cpu_sec;
}

/* Time of an asynchronous job: a device without work waits, so it began when the one before was over. Every job is
 * waited for, since spans, measured times and the search for stalled hosts need its end. */
static void finish_job(void *context)
{
	struct psd_job *job = context;
	struct psd_worker *worker = job->worker;

	if (!job->is_marked)
		return;
	const enum psd_resource lane = psd_worker_lane(worker, job->task.op);
	struct psd_jobs *jobs = &worker->jobs[lane];
	job->status = worker->host.kind->wait(worker->host.device, stream_of(lane), job->mark, &job->err);
	const double over_sec = psd_worker_now(worker);
	job->busy_sec =
		worker->host.kind->between_sec(worker->host.device, stream_of(lane), job->first_mark, job->mark);
	job->start_sec = fmax(fmax(job->start_sec, jobs->over_sec), over_sec - job->busy_sec);
	job->sec = over_sec - job->start_sec;
	jobs->over_sec = over_sec;
}

/* True if nobody would notice that the event loop's thread stands still. */
static bool is_unwatched(const struct psd_worker *worker)
{
	return worker->host.n_hosts == 1 && !worker->host.options->pulse;
}

static bool is_done_at_once(const struct psd_worker *worker, const struct psd_op *op)
{
	const uint32_t o = (uint32_t)(op - worker->host.program->ops);

	if (psd_worker_lane(worker, o) != op->resource || is_asynchronous(worker, op->resource) ||
	    is_slowed(worker, op->resource) || is_unwatched(worker))
		return false;
	return psd_work_is_small(&worker->work, op, worker->last_sec[o]);
}

struct psd_job *psd_worker_job(struct psd_worker *worker, enum psd_resource lane)
{
	struct psd_jobs *jobs = &worker->jobs[lane];

	return &jobs->jobs[jobs->n_over % PSD_LANE_JOBS];
}

void psd_worker_work(void *context, unsigned host, enum psd_resource resource, struct psd_task task, double sec)
{
	struct psd_worker *worker = context;
	const struct psd_op *op = &worker->host.program->ops[task.op];
	const enum psd_resource lane = psd_worker_lane(worker, task.op);
	struct psd_jobs *jobs = &worker->jobs[lane];
	struct psd_job *job = &jobs->jobs[jobs->n_queued % PSD_LANE_JOBS];
	/* a device may still execute earlier work; in this processor's memory there is nothing to copy */
	const bool is_nothing = !jobs->has_lane || (!worker->work.rows[task.op] && !is_asynchronous(worker, lane));

	(void)host, (void)sec; /* the real time is measured */
	/* the device keeps the last loss only: a gate of the program ensures that it was read */
	assert(!psd_ops[op->kind].is_forward || psd_program_layers(worker->host.graph, op->layer).first > 0 ||
	       worker->losses.n_own == task.iteration);
	psd_worker_watch_load(worker, task.iteration);
	if (is_nothing) {
		worker->is_over[resource] = true;
		return;
	}
	*job = (struct psd_job){.worker = worker,
				.task = task,
				.queued_sec = psd_socket_now_sec(),
				.is_test = psd_worker_takes_test(worker, task)};
	jobs->n_queued++;
	if (!job->is_test && is_done_at_once(worker, op)) {
		psd_worker_beat_at(worker, task, job->queued_sec);
		task_job(job);
		job->is_done_at_once = true;
	} else {
		psd_lane_start(&jobs->lane, task_job, job);
	}
}

/* ---- opening ---- */

static enum psd_status open_lane(struct psd_worker *worker, enum psd_resource lane, bool is_of_device,
				 struct psd_error *err)
{
	struct psd_jobs *jobs = &worker->jobs[lane];
	const enum psd_status status =
		psd_lane_open(&jobs->lane, worker->wake_fd, is_of_device ? finish_job : NULL, err);

	jobs->has_lane = !status;
	return status;
}

/* Copies get threads of their own where they exist. */
enum psd_status psd_worker_open_lanes(struct psd_worker *worker, struct psd_error *err)
{
	static const enum psd_resource lanes[] = {PSD_RESOURCE_DEVICE, PSD_RESOURCE_CPU, PSD_RESOURCE_COPY_OUT,
						  PSD_RESOURCE_COPY_IN};
	const unsigned n = worker->host.kind->has_own_memory ? 4 : 2;

	for (unsigned i = 0; i < n; i++)
		PSD_TRY(open_lane(worker, lanes[i], is_asynchronous(worker, lanes[i]), err));
	return PSD_OK;
}

struct opening {
	struct psd_job job; /* first, for the lane's second stage */
	const union psd_wire_payload *invitation;
};

static void open_job(void *context)
{
	struct opening *opening = context;

	opening->job.status = psd_sums_open(&opening->job.worker->work, opening->invitation, &opening->job.err);
}

enum psd_status psd_worker_open_sums(struct psd_worker *worker, const union psd_wire_payload *invitation,
				     struct psd_error *err)
{
	struct opening opening = {.job.worker = worker, .invitation = invitation};

	PSD_TRY(open_lane(worker, PSD_RESOURCE_NIC, is_asynchronous(worker, PSD_RESOURCE_NIC), err));
	psd_lane_run(&worker->jobs[PSD_RESOURCE_NIC].lane, open_job, &opening);
	if (opening.job.status)
		*err = opening.job.err;
	return opening.job.status;
}
