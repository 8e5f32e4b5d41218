/* Convolution and batch norm on cuDNN: descriptors, and algorithms chosen by its own estimate among those that give
 * equal bits. Pooling, response normalisation, functions, softmax and dropout are kernels of ours: Caffe's windows
 * beyond the padding, its squares of places, its ties and our masks are not cuDNN's. */
#include <cudnn.h>
#include <stdlib.h>

extern "C" {
#include "real/device/cuda/cuda.h"
}

static const struct psd_place nowhere = {NULL, 0, 0};
static const float one = 1.0f, zero = 0.0f;

/* what: "has no convolution", of a layer. */
static enum psd_status check(const struct psd_cuda_layer *layer, cudnnStatus_t status, const char *what,
			     struct psd_error *err)
{
	const struct psd_layer *model = layer->model;

	if (status == CUDNN_STATUS_SUCCESS)
		return PSD_OK;
	if (status / 1000 == CUDNN_STATUS_NOT_SUPPORTED / 1000 || status / 1000 == CUDNN_STATUS_BAD_PARAM / 1000)
		return psd_error_set(err, PSD_EINVAL, nowhere, "layer '%.80s' (%s): cuDNN has no %s for its shape (%s)",
				     model->name, model->kind->name, what, cudnnGetErrorString(status));
	return psd_error_set(err, PSD_ERUN, nowhere, "layer '%.80s' (%s): cuDNN failed in its %s (%s)", model->name,
			     model->kind->name, what, cudnnGetErrorString(status));
}

enum psd_status psd_cuda_start_dnn(struct psd_device *device, struct psd_error *err)
{
	cudnnStatus_t status = cudnnCreate(&device->dnn);

	if (status == CUDNN_STATUS_SUCCESS)
		status = cudnnSetStream(device->dnn, device->streams[PSD_STREAM_COMPUTE]);
	if (status == CUDNN_STATUS_SUCCESS)
		return PSD_OK;
	return psd_error_set(err, PSD_ERUN, nowhere, "cuDNN does not start on %s (%s)", device->name,
			     cudnnGetErrorString(status));
}

void psd_cuda_stop_dnn(struct psd_device *device)
{
	if (device->dnn)
		(void)cudnnDestroy(device->dnn);
}

static cudnnDataType_t type_of(const struct psd_device *device)
{
	switch (device->type) {
	case PSD_CUDA_FLOAT: return CUDNN_DATA_FLOAT;
	case PSD_CUDA_HALF: return CUDNN_DATA_HALF;
	case PSD_CUDA_BFLOAT: return CUDNN_DATA_BFLOAT16;
	}
	return CUDNN_DATA_FLOAT;
}

static cudnnTensorFormat_t format_of(const struct psd_device *device)
{
	return device->is_channels_last ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
}

static cudnnStatus_t describe_blob(cudnnTensorDescriptor_t *desc, const struct psd_cuda_layer *layer)
{
	const struct psd_device *device = layer->device;
	const struct psd_shape shape = layer->model->shape;
	const cudnnStatus_t status = cudnnCreateTensorDescriptor(desc);

	if (status != CUDNN_STATUS_SUCCESS)
		return status;
	return cudnnSetTensor4dDescriptor(*desc, format_of(device), type_of(device), (int)device->network.batch,
					  (int)shape.channels, (int)shape.height, (int)shape.width);
}

static void end_tensor(cudnnTensorDescriptor_t desc)
{
	if (desc)
		(void)cudnnDestroyTensorDescriptor(desc);
}

/* ---- convolution ---- */

/* From large maps to small ones, whatever the layer's way is: a transpose goes from small to large, by what is the data
 * gradient of a convolution, and its own data gradient is a convolution. Its weight lies as that convolution's. */
