/* Common code of cuDNN's parts of the stand-in: handles, tensors in four axes, their values in double. */
#ifndef PSD_TESTS_CUDA_STAND_IN_DNN_H
#define PSD_TESTS_CUDA_STAND_IN_DNN_H

#include <cudnn.h>
#include <stdbool.h>
#include <stddef.h>

#include "tests/cuda/stand_in_numbers.h"

struct cudnnContext {
	int device;
	cudaStream_t stream;
};

/* A tensor (samples, channels, height, width) or a filter (outputs, inputs / groups, height, width). */
struct psd_stand_in_layout {
	bool is_set;
	enum psd_stand_in_number number;
	size_t n, c, h, w;
	size_t strides[4];
};

struct cudnnTensorStruct {
	struct psd_stand_in_layout layout;
};

struct psd_stand_in_tensor {
	struct psd_stand_in_layout layout;
	void *values;
};

/* false: not one of those that psd-run uses. */
bool psd_stand_in_number_of(cudnnDataType_t type, enum psd_stand_in_number *number);
/* Sets strides without gaps; the layout's sizes are known. */
void psd_stand_in_set_strides(struct psd_stand_in_layout *layout, bool is_channels_last);
struct psd_stand_in_tensor psd_stand_in_tensor(const struct psd_stand_in_layout *layout, const void *values);
size_t psd_stand_in_tensor_values(const struct psd_stand_in_layout *layout);
bool psd_stand_in_same_shape(const struct psd_stand_in_layout *left, const struct psd_stand_in_layout *right);
/* Whether kernels that read and write 16 bytes at once take it; NULL suits them. */
bool psd_stand_in_suits_dnn(const void *address);
/* In an operation: the values in the plain order, which the caller frees; NULL where the device may not touch them. */
double *psd_stand_in_load(const struct psd_stand_in_tensor *tensor);
/* tensor = alpha values + beta tensor, unless the device may not touch it. */
void psd_stand_in_store(const struct psd_stand_in_tensor *tensor, const double *values, double alpha, double beta);

cudnnStatus_t psd_stand_in_dnn_status(cudaError_t error);
/* Queues work on the handle's stream; begins and ends the call of `function`. */
cudnnStatus_t psd_stand_in_dnn_queue(const char *function, cudnnHandle_t handle, void (*run)(void *arguments),
				     const void *arguments, size_t bytes);
/* A descriptor of that many bytes, all zero. */
cudnnStatus_t psd_stand_in_dnn_create(const char *function, void **descriptor, size_t bytes);
cudnnStatus_t psd_stand_in_dnn_destroy(const char *function, void *descriptor);

#endif
