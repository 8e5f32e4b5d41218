/* The device on GPUs: opens one, loads a network onto it and calls each layer's kind, which has a file of its own.
 * Refuses to reorder layers: the caller's program decides when each begins. */
#include "real/device/gpu/gpu.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

static const struct psd_kind_row rows[] = {
#define ROW(kind) {&psd_layer_##kind, &psd_gpu_kind_##kind},
	ROW(input) PSD_CARRIED_OUT_KINDS(ROW)
#undef ROW
};

const struct psd_gpu_kind *psd_gpu_find_kind(const struct psd_layer_kind *kind)
{
	return psd_kind_find(rows, sizeof(rows) / sizeof(rows[0]), kind);
}

/* ---- open and close ---- */

static void close_network(struct psd_device *device)
{
	for (unsigned l = 0; device->layers && l < device->graph->n_layers; l++) {
		struct psd_gpu_layer *layer = &device->layers[l];

		if (layer->details && layer->kind->close)
			layer->kind->close(layer);
		free(layer->details);
		psd_gpu_end_graphs(device, layer);
		if (layer->model && layer->model->n_shared > 0)
			free(layer->gradients);
	}
	free(device->layers);
	free(device->parameters);
	free(device->gradients);
	free(device->states);
	free(device->wants);
}

static void close_device(struct psd_device *device)
{
	if (!device)
		return;
	/* waits for work in progress, since it uses memory that is released next */
	for (unsigned s = 0; s < PSD_STREAMS; s++)
		if (device->streams[s])
			(void)!psd_gpu_finish(device, s, NULL);
	close_network(device);
	psd_gpu_stop_dnn(device);
	psd_gpu_stop_blas(device);
	psd_gpu_stop(device);
	free(device);
}

/* Allocates the memory of calls that need no network: rebuild sums (a rebuild may overlap other calls) and counters. */
struct scratch {
	float rebuild_sums[PSD_GPU_SUMS_MOST];
	union psd_gpu_scratch shared;
	uint32_t counters[2];
};

static enum psd_status take_scratch(struct psd_device *device, struct psd_error *err)
{
	void *block;
	struct scratch *scratch;

	PSD_TRY(psd_gpu_take(device, sizeof(struct scratch), "updates", &block, err));
	scratch = block;
	device->held_bytes += sizeof(*scratch);
	device->rebuild_sums = scratch->rebuild_sums;
	device->scratch = &scratch->shared;
	device->counters = scratch->counters;
	return PSD_OK;
}

static enum psd_status start(struct psd_device *device, struct psd_error *err)
{
	PSD_TRY(psd_gpu_start(device, err));
	PSD_TRY(psd_gpu_start_blas(device, err));
	PSD_TRY(psd_gpu_start_dnn(device, err));
	return take_scratch(device, err);
}

static enum psd_status open_device(struct psd_device **device, const struct psd_device_options *options,
				   struct psd_error *err)
{
	struct psd_device *opened = calloc(1, sizeof(*opened));

	if (!opened)
		return psd_gpu_no_memory(err);
	opened->options = *options;
	const enum psd_status status = start(opened, err);
	if (status) {
		close_device(opened);
		return status;
	}
	*device = opened;
	return PSD_OK;
}

/* ---- memory ---- */

static enum psd_status take(struct psd_device *device, uint64_t bytes, void **block, struct psd_error *err)
{
	PSD_TRY(psd_gpu_enter(device, err));
	return psd_gpu_take(device, bytes, "parameters and gradients", block, err);
}

static enum psd_status take_host(struct psd_device *device, uint64_t bytes, void **block, struct psd_error *err)
{
	PSD_TRY(psd_gpu_enter(device, err));
	return psd_gpu_take_host(device, bytes, block, err);
}

static enum psd_status copy(struct psd_device *device, enum psd_stream stream, void *to, const void *from,
			    uint64_t bytes, struct psd_error *err)
{
	PSD_TRY(psd_gpu_enter(device, err));
	return psd_gpu_copy(device, stream, to, from, bytes, err);
}

static uint64_t get_memory_bytes(const struct psd_device *device)
{
	return device->held_bytes;
}

/* ---- load ---- */

/* Bound for the score gradients of a labelled position in fp16, which has a range of 6e-8 to 65504. With a common loss
 * divisor of 256 and a loss scale of 1024 they are up to 4. */
#define FP16_LABEL_SCALE 4.0

/* Returns the number of labelled positions over which the loss is averaged. */
static double count_labels(const struct psd_device *device)
{
	return device->network.loss_divisor * fmax(1.0, (double)device->graph->labels);
}

