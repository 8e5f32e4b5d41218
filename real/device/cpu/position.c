/* Learned position values, added to every sample. In any format a sample is contiguous, and the values are converted to
 * the format of the input. (oneDNN adds and sums over the batch by its slow reference implementation.) */
#include <string.h>

#include "real/device/cpu/cpu.h"

struct position {
	struct psd_cpu_op weight_in, dweight_out, pass; /* pass: copies the gradient to the input */
	/* slots (struct psd_cpu_op) of the weight and its gradient, in the format of the input */
	void *const *weight, *const *dweight;
	uint64_t elements; /* elements in a sample, with padding of blocks */
};

static void describe_one(const struct psd_cpu_layer *self, dnnl_memory_desc_t *own, dnnl_memory_desc_t *plain)
{
	const struct psd_shape shape = self->model->shape;
	const dnnl_dims_t dims = {1, shape.channels, shape.height, shape.width};

	dnnl_memory_desc_init_by_tag(plain, 4, dims, dnnl_f32, dnnl_nchw);
	*own = self->blob->desc; /* format of a batch of one: its stride comes last */
	own->dims[0] = own->padded_dims[0] = 1;
}

static enum psd_status prepare(struct psd_cpu_layer *self, struct psd_error *err)
{
	struct position *position = self->details;
	struct psd_cpu_blob *in = psd_cpu_input(self, 0), *out = &self->own;
	void *const *weight = &self->device->parameters[self->model->first_tensor];
	dnnl_memory_desc_t own, plain;

	PSD_TRY(psd_cpu_declare(self, &in->desc, err));
	describe_one(self, &own, &plain);
	position->elements = dnnl_memory_desc_get_size(&own) / sizeof(float);
	PSD_TRY(psd_cpu_op_convert(&position->weight_in, self, (struct psd_cpu_arg){0, &plain, weight}, &own,
				   PSD_CPU_SCRATCH_WEIGHT, &position->weight, err));
	PSD_TRY(psd_cpu_op_deliver(&position->dweight_out, self, (struct psd_cpu_arg){0, &plain, self->gradients}, &own,
				   PSD_CPU_SCRATCH_WEIGHT, &position->dweight, err));
	return in->has_diff ? psd_cpu_op_copy(&position->pass, self, psd_cpu_diff(out), psd_cpu_share(in), err)
			    : PSD_OK;
}

static void add(float *restrict to, const float *restrict left, const float *restrict right, uint64_t elements)
{
	for (uint64_t e = 0; e < elements; e++)
		to[e] = left[e] + right[e];
}

static enum psd_status forward(struct psd_cpu_layer *self, struct psd_error *err)
{
	struct position *position = self->details;
	const float *from = psd_cpu_input(self, 0)->value;
	float *to = self->blob->value;

	PSD_TRY(psd_cpu_op_run(&position->weight_in, self, err));
	for (uint64_t n = 0; n < self->device->options.batch; n++)
		add(to + n * position->elements, from + n * position->elements, *position->weight, position->elements);
	return PSD_OK;
}

static enum psd_status backward(struct psd_cpu_layer *self, struct psd_error *err)
{
	struct position *position = self->details;
	struct psd_cpu_op *const pass[] = {&position->pass};
	struct psd_cpu_blob *in = psd_cpu_input(self, 0);
	const float *dout = self->blob->diff;
	float *dweight = *position->dweight;

	memcpy(dweight, dout, position->elements * sizeof(*dweight));
	for (uint64_t n = 1; n < self->device->options.batch; n++)
		for (uint64_t e = 0; e < position->elements; e++)
			dweight[e] += dout[n * position->elements + e];
	const enum psd_status status = psd_cpu_op_run(&position->dweight_out, self, err);
	return status || !in->has_diff ? status : psd_cpu_op_share_all(pass, 1, self, in, err);
}

const struct psd_cpu_kind psd_cpu_position = {prepare, forward, backward, .details_bytes = sizeof(struct position)};
