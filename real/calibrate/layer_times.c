#define _DEFAULT_SOURCE
#include "real/calibrate/layer_times.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "real/base/fit.h"
#include "real/data/random.h"

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

/* Values as those of psd_layer_times_values(), in the device's memory. */
static enum psd_status allocate_values(struct psd_layer_times *times, uint64_t elements, float scale, float **values,
				       struct psd_error *err)
{
	const struct psd_device_kind *kind = times->options.kind;
	const uint64_t bytes = elements * sizeof(float);
	float *here = psd_layer_times_values(elements, scale);
	void *there = NULL;

	*values = here;
	if (!here)
		return out_of_memory(err);
	if (!kind->has_own_memory)
		return PSD_OK;
	enum psd_status status = kind->take(times->device, bytes, &there, err);
	if (!status)
		status = kind->copy(times->device, PSD_STREAM_COPY_IN, there, here, bytes, err);
	if (!status)
		status = psd_stopwatch_wait(&times->watch, PSD_STREAM_COPY_IN,
					    psd_stopwatch_mark(&times->watch, PSD_STREAM_COPY_IN), err);
	free(here);
	*values = there;
	return status;
}

/* A device's own memory is freed when it closes. */
static void free_values(const struct psd_layer_times *times, float *values)
{
	if (!times->options.kind->has_own_memory)
		free(values);
}

static enum psd_status fill_tensors(struct psd_layer_times *times, struct psd_error *err)
{
	const float parameter_scale = 0.02f; /* small, so that no activation overflows */

	for (unsigned t = 0; t < times->graph->n_tensors; t++) {
		const uint64_t elements = times->graph->tensors[t].elements;

		PSD_TRY(allocate_values(times, elements, parameter_scale, &times->parameters[t], err));
		PSD_TRY(allocate_values(times, elements, parameter_scale, &times->gradients[t], err));
	}
	return PSD_OK;
}

/* Tokens are drawn from the whole vocabulary: a few rows would stay in the caches. NULL: no memory. */
static float *make_images(const struct psd_graph *graph, uint64_t elements)
{
	float *images = psd_layer_times_values(elements, 1.0f);

	for (uint64_t i = 0; images && graph->vocabulary > 0 && i < elements; i++)
		images[i] = (float)psd_random_below(psd_random_mix(i), graph->vocabulary);
	return images;
}

/* Samples for a device with its own memory lie where it copies from at full speed. */
static enum psd_status allocate_samples(struct psd_layer_times *times, struct psd_error *err)
{
	const struct psd_shape shape = times->graph->layers[0].shape;
	const uint64_t elements = (uint64_t)times->options.batch * shape.channels * shape.height * shape.width;
	const uint64_t n_labels = times->options.batch * times->graph->labels + 1; /* never 0, even without a loss */
	const struct psd_device_kind *kind = times->options.kind;
	void *block;

	times->images = make_images(times->graph, elements);
	times->labels = calloc(n_labels, sizeof(*times->labels));
	if (!times->images || !times->labels)
		return out_of_memory(err);
	if (!kind->fetch)
		return PSD_OK;
	PSD_TRY(kind->take_host(times->device, elements * sizeof(float), &block, err));
	times->fetched_images = memcpy(block, times->images, elements * sizeof(float));
	PSD_TRY(kind->take_host(times->device, n_labels * sizeof(int32_t), &block, err));
	times->fetched_labels = memcpy(block, times->labels, n_labels * sizeof(int32_t));
	return PSD_OK;
}

static enum psd_status allocate(struct psd_layer_times *times, struct psd_error *err)
{
	const struct psd_graph *graph = times->graph;
	const unsigned n_repeats = times->options.n_repeats;

	if (2 * graph->n_layers >= PSD_MOST_MARKS)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE,
				     "the graph has %u layers, must have %u at most to be timed", graph->n_layers,
				     (PSD_MOST_MARKS - 1u) / 2);
	times->forward_sec = calloc((2 * (size_t)graph->n_layers + 2) * n_repeats, sizeof(*times->forward_sec));
	times->parameters = calloc(2 * (size_t)graph->n_tensors + 1, sizeof(*times->parameters));
	times->marks = calloc(2 * (size_t)graph->n_layers + 1, sizeof(*times->marks));
	if (!times->forward_sec || !times->parameters || !times->marks)
		return out_of_memory(err);
	times->backward_sec = times->forward_sec + graph->n_layers * n_repeats;
	times->iteration_sec = times->backward_sec + graph->n_layers * n_repeats;
	times->turn_sec = times->iteration_sec + n_repeats;
	times->gradients = times->parameters + graph->n_tensors;
	return PSD_OK;
}

