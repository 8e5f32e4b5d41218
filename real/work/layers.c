/* Layers, with the samples that they begin with. */
#include <string.h>

#include "real/base/affinity.h"
#include "real/work/work.h"

enum { MOST_READERS = 16, PROCESSORS_BESIDE_READERS = 2 };

/* Longest duration of layers that are executed at once; see work.c. */
#define SMALL_SEC 20e-6

struct layers {
	struct psd_feed *feed; /* source of training samples */
	/* Addresses to which the device writes gradients; shape (memory.n_gradient_rows, tensors of the graph), the
	 * last row of later micro-batches. NULL: the gradient is not computed by the backward pass, but later from
	 * factors. */
	float **gradients;
	bool is_ahead; /* the copy of the next batch's samples has been started */
	/* Numbers of the marks in the device's stream after the last copy for a batch of an even number (entry 0) and
	 * of an odd one (entry 1). */
	uint64_t marks[2];
};

/* ---- opening ---- */

/* One reader keeps up with computation on a processor. A GPU needs more samples per second and leaves the cores free:
 * all but the two for its control and for messages. */
static unsigned count_readers(const struct psd_host *host)
{
	const unsigned wanted = host->options->train->readers, n_processors = psd_affinity_count();

	if (wanted > 0)
		return wanted;
	if (!host->kind->has_own_memory || n_processors <= PROCESSORS_BESIDE_READERS)
		return 1;
	return n_processors - PROCESSORS_BESIDE_READERS < MOST_READERS ? n_processors - PROCESSORS_BESIDE_READERS
								       : MOST_READERS;
}

static enum psd_status open_feed(const struct psd_host *host, struct layers *layers, struct psd_error *err)
{
	struct psd_feed_options options = {
		.data = psd_data_options_of(host->graph, host->options->train),
		.n_readers = count_readers(host),
		.batch = host->batch,
		.micro_batches = host->plan->micro_batches,
		.workers = host->layout->workers,
		.worker = host->self,
		.all_samples = host->global_batch,
		.samples_before = host->samples_before,
		.first_iteration = host->options->first_iteration,
		.n_iterations = host->options->n_iterations,
		.first_sample = host->options->first_sample,
	};

	if (host->kind->fetch)
		PSD_TRY(host->kind->take_host(host->device, psd_feed_bytes(&options), &options.memory, err));
	return psd_feed_open(&layers->feed, &options, err);
}

/* The device does not compute gradients that are made from all workers' factors. */
static enum psd_status make_gradients(struct psd_host *host, struct layers *layers, struct psd_error *err)
{
	const size_t n_tensors = host->graph->n_tensors, n = host->memory.n_gradient_rows * n_tensors;

	layers->gradients = psd_host_take(host, n, sizeof(*layers->gradients), err);
	if (!layers->gradients)
		return PSD_ENOMEM;
	memcpy(layers->gradients, host->on_device->gradients, n * sizeof(*layers->gradients));
	for (uint32_t o = 0; o < host->program->n_ops; o++) {
		const struct psd_op *op = &host->program->ops[o];
		const struct psd_plan_item *item = psd_ops[op->kind].rebuilds ? &host->plan->items[op->item] : NULL;

		for (unsigned i = 0; item && i < item->n_tensors; i++)
			for (size_t t = psd_plan_tensor(host->plan, item, i); t < n; t += n_tensors)
				layers->gradients[t] = NULL;
	}
	return PSD_OK;
}

static enum psd_status open(struct psd_work *work, struct psd_error *err)
{
	struct psd_host *host = work->host;
	const struct psd_network_options options = {
		.batch = host->batch,
		.seed = host->options->train->seed,
		.loss_divisor = (double)host->global_batch,
	};
	struct layers *layers;

	if (!psd_layout_is_worker(host->layout, host->self)) /* a server computes no layer */
		return PSD_OK;
	layers = work->states.layers = psd_host_take(host, 1, sizeof(*layers), err);
	if (!layers)
		return PSD_ENOMEM;
	PSD_TRY(open_feed(host, layers, err));
	psd_host_moved(host);
	PSD_TRY(make_gradients(host, layers, err));
	return host->kind->load(host->device, host->graph, &options, host->on_device->parameters, layers->gradients,
				err);
}

struct psd_feed *psd_work_feed(const struct psd_work *work)
{
	const struct layers *layers = work->states.layers;

	return layers ? layers->feed : NULL;
}

/* ---- samples ---- */

/* Number of the task's batch, counted over all micro-batches. */
static uint64_t batch_number(const struct psd_work *work, struct psd_task task)
{
	return (uint64_t)task.iteration * work->host->plan->micro_batches +
	       work->host->program->ops[task.op].micro_batch;
}

/* Begins to copy a batch's samples to the device. */
static enum psd_status fetch(const struct psd_host *host, struct layers *layers, uint64_t number,
			     struct psd_samples samples, struct psd_error *err)
{
	const struct psd_batch batch = {.images = samples.images, .labels = samples.labels};

	PSD_TRY(host->kind->fetch(host->device, &batch, err));
	layers->marks[number % 2] = host->kind->mark(host->device, PSD_STREAM_SAMPLES);
	layers->is_ahead = true;
	return PSD_OK;
}

/* Copies the next batch's samples as soon as they are read. */
static enum psd_status fetch_ahead(const struct psd_work *work, struct psd_task task, struct psd_error *err)
{
	struct layers *layers = work->states.layers;
	struct psd_samples samples;

