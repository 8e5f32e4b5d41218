/* Convolution as an operation of cuDNN's graph API. */
#include <cudnn.h>
#include <stdint.h>
#include <stdlib.h>

extern "C" {
#include "real/device/cuda/dnn.h"
}

static const struct psd_place nowhere = {NULL, 0, 0};

enum tensor { LARGE, WEIGHT, SMALL, TENSORS = PSD_CUDA_DNN_TENSORS };

/* A convolution from large maps to small ones. A transposed layer's forward is its data gradient, and the layer's data
 * gradient is the convolution; the weight has the convolution's order. */
struct psd_gpu_dnn_conv {
	bool is_transpose;
	cudnnBackendDescriptor_t tensors[TENSORS], how;
	cudnnBackendDescriptor_t operations[TENSORS], adding_operation;
	struct psd_cuda_dnn_op ops[TENSORS]; /* an operation for each tensor, from the other two */
	uint64_t aside_at_bytes;	     /* offset in the workspace, behind that of the plans */
	struct psd_cuda_dnn_op adding;	     /* adds to an input gradient that another reader has written */
};

/* ---- descriptors ---- */

/* samples or outputs, channels, rows, columns */
static int describe_tensor(const struct psd_device *device, enum tensor which, const int64_t sizes[4],
			   cudnnBackendDescriptor_t *tensor)
{
	const cudnnDataType_t type = (cudnnDataType_t)psd_cuda_dnn_type_of(device);
	const int64_t id = which + 1, alignment_bytes = PSD_GPU_DNN_ALIGNMENT_BYTES;
	const int64_t positions = sizes[2] * sizes[3], channels = sizes[1], columns = sizes[3];
	const int64_t plain[4] = {channels * positions, positions, columns, 1};
	const int64_t channels_last[4] = {channels * positions, 1, columns * channels, channels};
	const struct psd_cuda_dnn_attribute attributes[] = {
		{CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type},
		{CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, sizes},
		{CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, device->is_channels_last ? channels_last : plain},
		{CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id},
		{CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment_bytes}};

	return psd_cuda_dnn_build(CUDNN_BACKEND_TENSOR_DESCRIPTOR, attributes, 5, tensor);
}

static int describe_maps(const struct psd_gpu_layer *layer, enum tensor which, cudnnBackendDescriptor_t *tensor)
{
	const struct psd_shape *shape = &layer->model->shape;
	const int64_t sizes[4] = {layer->device->network.batch, shape->channels, shape->height, shape->width};

	return describe_tensor(layer->device, which, sizes, tensor);
}

static int describe_weight(const struct psd_gpu_layer *layer, cudnnBackendDescriptor_t *tensor)
{
	const struct psd_tensor *weight = &layer->device->graph->tensors[layer->model->first_tensor];
	const struct psd_sides *kernel = &layer->model->settings.conv.window.kernel;
	const int64_t sizes[4] = {weight->dims[0], weight->dims[1], kernel->height, kernel->width};

	return describe_tensor(layer->device, WEIGHT, sizes, tensor);
}

/* The number of groups is the map's channels divided by the weight's. */
static int describe_how(const struct psd_gpu_layer *layer, cudnnBackendDescriptor_t *how)
{
	const struct psd_window *window = &layer->model->settings.conv.window;
	const cudnnDataType_t type = CUDNN_DATA_FLOAT;
	const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
	const int64_t axes = 2;
	const int64_t pads[2] = {window->pad.height, window->pad.width};
	const int64_t strides[2] = {window->stride.height, window->stride.width};
	const int64_t dilations[2] = {window->dilation.height, window->dilation.width};
	const struct psd_cuda_dnn_attribute attributes[] = {
		{CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type},
		{CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode},
		{CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &axes},
		{CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, pads},
		{CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, pads},
		{CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, strides},
		{CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, dilations}};

	return psd_cuda_dnn_build(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, attributes, 7, how);
}

static int describe(const struct psd_gpu_layer *layer, struct psd_gpu_dnn_conv *conv)
{
	const struct psd_gpu_layer *below = psd_gpu_below(layer, 0);
	int status = describe_maps(conv->is_transpose ? layer : below, LARGE, &conv->tensors[LARGE]);

	if (status == CUDNN_STATUS_SUCCESS)
		status = describe_maps(conv->is_transpose ? below : layer, SMALL, &conv->tensors[SMALL]);
	if (status == CUDNN_STATUS_SUCCESS)
		status = describe_weight(layer, &conv->tensors[WEIGHT]);
	return status == CUDNN_STATUS_SUCCESS ? describe_how(layer, &conv->how) : status;
}