static void choose_types(struct psd_device *device)
{
	const enum psd_layer_arithmetic arithmetic = device->options.arithmetic;

	device->type = arithmetic == PSD_LAYERS_FP16   ? PSD_GPU_HALF
		       : arithmetic == PSD_LAYERS_BF16 ? PSD_GPU_BFLOAT
						       : PSD_GPU_FLOAT;
	device->is_channels_last = arithmetic != PSD_LAYERS_FP32; /* faster on tensor cores */
	device->diff_scale = 1.0f;
	if (arithmetic == PSD_LAYERS_FP16)
		device->diff_scale = exp2f(floorf(log2f((float)(FP16_LABEL_SCALE * count_labels(device)))));
}

static enum psd_status take_tables(struct psd_device *device, float *const parameters[], float *const gradients[],
				   struct psd_error *err)
{
	const struct psd_graph *graph = device->graph;

	device->layers = calloc(graph->n_layers, sizeof(*device->layers));
	device->parameters = calloc(graph->n_tensors + 1u, sizeof(*device->parameters));
	device->gradients = calloc(graph->n_tensors + 1u, sizeof(*device->gradients));
	device->states = calloc(graph->n_states + 1u, sizeof(*device->states));
	if (!device->layers || !device->parameters || !device->gradients || !device->states)
		return psd_gpu_no_memory(err);
	for (unsigned t = 0; t < graph->n_tensors; t++) {
		device->parameters[t] = parameters[t];
		device->gradients[t] = gradients[t];
	}
	return PSD_OK;
}

static enum psd_status link_layers(struct psd_device *device, struct psd_error *err)
{
	const struct psd_graph *graph = device->graph;

	for (unsigned l = 0; l < graph->n_layers; l++) {
		const struct psd_layer *model = &graph->layers[l];
		struct psd_gpu_layer *layer = &device->layers[l];

		layer->device = device;
		layer->number = l;
		layer->model = model;
		layer->kind = psd_gpu_find_kind(model->kind);
		if (!layer->kind)
			return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE,
					     "layer '%.80s' (%s): cuda does not support this kind", model->name,
					     model->kind->name);
		layer->reads_samples = l == 0 || model->kind->is_loss;
		for (unsigned i = 0; i < model->n_inputs; i++) {
			if (graph->layers[model->inputs[i]].kind->is_loss)
				return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE,
						     "layer '%.80s' reads the loss '%.80s', cuda supports no layer "
						     "behind a loss",
						     model->name, graph->layers[model->inputs[i]].name);
			layer->reads_samples |= model->inputs[i] == 0;
			device->layers[model->inputs[i]].n_readers++;
			device->layers[model->inputs[i]].last_reader = l;
		}
	}
	return PSD_OK;
}

/* Requests memory for gradients: a layer that shares tensors with another layer gets memory for its own summand of
 * their gradients. */
static enum psd_status want_gradients(struct psd_gpu_layer *layer, struct psd_error *err)
{
	struct psd_device *device = layer->device;
	const unsigned n_shared = layer->model->n_shared;

	layer->gradients = device->gradients + layer->model->first_tensor;
	if (n_shared)
		layer->gradients = calloc(n_shared, sizeof(*layer->gradients));
	if (!layer->gradients)
		return psd_gpu_no_memory(err);
	for (unsigned i = 0; i < n_shared; i++) {
		const struct psd_tensor *tensor = &device->graph->tensors[layer->model->first_tensor + i];

		PSD_TRY(psd_gpu_want(device, tensor->elements * sizeof(float), &layer->gradients[i], err));
	}
	return PSD_OK;
}

static enum psd_status prepare_layer(struct psd_gpu_layer *layer, struct psd_error *err)
{
	layer->details = calloc(1, layer->kind->details_bytes + 1);
	return layer->details ? layer->kind->prepare(layer, err) : psd_gpu_no_memory(err);
}

static uint64_t label_bytes(const struct psd_device *device)
{
	return device->network.batch * device->graph->labels * sizeof(int32_t);
}

static enum psd_status want_samples(struct psd_device *device, struct psd_error *err)
{
	const struct psd_shape shape = device->graph->layers[0].shape;
	const uint64_t elements = (uint64_t)device->network.batch * shape.channels * shape.height * shape.width;

	for (unsigned s = 0; s < PSD_GPU_SLOTS; s++) {
		PSD_TRY(psd_gpu_want(device, elements * sizeof(float), &device->slots[s].images, err));
		PSD_TRY(psd_gpu_want(device, label_bytes(device), &device->slots[s].labels, err));
	}
	return PSD_OK;
}

