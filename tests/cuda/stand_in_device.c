/* The stand-in's devices and driver: how many, how old, of what kind. Refuses to know memory and streams. */
#include <stdio.h>
#include <string.h>

#include "tests/cuda/stand_in_parts.h"

enum { MULTIPROCESSORS = 4, THREADS_IN_BLOCK = 1024, THREADS_IN_WARP = 32, SHARED_BYTES = 48 << 10 };

static int n_devices = 1;
static int driver_version = CUDART_VERSION;
static int capability[2] = {8, 0};
static _Thread_local int device;

void psd_stand_in_set_devices(int n)
{
	psd_stand_in_lock();
	n_devices = n;
	psd_stand_in_unlock();
}

void psd_stand_in_set_driver(int version)
{
	psd_stand_in_lock();
	driver_version = version;
	psd_stand_in_unlock();
}

void psd_stand_in_set_capability(int major, int minor)
{
	psd_stand_in_lock();
	capability[0] = major;
	capability[1] = minor;
	psd_stand_in_unlock();
}

int psd_stand_in_device(void)
{
	return device;
}

cudaError_t psd_stand_in_machine_error(void)
{
	/* Drivers serve all runtimes of their major version. */
	if (driver_version / 1000 < CUDART_VERSION / 1000)
		return cudaErrorInsufficientDriver;
	return n_devices == 0 ? cudaErrorNoDevice : cudaSuccess;
}

static cudaError_t check_device(int number)
{
	return number >= 0 && number < n_devices ? cudaSuccess : cudaErrorInvalidDevice;
}

cudaError_t cudaGetDeviceCount(int *count)
{
	const cudaError_t error = psd_stand_in_begin(__func__);

	*count = error == cudaSuccess ? n_devices : 0;
	return psd_stand_in_end(error);
}

cudaError_t cudaSetDevice(int number)
{
	cudaError_t error = psd_stand_in_begin(__func__);

	if (error == cudaSuccess)
		error = check_device(number);
	if (error == cudaSuccess)
		device = number;
	return psd_stand_in_end(error);
}

cudaError_t cudaGetDevice(int *number)
{
	const cudaError_t error = psd_stand_in_begin(__func__);

	if (error == cudaSuccess)
		*number = device;
	return psd_stand_in_end(error);
}

static void describe(struct cudaDeviceProp *properties, int number)
{
	memset(properties, 0, sizeof(*properties));
	snprintf(properties->name, sizeof(properties->name), "stand-in %d, not a GPU", number);
	properties->totalGlobalMem = (size_t)psd_stand_in_total_bytes();
	properties->sharedMemPerBlock = SHARED_BYTES;
	properties->warpSize = THREADS_IN_WARP;
	properties->maxThreadsPerBlock = THREADS_IN_BLOCK;
	properties->maxThreadsDim[0] = properties->maxThreadsDim[1] = THREADS_IN_BLOCK;
	properties->maxThreadsDim[2] = 64;
	properties->maxGridSize[0] = 2147483647;
	properties->maxGridSize[1] = properties->maxGridSize[2] = 65535;
	properties->major = capability[0];
	properties->minor = capability[1];
	properties->multiProcessorCount = MULTIPROCESSORS;
	properties->maxThreadsPerMultiProcessor = 2 * THREADS_IN_BLOCK;
	properties->asyncEngineCount = 2;
	properties->concurrentKernels = 1;
	properties->unifiedAddressing = 1;
	properties->canMapHostMemory = 1;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int number)
{
	cudaError_t error = psd_stand_in_begin(__func__);

	if (error == cudaSuccess)
		error = check_device(number);
	if (error == cudaSuccess)
		describe(properties, number);
	return psd_stand_in_end(error);
}

