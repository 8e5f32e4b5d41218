/* cuDNN's convolutions in the stand-in: forward, towards the data, towards the filter, by one nest of loops. Algorithms
 * differ in what cuDNN says of them: memory, and whether equal input gives equal bits. Refuses more than two axes of
 * maps, and true half precision. */
#include <stdatomic.h>
#include <stdlib.h>

#include "tests/cuda/stand_in.h"
#include "tests/cuda/stand_in_dnn.h"
#include "tests/cuda/stand_in_parts.h"

struct cudnnConvolutionStruct {
	bool is_set;
	size_t pad_h, pad_w, stride_h, stride_w, dilation_h, dilation_w, groups;
	bool is_flipped; /* a convolution as mathematics has it */
	cudnnMathType_t math;
};

/* What is computed of the other two. */
enum direction { TO_OUTPUT, TO_DATA, TO_FILTER };

struct convolution {
	struct cudnnConvolutionStruct how;
	enum direction direction;
	struct psd_stand_in_tensor x, w, y; /* data, filter, output, or what is propagated to them */
	double alpha, beta;
	bool is_deterministic;
	void *workspace;
	size_t workspace_bytes;
};

/* ---- descriptors ---- */

cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t *descriptor)
{
	return psd_stand_in_dnn_create(__func__, (void **)descriptor, sizeof(**descriptor));
}

cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t descriptor)
{
	return psd_stand_in_dnn_destroy(__func__, descriptor);
}

cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t descriptor, int pad_h, int pad_w,
					      int stride_h, int stride_w, int dilation_h, int dilation_w,
					      cudnnConvolutionMode_t mode, cudnnDataType_t compute)
{
	const cudaError_t error = psd_stand_in_begin(__func__);

	psd_stand_in_unlock();
	if (error != cudaSuccess)
		return psd_stand_in_dnn_status(error);
	if (pad_h < 0 || pad_w < 0 || stride_h <= 0 || stride_w <= 0 || dilation_h <= 0 || dilation_w <= 0)
		return CUDNN_STATUS_BAD_PARAM;
	if (compute != CUDNN_DATA_FLOAT)
		return CUDNN_STATUS_NOT_SUPPORTED;
	*descriptor = (struct cudnnConvolutionStruct){.is_set = true,
						      .pad_h = (size_t)pad_h,
						      .pad_w = (size_t)pad_w,
						      .stride_h = (size_t)stride_h,
						      .stride_w = (size_t)stride_w,
						      .dilation_h = (size_t)dilation_h,
						      .dilation_w = (size_t)dilation_w,
						      .groups = 1,
						      .is_flipped = mode == CUDNN_CONVOLUTION,
						      .math = CUDNN_DEFAULT_MATH};
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t descriptor, int groups)
{
	const cudaError_t error = psd_stand_in_begin(__func__);

	psd_stand_in_unlock();
	if (error == cudaSuccess && groups < 1)
		return CUDNN_STATUS_BAD_PARAM;
	if (error == cudaSuccess)
		descriptor->groups = (size_t)groups;
	return psd_stand_in_dnn_status(error);
}

cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t descriptor, cudnnMathType_t math)
{
	const cudaError_t error = psd_stand_in_begin(__func__);

	psd_stand_in_unlock();
	if (error == cudaSuccess)
		descriptor->math = math;
	return psd_stand_in_dnn_status(error);
}

/* ---- computing ---- */

struct arrays {
	double *x, *w, *y;
};

/* Columns of the output for which a filter's column is inside the data: from first on, below end. */
static void columns_inside(const struct convolution *conv, size_t filter_column, size_t *first, size_t *end)
{
	const size_t shift = filter_column * conv->how.dilation_w, pad = conv->how.pad_w, stride = conv->how.stride_w;
	const size_t wide = conv->x.layout.w + pad;

	*first = shift >= pad ? 0 : (pad - shift + stride - 1) / stride;
	*end = shift >= wide ? 0 : (wide - shift - 1) / stride + 1;
	if (*end > conv->y.layout.w)
		*end = conv->y.layout.w;
}

