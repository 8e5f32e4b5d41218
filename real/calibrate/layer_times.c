/* Iterations of a lone worker, each layer between two looks at the clock. */
#define _DEFAULT_SOURCE
#include "real/calibrate/layer_times.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "real/base/fit.h"

#define HUGE_PAGE_BYTES (UINT64_C(2) << 20)
#define REBUILD_WORKERS PSD_LAYER_TIMES_REBUILD_WORKERS

/* ---- memory ---- */

float *psd_layer_times_values(uint64_t elements, float scale)
{
	const uint64_t bytes = (elements * sizeof(float) + HUGE_PAGE_BYTES - 1) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
	float *values = aligned_alloc(HUGE_PAGE_BYTES, bytes);
	uint32_t state = 1;

	if (!values)
		return NULL;
	(void)madvise(values, bytes, MADV_HUGEPAGE);
	for (uint64_t i = 0; i < elements; i++) {
		state = state * 1664525u + 1013904223u;
		values[i] = scale * ((float)(state >> 8) * 0x1p-23f - 1.0f);
	}
	return values;
}

static enum psd_status out_of_memory(struct psd_error *err)
{
	return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a measurement of layers");
}

static enum psd_status fill_tensors(struct psd_layer_times *times, struct psd_error *err)
{
	const float parameter_scale = 0.02f; /* small enough for no activation to overflow */

	for (unsigned t = 0; t < times->graph->n_tensors; t++) {
		times->parameters[t] = psd_layer_times_values(times->graph->tensors[t].elements, parameter_scale);
		times->gradients[t] = psd_layer_times_values(times->graph->tensors[t].elements, parameter_scale);
		if (!times->parameters[t] || !times->gradients[t])
			return out_of_memory(err);
	}
	return PSD_OK;
}

static enum psd_status allocate(struct psd_layer_times *times, struct psd_error *err)
{
	const struct psd_graph *graph = times->graph;
	const struct psd_shape shape = graph->layers[0].shape;
	const unsigned n_repeats = times->options.n_repeats;

	times->forward_sec = calloc((2 * (size_t)graph->n_layers + 2) * n_repeats, sizeof(*times->forward_sec));
	times->parameters = calloc(2 * (size_t)graph->n_tensors + 1, sizeof(*times->parameters));
	times->labels = calloc(times->options.batch, sizeof(*times->labels));
	times->images = psd_layer_times_values(
		(uint64_t)times->options.batch * shape.channels * shape.height * shape.width, 1.0f);
	if (!times->forward_sec || !times->parameters || !times->labels || !times->images)
		return out_of_memory(err);
	times->backward_sec = times->forward_sec + graph->n_layers * n_repeats;
	times->iteration_sec = times->backward_sec + graph->n_layers * n_repeats;
	times->turn_sec = times->iteration_sec + n_repeats;
	times->gradients = times->parameters + graph->n_tensors;
	return fill_tensors(times, err);
}

enum psd_status psd_layer_times_open(struct psd_layer_times *times, const struct psd_graph *graph,
				     const struct psd_layer_times_options *options, struct psd_error *err)
{
	const struct psd_device_options device_options = {.n_threads = options->n_threads};
	const struct psd_network_options network_options = {
		.batch = options->batch, .seed = 1, .loss_divisor = options->batch};
	struct psd_layer_times opened = {.options = *options, .graph = graph};
	enum psd_status status = allocate(&opened, err);

	if (!status)
		status = psd_device_cpu.open(&opened.device, &device_options, err);
	if (!status)
		status = psd_device_cpu.load(opened.device, graph, &network_options, opened.parameters,
					     opened.gradients, err);
	if (status)
		psd_layer_times_release(&opened);
	else
		*times = opened;
	return status;
}

void psd_layer_times_release(struct psd_layer_times *times)
{
	psd_device_cpu.close(times->device);
	for (unsigned t = 0; times->parameters && t < 2 * times->graph->n_tensors; t++)
		free(times->parameters[t]);
	free(times->parameters);
	free(times->forward_sec);
	free(times->images);
	free(times->labels);
	*times = (struct psd_layer_times){.graph = NULL};
}

/* ---- layers ---- */

