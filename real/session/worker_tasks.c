/* Work of the device and the CPU: layers, rebuilds, updates. It runs on threads of their own, or at once if that is
 * faster than handing it over. */
#define _GNU_SOURCE
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "real/net/socket.h"
#include "real/session/solver.h"
#include "real/session/worker_parts.h"

/* Largest work that runs at once: handing it to a lane takes some 30 us, 9 of them of processors (gaps in a trace of
 * scenarios/execute/cifar10-quick.yaml, two workers on two cores of an AMD EPYC); adding or updating this many elements
 * some 5. */
enum { SMALL_ELEMENTS = 8192 };
#define SMALL_SEC 20e-6

/* ---- layers ---- */

/* Begins to copy an iteration's samples to the device. */
static enum psd_status fetch(struct psd_worker *worker, uint32_t iteration, struct psd_samples samples,
			     struct psd_error *err)
{
	const struct psd_batch batch = {.images = samples.images, .labels = samples.labels};
	const enum psd_status status = worker->kind->fetch(worker->device, &batch, err);

	if (!status)
		worker->sample_copies.marks[iteration % 2] = worker->kind->mark(worker->device, PSD_STREAM_SAMPLES);
	worker->sample_copies.is_ahead = !status;
	return status;
}

/* Copies the next iteration's samples as soon as they are read. */
static enum psd_status fetch_ahead(struct psd_worker *worker, uint32_t iteration, struct psd_error *err)
{
	struct psd_samples samples;

	if (!worker->kind->fetch || worker->sample_copies.is_ahead || !psd_feed_look(worker->feed, &samples))
		return PSD_OK;
	return fetch(worker, iteration + 1, samples, err);
}

/* The next samples replace those of the iteration before, which must have been copied. */
static enum psd_status wait_for_fetched(struct psd_worker *worker, uint32_t iteration, struct psd_error *err)
{
	if (!worker->kind->fetch || iteration == worker->options->first_iteration)
		return PSD_OK;
	return worker->kind->wait(worker->device, PSD_STREAM_SAMPLES, worker->sample_copies.marks[(iteration - 1) % 2],
				  err);
}

static enum psd_status begin_iteration(struct psd_worker *worker, uint32_t iteration, struct psd_error *err)
{
	struct psd_batch batch = {
		.iteration = iteration,
		.first_sample = (uint64_t)worker->self * worker->options->made->costed->scenario->batch_per_worker,
		.is_training = true,
		.is_fetched = worker->kind->fetch,
	};
	struct psd_samples samples;
	enum psd_status status = wait_for_fetched(worker, iteration, err);

	if (!status)
		status = psd_feed_train(worker->feed, iteration, &samples, err);
	if (!status && worker->kind->fetch && !worker->sample_copies.is_ahead)
		status = fetch(worker, iteration, samples, err);
	if (status)
		return status;
	worker->sample_copies.is_ahead = false;
	batch.images = samples.images;
	batch.labels = samples.labels;
	batch.gradients = worker->computed_gradients +
			  (size_t)(iteration % worker->memory.n_under_way) * worker->graph->n_tensors;
	return worker->kind->begin(worker->device, &batch, err);
}

enum psd_status psd_worker_pass(struct psd_worker *worker, struct psd_pass pass, struct psd_error *err)
{
	const struct psd_device_kind *kind = worker->kind;
	enum psd_status status = PSD_OK;

	if (kind->pass)
		return kind->pass(worker->device, &pass, err);
	for (unsigned l = pass.first; l < pass.end && !pass.is_backward && !status; l++)
		status = kind->forward(worker->device, l, err);
	for (unsigned l = pass.end; l-- > pass.first && pass.is_backward && !status;)
		status = kind->backward(worker->device, l, err);
	return status;
}