/* One row of the output with one value of the filter. x: where output column 0 finds its data, may lie before it. */
static void add_row(enum direction direction, double *x, size_t stride, double *w, double *y, size_t first, size_t end)
{
	for (size_t column = first; column < end; column++)
		switch (direction) {
		case TO_OUTPUT: y[column] += *w * x[column * stride]; break;
		case TO_DATA: x[column * stride] += *w * y[column]; break;
		case TO_FILTER: *w += x[column * stride] * y[column]; break;
		}
}

/* One map of the data with the part of the filter that makes one map of the output of it. */
static void add_map(const struct convolution *conv, double *x, double *w, double *y)
{
	const struct cudnnConvolutionStruct *const how = &conv->how;
	const size_t height = conv->w.layout.h, width = conv->w.layout.w;

	for (size_t r = 0; r < height; r++)
		for (size_t s = 0; s < width; s++) {
			const size_t at = how->is_flipped ? (height - 1 - r) * width + width - 1 - s : r * width + s;
			size_t first, end;

			columns_inside(conv, s, &first, &end);
			for (size_t row = 0; row < conv->y.layout.h; row++) {
				const size_t below = row * how->stride_h + r * how->dilation_h; /* padding's start */

				if (below < how->pad_h || below - how->pad_h >= conv->x.layout.h || first >= end)
					continue;
				/* Of the first column that is inside, so that no address lies before the map. */
				double *const inside = x + (below - how->pad_h) * conv->x.layout.w +
						       (first * how->stride_w + s * how->dilation_w - how->pad_w);

				add_row(conv->direction, inside, how->stride_w, w + at,
					y + row * conv->y.layout.w + first, 0, end - first);
			}
		}
}

static void add_all(const struct convolution *conv, const struct arrays *of)
{
	const struct psd_stand_in_layout *const x = &conv->x.layout, *const w = &conv->w.layout;
	const struct psd_stand_in_layout *const y = &conv->y.layout;
	const size_t outputs_of_group = y->c / conv->how.groups;

	for (size_t sample = 0; sample < x->n; sample++)
		for (size_t output = 0; output < y->c; output++)
			for (size_t input = 0; input < w->c; input++) {
				const size_t channel = output / outputs_of_group * w->c + input;

				add_map(conv, of->x + (sample * x->c + channel) * x->h * x->w,
					of->w + (output * w->c + input) * w->h * w->w,
					of->y + (sample * y->c + output) * y->h * y->w);
			}
}

/* Inputs are loaded, the result begins at zeros. Default math lets float inputs go through tensor cores. */
static double *load_or_begin(const struct convolution *conv, const struct psd_stand_in_tensor *tensor, bool is_result)
{
	const size_t n = psd_stand_in_tensor_values(&tensor->layout);
	double *const values = is_result ? psd_stand_in_doubles(n) : psd_stand_in_load(tensor);

	if (values && !is_result && tensor->layout.number == PSD_STAND_IN_FLOAT && conv->how.math != CUDNN_FMA_MATH)
		for (size_t i = 0; i < n; i++)
			values[i] = psd_stand_in_tf32(values[i]);
	return values;
}

/* What the order of sums does that changes from run to run. */
static void disturb(double *values, size_t n)
{
	static atomic_uint n_disturbed;
	const double ratio = 1 + 0x1p-22 * (atomic_fetch_add_explicit(&n_disturbed, 1, memory_order_relaxed) % 3);

	for (size_t i = 0; i < n; i++)
		values[i] *= ratio;
}

