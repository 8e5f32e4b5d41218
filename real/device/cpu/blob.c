/* Blobs: formats of activations, sharing of memory, and the sum of gradients from several readers of an output. */
#include "real/device/cpu/cpu.h"

#include <string.h>

static dnnl_memory_desc_t describe(const struct psd_cpu_layer *self, dnnl_format_tag_t tag)
{
	const struct psd_shape shape = self->model->shape;
	const dnnl_dims_t dims = {self->device->options.batch, shape.channels, shape.height, shape.width};
	dnnl_memory_desc_t desc;

	memset(&desc, 0, sizeof(desc)); /* on a failure, which these arguments cannot cause, the format is empty */
	dnnl_memory_desc_init_by_tag(&desc, 4, dims, dnnl_f32, tag);
	return desc;
}

uint64_t psd_cpu_places_of(const struct psd_cpu_layer *self)
{
	return (uint64_t)self->model->shape.height * self->model->shape.width;
}

dnnl_memory_desc_t psd_cpu_plain(const struct psd_cpu_layer *self)
{
	return describe(self, dnnl_nchw);
}

dnnl_memory_desc_t psd_cpu_channels_last(const struct psd_cpu_layer *self)
{
	return describe(self, dnnl_nhwc);
}

dnnl_memory_desc_t psd_cpu_any(const struct psd_cpu_layer *self)
{
	return describe(self, dnnl_format_tag_any);
}

const struct psd_cpu_layer *psd_cpu_below(const struct psd_cpu_layer *self, unsigned input)
{
	return &self->device->layers[self->model->inputs[input]];
}

struct psd_cpu_blob *psd_cpu_input(const struct psd_cpu_layer *self, unsigned input)
{
	return psd_cpu_below(self, input)->blob;
}

bool psd_cpu_may_work_in_place(const struct psd_cpu_layer *self)
{
	const struct psd_cpu_layer *input = psd_cpu_below(self, 0);

	/* the blob of the network's input is the caller's memory, which must not be overwritten */
	return input->n_readers == 1 && input->model->n_inputs > 0 &&
	       (input->blob->keeps == PSD_KEEPS_NOTHING ||
		(input->blob->keeps == PSD_KEEPS_SIGNS && self->kind->leaves_signs));
}

static enum psd_status build_add(struct psd_cpu_layer *self, struct psd_cpu_blob *blob, struct psd_error *err)
{
	return psd_cpu_op_sum(&blob->add, self, &blob->desc, &blob->diff,
			      psd_cpu_scratch_slot(self->device, PSD_CPU_SCRATCH_BRANCH, blob->bytes), &blob->diff,
			      err);
}

enum psd_status psd_cpu_declare(struct psd_cpu_layer *self, const dnnl_memory_desc_t *desc, struct psd_error *err)
{
	struct psd_cpu_blob *blob = &self->own;

	blob->desc = *desc;
	blob->bytes = dnnl_memory_desc_get_size(desc);
	blob->owner = blob->last = self->number;
	blob->keeps = self->kind->keeps;
	blob->has_diff = self->model->is_trained && !self->model->kind->is_loss;
	self->blob = blob;
	if (self->model->n_inputs == 0)
		return PSD_OK;
	blob->value = psd_cpu_take(self->device, blob->bytes);
	if (!blob->value)
		return psd_cpu_no_memory(err);
	return blob->has_diff && self->n_readers > 1 ? build_add(self, blob, err) : PSD_OK;
}

enum psd_status psd_cpu_declare_in_place(struct psd_cpu_layer *self, struct psd_error *err)
{
	self->blob = psd_cpu_input(self, 0);
	self->blob->last = self->number;
	if (self->kind->keeps > self->blob->keeps)
		self->blob->keeps = self->kind->keeps;
	return self->blob->has_diff && self->n_readers > 1 ? build_add(self, self->blob, err) : PSD_OK;
}

void *const *psd_cpu_share_slot(const struct psd_cpu_layer *self)
{
	struct psd_cpu_blob *in = psd_cpu_input(self, 0);

	return in->has_diff ? &in->share : psd_cpu_scratch_slot(self->device, PSD_CPU_SCRATCH_SOURCE, in->bytes);
}

void psd_cpu_share_begin(const struct psd_cpu_layer *self, struct psd_cpu_blob *blob)
{
	blob->share = blob->is_filled ? self->device->scratch[PSD_CPU_SCRATCH_BRANCH].data : blob->diff;
}

enum psd_status psd_cpu_share_end(struct psd_cpu_layer *self, struct psd_cpu_blob *blob, struct psd_error *err)
{
	const bool was_filled = blob->is_filled;

	blob->is_filled = true;
	return was_filled ? psd_cpu_op_run(&blob->add, self, err) : PSD_OK;
}