static enum psd_status want_states(struct psd_device *device, struct psd_error *err)
{
	for (unsigned s = 0; s < device->graph->n_states; s++)
		PSD_TRY(psd_gpu_want(device, device->graph->states[s].elements * sizeof(float), &device->states[s],
				     err));
	return PSD_OK;
}

static enum psd_status transfer_state(struct psd_device *device, unsigned state, float *to_host, const float *from_host,
				      struct psd_error *err)
{
	const uint64_t bytes = device->graph->states[state].elements * sizeof(float);

	PSD_TRY(psd_gpu_enter(device, err));
	if (to_host)
		PSD_TRY(psd_gpu_copy(device, PSD_STREAM_COMPUTE, to_host, device->states[state], bytes, err));
	if (from_host)
		PSD_TRY(psd_gpu_copy(device, PSD_STREAM_COMPUTE, device->states[state], from_host, bytes, err));
	return psd_gpu_finish(device, PSD_STREAM_COMPUTE, err);
}

static enum psd_status read_state(struct psd_device *device, unsigned state, float *values, struct psd_error *err)
{
	return transfer_state(device, state, values, NULL, err);
}

static enum psd_status write_state(struct psd_device *device, unsigned state, const float *values,
				   struct psd_error *err)
{
	return transfer_state(device, state, NULL, values, err);
}

static enum psd_status start_state(struct psd_device *device, unsigned state, struct psd_error *err)
{
	const struct psd_tensor *tensor = &device->graph->states[state];
	float *values = malloc((tensor->elements + 1) * sizeof(*values));

	if (!values)
		return psd_gpu_no_memory(err);
	for (uint64_t e = 0; e < tensor->elements; e++)
		values[e] = tensor->start_value;
	const enum psd_status status = write_state(device, state, values, err);
	free(values);
	return status;
}

static enum psd_status load(struct psd_device *device, const struct psd_graph *graph,
			    const struct psd_network_options *options, float *const parameters[],
			    float *const gradients[], struct psd_error *err)
{
	PSD_TRY(psd_gpu_enter(device, err));
	device->graph = graph;
	device->network = *options;
	choose_types(device);
	PSD_TRY(take_tables(device, parameters, gradients, err));
	PSD_TRY(link_layers(device, err));
	PSD_TRY(want_samples(device, err));
	PSD_TRY(want_states(device, err));
	for (unsigned l = 0; l < graph->n_layers; l++)
		PSD_TRY(want_gradients(&device->layers[l], err));
	for (unsigned l = 0; l < graph->n_layers; l++)
		PSD_TRY(prepare_layer(&device->layers[l], err));
	PSD_TRY(psd_gpu_allocate(device, err));
	for (unsigned s = 0; s < graph->n_states; s++)
		PSD_TRY(start_state(device, s, err));
	return PSD_OK;
}

/* ---- an iteration ---- */

static unsigned other_slot(const struct psd_device *device)
{
	return (device->slot + 1) % PSD_GPU_SLOTS;
}

/* Begins to copy the samples of a batch to a slot, on a stream beside that of computation, after the last read of the
 * slot's earlier samples. */
static enum psd_status bring_samples(struct psd_device *device, const struct psd_gpu_slot *slot,
				     const struct psd_batch *batch, struct psd_error *err)
{
	const struct psd_shape shape = device->graph->layers[0].shape;
	const uint64_t image_bytes = (uint64_t)shape.channels * shape.height * shape.width * sizeof(float);

	PSD_TRY(psd_gpu_follow(device, PSD_STREAM_SAMPLES, slot->used, err));
	PSD_TRY(psd_gpu_copy(device, PSD_STREAM_SAMPLES, slot->images, batch->images,
			     device->network.batch * image_bytes, err));
	PSD_TRY(psd_gpu_copy(device, PSD_STREAM_SAMPLES, slot->labels, batch->labels, label_bytes(device), err));
	return psd_gpu_record(device, PSD_STREAM_SAMPLES, slot->arrived, err);
}

static enum psd_status fetch(struct psd_device *device, const struct psd_batch *batch, struct psd_error *err)
{
	assert(!device->has_fetched);
	PSD_TRY(psd_gpu_enter(device, err));
	PSD_TRY(bring_samples(device, &device->slots[other_slot(device)], batch, err));
	device->has_fetched = true;
	return PSD_OK;
}