static void run_convolution(void *arguments)
{
	const struct convolution *const conv = arguments;
	const struct arrays arrays = {.x = load_or_begin(conv, &conv->x, conv->direction == TO_DATA),
				      .w = load_or_begin(conv, &conv->w, conv->direction == TO_FILTER),
				      .y = load_or_begin(conv, &conv->y, conv->direction == TO_OUTPUT)};
	const struct psd_stand_in_tensor *const result = conv->direction == TO_OUTPUT ? &conv->y
							 : conv->direction == TO_DATA ? &conv->x
										      : &conv->w;
	double *const values = conv->direction == TO_OUTPUT ? arrays.y
			       : conv->direction == TO_DATA ? arrays.x
							    : arrays.w;

	if (arrays.x && arrays.w && arrays.y) {
		psd_stand_in_scribble(conv->workspace, conv->workspace_bytes);
		add_all(conv, &arrays);
		if (!conv->is_deterministic)
			disturb(values, psd_stand_in_tensor_values(&result->layout));
		psd_stand_in_store(result, values, conv->alpha, conv->beta);
	}
	free(arrays.y);
	free(arrays.w);
	free(arrays.x);
}

/* ---- what is allowed ---- */

static size_t output_size(size_t size, size_t filter, size_t pad, size_t stride, size_t dilation)
{
	const size_t wide = size + 2 * pad, span = (filter - 1) * dilation + 1;

	return wide < span ? 0 : (wide - span) / stride + 1;
}

static cudnnStatus_t check(const struct cudnnConvolutionStruct *how, const struct psd_stand_in_layout *x,
			   const struct psd_stand_in_layout *w, const struct psd_stand_in_layout *y)
{
	if (!how->is_set || !x->is_set || !w->is_set || !y->is_set || x->number != w->number || x->number != y->number)
		return CUDNN_STATUS_BAD_PARAM;
	if (x->c != w->c * how->groups || w->n % how->groups != 0 || y->n != x->n || y->c != w->n ||
	    y->h != output_size(x->h, w->h, how->pad_h, how->stride_h, how->dilation_h) ||
	    y->w != output_size(x->w, w->w, how->pad_w, how->stride_w, how->dilation_w))
		return CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH;
	/* Mixtures of layouts are not among those that cuDNN lists for all three directions. */
	if (x->is_channels_last != y->is_channels_last || x->is_channels_last != w->is_channels_last)
		return CUDNN_STATUS_NOT_SUPPORTED;
	return CUDNN_STATUS_SUCCESS;
}

/* ---- algorithms ---- */

/* As cuDNN describes its own; the quickest comes first, here always in this order. */
struct algorithm {
	int algo;
	bool is_supported;
	bool is_deterministic;
	bool has_workspace;
	bool adds_floats_alone; /* of other types it makes what it gives anew */
};

static const struct algorithm forward_algorithms[] = {
	{CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, true, true, true, true},
	{CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, true, true, false, false},
	{CUDNN_CONVOLUTION_FWD_ALGO_DIRECT, false, true, false, false},
};
static const struct algorithm data_algorithms[] = {
	{CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, true, false, false, false},
	{CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, true, true, true, true},
	{CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT, false, true, true, false},
};
static const struct algorithm filter_algorithms[] = {
	{CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, true, false, false, false},
	{CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, true, true, true, false},
	{CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT, false, true, true, false},
};
enum { ALGORITHMS = 3 };

static const struct algorithm *algorithms_of(enum direction direction)
{
	switch (direction) {
	case TO_OUTPUT: return forward_algorithms;
	case TO_DATA: return data_algorithms;
	case TO_FILTER: return filter_algorithms;
	}
	return NULL;
}

/* NULL: the stand-in does not have it. */
static const struct algorithm *algorithm_of(enum direction direction, int algo)
{
	const struct algorithm *const algorithms = algorithms_of(direction);

	for (int i = 0; i < ALGORITHMS; i++)
		if (algorithms[i].algo == algo && algorithms[i].is_supported)
			return &algorithms[i];
	return NULL;
}

static size_t more_bytes;
static enum psd_stand_in_estimates estimates;

void psd_stand_in_set_estimates(enum psd_stand_in_estimates how)
{
	psd_stand_in_lock();
	estimates = how;
	psd_stand_in_unlock();
}

/* The one that is listed and then refused. */
static int false_algorithm(enum direction direction)
{
	switch (direction) {
	case TO_OUTPUT: return CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD;
	case TO_DATA: return CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD;
	case TO_FILTER: return CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED;
	}
	return 0;
}