	if (!work->host->kind->fetch || layers->is_ahead || !psd_feed_look(layers->feed, &samples))
		return PSD_OK;
	return fetch(work->host, layers, batch_number(work, task) + 1, samples, err);
}

/* The next samples replace those of the batch before, which must have been copied. */
static enum psd_status wait_for_fetched(const struct psd_work *work, uint64_t number, struct psd_error *err)
{
	const struct psd_host *host = work->host;
	const struct layers *layers = work->states.layers;

	if (!host->kind->fetch || number == (uint64_t)host->options->first_iteration * host->plan->micro_batches)
		return PSD_OK;
	return host->kind->wait(host->device, PSD_STREAM_SAMPLES, layers->marks[(number - 1) % 2], err);
}

static bool is_first(const struct psd_work *work, const struct psd_op *op)
{
	return psd_program_layers(work->host->graph, op->layer).first == 0;
}

/* Row of `gradients` to which a batch's backward passes write. */
static size_t gradient_row(const struct psd_host *host, struct psd_task task)
{
	return host->program->ops[task.op].micro_batch == 0 || !psd_plan_adds_gradients(host->plan)
		       ? task.iteration % host->memory.n_under_way
		       : host->memory.n_under_way;
}

static enum psd_status begin_batch(struct psd_work *work, struct psd_task task, struct psd_error *err)
{
	const struct psd_host *host = work->host;
	const struct psd_op *op = &host->program->ops[task.op];
	struct layers *layers = work->states.layers;
	const uint64_t number = batch_number(work, task);
	struct psd_batch batch = {
		.iteration = task.iteration,
		.first_sample = host->samples_before + (uint64_t)op->micro_batch * host->batch,
		.is_training = true,
		.is_fetched = host->kind->fetch,
	};
	struct psd_samples samples;

	if (!is_first(work, op))
		return PSD_OK;
	PSD_TRY(wait_for_fetched(work, number, err));
	PSD_TRY(psd_feed_train(layers->feed, number, &samples, err));
	if (host->kind->fetch && !layers->is_ahead)
		PSD_TRY(fetch(host, layers, number, samples, err));
	layers->is_ahead = false;
	batch.images = samples.images;
	batch.labels = samples.labels;
	batch.gradients = layers->gradients + gradient_row(host, task) * host->graph->n_tensors;
	return host->kind->begin(host->device, &batch, err);
}

/* ---- passes ---- */

enum psd_status psd_work_pass(const struct psd_work *work, struct psd_pass pass, struct psd_error *err)
{
	const struct psd_host *host = work->host;

	if (host->kind->pass)
		return host->kind->pass(host->device, &pass, err);
	for (unsigned l = pass.first; l < pass.end && !pass.is_backward; l++)
		PSD_TRY(host->kind->forward(host->device, l, err));
	for (unsigned l = pass.end; l-- > pass.first && pass.is_backward;)
		PSD_TRY(host->kind->backward(host->device, l, err));
	return PSD_OK;
}

static enum psd_status forward(struct psd_work *work, struct psd_task task, struct psd_error *err)
{
	const struct psd_layers layers = psd_program_layers(work->host->graph, work->host->program->ops[task.op].layer);

	PSD_TRY(psd_work_pass(work, (struct psd_pass){layers.first, layers.end, false}, err));
	return fetch_ahead(work, task, err);
}

/* Copies a factor, since the next forward would overwrite it while it is being sent. Those of micro-batches follow each
 * other. */
static enum psd_status keep_factors(const struct psd_work *work, struct psd_task task, struct psd_error *err)
{
	const struct psd_host *host = work->host;
	const struct psd_op *op = &host->program->ops[task.op];
	const struct layers *layers = work->states.layers;

	for (unsigned i = 0; i < host->plan->n_items; i++) {
		const struct psd_plan_item *item = &host->plan->items[i];
		const uint64_t first = item->subject.batch / host->plan->micro_batches * op->micro_batch;
		struct psd_factors kept;

		if (item->layer != op->layer || layers->gradients[psd_plan_tensor(host->plan, item, 0)])
			continue;
		kept = psd_memory_factors(host->on_device, i, task.iteration, host->self);
		kept.top_diff += first * item->subject.columns;
		kept.bottom += first * item->subject.rows;
		PSD_TRY(host->kind->keep_factors(host->device, op->layer, &kept, err));
	}
	return PSD_OK;
}

static enum psd_status backward(struct psd_work *work, struct psd_task task, struct psd_error *err)
{
	const unsigned named = work->host->program->ops[task.op].layer;
	const struct psd_layers layers = psd_program_layers(work->host->graph, named);

	PSD_TRY(psd_work_pass(work, (struct psd_pass){layers.first, layers.end, true}, err));
	PSD_TRY(keep_factors(work, task, err));
	return fetch_ahead(work, task, err);
}

/* True for layers that were fast last time, nor where OpenMP would need threads. Nothing is received meanwhile. */
static bool is_fast(const struct psd_work *work, const struct psd_op *op, double last_sec)
{
	(void)op;
	return work->host->options->train->threads == 1 && last_sec > 0.0 && last_sec < SMALL_SEC;
}

/* Never the first layer, which may wait for its batch. */
static bool is_fast_forward(const struct psd_work *work, const struct psd_op *op, double last_sec)
{
	return !is_first(work, op) && is_fast(work, op, last_sec);
}

const struct psd_family psd_family_layers = {
	.open = open,
	.rows = {{PSD_RUNS(FORWARD, forward), .prepare = begin_batch, .is_small = is_fast_forward},
		 {PSD_RUNS(BACKWARD, backward), .is_small = is_fast}},
};
