/* The CPU device: loads a network into oneDNN and calls each layer's kind, which has a file of its own; memory formats
 * and sharing are in blob.c. Refuses to reorder layers: the caller decides when each is executed. */
#include "real/device/cpu/cpu.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "real/base/libraries.h"

static enum psd_status prepare_input(struct psd_cpu_layer *self, struct psd_error *err)
{
	const dnnl_memory_desc_t plain = psd_cpu_plain(self);

	if (self->number != 0)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE,
				     "layer '%.80s' is a second input, cpu supports only one, which is the first layer",
				     self->model->name);
	return psd_cpu_declare(self, &plain, err);
}

/* does nothing: begin() has set the blob to the images */
static enum psd_status forward_input(struct psd_cpu_layer *self, struct psd_error *err)
{
	(void)self, (void)err;
	return PSD_OK;
}

static const struct psd_cpu_kind input_kind = {.prepare = prepare_input, .forward = forward_input};

static const struct psd_kind_row rows[] = {{&psd_layer_input, &input_kind},
#define ROW(kind) {&psd_layer_##kind, &psd_cpu_##kind},
					   PSD_CARRIED_OUT_KINDS(ROW)
#undef ROW
};

const struct psd_cpu_kind *psd_cpu_find_kind(const struct psd_layer_kind *kind)
{
	return psd_kind_find(rows, sizeof(rows) / sizeof(rows[0]), kind);
}

static void close_device(struct psd_device *device)
{
	if (!device)
		return;
	psd_cpu_release_ops(device);
	psd_cpu_release_taken(device);
	if (device->stream)
		dnnl_stream_destroy(device->stream);
	if (device->engine)
		dnnl_engine_destroy(device->engine);
	free(device);
}

static enum psd_status link_layers(struct psd_device *device, struct psd_error *err)
{
	const struct psd_graph *graph = device->graph;

	for (unsigned l = 0; l < graph->n_layers; l++) {
		const struct psd_layer *model = &graph->layers[l];
		struct psd_cpu_layer *layer = &device->layers[l];

		layer->device = device;
		layer->number = l;
		layer->model = model;
		layer->kind = psd_cpu_find_kind(model->kind);
		if (!layer->kind)
			return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE,
					     "layer '%.80s' (%s): cpu does not support this kind", model->name,
					     model->kind->name);
		for (unsigned i = 0; i < model->n_inputs; i++) {
			device->layers[model->inputs[i]].n_readers++;
			device->layers[model->inputs[i]].last_reader = l;
		}
	}
	return PSD_OK;
}

static enum psd_status copy_slots(struct psd_device *device, float *const parameters[], float *const gradients[],
				  struct psd_error *err)
{
	const unsigned n_tensors = device->graph->n_tensors;

	device->parameters = psd_cpu_take(device, n_tensors * sizeof(*device->parameters));
	device->gradients = psd_cpu_take(device, n_tensors * sizeof(*device->gradients));
	device->states = psd_cpu_take(device, device->graph->n_states * sizeof(*device->states));
	device->layers = psd_cpu_take(device, device->graph->n_layers * sizeof(*device->layers));
	if (!device->parameters || !device->gradients || !device->states || !device->layers)
		return psd_cpu_no_memory(err);
	for (unsigned t = 0; t < n_tensors; t++) {
		device->parameters[t] = parameters[t];
		device->gradients[t] = gradients[t];
	}
	return PSD_OK;
}

static enum psd_status take_states(struct psd_device *device, struct psd_error *err)
{
	for (unsigned s = 0; s < device->graph->n_states; s++) {
		const struct psd_tensor *state = &device->graph->states[s];
		float *values = psd_cpu_take(device, state->elements * sizeof(*values));

		if (!values)
			return psd_cpu_no_memory(err);
		for (uint64_t e = 0; e < state->elements; e++)
			values[e] = state->start_value;
		device->states[s] = values;
	}
	return PSD_OK;
}

