/* The stand-in's devices, and what goes wrong at order. */
#define _GNU_SOURCE
#include <criterion/criterion.h>

#include "tests/cuda/apart_helper.h"
#include "tests/cuda/stand_in.h"
#include "tests/cuda/streams_helper.h"

/* ---- devices ---- */

Test(stand_in_faults, there_may_be_no_device)
{
	int n = -1, version = 0;
	void *block;

	psd_stand_in_set_devices(0);
	cr_assert_eq(cudaGetDeviceCount(&n), cudaErrorNoDevice);
	cr_assert_eq(n, 0);
	cr_assert_eq(cudaMalloc(&block, 1), cudaErrorNoDevice);
	must(cudaDriverGetVersion(&version));
	cr_assert_eq(version, CUDART_VERSION);
}

Test(stand_in_faults, a_driver_may_be_too_old)
{
	int n = -1, version = 0;

	psd_stand_in_set_driver(CUDART_VERSION - 1000);
	cr_assert_eq(cudaGetDeviceCount(&n), cudaErrorInsufficientDriver);
	must(cudaDriverGetVersion(&version));
	cr_assert_eq(version, CUDART_VERSION - 1000);
	psd_stand_in_set_driver(CUDART_VERSION + 10);
	must(cudaGetDeviceCount(&n));
	cr_assert_eq(n, 1);
}

Test(stand_in_faults, a_thread_launches_on_streams_of_its_device)
{
	struct cudaDeviceProp properties;
	struct streams with;
	cudaStream_t of_other;
	int major = 0;

	psd_stand_in_set_devices(2);
	psd_stand_in_set_capability(7, 5);
	open_streams(&with);
	cr_assert_eq(cudaSetDevice(2), cudaErrorInvalidDevice);
	must(cudaSetDevice(1));
	must(cudaStreamCreateWithFlags(&of_other, cudaStreamNonBlocking));
	must(cudaGetDeviceProperties(&properties, 1));
	must(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 1));
	cr_assert(properties.major == 7 && properties.minor == 5 && major == 7);
	cudaGetLastError();
	put(with.first, with.values, 1);
	cr_assert_eq(cudaGetLastError(), cudaErrorInvalidResourceHandle);
	cr_assert_eq(cudaEventRecord(with.event, of_other), cudaErrorInvalidResourceHandle);
	must(cudaMemsetAsync(with.values, 0, BYTES, with.first)); /* a copy has its memory's device */
	must(cudaStreamSynchronize(with.first));
	must(cudaStreamDestroy(of_other));
	must(cudaSetDevice(0));
	close_streams(&with);
}

static void call_in_child(const void *block)
{
	void *other;

	APART_CHECK(cudaFree((void *)(uintptr_t)block) == cudaErrorInitializationError);
	APART_CHECK(cudaMalloc(&other, 1) == cudaErrorInitializationError);
}

Test(stand_in_faults, a_child_of_a_process_that_called_cannot_call)
{
	struct apart apart;
	void *block;

	must(cudaMalloc(&block, 1));
	apart = run_apart(call_in_child, block);
	cr_assert(apart.is_well, "%s", apart.told);
	must(cudaFree(block));
}

/* ---- faults ---- */

Test(stand_in_faults, the_nth_call_fails)
{
	void *blocks[3] = {NULL, NULL, NULL};

	psd_stand_in_fail("cudaMalloc", 2, cudaErrorMemoryAllocation);
	must(cudaMalloc(&blocks[0], 1));
	cr_assert_eq(cudaMalloc(&blocks[1], 1), cudaErrorMemoryAllocation);
	cr_assert_null(blocks[1]);
	must(cudaMalloc(&blocks[2], 1));
	cr_assert_eq(cudaPeekAtLastError(), cudaErrorMemoryAllocation);
	must(cudaFree(blocks[0]));
	must(cudaFree(blocks[2]));
	cr_assert_eq(psd_stand_in_calls(), 5);
	psd_stand_in_fail(NULL, 1, cudaErrorNotSupported);
	cr_assert_eq(cudaDeviceSynchronize(), cudaErrorNotSupported);
	must(cudaDeviceSynchronize());
}

Test(stand_in_faults, a_lost_device_fails_all_that_follows)
{
	struct streams with;
	int n;

	open_streams(&with);
	psd_stand_in_fail("cudaEventRecord", 1, cudaErrorLaunchFailure);
	cr_assert_eq(cudaEventRecord(with.event, with.first), cudaErrorLaunchFailure);
	cr_assert_eq(cudaStreamSynchronize(with.first), cudaErrorLaunchFailure);
	cr_assert_eq(cudaGetDeviceCount(&n), cudaErrorLaunchFailure);
	put(with.first, with.values, 1);
	cr_assert_eq(cudaGetLastError(), cudaErrorLaunchFailure);
	cr_assert_eq(cudaGetLastError(), cudaErrorLaunchFailure);
	/* The resources are gone with the device. */
	cr_assert_eq(cudaFree(with.values), cudaErrorLaunchFailure);
	cr_assert_eq(cudaStreamDestroy(with.first), cudaErrorLaunchFailure);
	cr_assert_eq(psd_stand_in_held().blocks, 1);
	cr_assert_eq(psd_stand_in_held().streams, 1);
	with.values = NULL;
	with.first = NULL;
	drop_streams(&with);
}

Test(stand_in_faults, an_operation_that_fails_is_told_by_a_later_call)
{
	struct streams with;
	sem_t gate;

	sem_init(&gate, 0, 0);
	open_streams(&with);
	psd_stand_in_fail_operation(3, cudaErrorIllegalAddress);
	close_gate(with.first, &gate); /* so that all is queued before it fails: else queueing tells of it */
	put(with.first, with.values, 1);
	put(with.first, with.other, 2);
	must(cudaMemcpyAsync(with.host, with.values, BYTES, cudaMemcpyDeviceToHost, with.first));
	sem_post(&gate);
	cr_assert_eq(cudaStreamSynchronize(with.first), cudaErrorIllegalAddress);
	cr_assert(none_is_a_number(with.host)); /* the work behind it is dropped */
	drop_streams(&with);
}
