/* Seconds that a device takes for each layer of a graph, forward and backward, measured on the compute of real runs,
 * with made-up samples. Starts no processes: what workers that share a machine take is measured in several. */
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
	unsigned number; /* which of them, as in psd_device_options */
	enum psd_layer_arithmetic arithmetic;
	uint32_t batch;		/* samples of an iteration */
	unsigned n_threads;	/* of a layer, >= 1 */
	unsigned n_repeats;	/* measured, after one iteration of warm-up; >= 1 */
	bool is_cpu_time;	/* seconds of the calling thread alone; false: of the wall, or the device's own */
	bool is_without_graphs; /* see struct psd_device_options */
	bool may_differ;
	/* May be NULL. Before each iteration, to begin it together with others. */
	void (*begin)(void *context);
	void *context;
};

/* Seconds ascend, but for turn_sec, so that the first is the lowest and the one at n_repeats / 2 the median. */
struct psd_layer_times {
	struct psd_layer_times_options options;
	const struct psd_graph *graph; /* borrowed */
	struct psd_device *device;
	struct psd_stopwatch watch;
	uint64_t *marks;		    /* (2 n_layers + 1) of an iteration: before each pass, after the last */
	double *forward_sec, *backward_sec; /* (n_layers, n_repeats); all seconds lie in one block */
	double *iteration_sec;		    /* (n_repeats) */
	double *turn_sec;		    /* (n_repeats): the same in the order of the iterations */
	double whole_ratio;		    /* of an iteration's median to the sum of the layers' */
	/* where the device works: one for each tensor, the ones behind the others */
	float **parameters, **gradients;
	float *images;	 /* (batch, channels, height, width), in the host's memory; tokens of a network with some */
	int32_t *labels; /* (batch, graph->labels) */
	/* the same, that the device gave to copy from; NULL: it copies nothing */
	float *fetched_images;
	int32_t *fetched_labels;
	bool is_open;
};

/* *times is filled on success, all seconds 0, and released by psd_layer_times_release(). PSD_EINVAL: there
 * is no such device, or it does not know a layer; PSD_ENOMEM, PSD_ERUN. */
enum psd_status psd_layer_times_open(struct psd_layer_times *times, const struct psd_graph *graph,
				     const struct psd_layer_times_options *options,
				     struct psd_error *err) PSD_MUST_CHECK;
void psd_layer_times_release(struct psd_layer_times *times);

/* Fills the seconds. Statuses of the layers. */
enum psd_status psd_layer_times_measure(struct psd_layer_times *times, struct psd_error *err) PSD_MUST_CHECK;

/* The median of a layer, in secs forward or backward, all stretched alike so that together they are the median of an
 * iteration: what disturbs one layer at a time leaves medians alone, but lengthens every iteration. */
double psd_layer_times_sec(const struct psd_layer_times *times, const double secs[], unsigned layer);

/* Seconds that the samples of other workers add where the gradient of the graph's largest inner product, an (N,M)
 * matrix, is rebuilt from the factors of PSD_LAYER_TIMES_REBUILD_WORKERS workers, oneself among them, instead of one's
 * own alone: n_repeats, ascending, to secs; *flops: what they are for, 2 N M for each sample of the others. One product
 * gives the sum, so what it takes however few the samples are (writing the matrix) is part of the layer's own backward.
 * Without inner products *flops is 0 and secs are left alone. PSD_ENOMEM, PSD_ERUN. */
/* As many as runs on one machine have; more would take longer to measure, fewer leave a difference near the noise. */
#define PSD_LAYER_TIMES_REBUILD_WORKERS 4
enum psd_status psd_layer_times_rebuild(struct psd_layer_times *times, double secs[], double *flops,
					struct psd_error *err) PSD_MUST_CHECK;

/* Floats within [-scale, scale], the same in each run, on huge pages if there are any; to be freed. NULL: no memory. */
float *psd_layer_times_values(uint64_t elements, float scale);

#endif
