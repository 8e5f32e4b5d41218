/* Element-wise functions. Most work in place, because backward needs only their output; the others write to memory of
 * their own. */
#include "real/device/gpu/gpu.h"

struct function {
	enum psd_gpu_function_kind kind;
	float alpha, beta;
	bool is_done;	  /* the function is fused into the layer below, so this layer does nothing */
	bool needs_input; /* backward reads the input */
};

static enum psd_status prepare(struct psd_gpu_layer *self, struct function function, struct psd_error *err)
{
	*(struct function *)self->details = function;
	if (function.needs_input || !psd_gpu_may_work_in_place(self))
		return psd_gpu_declare(self, err);
	psd_gpu_declare_in_place(self);
	return PSD_OK;
}

static enum psd_status forward(struct psd_gpu_layer *self, struct psd_error *err)
{
	const struct function *function = self->details;
	const struct psd_gpu_function run = {.from = psd_gpu_value(self, psd_gpu_input(self, 0)),
					     .to = psd_gpu_value(self, self->blob),
					     .kind = function->kind,
					     .alpha = function->alpha,
					     .beta = function->beta};

	return function->is_done ? PSD_OK : psd_gpu_run_function(self->device, &run, self->blob->elements, err);
}

static enum psd_status backward(struct psd_gpu_layer *self, struct psd_error *err)
{
	const struct function *function = self->details;
	struct psd_gpu_blob *in = psd_gpu_input(self, 0);
	const struct psd_gpu_function_back run = {
		.known = psd_gpu_value(self, function->needs_input ? in : self->blob),
		.diff = psd_gpu_diff(self, self->blob),
		.to = psd_gpu_diff(self, in),
		.kind = function->kind,
		.alpha = function->alpha,
		.beta = function->beta,
		.adds = in != self->blob && psd_gpu_share(in), /* a layer in place overwrites the gradient as well */
	};

	return psd_gpu_run_function_back(self->device, &run, self->blob->elements, err);
}

static enum psd_status prepare_relu(struct psd_gpu_layer *self, struct psd_error *err)
{
	return prepare(self,
		       (struct function){.kind = PSD_GPU_RELU,
					 .alpha = (float)self->model->settings.slope.slope,
					 .is_done = psd_gpu_below(self, 0)->rectifies},
		       err);
}

const struct psd_gpu_kind psd_gpu_kind_relu = {.prepare = prepare_relu,
					       .forward = forward,
					       .backward = backward,
					       .details_bytes = sizeof(struct function),
					       .keeps = PSD_KEEPS_SIGNS,
					       .leaves_signs = true};

#define KIND(name, kept, ...)                                                                                          \
	static enum psd_status prepare_##name(struct psd_gpu_layer *self, struct psd_error *err)                       \
	{                                                                                                              \
		return prepare(self, (struct function){__VA_ARGS__}, err);                                             \
	}                                                                                                              \
	const struct psd_gpu_kind psd_gpu_kind_##name = {.prepare = prepare_##name,                                    \
							 .forward = forward,                                           \
							 .backward = backward,                                         \
							 .details_bytes = sizeof(struct function),                     \
							 .keeps = kept}
#define SETTING(of, member) (float)self->model->settings.of.member

KIND(sigmoid, PSD_KEEPS_ALL, .kind = PSD_GPU_SIGMOID);
KIND(tanh, PSD_KEEPS_ALL, .kind = PSD_GPU_TANH);
KIND(elu, PSD_KEEPS_ALL, .kind = PSD_GPU_ELU, .alpha = SETTING(slope, slope));
KIND(clip, PSD_KEEPS_ALL, .kind = PSD_GPU_CLIP, .beta = SETTING(linear, factor));
KIND(affine, PSD_KEEPS_NOTHING, .kind = PSD_GPU_LINEAR, .alpha = SETTING(linear, factor),
     .beta = SETTING(linear, summand));
KIND(exp, PSD_KEEPS_ALL, .kind = PSD_GPU_EXP);
KIND(abs, PSD_KEEPS_NOTHING, .kind = PSD_GPU_ABS, .needs_input = true);
KIND(log, PSD_KEEPS_NOTHING, .kind = PSD_GPU_LOG, .needs_input = true);
KIND(softplus, PSD_KEEPS_NOTHING, .kind = PSD_GPU_SOFTPLUS, .needs_input = true);
KIND(power, PSD_KEEPS_NOTHING, .kind = PSD_GPU_POWER, .alpha = SETTING(power, exponent), .needs_input = true);
KIND(gelu, PSD_KEEPS_NOTHING,
     .kind = self->model->settings.gelu.approximation == PSD_GELU_TANH ? PSD_GPU_GELU_TANH : PSD_GPU_GELU,
     .needs_input = true);
KIND(silu, PSD_KEEPS_NOTHING, .kind = PSD_GPU_SILU, .needs_input = true);

bool psd_gpu_feeds_relu(const struct psd_gpu_layer *self)
{
	return self->n_readers == 1 && self->device->layers[self->last_reader].kind == &psd_gpu_kind_relu;
}