/* Those that the properties have as well; others the stand-in does not know. */
static cudaError_t attribute_of(const struct cudaDeviceProp *properties, enum cudaDeviceAttr attribute, int *value)
{
	const struct {
		enum cudaDeviceAttr attribute;
		int value;
	} known[] = {
		{cudaDevAttrComputeCapabilityMajor, properties->major},
		{cudaDevAttrComputeCapabilityMinor, properties->minor},
		{cudaDevAttrMultiProcessorCount, properties->multiProcessorCount},
		{cudaDevAttrMaxThreadsPerBlock, properties->maxThreadsPerBlock},
		{cudaDevAttrMaxThreadsPerMultiProcessor, properties->maxThreadsPerMultiProcessor},
		{cudaDevAttrWarpSize, properties->warpSize},
		{cudaDevAttrMaxSharedMemoryPerBlock, SHARED_BYTES},
		{cudaDevAttrAsyncEngineCount, properties->asyncEngineCount},
		{cudaDevAttrUnifiedAddressing, properties->unifiedAddressing},
		{cudaDevAttrCanMapHostMemory, properties->canMapHostMemory},
		{cudaDevAttrMaxGridDimX, properties->maxGridSize[0]},
		{cudaDevAttrMaxGridDimY, properties->maxGridSize[1]},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (known[i].attribute == attribute) {
			*value = known[i].value;
			return cudaSuccess;
		}
	fprintf(stderr, "stand-in: no value for attribute %d of a device\n", (int)attribute);
	return cudaErrorInvalidValue;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int number)
{
	cudaError_t error = psd_stand_in_begin(__func__);
	struct cudaDeviceProp properties;

	if (error == cudaSuccess)
		error = check_device(number);
	if (error == cudaSuccess) {
		describe(&properties, number);
		error = attribute_of(&properties, attribute, value);
	}
	return psd_stand_in_end(error);
}

cudaError_t cudaDeviceGetPCIBusId(char *text, int length, int number)
{
	cudaError_t error = psd_stand_in_begin(__func__);

	if (error == cudaSuccess)
		error = check_device(number);
	if (error == cudaSuccess && snprintf(text, (size_t)length, "0000:%02x:00.0", number) >= length)
		error = cudaErrorInvalidValue;
	return psd_stand_in_end(error);
}

/* Both versions can be asked for where there is no device. */
cudaError_t cudaDriverGetVersion(int *version)
{
	psd_stand_in_lock();
	*version = driver_version;
	psd_stand_in_unlock();
	return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
	*version = CUDART_VERSION;
	return cudaSuccess;
}

cudaError_t cudaSetDeviceFlags(unsigned flags)
{
	(void)flags; /* how the host waits: spinning, blocking */
	return psd_stand_in_end(psd_stand_in_begin(__func__));
}

/* ---- errors' names ---- */

struct error_name {
	cudaError_t error;
	const char *name;
	const char *text;
};

#define ERROR_NAME(error, text)                                                                                        \
	{                                                                                                              \
		error, #error, text                                                                                    \
	}

static const struct error_name error_names[] = {
	ERROR_NAME(cudaSuccess, "no error"),
	ERROR_NAME(cudaErrorInvalidValue, "invalid argument"),
	ERROR_NAME(cudaErrorMemoryAllocation, "out of memory"),
	ERROR_NAME(cudaErrorInitializationError, "initialization error"),
	ERROR_NAME(cudaErrorInsufficientDriver, "CUDA driver version is insufficient for CUDA runtime version"),
	ERROR_NAME(cudaErrorNoDevice, "no CUDA-capable device is detected"),
	ERROR_NAME(cudaErrorInvalidDevice, "invalid device ordinal"),
	ERROR_NAME(cudaErrorInvalidResourceHandle, "invalid resource handle"),
	ERROR_NAME(cudaErrorNotReady, "device not ready"),
	ERROR_NAME(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
	ERROR_NAME(cudaErrorLaunchFailure, "unspecified launch failure"),
	ERROR_NAME(cudaErrorLaunchTimeout, "the launch timed out and was terminated"),
	ERROR_NAME(cudaErrorECCUncorrectable, "uncorrectable ECC error encountered"),
	ERROR_NAME(cudaErrorHostMemoryAlreadyRegistered, "part or all of the requested memory range is already mapped"),
	ERROR_NAME(cudaErrorHostMemoryNotRegistered, "pointer does not correspond to a registered memory region"),
	ERROR_NAME(cudaErrorNotPermitted, "operation not permitted"),
	ERROR_NAME(cudaErrorNotSupported, "operation not supported"),
	ERROR_NAME(cudaErrorIllegalState, "the operation cannot be performed in the present state"),
	ERROR_NAME(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing"),
	ERROR_NAME(cudaErrorStreamCaptureInvalidated, "operation failed due to a previous error during capture"),
	ERROR_NAME(cudaErrorStreamCaptureIsolation, "dependency created on uncaptured work in another stream"),
	ERROR_NAME(cudaErrorStreamCaptureImplicit,
		   "operation would make the legacy stream depend on a capturing blocking stream"),
	ERROR_NAME(cudaErrorStreamCaptureWrongThread,
		   "attempt to terminate a thread-local capture sequence from another thread"),
	ERROR_NAME(cudaErrorCapturedEvent, "operation not permitted on an event last recorded in a capturing stream"),
	ERROR_NAME(cudaErrorUnknown, "unknown error"),
};

static const struct error_name *name_of(cudaError_t error)
{
	static const struct error_name unknown = {cudaErrorUnknown, "unrecognized error code",
						  "unrecognized error code"};

	for (size_t i = 0; i < sizeof(error_names) / sizeof(error_names[0]); i++)
		if (error_names[i].error == error)
			return &error_names[i];
	return &unknown;
}

const char *cudaGetErrorName(cudaError_t error)
{
	return name_of(error)->name;
}

const char *cudaGetErrorString(cudaError_t error)
{
	return name_of(error)->text;
}