struct psd_cuda_dnn_conv {
	bool is_transpose;
	cudnnTensorDescriptor_t large, small;
	cudnnFilterDescriptor_t weight;
	cudnnConvolutionDescriptor_t forward, dlarge, dweight; /* one each, for each algorithm has its own mode */
	cudnnConvolutionFwdAlgo_t forward_algorithm;
	cudnnConvolutionBwdDataAlgo_t dlarge_algorithm;
	cudnnConvolutionBwdFilterAlgo_t dweight_algorithm;
	size_t forward_bytes, dlarge_bytes, dweight_bytes; /* of workspace */
	bool cannot_add;				   /* the algorithm of the data gradient, as cuDNN has told */
};

/* fp32 is fp32: without leave, cuDNN would round to TF32. */
static cudnnMathType_t mode_of(const struct psd_device *device)
{
	switch (device->options.arithmetic) {
	case PSD_LAYERS_FP32: return CUDNN_FMA_MATH;
	case PSD_LAYERS_TF32: return CUDNN_DEFAULT_MATH;
	case PSD_LAYERS_FP16:
	case PSD_LAYERS_BF16: return CUDNN_TENSOR_OP_MATH;
	}
	return CUDNN_FMA_MATH;
}

static cudnnStatus_t describe_pass(cudnnConvolutionDescriptor_t *desc, const struct psd_cuda_layer *layer)
{
	const struct psd_conv_settings *settings = &layer->model->settings.conv;
	const struct psd_window *window = &settings->window;
	cudnnStatus_t status = cudnnCreateConvolutionDescriptor(desc);

	if (status == CUDNN_STATUS_SUCCESS)
		status = cudnnSetConvolution2dDescriptor(*desc, (int)window->pad.height, (int)window->pad.width,
							 (int)window->stride.height, (int)window->stride.width,
							 (int)window->dilation.height, (int)window->dilation.width,
							 CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT);
	if (status == CUDNN_STATUS_SUCCESS)
		status = cudnnSetConvolutionGroupCount(*desc, (int)settings->groups);
	if (status == CUDNN_STATUS_SUCCESS)
		status = cudnnSetConvolutionMathType(*desc, mode_of(layer->device));
	return status;
}

static cudnnStatus_t describe_weight(cudnnFilterDescriptor_t *desc, const struct psd_cuda_layer *layer)
{
	const struct psd_device *device = layer->device;
	const struct psd_conv_settings *settings = &layer->model->settings.conv;
	const struct psd_tensor *weight = &device->graph->tensors[layer->model->first_tensor];
	const cudnnStatus_t status = cudnnCreateFilterDescriptor(desc);

	if (status != CUDNN_STATUS_SUCCESS)
		return status;
	return cudnnSetFilter4dDescriptor(*desc, type_of(device), format_of(device), (int)weight->dims[0],
					  (int)weight->dims[1], (int)settings->window.kernel.height,
					  (int)settings->window.kernel.width);
}

/* Of cuDNN's list: whether this one will do. In fp32 its mode must not be one that rounds more. */
template <typename Estimate> static bool is_usable(const struct psd_device *device, const Estimate *estimate)
{
	return estimate->status == CUDNN_STATUS_SUCCESS && estimate->determinism == CUDNN_DETERMINISTIC &&
	       (device->options.arithmetic != PSD_LAYERS_FP32 || estimate->mathType == CUDNN_FMA_MATH ||
		estimate->mathType == CUDNN_DEFAULT_MATH);
}

/* Its mode becomes that of the pass, but for fp32, which has its own. */
template <typename Estimate>
static bool take_mode(const struct psd_device *device, const Estimate *estimate, cudnnConvolutionDescriptor_t pass)
{
	return device->options.arithmetic == PSD_LAYERS_FP32 ||
	       cudnnSetConvolutionMathType(pass, estimate->mathType) == CUDNN_STATUS_SUCCESS;
}

/* Of n, fastest first, the first usable one that works in as much as a convolution should take; where none does, as in
 * very large batches, the one that takes least. NULL: none is usable. */
