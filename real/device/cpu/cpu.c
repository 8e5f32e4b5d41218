/* The CPU backend: opens a network on oneDNN and hands each layer to its kind. What a kind does is in a file of its
 * own; memory formats and sharing in blob.c. Refuses to reorder layers: the caller's program decides when each runs. */
#include "real/device/cpu/cpu.h"

#include <stdlib.h>
#include <string.h>

static enum psd_status prepare_input(struct psd_cpu_layer *self, struct psd_error *err)
{
	const dnnl_memory_desc_t plain = psd_cpu_plain(self);

	if (self->number != 0)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE,
				     "layer '%.80s' is a second input, the cpu does one, the first layer",
				     self->model->name);
	return psd_cpu_declare(self, &plain, err);
}

/* begin() has already pointed the blob to the images. */
static enum psd_status forward_input(struct psd_cpu_layer *self, struct psd_error *err)
{
	(void)self, (void)err;
	return PSD_OK;
}

static const struct psd_cpu_kind input_kind = {.prepare = prepare_input, .forward = forward_input};

static const struct {
	const struct psd_layer_kind *of;
	const struct psd_cpu_kind *kind;
} rows[] = {{&psd_layer_input, &input_kind},
#define ROW(kind) {&psd_layer_##kind, &psd_cpu_##kind},
	    PSD_CPU_KINDS(ROW)
#undef ROW
};

const struct psd_cpu_kind *psd_cpu_find_kind(const struct psd_layer_kind *kind)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].of == kind)
			return rows[i].kind;
	return NULL;
}

static void close_compute(struct psd_compute *compute)
{
	if (!compute)
		return;
	psd_cpu_release_ops(compute);
	psd_cpu_release_taken(compute);
	if (compute->stream)
		dnnl_stream_destroy(compute->stream);
	if (compute->engine)
		dnnl_engine_destroy(compute->engine);
	free(compute);
}

static enum psd_status link_layers(struct psd_compute *compute, struct psd_error *err)
{
	const struct psd_graph *graph = compute->graph;

	for (unsigned l = 0; l < graph->n_layers; l++) {
		const struct psd_layer *model = &graph->layers[l];
		struct psd_cpu_layer *layer = &compute->layers[l];

		layer->compute = compute;
		layer->number = l;
		layer->model = model;
		layer->kind = psd_cpu_find_kind(model->kind);
		if (!layer->kind)
			return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE,
					     "layer '%.80s' (%s): the cpu has no such kind", model->name,
					     model->kind->name);
		for (unsigned i = 0; i < model->n_inputs; i++) {
			compute->layers[model->inputs[i]].n_readers++;
			compute->layers[model->inputs[i]].last_reader = l;
		}
	}
	return PSD_OK;
}

static enum psd_status copy_slots(struct psd_compute *compute, float *const parameters[], float *const gradients[],
				  struct psd_error *err)
{
	const unsigned n_tensors = compute->graph->n_tensors;

	compute->parameters = psd_cpu_take(compute, n_tensors * sizeof(*compute->parameters));
	compute->gradients = psd_cpu_take(compute, n_tensors * sizeof(*compute->gradients));
	compute->states = psd_cpu_take(compute, compute->graph->n_states * sizeof(*compute->states));
	compute->layers = psd_cpu_take(compute, compute->graph->n_layers * sizeof(*compute->layers));
	if (!compute->parameters || !compute->gradients || !compute->states || !compute->layers)
		return psd_cpu_no_memory(err);
	for (unsigned t = 0; t < n_tensors; t++) {
		compute->parameters[t] = parameters[t];
		compute->gradients[t] = gradients[t];
	}
	return PSD_OK;
}

static enum psd_status take_states(struct psd_compute *compute, struct psd_error *err)
{
	for (unsigned s = 0; s < compute->graph->n_states; s++) {
		const struct psd_tensor *state = &compute->graph->states[s];
		float *values = psd_cpu_take(compute, state->elements * sizeof(*values));

		if (!values)
			return psd_cpu_no_memory(err);
		for (uint64_t e = 0; e < state->elements; e++)
			values[e] = state->start_value;
		compute->states[s] = values;
	}
	return PSD_OK;
}

