/* Devices that a scenario may name: makers' figures, and efficiencies. */
#ifndef PSD_DEVICE_H
#define PSD_DEVICE_H

#include <stdbool.h>

/* A device in the roofline model: a layer takes max(flops / (peak * efficiency of its kind), bytes / (memory bandwidth
 * * efficiency)). */
struct psd_device_row {
	const char *name;
	bool shares_memory;		/* device and host share memory; false: tensors are copied between them */
	double peak_flops_per_sec;	/* peak rate in fp32 */
	double conv_peak_flops_per_sec; /* peak rate of convolutions in fp32: TF32 matrix units if it has any */
	double peak_half_flops_per_sec; /* peak rate of fp16 matrix units; equals fp32 where there are none */
	double memory_bps;		/* memory bandwidth, bits per second as all rates */
	double conv_efficiency_ratio;	/* convolutions: share of the peak; fewer products may pass 1 */
	double gemm_efficiency_ratio;	/* linear layers and factor rebuilds: share of the peak */
	double half_efficiency_ratio;	/* fp16: share of the half peak; lower, as matrix units wait for memory */
	double conv_half_depth; /* fp16 convolutions with d products per output achieve d / (d + this) of that share */
	double memory_efficiency_ratio; /* achieved share of the memory's bandwidth */
	const char *source;		/* origin of the figures, and figures that are extrapolated */
};

/* Returns the row of a device by its name; "cpu" is a processor with generic figures. NULL: no such device. */
const struct psd_device_row *psd_device_find(const char *name);
extern const char *const psd_device_names[]; /* names of all devices, NULL-terminated */

#endif
