/* The table of devices. Peaks and bandwidths are the makers' figures; the efficiencies are assumptions, alike for all
 * devices of a generation, to be replaced by `images_per_sec` or a profile wherever something was measured. */
#include <string.h>

#include "engine/scenario/device.h"

#define TFLOPS	       1e12
#define GBYTES_PER_SEC 8e9 /* in bits */

static const struct psd_device devices[] = {
	{.name = "k20",
	 .peak_flops_per_sec = 3.52 * TFLOPS,
	 .peak_half_flops_per_sec = 3.52 * TFLOPS,
	 .memory_bps = 208 * GBYTES_PER_SEC,
	 .conv_efficiency_ratio = 0.5,
	 .gemm_efficiency_ratio = 0.7,
	 .half_efficiency_ratio = 0.5,
	 .source = "NVIDIA Tesla K20 board specification: 2496 cores, 0.706 GHz; efficiencies assumed"},
	{.name = "titan-x",
	 .peak_flops_per_sec = 6.144 * TFLOPS,
	 .peak_half_flops_per_sec = 6.144 * TFLOPS,
	 .memory_bps = 336.5 * GBYTES_PER_SEC,
	 .conv_efficiency_ratio = 0.65,
	 .gemm_efficiency_ratio = 0.7,
	 .half_efficiency_ratio = 0.65,
	 .source = "NVIDIA GeForce GTX Titan X (Maxwell) specification: 3072 cores, 1.0 GHz; efficiencies assumed"},
	{.name = "p100",
	 .peak_flops_per_sec = 9.3 * TFLOPS,
	 .peak_half_flops_per_sec = 18.7 * TFLOPS,
	 .memory_bps = 732 * GBYTES_PER_SEC,
	 .conv_efficiency_ratio = 0.65,
	 .gemm_efficiency_ratio = 0.7,
	 .half_efficiency_ratio = 0.5,
	 .source = "NVIDIA Tesla P100 PCIe 16 GB data sheet; efficiencies assumed"},
	{.name = "v100",
	 .peak_flops_per_sec = 14 * TFLOPS,
	 .peak_half_flops_per_sec = 112 * TFLOPS,
	 .memory_bps = 900 * GBYTES_PER_SEC,
	 .conv_efficiency_ratio = 0.65,
	 .gemm_efficiency_ratio = 0.7,
	 .half_efficiency_ratio = 0.35,
	 .source = "NVIDIA Tesla V100 PCIe data sheet; efficiencies assumed"},
	{.name = "h100",
	 .peak_flops_per_sec = 67 * TFLOPS,
	 .peak_half_flops_per_sec = 989.4 * TFLOPS,
	 .memory_bps = 3350 * GBYTES_PER_SEC,
	 .conv_efficiency_ratio = 0.65,
	 .gemm_efficiency_ratio = 0.7,
	 .half_efficiency_ratio = 0.35,
	 .source = "NVIDIA H100 SXM5 data sheet, dense; efficiencies assumed"},
	{.name = "cpu",
	 .peak_flops_per_sec = 0.32 * TFLOPS,
	 .peak_half_flops_per_sec = 0.32 * TFLOPS,
	 .memory_bps = 20 * GBYTES_PER_SEC,
	 .conv_efficiency_ratio = 0.6,
	 .gemm_efficiency_ratio = 0.35,
	 .half_efficiency_ratio = 0.35,
	 .source =
		 "two cores of 2.5 GHz with AVX-512 (64 FLOPs a cycle each); efficiencies chosen to meet PyTorch 1.13: "
		 "AlexNet, batch 32, 0.74 s; three 4096-wide layers, batch 64, 0.16 s"},
};

enum { N_DEVICES = sizeof(devices) / sizeof(devices[0]) };

const char *const psd_device_names[] = {"k20", "titan-x", "p100", "v100", "h100", "cpu", NULL};

_Static_assert(sizeof(psd_device_names) / sizeof(psd_device_names[0]) == N_DEVICES + 1, "a name for every device");

const struct psd_device *psd_device_find(const char *name)
{
	for (unsigned i = 0; i < N_DEVICES; i++)
		if (!strcmp(devices[i].name, name))
			return &devices[i];
	return NULL;
}
