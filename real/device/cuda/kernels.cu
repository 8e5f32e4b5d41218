/* Launches the kernels: executes a kernel's body once for each index. */
#include <cuda_runtime.h>
#include <math.h>
#include <string.h>

extern "C" {
#include "real/device/gpu/bodies_layers.h"
#include "real/device/gpu/bodies_low_rank.h"
#include "real/device/gpu/bodies_neighbours.h"
#include "real/device/gpu/bodies_packing.h"
#include "real/device/gpu/bodies_parameters.h"
#include "real/device/gpu/bodies_sequences.h"
#include "real/device/gpu/gpu.h"
}

#ifdef PSD_CUDA_STAND_IN

/* Without a GPU: on the processor, in order with other work on the stream. */
#include "tests/cuda/stand_in.h"

#define PSD_LAUNCH(name, n_indices, device, of)                                                                        \
	do {                                                                                                           \
		const struct name##_launch launch = {*(of), n_indices};                                                \
		psd_stand_in_launch((device)->streams[PSD_STREAM_COMPUTE], name##_of_each, &launch, sizeof(launch));   \
	} while (0)

#define DEFINE_KERNEL(body, arguments)                                                                                 \
	struct body##_launch {                                                                                         \
		struct psd_gpu_##arguments of;                                                                         \
		uint64_t n_indices;                                                                                    \
	};                                                                                                             \
	static void body##_of_each(void *argument)                                                                     \
	{                                                                                                              \
		const struct body##_launch *launch = (const struct body##_launch *)argument;                           \
                                                                                                                       \
		for (uint64_t i = 0; i < launch->n_indices; i++)                                                       \
			psd_##body##_at(i, &launch->of);                                                               \
	}

#else

/* Blocks of threads on a multiprocessor: this limit leaves 64 registers to a thread, and no kernel spills. */
#define THREADS 256u
#define BLOCKS	4

/* Limit of threads, four times as many as the GPU executes at once; beyond it a thread loops over several indices. */
static unsigned blocks_for(const struct psd_device *device, uint64_t n_indices)
{
	const uint64_t most = device->n_processors * UINT64_C(32), blocks = (n_indices + THREADS - 1) / THREADS;

	return (unsigned)(blocks < most ? blocks : most);
}

#define PSD_LAUNCH(name, n_indices, device, of)                                                                        \
	name##_of_each<<<blocks_for(device, n_indices), THREADS, 0, (device)->streams[PSD_STREAM_COMPUTE]>>>(          \
		*(of), n_indices)

#define DEFINE_KERNEL(body, arguments)                                                                                 \
	static __global__ void __launch_bounds__(THREADS, BLOCKS)                                                      \
		body##_of_each(const __grid_constant__ struct psd_gpu_##arguments of, const uint64_t n_indices)        \
	{                                                                                                              \
		for (uint64_t i = blockIdx.x * (uint64_t)THREADS + threadIdx.x; i < n_indices;                         \
		     i += gridDim.x * (uint64_t)THREADS)                                                               \
			psd_##body##_at(i, &of);                                                                       \
	}

#endif

#define DEFINE_RUN(name, arguments)                                                                                    \
	enum psd_status psd_gpu_run_##name(struct psd_device *device, const struct psd_gpu_##arguments *of,            \
					   uint64_t n_indices, struct psd_error *err)                                  \
	{                                                                                                              \
		if (!n_indices)                                                                                        \
			return PSD_OK;                                                                                 \
		PSD_LAUNCH(name, n_indices, device, of);                                                               \
		return psd_gpu_check(cudaGetLastError(), "to begin " #name, err);                                      \
	}

/* ---- four at once ---- */

static bool lies_by_four(struct psd_gpu_values values)
{
	return (uintptr_t)values.data % (values.type == PSD_GPU_FLOAT ? 16 : 8) == 0;
}

static bool goes_by_four(const struct psd_gpu_convert *of)
{
	return lies_by_four(of->from) && lies_by_four(of->to);
}

static bool goes_by_four(const struct psd_gpu_add *of)
{
	return lies_by_four(of->left) && lies_by_four(of->right) && lies_by_four(of->to);
}

static bool goes_by_four(const struct psd_gpu_affine *of)
{
	const bool has_four = of->channel.inner == 1 ? of->channel.channels % 4 == 0 : of->channel.inner % 4 == 0;

	return has_four && lies_by_four(of->from) && lies_by_four(of->to);
}

static bool goes_by_four(const struct psd_gpu_function *of)
{
	return lies_by_four(of->from) && lies_by_four(of->to);
}

static bool goes_by_four(const struct psd_gpu_function_back *of)
{
	return lies_by_four(of->known) && lies_by_four(of->diff) && lies_by_four(of->to);
}

static bool has_four_channels(const struct psd_gpu_window *window)
{
	return window->in.is_channels_last && window->in.channels % 4 == 0;
}

static bool goes_by_four(const struct psd_gpu_pool *of)
{
	return has_four_channels(&of->window) && lies_by_four(of->from) && lies_by_four(of->to);
}

static bool goes_by_four(const struct psd_gpu_pool_back *of)
{
	return has_four_channels(&of->window) && lies_by_four(of->diff) && lies_by_four(of->to) &&
	       (uintptr_t)of->positions % 16 == 0;
}

#define DEFINE_FOUR_RUN(name, arguments)                                                                               \
	enum psd_status psd_gpu_run_##name(struct psd_device *device, const struct psd_gpu_##arguments *of,            \
					   uint64_t n_indices, struct psd_error *err)                                  \
	{                                                                                                              \
		if (!n_indices)                                                                                        \
			return PSD_OK;                                                                                 \
		if (n_indices % 4 == 0 && goes_by_four(of))                                                            \
			PSD_LAUNCH(name##_four, n_indices / 4, device, of);                                            \
		else                                                                                                   \
			PSD_LAUNCH(name, n_indices, device, of);                                                       \
		return psd_gpu_check(cudaGetLastError(), "to begin " #name, err);                                      \
	}

#define DEFINE_FOUR_KERNEL(name, arguments) DEFINE_KERNEL(name##_four, arguments)

PSD_GPU_KERNELS(DEFINE_KERNEL)
PSD_GPU_FOUR_KERNELS(DEFINE_FOUR_KERNEL)
PSD_GPU_SINGLE_KERNELS(DEFINE_RUN)
PSD_GPU_FOUR_KERNELS(DEFINE_FOUR_RUN)
