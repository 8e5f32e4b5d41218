/* Devices that a scenario may name: makers' figures, and the share that is achieved of them. */
#ifndef PSD_DEVICE_H
#define PSD_DEVICE_H

#include <stdbool.h>

/* A device as the roofline sees it: a layer takes max(flops / (peak * efficiency of its kind), bytes / (memory
 * bandwidth * efficiency)). */
struct psd_device_row {
	const char *name;
	bool shares_memory;		/* with its host; else tensors are copied between the two */
	double peak_flops_per_sec;	/* fp32 */
	double conv_peak_flops_per_sec; /* of convolutions in fp32: TF32 matrix units where there are, else as above */
	double peak_half_flops_per_sec; /* fp16 matrix units; equals fp32 where there are none */
	double memory_bps;		/* bits per second, as all rates */
	double conv_efficiency_ratio;	/* achieved share of the peak; algorithms with fewer products may pass 1 */
	double gemm_efficiency_ratio;	/* inner products and factor rebuilds */
	double half_efficiency_ratio;	/* achieved share of the half peak, both kinds alike: matrix units starve sooner
					 */
	double conv_half_depth; /* a convolution that sums d products for each output achieves d / (d + this) of it */
	double memory_efficiency_ratio; /* achieved share of the memory's bandwidth */
	const char *source;		/* where the figures come from, and what is extrapolated */
};

/* "cpu": this processor, generic figures until measured. NULL when there is none. */
const struct psd_device_row *psd_device_find(const char *name);
extern const char *const psd_device_names[]; /* NULL-terminated */

#endif
