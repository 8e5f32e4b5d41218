/* Normalisation over neighbouring channels. */
#include "real/device/cpu/cpu.h"

/* Caffe's lrn_param as all its published models set them; the formula divides alpha by the size, as oneDNN's does. */
#define LRN_ALPHA 1e-4f
#define LRN_BETA  0.75f
#define LRN_K	  1.0f

static enum psd_status prepare_forward(struct psd_cpu_layer *self, struct psd_cpu_arg *workspace, struct psd_error *err)
{
	struct psd_cpu_twins *lrn = self->details;
	dnnl_lrn_desc_t desc;
	const dnnl_status_t failure = dnnl_lrn_forward_desc_init(
		&desc, dnnl_forward_training, dnnl_lrn_across_channels, &psd_cpu_input(self, 0)->desc,
		self->model->settings.lrn.size, LRN_ALPHA, LRN_BETA, LRN_K);
	const enum psd_status status =
		psd_cpu_op_describe(&lrn->forward, self, "forward", failure, &desc, NULL, NULL, err);

	return status ? status : psd_cpu_build_forward(self, workspace, err);
}

static enum psd_status prepare_backward(struct psd_cpu_layer *self, struct psd_cpu_arg workspace, struct psd_error *err)
{
	struct psd_cpu_twins *lrn = self->details;
	struct psd_cpu_blob *in = psd_cpu_input(self, 0), *out = self->blob;
	dnnl_lrn_desc_t desc;
	const dnnl_status_t failure =
		dnnl_lrn_backward_desc_init(&desc, dnnl_lrn_across_channels, &out->desc, &in->desc,
					    self->model->settings.lrn.size, LRN_ALPHA, LRN_BETA, LRN_K);

	return psd_cpu_op_make(&lrn->backward, self, "data gradient", failure, &desc, &lrn->forward,
			       (const struct psd_cpu_arg[]){
				       {DNNL_ARG_SRC, &in->desc, &in->value},
				       {DNNL_ARG_DIFF_DST, &out->desc, &out->diff},
				       {DNNL_ARG_DIFF_SRC, &in->desc, &in->share},
				       workspace,
			       },
			       4, err);
}

static enum psd_status prepare(struct psd_cpu_layer *self, struct psd_error *err)
{
	struct psd_cpu_blob *in = psd_cpu_input(self, 0);
	struct psd_cpu_arg workspace;
	enum psd_status status = psd_cpu_declare(self, &in->desc, err);

	if (!status)
		status = prepare_forward(self, &workspace, err);
	if (!status && in->has_diff)
		status = prepare_backward(self, workspace, err);
	return status;
}

const struct psd_cpu_kind psd_cpu_lrn = {prepare, psd_cpu_forward, psd_cpu_backward,
					 .details_bytes = sizeof(struct psd_cpu_twins)};
