/* What the device and the CPU do for a worker: layers, rebuilds, updates, reductions; on their own threads, but for
 * what is done sooner than handed over. */
#define _GNU_SOURCE
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "real/net/socket.h"
#include "real/session/shard.h"
#include "real/session/solver.h"
#include "real/session/worker_parts.h"

/* Handing work to a lane and back takes some 30 us (the gaps between operations in a trace of
 * scenarios/execute/cifar10-quick.yaml, two workers on two cores of an AMD EPYC), 9 of them of processors; adding up or
 * updating so many elements some 5. */
enum { SMALL_ELEMENTS = 8192 };
#define SMALL_SEC 20e-6

/* ---- data and network ---- */

static uint32_t classes_of(const struct psd_graph *graph)
{
	for (unsigned l = graph->n_layers; l-- > 0;)
		if (graph->layers[l].kind->is_loss)
			return graph->layers[l].shape.channels;
	return 0;
}

struct psd_data_options psd_worker_data_options(const struct psd_graph *graph, const struct psd_train *train)
{
	return (struct psd_data_options){
		.source = train->data,
		.shape = graph->layers[0].shape,
		.classes = classes_of(graph),
		.seed = train->seed,
	};
}

enum psd_status psd_worker_count_samples(const struct psd_graph *graph, const struct psd_train *train,
					 uint64_t *samples, struct psd_error *err)
{
	const struct psd_data_options options = psd_worker_data_options(graph, train);
	struct psd_data *data;
	const enum psd_status status = psd_data_open(&data, &options, err);

	if (status)
		return status;
	*samples = psd_data_samples(data, PSD_DATA_TRAINING);
	psd_data_close(data);
	return PSD_OK;
}

static enum psd_status open_feed(struct psd_worker *worker, uint32_t batch, struct psd_error *err)
{
	const struct psd_feed_options options = {
		.data = psd_worker_data_options(worker->graph, worker->options->train),
		.batch = batch,
		.workers = worker->layout->workers,
		.worker = worker->self,
		.n_iterations = worker->options->n_iterations,
	};

	return psd_feed_open(&worker->feed, &options, err);
}

static bool is_worker(const struct psd_worker *worker)
{
	return psd_layout_is_worker(worker->layout, worker->self);
}

/* The device computes no gradient that is made from all workers' factors, here or elsewhere. */
static enum psd_status make_computed_gradients(struct psd_worker *worker, struct psd_error *err)
{
	const size_t n_tensors = worker->graph->n_tensors, n = worker->memory.n_under_way * n_tensors;

	worker->computed_gradients = psd_arena_take(&worker->arena, n * sizeof(*worker->computed_gradients));
	if (!worker->computed_gradients)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a table of gradients");
	memcpy(worker->computed_gradients, worker->memory.gradients, n * sizeof(*worker->computed_gradients));
	for (uint32_t o = 0; o < worker->program->n_ops; o++) {
		const struct psd_op *op = &worker->program->ops[o];
		const struct psd_plan_item *item = op->kind == PSD_OP_FACTOR ? &worker->plan->items[op->item] : NULL;

		for (unsigned i = 0; item && i < item->n_tensors; i++)
			for (size_t t = psd_plan_tensor(worker->plan, item, i); t < n; t += n_tensors)
				worker->computed_gradients[t] = NULL;
	}
	return PSD_OK;
}

static enum psd_status load_network(struct psd_worker *worker, uint32_t batch, struct psd_error *err)
{
	const struct psd_network_options options = {
		.batch = batch,
		.seed = worker->options->train->seed,
		.loss_divisor = (double)worker->global_batch,
	};
	const enum psd_status status = make_computed_gradients(worker, err);

	return status ? status
		      : worker->kind->load(worker->device, worker->graph, &options, worker->memory.parameters,
					   worker->computed_gradients, err);
}

