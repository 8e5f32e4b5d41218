/* The table of devices. Peaks, multiprocessors and bandwidths are the makers' figures. Shares are constants of a
 * generation and its library, fitted to published throughputs of single GPUs: scenarios/published/ has them all, with
 * the errors. Each source names its extrapolations. A profile or `samples_per_sec` replaces all of this wherever
 * something was measured. */
#include <string.h>

#include "engine/scenario/device.h"

#define TFLOPS	       1e12
#define GBYTES_PER_SEC 8e9 /* in bits */

/* Peaks of fp32, of TF32, and of fp16. */
#define PEAKS(fp32, tf32, half)                                                                                        \
	.peak_flops_per_sec = (fp32)*TFLOPS, .peak_tf32_flops_per_sec = (tf32)*TFLOPS,                                 \
	.peak_half_flops_per_sec = (half)*TFLOPS

/* Linear layers in fp32: BERT on V100, eight frameworks of 2020. */
#define FP32_LINEAR 0.86

#define ACHIEVES(conv, tf32, half, memory)                                                                             \
	.conv_efficiency_ratio = (conv), .gemm_efficiency_ratio = FP32_LINEAR, .tf32_efficiency_ratio = (tf32),        \
	.half_efficiency_ratio = (half), .memory_efficiency_ratio = (memory)
#define MATRIX_UNITS .has_matrix_units = true
#define WINOGRAD     .has_winograd = true

/* Caffe of 2014 on K20 and K40: a matrix product for each image, of its columns written out; cuDNN's first version is
 * no faster. Its memory was not fitted. */
#define KEPLER_CAFFE ACHIEVES(0.19, 0, 0.19, 0.5)
/* TensorFlow of 2017 and cuDNN 7 on K80; checked memory (ECC) takes a fifth of the bandwidth. */
#define KEPLER WINOGRAD, ACHIEVES(0.39, 0, 0.39, 0.29)
/* cuDNN 7 on M40, Caffe of 2016 on Titan X. */
#define MAXWELL WINOGRAD, ACHIEVES(0.36, 0, 0.36, 0.85)
/* TensorFlow of 2017, Horovod and cuDNN 7 on P100. */
#define PASCAL WINOGRAD, ACHIEVES(0.78, 0, 0.54, 0.44)
/* Eight frameworks of 2020, and cuDNN 7, on V100. */
#define VOLTA WINOGRAD, MATRIX_UNITS, ACHIEVES(0.84, 0, 0.36, 0.85)
/* MXNet of 2020 and LLM Foundry of 2023 on A100. */
#define AMPERE MATRIX_UNITS, ACHIEVES(0.84, 0.42, 0.62, 0.82)
/* TrioSim's traces and LLM Foundry of 2023 on H100. */
#define HOPPER MATRIX_UNITS, ACHIEVES(0.84, 0.30, 0.45, 0.68)

