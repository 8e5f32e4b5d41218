/* Convolution and transposed convolution. Weights are the caller's plain floats and change every iteration. Where the
 * device has another type or order, weights are converted before use, and their gradient back afterwards. */
#include "real/device/gpu/gpu.h"

struct conv {
	struct psd_gpu_dnn_conv *dnn;
	/* weight in the number format and memory order of the device, kept from forward to backward */
	void *weight;
	/* the caller's weight has the format and order that the device needs, so it is not copied; nor is its gradient,
	 * if cuDNN can write at its address */
	bool is_as_it_lies;
};

static const struct psd_sides *kernel_of(const struct psd_gpu_layer *self)
{
	return &self->model->settings.conv.window.kernel;
}

/* True if the device stores weights in row-major order. */
static bool has_plain_order(const struct psd_gpu_layer *self)
{
	const struct psd_sides *kernel = kernel_of(self);

	return !self->device->is_channels_last || (kernel->height == 1 && kernel->width == 1);
}

static enum psd_status want_weights(struct psd_gpu_layer *self, struct conv *conv, struct psd_error *err)
{
	const bool is_float = self->device->type == PSD_GPU_FLOAT;
	const uint64_t elements = self->device->graph->tensors[self->model->first_tensor].elements;
	const uint64_t bytes = elements * (is_float ? sizeof(float) : sizeof(uint16_t));

	conv->is_as_it_lies = is_float && has_plain_order(self);
	psd_gpu_want_dweight(self->device, bytes);
	return conv->is_as_it_lies ? PSD_OK : psd_gpu_want(self->device, bytes, &conv->weight, err);
}

static enum psd_status prepare(struct psd_gpu_layer *self, struct psd_error *err)
{
	struct conv *conv = self->details;

	PSD_TRY(psd_gpu_declare(self, err));
	PSD_TRY(psd_gpu_dnn_conv_open(self, self->kind == &psd_gpu_kind_deconv, &conv->dnn, err));
	PSD_TRY(want_weights(self, conv, err));
	if (self->model->settings.conv.has_bias) {
		const struct psd_gpu_reduction sums = psd_gpu_shift_sums(self, 1);

		psd_gpu_want_reduction(self, &sums);
		self->rectifies = psd_gpu_feeds_relu(self);
	}
	return PSD_OK;
}

/* The weight's axes: outputs, inputs of a group, rows, columns; inputs first in a transposed convolution. In plain or
 * the device's order. */
static struct psd_gpu_view view_weight(const struct psd_gpu_layer *self, bool is_plain)
{
	const struct psd_sides *kernel = kernel_of(self);
	const struct psd_tensor *weight = &self->device->graph->tensors[self->model->first_tensor];
	const uint32_t first = weight->dims[0], second = weight->dims[1], positions = kernel->height * kernel->width;
	struct psd_gpu_view seen = {.sizes = {first, second, kernel->height, kernel->width},
				    .strides = {second * positions, positions, kernel->width, 1}};

	if (!is_plain && self->device->is_channels_last) {
		seen.strides[1] = 1;
		seen.strides[2] = kernel->width * second;
		seen.strides[3] = second;
	}
	return seen;
}

/* Begins to copy a weight or its gradient element by element; used if both have the same memory order, which saves
 * divisions for each index. */
static enum psd_status convert_weight(struct psd_gpu_layer *self, const struct psd_gpu_move *move,
				      struct psd_error *err)
{
	const struct psd_gpu_convert convert = {.from = move->from, .to = move->to, .scale = move->scale};

	return psd_gpu_run_convert(self->device, &convert, psd_gpu_view_elements(&move->to_view), err);
}

/* Iterates in the output's order, so that neighbouring threads write neighbouring elements. */
static enum psd_status bring_weight(struct psd_gpu_layer *self, struct conv *conv, const void **weight,
				    struct psd_error *err)
{
	const float *plain = self->device->parameters[self->model->first_tensor];
	const struct psd_gpu_move move = {.from = psd_gpu_floats(plain),
					  .to = {conv->weight, self->device->type},
					  .from_view = view_weight(self, true),
					  .to_view = view_weight(self, false),
					  .scale = 1.0f};

	*weight = conv->is_as_it_lies ? (const void *)plain : conv->weight;
	if (conv->is_as_it_lies)
		return PSD_OK;
	return has_plain_order(self) ? convert_weight(self, &move, err) : psd_gpu_move_views(self, move, err);
}

static enum psd_status forward(struct psd_gpu_layer *self, struct psd_error *err)
{
	struct conv *conv = self->details;
	const void *weight;

	PSD_TRY(bring_weight(self, conv, &weight, err));
	PSD_TRY(psd_gpu_dnn_conv_forward(self, conv->dnn, weight, err));
	if (!self->model->settings.conv.has_bias)
		return PSD_OK;
	return psd_gpu_add_bias(self, self->device->parameters[self->model->first_tensor + 1], err);
}

/* Computes the gradient of the weight. The gradients of a bucket follow each other without gaps, so the address of one
 * may not be aligned as cuDNN needs it. */
static enum psd_status differentiate_weight(struct psd_gpu_layer *self, struct conv *conv, struct psd_error *err)
{
	struct psd_device *device = self->device;
	float *gradient = self->gradients[0];
	const bool is_direct = conv->is_as_it_lies && psd_gpu_suits_dnn(gradient);
	const struct psd_gpu_move move = {.from = {device->dweight, device->type},
					  .to = psd_gpu_floats(gradient),
					  .from_view = view_weight(self, false),
					  .to_view = view_weight(self, true),
					  .scale = 1.0f / device->diff_scale};

	PSD_TRY(psd_gpu_dnn_conv_dweight(self, conv->dnn, is_direct ? (void *)gradient : device->dweight, err));
	if (is_direct)
		return PSD_OK;
	if (has_plain_order(self))
		return convert_weight(self, &move, err);
	return psd_gpu_run_move(device, &move, psd_gpu_view_elements(&move.to_view), err);
}

static enum psd_status backward(struct psd_gpu_layer *self, struct psd_error *err)
{
	struct conv *conv = self->details;
	const float *plain = self->device->parameters[self->model->first_tensor];

	PSD_TRY(differentiate_weight(self, conv, err));
	if (self->model->settings.conv.has_bias) {
		const struct psd_gpu_reduction sums = psd_gpu_shift_sums(self, 1);

		PSD_TRY(psd_gpu_reduce(self, &sums, err));
	}
	if (!psd_gpu_input(self, 0)->has_diff)
		return PSD_OK;
	return psd_gpu_dnn_conv_dinput(self, conv->dnn, conv->is_as_it_lies ? (const void *)plain : conv->weight, err);
}

static void close_conv(struct psd_gpu_layer *self)
{
	struct conv *conv = self->details;

	psd_gpu_dnn_conv_close(conv->dnn);
}

const struct psd_gpu_kind psd_gpu_kind_conv = {.prepare = prepare,
					       .forward = forward,
					       .backward = backward,
					       .close = close_conv,
					       .details_bytes = sizeof(struct conv)};
const struct psd_gpu_kind psd_gpu_kind_deconv = {.prepare = prepare,
						 .forward = forward,
						 .backward = backward,
						 .close = close_conv,
						 .details_bytes = sizeof(struct conv)};
