/* Measures the duration of each layer of a graph on a device, for the forward and the backward pass. The layers are
 * computed as in a real run, with generated samples. Starts no processes. To measure workers that share a machine, the
 * caller starts several processes. */
#ifndef PSD_REAL_LAYER_TIMES_H
#define PSD_REAL_LAYER_TIMES_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"
#include "engine/model/graph.h"
#include "real/calibrate/stopwatch.h"
#include "real/device/device.h"

struct psd_layer_times_options {
	const struct psd_device_kind *kind;
	unsigned number; /* number of the device on its machine, see psd_device_options */
	enum psd_layer_arithmetic arithmetic;
	uint32_t batch;	    /* number of samples in an iteration */
	unsigned n_threads; /* number of processor threads that compute a layer, >= 1 */
	unsigned n_repeats; /* number of measured iterations, >= 1; one more is executed before them to warm up */
	/* Measure processor time of the calling thread. False: elapsed time, by the device's own clock if it is
	 * asynchronous. */
	bool is_cpu_time;
	/* Start layers one by one, not together as a CUDA graph, see psd_device_options. */
	bool is_without_graphs;
	bool may_differ;
	/* Called before each iteration; it waits until the other processes also begin their iteration. NULL: no
	 * waiting. */
	void (*begin)(void *context);
	void *context;
};

/* Measured durations. The values of each layer are in ascending order, so that entry n_repeats / 2 is their median.
 * Only turn_sec is in the order of measurement. */
struct psd_layer_times {
	struct psd_layer_times_options options;
	const struct psd_graph *graph; /* graph whose layers are measured; borrowed */
	struct psd_device *device;
	struct psd_stopwatch watch;
	/* Numbers of the stopwatch's marks (events in the device's stream): one before each layer's pass, and one after
	 * the last pass; shape (2 * n_layers + 1). */
	uint64_t *marks;
	double *forward_sec;   /* seconds of each layer's forward pass, sorted; shape (n_layers, n_repeats) */
	double *backward_sec;  /* seconds of each layer's backward pass, sorted; shape (n_layers, n_repeats) */
	double *iteration_sec; /* seconds of each iteration, sorted; shape (n_repeats) */
	/* Duration of each iteration, seconds, in the order of measurement; shape (n_repeats). */
	double *turn_sec;
	/* (median of iteration_sec) / (sum of the medians of all layers, forward and backward). */
	double whole_ratio;
	/* Tensors in the device's memory: for each tensor of the graph one array of parameters and one of gradients.
	 * Both arrays of pointers are in one allocation. */
	float **parameters, **gradients;
	/* Generated input in the host's memory: images, shape (batch, channels, height, width); tokens for a language
	 * model. */
	float *images;
	int32_t *labels; /* generated labels of the images; shape (batch, graph->labels) */
	/* Copies of `images` and `labels` in memory from which the device copies them (psd_device_kind.fetch). NULL:
	 * the device reads `images` and `labels` themselves. */
	float *fetched_images;
	int32_t *fetched_labels;
	bool is_open;
};

/* Opens the device and prepares *times; all durations are 0. psd_layer_times_release() releases *times. PSD_EINVAL:
 * there is no such device, or it cannot compute a layer of the graph; PSD_ENOMEM, PSD_ERUN. */
enum psd_status psd_layer_times_open(struct psd_layer_times *times, const struct psd_graph *graph,
				     const struct psd_layer_times_options *options,
				     struct psd_error *err) PSD_MUST_CHECK;
void psd_layer_times_release(struct psd_layer_times *times);

/* Executes the iterations, and stores the durations of each layer in *times. Statuses of the device's functions. */
enum psd_status psd_layer_times_measure(struct psd_layer_times *times, struct psd_error *err) PSD_MUST_CHECK;

/* Returns the median duration of a layer, multiplied by whole_ratio, seconds. secs: times->forward_sec or
 * times->backward_sec. The factor makes the sum over all layers equal to the median of an iteration. Without it, some
 * disturbances would be missed: one that hits another layer in each iteration changes no layer's median, but lengthens
 * every iteration. */
double psd_layer_times_sec(const struct psd_layer_times *times, const double secs[], unsigned layer);

/* Number of workers whose factors are used to measure how long it takes to compute a gradient from factors. It is a
 * usual number of workers on one machine. More workers would take longer; with fewer, the measured difference would
 * hardly exceed the noise. */
#define PSD_LAYER_TIMES_REBUILD_WORKERS 4
/* Measures how much longer the computation of a gradient from factors takes with the samples of several workers. The
 * result is the time with the factors of PSD_LAYER_TIMES_REBUILD_WORKERS workers minus the time with the factors of one
 * worker. The gradient belongs to the graph's largest linear layer, and is a matrix (N, M). So the result does not
 * contain the constant part of the time, such as writing the matrix, which belongs to the layer's backward pass. secs:
 * n_repeats results in seconds, in ascending order; *flops: floating-point operations in that time, 2 * N * M for each
 * sample of another worker. If the graph has no linear layer, *flops is 0 and secs is unchanged. PSD_ENOMEM,
 * PSD_ERUN. */
enum psd_status psd_layer_times_rebuild(struct psd_layer_times *times, double secs[], double *flops,
					struct psd_error *err) PSD_MUST_CHECK;

/* Returns an array of `elements` floats between -scale and scale, the same in each run. It is on huge pages if
 * possible. The caller frees it. Returns NULL if memory runs out. */
float *psd_layer_times_values(uint64_t elements, float scale);

#endif
