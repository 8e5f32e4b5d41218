/* Functions of each element, such as the rectifier: one primitive each way. */
#include "real/device/cpu/cpu.h"

static enum psd_status prepare_forward(struct psd_cpu_layer *self, dnnl_alg_kind_t algorithm, bool is_done,
				       struct psd_error *err)
{
	struct psd_cpu_twins *twins = self->details;
	struct psd_cpu_arg no_workspace;
	dnnl_eltwise_desc_t desc;
	const dnnl_status_t failure = dnnl_eltwise_forward_desc_init(&desc, dnnl_forward_training, algorithm,
								     &psd_cpu_input(self, 0)->desc, 0.0f, 0.0f);
	const enum psd_status status =
		psd_cpu_op_describe(&twins->forward, self, "forward", failure, &desc, NULL, NULL, err);

	/* where it is done, backward needs the description alone */
	return status || is_done ? status : psd_cpu_build_forward(self, &no_workspace, err);
}

/* From the result, not the input: it is all that is left in place. */
static enum psd_status prepare_backward(struct psd_cpu_layer *self, dnnl_alg_kind_t algorithm, struct psd_error *err)
{
	struct psd_cpu_twins *twins = self->details;
	struct psd_cpu_blob *in = psd_cpu_input(self, 0), *out = self->blob;
	dnnl_eltwise_desc_t desc;
	const dnnl_status_t failure =
		dnnl_eltwise_backward_desc_init(&desc, algorithm, &out->desc, &out->desc, 0.0f, 0.0f);

	return psd_cpu_op_make(&twins->backward, self, "data gradient", failure, &desc, &twins->forward,
			       (const struct psd_cpu_arg[]){
				       {DNNL_ARG_DST, &out->desc, &out->value},
				       {DNNL_ARG_DIFF_DST, &out->desc, &out->diff},
				       {DNNL_ARG_DIFF_SRC, &out->desc, in == out ? &out->diff : &in->share},
			       },
			       3, err);
}

enum psd_status psd_cpu_prepare_eltwise(struct psd_cpu_layer *self, dnnl_alg_kind_t algorithm, bool is_done,
					struct psd_error *err)
{
	struct psd_cpu_blob *in = psd_cpu_input(self, 0);
	enum psd_status status = psd_cpu_may_work_in_place(self) ? psd_cpu_declare_in_place(self, err)
								 : psd_cpu_declare(self, &in->desc, err);

	if (!status)
		status = prepare_forward(self, algorithm, is_done, err);
	if (!status && in->has_diff)
		status = prepare_backward(self, algorithm, err);
	return status;
}