static enum psd_status open_device(struct psd_layer_times *times, struct psd_error *err)
{
	const struct psd_device_options device_options = {.n_threads = times->options.n_threads,
							  .number = times->options.number,
							  .arithmetic = times->options.arithmetic,
							  .is_without_graphs = times->options.is_without_graphs,
							  .may_differ = times->options.may_differ};
	const enum psd_status status = times->options.kind->open(&times->device, &device_options, err);

	times->is_open = !status;
	times->watch.kind = times->options.kind;
	times->watch.device = times->device;
	times->watch.is_cpu_time = times->options.is_cpu_time;
	return status;
}

enum psd_status psd_layer_times_open(struct psd_layer_times *times, const struct psd_graph *graph,
				     const struct psd_layer_times_options *options, struct psd_error *err)
{
	const struct psd_network_options network_options = {
		.batch = options->batch, .seed = 1, .loss_divisor = options->batch};

	*times = (struct psd_layer_times){.options = *options, .graph = graph};
	enum psd_status status = allocate(times, err);
	if (!status)
		status = open_device(times, err);
	if (!status)
		status = fill_tensors(times, err);
	if (!status)
		status = allocate_samples(times, err);
	if (!status)
		status = options->kind->load(times->device, graph, &network_options, times->parameters,
					     times->gradients, err);
	if (status)
		psd_layer_times_release(times);
	return status;
}

void psd_layer_times_release(struct psd_layer_times *times)
{
	for (unsigned t = 0; times->parameters && t < 2 * times->graph->n_tensors; t++)
		free_values(times, times->parameters[t]);
	if (times->is_open)
		times->options.kind->close(times->device);
	free(times->parameters);
	free(times->forward_sec);
	free(times->marks);
	free(times->images);
	free(times->labels);
	*times = (struct psd_layer_times){.graph = NULL};
}

/* ---- layers ---- */

/* Waits until the batch is on the device: training copies it during the iteration before. */
static enum psd_status begin(struct psd_layer_times *times, uint64_t iteration, struct psd_error *err)
{
	const struct psd_device_kind *kind = times->options.kind;
	const struct psd_batch batch = {.images = kind->fetch ? times->fetched_images : times->images,
					.labels = kind->fetch ? times->fetched_labels : times->labels,
					.iteration = iteration,
					.is_training = true,
					.is_fetched = kind->fetch};

	if (kind->fetch)
		PSD_TRY(kind->fetch(times->device, &batch, err));
	PSD_TRY(kind->begin(times->device, &batch, err));
	return psd_stopwatch_wait(&times->watch, PSD_STREAM_COMPUTE,
				  psd_stopwatch_mark(&times->watch, PSD_STREAM_COMPUTE), err);
}

static double pass_sec(struct psd_layer_times *times, unsigned pass)
{
	return psd_stopwatch_between_sec(&times->watch, PSD_STREAM_COMPUTE, times->marks[pass], times->marks[pass + 1]);
}

/* repeat: index of the seconds, which overwrite those of the warm-up. One pass of one layer is between two marks. */
static enum psd_status iterate(struct psd_layer_times *times, uint64_t iteration, unsigned repeat,
			       struct psd_error *err)
{
	const struct psd_device_kind *kind = times->options.kind;
	const unsigned n_layers = times->graph->n_layers, n_repeats = times->options.n_repeats;

	PSD_TRY(begin(times, iteration, err));
	for (unsigned p = 0; p < 2 * n_layers; p++) {
		times->marks[p] = psd_stopwatch_mark(&times->watch, PSD_STREAM_COMPUTE);
		PSD_TRY(p < n_layers ? kind->forward(times->device, p, err)
				     : kind->backward(times->device, 2 * n_layers - 1 - p, err));
	}
	times->marks[2 * n_layers] = psd_stopwatch_mark(&times->watch, PSD_STREAM_COMPUTE);
	PSD_TRY(psd_stopwatch_wait(&times->watch, PSD_STREAM_COMPUTE, times->marks[2 * n_layers], err));
	for (unsigned l = 0; l < n_layers; l++) {
		times->forward_sec[l * n_repeats + repeat] = pass_sec(times, l);
		times->backward_sec[l * n_repeats + repeat] = pass_sec(times, 2 * n_layers - 1 - l);
	}
	times->turn_sec[repeat] = psd_stopwatch_between_sec(&times->watch, PSD_STREAM_COMPUTE, times->marks[0],
							    times->marks[2 * n_layers]);
	return PSD_OK;
}

