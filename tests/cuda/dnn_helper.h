/* Common start of the tests of cuDNN's part of the stand-in: a handle, its stream, memory. */
#ifndef PSD_TESTS_CUDA_DNN_HELPER_H
#define PSD_TESTS_CUDA_DNN_HELPER_H

#include <criterion/criterion.h>
#include <cudnn.h>

#include "tests/cuda/stand_in.h"
#include "tests/test_with.h"

enum { MOST = 1024 };

static const double rounding = 1e-5; /* relative to sums of a few dozen products below 1 */

struct dnn {
	cudnnHandle_t handle;
	cudaStream_t stream;
	cudnnTensorDescriptor_t x, y;
	void *device_x, *device_w, *device_y, *device_dx, *workspace, *reserve; /* MOST floats each */
};

static inline void must(cudnnStatus_t status)
{
	cr_assert_eq(status, CUDNN_STATUS_SUCCESS, "%s", cudnnGetErrorString(status));
}

static inline void must_run(cudaError_t error)
{
	cr_assert_eq(error, cudaSuccess, "%s", cudaGetErrorString(error));
}

static inline void open_dnn(struct dnn *dnn)
{
	must_run(cudaStreamCreateWithFlags(&dnn->stream, cudaStreamNonBlocking));
	must(cudnnCreate(&dnn->handle));
	must(cudnnSetStream(dnn->handle, dnn->stream));
	must(cudnnCreateTensorDescriptor(&dnn->x));
	must(cudnnCreateTensorDescriptor(&dnn->y));
	must_run(cudaMalloc(&dnn->device_x, MOST * sizeof(float)));
	must_run(cudaMalloc(&dnn->device_w, MOST * sizeof(float)));
	must_run(cudaMalloc(&dnn->device_y, MOST * sizeof(float)));
	must_run(cudaMalloc(&dnn->device_dx, MOST * sizeof(float)));
	must_run(cudaMalloc(&dnn->workspace, MOST * sizeof(float)));
	must_run(cudaMalloc(&dnn->reserve, MOST * sizeof(float)));
}

static inline void close_dnn(const struct dnn *dnn)
{
	must_run(cudaStreamSynchronize(dnn->stream));
	must_run(cudaStreamDestroy(dnn->stream));
	must(cudnnDestroyTensorDescriptor(dnn->x));
	must(cudnnDestroyTensorDescriptor(dnn->y));
	must(cudnnDestroy(dnn->handle));
	must_run(cudaFree(dnn->device_x));
	must_run(cudaFree(dnn->device_w));
	must_run(cudaFree(dnn->device_y));
	must_run(cudaFree(dnn->device_dx));
	must_run(cudaFree(dnn->workspace));
	must_run(cudaFree(dnn->reserve));
	cr_assert_eq(psd_stand_in_held().handles, 0);
}

#define DNN_TEST(suite, claim) TEST_OPENED(suite, claim, struct dnn, dnn, open_dnn, close_dnn)

static inline void to_device(const struct dnn *dnn, void *to, const void *from, size_t bytes)
{
	must_run(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, dnn->stream));
}

static inline void to_host(const struct dnn *dnn, void *to, const void *from, size_t bytes)
{
	must_run(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, dnn->stream));
	must_run(cudaStreamSynchronize(dnn->stream));
}

#endif
