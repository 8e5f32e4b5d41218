/* Seconds that a device takes for each layer of a graph, forward and backward, measured on the compute of real runs,
 * with generated samples. Starts no processes: callers measure workers that share a machine in several processes. */
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
	unsigned number; /* number of the device, see psd_device_options */
	enum psd_layer_arithmetic arithmetic;
	uint32_t batch;	    /* number of samples in an iteration */
	unsigned n_threads; /* number of processor threads in a layer, >= 1 */
	unsigned n_repeats; /* number of measured iterations, after one that warms up; >= 1 */
	bool is_cpu_time;   /* measure processor time of the calling thread; false: wall time, or the device's own */
	bool is_without_graphs; /* launch layers one by one, see psd_device_options */
	bool may_differ;
	/* Called before each iteration, which other processes are to begin at the same time. May be NULL. */
	void (*begin)(void *context);
	void *context;
};

/* Measured seconds of layers, sorted in ascending order, except turn_sec. Entry n_repeats / 2 is the median. */
struct psd_layer_times {
	struct psd_layer_times_options options;
	const struct psd_graph *graph; /* graph whose layers are measured, borrowed */
	struct psd_device *device;
	struct psd_stopwatch watch;
	uint64_t *marks; /* marks before each pass of an iteration, and after the last; shape (2 n_layers + 1) */
	double *forward_sec, *backward_sec; /* seconds of each layer, sorted; shape (n_layers, n_repeats) each */
	double *iteration_sec;		    /* seconds of each iteration, sorted; shape (n_repeats) */
	double *turn_sec;		    /* seconds of each iteration, in their own order; shape (n_repeats) */
	double whole_ratio;		    /* median of iterations divided by the sum of the layers' medians */
	/* Tensors in the device's memory, n_tensors pointers each; one block of pointers. */
	float **parameters, **gradients;
	float *images;	 /* images (batch, channels, height, width) in the host's memory, or tokens */
	int32_t *labels; /* labels of the images; shape (batch, graph->labels) */
	/* Copies of images and labels in memory from which the device copies; NULL: it copies nothing. */
	float *fetched_images;
	int32_t *fetched_labels;
	bool is_open;
};

/* Opens the device and fills *times, with all seconds 0; psd_layer_times_release() releases it. PSD_EINVAL: the device
 * does not exist, or does not know a layer; PSD_ENOMEM, PSD_ERUN. */
enum psd_status psd_layer_times_open(struct psd_layer_times *times, const struct psd_graph *graph,
				     const struct psd_layer_times_options *options,
				     struct psd_error *err) PSD_MUST_CHECK;
void psd_layer_times_release(struct psd_layer_times *times);

/* Measures the layers and stores their seconds. Statuses are those of the layers. */
enum psd_status psd_layer_times_measure(struct psd_layer_times *times, struct psd_error *err) PSD_MUST_CHECK;

/* Median seconds of a layer. secs: forward_sec or backward_sec. Medians are scaled so that their sum is the median of
 * an iteration, since a disturbance of one layer at a time changes no median but lengthens every iteration. */
double psd_layer_times_sec(const struct psd_layer_times *times, const double secs[], unsigned layer);

/* Number of workers whose factors a measured rebuild uses; usual for one machine. More take longer, fewer differ by
 * little more than noise. */
#define PSD_LAYER_TIMES_REBUILD_WORKERS 4
/* Measures the time that other workers' samples add to the rebuild of a gradient. It is that of the graph's largest
 * linear layer, an (N,M) matrix, from the factors of PSD_LAYER_TIMES_REBUILD_WORKERS workers instead of one. secs:
 * n_repeats values, ascending. *flops: 2 N M for each of these samples. The fixed time of a product, such as writing
 * the matrix, belongs to the layer's backward and cancels out. Without linear layers *flops is 0 and secs are left
 * alone. PSD_ENOMEM, PSD_ERUN. */
enum psd_status psd_layer_times_rebuild(struct psd_layer_times *times, double secs[], double *flops,
					struct psd_error *err) PSD_MUST_CHECK;

/* Makes an array of floats in [-scale, scale], equal in each run, on huge pages if possible; the caller frees it. NULL:
 * no memory. */
float *psd_layer_times_values(uint64_t elements, float scale);

#endif
