/* Batch norm by the batch's own statistics, on cuDNN. */
#include <cudnn.h>
#include <stdlib.h>

extern "C" {
#include "real/device/cuda/dnn.h"
}

static const float one = 1.0f, zero = 0.0f;

struct psd_gpu_dnn_norm {
	cudnnTensorDescriptor_t maps, vector;
	cudnnBatchNormMode_t mode;
	size_t forward_bytes, backward_bytes; /* bytes of workspace that each pass needs */
	void *reserve;			      /* slot: cuDNN's reserve space, from forward to backward */
	size_t reserve_bytes;
};

static cudnnStatus_t describe_maps(const struct psd_gpu_layer *layer, cudnnTensorDescriptor_t *maps)
{
	const struct psd_device *device = layer->device;
	const struct psd_shape shape = layer->model->shape;
	const cudnnStatus_t status = cudnnCreateTensorDescriptor(maps);

	if (status != CUDNN_STATUS_SUCCESS)
		return status;
	return cudnnSetTensor4dDescriptor(*maps, device->is_channels_last ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW,
					  (cudnnDataType_t)psd_cuda_dnn_type_of(device), (int)device->network.batch,
					  (int)shape.channels, (int)shape.height, (int)shape.width);
}

/* The mode with sums on the chip is much faster with channels last. It needs a workspace, for which only calls with
 * "Ex" have an argument. The other mode has no limit on values. */
static cudnnStatus_t describe_norm(const struct psd_gpu_layer *layer, struct psd_gpu_dnn_norm *norm)
{
	const int channels = (int)layer->model->shape.channels;
	cudnnStatus_t status = describe_maps(layer, &norm->maps);

	norm->mode = layer->device->is_channels_last ? CUDNN_BATCHNORM_SPATIAL_PERSISTENT : CUDNN_BATCHNORM_SPATIAL;
	if (status == CUDNN_STATUS_SUCCESS)
		status = cudnnCreateTensorDescriptor(&norm->vector);
	if (status == CUDNN_STATUS_SUCCESS)
		status = cudnnSetTensor4dDescriptor(norm->vector, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, channels, 1,
						    1);
	return status;
}

static cudnnStatus_t measure_norm(cudnnHandle_t dnn, struct psd_gpu_dnn_norm *norm)
{
	cudnnStatus_t status = cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
		dnn, norm->mode, CUDNN_BATCHNORM_OPS_BN, norm->maps, NULL, norm->maps, norm->vector, NULL,
		&norm->forward_bytes);

	if (status == CUDNN_STATUS_SUCCESS)
		status = cudnnGetBatchNormalizationBackwardExWorkspaceSize(
			dnn, norm->mode, CUDNN_BATCHNORM_OPS_BN, norm->maps, norm->maps, norm->maps, NULL, norm->maps,
			norm->vector, NULL, &norm->backward_bytes);
	if (status == CUDNN_STATUS_SUCCESS)
		status = cudnnGetBatchNormalizationTrainingExReserveSpaceSize(dnn, norm->mode, CUDNN_BATCHNORM_OPS_BN,
									      NULL, norm->maps, &norm->reserve_bytes);
	return status;
}

enum psd_status psd_gpu_dnn_norm_open(struct psd_gpu_layer *layer, struct psd_gpu_dnn_norm **norm,
				      struct psd_error *err)
{
	*norm = (struct psd_gpu_dnn_norm *)calloc(1, sizeof(**norm));
	if (!*norm)
		return psd_gpu_no_memory(err);
	cudnnStatus_t status = describe_norm(layer, *norm);
	if (status == CUDNN_STATUS_SUCCESS)
		status = measure_norm(layer->device->dnn, *norm);
	if (status != CUDNN_STATUS_SUCCESS)
		return psd_cuda_dnn_check(layer, status, "batch norm", err);
	psd_gpu_want_workspace(layer->device, (*norm)->forward_bytes);
	psd_gpu_want_workspace(layer->device, (*norm)->backward_bytes);
	psd_cuda_dnn_want_aside(layer, (*norm)->backward_bytes);
	return psd_gpu_want(layer->device, (*norm)->reserve_bytes, &(*norm)->reserve, err);
}

void psd_gpu_dnn_norm_close(struct psd_gpu_dnn_norm *norm)
{
	if (!norm)
		return;
	if (norm->maps)
		(void)cudnnDestroyTensorDescriptor(norm->maps);
	if (norm->vector)
		(void)cudnnDestroyTensorDescriptor(norm->vector);
	free(norm);
}

enum psd_status psd_gpu_dnn_norm_forward(struct psd_gpu_layer *layer, struct psd_gpu_dnn_norm *norm,
					 const struct psd_gpu_norm_vectors *vectors, double share,
					 struct psd_error *err)
{
	const struct psd_device *device = layer->device;
	const cudnnStatus_t status = cudnnBatchNormalizationForwardTrainingEx(
		device->dnn, norm->mode, CUDNN_BATCHNORM_OPS_BN, &one, &zero, norm->maps,
		psd_gpu_input(layer, 0)->value, NULL, NULL, norm->maps, layer->blob->value, norm->vector,
		vectors->gamma, vectors->beta, share, vectors->running_mean, vectors->running_variance,
		layer->model->settings.affine.epsilon, vectors->mean, vectors->inverse, NULL, device->workspace,
		norm->forward_bytes, norm->reserve, norm->reserve_bytes);

	return psd_cuda_dnn_check(layer, status, "batch norm", err);
}

/* cuDNN's fastest kernels may ignore factors other than 1 and 0, so no others are passed. */
enum psd_status psd_gpu_dnn_norm_backward(struct psd_gpu_layer *layer, struct psd_gpu_dnn_norm *norm,
					  const struct psd_gpu_norm_vectors *vectors, struct psd_error *err)
{
	const struct psd_device *device = layer->device;
	struct psd_gpu_blob *in = psd_gpu_input(layer, 0);
	const bool adds = psd_gpu_share(in);
	void *dinput = adds ? (char *)device->workspace + psd_cuda_dnn_aside_at_bytes(norm->backward_bytes) : in->diff;
	const cudnnStatus_t status = cudnnBatchNormalizationBackwardEx(
		device->dnn, norm->mode, CUDNN_BATCHNORM_OPS_BN, &one, &zero, &one, &zero, norm->maps, in->value, NULL,
		NULL, norm->maps, layer->blob->diff, NULL, NULL, norm->maps, dinput, norm->vector, vectors->gamma, NULL,
		vectors->dgamma, vectors->dbeta, layer->model->settings.affine.epsilon, vectors->mean, vectors->inverse,
		NULL, device->workspace, norm->backward_bytes, norm->reserve, norm->reserve_bytes);

	return status == CUDNN_STATUS_SUCCESS && adds ? psd_cuda_dnn_add_aside(layer, dinput, err)
						      : psd_cuda_dnn_check(layer, status, "batch norm's gradient", err);
}