static enum psd_status open_all(struct psd_worker *worker, struct psd_error *err)
{
	const struct psd_train *train = worker->options->train;
	const uint32_t batch = worker->options->made->matter->scenario->batch_per_worker;
	const struct psd_device_options options = {.n_threads = train->threads};
	enum psd_status status = worker->kind->open(&worker->device, &options, err);

	if (status)
		return status;
	psd_memory_fill_parameters(&worker->memory, train->seed);
	if (!is_worker(worker)) /* a server computes no layer */
		return PSD_OK;
	status = open_feed(worker, batch, err);
	return status ? status : load_network(worker, batch, err);
}

static void open_job(void *context)
{
	struct psd_job *job = context;

	job->status = open_all(job->worker, &job->err);
}

enum psd_status psd_worker_open_device(struct psd_worker *worker, struct psd_error *err)
{
	struct psd_job job = {.worker = worker};

	psd_lane_run(&worker->device_lane, open_job, &job);
	if (job.status)
		*err = job.err;
	return job.status;
}

/* ---- layers ---- */

static enum psd_status begin_iteration(struct psd_worker *worker, uint32_t iteration, struct psd_error *err)
{
	struct psd_batch batch = {
		.iteration = iteration,
		.first_sample = (uint64_t)worker->self * worker->options->made->matter->scenario->batch_per_worker,
		.is_training = true,
	};
	struct psd_samples samples;
	const enum psd_status status = psd_feed_train(worker->feed, iteration, &samples, err);

	if (status)
		return status;
	batch.images = samples.images;
	batch.labels = samples.labels;
	batch.gradients = worker->computed_gradients +
			  (size_t)(iteration % worker->memory.n_under_way) * worker->graph->n_tensors;
	return worker->kind->begin(worker->device, &batch, err);
}

static enum psd_status run_forward(struct psd_worker *worker, struct psd_task task, struct psd_error *err)
{
	const struct psd_layers layers = psd_program_layers(worker->graph, worker->program->ops[task.op].layer);
	enum psd_status status = layers.first == 0 ? begin_iteration(worker, task.iteration, err) : PSD_OK;

	for (unsigned l = layers.first; l < layers.end && !status; l++)
		status = worker->kind->forward(worker->device, l, err);
	return status;
}

/* A factor outlives its place in the network, which the next forward overwrites while peers may still be reading. */
static enum psd_status keep_factors(struct psd_worker *worker, unsigned layer, uint32_t iteration,
				    struct psd_error *err)
{
	enum psd_status status = PSD_OK;

	for (unsigned i = 0; i < worker->plan->n_items && !status; i++) {
		const struct psd_plan_item *item = &worker->plan->items[i];
		struct psd_factors kept;

		if (item->layer != layer || worker->computed_gradients[psd_plan_tensor(worker->plan, item, 0)])
			continue;
		kept = psd_memory_factors(&worker->memory, i, iteration, worker->self);
		status = worker->kind->keep_factors(worker->device, layer, &kept, err);
	}
	return status;
}

static enum psd_status run_backward(struct psd_worker *worker, struct psd_task task, struct psd_error *err)
{
	const unsigned named = worker->program->ops[task.op].layer;
	const struct psd_layers layers = psd_program_layers(worker->graph, named);
	enum psd_status status = PSD_OK;

	for (unsigned l = layers.end; l-- > layers.first && !status;) {
		status = worker->kind->backward(worker->device, l, err);
		if (l == named && !status)
			status = keep_factors(worker, l, task.iteration, err);
	}
	return status;
}

/* ---- gradients into parameters ---- */

/* One GEMM over all workers' samples in order of rank: every host that does it gets the same bits. */
static enum psd_status run_factor(struct psd_worker *worker, struct psd_task task, struct psd_error *err)
{
	const unsigned i = (unsigned)worker->program->ops[task.op].item;
	const struct psd_plan_item *item = &worker->plan->items[i];
	const struct psd_factors factors = psd_memory_factors(&worker->memory, i, task.iteration, 0);
	float *const *gradients = psd_memory_gradients(&worker->memory, task.iteration) +
				  psd_plan_tensor(worker->plan, item, 0); /* the weight's, and the bias's after it */