template <typename Estimate>
static const Estimate *choose(const struct psd_device *device, const Estimate *estimates, int n,
			      cudnnConvolutionDescriptor_t pass)
{
	const Estimate *least = NULL;

	for (int i = 0; i < n; i++) {
		if (!is_usable(device, &estimates[i]))
			continue;
		if (!least || estimates[i].memory < least->memory)
			least = &estimates[i];
		if (estimates[i].memory <= PSD_CUDA_DNN_WORKSPACE_BYTES && take_mode(device, &estimates[i], pass))
			return &estimates[i];
	}
	return least && take_mode(device, least, pass) ? least : NULL;
}

static enum psd_status refuse(const struct psd_cuda_layer *layer, const char *what, struct psd_error *err)
{
	return psd_error_set(err, PSD_EINVAL, nowhere,
			     "layer '%.80s' (%s): cuDNN has no %s for its shape that gives equal bits",
			     layer->model->name, layer->model->kind->name, what);
}

static enum psd_status choose_forward(const struct psd_cuda_layer *layer, struct psd_cuda_dnn_conv *conv,
				      struct psd_error *err)
{
	cudnnConvolutionFwdAlgoPerf_t estimates[CUDNN_CONVOLUTION_FWD_ALGO_COUNT];
	const cudnnConvolutionFwdAlgoPerf_t *chosen;
	cudnnHandle_t dnn = layer->device->dnn;
	int n = 0;
	cudnnStatus_t status =
		cudnnGetConvolutionForwardAlgorithm_v7(dnn, conv->large, conv->weight, conv->forward, conv->small,
						       CUDNN_CONVOLUTION_FWD_ALGO_COUNT, &n, estimates);

	if (status != CUDNN_STATUS_SUCCESS)
		return check(layer, status, "convolution", err);
	chosen = choose(layer->device, estimates, n, conv->forward);
	if (!chosen)
		return refuse(layer, "convolution", err);
	conv->forward_algorithm = chosen->algo;
	status = cudnnGetConvolutionForwardWorkspaceSize(dnn, conv->large, conv->weight, conv->forward, conv->small,
							 chosen->algo, &conv->forward_bytes);
	return check(layer, status, "convolution", err);
}

static enum psd_status choose_dweight(const struct psd_cuda_layer *layer, struct psd_cuda_dnn_conv *conv,
				      struct psd_error *err)
{
	cudnnConvolutionBwdFilterAlgoPerf_t estimates[CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT];
	const cudnnConvolutionBwdFilterAlgoPerf_t *chosen;
	cudnnHandle_t dnn = layer->device->dnn;
	int n = 0;
	cudnnStatus_t status = cudnnGetConvolutionBackwardFilterAlgorithm_v7(
		dnn, conv->large, conv->small, conv->dweight, conv->weight, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT, &n,
		estimates);

	if (status != CUDNN_STATUS_SUCCESS)
		return check(layer, status, "weight gradient", err);
	chosen = choose(layer->device, estimates, n, conv->dweight);
	if (!chosen)
		return refuse(layer, "weight gradient", err);
	conv->dweight_algorithm = chosen->algo;
	status = cudnnGetConvolutionBackwardFilterWorkspaceSize(dnn, conv->large, conv->small, conv->dweight,
								conv->weight, chosen->algo, &conv->dweight_bytes);
	return check(layer, status, "weight gradient", err);
}

static enum psd_status choose_dlarge(const struct psd_cuda_layer *layer, struct psd_cuda_dnn_conv *conv,
				     struct psd_error *err)
{
	cudnnConvolutionBwdDataAlgoPerf_t estimates[CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT];
	const cudnnConvolutionBwdDataAlgoPerf_t *chosen;
	cudnnHandle_t dnn = layer->device->dnn;
	int n = 0;
	cudnnStatus_t status =
		cudnnGetConvolutionBackwardDataAlgorithm_v7(dnn, conv->weight, conv->small, conv->dlarge, conv->large,
							    CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT, &n, estimates);

