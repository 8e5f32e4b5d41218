/* Linear layer on plain memory: (batch, inputs) in the order channels, rows, columns. Bias, ReLU and the bias's
 * gradient are epilogues of the products where those cost nothing. Also copies the factors of the weight's gradient,
 * and rebuilds gradients from all workers' factors. */
#include "real/device/gpu/gpu.h"

struct inner_product {
	/* weight in the number format of the device, kept from forward to backward; NULL: the caller's weight is
	 * used */
	void *weight;
	void *bottom;  /* copy of the input in row-major order, kept as a factor; NULL if the input has this order */
	void *dbottom; /* gradient of the input in row-major order; NULL if the input has this order */
	void *bias;    /* bias in the number format of the device, for `biased`; NULL: the caller's bias is used */
	/* product with the addition of the bias and ReLU as epilogue; NULL: a separate kernel does these */
	struct psd_gpu_fused *biased;
	/* weight gradient with the bias gradient as epilogue; NULL: a separate kernel computes the latter */
	struct psd_gpu_fused *summed;
	uint32_t inputs;  /* M */
	uint32_t outputs; /* N */
	bool is_plain;
};

static enum psd_status want_bottom(struct psd_gpu_layer *self, struct inner_product *inner, struct psd_error *err)
{
	const struct psd_gpu_layer *below = psd_gpu_below(self, 0);
	const struct psd_gpu_blob *in = below->blob;

	inner->is_plain =
		!self->device->is_channels_last || below->model->shape.channels == 1 || psd_gpu_positions(below) == 1;
	if (inner->is_plain)
		return PSD_OK;
	const enum psd_status status = psd_gpu_want(self->device, in->bytes, &inner->bottom, err);
	return status || !in->has_diff ? status : psd_gpu_want(self->device, in->bytes, &inner->dbottom, err);
}

static struct psd_gpu_values bottom_of(const struct psd_gpu_layer *self)
{
	const struct inner_product *inner = self->details;

	if (inner->is_plain)
		return psd_gpu_value(self, psd_gpu_input(self, 0));
	return (struct psd_gpu_values){inner->bottom, self->device->type};
}

static struct psd_gpu_values weight_of(const struct psd_gpu_layer *self)
{
	const struct inner_product *inner = self->details;

	if (self->device->type == PSD_GPU_FLOAT)
		return psd_gpu_floats(self->device->parameters[self->model->first_tensor]);
	return (struct psd_gpu_values){inner->weight, self->device->type};
}

/* Returns the product top = bottom * weight^T; shapes: top (batch, N), bottom (batch, M). */
static struct psd_gpu_product top_product(const struct psd_gpu_layer *self)
{
	const struct inner_product *inner = self->details;

	return (struct psd_gpu_product){.left = bottom_of(self),
					.right = weight_of(self),
					.result = psd_gpu_value(self, self->blob),
					.rows = self->device->network.batch,
					.columns = inner->outputs,
					.depth = inner->inputs,
					.is_right_transposed = true,
					.alpha = 1.0f};
}

/* Returns the product dweight = dtop^T * bottom, shape (N, M). */
static struct psd_gpu_product dweight_product(const struct psd_gpu_layer *self)
{
	const struct inner_product *inner = self->details;
	const float *dweight = self->gradients[0];

	return (struct psd_gpu_product){.left = psd_gpu_diff(self, self->blob),
					.right = bottom_of(self),
					.result = psd_gpu_floats(dweight),
					.rows = inner->outputs,
					.columns = inner->inputs,
					.depth = self->device->network.batch,
					.is_left_transposed = true,
					.alpha = 1.0f / self->device->diff_scale};
}

/* Chooses the product with the addition of the bias, and ReLU, as epilogue. Not for a ReLU with a slope below 0, which
 * cuBLASLt lacks. */
static enum psd_status fuse_forward(struct psd_gpu_layer *self, struct inner_product *inner, struct psd_error *err)
{
	const struct psd_device *device = self->device;
	const struct psd_gpu_product product = top_product(self);
	const bool is_float = device->type == PSD_GPU_FLOAT;
	const void *bias = is_float ? device->parameters[self->model->first_tensor + 1] : NULL;

	if (self->rectifies && psd_gpu_slope_above(self) != 0.0f)
		return PSD_OK;
	PSD_TRY(psd_gpu_open_fused(self->device, &product,
				   self->rectifies ? PSD_GPU_ADD_VECTOR_AND_RECTIFY : PSD_GPU_ADD_VECTOR, bias,
				   &inner->biased, err));
	if (!inner->biased || is_float)
		return PSD_OK;
	return psd_gpu_want(self->device, inner->outputs * sizeof(uint16_t), &inner->bias, err);
}