	return worker->kind->rebuild(worker->device, &factors, worker->layout->workers * item->subject.batch,
				     (uint32_t)item->subject.rows, (uint32_t)item->subject.columns, gradients[0],
				     item->n_tensors > 1 ? gradients[1] : NULL, err);
}

static enum psd_status run_apply(struct psd_worker *worker, struct psd_task task, struct psd_error *err)
{
	const unsigned i = (unsigned)worker->program->ops[task.op].item;
	const struct psd_plan_item *item = &worker->plan->items[i];
	const struct psd_update update =
		psd_solver_update(worker->options->train, worker->global_batch, task.iteration);
	float *const *gradients = psd_memory_gradients(&worker->memory, task.iteration);
	float *history = psd_memory_buffer(&worker->memory, PSD_BUFFER_HISTORY, i, task.iteration);
	enum psd_status status = PSD_OK;

	for (unsigned n = 0; n < item->n_tensors && !worker->scales[i].is_skipped && !status; n++) {
		const unsigned t = psd_plan_tensor(worker->plan, item, n);
		const uint64_t elements = worker->graph->tensors[t].elements;
		const struct psd_update own = psd_solver_update_of(update, &worker->graph->tensors[t]);

		status = worker->kind->apply(worker->device, &own, worker->memory.parameters[t], gradients[t], history,
					     elements, err);
		history += elements;
	}
	return status;
}

/* Of a slice's part from `offset` on: what is to be summed, in order of rank; one's own lies where backward put it. */
static unsigned find_parts(const struct psd_worker *worker, struct psd_task task, const float *own, uint64_t offset,
			   const float **parts)
{
	const struct psd_memory *memory = &worker->memory;
	const struct psd_op *op = &worker->program->ops[task.op];
	const unsigned item = (unsigned)op->item;
	unsigned n_parts = 0;

	if (memory->adds_arrivals)
		parts[n_parts++] = psd_memory_received(memory, item, op->slice, task.iteration, 0) + offset;
	for (unsigned w = 0; w < worker->layout->workers; w++) {
		if (w == worker->self)
			parts[n_parts++] = own;
		else if (!memory->adds_arrivals)
			parts[n_parts++] = psd_memory_received(memory, item, op->slice, task.iteration, w) + offset;
	}
	return n_parts;
}

/* Of the item's, the tensor that this parameter is of. */
static const struct psd_tensor *tensor_at(const struct psd_worker *worker, unsigned item, const float *parameter)
{
	const struct psd_plan_item *subject = &worker->plan->items[item];
	unsigned t = psd_plan_tensor(worker->plan, subject, 0);

	for (unsigned n = 0; n < subject->n_tensors; n++) {
		const float *first;

		t = psd_plan_tensor(worker->plan, subject, n);
		first = worker->memory.parameters[t];
		if (parameter >= first && parameter < first + worker->graph->tensors[t].elements)
			break;
	}
	return &worker->graph->tensors[t];
}

/* Sums and applies this shard's part tensor by tensor. */
static void run_reduce(struct psd_worker *worker, struct psd_task task, const float **parts)
{
	const struct psd_op *op = &worker->program->ops[task.op];
	const unsigned item = (unsigned)op->item;
	const struct psd_range part = psd_memory_own_part(&worker->memory, item, op->slice);
	const struct psd_update update =
		psd_solver_update(worker->options->train, worker->global_batch, task.iteration);
	float *history = psd_memory_part_history(&worker->memory, item, op->slice);
	struct iovec weights[PSD_PIECES_MAX], own[PSD_PIECES_MAX];
	const unsigned n_pieces = psd_memory_pieces(&worker->memory, worker->memory.parameters, item, part, weights);
	uint64_t offset = 0;

	psd_memory_pieces(&worker->memory, psd_memory_gradients(&worker->memory, task.iteration), item, part, own);
	for (unsigned i = 0; i < n_pieces; i++) {
		const unsigned n_parts = find_parts(worker, task, own[i].iov_base, offset, parts);
		const uint64_t elements = weights[i].iov_len / sizeof(float);
		const struct psd_update of_tensor =
			psd_solver_update_of(update, tensor_at(worker, item, weights[i].iov_base));

		psd_shard_reduce(&of_tensor, parts, n_parts, weights[i].iov_base, history + offset, elements);
		offset += elements;
	}
	if (worker->memory.adds_arrivals) /* for a later iteration's; nobody sends them before this is applied */
		memset(psd_memory_received(&worker->memory, item, op->slice, task.iteration, 0), 0,
		       offset * sizeof(float));
}

