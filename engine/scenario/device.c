/* The table of devices. Peaks and bandwidths are the makers' figures. Efficiencies are shares for each generation and
 * library, fitted to published iteration times (tests/engine/cost/test_device.c has them all): one share of the
 * memory's bandwidth and a rule for convolutions of little depth for all GPUs, and a share of the peak for
 * convolutions. Linear layers reach 0.7 of the fp32 peak by assumption. Each source names its extrapolations. A profile
 * or `images_per_sec` replaces all of this wherever something was measured. */
#include <string.h>

#include "engine/scenario/device.h"

#define TFLOPS	       1e12
#define GBYTES_PER_SEC 8e9 /* in bits */

/* A row: name; peaks of fp32, of convolutions of fp32 values, and of fp16; GB/s of the memory; generation; source. Such
 * convolutions run on the matrix units as TF32 where there are any, as in PyTorch by default. */
#define PEAKS(fp32, conv, half)                                                                                        \
	.peak_flops_per_sec = (fp32)*TFLOPS, .conv_peak_flops_per_sec = (conv)*TFLOPS,                                 \
	.peak_half_flops_per_sec = (half)*TFLOPS
#define GPU(text, fp32, conv, half, memory, generation, from)                                                          \
	{                                                                                                              \
		.name = (text), PEAKS(fp32, conv, half), .memory_bps = (memory)*GBYTES_PER_SEC, generation,            \
		.source = from                                                                                         \
	}

#define ACHIEVES(conv, gemm, half, memory)                                                                             \
	.conv_efficiency_ratio = (conv), .gemm_efficiency_ratio = (gemm), .half_efficiency_ratio = (half),             \
	.memory_efficiency_ratio = (memory), .conv_half_depth = 150
/* Caffe of 2014: a matrix product for each image, of its columns written out; cuDNN's first version is no faster. */
#define KEPLER_CAFFE ACHIEVES(0.195, 0.7, 0.195, 0.5)
#define KEPLER	     ACHIEVES(0.43, 0.7, 0.43, 0.4) /* cuDNN 7; checked memory (ECC) takes a fifth of the bandwidth */
#define MAXWELL	     ACHIEVES(0.77, 0.7, 0.77, 0.5)
#define PASCAL	     ACHIEVES(0.79, 0.7, 0.5, 0.5)
#define VOLTA	     ACHIEVES(1.1, 0.7, 0.185, 0.5)  /* fewer products than counted: Winograd's algorithm */
#define MATRIX_UNITS ACHIEVES(0.33, 0.7, 0.185, 0.5) /* TF32 as measured on H100, half as on V100 */

static const struct psd_device_row devices[] = {
	GPU("k20", 3.52, 3.52, 3.52, 208, KEPLER_CAFFE,
	    "NVIDIA Tesla K20 board specification: 2496 cores, 0.706 GHz; fitted with K40: CaffeNet in Caffe of 2014"),
	GPU("k40", 4.29, 4.29, 4.29, 288, KEPLER_CAFFE,
	    "NVIDIA Tesla K40 board specification: 2880 cores, 0.745 GHz; fitted with K20: CaffeNet in Caffe of 2014"),
	GPU("k80", 4.37, 4.37, 4.37, 240, KEPLER,
	    "NVIDIA Tesla K80 board specification, one of its two GPUs: 2496 cores, 0.875 GHz; fitted to arXiv "
	    "1902.06855 Fig 1"),
	GPU("titan-x", 6.144, 6.144, 6.144, 336.5, MAXWELL,
	    "NVIDIA GeForce GTX Titan X (Maxwell) specification: 3072 cores, 1.0 GHz; fitted with M40 and to VGG19-22K "
	    "in Caffe"),
	GPU("m40", 7.0, 7.0, 7.0, 288, MAXWELL,
	    "NVIDIA Tesla M40 data sheet: 3072 cores, 1.14 GHz; fitted to arXiv 1902.06855 Fig 1"),
	GPU("p100", 9.3, 9.3, 18.7, 732, PASCAL,
	    "NVIDIA Tesla P100 PCIe 16 GB data sheet; fitted to arXiv 1902.06855 Fig 1; half precision assumed"),
	GPU("v100", 14, 14, 112, 900, VOLTA, "NVIDIA Tesla V100 PCIe data sheet; fitted to arXiv 1902.06855 Fig 1"),
	GPU("a100", 19.5, 156, 312, 1555, MATRIX_UNITS,
	    "NVIDIA A100 SXM4 40 GB data sheet, dense; shares extrapolated from H100 and V100"),
	GPU("h100", 67, 494.7, 989.4, 3350, MATRIX_UNITS,
	    "NVIDIA H100 SXM5 data sheet, dense; fitted to sample traces of TrioSim; half precision extrapolated from "
	    "V100"),
	GPU("h200", 67, 494.7, 989.4, 4800, MATRIX_UNITS,
	    "NVIDIA H200 SXM data sheet, dense; shares extrapolated from H100 and V100"),
	GPU("l40s", 91.6, 183, 362, 864, MATRIX_UNITS,
	    "NVIDIA L40S data sheet, dense; shares extrapolated from H100 and V100"),
	GPU("rtx-3090", 35.6, 35.6, 71, 936, MATRIX_UNITS,
	    "NVIDIA GA102 white paper, GeForce RTX 3090, dense; shares extrapolated from H100 and V100"),
	GPU("rtx-4090", 82.6, 82.6, 165.2, 1008, MATRIX_UNITS,
	    "NVIDIA Ada white paper, GeForce RTX 4090, dense; shares extrapolated from H100 and V100"),
	{.name = "cpu",
	 .shares_memory = true,
	 PEAKS(0.32, 0.32, 0.32),
	 .memory_bps = 20 * GBYTES_PER_SEC,
	 .conv_efficiency_ratio = 0.6,
	 .gemm_efficiency_ratio = 0.35,
	 .half_efficiency_ratio = 0.35,
	 .memory_efficiency_ratio = 1,
	 .source = "two cores of 2.5 GHz with AVX-512 (64 FLOPs a cycle each); efficiencies chosen to meet PyTorch "
		   "1.13: AlexNet, batch 32, 0.74 s; three 4096-wide layers, batch 64, 0.16 s"},
};

enum { N_DEVICES = sizeof(devices) / sizeof(devices[0]) };

const char *const psd_device_names[] = {"k20",	"k40",	"k80",	"titan-x",  "m40",	"p100", "v100", "a100",
					"h100", "h200", "l40s", "rtx-3090", "rtx-4090", "cpu",	NULL};

_Static_assert(sizeof(psd_device_names) / sizeof(psd_device_names[0]) == N_DEVICES + 1, "a name for every device");

const struct psd_device_row *psd_device_find(const char *name)
{
	for (unsigned i = 0; i < N_DEVICES; i++)
		if (!strcmp(devices[i].name, name))
			return &devices[i];
	return NULL;
}
