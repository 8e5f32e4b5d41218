/* Shapes, parameters and FLOPs, kind by kind. Counts arithmetic only: no address arithmetic, random numbers or memory
 * moves. */
#include "engine/model/layer.h"

#include "engine/base/saturate.h"

uint64_t psd_shape_elements(struct psd_shape shape)
{
	return (uint64_t)shape.channels * shape.height * shape.width;
}

/* ---- shapes ---- */

static enum psd_status check_size(const struct psd_layer *layer, struct psd_place at, struct psd_error *err)
{
	const struct psd_shape shape = layer->shape;

	if (shape.channels < 1 || shape.channels > PSD_LAYER_CHANNELS_MAX)
		return psd_error_set(err, PSD_EINVAL, at, "layer '%.80s' has %u channels, must be 1 to %u", layer->name,
				     shape.channels, PSD_LAYER_CHANNELS_MAX);
	if (shape.height < 1 || shape.height > PSD_LAYER_SIDE_MAX || shape.width < 1 ||
	    shape.width > PSD_LAYER_SIDE_MAX)
		return psd_error_set(err, PSD_EINVAL, at, "layer '%.80s' is %u high and %u wide, must be 1 to %u",
				     layer->name, shape.height, shape.width, PSD_LAYER_SIDE_MAX);
	return PSD_OK;
}

static enum psd_status check_input_count(const struct psd_layer *layer, struct psd_place at, struct psd_error *err)
{
	const unsigned lowest = layer->kind == PSD_LAYER_INPUT ? 0 : layer->kind == PSD_LAYER_ADD ? 2 : 1;
	const bool is_open = layer->kind == PSD_LAYER_ADD || layer->kind == PSD_LAYER_CONCAT;

	if (layer->n_inputs < lowest || (!is_open && layer->n_inputs > lowest))
		return psd_error_set(err, PSD_EINVAL, at, "layer '%.80s' (%s) has %u inputs, must be %u%s", layer->name,
				     psd_layer_kind_names[layer->kind], layer->n_inputs, lowest,
				     is_open ? " or more" : "");
	return PSD_OK;
}

/* Positions of a window of `kernel` (dilated) along a side. Rounding up, the last window must begin inside the side or
 * its leading pad (Caffe's PoolingLayer::Reshape). False: none fits. */
static bool count_positions(uint64_t side, uint64_t kernel, uint64_t stride, uint64_t pad, bool rounds_up,
			    uint32_t *positions)
{
	const uint64_t padded = side + 2 * pad;
	uint64_t count = 1;

	if (padded < kernel && (!rounds_up || kernel - padded >= stride))
		return false;
	if (padded >= kernel)
		count = (padded - kernel + (rounds_up ? stride - 1 : 0)) / stride + 1;
	if (rounds_up && (count - 1) * stride >= side + pad)
		count--;
	*positions = (uint32_t)count;
	return true;
}

static uint64_t dilated(uint32_t kernel, uint32_t dilation)
{
	return (uint64_t)dilation * (kernel - 1) + 1;
}

static bool is_window_sane(const struct psd_window *window)
{
	const uint32_t positive[] = {window->kernel_height, window->kernel_width,    window->stride_height,
				     window->stride_width,  window->dilation_height, window->dilation_width};

	for (unsigned i = 0; i < sizeof(positive) / sizeof(positive[0]); i++)
		if (positive[i] < 1 || positive[i] > PSD_LAYER_SIDE_MAX)
			return false;
	return window->pad_height <= PSD_LAYER_SIDE_MAX && window->pad_width <= PSD_LAYER_SIDE_MAX;
}

static enum psd_status slide_window(struct psd_layer *layer, struct psd_shape in, struct psd_place at,
				    struct psd_error *err)
{
	const struct psd_window *window = &layer->window;

