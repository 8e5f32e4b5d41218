/* The logistic function. Its backward needs the result as it is, so nobody overwrites that. */
#include "real/device/cpu/cpu.h"

static enum psd_status prepare(struct psd_cpu_layer *self, struct psd_error *err)
{
	return psd_cpu_prepare_eltwise(self, dnnl_eltwise_logistic_use_dst_for_bwd, false, err);
}

const struct psd_cpu_kind psd_cpu_sigmoid = {prepare, psd_cpu_forward, psd_cpu_backward,
					     .details_bytes = sizeof(struct psd_cpu_twins), .keeps_output = true};