/* Chooses the product of the weight gradient with the bias gradient as epilogue. Not with fp16, which has a loss scale:
 * cuBLASLt does not document whether alpha scales the sums. Not if the weight gradient is not computed here. */
static enum psd_status fuse_backward(struct psd_gpu_layer *self, struct inner_product *inner, struct psd_error *err)
{
	const struct psd_gpu_product product = dweight_product(self);
	const bool is_computed = (self->gradients[0] && self->gradients[1]) || self->model->n_shared > 0;

	if (!is_computed || self->device->diff_scale != 1.0f)
		return PSD_OK;
	return psd_gpu_open_fused(self->device, &product, PSD_GPU_SUM_LEFT_ROWS, self->gradients[1], &inner->summed,
				  err);
}

static enum psd_status prepare(struct psd_gpu_layer *self, struct psd_error *err)
{
	const struct psd_shape below = psd_gpu_below(self, 0)->model->shape;
	const struct psd_gpu_reduction sums = {.scale = 1.0f};
	struct inner_product *inner = self->details;

	PSD_TRY(psd_gpu_declare(self, err));
	inner->inputs = below.channels * below.height * below.width;
	inner->outputs = self->model->settings.inner_product.outputs;
	if (self->model->settings.inner_product.has_bias) {
		psd_gpu_want_reduction(self, &sums);
		self->rectifies = psd_gpu_feeds_relu(self);
	}
	PSD_TRY(want_bottom(self, inner, err));
	if (self->device->type != PSD_GPU_FLOAT)
		PSD_TRY(psd_gpu_want(self->device, (uint64_t)inner->inputs * inner->outputs * sizeof(uint16_t),
				     &inner->weight, err));
	if (!self->model->settings.inner_product.has_bias)
		return PSD_OK;
	PSD_TRY(fuse_forward(self, inner, err));
	return fuse_backward(self, inner, err);
}

/* Begins to convert one of the layer's parameters to the number format of the device. */
static enum psd_status narrow(struct psd_gpu_layer *self, unsigned position, void *to, uint64_t elements,
			      struct psd_error *err)
{
	const struct psd_gpu_convert convert = {
		.from = psd_gpu_floats(self->device->parameters[self->model->first_tensor + position]),
		.to = {to, self->device->type},
		.scale = 1.0f};

	return psd_gpu_run_convert(self->device, &convert, elements, err);
}

/* Begins to convert weight, bias and input for the product of the forward pass. */
static enum psd_status bring(struct psd_gpu_layer *self, struct psd_error *err)
{
	const struct inner_product *inner = self->details;
	const struct psd_gpu_layer *below = psd_gpu_below(self, 0);
	const struct psd_gpu_move move = {.from = psd_gpu_value(self, below->blob),
					  .to = bottom_of(self),
					  .from_view = psd_gpu_view_of(below),
					  .to_view = psd_gpu_view_plain(below),
					  .scale = 1.0f};

	if (inner->weight)
		PSD_TRY(narrow(self, 0, inner->weight, (uint64_t)inner->inputs * inner->outputs, err));
	if (inner->bias)
		PSD_TRY(narrow(self, 1, inner->bias, inner->outputs, err));
	if (inner->is_plain)
		return PSD_OK;
	return psd_gpu_run_move(self->device, &move, below->blob->elements, err);
}

static enum psd_status forward(struct psd_gpu_layer *self, struct psd_error *err)
{
	const struct inner_product *inner = self->details;
	const struct psd_gpu_product product = top_product(self);
	float *bias = self->model->settings.inner_product.has_bias
			      ? self->device->parameters[self->model->first_tensor + 1]
			      : NULL;

	PSD_TRY(bring(self, err));
	if (inner->biased)
		return psd_gpu_multiply_fused(self->device, inner->biased, &product, inner->bias ? inner->bias : bias,
					      err);
	PSD_TRY(psd_gpu_multiply_matrices(self->device, &product, false, err));
	return bias ? psd_gpu_add_bias(self, bias, err) : PSD_OK;
}

/* Begins to compute the gradients of weight and bias; dbias[n] is the sum of column n of dtop. dbias and dweight may be
 * NULL. */
static enum psd_status differentiate_parameters(struct psd_gpu_layer *self, struct psd_error *err)
{
	const struct psd_device *device = self->device;
	const struct inner_product *inner = self->details;
	const struct psd_gpu_product product = dweight_product(self);
	float *dbias = self->model->settings.inner_product.has_bias ? self->gradients[1] : NULL;