	if (status != CUDNN_STATUS_SUCCESS)
		return check(layer, status, "data gradient", err);
	chosen = choose(layer->device, estimates, n, conv->dlarge);
	if (!chosen)
		return refuse(layer, "data gradient", err);
	conv->dlarge_algorithm = chosen->algo;
	status = cudnnGetConvolutionBackwardDataWorkspaceSize(dnn, conv->weight, conv->small, conv->dlarge, conv->large,
							      chosen->algo, &conv->dlarge_bytes);
	return check(layer, status, "data gradient", err);
}

static cudnnStatus_t describe_conv(const struct psd_cuda_layer *layer, struct psd_cuda_dnn_conv *conv)
{
	const struct psd_cuda_layer *below = psd_cuda_below(layer, 0);
	cudnnStatus_t status = describe_blob(&conv->large, conv->is_transpose ? layer : below);

	if (status == CUDNN_STATUS_SUCCESS)
		status = describe_blob(&conv->small, conv->is_transpose ? below : layer);
	if (status == CUDNN_STATUS_SUCCESS)
		status = describe_weight(&conv->weight, layer);
	if (status == CUDNN_STATUS_SUCCESS)
		status = describe_pass(&conv->forward, layer);
	if (status == CUDNN_STATUS_SUCCESS)
		status = describe_pass(&conv->dweight, layer);
	if (status == CUDNN_STATUS_SUCCESS)
		status = describe_pass(&conv->dlarge, layer);
	return status;
}

static enum psd_status open_conv(struct psd_cuda_layer *layer, struct psd_cuda_dnn_conv *conv, struct psd_error *err)
{
	const bool has_diff = psd_cuda_input(layer, 0)->has_diff;
	enum psd_status status = check(layer, describe_conv(layer, conv), "convolution", err);

	if (!status && (!conv->is_transpose || has_diff))
		status = choose_forward(layer, conv, err);
	if (!status)
		status = choose_dweight(layer, conv, err);
	if (!status && (conv->is_transpose || has_diff))
		status = choose_dlarge(layer, conv, err);
	return status;
}

/* Behind the workspace of the pass to the input: where its gradient goes that is added to another's by a kernel. */
static uint64_t find_aside(const struct psd_cuda_dnn_conv *conv)
{
	const uint64_t bytes = conv->is_transpose ? conv->forward_bytes : conv->dlarge_bytes;

	return (bytes + 255) / 256 * 256;
}

enum psd_status psd_cuda_dnn_conv_open(struct psd_cuda_layer *layer, struct psd_cuda_dnn_conv **conv,
				       struct psd_error *err)
{
	enum psd_status status;

	*conv = (struct psd_cuda_dnn_conv *)calloc(1, sizeof(**conv));
	if (!*conv)
		return psd_cuda_no_memory(err);
	(*conv)->is_transpose = layer->kind == &psd_cuda_kind_deconv;
	status = open_conv(layer, *conv, err);
	psd_cuda_want_workspace(layer->device, (*conv)->forward_bytes);
	psd_cuda_want_workspace(layer->device, (*conv)->dweight_bytes);
	psd_cuda_want_workspace(layer->device, (*conv)->dlarge_bytes);
	if (psd_cuda_input(layer, 0)->has_diff && psd_cuda_below(layer, 0)->n_readers > 1)
		psd_cuda_want_workspace(layer->device, find_aside(*conv) + psd_cuda_input(layer, 0)->bytes);
	return status;
}

static void end_pass(cudnnConvolutionDescriptor_t desc)
{
	if (desc)
		(void)cudnnDestroyConvolutionDescriptor(desc);
}

void psd_cuda_dnn_conv_close(struct psd_cuda_dnn_conv *conv)
{
	if (!conv)
		return;
	end_tensor(conv->large);
	end_tensor(conv->small);
	if (conv->weight)
		(void)cudnnDestroyFilterDescriptor(conv->weight);
	end_pass(conv->forward);
	end_pass(conv->dweight);
	end_pass(conv->dlarge);
	free(conv);
}

static cudnnStatus_t make_small(const struct psd_device *device, const struct psd_cuda_dnn_conv *conv,
				const void *weight, const void *large, void *small, bool adds)
{
	return cudnnConvolutionForward(device->dnn, &one, conv->large, large, conv->weight, weight, conv->forward,
				       conv->forward_algorithm, device->workspace, conv->forward_bytes,
				       adds ? &one : &zero, conv->small, small);
}