/* Sets the slots of a layer's gradients. A layer that shares tensors with another layer gets memory for its own summand
 * of their gradients. */
static enum psd_status take_gradients(struct psd_cpu_layer *layer, struct psd_error *err)
{
	struct psd_device *device = layer->device;
	const unsigned n_shared = layer->model->n_shared;

	layer->gradients = device->gradients + layer->model->first_tensor;
	if (n_shared)
		layer->gradients = psd_cpu_take(device, n_shared * sizeof(*layer->gradients));
	for (unsigned i = 0; i < n_shared && layer->gradients; i++) {
		const struct psd_tensor *tensor = &device->graph->tensors[layer->model->first_tensor + i];

		layer->gradients[i] = psd_cpu_take(device, tensor->elements * sizeof(float));
		if (!layer->gradients[i])
			return psd_cpu_no_memory(err);
	}
	return layer->gradients ? PSD_OK : psd_cpu_no_memory(err);
}

static enum psd_status prepare_layer(struct psd_cpu_layer *layer, struct psd_error *err)
{
	layer->details = psd_cpu_take(layer->device, layer->kind->details_bytes);
	return layer->details ? layer->kind->prepare(layer, err) : psd_cpu_no_memory(err);
}

static enum psd_status prepare(struct psd_device *device, float *const parameters[], float *const gradients[],
			       struct psd_error *err)
{
	PSD_TRY(copy_slots(device, parameters, gradients, err));
	if (dnnl_engine_create(&device->engine, dnnl_cpu, 0) || dnnl_stream_create(&device->stream, device->engine, 0))
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "oneDNN does not start on this cpu");
	PSD_TRY(link_layers(device, err));
	PSD_TRY(take_states(device, err));
	for (unsigned l = 0; l < device->graph->n_layers; l++)
		PSD_TRY(take_gradients(&device->layers[l], err));
	for (unsigned l = 0; l < device->graph->n_layers; l++)
		PSD_TRY(prepare_layer(&device->layers[l], err));
	return psd_cpu_place(device, err);
}

static enum psd_status open_device(struct psd_device **device, const struct psd_device_options *options,
				   struct psd_error *err)
{
	struct psd_device *opened;

	assert(options->arithmetic == PSD_LAYERS_FP32); /* has_fp32_alone */
	opened = calloc(1, sizeof(*opened));
	if (!opened)
		return psd_cpu_no_memory(err);
	opened->n_threads = options->n_threads;
	*device = opened;
	return PSD_OK;
}

static enum psd_status load(struct psd_device *device, const struct psd_graph *graph,
			    const struct psd_network_options *options, float *const parameters[],
			    float *const gradients[], struct psd_error *err)
{
	PSD_TRY(psd_libraries_need(PSD_LIBRARY_ONEDNN, err));
	device->graph = graph;
	device->options = *options;
	/* set before prepare(): oneDNN's primitives divide their work among threads when they are created */
	omp_set_num_threads((int)device->n_threads);
	return prepare(device, parameters, gradients, err);
}

static enum psd_status begin(struct psd_device *device, const struct psd_batch *batch, struct psd_error *err)
{
	(void)err;
	device->batch = *batch;
	device->loss = 0;
	device->correct = 0;
	device->layers[0].own.value = (void *)(uintptr_t)batch->images; /* read only */
	for (unsigned t = 0; batch->gradients && t < device->graph->n_tensors; t++)
		device->gradients[t] = batch->gradients[t];
	for (unsigned l = 0; l < device->graph->n_layers; l++)
		device->layers[l].own.is_filled = false;
	return PSD_OK;
}

/* Executes the forward pass of a layer. Layers may be executed by different threads, so the number of threads is set in
 * each call. */
static enum psd_status forward(struct psd_device *device, unsigned layer, struct psd_error *err)
{
	omp_set_num_threads((int)device->n_threads);
	return device->layers[layer].kind->forward(&device->layers[layer], err);
}