	if (!is_window_sane(window))
		return psd_error_set(err, PSD_EINVAL, at,
				     "layer '%.80s' has a kernel, stride, dilation or pad beyond 1 (pad: 0) to %u",
				     layer->name, PSD_LAYER_SIDE_MAX);
	if (count_positions(in.height, dilated(window->kernel_height, window->dilation_height), window->stride_height,
			    window->pad_height, window->rounds_up, &layer->shape.height) &&
	    count_positions(in.width, dilated(window->kernel_width, window->dilation_width), window->stride_width,
			    window->pad_width, window->rounds_up, &layer->shape.width))
		return PSD_OK;
	return psd_error_set(err, PSD_EINVAL, at,
			     "layer '%.80s': kernel %ux%u with pad %ux%u does not fit its input of %ux%u", layer->name,
			     window->kernel_height, window->kernel_width, window->pad_height, window->pad_width,
			     in.height, in.width);
}

static enum psd_status infer_conv(struct psd_layer *layer, struct psd_shape in, struct psd_place at,
				  struct psd_error *err)
{
	const uint32_t groups = layer->window.groups;

	layer->shape.channels = layer->outputs;
	if (groups < 1 || in.channels % groups || layer->outputs % groups)
		return psd_error_set(err, PSD_EINVAL, at,
				     "layer '%.80s': %u groups do not divide %u inputs and %u outputs", layer->name,
				     groups, in.channels, layer->outputs);
	return slide_window(layer, in, at, err);
}

static enum psd_status infer_pool(struct psd_layer *layer, struct psd_shape in, struct psd_place at,
				  struct psd_error *err)
{
	const struct psd_window *window = &layer->window;

	layer->shape.channels = in.channels;
	if (window->pad_height >= window->kernel_height || window->pad_width >= window->kernel_width)
		return psd_error_set(err, PSD_EINVAL, at,
				     "layer '%.80s': pad %ux%u must be smaller than the kernel %ux%u", layer->name,
				     window->pad_height, window->pad_width, window->kernel_height,
				     window->kernel_width);
	return slide_window(layer, in, at, err);
}

static enum psd_status infer_inner_product(struct psd_layer *layer, struct psd_shape in, struct psd_place at,
					   struct psd_error *err)
{
	layer->shape = (struct psd_shape){layer->outputs, 1, 1};
	if (psd_shape_elements(in) > UINT32_MAX)
		return psd_error_set(err, PSD_EINVAL, at, "layer '%.80s' has more than %u inputs", layer->name,
				     UINT32_MAX);
	return PSD_OK;
}

static enum psd_status infer_concat(struct psd_layer *layer, const struct psd_layer *layers, struct psd_place at,
				    struct psd_error *err)
{
	const struct psd_shape first = layers[layer->inputs[0]].shape;
	uint64_t channels = 0;

	for (unsigned i = 0; i < layer->n_inputs; i++) {
		const struct psd_layer *input = &layers[layer->inputs[i]];

		if (input->shape.height != first.height || input->shape.width != first.width)
			return psd_error_set(err, PSD_EINVAL, at,
					     "layer '%.80s': input '%.80s' is %ux%u, must be %ux%u as the first input",
					     layer->name, input->name, input->shape.height, input->shape.width,
					     first.height, first.width);
		channels += input->shape.channels;
	}
	layer->shape = first;
	layer->shape.channels = channels > PSD_LAYER_CHANNELS_MAX ? UINT32_MAX : (uint32_t)channels;
	return PSD_OK;
}

static enum psd_status infer_add(struct psd_layer *layer, const struct psd_layer *layers, struct psd_place at,
				 struct psd_error *err)
{
	const struct psd_shape first = layers[layer->inputs[0]].shape;

	for (unsigned i = 1; i < layer->n_inputs; i++) {
		const struct psd_layer *input = &layers[layer->inputs[i]];
		const struct psd_shape shape = input->shape;

		if (shape.channels != first.channels || shape.height != first.height || shape.width != first.width)
			return psd_error_set(
				err, PSD_EINVAL, at,
				"layer '%.80s': input '%.80s' is %ux%ux%u, must be %ux%ux%u as the first input",
				layer->name, input->name, shape.channels, shape.height, shape.width, first.channels,
				first.height, first.width);
	}
	layer->shape = first;
	return PSD_OK;
}