static cudnnStatus_t make_large(const struct psd_device *device, const struct psd_cuda_dnn_conv *conv,
				const void *weight, const void *small, void *large, bool adds)
{
	return cudnnConvolutionBackwardData(device->dnn, &one, conv->weight, weight, conv->small, small, conv->dlarge,
					    conv->dlarge_algorithm, device->workspace, conv->dlarge_bytes,
					    adds ? &one : &zero, conv->large, large);
}

enum psd_status psd_cuda_dnn_conv_forward(struct psd_cuda_layer *layer, struct psd_cuda_dnn_conv *conv,
					  const void *weight, struct psd_error *err)
{
	const cudnnStatus_t status = (conv->is_transpose ? make_large : make_small)(
		layer->device, conv, weight, psd_cuda_input(layer, 0)->value, layer->blob->value, false);

	return check(layer, status, "convolution", err);
}

enum psd_status psd_cuda_dnn_conv_dweight(struct psd_cuda_layer *layer, struct psd_cuda_dnn_conv *conv, void *dweight,
					  struct psd_error *err)
{
	const struct psd_device *device = layer->device;
	const void *value = psd_cuda_input(layer, 0)->value, *diff = layer->blob->diff;
	const cudnnStatus_t status = cudnnConvolutionBackwardFilter(
		device->dnn, &one, conv->large, conv->is_transpose ? diff : value, conv->small,
		conv->is_transpose ? value : diff, conv->dweight, conv->dweight_algorithm, device->workspace,
		conv->dweight_bytes, &zero, conv->weight, dweight);

	return check(layer, status, "weight gradient", err);
}

static cudnnStatus_t make_input(const struct psd_cuda_layer *layer, const struct psd_cuda_dnn_conv *conv,
				const void *weight, void *dinput, bool adds)
{
	return (conv->is_transpose ? make_small : make_large)(layer->device, conv, weight, layer->blob->diff, dinput,
							      adds);
}

/* Not all of cuDNN's kernels add to what is there, and it does not say which before one shall. */
enum psd_status psd_cuda_dnn_conv_dinput(struct psd_cuda_layer *layer, struct psd_cuda_dnn_conv *conv,
					 const void *weight, struct psd_error *err)
{
	struct psd_cuda_blob *in = psd_cuda_input(layer, 0);
	const bool adds = psd_cuda_share(in);
	struct psd_cuda_add add = {psd_cuda_diff(layer, in), psd_cuda_diff(layer, in), psd_cuda_diff(layer, in)};
	cudnnStatus_t status;

	if (!adds || !conv->cannot_add) {
		status = make_input(layer, conv, weight, in->diff, adds);
		conv->cannot_add = adds && status / 1000 == CUDNN_STATUS_NOT_SUPPORTED / 1000;
		if (!conv->cannot_add)
			return check(layer, status, "data gradient", err);
	}
	add.right.data = (char *)layer->device->workspace + find_aside(conv);
	status = make_input(layer, conv, weight, add.right.data, false);
	if (status != CUDNN_STATUS_SUCCESS)
		return check(layer, status, "data gradient", err);
	return psd_cuda_run_add(layer->device, &add, in->elements, err);
}

/* ---- batch norm by the batch's own statistics ---- */

struct psd_cuda_dnn_norm {
	cudnnTensorDescriptor_t maps, vector;
	cudnnBatchNormMode_t mode;
	size_t forward_bytes, backward_bytes; /* of workspace */
	void *reserve;			      /* slot: cuDNN's own notes, from forward to backward */
	size_t reserve_bytes;
};

/* What keeps sums on the chip is far ahead where channels come last; it wants a workspace, which calls without "Ex"
 * have no argument for. The other mode takes any range of values. */