/* cuDNN's three operations by their result: data gradient, filter gradient, output. */
static const struct {
	cudnnBackendDescriptorType_t kind;
	cudnnBackendAttributeName_t how, tensors[TENSORS], alpha, beta;
} operations[TENSORS] = {
	{CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
	 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
	 {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
	  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY},
	 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
	 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
	{CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
	 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
	 {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
	  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY},
	 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
	 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
	{CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
	 CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
	 {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
	  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y},
	 CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
	 CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
};

/* Describes the operation with the result `made`. */
static int describe_operation(const struct psd_gpu_dnn_conv *conv, enum tensor made, bool adds,
			      cudnnBackendDescriptor_t *operation)
{
	const float alpha = 1.0f, beta = adds ? 1.0f : 0.0f;
	const cudnnBackendAttributeName_t *names = operations[made].tensors;
	const struct psd_cuda_dnn_attribute attributes[] = {
		{operations[made].how, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &conv->how},
		{names[LARGE], CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &conv->tensors[LARGE]},
		{names[WEIGHT], CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &conv->tensors[WEIGHT]},
		{names[SMALL], CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &conv->tensors[SMALL]},
		{operations[made].alpha, CUDNN_TYPE_FLOAT, 1, &alpha},
		{operations[made].beta, CUDNN_TYPE_FLOAT, 1, &beta}};

	return psd_cuda_dnn_build(operations[made].kind, attributes, 6, operation);
}

/* ---- opening and closing ---- */

static enum tensor input_of(const struct psd_gpu_dnn_conv *conv)
{
	return conv->is_transpose ? SMALL : LARGE;
}

static enum tensor output_of(const struct psd_gpu_dnn_conv *conv)
{
	return conv->is_transpose ? LARGE : SMALL;
}

static enum psd_status open_op(const struct psd_gpu_layer *layer, struct psd_gpu_dnn_conv *conv, enum tensor made,
			       const char *what, struct psd_error *err)
{
	struct psd_device *device = layer->device;
	int status = describe_operation(conv, made, false, &conv->operations[made]);

	if (status == CUDNN_STATUS_SUCCESS)
		status = psd_cuda_dnn_open_op(device, conv->operations[made], &conv->ops[made]);
	if (status == CUDNN_STATUS_NOT_SUPPORTED && conv->ops[made].n_choices == 0)
		return psd_error_set(err, PSD_EINVAL, nowhere,
				     "layer '%.80s' (%s): cuDNN has no %s for its shape in %s%s", layer->model->name,
				     layer->model->kind->name, what,
				     psd_layer_arithmetic_names[device->options.arithmetic],
				     device->options.may_differ ? "" : " that gives equal bits");
	if (status == CUDNN_STATUS_SUCCESS)
		psd_gpu_want_workspace(device, conv->ops[made].bytes);
	return psd_cuda_dnn_check(layer, status, what, err);
}

/* If the input has other readers, there may be a gradient to add to. Without such an operation in cuDNN, this gradient
 * is computed aside and added by a kernel. */
static enum psd_status open_adding(const struct psd_gpu_layer *layer, struct psd_gpu_dnn_conv *conv,
				   struct psd_error *err)
{
	const enum tensor made = input_of(conv);
	int status = describe_operation(conv, made, true, &conv->adding_operation);

	if (status == CUDNN_STATUS_SUCCESS)
		status = psd_cuda_dnn_open_op(layer->device, conv->adding_operation, &conv->adding);
	if (status == CUDNN_STATUS_SUCCESS)
		psd_gpu_want_workspace(layer->device, conv->adding.bytes);
	else
		psd_cuda_dnn_close_op(&conv->adding);
	conv->aside_at_bytes = conv->adding.bytes > conv->ops[made].bytes ? conv->adding.bytes : conv->ops[made].bytes;
	conv->aside_at_bytes = psd_cuda_dnn_aside_at_bytes(conv->aside_at_bytes);
	psd_cuda_dnn_want_aside(layer, conv->aside_at_bytes);
	return psd_cuda_dnn_refuses(status) ? PSD_OK : psd_cuda_dnn_check(layer, status, "data gradient", err);
}

enum psd_status psd_gpu_dnn_conv_open(struct psd_gpu_layer *layer, bool is_transpose, struct psd_gpu_dnn_conv **opened,
				      struct psd_error *err)
{
	struct psd_gpu_dnn_conv *conv = (struct psd_gpu_dnn_conv *)calloc(1, sizeof(*conv));
	const bool has_diff = psd_gpu_input(layer, 0)->has_diff;

	*opened = conv;
	if (!conv)
		return psd_gpu_no_memory(err);
	conv->is_transpose = is_transpose;
	PSD_TRY(psd_cuda_dnn_check(layer, describe(layer, conv), "convolution", err));
	PSD_TRY(open_op(layer, conv, output_of(conv), "convolution", err));
	PSD_TRY(open_op(layer, conv, WEIGHT, "weight gradient", err));
	if (has_diff)
		PSD_TRY(open_op(layer, conv, input_of(conv), "data gradient", err));
	return has_diff && psd_gpu_below(layer, 0)->n_readers > 1 ? open_adding(layer, conv, err) : PSD_OK;
}

void psd_gpu_dnn_conv_close(struct psd_gpu_dnn_conv *conv)
{
	if (!conv)
		return;
	psd_cuda_dnn_close_op(&conv->adding);
	psd_cuda_dnn_destroy(conv->adding_operation);
	for (int i = 0; i < TENSORS; i++) {
		psd_cuda_dnn_close_op(&conv->ops[i]);
		psd_cuda_dnn_destroy(conv->operations[i]);
		psd_cuda_dnn_destroy(conv->tensors[i]);
	}
	psd_cuda_dnn_destroy(conv->how);
	free(conv);
}

/* ---- carrying out ---- */

/* Executes the operation with the result `made`. input, output: the layer's values or gradients. */
static int run(const struct psd_device *device, struct psd_gpu_dnn_conv *conv, enum tensor made, const void *input,
	       const void *weight, const void *output)
{
	const void *data[TENSORS];

	data[input_of(conv)] = input;
	data[WEIGHT] = weight;
	data[output_of(conv)] = output;
	return psd_cuda_dnn_run_op(device, &conv->ops[made], (void *const *)data, made, NULL);
}

enum psd_status psd_gpu_dnn_conv_forward(struct psd_gpu_layer *layer, struct psd_gpu_dnn_conv *conv, const void *weight,
					 struct psd_error *err)
{
	const int status =
		run(layer->device, conv, output_of(conv), psd_gpu_input(layer, 0)->value, weight, layer->blob->value);

	return psd_cuda_dnn_check(layer, status, "convolution", err);
}

enum psd_status psd_gpu_dnn_conv_dweight(struct psd_gpu_layer *layer, struct psd_gpu_dnn_conv *conv, void *dweight,
					 struct psd_error *err)
{
	const int status = run(layer->device, conv, WEIGHT, psd_gpu_input(layer, 0)->value, dweight, layer->blob->diff);

	return psd_cuda_dnn_check(layer, status, "weight gradient", err);
}

static int add_dinput(const struct psd_gpu_layer *layer, struct psd_gpu_dnn_conv *conv, const void *weight,
		      void *dinput, void *aside)
{
	const enum tensor made = input_of(conv);
	const void *data[TENSORS];

	data[made] = dinput;
	data[WEIGHT] = weight;
	data[output_of(conv)] = layer->blob->diff;
	return psd_cuda_dnn_run_op(layer->device, &conv->adding, (void *const *)data, made, aside);
}

enum psd_status psd_gpu_dnn_conv_dinput(struct psd_gpu_layer *layer, struct psd_gpu_dnn_conv *conv, const void *weight,
					struct psd_error *err)
{
	const struct psd_device *device = layer->device;
	const enum tensor made = input_of(conv);
	struct psd_gpu_blob *in = psd_gpu_input(layer, 0);
	const bool adds = psd_gpu_share(in);
	void *aside = (char *)device->workspace + conv->aside_at_bytes;
	int status;

	if (adds && conv->adding.n_choices > 0) {
		status = add_dinput(layer, conv, weight, in->diff, aside);
		if (!psd_cuda_dnn_refuses(status))
			return psd_cuda_dnn_check(layer, status, "data gradient", err);
		psd_cuda_dnn_close_op(&conv->adding);
	}
	status = run(device, conv, made, adds ? aside : in->diff, weight, layer->blob->diff);
	return status == CUDNN_STATUS_SUCCESS && adds ? psd_cuda_dnn_add_aside(layer, aside, err)
						      : psd_cuda_dnn_check(layer, status, "data gradient", err);
}
