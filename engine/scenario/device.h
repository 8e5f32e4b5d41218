/* Devices that a scenario may name: makers' figures, and achieved shares of them. */
#ifndef PSD_DEVICE_H
#define PSD_DEVICE_H

#include <stdbool.h>

/* Arithmetic of layers. fp32: convolutions on TF32 matrix units where there are any, as in PyTorch by default. tf32:
 * linear layers and attention as well. mixed, bf16: values of 16 bits. */
enum psd_precision { PSD_PRECISION_FP32, PSD_PRECISION_MIXED, PSD_PRECISION_TF32, PSD_PRECISION_BF16 };
extern const char *const psd_precision_names[]; /* "fp32", "mixed", "tf32", "bf16", NULL */
/* True when values have 16 bits. */
bool psd_precision_is_half(enum psd_precision precision);

/* A device. A layer of a processor takes max(flops / (peak * share of its kind), bytes / (memory bandwidth * share));
 * cost/kernels.h has the rules of GPUs. Shares are achieved ones, of the peak that is in the same comment. */
struct psd_device_row {
	const char *name;
	bool shares_memory;		/* with its host; otherwise tensors are copied between them */
	unsigned multiprocessors;	/* multiprocessors of a GPU; 0: a processor */
	double peak_flops_per_sec;	/* fp32 */
	double peak_tf32_flops_per_sec; /* matrix units for fp32 values; 0: there are none */
	double peak_half_flops_per_sec; /* fp16; equals fp32 where 16 bits are no faster */
	double memory_bps;		/* bits per second, as all rates */
	bool has_matrix_units;		/* for 16 bits */
	bool has_winograd;		/* the library computes convolutions in fp32 by Winograd's algorithm */
	double conv_efficiency_ratio;	/* convolutions, of fp32 */
	double gemm_efficiency_ratio;	/* linear layers and factor rebuilds, of fp32 */
	double tf32_efficiency_ratio;	/* both kinds, of tf32 */
	double half_efficiency_ratio;	/* both kinds, of half: matrix units starve sooner */
	double memory_efficiency_ratio; /* share of the memory's bandwidth */
	const char *source;		/* origin of the figures, and extrapolations */
};

/* The row of a name; "cpu" is a processor with generic figures. NULL: there is none. */
const struct psd_device_row *psd_device_find(const char *name);
extern const char *const psd_device_names[]; /* NULL-terminated */
/* True when the device computes in that precision. */
bool psd_device_has(const struct psd_device_row *device, enum psd_precision precision);
/* Makers' peak of linear layers in that precision, FLOPs per second; the device has the precision. */
double psd_device_peak(const struct psd_device_row *device, enum psd_precision precision);

#endif