static cudnnStatus_t describe_norm(const struct psd_cuda_layer *layer, struct psd_cuda_dnn_norm *norm)
{
	const int channels = (int)layer->model->shape.channels;
	cudnnStatus_t status = describe_blob(&norm->maps, layer);

	norm->mode = layer->device->is_channels_last ? CUDNN_BATCHNORM_SPATIAL_PERSISTENT : CUDNN_BATCHNORM_SPATIAL;
	if (status == CUDNN_STATUS_SUCCESS)
		status = cudnnCreateTensorDescriptor(&norm->vector);
	if (status == CUDNN_STATUS_SUCCESS)
		status = cudnnSetTensor4dDescriptor(norm->vector, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, channels, 1,
						    1);
	return status;
}

static cudnnStatus_t measure_norm(cudnnHandle_t dnn, struct psd_cuda_dnn_norm *norm)
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

enum psd_status psd_cuda_dnn_norm_open(struct psd_cuda_layer *layer, struct psd_cuda_dnn_norm **norm,
				       struct psd_error *err)
{
	cudnnStatus_t status;

	*norm = (struct psd_cuda_dnn_norm *)calloc(1, sizeof(**norm));
	if (!*norm)
		return psd_cuda_no_memory(err);
	status = describe_norm(layer, *norm);
	if (status == CUDNN_STATUS_SUCCESS)
		status = measure_norm(layer->device->dnn, *norm);
	if (status != CUDNN_STATUS_SUCCESS)
		return check(layer, status, "batch norm", err);
	psd_cuda_want_workspace(layer->device, (*norm)->forward_bytes);
	psd_cuda_want_workspace(layer->device, (*norm)->backward_bytes);
	return psd_cuda_want(layer->device, (*norm)->reserve_bytes, &(*norm)->reserve, err);
}

void psd_cuda_dnn_norm_close(struct psd_cuda_dnn_norm *norm)
{
	if (!norm)
		return;
	end_tensor(norm->maps);
	end_tensor(norm->vector);
	free(norm);
}

enum psd_status psd_cuda_dnn_norm_forward(struct psd_cuda_layer *layer, struct psd_cuda_dnn_norm *norm,
					  const struct psd_cuda_norm_vectors *vectors, double share,
					  struct psd_error *err)
{
	const struct psd_device *device = layer->device;
	const cudnnStatus_t status = cudnnBatchNormalizationForwardTrainingEx(
		device->dnn, norm->mode, CUDNN_BATCHNORM_OPS_BN, &one, &zero, norm->maps,
		psd_cuda_input(layer, 0)->value, NULL, NULL, norm->maps, layer->blob->value, norm->vector,
		vectors->gamma, vectors->beta, share, vectors->running_mean, vectors->running_variance,
		layer->model->settings.affine.epsilon, vectors->mean, vectors->inverse, NULL, device->workspace,
		norm->forward_bytes, norm->reserve, norm->reserve_bytes);

	return check(layer, status, "batch norm", err);
}

enum psd_status psd_cuda_dnn_norm_backward(struct psd_cuda_layer *layer, struct psd_cuda_dnn_norm *norm,
					   const struct psd_cuda_norm_vectors *vectors, struct psd_error *err)
{
	const struct psd_device *device = layer->device;
	const float parameter_scale = 1.0f / device->diff_scale;
	struct psd_cuda_blob *in = psd_cuda_input(layer, 0);
	const float *beta = psd_cuda_share(in) ? &one : &zero;
	const cudnnStatus_t status = cudnnBatchNormalizationBackwardEx(
		device->dnn, norm->mode, CUDNN_BATCHNORM_OPS_BN, &one, beta, &parameter_scale, &zero, norm->maps,
		in->value, NULL, NULL, norm->maps, layer->blob->diff, NULL, NULL, norm->maps, in->diff, norm->vector,
		vectors->gamma, NULL, vectors->dgamma, vectors->dbeta, layer->model->settings.affine.epsilon,
		vectors->mean, vectors->inverse, NULL, device->workspace, norm->backward_bytes, norm->reserve,
		norm->reserve_bytes);

	return check(layer, status, "batch norm's gradient", err);
}
