/* Channel shuffle between groups. */
#include "real/device/cpu/cpu.h"

enum { CHANNELS = 1 }; /* number of the axis that is shuffled */

static enum psd_status prepare(struct psd_cpu_layer *self, struct psd_error *err)
{
	struct psd_cpu_twins *shuffle = self->details;
	struct psd_cpu_blob *in = psd_cpu_input(self, 0), *out = &self->own;
	const dnnl_dim_t groups = self->model->settings.shuffle.groups;
	struct psd_cpu_arg no_workspace;
	dnnl_shuffle_desc_t desc;

	PSD_TRY(psd_cpu_declare(self, &in->desc, err));
	PSD_TRY(psd_cpu_op_describe(
		&shuffle->forward, self, "forward",
		dnnl_shuffle_forward_desc_init(&desc, dnnl_forward_training, &in->desc, CHANNELS, groups), &desc, NULL,
		NULL, err));
	PSD_TRY(psd_cpu_build_forward(self, &no_workspace, err));
	if (!in->has_diff)
		return PSD_OK;
	return psd_cpu_op_make(&shuffle->backward, self, "data gradient",
			       dnnl_shuffle_backward_desc_init(&desc, &out->desc, CHANNELS, groups), &desc,
			       &shuffle->forward,
			       (const struct psd_cpu_arg[]){
				       {DNNL_ARG_DIFF_DST, &out->desc, &out->diff},
				       {DNNL_ARG_DIFF_SRC, &in->desc, &in->share},
			       },
			       2, err);
}

const struct psd_cpu_kind psd_cpu_shuffle = {prepare, psd_cpu_forward, psd_cpu_backward,
					     .details_bytes = sizeof(struct psd_cpu_twins)};
