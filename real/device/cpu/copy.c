/* Layers that only move values: one copy for forward and one for backward, between two memory descriptions. */
#include <string.h>

#include "real/device/cpu/cpu.h"

/* Prepares the copies of forward and backward. view: description of the output's memory with the input's dimensions. */
static enum psd_status prepare_copies(struct psd_cpu_layer *self, const dnnl_memory_desc_t *view, struct psd_error *err)
{
	struct psd_cpu_twins *copies = self->details;
	struct psd_cpu_blob *in = psd_cpu_input(self, 0), *out = &self->own;
	const dnnl_memory_desc_t plain = psd_cpu_plain(self);

	PSD_TRY(psd_cpu_declare(self, &plain, err));
	PSD_TRY(psd_cpu_op_copy(&copies->forward, self, psd_cpu_value(in),
				(struct psd_cpu_arg){DNNL_ARG_TO, view, &out->value}, err));
	if (in->has_diff)
		PSD_TRY(psd_cpu_op_copy(&copies->backward, self, (struct psd_cpu_arg){DNNL_ARG_FROM, view, &out->diff},
					psd_cpu_share(in), err));
	return PSD_OK;
}

static enum psd_status prepare_reshape(struct psd_cpu_layer *self, struct psd_error *err)
{
	const dnnl_memory_desc_t view = psd_cpu_plain(psd_cpu_below(self, 0));

	return prepare_copies(self, &view, err);
}

static enum psd_status prepare_permute(struct psd_cpu_layer *self, struct psd_error *err)
{
	const unsigned *order = self->model->settings.permute.order;
	const int axes[] = {0, (int)order[0], (int)order[1], (int)order[2]};
	const dnnl_memory_desc_t plain = psd_cpu_plain(self);
	dnnl_memory_desc_t view;

	if (dnnl_memory_desc_permute_axes(&view, &plain, axes))
		return psd_cpu_fail(self, "permutation", dnnl_unimplemented, err);
	return prepare_copies(self, &view, err);
}

#define KIND(name)                                                                                                     \
	const struct psd_cpu_kind psd_cpu_##name = {prepare_##name, psd_cpu_forward, psd_cpu_backward,                 \
						    .details_bytes = sizeof(struct psd_cpu_twins)}

KIND(reshape);
KIND(permute);

/* ---- some of the channels ---- */

struct slice {
	struct psd_cpu_op whole_in, out, back, whole_out;
	void *const *source, *const *share; /* slots of the whole input and its gradient */
	uint64_t whole_bytes;
};

/* Prepares a layer that takes a slice of the channels. If the slice begins inside a block of channels, plain memory is
 * used. */
static enum psd_status prepare_slice(struct psd_cpu_layer *self, struct psd_error *err)
{
	struct slice *slice = self->details;
	struct psd_cpu_blob *in = psd_cpu_input(self, 0), *out = &self->own;
	const dnnl_memory_desc_t plain = psd_cpu_plain(self);
	const dnnl_dims_t offsets = {0, self->model->settings.slice.first};
	dnnl_memory_desc_t whole = in->desc, part;

	PSD_TRY(psd_cpu_declare(self, &plain, err));
	if (dnnl_memory_desc_init_submemory(&part, &whole, plain.dims, offsets)) {
		whole = psd_cpu_plain(psd_cpu_below(self, 0));
		if (dnnl_memory_desc_init_submemory(&part, &whole, plain.dims, offsets))
			return psd_cpu_fail(self, "slice", dnnl_unimplemented, err);
	}
	slice->whole_bytes = dnnl_memory_desc_get_size(&whole);
	PSD_TRY(psd_cpu_op_convert(&slice->whole_in, self, psd_cpu_value(in), &whole, PSD_CPU_SCRATCH_SOURCE,
				   &slice->source, err));
	PSD_TRY(psd_cpu_op_copy(&slice->out, self, (struct psd_cpu_arg){DNNL_ARG_FROM, &part, slice->source},
				psd_cpu_value(out), err));
	if (!in->has_diff)
		return PSD_OK;
	PSD_TRY(psd_cpu_op_deliver(&slice->whole_out, self, psd_cpu_share(in), &whole, PSD_CPU_SCRATCH_SOURCE,
				   &slice->share, err));
	return psd_cpu_op_copy(&slice->back, self, psd_cpu_diff(out),
			       (struct psd_cpu_arg){DNNL_ARG_TO, &part, slice->share}, err);
}

static enum psd_status forward_slice(struct psd_cpu_layer *self, struct psd_error *err)
{
	struct slice *slice = self->details;
	struct psd_cpu_op *const ops[] = {&slice->whole_in, &slice->out};

	return psd_cpu_op_run_all(ops, 2, self, err);
}

/* Computes the gradient of the input of a slice; the gradient of channels outside the slice becomes 0. */
static enum psd_status backward_slice(struct psd_cpu_layer *self, struct psd_error *err)
{
	struct slice *slice = self->details;
	struct psd_cpu_op *const ops[] = {&slice->back, &slice->whole_out};
	struct psd_cpu_blob *in = psd_cpu_input(self, 0);

	psd_cpu_share_begin(self, in);
	memset(*slice->share, 0, slice->whole_bytes);
	PSD_TRY(psd_cpu_op_run_all(ops, 2, self, err));
	return psd_cpu_share_end(self, in, err);
}

const struct psd_cpu_kind psd_cpu_slice = {prepare_slice, forward_slice, backward_slice,
					   .details_bytes = sizeof(struct slice)};
