/* Preparation of a training host: threads, device, memory, samples, network. */
#include <string.h>

#include "real/base/affinity.h"
#include "real/session/worker_parts.h"

enum { MOST_READERS = 16, PROCESSORS_BESIDE_READERS = 2 };

/* ---- data ---- */

struct psd_data_options psd_worker_data_options(const struct psd_graph *graph, const struct psd_train *train)
{
	return (struct psd_data_options){
		.source = train->data,
		.shape = graph->layers[0].shape,
		.classes = graph->classes,
		.labels = graph->labels,
		.vocabulary = graph->vocabulary,
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

/* One reader keeps up with computation on a processor. A GPU needs more samples per second and leaves the cores free:
 * all but the two for its control and for messages. */
static unsigned count_readers(const struct psd_worker *worker)
{
	const unsigned wanted = worker->options->train->readers, n_processors = psd_affinity_count();

	if (wanted > 0)
		return wanted;
	if (!worker->kind->has_own_memory || n_processors <= PROCESSORS_BESIDE_READERS)
		return 1;
	return n_processors - PROCESSORS_BESIDE_READERS < MOST_READERS ? n_processors - PROCESSORS_BESIDE_READERS
								       : MOST_READERS;
}

static enum psd_status open_feed(struct psd_worker *worker, uint32_t batch, struct psd_error *err)
{
	struct psd_feed_options options = {
		.data = psd_worker_data_options(worker->graph, worker->options->train),
		.n_readers = count_readers(worker),
		.batch = batch,
		.workers = worker->layout->workers,
		.worker = worker->self,
		.first_iteration = worker->options->first_iteration,
		.n_iterations = worker->options->n_iterations,
		.first_sample = worker->options->first_sample,
	};
	enum psd_status status = PSD_OK;

	if (worker->kind->fetch)
		status = worker->kind->take_host(worker->device, psd_feed_bytes(&options), &options.memory, err);
	return status ? status : psd_feed_open(&worker->feed, &options, err);
}

/* ---- the network ---- */

/* The device does not compute gradients that are made from all workers' factors. */
static enum psd_status make_computed_gradients(struct psd_worker *worker, struct psd_error *err)
{
	const size_t n_tensors = worker->graph->n_tensors, n = worker->memory.n_under_way * n_tensors;

	worker->computed_gradients = psd_arena_take(&worker->arena, n * sizeof(*worker->computed_gradients));
	if (!worker->computed_gradients)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a table of gradients");
	memcpy(worker->computed_gradients, worker->on_device->gradients, n * sizeof(*worker->computed_gradients));
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
		      : worker->kind->load(worker->device, worker->graph, &options, worker->on_device->parameters,
					   worker->computed_gradients, err);
}

/* ---- memory ---- */

/* Copies all parameters between the memories of host and device. */
static enum psd_status copy_parameters(struct psd_worker *worker, enum psd_stream stream, struct psd_error *err)
{
	const bool is_out = stream == PSD_STREAM_COPY_OUT;
	float *const *host = worker->memory.parameters, *const *device = worker->apart.parameters;
	enum psd_status status = PSD_OK;

	if (worker->on_device == &worker->memory)
		return PSD_OK;
	for (unsigned t = 0; t < worker->graph->n_tensors && !status; t++)
		status = worker->kind->copy(worker->device, stream, is_out ? host[t] : device[t],
					    is_out ? device[t] : host[t],
					    worker->graph->tensors[t].elements * sizeof(float), err);
	if (!status && worker->kind->is_asynchronous)
		status = worker->kind->wait(worker->device, stream, worker->kind->mark(worker->device, stream), err);
	return status;
}

/* Copies the exact parameters of a root to its device. */
static enum psd_status copy_masters(struct psd_worker *worker, struct psd_error *err)
{
	enum psd_status status = PSD_OK;

	for (unsigned i = 0; i < worker->plan->n_items && !status; i++) {
		const struct psd_plan_item *item = &worker->plan->items[i];
		float *to = psd_memory_master(worker->on_device, i), *from = psd_memory_master(&worker->memory, i);

		if (to && to != from && item->root == worker->self)
			status = worker->kind->copy(worker->device, PSD_STREAM_COPY_IN, to, from,
						    item->subject.elements * sizeof(*to), err);
	}
	return status;
}

enum psd_status psd_worker_fetch_parameters(struct psd_worker *worker, struct psd_error *err)
{
	return copy_parameters(worker, PSD_STREAM_COPY_OUT, err);
}

/* Copies this host's parameters to all their other positions. */
static enum psd_status bring_parameters(struct psd_worker *worker, struct psd_error *err)
{
	enum psd_status status;

	psd_memory_fill_own(&worker->memory);
	status = copy_masters(worker, err);
	return status ? status : copy_parameters(worker, PSD_STREAM_COPY_IN, err); /* waits */
}

static enum psd_status open_memory(struct psd_worker *worker, struct psd_error *err)
{
	const bool has_own = worker->kind->has_own_memory;
	struct psd_memory_options options = {
		.host = worker->self,
		.adds_arrivals = !worker->options->train->is_deterministic,
		.place = has_own ? PSD_MEMORY_HOST : PSD_MEMORY_SHARED,
		.kind = worker->kind,
		.device = worker->device,
	};
	enum psd_status status = psd_memory_init(&worker->memory, worker->program, &options, err);

	worker->on_device = has_own ? &worker->apart : &worker->memory;
	options.place = PSD_MEMORY_DEVICE;
	if (!status && has_own)
		status = psd_memory_init(&worker->apart, worker->program, &options, err);
	if (status)
		return status;
	psd_memory_fill_parameters(&worker->memory, worker->options->train->seed);
	return bring_parameters(worker, err);
}

/* ---- start ---- */

/* Reads initial values from files. */
static enum psd_status read_values(struct psd_worker *worker, struct psd_error *err)
{
	enum psd_status status;

	if (worker->options->first_iteration > 0 && worker->options->from_hosts == 0)
		return psd_worker_restore(worker, err);
	if (worker->options->first_iteration == 0 && !worker->options->train->start_path)
		return PSD_OK;
	status = worker->options->from_hosts > 0 ? psd_worker_reshape(worker, err) : psd_worker_read_start(worker, err);
	return status ? status : bring_parameters(worker, err);
}

static enum psd_status open_device(struct psd_worker *worker, struct psd_error *err)
{
	const struct psd_device_options options = {
		.n_threads = worker->options->train->threads,
		.number = worker->options->place,
		.arithmetic = worker->options->train->arithmetic,
		.is_without_graphs = !worker->options->train->has_graphs,
		.may_differ = !worker->options->train->is_deterministic,
	};
	const uint32_t batch = worker->options->made->costed->scenario->batch_per_worker;
	enum psd_status status = worker->kind->open(&worker->device, &options, err);

	worker->has_device = !status;
	psd_worker_moved(worker);
	if (!status)
		status = open_memory(worker, err);
	psd_worker_moved(worker);
	if (!status)
		status = psd_worker_open_encoding(worker, err);
	if (!status && worker->plan->sparse)
		status = psd_worker_open_chunks(worker, err);
	if (!status && worker->plan->compress)
		status = psd_worker_open_packings(worker, err);
	if (!status && worker->plan->low_rank)
		status = psd_worker_open_low_rank(worker, err);
	if (!status && worker->plan->clips)
		status = psd_worker_open_clip(worker, err);
	if (!status && psd_layout_is_worker(worker->layout, worker->self)) { /* a server computes no layer */
		status = open_feed(worker, batch, err);
		psd_worker_moved(worker);
		if (!status)
			status = load_network(worker, batch, err);
	}
	psd_worker_moved(worker);
	if (!status)
		status = read_values(worker, err);
	if (status || !psd_layout_is_worker(worker->layout, worker->self))
		return status;
	worker->arithmetic = psd_worker_arithmetic(worker);
	return psd_worker_look(worker, worker->options->first_iteration, err);
}

static void open_job(void *context)
{
	struct psd_job *job = context;

	job->status = open_device(job->worker, &job->err);
}

/* Copies get threads of their own where they exist. */
static enum psd_status open_lanes(struct psd_worker *worker, struct psd_error *err)
{
	static const enum psd_resource resources[] = {PSD_RESOURCE_DEVICE, PSD_RESOURCE_CPU, PSD_RESOURCE_COPY_OUT,
						      PSD_RESOURCE_COPY_IN};
	const unsigned n = worker->kind->has_own_memory ? 4 : 2;
	enum psd_status status = PSD_OK;

	for (unsigned i = 0; i < n && !status; i++) {
		struct psd_jobs *jobs = &worker->jobs[resources[i]];
		const bool is_of_device = resources[i] != PSD_RESOURCE_CPU && worker->kind->is_asynchronous;

		status = psd_lane_open(&jobs->lane, worker->wake_fd, is_of_device ? psd_worker_finish_job : NULL, err);
		jobs->has_lane = !status;
	}
	return status;
}

enum psd_status psd_worker_open_training(struct psd_worker *worker, struct psd_error *err)
{
	struct psd_job *job = &worker->opening;
	enum psd_status status = open_lanes(worker, err);

	if (status)
		return status;
	*job = (struct psd_job){.worker = worker};
	psd_worker_moved(worker);
	psd_lane_start(&worker->jobs[PSD_RESOURCE_DEVICE].lane, open_job, job);
	status = psd_worker_await_opening(worker, err);
	if (!status && job->status) {
		*err = job->err;
		status = job->status;
	}
	return status;
}
