/* Devices that a scenario may name: makers' figures, and achieved shares of them. */
#ifndef PSD_DEVICE_H
#define PSD_DEVICE_H

#include <stdbool.h>

/* Arithmetic of layers. fp32: convolutions on TF32 matrix units where there are any, as in PyTorch by default. tf32:
 * linear layers and attention, too. mixed, bf16: values have 16 bits. */
enum psd_precision { PSD_PRECISION_FP32, PSD_PRECISION_MIXED, PSD_PRECISION_TF32, PSD_PRECISION_BF16 };
extern const char *const psd_precision_names[]; /* "fp32", "mixed", "tf32", "bf16", NULL */
/* Tells whether values have 16 bits. */
bool psd_precision_is_half(enum psd_precision precision);

/* A device. A processor is a roofline: a layer takes max(flops / (peak * efficiency of its kind), bytes / (memory
 * bandwidth * efficiency)). cost/kernels.h has the rules for GPUs. */
struct psd_device_row {
	const char *name;
	bool shares_memory;		/* device and host share memory; false: tensors are copied between them */
	unsigned multiprocessors;	/* number of a GPU's multiprocessors; 0: the device is a processor */
	double peak_flops_per_sec;	/* peak rate in fp32 */
	double peak_tf32_flops_per_sec; /* peak rate of matrix units for fp32 values; 0: there are none */
	double peak_half_flops_per_sec; /* peak rate in fp16; equals fp32 where 16 bits are no faster */
	double memory_bps;		/* memory bandwidth, bits per second as all rates */
	bool has_matrix_units;		/* matrix units take values of 16 bits */
	bool has_winograd;		/* the library computes convolutions in fp32 by Winograd's algorithm */
	double conv_efficiency_ratio;	/* convolutions: share of the fp32 peak */
	double gemm_efficiency_ratio;	/* linear layers and factor rebuilds: share of the fp32 peak */
	double tf32_efficiency_ratio;	/* convolutions and linear layers: share of the TF32 peak */
	double half_efficiency_ratio; /* both of them: share of the fp16 peak; lower, as matrix units wait for memory */
	double memory_efficiency_ratio; /* achieved share of the memory's bandwidth */
	const char *source;		/* origin of the figures, and figures that are extrapolated */
};

/* Returns the row of a device by its name; "cpu" is a processor with generic figures. NULL: no such device. */
const struct psd_device_row *psd_device_find(const char *name);
extern const char *const psd_device_names[]; /* names of all devices, NULL-terminated */
/* Tells whether the device computes in that precision. */
bool psd_device_has(const struct psd_device_row *device, enum psd_precision precision);
/* Returns the maker's peak of linear layers in that precision, FLOPs per second; the device must have it. */
double psd_device_peak(const struct psd_device_row *device, enum psd_precision precision);

#endif
