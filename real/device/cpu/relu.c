/* The rectifier. Nothing is left to do forward where the convolution below applied it. Layers above may overwrite its
 * result: dropout only makes it zero where the gradient is zero. */
#include "real/device/cpu/cpu.h"

static enum psd_status prepare(struct psd_compute *compute, unsigned layer, struct psd_error *err)
{
	const struct psd_cpu_layer *below = &compute->layers[compute->graph->layers[layer].inputs[0]];
	const bool is_fused = psd_cpu_may_work_in_place(compute, layer) && below->kind == &psd_cpu_conv;

	return psd_cpu_prepare_eltwise(compute, layer, dnnl_eltwise_relu_use_dst_for_bwd, is_fused, err);
}

const struct psd_cpu_kind psd_cpu_relu = {.prepare = prepare, .forward = psd_cpu_forward, .backward = psd_cpu_backward};