static enum psd_status reduce(struct psd_worker *worker, struct psd_task task, struct psd_error *err)
{
	const float **parts = calloc(worker->layout->workers + 1u, sizeof(*parts));

	if (!parts)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a reduction");
	run_reduce(worker, task, parts);
	free(parts);
	return PSD_OK;
}

/* ---- accuracy ---- */

static enum psd_status run_test(struct psd_worker *worker, struct psd_job *job, struct psd_error *err)
{
	const uint32_t n = worker->options->made->matter->scenario->batch_per_worker;
	const uint64_t n_samples = psd_feed_samples(worker->feed, PSD_DATA_TEST);
	enum psd_status status = PSD_OK;

	for (uint64_t first = 0; first + n <= n_samples && !status; first += n) {
		struct psd_batch batch = {.is_training = false};
		struct psd_samples samples;

		status = psd_feed_test(worker->feed, first, &samples, err);
		if (status)
			break;
		batch.images = samples.images;
		batch.labels = samples.labels;
		status = worker->kind->begin(worker->device, &batch, err);
		for (unsigned l = 0; l < worker->graph->n_layers && !status; l++)
			status = worker->kind->forward(worker->device, l, err);
		job->test_correct += worker->kind->correct(worker->device);
		job->test_samples += n;
	}
	return status;
}

/* ---- jobs ---- */

static bool is_of_chunks(const struct psd_worker *worker, struct psd_task task)
{
	return worker->plan->items[worker->program->ops[task.op].item].method->keeps[PSD_BUFFER_CHOSEN];
}

static enum psd_status run_task(struct psd_worker *worker, struct psd_task task, struct psd_error *err)
{
	switch (worker->program->ops[task.op].kind) {
	case PSD_OP_FORWARD: return run_forward(worker, task, err);
	case PSD_OP_BACKWARD: return run_backward(worker, task, err);
	case PSD_OP_FACTOR: return run_factor(worker, task, err);
	case PSD_OP_APPLY: return (is_of_chunks(worker, task) ? psd_worker_apply_chunks : run_apply)(worker, task, err);
	case PSD_OP_GATHER: return psd_worker_gather_chunks(worker, task, err);
	case PSD_OP_CHOOSE: psd_worker_choose_chunks(worker, task); return PSD_OK;
	case PSD_OP_CONVERT: psd_worker_convert(worker, task); return PSD_OK;
	case PSD_OP_REDUCE: return reduce(worker, task, err);
	case PSD_OP_BARRIER:
	case PSD_OP_COPY_OUT:
	case PSD_OP_COPY_IN:
	case PSD_OP_SEND:
	case PSD_OP_RECEIVE:
	case PSD_OP_COLLECTIVE:
	case PSD_OP_GATE:
	case PSD_OP_NEXT:
	case PSD_OP_KINDS: break;
	}
	return PSD_OK;
}

static void task_job(void *context)
{
	struct psd_job *job = context;

	const double begun_sec = psd_worker_now(job->worker), begun_cpu_sec = psd_machine_own_sec();
	double tested_cpu_sec;

	if (job->is_after_test)
		job->status = run_test(job->worker, job, &job->err);
	job->start_sec = psd_worker_now(job->worker);
	job->test_sec = job->start_sec - begun_sec;
	tested_cpu_sec = psd_machine_own_sec();
	if (!job->status)
		job->status = run_task(job->worker, job->task, &job->err);
	job->sec = psd_worker_now(job->worker) - job->start_sec;
	job->cpu_sec = psd_machine_own_sec() - begun_cpu_sec;
	job->busy_sec =
		job->worker->options->train->threads > 1 ? job->sec : begun_cpu_sec + job->cpu_sec - tested_cpu_sec;
}