void psd_stand_in_set_workspaces(uint64_t bytes)
{
	psd_stand_in_lock();
	more_bytes = bytes;
	psd_stand_in_unlock();
}

/* Some memory that depends on the shapes, so that one layer's is too little for another. */
static size_t workspace_bytes_of(const struct algorithm *algorithm, const struct psd_stand_in_layout *w,
				 const struct psd_stand_in_layout *y)
{
	return algorithm->has_workspace ? sizeof(float) * (w->c * w->h * w->w + y->h * y->w) + more_bytes : 0;
}

/* The three descriptions of algorithms are of the same form under three names. */
static cudnnStatus_t list_algorithms(const char *function, enum direction direction,
				     const struct cudnnConvolutionStruct *how, const struct psd_stand_in_layout *x,
				     const struct psd_stand_in_layout *w, const struct psd_stand_in_layout *y,
				     int n_wanted, int *n_listed, cudnnConvolutionFwdAlgoPerf_t *listed)
{
	const cudaError_t error = psd_stand_in_begin(function);
	const struct algorithm untrue = {false_algorithm(direction), true, true, false, false};
	const enum psd_stand_in_estimates how_true = estimates;
	const int n_untrue =
		how_true == PSD_STAND_IN_ESTIMATES_UNMEASURED || how_true == PSD_STAND_IN_ESTIMATES_UNBEGUN;
	cudnnStatus_t status;

	psd_stand_in_unlock();
	if (error != cudaSuccess)
		return psd_stand_in_dnn_status(error);
	status = n_wanted < 1 ? CUDNN_STATUS_BAD_PARAM : check(how, x, w, y);
	if (status != CUDNN_STATUS_SUCCESS)
		return status;
	*n_listed = n_wanted < n_untrue + ALGORITHMS ? n_wanted : n_untrue + ALGORITHMS;
	for (int i = 0; i < *n_listed; i++) {
		const struct algorithm *const algorithm =
			i < n_untrue ? &untrue : &algorithms_of(direction)[i - n_untrue];
		const bool is_equal = algorithm->is_deterministic && how_true != PSD_STAND_IN_ESTIMATES_UNEQUAL;

		listed[i] = (cudnnConvolutionFwdAlgoPerf_t){
			.algo = (cudnnConvolutionFwdAlgo_t)algorithm->algo,
			.status = algorithm->is_supported ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED,
			.time = -1,
			.memory = workspace_bytes_of(algorithm, w, y),
			.determinism = is_equal ? CUDNN_DETERMINISTIC : CUDNN_NON_DETERMINISTIC,
			.mathType = how->math};
	}
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
						     const cudnnFilterDescriptor_t w,
						     const cudnnConvolutionDescriptor_t how,
						     const cudnnTensorDescriptor_t y, int n_wanted, int *n_listed,
						     cudnnConvolutionFwdAlgoPerf_t *listed)
{
	(void)handle;
	return list_algorithms(__func__, TO_OUTPUT, how, &x->layout, &w->layout, &y->layout, n_wanted, n_listed,
			       listed);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(cudnnHandle_t handle, const cudnnFilterDescriptor_t w,
							  const cudnnTensorDescriptor_t dy,
							  const cudnnConvolutionDescriptor_t how,
							  const cudnnTensorDescriptor_t dx, int n_wanted, int *n_listed,
							  cudnnConvolutionBwdDataAlgoPerf_t *listed)
{
	cudnnConvolutionFwdAlgoPerf_t found[ALGORITHMS + 1];
	const cudnnStatus_t status =
		list_algorithms(__func__, TO_DATA, how, &dx->layout, &w->layout, &dy->layout,
				n_wanted < ALGORITHMS + 1 ? n_wanted : ALGORITHMS + 1, n_listed, found);

	(void)handle;
	for (int i = 0; status == CUDNN_STATUS_SUCCESS && i < *n_listed; i++)
		listed[i] = (cudnnConvolutionBwdDataAlgoPerf_t){.algo = (cudnnConvolutionBwdDataAlgo_t)found[i].algo,
								.status = found[i].status,
								.time = found[i].time,
								.memory = found[i].memory,
								.determinism = found[i].determinism,
								.mathType = found[i].mathType};
	return status;
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
							    const cudnnTensorDescriptor_t dy,
							    const cudnnConvolutionDescriptor_t how,
							    const cudnnFilterDescriptor_t dw, int n_wanted,
							    int *n_listed, cudnnConvolutionBwdFilterAlgoPerf_t *listed)
{
	cudnnConvolutionFwdAlgoPerf_t found[ALGORITHMS + 1];
	const cudnnStatus_t status =
		list_algorithms(__func__, TO_FILTER, how, &x->layout, &dw->layout, &dy->layout,
				n_wanted < ALGORITHMS + 1 ? n_wanted : ALGORITHMS + 1, n_listed, found);

	(void)handle;
	for (int i = 0; status == CUDNN_STATUS_SUCCESS && i < *n_listed; i++)
		listed[i] =
			(cudnnConvolutionBwdFilterAlgoPerf_t){.algo = (cudnnConvolutionBwdFilterAlgo_t)found[i].algo,
							      .status = found[i].status,
							      .time = found[i].time,
							      .memory = found[i].memory,
							      .determinism = found[i].determinism,
							      .mathType = found[i].mathType};
	return status;
}

static cudnnStatus_t workspace_size(const char *function, enum direction direction,
				    const struct cudnnConvolutionStruct *how, const struct psd_stand_in_layout *x,
				    const struct psd_stand_in_layout *w, const struct psd_stand_in_layout *y, int algo,
				    size_t *bytes)
{
	const struct algorithm *const algorithm = algorithm_of(direction, algo);
	const cudaError_t error = psd_stand_in_begin(function);
	const bool is_measured = estimates == PSD_STAND_IN_ESTIMATES_UNBEGUN && algo == false_algorithm(direction);
	cudnnStatus_t status;

	psd_stand_in_unlock();
	if (error != cudaSuccess)
		return psd_stand_in_dnn_status(error);
	status = check(how, x, w, y);
	if (status == CUDNN_STATUS_SUCCESS && !algorithm && !is_measured)
		status = CUDNN_STATUS_NOT_SUPPORTED;
	if (status == CUDNN_STATUS_SUCCESS)
		*bytes = algorithm ? workspace_bytes_of(algorithm, w, y) : 0;
	return status;
}

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
						      const cudnnFilterDescriptor_t w,
						      const cudnnConvolutionDescriptor_t how,
						      const cudnnTensorDescriptor_t y, cudnnConvolutionFwdAlgo_t algo,
						      size_t *bytes)
{
	(void)handle;
	return workspace_size(__func__, TO_OUTPUT, how, &x->layout, &w->layout, &y->layout, (int)algo, bytes);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(cudnnHandle_t handle, const cudnnFilterDescriptor_t w,
							   const cudnnTensorDescriptor_t dy,
							   const cudnnConvolutionDescriptor_t how,
							   const cudnnTensorDescriptor_t dx,
							   cudnnConvolutionBwdDataAlgo_t algo, size_t *bytes)
{
	(void)handle;
	return workspace_size(__func__, TO_DATA, how, &dx->layout, &w->layout, &dy->layout, (int)algo, bytes);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
							     const cudnnTensorDescriptor_t dy,
							     const cudnnConvolutionDescriptor_t how,
							     const cudnnFilterDescriptor_t dw,
							     cudnnConvolutionBwdFilterAlgo_t algo, size_t *bytes)
{
	(void)handle;
	return workspace_size(__func__, TO_FILTER, how, &x->layout, &dw->layout, &dy->layout, (int)algo, bytes);
}

/* ---- calls that compute ---- */

static cudnnStatus_t convolve(const char *function, cudnnHandle_t handle, struct convolution *conv, int algo)
{
	const struct algorithm *const algorithm = algorithm_of(conv->direction, algo);
	const cudnnStatus_t status = check(&conv->how, &conv->x.layout, &conv->w.layout, &conv->y.layout);

	if (status != CUDNN_STATUS_SUCCESS)
		return status;
	if (!algorithm ||
	    (algorithm->adds_floats_alone && conv->beta != 0 && conv->x.layout.number != PSD_STAND_IN_FLOAT))
		return CUDNN_STATUS_NOT_SUPPORTED;
	if (!psd_stand_in_suits_dnn(conv->x.values) || !psd_stand_in_suits_dnn(conv->w.values) ||
	    !psd_stand_in_suits_dnn(conv->y.values) || !psd_stand_in_suits_dnn(conv->workspace))
		return CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER;
	if (conv->workspace_bytes < workspace_bytes_of(algorithm, &conv->w.layout, &conv->y.layout) ||
	    (!conv->workspace && algorithm->has_workspace))
		return CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT;
	conv->workspace_bytes = workspace_bytes_of(algorithm, &conv->w.layout, &conv->y.layout);
	conv->is_deterministic = algorithm->is_deterministic;
	return psd_stand_in_dnn_queue(function, handle, run_convolution, conv, sizeof(*conv));
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void *alpha, const cudnnTensorDescriptor_t x_layout,
				      const void *x, const cudnnFilterDescriptor_t w_layout, const void *w,
				      const cudnnConvolutionDescriptor_t how, cudnnConvolutionFwdAlgo_t algo,
				      void *workspace, size_t workspace_bytes, const void *beta,
				      const cudnnTensorDescriptor_t y_layout, void *y)
{
	struct convolution conv = {.how = *how,
				   .direction = TO_OUTPUT,
				   .x = psd_stand_in_tensor(&x_layout->layout, x),
				   .w = psd_stand_in_tensor(&w_layout->layout, w),
				   .y = psd_stand_in_tensor(&y_layout->layout, y),
				   .alpha = *(const float *)alpha,
				   .beta = *(const float *)beta,
				   .workspace = workspace,
				   .workspace_bytes = workspace_bytes};

	return convolve(__func__, handle, &conv, (int)algo);
}

cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void *alpha,
					   const cudnnFilterDescriptor_t w_layout, const void *w,
					   const cudnnTensorDescriptor_t dy_layout, const void *dy,
					   const cudnnConvolutionDescriptor_t how, cudnnConvolutionBwdDataAlgo_t algo,
					   void *workspace, size_t workspace_bytes, const void *beta,
					   const cudnnTensorDescriptor_t dx_layout, void *dx)
{
	struct convolution conv = {.how = *how,
				   .direction = TO_DATA,
				   .x = psd_stand_in_tensor(&dx_layout->layout, dx),
				   .w = psd_stand_in_tensor(&w_layout->layout, w),
				   .y = psd_stand_in_tensor(&dy_layout->layout, dy),
				   .alpha = *(const float *)alpha,
				   .beta = *(const float *)beta,
				   .workspace = workspace,
				   .workspace_bytes = workspace_bytes};

	return convolve(__func__, handle, &conv, (int)algo);
}

cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void *alpha,
					     const cudnnTensorDescriptor_t x_layout, const void *x,
					     const cudnnTensorDescriptor_t dy_layout, const void *dy,
					     const cudnnConvolutionDescriptor_t how,
					     cudnnConvolutionBwdFilterAlgo_t algo, void *workspace,
					     size_t workspace_bytes, const void *beta,
					     const cudnnFilterDescriptor_t dw_layout, void *dw)
{
	struct convolution conv = {.how = *how,
				   .direction = TO_FILTER,
				   .x = psd_stand_in_tensor(&x_layout->layout, x),
				   .w = psd_stand_in_tensor(&dw_layout->layout, dw),
				   .y = psd_stand_in_tensor(&dy_layout->layout, dy),
				   .alpha = *(const float *)alpha,
				   .beta = *(const float *)beta,
				   .workspace = workspace,
				   .workspace_bytes = workspace_bytes};

	return convolve(__func__, handle, &conv, (int)algo);
}
