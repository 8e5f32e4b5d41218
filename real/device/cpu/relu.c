/* ReLU, also with a slope below 0. Forward does nothing where the convolution below applies it. */
#include "real/device/cpu/cpu.h"

static enum psd_status prepare(struct psd_cpu_layer *self, struct psd_error *err)
{
	const struct psd_cpu_function function = {
		.algorithm = dnnl_eltwise_relu_use_dst_for_bwd,
		.alpha = (float)self->model->settings.slope.slope,
		.is_done = psd_cpu_may_work_in_place(self) && psd_cpu_below(self, 0)->has_relu,
	};

	return psd_cpu_prepare_eltwise(self, function, err);
}

const struct psd_cpu_kind psd_cpu_relu = {prepare,
					  psd_cpu_forward,
					  psd_cpu_backward,
					  .details_bytes = sizeof(struct psd_cpu_twins),
					  .keeps = PSD_KEEPS_SIGNS,
					  .leaves_signs = true};
