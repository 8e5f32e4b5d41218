/* Functions of each element: one primitive each way. Backward needs the result alone, which is all that is left in
 * place. */
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

	/* where it is done, backward needs the description alone */
	return status || function.is_done ? status : psd_cpu_build_forward(self, &no_workspace, err);
}

/* The derivative of a linear function is the same wherever it is taken: there the result stands for the input. */
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
				       {function.algorithm == dnnl_eltwise_linear ? DNNL_ARG_SRC : DNNL_ARG_DST,
					&out->desc, &out->value},
				       {DNNL_ARG_DIFF_DST, &out->desc, &out->diff},
				       {DNNL_ARG_DIFF_SRC, &out->desc, in == out ? &out->diff : &in->share},
			       },
			       3, err);
}

enum psd_status psd_cpu_prepare_eltwise(struct psd_cpu_layer *self, struct psd_cpu_function function,
					struct psd_error *err)
{
	struct psd_cpu_blob *in = psd_cpu_input(self, 0);
	enum psd_status status = psd_cpu_may_work_in_place(self) ? psd_cpu_declare_in_place(self, err)
								 : psd_cpu_declare(self, &in->desc, err);

	if (!status)
		status = prepare_forward(self, function, err);
	if (!status && in->has_diff)
		status = prepare_backward(self, function, err);
	return status;
}

static enum psd_status prepare_sigmoid(struct psd_cpu_layer *self, struct psd_error *err)
{
	return psd_cpu_prepare_eltwise(
		self, (struct psd_cpu_function){.algorithm = dnnl_eltwise_logistic_use_dst_for_bwd}, err);
}

static enum psd_status prepare_tanh(struct psd_cpu_layer *self, struct psd_error *err)
{
	return psd_cpu_prepare_eltwise(self, (struct psd_cpu_function){.algorithm = dnnl_eltwise_tanh_use_dst_for_bwd},
				       err);
}

static enum psd_status prepare_elu(struct psd_cpu_layer *self, struct psd_error *err)
{
	return psd_cpu_prepare_eltwise(self,
				       (struct psd_cpu_function){.algorithm = dnnl_eltwise_elu_use_dst_for_bwd,
								 .alpha = (float)self->model->settings.slope.slope},
				       err);
}

static enum psd_status prepare_clip(struct psd_cpu_layer *self, struct psd_error *err)
{
	return psd_cpu_prepare_eltwise(self,
				       (struct psd_cpu_function){.algorithm = dnnl_eltwise_clip_v2_use_dst_for_bwd,
								 .beta = (float)self->model->settings.linear.factor},
				       err);
}

static enum psd_status prepare_linear(struct psd_cpu_layer *self, struct psd_error *err)
{
	const struct psd_linear_settings *linear = &self->model->settings.linear;

	return psd_cpu_prepare_eltwise(self,
				       (struct psd_cpu_function){.algorithm = dnnl_eltwise_linear,
								 .alpha = (float)linear->factor,
								 .beta = (float)linear->summand},
				       err);
}

#define KIND(name, kept)                                                                                               \
	const struct psd_cpu_kind psd_cpu_##name = {prepare_##name, psd_cpu_forward, psd_cpu_backward,                 \
						    .details_bytes = sizeof(struct psd_cpu_twins), .keeps = kept}

KIND(sigmoid, PSD_CPU_KEEPS_ALL);
KIND(tanh, PSD_CPU_KEEPS_ALL);
KIND(elu, PSD_CPU_KEEPS_ALL);
KIND(clip, PSD_CPU_KEEPS_ALL);
KIND(linear, PSD_CPU_KEEPS_NOTHING);