static double median_of(const struct psd_layer_times *times, const double secs[])
{
	return secs[times->options.n_repeats / 2];
}

enum psd_status psd_layer_times_measure(struct psd_layer_times *times, struct psd_error *err)
{
	const unsigned n_repeats = times->options.n_repeats;
	double layers_sec = 0.0;

	for (unsigned i = 0; i <= n_repeats; i++) {
		if (times->options.begin)
			times->options.begin(times->options.context);
		PSD_TRY(iterate(times, i, i > 0 ? i - 1 : 0, err));
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
	return PSD_OK;
}

double psd_layer_times_sec(const struct psd_layer_times *times, const double secs[], unsigned layer)
{
	return times->whole_ratio * median_of(times, secs + layer * times->options.n_repeats);
}

/* ---- rebuilds ---- */

/* The largest tensor that factors can rebuild, or NULL. */
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

static enum psd_status time_rebuild(struct psd_layer_times *times, const struct psd_tensor *weight,
				    const struct psd_factors *factors, uint32_t samples, double *sec,
				    struct psd_error *err)
{
	const uint64_t from = psd_stopwatch_mark(&times->watch, PSD_STREAM_COMPUTE);
	enum psd_status status =
		times->options.kind->rebuild(times->device, factors, samples, weight->rows, weight->columns,
					     times->gradients[weight - times->graph->tensors], NULL, err);
	const uint64_t to = psd_stopwatch_mark(&times->watch, PSD_STREAM_COMPUTE);

	if (!status)
		status = psd_stopwatch_wait(&times->watch, PSD_STREAM_COMPUTE, to, err);
	*sec = status ? 0.0 : psd_stopwatch_between_sec(&times->watch, PSD_STREAM_COMPUTE, from, to);
	return status;
}

/* Differences of sorted times with and without other workers' samples. Where noise is larger than the difference, these
 * samples' share of the whole counts, an upper bound. */
static enum psd_status time_rebuilds(struct psd_layer_times *times, const struct psd_tensor *weight,
				     const struct psd_factors *factors, double own_secs[], double secs[],
				     struct psd_error *err)
{
	const unsigned n_repeats = times->options.n_repeats;
	const uint32_t batch = times->options.batch;

	for (unsigned i = 0; i <= n_repeats; i++) {
		const unsigned repeat = i > 0 ? i - 1 : 0; /* the first warms up */

		PSD_TRY(time_rebuild(times, weight, factors, batch, &own_secs[repeat], err));
		PSD_TRY(time_rebuild(times, weight, factors, REBUILD_WORKERS * batch, &secs[repeat], err));
	}
	psd_fit_sort(own_secs, n_repeats);
	psd_fit_sort(secs, n_repeats);
	for (unsigned i = 0; i < n_repeats; i++)
		secs[i] = secs[i] > own_secs[i] ? secs[i] - own_secs[i]
						: secs[i] * (REBUILD_WORKERS - 1) / REBUILD_WORKERS;
	psd_fit_sort(secs, n_repeats);
	return PSD_OK;
}

enum psd_status psd_layer_times_rebuild(struct psd_layer_times *times, double secs[], double *flops,
					struct psd_error *err)
{
	const uint64_t samples = (uint64_t)REBUILD_WORKERS * times->options.batch;
	const struct psd_tensor *weight = find_largest(times->graph);
	struct psd_factors factors = {NULL, NULL};
	double *own_secs;

	*flops = 0.0;
	if (!weight)
		return PSD_OK;
	own_secs = calloc(times->options.n_repeats, sizeof(*own_secs));
	enum psd_status status =
		own_secs ? allocate_values(times, samples * weight->columns, 1.0f, &factors.top_diff, err)
			 : out_of_memory(err);
	if (!status)
		status = allocate_values(times, samples * weight->rows, 1.0f, &factors.bottom, err);
	if (!status)
		status = time_rebuilds(times, weight, &factors, own_secs, secs, err);
	if (!status)
		*flops = 2.0 * (REBUILD_WORKERS - 1) * times->options.batch * (double)weight->elements;
	free(own_secs);
	free_values(times, factors.top_diff);
	free_values(times, factors.bottom);
	return status;
}