static double now_sec(const struct psd_layer_times *times)
{
	struct timespec now;

	clock_gettime(times->options.is_cpu_time ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* repeat: where the seconds are kept; those of the warm-up are overwritten. */
static enum psd_status iterate(struct psd_layer_times *times, uint64_t iteration, unsigned repeat,
			       struct psd_error *err)
{
	const struct psd_batch batch = {
		.images = times->images, .labels = times->labels, .iteration = iteration, .is_training = true};
	const unsigned n_layers = times->graph->n_layers, n_repeats = times->options.n_repeats;
	const double begin_sec = now_sec(times);
	enum psd_status status = psd_device_cpu.begin(times->device, &batch, err);

	for (unsigned l = 0; l < n_layers && !status; l++) {
		const double start_sec = now_sec(times);

		status = psd_device_cpu.forward(times->device, l, err);
		times->forward_sec[l * n_repeats + repeat] = now_sec(times) - start_sec;
	}
	for (unsigned l = n_layers; l-- > 0 && !status;) {
		const double start_sec = now_sec(times);

		status = psd_device_cpu.backward(times->device, l, err);
		times->backward_sec[l * n_repeats + repeat] = now_sec(times) - start_sec;
	}
	times->turn_sec[repeat] = now_sec(times) - begin_sec;
	return status;
}

static double median_of(const struct psd_layer_times *times, const double secs[])
{
	return secs[times->options.n_repeats / 2];
}

enum psd_status psd_layer_times_measure(struct psd_layer_times *times, struct psd_error *err)
{
	const unsigned n_repeats = times->options.n_repeats;
	enum psd_status status = PSD_OK;
	double layers_sec = 0.0;

	for (unsigned i = 0; i <= n_repeats && !status; i++) {
		if (times->options.begin)
			times->options.begin(times->options.context);
		status = iterate(times, i, i > 0 ? i - 1 : 0, err);
	}
	memcpy(times->iteration_sec, times->turn_sec, n_repeats * sizeof(*times->turn_sec));
	psd_fit_sort(times->iteration_sec, n_repeats);
	for (unsigned l = 0; l < times->graph->n_layers; l++) {
		psd_fit_sort(times->forward_sec + l * n_repeats, n_repeats);
		psd_fit_sort(times->backward_sec + l * n_repeats, n_repeats);
		layers_sec += median_of(times, times->forward_sec + l * n_repeats) +
			      median_of(times, times->backward_sec + l * n_repeats);
	}
	times->whole_ratio = layers_sec > 0.0 ? median_of(times, times->iteration_sec) / layers_sec : 1.0;
	return status;
}

double psd_layer_times_sec(const struct psd_layer_times *times, const double secs[], unsigned layer)
{
	return times->whole_ratio * median_of(times, secs + layer * times->options.n_repeats);
}

/* ---- rebuilds ---- */

/* Of the tensors that factors can rebuild; NULL without one. */
static const struct psd_tensor *find_largest(const struct psd_graph *graph)
{
	const struct psd_tensor *largest = NULL;

	for (unsigned t = 0; t < graph->n_tensors; t++) {
		const struct psd_tensor *tensor = &graph->tensors[t];

		if (tensor->rows > 0 && (!largest || tensor->elements > largest->elements))
			largest = tensor;
	}
	return largest;
}

static enum psd_status time_rebuild(const struct psd_layer_times *times, const struct psd_tensor *weight,
				    const struct psd_factors *factors, uint32_t samples, double *sec,
				    struct psd_error *err)
{
	const double start_sec = now_sec(times);
	const enum psd_status status =
		psd_device_cpu.rebuild(times->device, factors, samples, weight->rows, weight->columns,
				       times->gradients[weight - times->graph->tensors], NULL, err);

	*sec = now_sec(times) - start_sec;
	return status;
}

/* Of times in ascending order, those of one rank. Where the machine's noise exceeds what the samples of other workers
 * add, it is taken to be their share of the whole, which is more than they add. */
static enum psd_status time_rebuilds(struct psd_layer_times *times, const struct psd_tensor *weight,
				     const struct psd_factors *factors, double own_secs[], double secs[],
				     struct psd_error *err)
{
	const unsigned n_repeats = times->options.n_repeats;
	const uint32_t batch = times->options.batch;
	enum psd_status status = PSD_OK;

	for (unsigned i = 0; i <= n_repeats && !status; i++) {
		const unsigned repeat = i > 0 ? i - 1 : 0; /* the first warms up */

		status = time_rebuild(times, weight, factors, batch, &own_secs[repeat], err);
		if (!status)
			status = time_rebuild(times, weight, factors, REBUILD_WORKERS * batch, &secs[repeat], err);
	}
	psd_fit_sort(own_secs, n_repeats);
	psd_fit_sort(secs, n_repeats);
	for (unsigned i = 0; i < n_repeats; i++)
		secs[i] = secs[i] > own_secs[i] ? secs[i] - own_secs[i]
						: secs[i] * (REBUILD_WORKERS - 1) / REBUILD_WORKERS;
	psd_fit_sort(secs, n_repeats);
	return status;
}

enum psd_status psd_layer_times_rebuild(struct psd_layer_times *times, double secs[], double *flops,
					struct psd_error *err)
{
	const uint64_t samples = (uint64_t)REBUILD_WORKERS * times->options.batch;
	const struct psd_tensor *weight = find_largest(times->graph);
	struct psd_factors factors;
	double *own_secs;
	enum psd_status status = PSD_OK;

	*flops = 0.0;
	if (!weight)
		return PSD_OK;
	own_secs = calloc(times->options.n_repeats, sizeof(*own_secs));
	factors.top_diff = psd_layer_times_values(samples * weight->columns, 1.0f);
	factors.bottom = psd_layer_times_values(samples * weight->rows, 1.0f);
	if (own_secs && factors.top_diff && factors.bottom) {
		status = time_rebuilds(times, weight, &factors, own_secs, secs, err);
		*flops = 2.0 * (REBUILD_WORKERS - 1) * times->options.batch * (double)weight->elements;
	} else {
		status = out_of_memory(err);
	}
	free(own_secs);
	free(factors.top_diff);
	free(factors.bottom);
	return status;
}
