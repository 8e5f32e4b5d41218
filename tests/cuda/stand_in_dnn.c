/* cuDNN's handles and descriptors in the stand-in, and how values of tensors are read and written. Refuses to know
 * what is computed of them. */
#include "tests/cuda/stand_in_dnn.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/cuda/stand_in_parts.h"

/* ---- calls ---- */

cudnnStatus_t psd_stand_in_dnn_status(cudaError_t error)
{
	switch ((int)error) {
	case cudaSuccess: return CUDNN_STATUS_SUCCESS;
	case cudaErrorMemoryAllocation: return CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
	case cudaErrorInvalidValue: return CUDNN_STATUS_BAD_PARAM;
	case cudaErrorInvalidResourceHandle: return CUDNN_STATUS_BAD_PARAM_STREAM_MISMATCH;
	case cudaErrorNoDevice:
	case cudaErrorInsufficientDriver:
	case cudaErrorInitializationError: return CUDNN_STATUS_NOT_INITIALIZED;
	default: return CUDNN_STATUS_EXECUTION_FAILED;
	}
}

static cudnnStatus_t end(cudaError_t error)
{
	psd_stand_in_unlock();
	return psd_stand_in_dnn_status(error);
}

cudnnStatus_t psd_stand_in_dnn_queue(const char *function, cudnnHandle_t handle, void (*run)(void *arguments),
				     const void *arguments, size_t bytes)
{
	cudaError_t error = psd_stand_in_begin(function);

	if (error == cudaSuccess && handle->device != psd_stand_in_device())
		error = cudaErrorInvalidResourceHandle;
	if (error == cudaSuccess)
		error = psd_stand_in_queue_work(handle->stream, run, arguments, bytes);
	return end(error);
}

cudnnStatus_t psd_stand_in_dnn_create(const char *function, void **descriptor, size_t bytes)
{
	cudaError_t error = psd_stand_in_begin(function);

	if (error == cudaSuccess) {
		*descriptor = calloc(1, bytes);
		error = *descriptor ? cudaSuccess : cudaErrorMemoryAllocation;
	}
	psd_stand_in_count.handles += error == cudaSuccess;
	return end(error);
}

cudnnStatus_t psd_stand_in_dnn_destroy(const char *function, void *descriptor)
{
	const cudaError_t error = psd_stand_in_begin(function);

	if (descriptor && psd_stand_in_may_release(error)) {
		free(descriptor);
		psd_stand_in_count.handles--;
	}
	return end(error);
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle)
{
	void *made = NULL;
	const cudnnStatus_t status = psd_stand_in_dnn_create(__func__, &made, sizeof(**handle));

	if (status == CUDNN_STATUS_SUCCESS) {
		*handle = made;
		(*handle)->device = psd_stand_in_device();
	}
	return status;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
	return psd_stand_in_dnn_destroy(__func__, handle);
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
	cudaError_t error = psd_stand_in_begin(__func__);

	if (error == cudaSuccess && psd_stand_in_stream_device(stream) != handle->device)
		error = cudaErrorInvalidResourceHandle;
	if (error == cudaSuccess)
		handle->stream = stream;
	return end(error);
}

size_t cudnnGetVersion(void)
{
	return CUDNN_VERSION;
}

const char *cudnnGetErrorString(cudnnStatus_t status)
{
	static const struct {
		cudnnStatus_t status;
		const char *name;
	} names[] = {
		{CUDNN_STATUS_SUCCESS, "CUDNN_STATUS_SUCCESS"},
		{CUDNN_STATUS_NOT_INITIALIZED, "CUDNN_STATUS_NOT_INITIALIZED"},
		{CUDNN_STATUS_BAD_PARAM, "CUDNN_STATUS_BAD_PARAM"},
		{CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "CUDNN_STATUS_BAD_PARAM_NULL_POINTER"},
		{CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED"},
		{CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES, "CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES"},
		{CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE, "CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE"},
		{CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE, "CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE"},
		{CUDNN_STATUS_BAD_PARAM_STREAM_MISMATCH, "CUDNN_STATUS_BAD_PARAM_STREAM_MISMATCH"},
		{CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER, "CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER"},
		{CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT, "CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT"},
		{CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH"},
		{CUDNN_STATUS_NOT_SUPPORTED, "CUDNN_STATUS_NOT_SUPPORTED"},
		{CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING,
		 "CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING"},
		{CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED,
		 "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"},
		{CUDNN_STATUS_EXECUTION_FAILED, "CUDNN_STATUS_EXECUTION_FAILED"},
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].status == status)
			return names[i].name;
	return "CUDNN_UNKNOWN_STATUS";
}

void cudnnGetLastErrorString(char *message, size_t max_size)
{
	snprintf(message, max_size, "%s", "the stand-in\nsays no more");
}

/* ---- descriptors ---- */

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t *descriptor)
{
	return psd_stand_in_dnn_create(__func__, (void **)descriptor, sizeof(**descriptor));
}

cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t descriptor)
{
	return psd_stand_in_dnn_destroy(__func__, descriptor);
}

bool psd_stand_in_number_of(cudnnDataType_t type, enum psd_stand_in_number *number)
{
	switch ((int)type) {
	case CUDNN_DATA_FLOAT: *number = PSD_STAND_IN_FLOAT; return true;
	case CUDNN_DATA_HALF: *number = PSD_STAND_IN_HALF; return true;
	case CUDNN_DATA_BFLOAT16: *number = PSD_STAND_IN_BFLOAT; return true;
	default: return false;
	}
}

void psd_stand_in_set_strides(struct psd_stand_in_layout *layout, bool is_channels_last)
{
	layout->strides[0] = layout->c * layout->h * layout->w;
	layout->strides[1] = is_channels_last ? 1 : layout->h * layout->w;
	layout->strides[2] = is_channels_last ? layout->w * layout->c : layout->w;
	layout->strides[3] = is_channels_last ? layout->c : 1;
}

static cudnnStatus_t set_layout(const char *function, struct psd_stand_in_layout *layout, cudnnTensorFormat_t format,
				cudnnDataType_t type, const int sizes[4])
{
	const cudaError_t error = psd_stand_in_begin(function);
	struct psd_stand_in_layout set = {.is_set = true};

	psd_stand_in_unlock();
	if (error != cudaSuccess)
		return psd_stand_in_dnn_status(error);
	for (int i = 0; i < 4; i++)
		if (sizes[i] <= 0)
			return CUDNN_STATUS_BAD_PARAM;
	if (!psd_stand_in_number_of(type, &set.number) || (format != CUDNN_TENSOR_NCHW && format != CUDNN_TENSOR_NHWC))
		return CUDNN_STATUS_NOT_SUPPORTED;
	set.n = (size_t)sizes[0];
	set.c = (size_t)sizes[1];
	set.h = (size_t)sizes[2];
	set.w = (size_t)sizes[3];
	psd_stand_in_set_strides(&set, format == CUDNN_TENSOR_NHWC);
	*layout = set;
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t descriptor, cudnnTensorFormat_t format,
					 cudnnDataType_t type, int n, int c, int h, int w)
{
	return set_layout(__func__, &descriptor->layout, format, type, (const int[4]){n, c, h, w});
}

/* ---- values ---- */

size_t psd_stand_in_tensor_values(const struct psd_stand_in_layout *layout)
{
	return layout->n * layout->c * layout->h * layout->w;
}

bool psd_stand_in_same_shape(const struct psd_stand_in_layout *left, const struct psd_stand_in_layout *right)
{
	return left->n == right->n && left->c == right->c && left->h == right->h && left->w == right->w;
}

struct psd_stand_in_tensor psd_stand_in_tensor(const struct psd_stand_in_layout *layout, const void *values)
{
	return (struct psd_stand_in_tensor){.layout = *layout, .values = (void *)(uintptr_t)values};
}

bool psd_stand_in_suits_dnn(const void *address)
{
	return (uintptr_t)address % 16 == 0;
}

/* Where value number `index` of the plain order is stored. */
static size_t place_of(const struct psd_stand_in_layout *layout, size_t index)
{
	const size_t column = index % layout->w, row = index / layout->w % layout->h;
	const size_t channel = index / layout->w / layout->h % layout->c;

	return index / layout->w / layout->h / layout->c * layout->strides[0] + channel * layout->strides[1] +
	       row * layout->strides[2] + column * layout->strides[3];
}

static bool may_touch(const struct psd_stand_in_tensor *tensor)
{
	return psd_stand_in_may_touch(tensor->values, psd_stand_in_tensor_values(&tensor->layout) *
							      psd_stand_in_number_bytes(tensor->layout.number));
}

double *psd_stand_in_load(const struct psd_stand_in_tensor *tensor)
{
	const size_t n = psd_stand_in_tensor_values(&tensor->layout);
	double *values;

	if (!may_touch(tensor))
		return NULL;
	values = psd_stand_in_doubles(n);
	for (size_t i = 0; i < n; i++)
		values[i] = psd_stand_in_read(tensor->layout.number, tensor->values, place_of(&tensor->layout, i));
	return values;
}

void psd_stand_in_store(const struct psd_stand_in_tensor *tensor, const double *values, double alpha, double beta)
{
	const size_t n = psd_stand_in_tensor_values(&tensor->layout);
	const enum psd_stand_in_number number = tensor->layout.number;

	if (!may_touch(tensor))
		return;
	for (size_t i = 0; i < n; i++) {
		const size_t at = place_of(&tensor->layout, i);
		/* Without beta the old value is not read: it may be NaN. */
		const double before = beta == 0 ? 0 : psd_stand_in_read(number, tensor->values, at);

		psd_stand_in_write(number, tensor->values, at, alpha * values[i] + beta * before);
	}
}
