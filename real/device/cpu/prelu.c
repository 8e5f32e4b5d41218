/* PReLU. Its backward needs the input, so it does not work in place. */
#include "real/device/cpu/cpu.h"

static enum psd_status prepare_backward(struct psd_cpu_layer *self, const dnnl_memory_desc_t *slopes,
					struct psd_error *err)
{
	struct psd_cpu_twins *prelu = self->details;
	struct psd_cpu_blob *in = psd_cpu_input(self, 0), *out = self->blob;
	const unsigned tensor = self->model->first_tensor;
	dnnl_prelu_desc_t desc;

	return psd_cpu_op_make(&prelu->backward, self, "gradient",
			       dnnl_prelu_backward_desc_init(&desc, &in->desc, slopes, &out->desc, slopes), &desc,
			       &prelu->forward,
			       (const struct psd_cpu_arg[]){
				       {DNNL_ARG_SRC, &in->desc, &in->value},
				       {DNNL_ARG_WEIGHTS, slopes, &self->device->parameters[tensor]},
				       {DNNL_ARG_DIFF_DST, &out->desc, &out->diff},
				       {DNNL_ARG_DIFF_SRC, &in->desc, psd_cpu_share_slot(self)},
				       {DNNL_ARG_DIFF_WEIGHTS, slopes, self->gradients},
			       },
			       5, err);
}

static enum psd_status prepare(struct psd_cpu_layer *self, struct psd_error *err)
{
	struct psd_cpu_twins *prelu = self->details;
	struct psd_cpu_blob *in = psd_cpu_input(self, 0), *out = &self->own;
	const dnnl_dims_t dims = {1, self->model->settings.prelu.is_shared ? 1 : in->desc.dims[1], 1, 1};
	dnnl_memory_desc_t slopes;
	dnnl_prelu_desc_t desc;

	PSD_TRY(psd_cpu_declare(self, &in->desc, err));
	dnnl_memory_desc_init_by_tag(&slopes, 4, dims, dnnl_f32, dnnl_abcd);
	PSD_TRY(psd_cpu_op_make(
		&prelu->forward, self, "forward",
		dnnl_prelu_forward_desc_init(&desc, dnnl_forward_training, &in->desc, &slopes), &desc, NULL,
		(const struct psd_cpu_arg[]){
			{DNNL_ARG_SRC, &in->desc, &in->value},
			{DNNL_ARG_WEIGHTS, &slopes, &self->device->parameters[self->model->first_tensor]},
			{DNNL_ARG_DST, &out->desc, &out->value},
		},
		3, err));
	return prepare_backward(self, &slopes, err);
}

const struct psd_cpu_kind psd_cpu_prelu = {prepare, psd_cpu_forward, psd_cpu_backward,
					   .details_bytes = sizeof(struct psd_cpu_twins)};