static enum psd_status prepare_layer(struct psd_cpu_layer *layer, struct psd_error *err)
{
	layer->details = psd_cpu_take(layer->compute, layer->kind->details_bytes);
	return layer->details ? layer->kind->prepare(layer, err) : psd_cpu_no_memory(err);
}

static enum psd_status prepare(struct psd_compute *compute, float *const parameters[], float *const gradients[],
			       struct psd_error *err)
{
	enum psd_status status = copy_slots(compute, parameters, gradients, err);

	if (status)
		return status;
	if (dnnl_engine_create(&compute->engine, dnnl_cpu, 0) ||
	    dnnl_stream_create(&compute->stream, compute->engine, 0))
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "oneDNN does not start on this cpu");
	status = link_layers(compute, err);
	if (!status)
		status = take_states(compute, err);
	for (unsigned l = 0; l < compute->graph->n_layers && !status; l++)
		status = prepare_layer(&compute->layers[l], err);
	return status ? status : psd_cpu_place(compute, err);
}

static enum psd_status open_compute(struct psd_compute **compute, const struct psd_graph *graph,
				    const struct psd_compute_options *options, float *const parameters[],
				    float *const gradients[], struct psd_error *err)
{
	struct psd_compute *opened = calloc(1, sizeof(*opened));
	enum psd_status status;

	if (!opened)
		return psd_cpu_no_memory(err);
	opened->graph = graph;
	opened->options = *options;
	omp_set_num_threads((int)options->n_threads); /* primitives divide their work when they are made */
	status = prepare(opened, parameters, gradients, err);
	if (status) {
		close_compute(opened);
		return status;
	}
	*compute = opened;
	return PSD_OK;
}

static void begin(struct psd_compute *compute, const struct psd_batch *batch)
{
	compute->batch = *batch;
	compute->loss = 0;
	compute->correct = 0;
	compute->layers[0].own.value = (void *)(uintptr_t)batch->images; /* only ever read */
	for (unsigned t = 0; batch->gradients && t < compute->graph->n_tensors; t++)
		compute->gradients[t] = batch->gradients[t];
	for (unsigned l = 0; l < compute->graph->n_layers; l++)
		compute->layers[l].own.is_filled = false;
}

/* Layers need not be carried out by one and the same thread. */
static enum psd_status forward(struct psd_compute *compute, unsigned layer, struct psd_error *err)
{
	omp_set_num_threads((int)compute->options.n_threads);
	return compute->layers[layer].kind->forward(&compute->layers[layer], err);
}

static enum psd_status backward(struct psd_compute *compute, unsigned layer, struct psd_error *err)
{
	struct psd_cpu_layer *self = &compute->layers[layer];

	omp_set_num_threads((int)compute->options.n_threads);
	if (!self->model->is_trained)
		return PSD_OK;
	if (self->blob->has_diff && !self->blob->is_filled) { /* no loss depends on it */
		memset(self->blob->diff, 0, self->blob->bytes);
		self->blob->is_filled = true;
	}
	return self->kind->backward(self, err);
}

static double get_loss(const struct psd_compute *compute)
{
	return compute->loss;
}

static uint32_t get_correct(const struct psd_compute *compute)
{
	return compute->correct;
}

static float *get_state(const struct psd_compute *compute, unsigned state)
{
	return compute->states[state];
}

static uint64_t get_memory_bytes(const struct psd_compute *compute)
{
	return compute->held_bytes;
}

const struct psd_compute_backend psd_compute_cpu = {
	.name = "cpu",
	.open = open_compute,
	.begin = begin,
	.forward = forward,
	.backward = backward,
	.loss = get_loss,
	.correct = get_correct,
	.factors = psd_cpu_factors,
	.rebuild = psd_cpu_rebuild,
	.state = get_state,
	.memory_bytes = get_memory_bytes,
	.close = close_compute,
};