static enum psd_status run_forward(struct psd_worker *worker, struct psd_task task, struct psd_error *err)
{
	const struct psd_layers layers = psd_program_layers(worker->graph, worker->program->ops[task.op].layer);
	const enum psd_status status = psd_worker_pass(worker, (struct psd_pass){layers.first, layers.end, false}, err);

	return status ? status : fetch_ahead(worker, task.iteration, err);
}

/* Copies a factor, since the next forward would overwrite it while it is being sent. */
static enum psd_status keep_factors(struct psd_worker *worker, unsigned layer, uint32_t iteration,
				    struct psd_error *err)
{
	enum psd_status status = PSD_OK;

	for (unsigned i = 0; i < worker->plan->n_items && !status; i++) {
		const struct psd_plan_item *item = &worker->plan->items[i];
		struct psd_factors kept;

		if (item->layer != layer || worker->computed_gradients[psd_plan_tensor(worker->plan, item, 0)])
			continue;
		kept = psd_memory_factors(worker->on_device, i, iteration, worker->self);
		status = worker->kind->keep_factors(worker->device, layer, &kept, err);
	}
	return status;
}

static enum psd_status run_backward(struct psd_worker *worker, struct psd_task task, struct psd_error *err)
{
	const unsigned named = worker->program->ops[task.op].layer;
	const struct psd_layers layers = psd_program_layers(worker->graph, named);
	enum psd_status status = psd_worker_pass(worker, (struct psd_pass){layers.first, layers.end, true}, err);

	if (!status)
		status = keep_factors(worker, named, task.iteration, err);
	return status ? status : fetch_ahead(worker, task.iteration, err);
}

/* ---- updates ---- */

/* One GEMM over all workers' samples, in order of rank: every host gets the same bits. */
static enum psd_status run_factor(struct psd_worker *worker, struct psd_task task, struct psd_error *err)
{
	const unsigned i = (unsigned)worker->program->ops[task.op].item;
	const struct psd_plan_item *item = &worker->plan->items[i];
	const struct psd_factors factors = psd_memory_factors(worker->on_device, i, task.iteration, 0);
	float *const *gradients = psd_memory_gradients(worker->on_device, task.iteration) +
				  psd_plan_tensor(worker->plan, item, 0); /* weight, then bias */

	return worker->kind->rebuild(worker->device, &factors, worker->layout->workers * item->subject.batch,
				     (uint32_t)item->subject.rows, (uint32_t)item->subject.columns, gradients[0],
				     item->n_tensors > 1 ? gradients[1] : NULL, err);
}

/* Gradients whose momentum and weight decay were applied before sending get none here. */
static struct psd_update update_of(const struct psd_worker *worker, const struct psd_plan_item *item,
				   uint32_t iteration)
{
	struct psd_update update = psd_solver_update(worker->options->train, worker->global_batch, iteration);

	if (psd_plan_keeps(worker->plan, item, PSD_BUFFER_VELOCITY))
		return (struct psd_update){.rate = update.rate};
	return update;
}

bool psd_worker_skips(const struct psd_worker *worker, const struct psd_op *op)
{
	const struct psd_scale *scales = psd_worker_scale(worker, op);
	bool is = false;

	for (unsigned s = 0; s < worker->plan->items[op->item].n_slices; s++)
		is = is || scales[s].is_skipped;
	return is;
}

static enum psd_status run_apply(struct psd_worker *worker, struct psd_task task, struct psd_error *err)
{
	const struct psd_op *op = &worker->program->ops[task.op];
	const unsigned i = (unsigned)op->item;
	const struct psd_plan_item *item = &worker->plan->items[i];
	const uint32_t made = task.iteration - op->lag;
	const struct psd_update update = update_of(worker, item, made);
	float *const *gradients = psd_memory_gradients(worker->on_device, made);
	struct psd_moments moments = psd_memory_moments(worker->on_device, i);
	float *master = psd_memory_master(worker->on_device, i);
	enum psd_status status = PSD_OK;

