/* Rules by which a GPU's kernels take time: by kind of layer, size, precision and batch. */
#ifndef PSD_KERNELS_H
#define PSD_KERNELS_H

#include "engine/model/graph.h"
#include "engine/scenario/device.h"

struct psd_layer_sec {
	double forward_sec, backward_sec;
};

/* Rate of long products of matrices on any device, FLOPs per second. Pure, any thread, as below. */
double psd_kernels_gemm_rate(const struct psd_device_row *device, enum psd_precision precision);
/* Seconds of layer i, which has inputs, for the batch of one worker. device: a GPU that has the precision. */
struct psd_layer_sec psd_kernels_layer(const struct psd_device_row *device, enum psd_precision precision,
				       const struct psd_graph *graph, unsigned i, unsigned batch);

#endif
