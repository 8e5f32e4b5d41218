/* The rectifier, in place where nobody else reads its input; nothing is left to do forward where the convolution below
 * applied it. */
#include "real/device/cpu/cpu.h"

static enum psd_status prepare_forward(struct psd_compute *compute, unsigned layer, bool is_fused,
				       struct psd_error *err)
{
	struct psd_cpu_twins *relu = compute->layers[layer].details;
	struct psd_cpu_blob *in = psd_cpu_input(compute, layer, 0), *out = compute->layers[layer].blob;
	dnnl_eltwise_desc_t desc;
	const dnnl_status_t failure = dnnl_eltwise_forward_desc_init(
		&desc, dnnl_forward_training, dnnl_eltwise_relu_use_dst_for_bwd, &in->desc, 0.0f, 0.0f);
	const enum psd_status status =
		psd_cpu_op_describe(&relu->forward, compute, layer, "forward", failure, &desc, NULL, NULL, err);

	if (status)
		return status;
	if (is_fused) /* backward needs the description alone */
		return PSD_OK;
	return psd_cpu_op_build(&relu->forward, compute, layer,
				(const struct psd_cpu_arg[]){
					{DNNL_ARG_SRC, &in->desc, &in->value},
					{DNNL_ARG_DST, &out->desc, &out->value},
				},
				2, err);
}

/* From the result, not the input: it is all that is left in place, and dropout above only makes it zero where the
 * gradient is zero. */
static enum psd_status prepare_backward(struct psd_compute *compute, unsigned layer, struct psd_error *err)
{
	struct psd_cpu_twins *relu = compute->layers[layer].details;
	struct psd_cpu_blob *in = psd_cpu_input(compute, layer, 0), *out = compute->layers[layer].blob;
	dnnl_eltwise_desc_t desc;
	const dnnl_status_t failure = dnnl_eltwise_backward_desc_init(&desc, dnnl_eltwise_relu_use_dst_for_bwd,
								      &out->desc, &out->desc, 0.0f, 0.0f);
	const enum psd_status status = psd_cpu_op_describe(&relu->backward, compute, layer, "data gradient", failure,
							   &desc, &relu->forward, NULL, err);

	if (status)
		return status;
	return psd_cpu_op_build(&relu->backward, compute, layer,
				(const struct psd_cpu_arg[]){
					{DNNL_ARG_DST, &out->desc, &out->value},
					{DNNL_ARG_DIFF_DST, &out->desc, &out->diff},
					{DNNL_ARG_DIFF_SRC, &out->desc, in == out ? &out->diff : &in->share},
				},
				3, err);
}

static enum psd_status prepare(struct psd_compute *compute, unsigned layer, struct psd_error *err)
{
	const struct psd_cpu_layer *below = &compute->layers[compute->graph->layers[layer].inputs[0]];
	struct psd_cpu_blob *in = psd_cpu_input(compute, layer, 0);
	const bool is_in_place = psd_cpu_may_work_in_place(compute, layer);
	enum psd_status status = psd_cpu_take_details(compute, layer, sizeof(struct psd_cpu_twins), err);

	if (!status)
		status = is_in_place ? psd_cpu_declare_in_place(compute, layer, err)
				     : psd_cpu_declare(compute, layer, &in->desc, err);
	if (!status)
		status = prepare_forward(compute, layer, is_in_place && below->kind == &psd_cpu_conv, err);
	if (!status && in->has_diff)
		status = prepare_backward(compute, layer, err);
	return status;
}

const struct psd_cpu_kind psd_cpu_relu = {.prepare = prepare, .forward = psd_cpu_forward, .backward = psd_cpu_backward};