static void add_to(float *sum, const float *part, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		sum[i] += part[i];
}

/* Adds the gradients of a shared tensor by all layers that share it. `owner` is the lowest of these layers, so all
 * gradients are computed when its backward pass has ended. */
static void add_shared(const struct psd_cpu_layer *owner)
{
	const struct psd_device *device = owner->device;

	for (unsigned l = owner->number + 1; l < device->graph->n_layers; l++) {
		const struct psd_cpu_layer *other = &device->layers[l];
		const unsigned first = owner->model->first_tensor;

		for (unsigned i = 0; i < other->model->n_shared && other->model->first_tensor == first; i++)
			add_to(owner->gradients[i], other->gradients[i], device->graph->tensors[first + i].elements);
	}
}

static enum psd_status backward(struct psd_device *device, unsigned layer, struct psd_error *err)
{
	struct psd_cpu_layer *self = &device->layers[layer];

	omp_set_num_threads((int)device->n_threads);
	if (!self->model->is_trained)
		return PSD_OK;
	/* the loss does not depend on this blob, so its gradient is 0 */
	if (self->blob->has_diff && !self->blob->is_filled) {
		memset(self->blob->diff, 0, self->blob->bytes);
		self->blob->is_filled = true;
	}
	PSD_TRY(self->kind->backward(self, err));
	if (self->model->n_tensors > 0)
		add_shared(self);
	return PSD_OK;
}

static double get_loss(const struct psd_device *device)
{
	return device->loss;
}

static uint32_t get_correct(const struct psd_device *device)
{
	return device->correct;
}

static enum psd_status read_state(struct psd_device *device, unsigned state, float *values, struct psd_error *err)
{
	(void)err;
	memcpy(values, device->states[state], device->graph->states[state].elements * sizeof(*values));
	return PSD_OK;
}

static enum psd_status write_state(struct psd_device *device, unsigned state, const float *values,
				   struct psd_error *err)
{
	(void)err;
	memcpy(device->states[state], values, device->graph->states[state].elements * sizeof(*values));
	return PSD_OK;
}

static uint64_t get_memory_bytes(const struct psd_device *device)
{
	return device->held_bytes;
}

static void describe(const struct psd_device *device, char text[PSD_DEVICE_TEXT_MAX])
{
	const dnnl_version_t *dnnl = dnnl_version();

	(void)device;
	snprintf(text, PSD_DEVICE_TEXT_MAX, "oneDNN %d.%d.%d", dnnl->major, dnnl->minor, dnnl->patch);
}

/* Returns 1 if oneDNN can be used. It is loaded at run time in some builds. */
static unsigned count(struct psd_error *why)
{
	return psd_libraries_need(PSD_LIBRARY_ONEDNN, why) == PSD_OK;
}

/* oneDNN compiles all its products of matrices at the first one, which takes 25 ms of a processor. */
static void prepare_forks(void)
{
	const float ones[] = {1.0f, 1.0f, 1.0f, 1.0f};
	float product[4];
	struct psd_error unused;

	if (psd_libraries_need(PSD_LIBRARY_ONEDNN, &unused) == PSD_OK)
		(void)dnnl_sgemm('N', 'N', 2, 2, 2, 1.0f, ones, 2, ones, 2, 0.0f, product, 2);
}

const struct psd_device_kind psd_device_cpu = {
	.name = "cpu",
	.has_fp32_alone = true,
	.count = count,
	.prepare_forks = prepare_forks,
	.open = open_device,
	.close = close_device,
	.load = load,
	.begin = begin,
	.forward = forward,
	.backward = backward,
	.loss = get_loss,
	.correct = get_correct,
	.keep_factors = psd_cpu_keep_factors,
	.rebuild = psd_cpu_rebuild,
	.read_state = read_state,
	.write_state = write_state,
	.describe = describe,
	.memory_bytes = get_memory_bytes,
	.kernels = &psd_kernels_here,
};
