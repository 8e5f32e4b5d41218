/* Rules for the time of a GPU's kernels, by kind of layer, size, precision and batch. */
#ifndef PSD_KERNELS_H
#define PSD_KERNELS_H

#include "engine/model/graph.h"
#include "engine/scenario/device.h"

struct psd_layer_sec {
	double forward_sec, backward_sec; /* seconds for the whole batch of one worker */
};

/* Rate of large matrix products on any device, FLOPs per second. Pure, any thread, as below. */
double psd_kernels_gemm_rate(const struct psd_device_row *device, enum psd_precision precision);
/* Seconds of layer i, which must have inputs, for the batch of one worker. device: a GPU that has the precision. */
struct psd_layer_sec psd_kernels_layer(const struct psd_device_row *device, enum psd_precision precision,
				       const struct psd_graph *graph, unsigned i, unsigned batch);

#endif