/* Makes the slot of a batch the current one. All layers that read the previous batch have begun. A fetched batch is in
 * the other slot already; any other batch is copied to the free slot. The compute stream waits until the samples are
 * there. */
static enum psd_status take_samples(struct psd_device *device, const struct psd_batch *batch, struct psd_error *err)
{
	const unsigned slot = device->has_fetched && !batch->is_fetched ? device->slot : other_slot(device);

	PSD_TRY(psd_gpu_record(device, PSD_STREAM_COMPUTE, device->slots[device->slot].used, err));
	assert(device->has_fetched || !batch->is_fetched);
	if (!batch->is_fetched)
		PSD_TRY(bring_samples(device, &device->slots[slot], batch, err));
	device->slot = slot;
	device->has_fetched = device->has_fetched && !batch->is_fetched;
	return psd_gpu_follow(device, PSD_STREAM_COMPUTE, device->slots[slot].arrived, err);
}

static enum psd_status count(struct psd_device *device, const struct psd_batch *batch, struct psd_error *err)
{
	const struct psd_gpu_counters counters = {device->counters, (uint32_t)batch->first_sample,
						  (uint32_t)batch->iteration};

	return device->counts ? psd_gpu_run_counters(device, &counters, 1, err) : PSD_OK;
}

static enum psd_status begin(struct psd_device *device, const struct psd_batch *batch, struct psd_error *err)
{
	PSD_TRY(psd_gpu_enter(device, err));
	PSD_TRY(take_samples(device, batch, err));
	PSD_TRY(count(device, batch, err));
	device->batch = *batch;
	psd_gpu_show_images(device);
	for (unsigned t = 0; batch->gradients && t < device->graph->n_tensors; t++)
		device->gradients[t] = batch->gradients[t];
	for (unsigned l = 0; l < device->graph->n_layers; l++)
		device->layers[l].own.is_filled = false;
	return PSD_OK;
}

static enum psd_status forward(struct psd_device *device, unsigned layer, struct psd_error *err)
{
	return psd_gpu_pass(device, &(struct psd_pass){.first = layer, .end = layer + 1}, err);
}

static enum psd_status backward(struct psd_device *device, unsigned layer, struct psd_error *err)
{
	return psd_gpu_pass(device, &(struct psd_pass){.first = layer, .end = layer + 1, .is_backward = true}, err);
}

static double get_loss(const struct psd_device *device)
{
	double loss = 0.0;

	for (unsigned l = 0; l < device->graph->n_layers; l++)
		if (device->layers[l].kind == &psd_gpu_kind_softmax_loss)
			loss += psd_gpu_loss_of(&device->layers[l]);
	return loss;
}

/* Returns the number of correct positions; with several loss layers that of the last one. */
static uint32_t get_correct(const struct psd_device *device)
{
	for (unsigned l = device->graph->n_layers; l-- > 0;)
		if (device->layers[l].kind == &psd_gpu_kind_softmax_loss)
			return psd_gpu_correct_of(&device->layers[l]);
	return 0;
}

/* A thread's kernels are begun on the device that it has entered. */
#define ENTERED(name, arguments, text)                                                                                 \
	static enum psd_status name##_entered(struct psd_device *device, const struct arguments *of,                   \
					      struct psd_error *err)                                                   \
	{                                                                                                              \
		PSD_TRY(psd_gpu_enter(device, err));                                                                   \
		return psd_gpu_kernel_##name(device, of, err);                                                         \
	}
PSD_KERNELS(ENTERED)
#define KERNEL(name, arguments, text) .name = name##_entered,
static const struct psd_kernels kernels = {PSD_KERNELS(KERNEL)};

const struct psd_device_kind psd_device_cuda = {
	.name = "cuda",
	.count = psd_gpu_count,
	.has_own_memory = true,
	.libraries = psd_gpu_libraries,
	.is_asynchronous = true,
	.open = open_device,
	.close = close_device,
	.take = take,
	.take_host = take_host,
	.copy = copy,
	.load = load,
	.fetch = fetch,
	.begin = begin,
	.forward = forward,
	.backward = backward,
	.pass = psd_gpu_pass,
	.loss = get_loss,
	.correct = get_correct,
	.keep_factors = psd_gpu_keep_factors,
	.rebuild = psd_gpu_rebuild,
	.read_state = read_state,
	.write_state = write_state,
	.describe = psd_gpu_describe,
	.detour = psd_gpu_detour,
	.memory_bytes = get_memory_bytes,
	.kernels = &kernels,
	.mark = psd_gpu_mark,
	.wait = psd_gpu_wait,
	.between_sec = psd_gpu_between_sec,
};
