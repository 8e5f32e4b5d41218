/* Normalisation over neighbouring channels or positions; oneDNN's formula is Caffe's. */
#include "real/device/cpu/cpu.h"

static dnnl_alg_kind_t algorithm_of(const struct psd_lrn_settings *lrn)
{
	return lrn->is_within_channel ? dnnl_lrn_within_channel : dnnl_lrn_across_channels;
}

static enum psd_status prepare_forward(struct psd_cpu_layer *self, struct psd_cpu_arg *workspace, struct psd_error *err)
{
	struct psd_cpu_twins *lrn = self->details;
	dnnl_lrn_desc_t desc;
	const struct psd_lrn_settings *settings = &self->model->settings.lrn;
	const dnnl_status_t failure = dnnl_lrn_forward_desc_init(
		&desc, dnnl_forward_training, algorithm_of(settings), &psd_cpu_input(self, 0)->desc, settings->size,
		(float)settings->alpha, (float)settings->beta, (float)settings->k);

	PSD_TRY(psd_cpu_op_describe(&lrn->forward, self, "forward", failure, &desc, NULL, NULL, err));
	return psd_cpu_build_forward(self, workspace, err);
}

static enum psd_status prepare_backward(struct psd_cpu_layer *self, struct psd_cpu_arg workspace, struct psd_error *err)
{
	struct psd_cpu_twins *lrn = self->details;
	struct psd_cpu_blob *in = psd_cpu_input(self, 0), *out = self->blob;
	dnnl_lrn_desc_t desc;
	const struct psd_lrn_settings *settings = &self->model->settings.lrn;
	const dnnl_status_t failure =
		dnnl_lrn_backward_desc_init(&desc, algorithm_of(settings), &out->desc, &in->desc, settings->size,
					    (float)settings->alpha, (float)settings->beta, (float)settings->k);

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

	PSD_TRY(psd_cpu_declare(self, &in->desc, err));
	PSD_TRY(prepare_forward(self, &workspace, err));
	return in->has_diff ? prepare_backward(self, workspace, err) : PSD_OK;
}

const struct psd_cpu_kind psd_cpu_lrn = {prepare, psd_cpu_forward, psd_cpu_backward,
					 .details_bytes = sizeof(struct psd_cpu_twins)};
