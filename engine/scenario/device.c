/* The table of devices. Peaks, multiprocessors and bandwidths are the makers' figures. Shares are constants of a
 * generation and its library, fitted to published throughputs of single GPUs: scenarios/published/one-gpu/ has them
 * all, with the errors. Each source names its extrapolations. A profile or `samples_per_sec` replaces all of this
 * wherever something was measured. */
#include <string.h>

#include "engine/scenario/device.h"

#define TFLOPS	       1e12
#define GBYTES_PER_SEC 8e9 /* in bits */

/* A row: name; multiprocessors; peaks of fp32, of TF32, and of fp16; GB/s of the memory; generation; source. */
#define PEAKS(fp32, tf32, half)                                                                                        \
	.peak_flops_per_sec = (fp32)*TFLOPS, .peak_tf32_flops_per_sec = (tf32)*TFLOPS,                                 \
	.peak_half_flops_per_sec = (half)*TFLOPS
#define GPU(text, units, fp32, tf32, half, memory, generation, from)                                                   \
	{                                                                                                              \
		.name = (text), .multiprocessors = (units), PEAKS(fp32, tf32, half),                                   \
		.memory_bps = (memory)*GBYTES_PER_SEC, generation, .source = from                                      \
	}

/* Linear layers in fp32: BERT on V100, eight frameworks of 2020. */
#define FP32_LINEAR 0.86
/* Attention over linear layers before fused kernels: BERT on V100, where it is a small part. */
#define ATTENTION 1.1

#define ACHIEVES(conv, tf32, half, memory, attention)                                                                  \
	.conv_efficiency_ratio = (conv), .gemm_efficiency_ratio = FP32_LINEAR, .tf32_efficiency_ratio = (tf32),        \
	.half_efficiency_ratio = (half), .memory_efficiency_ratio = (memory), .attention_ratio = (attention)
#define MATRIX_UNITS .has_matrix_units = true
#define WINOGRAD     .has_winograd = true

/* Caffe of 2014 on K20 and K40: a matrix product for each image, of its columns written out; cuDNN's first version is
 * no faster. Its memory was not fitted. */
#define KEPLER_CAFFE ACHIEVES(0.19, 0, 0, 0.5, ATTENTION)
/* TensorFlow of 2017 and cuDNN 7 on K80; checked memory (ECC) takes a fifth of the bandwidth. */
#define KEPLER WINOGRAD, ACHIEVES(0.39, 0, 0, 0.29, ATTENTION)
/* cuDNN 7 on M40, Caffe of 2016 on Titan X. */
#define MAXWELL WINOGRAD, ACHIEVES(0.36, 0, 0, 0.85, ATTENTION)
/* TensorFlow of 2017, Horovod and cuDNN 7 on P100. */
#define PASCAL WINOGRAD, ACHIEVES(0.78, 0, 0.54, 0.44, ATTENTION)
/* Eight frameworks of 2020, and cuDNN 7, on V100. */
#define VOLTA WINOGRAD, MATRIX_UNITS, ACHIEVES(0.84, 0, 0.36, 0.85, ATTENTION)
/* MXNet of 2020 and LLM Foundry of 2023 on A100; 16 bits and attention: LLM Foundry. */
#define AMPERE MATRIX_UNITS, ACHIEVES(0.84, 0.42, 0.70, 0.82, 1.04)
/* TrioSim's traces and LLM Foundry of 2023 on H100; 16 bits and attention: LLM Foundry. */
#define HOPPER MATRIX_UNITS, ACHIEVES(0.84, 0.30, 0.59, 0.68, 0.70)

