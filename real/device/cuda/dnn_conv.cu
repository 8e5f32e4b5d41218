/* Convolution on cuDNN, by algorithms chosen by its own estimate among those that give equal bits. */
#include <cudnn.h>
#include <stdint.h>
#include <stdlib.h>

extern "C" {
#include "real/device/cuda/dnn.h"
}

static const struct psd_place nowhere = {NULL, 0, 0};
static const float one = 1.0f, zero = 0.0f;

enum { MOST_CHOICES = 17 }; /* cuDNN has 8 algorithms at most for a pass, in two modes; and the plain one */

/* One of the three things that a convolution does, by the algorithms that may: the preferred one first. */
template <typename Algorithm> struct pass {
	cudnnConvolutionDescriptor_t how; /* one each, for each algorithm has its own mode */
	struct {
		Algorithm algorithm;
		cudnnMathType_t mode;
		size_t bytes; /* of workspace, once it is measured */
	} choices[MOST_CHOICES];
	int n_choices, chosen;
	size_t bytes; /* of workspace that there is for it */
};

/* From large maps to small ones, whatever the layer's way is: a transpose goes from small to large, by what is the data
 * gradient of a convolution, and its own data gradient is a convolution. Its weight lies as that convolution's. */
struct psd_cuda_dnn_conv {
	bool is_transpose;
	cudnnTensorDescriptor_t large, small;
	cudnnFilterDescriptor_t weight;
	struct pass<cudnnConvolutionFwdAlgo_t> forward;
	struct pass<cudnnConvolutionBwdDataAlgo_t> dlarge;
	struct pass<cudnnConvolutionBwdFilterAlgo_t> dweight;
	bool cannot_add; /* the algorithm of the data gradient, as cuDNN has told */
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

/* ---- which algorithm ---- */

/* cuDNN's list for a pass, fastest first; it has n entries, room for MOST_CHOICES. */
static cudnnStatus_t list(cudnnHandle_t dnn, const struct psd_cuda_dnn_conv *conv,
			  cudnnConvolutionFwdAlgoPerf_t *estimates, int *n)
{
	return cudnnGetConvolutionForwardAlgorithm_v7(dnn, conv->large, conv->weight, conv->forward.how, conv->small,
						      MOST_CHOICES, n, estimates);
}

static cudnnStatus_t list(cudnnHandle_t dnn, const struct psd_cuda_dnn_conv *conv,
			  cudnnConvolutionBwdDataAlgoPerf_t *estimates, int *n)
{
	return cudnnGetConvolutionBackwardDataAlgorithm_v7(dnn, conv->weight, conv->small, conv->dlarge.how,
							   conv->large, MOST_CHOICES, n, estimates);
}

static cudnnStatus_t list(cudnnHandle_t dnn, const struct psd_cuda_dnn_conv *conv,
			  cudnnConvolutionBwdFilterAlgoPerf_t *estimates, int *n)
{
	return cudnnGetConvolutionBackwardFilterAlgorithm_v7(dnn, conv->large, conv->small, conv->dweight.how,
							     conv->weight, MOST_CHOICES, n, estimates);
}

/* What an algorithm takes of the workspace, or that cuDNN does not have it for the shape after all. */
static cudnnStatus_t measure(cudnnHandle_t dnn, const struct psd_cuda_dnn_conv *conv,
			     cudnnConvolutionFwdAlgo_t algorithm, size_t *bytes)
{
	return cudnnGetConvolutionForwardWorkspaceSize(dnn, conv->large, conv->weight, conv->forward.how, conv->small,
						       algorithm, bytes);
}

static cudnnStatus_t measure(cudnnHandle_t dnn, const struct psd_cuda_dnn_conv *conv,
			     cudnnConvolutionBwdDataAlgo_t algorithm, size_t *bytes)
{
	return cudnnGetConvolutionBackwardDataWorkspaceSize(dnn, conv->weight, conv->small, conv->dlarge.how,
							    conv->large, algorithm, bytes);
}

static cudnnStatus_t measure(cudnnHandle_t dnn, const struct psd_cuda_dnn_conv *conv,
			     cudnnConvolutionBwdFilterAlgo_t algorithm, size_t *bytes)
{
	return cudnnGetConvolutionBackwardFilterWorkspaceSize(dnn, conv->large, conv->small, conv->dweight.how,
							      conv->weight, algorithm, bytes);
}

/* Of cuDNN's list: whether this one will do. In fp32 its mode must not be one that rounds more. */
template <typename Estimate> static bool is_usable(const struct psd_device *device, const Estimate *estimate)
{
	return estimate->status == CUDNN_STATUS_SUCCESS && estimate->determinism == CUDNN_DETERMINISTIC &&
	       (device->options.arithmetic != PSD_LAYERS_FP32 || estimate->mathType == CUDNN_FMA_MATH ||
		estimate->mathType == CUDNN_DEFAULT_MATH);
}

template <typename Algorithm>
static void add_choice(struct pass<Algorithm> *pass, Algorithm algorithm, cudnnMathType_t mode)
{
	for (int i = 0; i < pass->n_choices; i++)
		if (pass->choices[i].algorithm == algorithm && pass->choices[i].mode == mode)
			return;
	if (pass->n_choices == MOST_CHOICES)
		return;
	pass->choices[pass->n_choices].algorithm = algorithm;
	pass->choices[pass->n_choices].mode = mode;
	pass->choices[pass->n_choices++].bytes = SIZE_MAX;
}

/* The pass is carried out so from now on, if cuDNN does not say that it is no choice. */
template <typename Algorithm>
static cudnnStatus_t take(cudnnHandle_t dnn, const struct psd_cuda_dnn_conv *conv, struct pass<Algorithm> *pass,
			  int choice)
{
	const cudnnStatus_t status = cudnnSetConvolutionMathType(pass->how, pass->choices[choice].mode);

	pass->chosen = choice;
	if (status != CUDNN_STATUS_SUCCESS)
		return status;
	return measure(dnn, conv, pass->choices[choice].algorithm, &pass->choices[choice].bytes);
}

/* Takes the first one from there on that works in so much; *is_found: there is one. */
template <typename Algorithm>
static cudnnStatus_t take_first(cudnnHandle_t dnn, const struct psd_cuda_dnn_conv *conv, struct pass<Algorithm> *pass,
				int from, size_t most_bytes, bool *is_found)
{
	*is_found = false;
	for (int i = from; i < pass->n_choices; i++) {
		const cudnnStatus_t status = take(dnn, conv, pass, i);

		*is_found = status == CUDNN_STATUS_SUCCESS && pass->choices[i].bytes <= most_bytes;
		if (*is_found || (status != CUDNN_STATUS_SUCCESS && !psd_cuda_dnn_refuses(status)))
			return status;
		if (status != CUDNN_STATUS_SUCCESS)
			pass->choices[i].bytes = SIZE_MAX;
	}
	return CUDNN_STATUS_SUCCESS;
}

template <typename Algorithm> static size_t least_bytes(const struct pass<Algorithm> *pass)
{
	size_t bytes = SIZE_MAX;

	for (int i = 0; i < pass->n_choices; i++)
		if (pass->choices[i].bytes < bytes)
			bytes = pass->choices[i].bytes;
	return bytes;
}

/* The first that works in as much as a convolution should take; where none does, as in very large batches, the one that
 * takes least. The last choice, which has hardly any limits, has room, too. */
template <typename Algorithm>
static cudnnStatus_t take_preferred(cudnnHandle_t dnn, const struct psd_cuda_dnn_conv *conv,
				    struct pass<Algorithm> *pass, bool *is_found)
{
	cudnnStatus_t status = take_first(dnn, conv, pass, 0, PSD_CUDA_DNN_WORKSPACE_BYTES, is_found);
	const int last = pass->n_choices - 1;