	if (psd_worker_skips(worker, op))
		return PSD_OK;
	for (unsigned n = 0; n < item->n_tensors && !status; n++) {
		const unsigned t = psd_plan_tensor(worker->plan, item, n);
		const uint64_t elements = worker->graph->tensors[t].elements;
		const struct psd_update own = psd_solver_update_of(update, &worker->graph->tensors[t]);

		if (worker->plan->clips)
			status = worker->kind->shrink(worker->device, gradients[t], elements, worker->clip.ratio, err);
		if (!status)
			status = worker->kind->apply(worker->device, &own,
						     master ? master : worker->on_device->parameters[t], gradients[t],
						     moments, elements, err);
		moments = psd_moments_from(moments, elements);
		master = master ? master + elements : NULL;
	}
	return status;
}

/* ---- jobs ---- */

static bool is_of_chunks(const struct psd_worker *worker, struct psd_task task)
{
	return worker->plan->items[worker->program->ops[task.op].item].method->keeps[PSD_BUFFER_CHOSEN];
}

typedef enum psd_status run_fn(struct psd_worker *worker, struct psd_task task, struct psd_error *err);

/* The first late updates belong to no iteration. */
static enum psd_status apply_nothing(struct psd_worker *worker, struct psd_task task, struct psd_error *err)
{
	(void)worker, (void)task, (void)err;
	return PSD_OK;
}

static run_fn *applier_of(const struct psd_worker *worker, struct psd_task task)
{
	if (task.iteration < worker->program->ops[task.op].lag)
		return apply_nothing;
	if (worker->plan->local)
		return psd_worker_join_steps;
	return is_of_chunks(worker, task) ? psd_worker_apply_chunks : run_apply;
}

static enum psd_status run_task(struct psd_worker *worker, struct psd_task task, struct psd_error *err)
{
	switch (worker->program->ops[task.op].kind) {
	case PSD_OP_FORWARD: return run_forward(worker, task, err);
	case PSD_OP_BACKWARD: return run_backward(worker, task, err);
	case PSD_OP_FACTOR: return run_factor(worker, task, err);
	case PSD_OP_APPLY: return applier_of(worker, task)(worker, task, err);
	case PSD_OP_MEASURE: return psd_worker_measure_gradient(worker, task, err);
	case PSD_OP_CLIP: return psd_worker_find_clip(worker, err);
	case PSD_OP_STEP: return psd_worker_step_alone(worker, task, err);
	case PSD_OP_GATHER: return psd_worker_gather_chunks(worker, task, err);
	case PSD_OP_CHOOSE: psd_worker_choose_chunks(worker, task); return PSD_OK;
	case PSD_OP_CONVERT: return psd_worker_convert(worker, task, err);
	case PSD_OP_PACK: return psd_worker_pack(worker, task, err);
	case PSD_OP_UNPACK: return psd_worker_unpack(worker, task, err);
	case PSD_OP_REPACK: psd_worker_repack(worker, task); return PSD_OK;
	case PSD_OP_PROJECT: return psd_worker_project(worker, task, err);
	case PSD_OP_FIT: return psd_worker_fit(worker, task, err);
	case PSD_OP_EXPAND: return psd_worker_expand(worker, task, err);
	case PSD_OP_SUM: return psd_worker_sum_node(worker, task, err);
	case PSD_OP_REDUCE: return psd_worker_reduce(worker, task, err);
	case PSD_OP_COPY_OUT:
	case PSD_OP_COPY_IN: return psd_worker_copy(worker, task, err);
	case PSD_OP_COLLECTIVE: return psd_worker_sum(worker, task, err);
	case PSD_OP_BARRIER:
	case PSD_OP_SEND:
	case PSD_OP_RECEIVE:
	case PSD_OP_GATE:
	case PSD_OP_NEXT:
	case PSD_OP_KINDS: break;
	}
	return PSD_OK;
}

