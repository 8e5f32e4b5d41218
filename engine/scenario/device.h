/* Devices that a scenario may name: makers' figures, and efficiencies. */
#ifndef PSD_DEVICE_H
#define PSD_DEVICE_H

#include <stdbool.h>

/* A device in the roofline model: a layer takes max(flops / (peak * efficiency of its kind), bytes / (memory bandwidth
 * * efficiency)). */
struct psd_device_row {
	const char *name;
	bool shares_memory;		/* with its host; otherwise tensors are copied between them */
	double peak_flops_per_sec;	/* fp32 */
	double conv_peak_flops_per_sec; /* convolutions in fp32: TF32 matrix units if it has any */
	double peak_half_flops_per_sec; /* fp16 matrix units; equals fp32 where there are none */
	double memory_bps;		/* bits per second, as all rates */
	double conv_efficiency_ratio;	/* achieved share of the peak; algorithms with fewer products may pass 1 */
	double gemm_efficiency_ratio;	/* linear layers and factor rebuilds */
	double half_efficiency_ratio; /* achieved share of the half peak, for both kinds: matrix units starve sooner */
	double conv_half_depth; /* a convolution that sums d products for each output achieves d / (d + this) of it */
	double memory_efficiency_ratio; /* achieved share of the memory's bandwidth */
	const char *source;		/* origin of the figures, and extrapolations */
};

/* The row of a name; "cpu" is a processor with generic figures. NULL: there is none. */
const struct psd_device_row *psd_device_find(const char *name);
extern const char *const psd_device_names[]; /* NULL-terminated */

#endif