static enum psd_status infer(struct psd_layer *layer, const struct psd_layer *layers, struct psd_place at,
			     struct psd_error *err)
{
	const struct psd_shape in = layer->n_inputs ? layers[layer->inputs[0]].shape : layer->shape;

	switch (layer->kind) {
	case PSD_LAYER_CONV: return infer_conv(layer, in, at, err);
	case PSD_LAYER_POOL: return infer_pool(layer, in, at, err);
	case PSD_LAYER_INNER_PRODUCT: return infer_inner_product(layer, in, at, err);
	case PSD_LAYER_CONCAT: return infer_concat(layer, layers, at, err);
	case PSD_LAYER_ADD: return infer_add(layer, layers, at, err);
	case PSD_LAYER_GLOBAL_POOL: layer->shape = (struct psd_shape){in.channels, 1, 1}; return PSD_OK;
	default: /* the others keep the shape; the loss keeps the probabilities, which its backward pass needs */
		layer->shape = in;
		return PSD_OK;
	}
}

enum psd_status psd_layer_infer_shape(struct psd_layer *layer, const struct psd_layer *layers, struct psd_place at,
				      struct psd_error *err)
{
	enum psd_status status = check_input_count(layer, at, err);

	if (!status)
		status = infer(layer, layers, at, err);
	return status ? status : check_size(layer, at, err);
}

/* ---- parameters ---- */

struct psd_layer_parameters psd_layer_count_parameters(const struct psd_layer *layer, const struct psd_layer *layers)
{
	const struct psd_shape in = layer->n_inputs ? layers[layer->inputs[0]].shape : layer->shape;
	const struct psd_window *window = &layer->window;
	struct psd_layer_parameters count = {0};

	switch (layer->kind) {
	case PSD_LAYER_CONV: /* (outputs, channels / groups, kernel height, kernel width) */
		count.weight = psd_saturated_mul((uint64_t)layer->outputs * (in.channels / window->groups),
						 (uint64_t)window->kernel_height * window->kernel_width);
		count.bias = layer->has_bias ? layer->outputs : 0;
		break;
	case PSD_LAYER_INNER_PRODUCT: /* (inputs, outputs) */
		count.weight = psd_shape_elements(in) * layer->outputs;
		count.bias = layer->has_bias ? layer->outputs : 0;
		break;
	case PSD_LAYER_BATCH_NORM:
	case PSD_LAYER_SCALE:
		count.weight = layer->has_scale ? in.channels : 0;
		count.bias = layer->has_bias ? in.channels : 0;
		break;
	default: break;
	}
	return count;
}

/* ---- work ---- */

/* Per-element costs of forward and backward; the backward of data only, parameters' gradients are added by their kinds.
 */
struct element_cost {
	uint64_t forward;
	uint64_t backward;
};

/* Batch norm in training (Ioffe and Szegedy 2015, algorithm 1): mean 1, variance 3, normalise 2, scale 1, shift 1; its
 * data gradient from the two sums the parameters' gradients share: 5. LRN (Krizhevsky 2012, section 3.3) over n
 * channels: squares 1, sliding sum n, scale and offset 2, power 1, product 1; backward once more the sum, of products.
 * The softmax: maximum, difference, exponential, sum, quotient; backward a difference and the weight of the loss. */
static struct element_cost cost_per_element(const struct psd_layer *layer)
{
	switch (layer->kind) {
	case PSD_LAYER_LRN: return (struct element_cost){layer->lrn_size + 5u, layer->lrn_size + 6u};
	case PSD_LAYER_BATCH_NORM: return (struct element_cost){6u + layer->has_scale + layer->has_bias, 5};
	case PSD_LAYER_SCALE: return (struct element_cost){(uint64_t)layer->has_scale + layer->has_bias, 1};
	case PSD_LAYER_RELU:
	case PSD_LAYER_DROPOUT: /* by a mask; drawing it is not counted */ return (struct element_cost){1, 1};
	case PSD_LAYER_SOFTMAX_LOSS: return (struct element_cost){5, 2};
	case PSD_LAYER_ADD: /* its gradient is handed on as it is */
		return (struct element_cost){layer->n_inputs - 1u, 0};
	default: return (struct element_cost){0, 0};
	}
}