/* Gathering chunks runs beside the layers, except on the device. */
enum psd_resource psd_worker_lane(const struct psd_worker *worker, const struct psd_op *op)
{
	return op->kind == PSD_OP_GATHER && worker->kind->has_own_memory ? PSD_RESOURCE_DEVICE : op->resource;
}

static bool is_asynchronous(const struct psd_worker *worker, enum psd_resource lane)
{
	if (lane == PSD_RESOURCE_NIC)
		return worker->library_kind->is_on_device;
	return lane != PSD_RESOURCE_CPU && worker->kind->is_asynchronous;
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

static bool is_first(const struct psd_worker *worker, const struct psd_op *op)
{
	return op->kind == PSD_OP_FORWARD && psd_program_layers(worker->graph, op->layer).first == 0;
}

/* Work of an asynchronous device is between two marks; its waiting for samples is before them. */
static void carry_out(struct psd_worker *worker, enum psd_resource lane, struct psd_job *job)
{
	const bool is_marked = is_asynchronous(worker, lane);

	if (!job->status && is_first(worker, &worker->program->ops[job->task.op]))
		job->status = begin_iteration(worker, job->task.iteration, &job->err);
	if (!job->status && is_marked)
		job->first_mark = worker->kind->mark(worker->device, stream_of(lane));
	if (!job->status)
		job->status = run_task(worker, job->task, &job->err);
	if (!job->status && is_marked)
		job->mark = worker->kind->mark(worker->device, stream_of(lane));
	job->is_marked = !job->status && is_marked;
}

/* The whole job, or with an asynchronous device the part that begins it. */
static void task_job(void *context)
{
	struct psd_job *job = context;
	struct psd_worker *worker = job->worker;
	const enum psd_resource lane = psd_worker_lane(worker, &worker->program->ops[job->task.op]);
	const double begun_cpu_sec = psd_machine_own_sec();

	job->start_sec = psd_worker_now(worker);
	carry_out(worker, lane, job);
	job->sec = psd_worker_now(worker) - job->start_sec;
	job->cpu_sec = psd_machine_own_sec() - begun_cpu_sec;
	job->busy_sec = worker->options->train->threads > 1 ? job->sec : job->cpu_sec;
}

/* Time of an asynchronous job: a device without work waits, so it began when the one before was over. Every job is
 * waited for, since spans, measured times and the search for stalled hosts need its end. */
void psd_worker_finish_job(void *context)
{
	struct psd_job *job = context;
	struct psd_worker *worker = job->worker;
	enum psd_resource lane;
	struct psd_jobs *jobs;

	if (!job->is_marked)
		return;
	lane = psd_worker_lane(worker, &worker->program->ops[job->task.op]);
	jobs = &worker->jobs[lane];
	job->status = worker->kind->wait(worker->device, stream_of(lane), job->mark, &job->err);
	const double over_sec = psd_worker_now(worker);
	job->busy_sec = worker->kind->between_sec(worker->device, stream_of(lane), job->first_mark, job->mark);
	job->start_sec = fmax(fmax(job->start_sec, jobs->over_sec), over_sec - job->busy_sec);
	job->sec = over_sec - job->start_sec;
	jobs->over_sec = over_sec;
}

/* Elements that are read. */
static uint64_t elements_of(const struct psd_worker *worker, const struct psd_op *op)
{
	const struct psd_plan_item *item = &worker->plan->items[op->item];

	if (op->kind == PSD_OP_REDUCE)
		return psd_memory_own_part(&worker->memory, (unsigned)op->item, op->slice).elements *
		       (item->method->joins_nodes ? worker->layout->nodes : worker->layout->workers);
	if (op->kind == PSD_OP_REPACK)
		return psd_memory_own_blocks(&worker->memory, (unsigned)op->item).elements *
		       worker->plan->block.elements * worker->layout->workers;
	if (op->kind == PSD_OP_SUM)
		return psd_plan_slice(item, op->slice).elements * (psd_layout_n_led(worker->layout, worker->self) + 1);
	return item->subject.elements;
}

/* True for layers that were fast last time; never the first layer, which may wait for its batch, nor where OpenMP would
 * need threads. Nothing is received meanwhile. */
static bool is_small_layer(const struct psd_worker *worker, const struct psd_op *op)
{
	const double last_sec = worker->last_sec[op - worker->program->ops];

	return !is_first(worker, op) && worker->options->train->threads == 1 && last_sec > 0.0 && last_sec < SMALL_SEC;
}

/* True for products too small for OpenMP's threads. */
static bool has_small_products(const struct psd_worker *worker, const struct psd_op *op)
{
	return (op->kind == PSD_OP_PROJECT || op->kind == PSD_OP_FIT || op->kind == PSD_OP_EXPAND) &&
	       worker->options->train->threads == 1 &&
	       elements_of(worker, op) * worker->plan->low_rank <= SMALL_ELEMENTS;
}

/* True if nobody would notice that the event loop's thread stands still. */
static bool is_unwatched(const struct psd_worker *worker)
{
	return worker->n_hosts == 1 && !worker->options->pulse;
}

static bool is_done_at_once(const struct psd_worker *worker, const struct psd_op *op)
{
	if (psd_worker_lane(worker, op) != op->resource || is_asynchronous(worker, op->resource) ||
	    is_unwatched(worker))
		return false;
	if (op->kind == PSD_OP_FORWARD || op->kind == PSD_OP_BACKWARD)
		return is_small_layer(worker, op);
	if (op->kind == PSD_OP_CLIP)
		return true;
	return (op->kind == PSD_OP_SUM || op->kind == PSD_OP_REDUCE || op->kind == PSD_OP_APPLY ||
		op->kind == PSD_OP_MEASURE || op->kind == PSD_OP_STEP || op->kind == PSD_OP_CONVERT ||
		op->kind == PSD_OP_GATHER || op->kind == PSD_OP_CHOOSE || op->kind == PSD_OP_PACK ||
		op->kind == PSD_OP_REPACK || op->kind == PSD_OP_UNPACK || has_small_products(worker, op)) &&
	       elements_of(worker, op) <= SMALL_ELEMENTS;
}

struct psd_job *psd_worker_job(struct psd_worker *worker, enum psd_resource lane)
{
	struct psd_jobs *jobs = &worker->jobs[lane];

	return &jobs->jobs[jobs->n_over % PSD_LANE_JOBS];
}

void psd_worker_work(void *context, unsigned host, enum psd_resource resource, struct psd_task task, double sec)
{
	struct psd_worker *worker = context;
	const struct psd_op *op = &worker->program->ops[task.op];
	const enum psd_resource lane = psd_worker_lane(worker, op);
	struct psd_jobs *jobs = &worker->jobs[lane];
	struct psd_job *job = &jobs->jobs[jobs->n_queued % PSD_LANE_JOBS];
	/* a device may still execute earlier work; in this processor's memory there is nothing to copy */
	const bool is_nothing = !jobs->has_lane || (op->kind == PSD_OP_BARRIER && !is_asynchronous(worker, lane));

	(void)host, (void)sec; /* the real time is measured */
	/* the device keeps the last loss only: a gate of the program ensures that it was read */
	assert(!is_first(worker, op) || worker->losses.n_own == task.iteration);
	psd_worker_watch_load(worker, task.iteration);
	if (is_nothing) {
		worker->is_over[resource] = true;
		return;
	}
	*job = (struct psd_job){.worker = worker, .task = task, .queued_sec = psd_socket_now_sec()};
	jobs->n_queued++;
	if (is_done_at_once(worker, op)) {
		psd_worker_beat_at(worker, task, job->queued_sec);
		task_job(job);
		job->is_done_at_once = true;
	} else {
		psd_lane_start(&jobs->lane, task_job, job);
	}
}
