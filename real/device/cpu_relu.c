/* The rectifier, in place where nobody else reads its input; nothing is left to do forward where the convolution below
 * applied it. */
#include "real/device/cpu.h"

struct relu {
	struct psd_cpu_op forward, backward;
	bool is_in_place;
	bool is_fused; /* with the layer below */
};

static enum psd_status prepare_forward(struct psd_compute *compute, unsigned layer, struct psd_error *err)
{
	struct relu *relu = compute->layers[layer].state;
	struct psd_cpu_blob *in = psd_cpu_input(compute, layer, 0), *out = compute->layers[layer].blob;
	dnnl_eltwise_desc_t desc;
	const dnnl_status_t failure = dnnl_eltwise_forward_desc_init(
		&desc, dnnl_forward_training, dnnl_eltwise_relu_use_dst_for_bwd, &in->desc, 0.0f, 0.0f);
	const enum psd_status status =
		failure ? psd_cpu_fail(compute, layer, "forward", failure, err)
			: psd_cpu_op_describe(&relu->forward, compute, layer, &desc, NULL, NULL, err);

	if (status)
		return status;
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
	struct relu *relu = compute->layers[layer].state;
	struct psd_cpu_blob *in = psd_cpu_input(compute, layer, 0), *out = compute->layers[layer].blob;
	dnnl_eltwise_desc_t desc;
	const dnnl_status_t failure = dnnl_eltwise_backward_desc_init(&desc, dnnl_eltwise_relu_use_dst_for_bwd,
								      &out->desc, &out->desc, 0.0f, 0.0f);
	const enum psd_status status =
		failure ? psd_cpu_fail(compute, layer, "data gradient", failure, err)
			: psd_cpu_op_describe(&relu->backward, compute, layer, &desc, &relu->forward, NULL, err);

	if (status)
		return status;
	return psd_cpu_op_build(&relu->backward, compute, layer,
				(const struct psd_cpu_arg[]){
					{DNNL_ARG_DST, &out->desc, &out->value},
					{DNNL_ARG_DIFF_DST, &out->desc, &out->diff},
					{DNNL_ARG_DIFF_SRC, &out->desc, relu->is_in_place ? &out->diff : &in->share},
				},
				3, err);
}

static enum psd_status prepare(struct psd_compute *compute, unsigned layer, struct psd_error *err)
{
	const unsigned input = compute->graph->layers[layer].inputs[0];
	struct psd_cpu_blob *in = psd_cpu_input(compute, layer, 0);
	struct relu *relu;
	enum psd_status status = psd_cpu_take_state(compute, layer, sizeof(*relu), err);

	if (status)
		return status;
	relu = compute->layers[layer].state;
	relu->is_in_place = psd_cpu_may_work_in_place(compute, layer);
	relu->is_fused = relu->is_in_place && compute->layers[input].kind == &psd_cpu_conv;
	status = relu->is_in_place ? psd_cpu_declare_in_place(compute, layer, err)
				   : psd_cpu_declare(compute, layer, &in->desc, err);
	if (!status)
		status = prepare_forward(compute, layer, err);
	if (!status && in->has_diff)
		status = prepare_backward(compute, layer, err);
	return status;
}

static enum psd_status forward(struct psd_compute *compute, unsigned layer, struct psd_error *err)
{
	struct relu *relu = compute->layers[layer].state;

	return relu->is_fused ? PSD_OK : psd_cpu_op_run(&relu->forward, compute, layer, err);
}

static enum psd_status backward(struct psd_compute *compute, unsigned layer, struct psd_error *err)
{
	struct relu *relu = compute->layers[layer].state;
	struct psd_cpu_blob *in = psd_cpu_input(compute, layer, 0);
	enum psd_status status;

	if (relu->is_in_place)
		return psd_cpu_op_run(&relu->backward, compute, layer, err);
	psd_cpu_share_begin(compute, in);
	status = psd_cpu_op_run(&relu->backward, compute, layer, err);
	return status ? status : psd_cpu_share_end(compute, layer, in, err);
}

static void release(void *state)
{
	struct relu *relu = state;

	psd_cpu_op_release(&relu->forward);
	psd_cpu_op_release(&relu->backward);
}

const struct psd_cpu_kind psd_cpu_relu = {
	.prepare = prepare, .forward = forward, .backward = backward, .release = release};