	/* gradients may have other addresses in each iteration, so the alignment is checked */
	if (inner->summed && psd_gpu_fits_fused(inner->summed, &product, dbias))
		return psd_gpu_multiply_fused(self->device, inner->summed, &product, dbias, err);
	if (dbias)
		PSD_TRY(psd_gpu_sum_columns(self->device, product.left, device->network.batch, inner->outputs,
					    device->sums, dbias, 1.0f / device->diff_scale, err));
	return product.result.data ? psd_gpu_multiply_matrices(self->device, &product, false, err) : PSD_OK;
}

/* Begins dbottom = dtop * weight; shapes: dbottom (batch, M), dtop (batch, N), weight (N, M). */
static enum psd_status differentiate_bottom(struct psd_gpu_layer *self, struct psd_error *err)
{
	const struct inner_product *inner = self->details;
	const struct psd_gpu_layer *below = psd_gpu_below(self, 0);
	const struct psd_gpu_values dbottom = psd_gpu_diff(self, below->blob);
	const bool adds = psd_gpu_share(below->blob);
	struct psd_gpu_product product = {.left = psd_gpu_diff(self, self->blob),
					  .right = weight_of(self),
					  .result = dbottom,
					  .rows = self->device->network.batch,
					  .columns = inner->inputs,
					  .depth = inner->outputs,
					  .adds = adds,
					  .alpha = 1.0f};
	struct psd_gpu_move move = {.to = dbottom,
				    .from_view = psd_gpu_view_plain(below),
				    .to_view = psd_gpu_view_of(below),
				    .scale = 1.0f,
				    .adds = adds};

	if (inner->is_plain)
		return psd_gpu_multiply_matrices(self->device, &product, false, err);
	product.result.data = inner->dbottom;
	product.adds = false;
	move.from = product.result;
	PSD_TRY(psd_gpu_multiply_matrices(self->device, &product, false, err));
	return psd_gpu_move_views(self, move, err);
}

static enum psd_status backward(struct psd_gpu_layer *self, struct psd_error *err)
{
	const enum psd_status status = differentiate_parameters(self, err);

	return status || !psd_gpu_input(self, 0)->has_diff ? status : differentiate_bottom(self, err);
}

static void close_products(struct psd_gpu_layer *self)
{
	struct inner_product *inner = self->details;

	psd_gpu_close_fused(inner->biased);
	psd_gpu_close_fused(inner->summed);
}

const struct psd_gpu_kind psd_gpu_kind_inner_product = {.prepare = prepare,
							.forward = forward,
							.backward = backward,
							.close = close_products,
							.details_bytes = sizeof(struct inner_product),
							.keeps_diff = true};

/* ---- factors ---- */

enum psd_status psd_gpu_keep_factors(struct psd_device *device, unsigned layer, const struct psd_factors *kept,
				     struct psd_error *err)
{
	const struct psd_gpu_layer *self = &device->layers[layer];
	const struct inner_product *inner = self->details;
	const struct psd_gpu_convert top = {.from = psd_gpu_diff(self, self->blob),
					    .to = psd_gpu_floats(kept->top_diff),
					    .scale = 1.0f / device->diff_scale};
	const struct psd_gpu_convert bottom = {
		.from = bottom_of(self), .to = psd_gpu_floats(kept->bottom), .scale = 1.0f};

	PSD_TRY(psd_gpu_enter(device, err));
	PSD_TRY(psd_gpu_run_convert(device, &top, (uint64_t)device->network.batch * inner->outputs, err));
	return psd_gpu_run_convert(device, &bottom, (uint64_t)device->network.batch * inner->inputs, err);
}

enum psd_status psd_gpu_rebuild(struct psd_device *device, const struct psd_factors *factors, uint32_t samples,
				uint32_t rows, uint32_t columns, float *gradient, float *bias_gradient,
				struct psd_error *err)
{
	const struct psd_gpu_product product = {.left = psd_gpu_floats(factors->top_diff),
						.right = psd_gpu_floats(factors->bottom),
						.result = psd_gpu_floats(gradient),
						.rows = columns,
						.columns = rows,
						.depth = samples,
						.is_left_transposed = true,
						.alpha = 1.0f};

	PSD_TRY(psd_gpu_enter(device, err));
	if (bias_gradient)
		PSD_TRY(psd_gpu_sum_columns(device, product.left, samples, columns, device->rebuild_sums, bias_gradient,
					    1.0f, err));
	return psd_gpu_multiply_matrices(device, &product, true, err);
}
