/* Devices that a scenario may name: the makers' figures, and the shares of them that layers achieve. */
#ifndef PSD_DEVICE_H
#define PSD_DEVICE_H

#include <stdbool.h>

/* Arithmetic of layers. fp32: convolutions use TF32 matrix units if the device has them, as PyTorch does by
 * default. tf32: linear layers and attention use them, too. mixed: values are fp16; bf16: values are bf16; both
 * have 16 bits. */
enum psd_precision { PSD_PRECISION_FP32, PSD_PRECISION_MIXED, PSD_PRECISION_TF32, PSD_PRECISION_BF16 };
extern const char *const psd_precision_names[]; /* "fp32", "mixed", "tf32", "bf16", NULL */
/* True if values have 16 bits in this precision. */
bool psd_precision_is_half(enum psd_precision precision);

/* A device. A processor follows a roofline: a layer takes max(FLOPs / (peak rate * efficiency), bytes / (memory
 * bandwidth * efficiency)), with the efficiency of the layer's kind. GPUs follow the rules in cost/kernels.h. */
struct psd_device_row {
	const char *name;
	/* device and host have the same memory; false: tensors are copied between two memories */
	bool shares_memory;
	/* number of a GPU's streaming multiprocessors; 0: the device is a processor */
	unsigned multiprocessors;
	double peak_flops_per_sec; /* peak rate in fp32, FLOPs per second */
	/* peak rate of matrix units with TF32, FLOPs per second; 0: the device has none */
	double peak_tf32_flops_per_sec;
	/* peak rate in fp16, FLOPs per second; equal to the fp32 peak if the device gains nothing from 16 bits */
	double peak_half_flops_per_sec;
	double memory_bps;	      /* memory bandwidth, bits per second */
	bool has_matrix_units;	      /* the device has matrix units for values of 16 bits */
	bool has_winograd;	      /* fp32 convolutions use Winograd's algorithm, which needs fewer FLOPs */
	double conv_efficiency_ratio; /* convolutions in fp32: achieved share of the fp32 peak */
	/* linear layers, and gradients rebuilt from factors, in fp32: achieved share of the fp32 peak */
	double gemm_efficiency_ratio;
	/* convolutions and linear layers on TF32 units: achieved share of the TF32 peak */
	double tf32_efficiency_ratio;
	/* Convolutions and linear layers in 16 bits: achieved share of the fp16 peak. It is lower than in fp32,
	 * because matrix units wait for memory; not read if the device gains nothing from 16 bits. */
	double half_efficiency_ratio;
	double memory_efficiency_ratio; /* share of the memory's bandwidth that layers achieve */
	/* Rate of attention's forward, divided by the rate of linear layers. FLOPs of all pairs of positions count, so
	 * that a kernel that skips the pairs behind a causal mask has up to twice its real rate. */
	double attention_ratio;
	const char *source; /* source of the figures; it also says which of them are extrapolated */
};

/* Returns the row of the device with that name; "cpu" is a processor with average figures. NULL: there is no such
 * device. */
const struct psd_device_row *psd_device_find(const char *name);
extern const char *const psd_device_names[]; /* names of all devices, NULL-terminated */
/* True if the device can compute in that precision. */
bool psd_device_has(const struct psd_device_row *device, enum psd_precision precision);
/* Returns the precision in which the device computes matrix products of values of this precision: fp32 if it gains
 * nothing from 16 bits. */
enum psd_precision psd_device_arithmetic(const struct psd_device_row *device, enum psd_precision precision);
/* Returns the maker's peak rate for linear layers in that precision, FLOPs per second. The device must have the
 * precision. */
double psd_device_peak(const struct psd_device_row *device, enum psd_precision precision);

#endif
