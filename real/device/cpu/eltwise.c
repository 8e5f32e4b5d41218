/* Element-wise functions: one primitive for forward and one for backward. Most work in place, because backward needs
 * only their output; the others do not. */
#include "real/device/cpu/cpu.h"

static enum psd_status prepare_forward(struct psd_cpu_layer *self, struct psd_cpu_function function,
				       struct psd_error *err)
{
	struct psd_cpu_twins *twins = self->details;
	struct psd_cpu_arg no_workspace;
	dnnl_eltwise_desc_t desc;
	const dnnl_status_t failure =
		dnnl_eltwise_forward_desc_init(&desc, dnnl_forward_training, function.algorithm,
					       &psd_cpu_input(self, 0)->desc, function.alpha, function.beta);
	const enum psd_status status =
		psd_cpu_op_describe(&twins->forward, self, "forward", failure, &desc, NULL, NULL, err);

	/* when fused, backward needs the description alone */
	return status || function.is_done ? status : psd_cpu_build_forward(self, &no_workspace, err);
}

/* Values at which the derivative is taken. A linear function has one derivative everywhere: there the output serves as
 * well as the input. */
static struct psd_cpu_arg known_by(const struct psd_cpu_layer *self, struct psd_cpu_function function)
{
	struct psd_cpu_arg known = psd_cpu_value(function.needs_input ? psd_cpu_input(self, 0) : self->blob);

	known.arg = function.needs_input || function.algorithm == dnnl_eltwise_linear ? DNNL_ARG_SRC : DNNL_ARG_DST;
	return known;
}

static enum psd_status prepare_backward(struct psd_cpu_layer *self, struct psd_cpu_function function,
					struct psd_error *err)
{
	struct psd_cpu_twins *twins = self->details;
	struct psd_cpu_blob *in = psd_cpu_input(self, 0), *out = self->blob;
	dnnl_eltwise_desc_t desc;
	const dnnl_status_t failure = dnnl_eltwise_backward_desc_init(&desc, function.algorithm, &out->desc, &out->desc,
								      function.alpha, function.beta);

	return psd_cpu_op_make(&twins->backward, self, "data gradient", failure, &desc, &twins->forward,
			       (const struct psd_cpu_arg[]){
				       known_by(self, function),
				       {DNNL_ARG_DIFF_DST, &out->desc, &out->diff},
				       {DNNL_ARG_DIFF_SRC, &out->desc, in == out ? &out->diff : &in->share},
			       },
			       3, err);
}

enum psd_status psd_cpu_prepare_eltwise(struct psd_cpu_layer *self, struct psd_cpu_function function,
					struct psd_error *err)
{
	struct psd_cpu_blob *in = psd_cpu_input(self, 0);

	PSD_TRY(!function.needs_input && psd_cpu_may_work_in_place(self) ? psd_cpu_declare_in_place(self, err)
									 : psd_cpu_declare(self, &in->desc, err));
	PSD_TRY(prepare_forward(self, function, err));
	return in->has_diff ? prepare_backward(self, function, err) : PSD_OK;
}

#define KIND(name, kept, ...)                                                                                          \
	static enum psd_status prepare_##name(struct psd_cpu_layer *self, struct psd_error *err)                       \
	{                                                                                                              \
		return psd_cpu_prepare_eltwise(self, (struct psd_cpu_function){__VA_ARGS__}, err);                     \
	}                                                                                                              \
	const struct psd_cpu_kind psd_cpu_##name = {prepare_##name, psd_cpu_forward, psd_cpu_backward,                 \
						    .details_bytes = sizeof(struct psd_cpu_twins), .keeps = kept}
#define SETTING(of, member) (float)self->model->settings.of.member

KIND(sigmoid, PSD_KEEPS_ALL, .algorithm = dnnl_eltwise_logistic_use_dst_for_bwd);
KIND(tanh, PSD_KEEPS_ALL, .algorithm = dnnl_eltwise_tanh_use_dst_for_bwd);
KIND(elu, PSD_KEEPS_ALL, .algorithm = dnnl_eltwise_elu_use_dst_for_bwd, .alpha = SETTING(slope, slope));
KIND(clip, PSD_KEEPS_ALL, .algorithm = dnnl_eltwise_clip_v2_use_dst_for_bwd, .beta = SETTING(linear, factor));
KIND(affine, PSD_KEEPS_NOTHING, .algorithm = dnnl_eltwise_linear, .alpha = SETTING(linear, factor),
     .beta = SETTING(linear, summand));
KIND(exp, PSD_KEEPS_ALL, .algorithm = dnnl_eltwise_exp_use_dst_for_bwd);
KIND(abs, PSD_KEEPS_NOTHING, .algorithm = dnnl_eltwise_abs, .needs_input = true);
KIND(log, PSD_KEEPS_NOTHING, .algorithm = dnnl_eltwise_log, .needs_input = true);
KIND(softplus, PSD_KEEPS_NOTHING, .algorithm = dnnl_eltwise_soft_relu, .needs_input = true);
KIND(gelu, PSD_KEEPS_NOTHING,
     .algorithm = self->model->settings.gelu.approximation == PSD_GELU_TANH ? dnnl_eltwise_gelu_tanh
									    : dnnl_eltwise_gelu_erf,
     .needs_input = true);
KIND(silu, PSD_KEEPS_NOTHING, .algorithm = dnnl_eltwise_swish, .alpha = 1, .needs_input = true);
KIND(power, PSD_KEEPS_NOTHING, .algorithm = dnnl_eltwise_pow, .alpha = 1, .beta = SETTING(power, exponent),
     .needs_input = true);
