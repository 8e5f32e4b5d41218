/* Softmax over the channels of each position. */
#include "real/device/cpu/cpu.h"

enum { CHANNELS = 1 }; /* number of the axis over which softmax is computed */

static enum psd_status prepare_backward(struct psd_cpu_layer *self, struct psd_error *err)
{
	struct psd_cpu_twins *softmax = self->details;
	struct psd_cpu_blob *in = psd_cpu_input(self, 0), *out = self->blob;
	dnnl_softmax_desc_t desc;

	return psd_cpu_op_make(&softmax->backward, self, "data gradient",
			       dnnl_softmax_backward_desc_init(&desc, &out->desc, &out->desc, CHANNELS), &desc,
			       &softmax->forward,
			       (const struct psd_cpu_arg[]){
				       {DNNL_ARG_DST, &out->desc, &out->value},
				       {DNNL_ARG_DIFF_DST, &out->desc, &out->diff},
				       {DNNL_ARG_DIFF_SRC, &in->desc, &in->share},
			       },
			       3, err);
}

static enum psd_status prepare(struct psd_cpu_layer *self, struct psd_error *err)
{
	struct psd_cpu_twins *softmax = self->details;
	struct psd_cpu_blob *in = psd_cpu_input(self, 0);
	struct psd_cpu_arg no_workspace;
	dnnl_softmax_desc_t desc;

	PSD_TRY(psd_cpu_declare(self, &in->desc, err));
	PSD_TRY(psd_cpu_op_describe(&softmax->forward, self, "forward",
				    dnnl_softmax_forward_desc_init(&desc, dnnl_forward_training, &in->desc, CHANNELS),
				    &desc, NULL, NULL, err));
	PSD_TRY(psd_cpu_build_forward(self, &no_workspace, err));
	return in->has_diff ? prepare_backward(self, err) : PSD_OK;
}

const struct psd_cpu_kind psd_cpu_softmax = {prepare, psd_cpu_forward, psd_cpu_backward,
					     .details_bytes = sizeof(struct psd_cpu_twins), .keeps = PSD_KEEPS_ALL};
