/* The table of devices. Peaks and bandwidths are the makers' figures. Efficiencies are shares for each generation and
 * library, fitted to published iteration times (tests/engine/cost/test_device.c has them all): one share of the
 * memory's bandwidth and a rule for convolutions of little depth for all GPUs, and a share of the peak for
 * convolutions. Linear layers reach 0.7 of the fp32 peak by assumption. Each source names its extrapolations. A profile
 * or `images_per_sec` replaces all of this wherever something was measured. */
#include <string.h>

#include "engine/scenario/device.h"

#define TFLOPS	       1e12
#define GBYTES_PER_SEC 8e9 /* in bits */

/* Peaks of fp32, of convolutions of fp32 values, and of fp16. Such convolutions run on the matrix units as TF32 where
 * there are any, as in PyTorch by default. */
#define PEAKS(fp32, conv, half)                                                                                        \
	.peak_flops_per_sec = (fp32)*TFLOPS, .conv_peak_flops_per_sec = (conv)*TFLOPS,                                 \
	.peak_half_flops_per_sec = (half)*TFLOPS

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
	{.name = "k20",
	 PEAKS(3.52, 3.52, 3.52),
	 .memory_bps = 208 * GBYTES_PER_SEC,
	 KEPLER_CAFFE,
	 .source = "NVIDIA Tesla K20 board specification: 2496 cores, 0.706 GHz; fitted with K40: CaffeNet in Caffe of "
		   "2014"},
	{.name = "k40",
	 PEAKS(4.29, 4.29, 4.29),
	 .memory_bps = 288 * GBYTES_PER_SEC,
	 KEPLER_CAFFE,
	 .source = "NVIDIA Tesla K40 board specification: 2880 cores, 0.745 GHz; fitted with K20: CaffeNet in Caffe of "
		   "2014"},
	{.name = "k80",
	 PEAKS(4.37, 4.37, 4.37),
	 .memory_bps = 240 * GBYTES_PER_SEC,
	 KEPLER,
	 .source = "NVIDIA Tesla K80 board specification, one of its two GPUs: 2496 cores, 0.875 GHz; fitted to arXiv "
		   "1902.06855 Fig 1"},
	{.name = "titan-x",
	 PEAKS(6.144, 6.144, 6.144),
	 .memory_bps = 336.5 * GBYTES_PER_SEC,
	 MAXWELL,
	 .source = "NVIDIA GeForce GTX Titan X (Maxwell) specification: 3072 cores, 1.0 GHz; fitted with M40 and to "
		   "VGG19-22K in Caffe"},
	{.name = "m40",
	 PEAKS(7.0, 7.0, 7.0),
	 .memory_bps = 288 * GBYTES_PER_SEC,
	 MAXWELL,
	 .source = "NVIDIA Tesla M40 data sheet: 3072 cores, 1.14 GHz; fitted to arXiv 1902.06855 Fig 1"},
	{.name = "p100",
	 PEAKS(9.3, 9.3, 18.7),
	 .memory_bps = 732 * GBYTES_PER_SEC,
	 PASCAL,
	 .source = "NVIDIA Tesla P100 PCIe 16 GB data sheet; fitted to arXiv 1902.06855 Fig 1; half precision assumed"},
	{.name = "v100",
	 PEAKS(14, 14, 112),
	 .memory_bps = 900 * GBYTES_PER_SEC,
	 VOLTA,
	 .source = "NVIDIA Tesla V100 PCIe data sheet; fitted to arXiv 1902.06855 Fig 1"},
	{.name = "a100",
	 PEAKS(19.5, 156, 312),
	 .memory_bps = 1555 * GBYTES_PER_SEC,
	 MATRIX_UNITS,
	 .source = "NVIDIA A100 SXM4 40 GB data sheet, dense; shares extrapolated from H100 and V100"},
	{.name = "h100",
	 PEAKS(67, 494.7, 989.4),
	 .memory_bps = 3350 * GBYTES_PER_SEC,
	 MATRIX_UNITS,
	 .source = "NVIDIA H100 SXM5 data sheet, dense; fitted to sample traces of TrioSim; half precision "
		   "extrapolated from V100"},
	{.name = "h200",
	 PEAKS(67, 494.7, 989.4),
	 .memory_bps = 4800 * GBYTES_PER_SEC,
	 MATRIX_UNITS,
	 .source = "NVIDIA H200 SXM data sheet, dense; shares extrapolated from H100 and V100"},
	{.name = "l40s",
	 PEAKS(91.6, 183, 362),
	 .memory_bps = 864 * GBYTES_PER_SEC,
	 MATRIX_UNITS,
	 .source = "NVIDIA L40S data sheet, dense; shares extrapolated from H100 and V100"},
	{.name = "rtx-3090",
	 PEAKS(35.6, 35.6, 71),
	 .memory_bps = 936 * GBYTES_PER_SEC,
	 MATRIX_UNITS,
	 .source = "NVIDIA GA102 white paper, GeForce RTX 3090, dense; shares extrapolated from H100 and V100"},
	{.name = "rtx-4090",
	 PEAKS(82.6, 82.6, 165.2),
	 .memory_bps = 1008 * GBYTES_PER_SEC,
	 MATRIX_UNITS,
	 .source = "NVIDIA Ada white paper, GeForce RTX 4090, dense; shares extrapolated from H100 and V100"},
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
