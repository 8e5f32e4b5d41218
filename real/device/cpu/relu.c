/* The rectifier. Nothing is left to do forward where the convolution below applied it. Layers above may overwrite its
 * result: dropout only makes it zero where the gradient is zero. */
#include "real/device/cpu/cpu.h"

static enum psd_status prepare(struct psd_cpu_layer *self, struct psd_error *err)
{
	const struct psd_cpu_layer *below = psd_cpu_below(self, 0);
	const bool is_fused = psd_cpu_may_work_in_place(self) && below->kind == &psd_cpu_conv;

	return psd_cpu_prepare_eltwise(self, dnnl_eltwise_relu_use_dst_for_bwd, is_fused, err);
}

const struct psd_cpu_kind psd_cpu_relu = {prepare, psd_cpu_forward, psd_cpu_backward,
					  .details_bytes = sizeof(struct psd_cpu_twins)};