	if (status == CUDNN_STATUS_SUCCESS && !*is_found && least_bytes(pass) < SIZE_MAX)
		status = take_first(dnn, conv, pass, 0, least_bytes(pass), is_found);
	if (status != CUDNN_STATUS_SUCCESS || !*is_found)
		return status;
	const int preferred = pass->chosen;

	pass->bytes = pass->choices[preferred].bytes;
	if (preferred == last)
		return status;
	status = take(dnn, conv, pass, last);
	if (status == CUDNN_STATUS_SUCCESS && pass->choices[last].bytes <= PSD_CUDA_DNN_WORKSPACE_BYTES &&
	    pass->choices[last].bytes > pass->bytes)
		pass->bytes = pass->choices[last].bytes;
	return take(dnn, conv, pass, preferred);
}

/* A list is an estimate: what is on it may be refused when it is measured, or when it shall begin, and then the next
 * one does it. `plain` gives equal bits. */
template <typename Estimate, typename Algorithm>
static enum psd_status choose(const struct psd_cuda_layer *layer, struct psd_cuda_dnn_conv *conv,
			      struct pass<Algorithm> *pass, Algorithm plain, const char *what, struct psd_error *err)
{
	const struct psd_device *device = layer->device;
	const cudnnMathType_t own_mode = mode_of(device);
	Estimate estimates[MOST_CHOICES];
	bool is_found = false;
	int n = 0;
	cudnnStatus_t status = list(device->dnn, conv, estimates, &n);