/* Conv and inner product: every weight meets `uses` positions, each a multiplication and an addition; a bias is one
 * addition per output. Backward: the same products once for the weights' gradient and once for the data's (Caffe's two
 * GEMMs). */
static void count_products(struct psd_layer *layer, struct psd_layer_parameters parameters, bool has_data_gradient)
{
	const uint64_t uses = (uint64_t)layer->shape.height * layer->shape.width;
	const uint64_t products = psd_saturated_mul(2 * uses, parameters.weight);
	const uint64_t additions = parameters.bias * uses;

	layer->forward_flops = psd_saturated_add(products, additions);
	layer->backward_flops = psd_saturated_add(layer->forward_flops, has_data_gradient ? products : 0);
}

/* A window is compared or summed once per position; backward the maximum sends one value back, the average one to each
 * place. */
static void count_pool(struct psd_layer *layer, struct psd_shape in, bool has_data_gradient)
{
	const uint64_t out_elements = psd_shape_elements(layer->shape);
	const bool is_global = layer->kind == PSD_LAYER_GLOBAL_POOL;
	const uint64_t window = is_global ? (uint64_t)in.height * in.width
					  : (uint64_t)layer->window.kernel_height * layer->window.kernel_width;
	const bool is_max = !is_global && layer->window.is_max;

	layer->forward_flops = psd_saturated_mul(out_elements, window);
	if (has_data_gradient)
		layer->backward_flops = is_max ? out_elements : layer->forward_flops;
}

static void count_elementwise(struct psd_layer *layer, struct psd_layer_parameters parameters, bool has_data_gradient)
{
	const uint64_t elements = psd_shape_elements(layer->shape);
	const struct element_cost cost = cost_per_element(layer);

	layer->forward_flops = psd_saturated_mul(elements, cost.forward);
	layer->backward_flops = has_data_gradient ? psd_saturated_mul(elements, cost.backward) : 0;
	/* gamma: a product and a sum per element; beta: a sum */
	if (parameters.weight)
		layer->backward_flops = psd_saturated_add(layer->backward_flops, psd_saturated_mul(elements, 2));
	if (parameters.bias)
		layer->backward_flops = psd_saturated_add(layer->backward_flops, elements);
}

static void count_bytes(struct psd_layer *layer, const struct psd_layer *layers, struct psd_layer_parameters parameters)
{
	uint64_t read = psd_saturated_add(parameters.weight, parameters.bias);

	for (unsigned i = 0; i < layer->n_inputs; i++)
		read = psd_saturated_add(read, psd_shape_elements(layers[layer->inputs[i]].shape));
	layer->read_bytes = psd_saturated_mul(read, sizeof(float));
	layer->write_bytes = psd_shape_elements(layer->shape) * sizeof(float);
}

void psd_layer_count_work(struct psd_layer *layer, const struct psd_layer *layers, const bool is_trained[])
{
	const struct psd_layer_parameters parameters = psd_layer_count_parameters(layer, layers);
	bool has_data_gradient = false;

	count_bytes(layer, layers, parameters);
	layer->forward_flops = 0;
	layer->backward_flops = 0;
	if (layer->kind == PSD_LAYER_INPUT)
		return;
	for (unsigned i = 0; i < layer->n_inputs; i++)
		has_data_gradient = has_data_gradient || is_trained[layer->inputs[i]];
	if (layer->kind == PSD_LAYER_CONV || layer->kind == PSD_LAYER_INNER_PRODUCT)
		count_products(layer, parameters, has_data_gradient);
	else if (layer->kind == PSD_LAYER_POOL || layer->kind == PSD_LAYER_GLOBAL_POOL)
		count_pool(layer, layers[layer->inputs[0]].shape, has_data_gradient);
	else
		count_elementwise(layer, parameters, has_data_gradient);
}