static const struct psd_device_row devices[] = {
	{.name = "k20",
	 .multiprocessors = 13,
	 PEAKS(3.52, 0, 3.52),
	 .memory_bps = 208 * GBYTES_PER_SEC,
	 KEPLER_CAFFE,
	 .source = "NVIDIA Tesla K20 board specification: 2496 cores, 0.706 GHz; fitted with K40: CaffeNet in Caffe of "
		   "2014"},
	{.name = "k40",
	 .multiprocessors = 15,
	 PEAKS(4.29, 0, 4.29),
	 .memory_bps = 288 * GBYTES_PER_SEC,
	 KEPLER_CAFFE,
	 .source = "NVIDIA Tesla K40 board specification: 2880 cores, 0.745 GHz; fitted with K20: CaffeNet in Caffe of "
		   "2014"},
	{.name = "k80",
	 .multiprocessors = 13,
	 PEAKS(4.37, 0, 4.37),
	 .memory_bps = 240 * GBYTES_PER_SEC,
	 KEPLER,
	 .source = "NVIDIA Tesla K80 board specification, one of its two GPUs: 2496 cores, 0.875 GHz; fitted to "
		   "TensorFlow's benchmarks of 2017 and arXiv 1902.06855 Fig 1"},
	{.name = "titan-x",
	 .multiprocessors = 24,
	 PEAKS(6.144, 0, 6.144),
	 .memory_bps = 336.5 * GBYTES_PER_SEC,
	 MAXWELL,
	 .source = "NVIDIA GeForce GTX Titan X (Maxwell) specification: 3072 cores, 1.0 GHz; fitted with M40 and to "
		   "VGG19-22K in Caffe"},
	{.name = "m40",
	 .multiprocessors = 24,
	 PEAKS(7.0, 0, 7.0),
	 .memory_bps = 288 * GBYTES_PER_SEC,
	 MAXWELL,
	 .source = "NVIDIA Tesla M40 data sheet: 3072 cores, 1.14 GHz; fitted to arXiv 1902.06855 Fig 1"},
	{.name = "p100",
	 .multiprocessors = 56,
	 PEAKS(9.3, 0, 18.7),
	 .memory_bps = 732 * GBYTES_PER_SEC,
	 PASCAL,
	 .source = "NVIDIA Tesla P100 PCIe 16 GB data sheet; fitted to arXiv 1902.06855"},
	{.name = "p100-sxm2",
	 .multiprocessors = 56,
	 PEAKS(10.6, 0, 21.2),
	 .memory_bps = 732 * GBYTES_PER_SEC,
	 PASCAL,
	 .source = "NVIDIA Tesla P100 SXM2 16 GB data sheet; fitted to TensorFlow's benchmarks of 2017, and as p100"},
	{.name = "v100",
	 .multiprocessors = 80,
	 PEAKS(14, 0, 112),
	 .memory_bps = 900 * GBYTES_PER_SEC,
	 VOLTA,
	 .source = "NVIDIA Tesla V100 PCIe data sheet; fitted to arXiv 1902.06855, and as v100-sxm2"},
	{.name = "v100-sxm2",
	 .multiprocessors = 80,
	 PEAKS(15.7, 0, 125),
	 .memory_bps = 900 * GBYTES_PER_SEC,
	 VOLTA,
	 .source = "NVIDIA Tesla V100 SXM2 data sheet; fitted to DLPerf and Paddle of 2020, and as v100"},
	{.name = "a100",
	 .multiprocessors = 108,
	 PEAKS(19.5, 156, 312),
	 .memory_bps = 1555 * GBYTES_PER_SEC,
	 AMPERE,
	 .source = "NVIDIA A100 SXM4 40 GB data sheet, dense; fitted to NVIDIA's BERT examples and LLM Foundry"},
	{.name = "a100-80gb",
	 .multiprocessors = 108,
	 PEAKS(19.5, 156, 312),
	 .memory_bps = 2039 * GBYTES_PER_SEC,
	 AMPERE,
	 .source = "NVIDIA A100 SXM4 80 GB data sheet, dense; fitted to NVIDIA's MXNet example and LLM Foundry"},
	{.name = "h100",
	 .multiprocessors = 132,
	 PEAKS(67, 494.7, 989.4),
	 .memory_bps = 3350 * GBYTES_PER_SEC,
	 HOPPER,
	 .source = "NVIDIA H100 SXM5 data sheet, dense; fitted to sample traces of TrioSim and LLM Foundry"},
	{.name = "h200",
	 .multiprocessors = 132,
	 PEAKS(67, 494.7, 989.4),
	 .memory_bps = 4800 * GBYTES_PER_SEC,
	 HOPPER,
	 .source = "NVIDIA H200 SXM data sheet, dense; shares of H100"},
	{.name = "l40s",
	 .multiprocessors = 142,
	 PEAKS(91.6, 183, 362),
	 .memory_bps = 864 * GBYTES_PER_SEC,
	 AMPERE,
	 .source = "NVIDIA L40S data sheet, dense; shares of A100"},
	{.name = "rtx-3090",
	 .multiprocessors = 82,
	 PEAKS(35.6, 35.6, 71),
	 .memory_bps = 936 * GBYTES_PER_SEC,
	 AMPERE,
	 .source = "NVIDIA GA102 white paper, GeForce RTX 3090, dense; shares of A100"},
	{.name = "rtx-4090",
	 .multiprocessors = 128,
	 PEAKS(82.6, 82.6, 165.2),
	 .memory_bps = 1008 * GBYTES_PER_SEC,
	 AMPERE,
	 .source = "NVIDIA Ada white paper, GeForce RTX 4090, dense; shares of A100"},
	{.name = "cpu",
	 .shares_memory = true,
	 PEAKS(0.32, 0, 0.32),
	 .memory_bps = 20 * GBYTES_PER_SEC,
	 .conv_efficiency_ratio = 0.6,
	 .gemm_efficiency_ratio = 0.35,
	 .half_efficiency_ratio = 0.35,
	 .memory_efficiency_ratio = 1,
	 .source = "two cores of 2.5 GHz with AVX-512 (64 FLOPs a cycle each); efficiencies chosen to meet PyTorch "
		   "1.13: AlexNet, batch 32, 0.74 s; three 4096-wide layers, batch 64, 0.16 s"},
};

enum { N_DEVICES = sizeof(devices) / sizeof(devices[0]) };

const char *const psd_device_names[] = {"k20",	     "k40",  "k80",	  "titan-x",  "m40",	   "p100",
					"p100-sxm2", "v100", "v100-sxm2", "a100",     "a100-80gb", "h100",
					"h200",	     "l40s", "rtx-3090",  "rtx-4090", "cpu",	   NULL};

_Static_assert(sizeof(psd_device_names) / sizeof(psd_device_names[0]) == N_DEVICES + 1, "a name for every device");

const char *const psd_precision_names[] = {"fp32", "mixed", "tf32", "bf16", NULL};

bool psd_precision_is_half(enum psd_precision precision)
{
	return precision == PSD_PRECISION_MIXED || precision == PSD_PRECISION_BF16;
}

const struct psd_device_row *psd_device_find(const char *name)
{
	for (unsigned i = 0; i < N_DEVICES; i++)
		if (!strcmp(devices[i].name, name))
			return &devices[i];
	return NULL;
}

/* bf16 came with TF32. */
bool psd_device_has(const struct psd_device_row *device, enum psd_precision precision)
{
	const bool is_newer = precision == PSD_PRECISION_TF32 || precision == PSD_PRECISION_BF16;

	return !is_newer || device->peak_tf32_flops_per_sec > 0.0;
}

double psd_device_peak(const struct psd_device_row *device, enum psd_precision precision)
{
	return psd_precision_is_half(precision)	 ? device->peak_half_flops_per_sec
	       : precision == PSD_PRECISION_TF32 ? device->peak_tf32_flops_per_sec
						 : device->peak_flops_per_sec;
}