	for (int i = 0; i < n && status == CUDNN_STATUS_SUCCESS; i++)
		if (is_usable(device, &estimates[i]))
			add_choice(pass, estimates[i].algo,
				   device->options.arithmetic == PSD_LAYERS_FP32 ? own_mode : estimates[i].mathType);
	add_choice(pass, plain, own_mode);
	if (status == CUDNN_STATUS_SUCCESS)
		status = take_preferred(device->dnn, conv, pass, &is_found);
	if (status != CUDNN_STATUS_SUCCESS)
		return psd_cuda_dnn_check(layer, status, what, err);
	if (!is_found)
		return psd_error_set(err, PSD_EINVAL, nowhere,
				     "layer '%.80s' (%s): cuDNN has no %s for its shape that gives equal bits",
				     layer->model->name, layer->model->kind->name, what);
	psd_cuda_want_workspace(layer->device, pass->bytes);
	return PSD_OK;
}

/* After a refusal, if there is another that works in what there is. What the refusal was is told if there is none. */
template <typename Algorithm>
static bool take_next(const struct psd_device *device, const struct psd_cuda_dnn_conv *conv,
		      struct pass<Algorithm> *pass, cudnnStatus_t status)
{
	bool is_found = false;

	return psd_cuda_dnn_refuses(status) &&
	       take_first(device->dnn, conv, pass, pass->chosen + 1, pass->bytes, &is_found) == CUDNN_STATUS_SUCCESS &&
	       is_found;
}

/* ---- opening and closing ---- */

static int describe_conv(const struct psd_cuda_layer *layer, struct psd_cuda_dnn_conv *conv)
{
	const struct psd_cuda_layer *below = psd_cuda_below(layer, 0);
	int status = psd_cuda_dnn_describe_blob(&conv->large, conv->is_transpose ? layer : below);

	if (status == CUDNN_STATUS_SUCCESS)
		status = psd_cuda_dnn_describe_blob(&conv->small, conv->is_transpose ? below : layer);
	if (status == CUDNN_STATUS_SUCCESS)
		status = psd_cuda_dnn_describe_weight(&conv->weight, layer);
	if (status == CUDNN_STATUS_SUCCESS)
		status = describe_pass(&conv->forward.how, layer);
	if (status == CUDNN_STATUS_SUCCESS)
		status = describe_pass(&conv->dweight.how, layer);
	if (status == CUDNN_STATUS_SUCCESS)
		status = describe_pass(&conv->dlarge.how, layer);
	return status;
}

enum psd_status psd_cuda_dnn_conv_open(struct psd_cuda_layer *layer, struct psd_cuda_dnn_conv **opened,
				       struct psd_error *err)
{
	struct psd_cuda_dnn_conv *conv = (struct psd_cuda_dnn_conv *)calloc(1, sizeof(*conv));
	const bool has_diff = psd_cuda_input(layer, 0)->has_diff;
	enum psd_status status;