static const struct psd_device_row devices[] = {
	GPU("k20", 13, 3.52, 0, 3.52, 208, KEPLER_CAFFE,
	    "NVIDIA Tesla K20 board specification: 2496 cores, 0.706 GHz; fitted with K40: CaffeNet in Caffe of 2014"),
	GPU("k40", 15, 4.29, 0, 4.29, 288, KEPLER_CAFFE,
	    "NVIDIA Tesla K40 board specification: 2880 cores, 0.745 GHz; fitted with K20: CaffeNet in Caffe of 2014"),
	GPU("k80", 13, 4.37, 0, 4.37, 240, KEPLER,
	    "NVIDIA Tesla K80 board specification, one of its two GPUs: 2496 cores, 0.875 GHz; fitted to TensorFlow's "
	    "benchmarks of 2017 and arXiv 1902.06855 Fig 1"),
	GPU("titan-x", 24, 6.144, 0, 6.144, 336.5, MAXWELL,
	    "NVIDIA GeForce GTX Titan X (Maxwell) specification: 3072 cores, 1.0 GHz; fitted with M40 and to VGG19-22K "
	    "in Caffe"),
	GPU("m40", 24, 7.0, 0, 7.0, 288, MAXWELL,
	    "NVIDIA Tesla M40 data sheet: 3072 cores, 1.14 GHz; fitted to arXiv 1902.06855 Fig 1"),
	GPU("p100", 56, 9.3, 0, 18.7, 732, PASCAL,
	    "NVIDIA Tesla P100 PCIe 16 GB data sheet; fitted to arXiv 1902.06855"),
	GPU("p100-sxm2", 56, 10.6, 0, 21.2, 732, PASCAL,
	    "NVIDIA Tesla P100 SXM2 16 GB data sheet; fitted to TensorFlow's benchmarks of 2017, and as p100"),
	GPU("v100", 80, 14, 0, 112, 900, VOLTA,
	    "NVIDIA Tesla V100 PCIe data sheet; fitted to arXiv 1902.06855, and as v100-sxm2"),
	GPU("v100-sxm2", 80, 15.7, 0, 125, 900, VOLTA,
	    "NVIDIA Tesla V100 SXM2 data sheet; fitted to DLPerf and Paddle of 2020, and as v100"),
	GPU("a100", 108, 19.5, 156, 312, 1555, AMPERE,
	    "NVIDIA A100 SXM4 40 GB data sheet, dense; fitted to NVIDIA's BERT examples and LLM Foundry"),
	GPU("a100-80gb", 108, 19.5, 156, 312, 2039, AMPERE,
	    "NVIDIA A100 SXM4 80 GB data sheet, dense; fitted to NVIDIA's MXNet example and LLM Foundry"),
	GPU("h100", 132, 67, 494.7, 989.4, 3350, HOPPER,
	    "NVIDIA H100 SXM5 data sheet, dense; fitted to sample traces of TrioSim and LLM Foundry"),
	GPU("h200", 132, 67, 494.7, 989.4, 4800, HOPPER, "NVIDIA H200 SXM data sheet, dense; shares of H100"),
	GPU("l40s", 142, 91.6, 183, 362, 864, AMPERE, "NVIDIA L40S data sheet, dense; shares of A100"),
	GPU("rtx-3090", 82, 35.6, 35.6, 71, 936, AMPERE,
	    "NVIDIA GA102 white paper, GeForce RTX 3090, dense; shares of A100"),
	GPU("rtx-4090", 128, 82.6, 82.6, 165.2, 1008, AMPERE,
	    "NVIDIA Ada white paper, GeForce RTX 4090, dense; shares of A100"),
	{.name = "cpu",
	 .shares_memory = true,
	 PEAKS(0.32, 0, 0.32),
	 .memory_bps = 20 * GBYTES_PER_SEC,
	 .conv_efficiency_ratio = 0.6,
	 .gemm_efficiency_ratio = 0.35,
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

enum psd_precision psd_device_arithmetic(const struct psd_device_row *device, enum psd_precision precision)
{
	const bool gains = device->peak_half_flops_per_sec > device->peak_flops_per_sec;

	return psd_precision_is_half(precision) && !gains ? PSD_PRECISION_FP32 : precision;
}

double psd_device_peak(const struct psd_device_row *device, enum psd_precision precision)
{
	return psd_precision_is_half(precision)	 ? device->peak_half_flops_per_sec
	       : precision == PSD_PRECISION_TF32 ? device->peak_tf32_flops_per_sec
						 : device->peak_flops_per_sec;
}
