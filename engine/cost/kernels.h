/* Rules for the times of layers on a GPU, by the layer's kind and size, the precision and the batch. */
#ifndef PSD_KERNELS_H
#define PSD_KERNELS_H

#include "engine/model/graph.h"
#include "engine/scenario/device.h"

struct psd_layer_sec {
	double forward_sec, backward_sec; /* seconds of one layer for the whole batch of one worker */
};

/* Returns the rate of large matrix products on a device, processors included, in FLOPs per second. Pure, any
 * thread. */
double psd_kernels_gemm_rate(const struct psd_device_row *device, enum psd_precision precision);
/* Returns the times of layer i of the graph for a batch. The layer must not be an input; the device must be a GPU that
 * has the precision; batch: samples of one worker. Pure, any thread. */
struct psd_layer_sec psd_kernels_layer(const struct psd_device_row *device, enum psd_precision precision,
				       const struct psd_graph *graph, unsigned i, unsigned batch);

#endif