static bool is_first(const struct psd_worker *worker, const struct psd_op *op)
{
	return op->kind == PSD_OP_FORWARD && psd_program_layers(worker->graph, op->layer).first == 0;
}

/* The first operation after a test that is due; a fence sees to it that the iteration before is complete. */
static bool is_after_test(const struct psd_worker *worker, struct psd_task task)
{
	return is_first(worker, &worker->program->ops[task.op]) && task.iteration > 0 &&
	       psd_worker_is_test_due(worker, task.iteration - 1);
}

/* Elements that are read. */
static uint64_t elements_of(const struct psd_worker *worker, const struct psd_op *op)
{
	if (op->kind == PSD_OP_REDUCE)
		return psd_memory_own_part(&worker->memory, (unsigned)op->item, op->slice).elements *
		       worker->layout->workers;
	return worker->plan->items[op->item].subject.elements;
}

/* Layers go by what they took the last time; never the first one, which may wait for its batch, nor where OpenMP would
 * need threads of its own for the loop's. Meanwhile nothing is received. */
static bool is_small_layer(const struct psd_worker *worker, const struct psd_op *op)
{
	const double last_sec = worker->last_sec[op - worker->program->ops];

	return !is_first(worker, op) && worker->options->train->threads == 1 && last_sec > 0.0 && last_sec < SMALL_SEC;
}

static bool is_done_at_once(const struct psd_worker *worker, const struct psd_op *op)
{
	if (op->kind == PSD_OP_FORWARD || op->kind == PSD_OP_BACKWARD)
		return is_small_layer(worker, op);
	return (op->kind == PSD_OP_REDUCE || op->kind == PSD_OP_APPLY || op->kind == PSD_OP_CONVERT ||
		op->kind == PSD_OP_GATHER || op->kind == PSD_OP_CHOOSE) &&
	       elements_of(worker, op) <= SMALL_ELEMENTS;
}

void psd_worker_work(void *context, unsigned host, enum psd_resource resource, struct psd_task task, double sec)
{
	struct psd_worker *worker = context;
	struct psd_job *job = &worker->jobs[resource];
	const struct psd_op *op = &worker->program->ops[task.op];
	const bool has_lane =
		(resource == PSD_RESOURCE_DEVICE && op->kind != PSD_OP_BARRIER) || resource == PSD_RESOURCE_CPU;

	(void)host, (void)sec; /* how long it takes is what is measured */
	psd_worker_watch_load(worker, task.iteration);
	*job = (struct psd_job){.worker = worker,
				.task = task,
				.given_sec = psd_socket_now_sec(),
				.is_after_test = is_after_test(worker, task)};
	if (!has_lane) {
		worker->is_over[resource] = true; /* tensors are in this processor's memory: nothing to copy */
	} else if (is_done_at_once(worker, op)) {
		task_job(job);
		job->is_done_at_once = true;
	} else {
		psd_lane_start(resource == PSD_RESOURCE_DEVICE ? &worker->device_lane : &worker->cpu_lane, task_job,
			       job);
	}
}

static void test_job(void *context)
{
	struct psd_job *job = context;

	job->status = run_test(job->worker, job, &job->err);
}

enum psd_status psd_worker_test(struct psd_worker *worker, uint64_t *samples, uint64_t *correct, struct psd_error *err)
{
	struct psd_job job = {.worker = worker};

	psd_lane_run(&worker->device_lane, test_job, &job);
	if (job.status) {
		*err = job.err;
		return job.status;
	}
	*samples = job.test_samples;
	*correct = job.test_correct;
	return PSD_OK;
}