	*opened = conv;
	if (!conv)
		return psd_cuda_no_memory(err);
	conv->is_transpose = layer->kind == &psd_cuda_kind_deconv;
	status = psd_cuda_dnn_check(layer, describe_conv(layer, conv), "convolution", err);
	if (!status && (!conv->is_transpose || has_diff))
		status = choose<cudnnConvolutionFwdAlgoPerf_t>(layer, conv, &conv->forward,
							       CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
							       "convolution", err);
	if (!status)
		status = choose<cudnnConvolutionBwdFilterAlgoPerf_t>(
			layer, conv, &conv->dweight, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, "weight gradient", err);
	if (!status && (conv->is_transpose || has_diff))
		status = choose<cudnnConvolutionBwdDataAlgoPerf_t>(
			layer, conv, &conv->dlarge, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, "data gradient", err);
	psd_cuda_dnn_want_aside(layer, conv->is_transpose ? conv->forward.bytes : conv->dlarge.bytes);
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
	if (conv->large)
		(void)cudnnDestroyTensorDescriptor(conv->large);
	if (conv->small)
		(void)cudnnDestroyTensorDescriptor(conv->small);
	if (conv->weight)
		(void)cudnnDestroyFilterDescriptor(conv->weight);
	end_pass(conv->forward.how);
	end_pass(conv->dweight.how);
	end_pass(conv->dlarge.how);
	free(conv);
}

/* ---- carrying out ---- */

static cudnnStatus_t make_small(const struct psd_device *device, struct psd_cuda_dnn_conv *conv, const void *weight,
				const void *large, void *small, bool adds)
{
	const struct pass<cudnnConvolutionFwdAlgo_t> *pass = &conv->forward;
	cudnnStatus_t status;

	do
		status = cudnnConvolutionForward(device->dnn, &one, conv->large, large, conv->weight, weight, pass->how,
						 pass->choices[pass->chosen].algorithm, device->workspace, pass->bytes,
						 adds ? &one : &zero, conv->small, small);
	while (!adds && take_next(device, conv, &conv->forward, status));
	return status;
}

static cudnnStatus_t make_large(const struct psd_device *device, struct psd_cuda_dnn_conv *conv, const void *weight,
				const void *small, void *large, bool adds)
{
	const struct pass<cudnnConvolutionBwdDataAlgo_t> *pass = &conv->dlarge;
	cudnnStatus_t status;

	do
		status = cudnnConvolutionBackwardData(device->dnn, &one, conv->weight, weight, conv->small, small,
						      pass->how, pass->choices[pass->chosen].algorithm,
						      device->workspace, pass->bytes, adds ? &one : &zero, conv->large,
						      large);
	while (!adds && take_next(device, conv, &conv->dlarge, status));
	return status;
}

static cudnnStatus_t make_dweight(const struct psd_device *device, struct psd_cuda_dnn_conv *conv, const void *large,
				  const void *small, void *dweight)
{
	const struct pass<cudnnConvolutionBwdFilterAlgo_t> *pass = &conv->dweight;
	cudnnStatus_t status;

	do
		status = cudnnConvolutionBackwardFilter(device->dnn, &one, conv->large, large, conv->small, small,
							pass->how, pass->choices[pass->chosen].algorithm,
							device->workspace, pass->bytes, &zero, conv->weight, dweight);
	while (take_next(device, conv, &conv->dweight, status));
	return status;
}

enum psd_status psd_cuda_dnn_conv_forward(struct psd_cuda_layer *layer, struct psd_cuda_dnn_conv *conv,
					  const void *weight, struct psd_error *err)
{
	const cudnnStatus_t status = (conv->is_transpose ? make_large : make_small)(
		layer->device, conv, weight, psd_cuda_input(layer, 0)->value, layer->blob->value, false);

	return psd_cuda_dnn_check(layer, status, "convolution", err);
}

enum psd_status psd_cuda_dnn_conv_dweight(struct psd_cuda_layer *layer, struct psd_cuda_dnn_conv *conv, void *dweight,
					  struct psd_error *err)
{
	const void *value = psd_cuda_input(layer, 0)->value, *diff = layer->blob->diff;
	const cudnnStatus_t status = make_dweight(layer->device, conv, conv->is_transpose ? diff : value,
						  conv->is_transpose ? value : diff, dweight);

	return psd_cuda_dnn_check(layer, status, "weight gradient", err);
}

static cudnnStatus_t make_input(const struct psd_cuda_layer *layer, struct psd_cuda_dnn_conv *conv, const void *weight,
				void *dinput, bool adds)
{
	return (conv->is_transpose ? make_small : make_large)(layer->device, conv, weight, layer->blob->diff, dinput,
							      adds);
}

enum psd_status psd_cuda_dnn_conv_dinput(struct psd_cuda_layer *layer, struct psd_cuda_dnn_conv *conv,
					 const void *weight, struct psd_error *err)
{
	const uint64_t aside =
		psd_cuda_dnn_aside_at_bytes(conv->is_transpose ? conv->forward.bytes : conv->dlarge.bytes);
	struct psd_cuda_blob *in = psd_cuda_input(layer, 0);
	const bool adds = psd_cuda_share(in);
	void *dinput = (char *)layer->device->workspace + aside;
	cudnnStatus_t status;

	if (!adds || !conv->cannot_add) {
		status = make_input(layer, conv, weight, in->diff, adds);
		conv->cannot_add = adds && psd_cuda_dnn_refuses(status);
		if (!conv->cannot_add)
			return psd_cuda_dnn_check(layer, status, "data gradient", err);
	}
	status = make_input(layer, conv, weight, dinput, false);
	return status == CUDNN_STATUS_SUCCESS ? psd_cuda_dnn_add_aside(layer, dinput, err)
					      : psd_cuda_dnn_check(layer, status, "data gradient", err);
}
