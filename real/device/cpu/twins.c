/* Layers of two operations, forward and backward, and their part in the gradient of an input. */
#include "real/device/cpu/cpu.h"

enum psd_status psd_cpu_op_share_all(struct psd_cpu_op *const ops[], unsigned n_ops, struct psd_cpu_layer *self,
				     struct psd_cpu_blob *in, struct psd_error *err)
{
	psd_cpu_share_begin(self, in);
	PSD_TRY(psd_cpu_op_run_all(ops, n_ops, self, err));
	return psd_cpu_share_end(self, in, err);
}

enum psd_status psd_cpu_build_forward(struct psd_cpu_layer *self, struct psd_cpu_arg *workspace, struct psd_error *err)
{
	struct psd_cpu_twins *twins = self->details;
	const struct psd_cpu_blob *in = psd_cpu_input(self, 0), *out = self->blob;
	const dnnl_memory_desc_t *desc = psd_cpu_op_query(&twins->forward, dnnl_query_workspace_md);
	const uint64_t bytes = desc ? dnnl_memory_desc_get_size(desc) : 0;

	twins->workspace = bytes ? psd_cpu_take(self->device, bytes) : NULL;
	if (bytes && !twins->workspace)
		return psd_cpu_no_memory(err);
	*workspace = (struct psd_cpu_arg){DNNL_ARG_WORKSPACE, desc, bytes ? &twins->workspace : NULL};
	return psd_cpu_op_build(&twins->forward, self,
				(const struct psd_cpu_arg[]){
					{DNNL_ARG_SRC, &in->desc, &in->value},
					{DNNL_ARG_DST, &out->desc, &out->value},
					*workspace,
				},
				3, err);
}

enum psd_status psd_cpu_forward(struct psd_cpu_layer *self, struct psd_error *err)
{
	struct psd_cpu_twins *twins = self->details;

	return psd_cpu_op_run(&twins->forward, self, err);
}

enum psd_status psd_cpu_backward(struct psd_cpu_layer *self, struct psd_error *err)
{
	struct psd_cpu_twins *twins = self->details;
	struct psd_cpu_blob *in = psd_cpu_input(self, 0);

	if (self->blob == in || !in->has_diff) /* in place the gradient is overwritten, too */
		return psd_cpu_op_run(&twins->backward, self, err);
	return psd_cpu_op_share_all(&(struct psd_cpu_op *){&twins->backward}, 1, self, in, err);
}
